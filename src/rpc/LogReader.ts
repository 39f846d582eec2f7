/**
 * LogReader: the rune log as a client may read it.
 *
 * Guarantees: oldest first, and where a reader follows, each later rune once and
 * without gap; a rune of visibility `secret` never passes.
 */
import { Effect, Stream } from "effect"
import { inboxName, workerName } from "../agents/AgentStates.ts"
import type { Rune } from "../event-log/Rune.ts"
import * as ToolMachine from "../agents/ToolMachine.ts"
import type { EventLog, Selection, StorageError } from "../event-log/EventLog.ts"
import { Limits } from "./Limits.ts"

/** The machines of one agent, as they sign their runes. */
export interface Actors {
  readonly exact: ReadonlyArray<string>
  /** Of its tool calls, each a machine of its own. */
  readonly calls: string
}

export const actorsOf = (agent: string): Actors => ({
  exact: [
    workerName(agent),
    inboxName(agent),
    ...["turn", "agent", "voice", "meter"].map((machine) => `${machine}/${agent}`)
  ],
  calls: `tool/${agent}/`
})

const isOf = ({ calls, exact }: Actors, actor: string): boolean => exact.includes(actor) || actor.startsWith(calls)

/** Whether it may leave the daemon. */
export const open = (rune: Rune): boolean => rune.visibility !== "secret"

/** The kinds that tool calls have, as far as they are asked for. */
const callKinds = (selection: Selection): ReadonlyArray<string> =>
  ToolMachine.kinds.filter((kind) => selection.kinds?.includes(kind) ?? true)

/** The newest of an agent's tool calls: each call is an actor below its agent's. */
const newestCalls = (log: EventLog["Service"], selection: Selection, actors: Actors, count: number) => {
  const kinds = callKinds(selection)
  return kinds.length === 0 ? Effect.succeed([]) : log.tail({ ...selection, kinds, below: actors.calls }, count)
}

const newest = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  selection: Selection,
  actors: Actors | undefined,
  count: number
) {
  if (count === 0) return []
  if (actors === undefined) return yield* log.tail(selection, count)
  const parts = yield* Effect.forEach(actors.exact, (actor) => log.tail({ ...selection, actor }, count))
  const calls = yield* newestCalls(log, selection, actors, count)
  return [...parts.flat(), ...calls].toSorted((a, b) => a.eventId - b.eventId)
})

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

/** The runes of a selection, oldest first; then, if asked, what comes, without gap or duplicate. */
export const select = (...args: Parameters<typeof selected>): Stream.Stream<Rune, StorageError> =>
  Stream.flattenArray(Stream.flatMap(Stream.chunks(selected(...args)), (runes) => Stream.fromIterable(lines(runes))))

const selected = (
  log: EventLog["Service"],
  selection: Selection,
  actors: Actors | undefined,
  options: { readonly tail?: number | undefined; readonly follow: boolean }
): Stream.Stream<Rune, StorageError> => {
  const wanted = (rune: Rune) => open(rune) && (actors === undefined || isOf(actors, rune.actor))
  if (options.tail === undefined) {
    return Stream.filter(options.follow ? log.subscribe(selection) : log.read(selection), wanted)
  }
  const count = options.tail
  return Stream.unwrap(
    Effect.gen(function* () {
      const head = yield* log.head
      const found = yield* newest(log, selection, actors, count)
      if (!options.follow) return Stream.fromIterable(found.filter(open).slice(-count))
      // What was appended while we looked may be in one part and missing from another: it comes from the subscription.
      const before = found.filter((rune) => rune.eventId <= head && open(rune))
      const after = Math.max(selection.after ?? 0, head)
      return Stream.concat(
        Stream.fromIterable(before.slice(-count)),
        Stream.filter(log.subscribe({ ...selection, after }), wanted)
      )
    })
  )
}
