/** parts: helpers that the recordings share. */
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import type * as Stage from "../Stage.ts"

export const shell = (script: string, { backend = {}, ...more }: Stage.More = {}) => ({
  backend: {
    type: "command",
    shell: script,
    readyAfter: "50ms",
    killGrace: "1 second",
    passEnv: ["SANDBOX"],
    ...backend
  },
  backoff: { base: "100ms", cap: "200ms" },
  minRunInterval: "0ms",
  ...more
})

/** Makes a repository with a first commit. */
export const repository = (folder: string) => {
  const git = (...args: ReadonlyArray<string>) => execFileSync("git", ["-C", folder, ...args], { stdio: "pipe" })
  git("init", "-q", "-b", "main")
  git("config", "user.name", "dev")
  git("config", "user.email", "dev@example.org")
  git("commit", "-q", "--allow-empty", "-m", "first")
}

/** Ignores the failure of a command, which can come too late. */
export const lenient = <A, E>(effect: Effect.Effect<A, E>) => Effect.ignore(effect)

export const mail = (port: number) => ({
  to: "ada@example.org",
  from: "agentd@example.org",
  smtp: { host: "127.0.0.1", port, security: "none" },
  digestWindow: "0ms"
})

/** Kills the daemon with SIGKILL, and waits until none of its processes is left. */
export const dies = (stage: Stage.Stage) =>
  Effect.andThen(
    stage.box.kill9,
    stage.box.until("no process is left", stage.box.processes, (pids) => pids.length === 0)
  )
