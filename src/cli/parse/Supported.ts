/** Supported: whether this system has what the daemon stands on. */
import { Effect } from "effect"
import { ExitCode } from "./ExitCode.ts"
import { VerbFailed } from "./Failure.ts"

/** The objection to a daemon here; undefined: none. What it stands on is docs/install.md's "macOS and others". */
export const objectionTo = (platform: NodeJS.Platform): VerbFailed | undefined =>
  platform === "linux"
    ? undefined
    : new VerbFailed({
        message: `agentd's daemon runs on Linux only: it finds, holds and ends processes by /proc, namespaces and systemd; this is ${platform}.`,
        remedy: "Run it in a virtual machine or a container with Linux; docs/install.md has a recipe.",
        exitCode: ExitCode.failed
      })

/** Fails where there can be no daemon. */
export const supported: Effect.Effect<void, VerbFailed> = Effect.suspend(() => {
  const objection = objectionTo(process.platform)
  return objection === undefined ? Effect.void : Effect.fail(objection)
})
