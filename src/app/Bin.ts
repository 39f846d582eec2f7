/**
 * Bin: the program behind `main`. Only this module accesses the process: its arguments, environment and exit code. The
 * daemon's code is loaded only for `agentd up`.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Effect, Exit, Layer } from "effect"
import { resolve } from "node:path"
import { run } from "../cli/parse/Cli.ts"
import { Entry } from "../cli/parse/Invocation.ts"
import { settle } from "../cli/render/OwnZone.ts"
import * as Activation from "../systemd/Activation.ts"
import { collectorOf } from "../telemetry/Collector.ts"
import * as DaemonNode from "../systemd/DaemonNode.ts"

DaemonNode.forget(process.env)

/** Exit code of an interrupted program: 130 for a verb, and 0 for a daemon, for which an interrupt is a normal end. */
let interrupted = 130
/** Exit code of the program that `agentd run` ran in place of this one. */
let ended: number | undefined

/**
 * The command that starts this program. The path of this module is not used, because the bundler changes the names of
 * its chunks.
 */
const command = [process.execPath, resolve(process.argv[1] ?? "")] as const

const entry = Layer.succeed(Entry)({
  command,
  env: Object.fromEntries(
    Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined)
  ),
  daemon: (options) =>
    Effect.flatMap(
      Effect.promise(() => {
        interrupted = 0
        const handed = Activation.handed(process.env, process.pid)
        for (const name of Activation.VARIABLES) delete process.env[name]
        const parts = [import("./Daemon.ts"), import("./Signals.ts"), import("../systemd/JournalLogger.ts")] as const
        return Promise.all([...parts, handed])
      }),
      ([daemon, signals, journal, handed]) =>
        Effect.andThen(signals.follow, daemon.run({ ...options, command, handed })).pipe(
          Effect.scoped,
          Effect.provide(journal.layer(process.env))
        )
    ),
  foreground: (options) =>
    Effect.flatMap(
      Effect.promise(() => import("./Foreground.ts")),
      (foreground) => foreground.start(options)
    ).pipe(
      Effect.map((program) => ({
        ...program,
        ended: Effect.tap(program.ended, (status) =>
          Effect.sync(() => {
            ended = status
          })
        )
      }))
    )
})

// do this after `env` has been copied above, so that child processes get the original value of TZ
settle(process.env)

// when `head` ends in `agentd log -f | head`, standard output fails: that is not an error
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1))

const args = process.argv.slice(2)
const collector = collectorOf(process.env)
const verb = args.find((arg, index) => !arg.startsWith("-") && args[index - 1] !== "--state") ?? ""

/**
 * The whole program, traced as one span if there is a collector. A daemon is not traced, because the span would last as
 * long as the daemon.
 */
const program =
  collector === undefined || verb === "up"
    ? run(args)
    : Effect.flatMap(
        Effect.promise(() => import("../telemetry/Otlp.ts")),
        ({ traced }) => traced(collector, `agentd ${verb}`.trim(), process.env)(run(args))
      )

/**
 * Ends this process once all output is written: a reader can be slower than this process, and an exit drops what it has
 * not taken. An interrupt does not wait for the reader.
 */
const endAfterOutput = (code: number, isInterrupted: boolean, end: (code: number) => void): void => {
  if (isInterrupted) return end(code)
  process.stdout.write("", () => process.stderr.write("", () => end(code)))
}

NodeRuntime.runMain(program.pipe(Effect.provide(Layer.mergeAll(entry, NodeServices.layer))), {
  disableErrorReporting: true,
  teardown: (exit, end) => {
    const isInterrupted = Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
    const own = Exit.isSuccess(exit) && typeof exit.value === "number" ? exit.value : isInterrupted ? interrupted : 1
    endAfterOutput(ended ?? own, isInterrupted, end)
  }
})
