/**
 * OnHost: runs a command line that names a host: with the daemon there, or as a program there.
 *
 * Guarantees: an agent's run cannot act on another host, where its calls would count as a person's.
 */
import { Cause, Effect } from "effect"
import { type Host, parse } from "../../config/Host.ts"
import { commandOf } from "../../runs/HostConnection.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { reported } from "../parse/FailureOutput.ts"
import { Entry } from "../parse/Invocation.ts"
import * as Paths from "../parse/Paths.ts"
import { present } from "../parse/Renamed.ts"
import * as SavedHosts from "./SavedHosts.ts"
import { addressOf, type Refused, split, wayOf } from "./HostLine.ts"

const failed = ({ message, remedy }: Refused, exitCode: number = ExitCode.usage) =>
  new VerbFailed({ message, remedy, exitCode })

const usable = <A extends object | string>(found: A | Refused) =>
  typeof found === "object" && "remedy" in found ? Effect.fail(failed(found)) : Effect.succeed(found as A)

/** Runs `agentd` on a host in this terminal, with its exit code. */
const there = Effect.fnUntraced(function* (host: string, url: string, args: ReadonlyArray<string>) {
  const { env, foreground } = yield* Entry
  const isTerminal = process.stdin.isTTY && process.stdout.isTTY
  const { ended } = yield* foreground({ command: commandOf(parse(url) as Host, args, isTerminal, host), env })
  return yield* ended
})

/** Runs the command line. `here`: runs a command line without a host, with the daemon that `FarHost` names. */
export const run = <E, R>(
  given: ReadonlyArray<string>,
  here: (args: ReadonlyArray<string>) => Effect.Effect<number, E, R>
) =>
  Effect.gen(function* () {
    const hosts = yield* SavedHosts.read
    const { all, args, host } = yield* usable(split(given, hosts))
    if (host === undefined && !all) return yield* here(args)
    if ((yield* Entry).env["AGENTD_RUN"] !== undefined)
      return yield* failed(
        {
          message: "This command runs inside an agent (AGENTD_RUN is set), which may not act on another host.",
          remedy: "A person can do it, in a terminal that no agent started."
        },
        ExitCode.failed
      )
    if (host === undefined) return yield* Effect.provideService(here(args), Paths.AllHosts, hosts)
    const url = yield* usable(addressOf(host, hosts))
    const way = wayOf(present(args).args, host)
    if (way === "there") return yield* there(host, url, args)
    if (way !== "calls") return yield* failed(way)
    return yield* Effect.provideService(here(args), Paths.FarHost, { name: host, url })
  }).pipe(
    Effect.catchCauseIf(
      (cause) => !Cause.hasInterruptsOnly(cause),
      (cause) => reported(cause, null, given.includes("--json"))
    )
  )
