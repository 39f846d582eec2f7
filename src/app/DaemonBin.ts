/**
 * DaemonBin: the program behind `main` if another program starts the daemon (`agentd start`, systemd). No user can read
 * or answer anything, so this program does not load the CLI code, which is a third of all code.
 *
 * Guarantees: it behaves like `agentd up`, with the same messages and exit codes.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Effect, Exit, Option } from "effect"
import { resolve } from "node:path"
import { credentials } from "../cli/setup/Credentials.ts"
import { behindDoor } from "../cli/render/SafeConsole.ts"
import * as Paths from "../cli/parse/Paths.ts"
import { settle } from "../cli/render/OwnZone.ts"
import { worldOf } from "../config/Places.ts"
import { reported } from "../cli/parse/FailureOutput.ts"
import { supported } from "../cli/parse/PlatformCheck.ts"
import { checkLength } from "../api/rpc/Endpoint.ts"
import * as Activation from "../systemd/Activation.ts"
import * as DaemonNode from "../systemd/DaemonNode.ts"
import * as JournalLogger from "../systemd/JournalLogger.ts"
import * as Daemon from "./Daemon.ts"
import * as Signals from "./Signals.ts"

export const start = (): void => {
  DaemonNode.forget(process.env)
  const { env } = process
  const handed = Activation.handed(env, process.pid)
  for (const name of Activation.VARIABLES) delete env[name]

  /**
   * The command that starts this program. The path of this module is not used, because the bundler changes the names of
   * its chunks.
   */
  const command = [process.execPath, resolve(process.argv[1] ?? "")] as const
  /** The arguments: `[--state DIR] up`. */
  const [first, chosen] = process.argv.slice(2)

  const variables = Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined)
  )

  // do this after `variables` has been copied, so that runs get the original value of TZ
  settle(env)

  const program = Effect.gen(function* () {
    const paths = yield* Paths.resolve(first === "--state" ? Option.fromUndefinedOr(chosen) : Option.none())
    const up = Effect.gen(function* () {
      yield* supported
      const config = yield* Paths.findProject
      yield* checkLength(paths.socket)
      yield* Signals.follow
      yield* Daemon.run({
        state: paths.state,
        socket: paths.socket,
        userConfig: paths.userConfig,
        environment: { ...(yield* credentials(env["CREDENTIALS_DIRECTORY"])), ...variables },
        ...(config === null ? {} : { config }),
        command,
        handed
      })
      return 0
    })
    return yield* Effect.catchCauseIf(
      Effect.scoped(up),
      (cause) => !Cause.hasInterruptsOnly(cause),
      (cause) => reported(cause, worldOf(paths), false)
    )
  }).pipe(Effect.provide(JournalLogger.layer(env)), (whole) => behindDoor(whole, false))

  NodeRuntime.runMain(Effect.provide(program, NodeServices.layer), {
    disableErrorReporting: true,
    // an interrupt is a normal end of a daemon, so the exit code is 0
    teardown: (exit, end) =>
      end(Exit.isSuccess(exit) ? Number(exit.value) : Cause.hasInterruptsOnly(exit.cause) ? 0 : 1)
  })
}
