/** Confined: runs a command in a sandbox until it ends, in the same way as the backends do. */
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { type Environment, hand } from "../../src/runs/process/ChildProcess.ts"
import type { Argv } from "../../src/runs/Host.ts"
import type { Rules } from "../../src/runs/sandbox/Confinement.ts"
import type { Confined, Mechanism } from "../../src/runs/sandbox/Sandbox.ts"
import { PATIENCE } from "./Patience.ts"

export interface Answer {
  readonly code: number | null
  /** Output of both streams, in the order in which it came. */
  readonly output: string
}

/** Runs a confined command, and passes it the bytes that it reads from further file descriptors. */
export const command = ({ argv, handed }: Confined, cwd: string, env: Environment): Effect.Effect<Answer> =>
  Effect.callback((resume) => {
    const child = spawn(argv[0], argv.slice(1), {
      cwd,
      env: { ...env },
      timeout: PATIENCE,
      killSignal: "SIGKILL",
      stdio: ["ignore", "pipe", "pipe", ...handed.map(() => "pipe" as const)]
    })
    handed.forEach((bytes, index) => hand(child.stdio[index + 3], bytes))
    let output = ""
    for (const pipe of [child.stdout, child.stderr]) pipe?.on("data", (data) => (output += data))
    child.on("close", (code) => resume(Effect.succeed({ code, output })))
  })

/** Runs a command in the sandbox of `mechanism`. */
export const run = (
  mechanism: Mechanism,
  rules: Rules,
  argv: Argv,
  env: Environment,
  cwd: string = rules.workspace
): Effect.Effect<Answer> =>
  mechanism.kind === "none"
    ? Effect.die(new Error(mechanism.note))
    : Effect.flatMap(Effect.orDie(mechanism.wrap(rules, cwd, argv)), (confined) => command(confined, cwd, env))
