/**
 * DeadLetters: where messages go that no actor took.
 *
 * Guarantees: bounded (the newest `capacity` are kept, all are counted by
 * reason); noting one never waits, never fails and costs no fiber; with a log each is a
 * lazy `actor.dead_letter` rune in the daemon's stream, the first `capacity` of one turn
 * of the event loop.
 */
import { Cause as EffectCause, Clock, Context, Effect, Layer, Scheduler } from "effect"
import { type Cause, DAEMON_STREAM, type Payload, type RuneDraft } from "../event-log/Rune.ts"
import { EventLog } from "../event-log/EventLog.ts"

export type Reason =
  /** The machine's state does not take it: the sender's bug. */
  | "illegal"
  /** The message crashed its actor once too often. */
  | "poison"
  | "full"
  | "postponed-limit"
  /** The log did not take its rune. */
  | "refused"
  /** The actor is gone for good. */
  | "closed"

export interface DeadLetter {
  readonly address: string
  readonly reason: Reason
  readonly message: unknown
  /** The error or the refusal. */
  readonly why?: unknown
  readonly cause?: Cause
  /** ms since the epoch */
  readonly at: number
}

/** Characters of a message, or of its crash, that a rune keeps. */
const TEXT_LIMIT = 2_000

const tagOf = (message: unknown): string =>
  typeof message === "object" && message !== null && "_tag" in message ? String(message._tag) : typeof message

const text = (value: unknown): string => {
  if (typeof value === "string") return value.slice(0, TEXT_LIMIT)
  if (EffectCause.isCause(value)) return EffectCause.pretty(value).slice(0, TEXT_LIMIT)
  if (value instanceof Error) return `${value.name}: ${value.message}`.slice(0, TEXT_LIMIT)
  try {
    return (JSON.stringify(value) ?? String(value)).slice(0, TEXT_LIMIT)
  } catch {
    return `[${tagOf(value)}: not JSON]`
  }
}

const payload = (letter: DeadLetter): Payload => ({
  address: letter.address,
  reason: letter.reason,
  tag: tagOf(letter.message),
  message: text(letter.message),
  ...(letter.why === undefined ? {} : { why: text(letter.why) })
})

const draft = (letter: DeadLetter): RuneDraft => ({
  stream: DAEMON_STREAM,
  kind: "actor.dead_letter",
  actor: letter.address,
  trigger: tagOf(letter.message),
  cause: letter.cause ?? null,
  payload: payload(letter)
})

export class DeadLetters extends Context.Service<
  DeadLetters,
  {
    /** Synchronous, so that a drain in full swing can use it. */
    readonly post: (letter: Omit<DeadLetter, "at">) => void
    /** The newest, oldest first. */
    readonly recent: Effect.Effect<ReadonlyArray<DeadLetter>>
    readonly counts: Effect.Effect<{ readonly [r in Reason]?: number }>
  }
>()("agentd/actors/DeadLetters") {}

const make = Effect.fnUntraced(function* (options: { readonly capacity: number; readonly log?: EventLog["Service"] }) {
  const context = yield* Effect.context<never>()
  const clock = Context.get(context, Clock.Clock)
  const dispatcher = Context.get(context, Scheduler.Scheduler).makeDispatcher()
  const ring: Array<DeadLetter> = []
  const counts: { [r in Reason]?: number } = {}
  let next = 0

  const { log } = options
  let pending: Array<DeadLetter> = []
  const flush = () => {
    const letters = pending
    pending = []
    // `appendLazy` neither waits nor fails: nothing is lost that a fiber could tell.
    Effect.runForkWith(context)(log!.appendLazy(letters.map(draft)))
  }

  const post = (letter: Omit<DeadLetter, "at">) => {
    const dated = { ...letter, at: clock.currentTimeMillisUnsafe() }
    ring[next] = dated
    next = (next + 1) % options.capacity
    counts[letter.reason] = (counts[letter.reason] ?? 0) + 1
    if (log === undefined || pending.length >= options.capacity) return
    pending.push(dated)
    // One fiber for all that come before the event loop's next turn.
    if (pending.length === 1) dispatcher.scheduleTask(flush, 0)
  }

  return DeadLetters.of({
    post,
    recent: Effect.sync(() => [...ring.slice(next), ...ring.slice(0, next)]),
    counts: Effect.sync(() => ({ ...counts }))
  })
})

/** Kept in memory only. */
export const layerMemory = (capacity = 256): Layer.Layer<DeadLetters> => Layer.effect(DeadLetters, make({ capacity }))

/** Kept in memory and told to the log. */
export const layer = (capacity = 256): Layer.Layer<DeadLetters, never, EventLog> =>
  Layer.effect(
    DeadLetters,
    Effect.flatMap(EventLog, (log) => make({ capacity, log }))
  )
