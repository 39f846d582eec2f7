#!/usr/bin/env node
/**
 * The bin. It alone knows the process: arguments, environment, exit codes. The
 * code behind it is loaded after the compile cache is on, and the daemon's only
 * for `agentd up`.
 */
import { enableCompileCache } from "node:module"

enableCompileCache()

const [{ Cause, Effect, Exit, Layer }, { run }, { Entry }, NodeRuntime, NodeServices] = await Promise.all([
  import("effect"),
  import("./cli/Cli.ts"),
  import("./cli/Invocation.ts"),
  import("@effect/platform-node/NodeRuntime"),
  import("@effect/platform-node/NodeServices")
])

/** A verb that is interrupted did not do its work; a daemon that is told to end has done it. */
let interrupted = 130

const entry = Layer.succeed(Entry)({
  command: [process.execPath, import.meta.filename],
  env: Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== undefined)) as Record<
    string,
    string
  >,
  daemon: (options) =>
    Effect.flatMap(
      Effect.promise(() => {
        interrupted = 0
        return import("./Daemon.ts")
      }),
      ({ run }) => run({ ...options, environment: process.env })
    )
})

// `agentd log -f | head` is done when head is: not an error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1))

NodeRuntime.runMain(run(process.argv.slice(2)).pipe(Effect.provide(Layer.mergeAll(entry, NodeServices.layer))), {
  disableErrorReporting: true,
  teardown: (exit, end) =>
    end(
      Exit.isSuccess(exit) && typeof exit.value === "number"
        ? exit.value
        : Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
          ? interrupted
          : 1
    )
})
