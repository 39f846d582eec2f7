/**
 * `agentd verify`: reads and checks the whole rune log. If the daemon is running, the daemon does this. Otherwise this
 * process reads the store, without changing any rune.
 */
import { Console, Effect, FileSystem, Stream } from "effect"
import { dirname } from "node:path"
import { isTorn } from "../../backup/Contents.ts"
import { call } from "../../api/rpc/ControlClient.ts"
import { probe } from "../../api/rpc/Endpoint.ts"
import type { VerifyEvent } from "../../board/DaemonMessages.ts"
import { EventLog, StorageError, type Verdict } from "../../core/event-log/EventLog.ts"
import * as DaemonLog from "../../app/DaemonLog.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Invocation, print } from "../parse/Invocation.ts"
import { age, count, paint, plain } from "../render/Output.ts"

/** Lets the daemon verify the log. `talks`: print progress to standard error. */
const byDaemon = (socket: string, talks: boolean) =>
  call(socket, (client) =>
    client.Verify().pipe(
      Stream.tap((event) => {
        if (!talks || event._tag === "Verdict") return Effect.void
        return Console.error(
          event._tag === "Started"
            ? `Reading ${count(event.runes, "rune")} …`
            : `… still reading after ${age(event.elapsed)}`
        )
      }),
      Stream.runFold(
        (): Verdict | undefined => undefined,
        (verdict, event: VerifyEvent) => (event._tag === "Verdict" ? event : verdict)
      )
    )
  )

/** The error if the store cannot be read; otherwise undefined. */
export const unreadable = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  if (isTorn(dirname(file))) {
    return new StorageError({
      reason: "torn",
      message: `A restore of ${file} was interrupted: the folder has files of two stores.`,
      remedy: "The next start undoes the restore: agentd start"
    })
  }
  if (yield* Effect.orElseSucceed(fs.exists(file), () => false)) return undefined
  return new StorageError({
    reason: "cannot-open",
    message: `There is no rune log at ${file}.`,
    remedy: "Pass the right state directory with --state DIR, or start the daemon once: agentd start"
  })
})

/** Verifies a store in this process, while no daemon has it open. */
export const byHand = Effect.fnUntraced(function* (file: string) {
  const refused = yield* unreadable(file)
  if (refused !== undefined) return yield* refused
  return yield* Effect.flatMap(EventLog, (log) => log.verify).pipe(Effect.provide(DaemonLog.layerReadOnly({ file })))
})

const dateOf = (at: number): string => new Date(at).toISOString().slice(0, 16).replace("T", " ")

export const run = Effect.fnUntraced(function* () {
  const { colour, columns, json, paths } = yield* Invocation
  const running = (yield* probe(paths.socket)) === "live"
  const verdict = running ? yield* byDaemon(paths.socket, !json && columns !== null) : yield* byHand(paths.store)
  const none: Verdict = { runes: 0, streams: 0, erased: [], problems: [] }
  const { begins, erased, problems, runes, streams } = verdict ?? none
  yield* print({ runes, streams, erased, begins: begins ?? null, problems }, () => [
    ...(begins === undefined
      ? []
      : [
          `The log begins at rune ${begins.eventId}: runes from before ${dateOf(begins.at)} were deleted (${plain(begins.by)}).`
        ]),
    ...erased.map(({ eventId, stream }) => `rune ${eventId} of ${plain(stream)}: its texts were erased`),
    ...problems.map(
      ({ eventId, message, rule, stream }) =>
        `${paint(colour, "red", rule)} ${stream === "" ? (eventId === 0 ? "" : `rune ${eventId}: `) : `rune ${eventId} of ${plain(stream)}: `}${plain(message)}`
    ),
    ...(problems.length === 0
      ? [
          `${paint(colour, "green", "No problems")}: ${count(runes, "rune")} in ${count(streams, "stream")}; all hashes are correct.`
        ]
      : [])
  ])
  if (problems.length === 0) return
  return yield* new VerbFailed({
    message: `${count(problems.length, "problem")} in ${count(runes, "rune")}.`,
    remedy:
      "See what a repair would lose: agentd repair --dry-run. A repair keeps the old store. A backup may have the lost runes.",
    exitCode: ExitCode.problems
  })
})
