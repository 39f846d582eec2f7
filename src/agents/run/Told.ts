/**
 * Told: how far the log has what a run told, for a run that a daemon takes up: by that nothing is told twice, and
 * nothing is left out.
 *
 * A rune that follows from what a run told says so in its payload, as `heard`: the run, and the place of the
 * newest event behind it. That is in the same append as the fact. What a run says in passing (its
 * output, the words of its answers) may be written a little later, and has a place, or a count of characters, of its own.
 */
import { Effect, Schema, Stream } from "effect"
import type { Place, RunEvent } from "../../runs/Backend.ts"
import type { EventLog, StorageError } from "../../core/event-log/EventLog.ts"
import type { Payload, Rune } from "../../core/event-log/Rune.ts"

export interface Heard extends Place {
  readonly run: string
  /** Characters that are written, by where they belong: an answer, the output of a call; tokens that a gateway counted (GatewaySums). */
  readonly said?: { readonly [key: string]: number }
}

const HeardPayload = Schema.Struct({
  heard: Schema.Struct({
    run: Schema.String,
    out: Schema.optional(Schema.Tuple([Schema.Int, Schema.Int, Schema.Int])),
    err: Schema.optional(Schema.Tuple([Schema.Int, Schema.Int])),
    said: Schema.optional(Schema.Record(Schema.String, Schema.Int))
  })
})
const isHeard = Schema.is(HeardPayload)

const heardIn = (payload: Payload): Heard | undefined =>
  "heard" in payload && isHeard(payload) ? (payload.heard as Heard) : undefined

const Begin = Schema.Struct({ event: Schema.Struct({ _tag: Schema.tag("PromptReady"), runId: Schema.String }) })
const isBegin = Schema.is(Begin)

/** The newest moves of a worker, among which its run's begin is. */
const MOVES = 100

/** Kinds that tell of what was said in passing. */
const PASSING = new Set([
  "run.output",
  "run.thought",
  "run.notice",
  "run.background",
  "turn.assistant_delta",
  "tool.progress"
])

const START: Required<Place> = { out: [0, 0, 0], err: [0, 0] }

const isAfter = (one: ReadonlyArray<number>, other: ReadonlyArray<number>): boolean => {
  const at = one.findIndex((part, index) => part !== other[index])
  return at >= 0 && one[at]! > other[at]!
}

const further = (reached: Required<Place>, { err, out }: Place): Required<Place> => ({
  out: out !== undefined && isAfter(out, reached.out) ? out : reached.out,
  err: err !== undefined && isAfter(err, reached.err) ? err : reached.err
})

/** The place of an event that follows on others. */
export const join = (one: Place | undefined, other: Place | undefined): Place | undefined =>
  one === undefined ? other : { ...one, ...other }

export class Told {
  private facts = START
  private passing = START
  private readonly said = new Map<string, number>()

  add({ kind, payload }: Pick<Rune, "kind" | "payload">, runId: string): void {
    const heard = heardIn(payload)
    if (heard?.run !== runId) return
    if (PASSING.has(kind)) this.passing = further(this.passing, heard)
    else this.facts = further(this.facts, heard)
    for (const [key, count] of Object.entries(heard.said ?? {})) this.said.set(key, Math.max(this.saidOf(key), count))
  }

  has({ _tag, place }: Pick<RunEvent, "_tag" | "place">): boolean {
    if (place === undefined) return false
    const isPassing = _tag === "Delta" || _tag === "Notice" || _tag === "Background"
    const reached = isPassing ? this.passing : this.facts
    return !isFurther(reached, place)
  }

  /** Names of what was said that begin so, the newest last. */
  keys(prefix: string): ReadonlyArray<string> {
    return [...this.said.keys()].filter((key) => key.startsWith(prefix))
  }

  /** So many characters of it are written. */
  saidOf(key: string): number {
    return this.said.get(key) ?? 0
  }
}

const isFurther = (reached: Required<Place>, { err, out }: Place): boolean =>
  (out !== undefined && isAfter(out, reached.out)) || (err !== undefined && isAfter(err, reached.err))

/** As the log has it now. `actor`: that of the run's worker. */
export const read = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  { actor, runId, stream }: { readonly stream: string; readonly actor: string; readonly runId: string }
): Effect.fn.Return<Told, StorageError> {
  const told = new Told()
  const begins = yield* log.tail({ stream, actor, kinds: ["worker.moved"] }, MOVES)
  const begin = begins.findLast(({ payload }) => isBegin(payload) && payload.event.runId === runId)
  yield* Stream.runForEach(log.read({ stream, after: (begin?.eventId ?? 1) - 1 }), (rune) =>
    Effect.sync(() => told.add(rune, runId))
  )
  return told
})
