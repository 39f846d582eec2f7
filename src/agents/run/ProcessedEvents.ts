/**
 * ProcessedEvents: how much of a run's events is already in the log. A daemon that adopts the run reports no event
 * twice and loses none.
 *
 * A rune that a run's event causes has a field `heard` in its payload: the run, and the position of the newest event
 * before the rune. Output and answers can be written later than other runes, so their runes have a position or
 * character count of their own.
 */
import { Effect, Schema, Stream } from "effect"
import type { Place, RunEvent } from "../../runs/Backend.ts"
import type { EventLog, StorageError } from "../../core/event-log/EventLog.ts"
import type { Payload, Rune } from "../../core/event-log/Rune.ts"

export interface Heard extends Place {
  readonly run: string
  /**
   * How much of each source is in the log: characters of an answer or of a call's output, or tokens of a gateway
   * (GatewayUsage).
   */
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

/** How many of the worker's newest transitions are searched for the start of the run. */
const MOVES = 100

/** Kinds of runes for a run's output, which are written with a delay. */
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

/** The position after one more event. An undefined position is ignored. */
export const join = (one: Place | undefined, other: Place | undefined): Place | undefined =>
  one === undefined ? other : { ...one, ...other }

export class ProcessedEvents {
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

  /** All sources with this prefix, newest last. */
  keys(prefix: string): ReadonlyArray<string> {
    return [...this.said.keys()].filter((key) => key.startsWith(prefix))
  }

  /** How much of this source is in the log, in characters or tokens; 0 if nothing. */
  saidOf(key: string): number {
    return this.said.get(key) ?? 0
  }
}

const isFurther = (reached: Required<Place>, { err, out }: Place): boolean =>
  (out !== undefined && isAfter(out, reached.out)) || (err !== undefined && isAfter(err, reached.err))

/** Reads what the log contains of a run. `actor`: name of the run's worker actor. */
export const read = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  { actor, runId, stream }: { readonly stream: string; readonly actor: string; readonly runId: string }
): Effect.fn.Return<ProcessedEvents, StorageError> {
  const told = new ProcessedEvents()
  const begins = yield* log.tail({ stream, actor, kinds: ["worker.moved"] }, MOVES)
  const begin = begins.findLast(({ payload }) => isBegin(payload) && payload.event.runId === runId)
  yield* Stream.runForEach(log.read({ stream, after: (begin?.eventId ?? 1) - 1 }), (rune) =>
    Effect.sync(() => told.add(rune, runId))
  )
  return told
})
