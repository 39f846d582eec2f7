/** PlatformCheck: checks whether the daemon can run on this operating system. */
import { Effect } from "effect"
import { ExitCode } from "./ExitCode.ts"
import { VerbFailed } from "./Failure.ts"

/** The error if a daemon cannot run on the platform; otherwise undefined. See "macOS and others" in docs/install.md. */
export const objectionTo = (platform: NodeJS.Platform): VerbFailed | undefined =>
  platform === "linux"
    ? undefined
    : new VerbFailed({
        message: `agentd's daemon runs only on Linux, not on ${platform}: it controls processes by /proc, namespaces and systemd.`,
        remedy: "Run it in a virtual machine or a container with Linux; docs/install.md has a recipe.",
        exitCode: ExitCode.failed
      })

export const supported: Effect.Effect<void, VerbFailed> = Effect.suspend(() => {
  const objection = objectionTo(process.platform)
  return objection === undefined ? Effect.void : Effect.fail(objection)
})
