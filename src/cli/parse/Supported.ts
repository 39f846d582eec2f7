/** Supported: whether this system has what the daemon needs. */
import { Effect } from "effect"
import { ExitCode } from "./ExitCode.ts"
import { VerbFailed } from "./Failure.ts"

/** Why a daemon cannot run here; undefined if it can. See "macOS and others" in docs/install.md. */
export const objectionTo = (platform: NodeJS.Platform): VerbFailed | undefined =>
  platform === "linux"
    ? undefined
    : new VerbFailed({
        message: `agentd's daemon runs on Linux only: it finds, holds and ends processes by /proc, namespaces and systemd; this is ${platform}.`,
        remedy: "Run it in a virtual machine or a container with Linux; docs/install.md has a recipe.",
        exitCode: ExitCode.failed
      })

/** Fails if no daemon can run here. */
export const supported: Effect.Effect<void, VerbFailed> = Effect.suspend(() => {
  const objection = objectionTo(process.platform)
  return objection === undefined ? Effect.void : Effect.fail(objection)
})
