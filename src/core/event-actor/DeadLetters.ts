/**
 * DeadLetters: where messages go that no actor took.
 *
 * Guarantees: memory is limited: the newest `capacity` messages are kept, and all are counted by
 * reason. Posting one never waits, never fails and needs no fiber. With a log, each also becomes a
 * lazy `actor.dead_letter` rune in the daemon's stream, at most `capacity` per turn of the event
 * loop.
 */
import { Cause as EffectCause, Clock, Context, Effect, Layer, Scheduler } from "effect"
import { type Cause, DAEMON_STREAM, type Payload, type RuneDraft } from "../event-log/Rune.ts"
import { EventLog } from "../event-log/EventLog.ts"

export type Reason =
  /** The state machine does not accept it in this state: a bug of the sender. */
  | "illegal"
  /** The message crashed its actor too often. */
  | "poison"
  | "full"
  | "postponed-limit"
  /** The log did not take its rune. */
  | "refused"
  /** The actor no longer exists. */
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

/** Maximum number of characters of a message, or of its error, in a rune. */
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
    /** Synchronous, so that code in the middle of a drain can call it. */
    readonly post: (letter: Omit<DeadLetter, "at">) => void
    /** The newest dead letters, oldest first. */
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
    // `appendLazy` neither waits nor fails, so the fiber's result need not be observed.
    Effect.runForkWith(context)(log!.appendLazy(letters.map(draft)))
  }

  const post = (letter: Omit<DeadLetter, "at">) => {
    const dated = { ...letter, at: clock.currentTimeMillisUnsafe() }
    ring[next] = dated
    next = (next + 1) % options.capacity
    counts[letter.reason] = (counts[letter.reason] ?? 0) + 1
    if (log === undefined || pending.length >= options.capacity) return
    pending.push(dated)
    // One fiber for all letters that come before the event loop's next turn.
    if (pending.length === 1) dispatcher.scheduleTask(flush, 0)
  }

  return DeadLetters.of({
    post,
    recent: Effect.sync(() => [...ring.slice(next), ...ring.slice(0, next)]),
    counts: Effect.sync(() => ({ ...counts }))
  })
})

/** Dead letters are kept in memory only. */
export const layerMemory = (capacity = 256): Layer.Layer<DeadLetters> => Layer.effect(DeadLetters, make({ capacity }))

/** Dead letters are kept in memory and appended to the log. */
export const layer = (capacity = 256): Layer.Layer<DeadLetters, never, EventLog> =>
  Layer.effect(
    DeadLetters,
    Effect.flatMap(EventLog, (log) => make({ capacity, log }))
  )
