/**
 * `agentd gc`: removes files from the state directory that are no longer needed.
 *
 * Guarantees: everything is listed with its size before the question. A work tree with uncommitted or unmerged work is
 * not removed, and the output says so.
 */
import { Clock, Duration, Effect, Result } from "effect"
import * as ToolSandbox from "../../runs/ToolSandbox.ts"
import { call } from "../../api/rpc/ControlClient.ts"
import { probe } from "../../api/rpc/Endpoint.ts"
import { sizeOf } from "../daemon/Backup.ts"
import { confirm } from "../parse/Confirm.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Entry, Invocation, print, printLines } from "../parse/Invocation.ts"
import { loadUser } from "../../config/ConfigFile.ts"
import * as KeptLog from "./KeptLog.ts"
import * as UnusedFiles from "./UnusedFiles.ts"
import { age, count, plain, table } from "../render/Output.ts"

interface Input {
  readonly dryRun: boolean
  readonly days: number
  readonly yes: boolean
}

const agentsThere = Effect.gen(function* () {
  const { paths } = yield* Invocation
  if ((yield* probe(paths.socket)) !== "live") return undefined
  return yield* call(paths.socket, (client) => client.Agents())
})

const rowsOf = (found: ReadonlyArray<UnusedFiles.Leftover>, now: number) =>
  found.map(({ at, bytes, kind, path, why }) => [
    { text: kind },
    { text: sizeOf(bytes), right: true },
    { text: age(now - at), right: true },
    { text: plain(`${path}: ${why}`) }
  ])

const publicly = ({ at, bytes, kind, path, why }: UnusedFiles.Leftover) => ({ kind, path, bytes, at, why })

const collecting = Effect.fnUntraced(function* ({ days, dryRun, yes }: Input) {
  const { colour, columns, json, paths } = yield* Invocation
  const now = yield* Clock.currentTimeMillis
  const agents = yield* agentsThere
  const before = now - Duration.toMillis(Duration.days(days))
  const { kept, leftovers } = yield* UnusedFiles.find({ state: paths.state, before, agents })
  const { keepLog } = yield* loadUser(paths.userConfig)
  const log = yield* Effect.result(KeptLog.look(paths.store, keepLog))
  const segments = Result.getOrElse(log, () => [])
  const bytes = leftovers.reduce((sum, one) => sum + one.bytes, 0)
  const stays = kept.map(({ bytes, path, why }) => `kept: ${plain(path)} (${sizeOf(bytes)}): ${plain(why)}`)
  const listed = [
    ...(leftovers.length === 0
      ? [`${paths.state} contains nothing older than ${count(days, "day")} that can be removed.`]
      : table(["WHAT", "SIZE", "AGE", "WHERE"], rowsOf(leftovers, now), { colour, columns })),
    ...stays,
    ...(Result.isFailure(log) ? [log.failure.message] : KeptLog.words(segments, keepLog)).map(plain)
  ]
  if (dryRun || leftovers.length === 0) {
    const found = { dryRun, bytes, leftovers: leftovers.map(publicly), kept, segments, removed: [] }
    return yield* print(found, () => listed)
  }
  if (!json) yield* printLines(listed)
  yield* confirm(
    yes,
    `${count(leftovers.length, "item")} (${sizeOf(bytes)}) will be removed permanently.`,
    "Remove them?"
  )
  const done = yield* Effect.forEach(leftovers, (one) =>
    Effect.map(UnusedFiles.remove(one, paths.state), (left) => ({ ...publicly(one), left: left ?? null }))
  )
  const gone = done.filter(({ left }) => left === null)
  const freed = gone.reduce((sum, one) => sum + one.bytes, 0)
  const left = done.flatMap(({ left, path }) => (left === null ? [] : [`kept: ${plain(path)}: ${plain(left)}`]))
  yield* print({ dryRun, bytes: freed, leftovers: done, kept, segments, removed: gone.map(({ path }) => path) }, () => [
    ...left,
    `Removed ${count(gone.length, "item")} (${sizeOf(freed)}).`
  ])
})

export const run = Effect.fnUntraced(function* (input: Input) {
  const { paths } = yield* Invocation
  const { env } = yield* Entry
  if (input.days < 0) {
    return yield* new VerbFailed({
      message: "--days must be a number of days, 0 or more.",
      remedy: "For example: agentd gc --days 30",
      exitCode: ExitCode.usage
    })
  }
  yield* Effect.provide(collecting(input), ToolSandbox.layer({ environment: env, hidden: [paths.state] }))
})
