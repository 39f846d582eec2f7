/**
 * LogReader: the rune log as a client may read it.
 *
 * Guarantees: oldest first, and where a reader follows, each later rune once and
 * without gap; a rune of visibility `secret` never passes.
 */
import { Effect, Stream } from "effect"
import { inboxAddress, workerAddress } from "../agents/Recovery.ts"
import type { Rune } from "../domain/Rune.ts"
import type { RuneLog, Selection, StorageError } from "../runes/RuneLog.ts"

/** The machines of one agent, as they sign their runes. */
export const actorsOf = (agent: string): ReadonlyArray<string> => [workerAddress(agent), inboxAddress(agent)]

/** Whether it may leave the daemon. */
export const open = (rune: Rune): boolean => rune.visibility !== "secret"

/** The runes of a selection, oldest first; then, if asked, what comes, without gap or duplicate. */
export const select = (
  log: RuneLog["Service"],
  selection: Selection,
  actors: ReadonlyArray<string> | undefined,
  options: { readonly tail?: number | undefined; readonly follow: boolean }
): Stream.Stream<Rune, StorageError> => {
  const wanted = (rune: Rune) => open(rune) && (actors === undefined || actors.includes(rune.actor))
  if (options.tail === undefined) {
    return Stream.filter(options.follow ? log.subscribe(selection) : log.read(selection), wanted)
  }
  const count = options.tail
  return Stream.unwrap(
    Effect.gen(function* () {
      const head = yield* log.head
      const selections = actors?.map((actor) => ({ ...selection, actor })) ?? [selection]
      const parts = count === 0 ? [] : yield* Effect.forEach(selections, (each) => log.tail(each, count))
      const newest = parts.flat().toSorted((a, b) => a.eventId - b.eventId)
      const shown = Stream.fromIterable(newest.filter(open).slice(-count))
      const after = Math.max(selection.after ?? 0, newest.at(-1)?.eventId ?? head)
      return options.follow
        ? Stream.concat(shown, Stream.filter(log.subscribe({ ...selection, after }), wanted))
        : shown
    })
  )
}
