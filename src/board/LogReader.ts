/**
 * LogReader: reads the rune log for a client.
 *
 * Guarantees: runes come oldest first. A reader that follows the log gets each later rune once, without a gap. A rune
 * with the visibility `secret` is never returned, an internal one only if requested.
 */
import { Effect, Stream } from "effect"
import { inboxName, workerName } from "../agents/machines/AgentStates.ts"
import type { Rune } from "../core/event-log/Rune.ts"
import type { EventLog, Selection, StorageError } from "../core/event-log/EventLog.ts"
import { Limits } from "./Limits.ts"

/** Names of the state machines that write an agent's runes. Each of its tool calls has a state machine of its own. */
export const actorsOf = (agent: string): ReadonlyArray<string> => [
  workerName(agent),
  inboxName(agent),
  ...["turn", "agent", "voice", "meter"].map((machine) => `${machine}/${agent}`),
  `tool/${agent}/`
]

/**
 * Tells whether a client may see a rune. A kind that is not in `known` is of a newer program: it counts as internal.
 */
export const open = (known: ReadonlyArray<string>, internal = false) => {
  const kinds = new Set(known)
  return (rune: Rune): boolean =>
    rune.visibility !== "secret" && (internal || (rune.visibility === "public" && kinds.has(rune.kind)))
}

const sizeOf = ({ payload }: Rune): number => JSON.stringify(payload).length

/** Groups runes, in their order, so that each group fits into one line to a client. A group has at least one rune. */
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

/** The newest `count` runes that the client may see, or all if there are fewer. */
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

/** The runes of a selection, oldest first. With `follow`, later runes are added, without a gap or a duplicate. */
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
      // the subscription returns the runes that were appended during the search
      const before = found.filter(({ eventId }) => eventId <= head)
      const after = Math.max(selection.after ?? 0, head)
      return Stream.concat(Stream.fromIterable(before), Stream.filter(log.subscribe({ ...selection, after }), isShown))
    })
  )
}
