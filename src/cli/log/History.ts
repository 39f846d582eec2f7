/**
 * `agentd log --messages`: prints users' messages to agents, goals and channels with their outcomes, the newest last.
 *
 * Guarantees: prints no more rows than requested, and works without the daemon.
 */
import { Clock, Effect, Stream } from "effect"
import { FIELDS, HistoryView, KINDS, linesOf, type Named } from "./HistoryView.ts"
import { csv } from "../render/Csv.ts"
import { Invocation, print } from "../parse/Invocation.ts"
import { definedOf, onSource, refused, type Source } from "./LogSource.ts"
import { chosen } from "./LogsChoice.ts"
import { atOf, type TimeExpression } from "../parse/TimeExpression.ts"

export interface Input {
  readonly names: ReadonlyArray<string>
  readonly lines: number
  readonly since: TimeExpression | undefined
  readonly grep: RegExp | undefined
  readonly csv: boolean
}

/** Number of newest runes to read: first LEAST, then MOST, then the whole log, until there are enough rows. */
const MOST = 10_000
const LEAST = 2_000
/** Maximum number of rows in memory. Matches are searched among these rows. */
const HELD = 10_000

const found = Effect.fnUntraced(function* (source: Source, { grep, lines, names, since: moment }: Input) {
  const { caller } = yield* Invocation
  const now = yield* Clock.currentTimeMillis
  const since = moment === undefined ? undefined : atOf(moment, now)
  const whose = chosen(names, yield* source.homes, caller.config)
  const look = Effect.fnUntraced(function* (tail: number | undefined) {
    const view = new HistoryView(HELD)
    let count = 0
    yield* Stream.runForEach(source.log(definedOf({ kinds: KINDS, since, tail })), (rune) =>
      Effect.sync(() => {
        count++
        view.feed(rune)
      })
    )
    const rows = view.rows.flatMap((row): ReadonlyArray<Named> => {
      const name = whose.nameOf(row.conversation, row.to)
      const isAsked = grep === undefined || grep.test(row.text) || grep.test(row.detail) || grep.test(row.by)
      return name === undefined || !isAsked ? [] : [{ ...row, name }]
    })
    return { rows: lines === 0 ? [] : rows.slice(-lines), isAll: tail === undefined || count < tail }
  })
  for (const tail of [LEAST, MOST, undefined]) {
    const { isAll, rows } = yield* look(tail)
    if (isAll || rows.length === lines) return { rows, whose }
  }
  return { rows: [], whose }
})

export const run = Effect.fnUntraced(function* (input: Input) {
  const { colour, columns } = yield* Invocation
  const now = yield* Clock.currentTimeMillis
  const { rows, whose } = yield* onSource((source) => found(source, input))
  if (rows.length === 0 && whose.unknown.length > 0) return yield* refused(whose)
  yield* print(rows, () => (input.csv ? csv(FIELDS, rows) : linesOf(rows, { colour, columns, now })))
})
