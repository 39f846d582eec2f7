/**
 * LogReader: the rune log as a client may read it.
 *
 * Guarantees: oldest first, and where a reader follows, each later rune once and
 * without gap; a rune of visibility `secret` never passes, an internal one only where it is asked for.
 */
import { Effect, Stream } from "effect"
import { inboxName, workerName } from "../agents/machines/AgentStates.ts"
import type { Rune } from "../core/event-log/Rune.ts"
import type { EventLog, Selection, StorageError } from "../core/event-log/EventLog.ts"
import { Limits } from "./Limits.ts"

/** The machines of one agent, as they sign their runes; of its tool calls each is one of its own. */
export const actorsOf = (agent: string): ReadonlyArray<string> => [
  workerName(agent),
  inboxName(agent),
  ...["turn", "agent", "voice", "meter"].map((machine) => `${machine}/${agent}`),
  `tool/${agent}/`
]

/** Whether a person is shown it; of a kind that is not `known`, a newer program's, it is internal. */
export const open = (known: ReadonlyArray<string>, internal = false) => {
  const kinds = new Set(known)
  return (rune: Rune): boolean =>
    rune.visibility !== "secret" && (internal || (rune.visibility === "public" && kinds.has(rune.kind)))
}

const sizeOf = ({ payload }: Rune): number => JSON.stringify(payload).length

/** In their order, as many together as a line to a client takes; one at least. */
const lines = (runes: ReadonlyArray<Rune>): ReadonlyArray<[Rune, ...Array<Rune>]> => {
  const made: Array<[Rune, ...Array<Rune>]> = []
  let left = 0
  for (const rune of runes) {
    const size = sizeOf(rune)
    const line = made.at(-1)
    if (line === undefined || size > left) {
      made.push([rune])
      left = Limits.lineBytes - size
    } else {
      line.push(rune)
      left -= size
    }
  }
  return made
}

/** The newest runes that are shown, so many of them as far as there are. */
const newest = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  selection: Selection,
  count: number,
  isShown: (rune: Rune) => boolean
) {
  if (count === 0) return []
  for (let looked = count; ; looked *= 2) {
    const found = yield* log.tail(selection, looked)
    const shown = found.filter(isShown)
    if (shown.length >= count || found.length < looked) return shown.slice(-count)
  }
})

/** The runes of a selection, oldest first; then, if asked, what comes, without gap or duplicate. */
export const select = (...args: Parameters<typeof selected>): Stream.Stream<Rune, StorageError> =>
  Stream.flattenArray(Stream.flatMap(Stream.chunks(selected(...args)), (runes) => Stream.fromIterable(lines(runes))))

const selected = (
  log: EventLog["Service"],
  selection: Selection,
  options: { readonly tail?: number | undefined; readonly follow: boolean; readonly internal?: boolean | undefined },
  known: ReadonlyArray<string>
): Stream.Stream<Rune, StorageError> => {
  const { internal, tail: count } = options
  const isShown = open(known, internal)
  if (count === undefined) {
    return Stream.filter(options.follow ? log.subscribe(selection) : log.read(selection), isShown)
  }
  return Stream.unwrap(
    Effect.gen(function* () {
      const head = yield* log.head
      const found = yield* newest(log, selection, count, isShown)
      if (!options.follow) return Stream.fromIterable(found)
      // what was appended while we looked comes from the subscription
      const before = found.filter(({ eventId }) => eventId <= head)
      const after = Math.max(selection.after ?? 0, head)
      return Stream.concat(Stream.fromIterable(before), Stream.filter(log.subscribe({ ...selection, after }), isShown))
    })
  )
}
