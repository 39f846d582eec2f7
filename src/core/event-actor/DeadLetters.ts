/**
 * DeadLetters: collects messages that no actor has accepted (dead letters).
 *
 * Guarantees: memory is limited: the newest `capacity` messages are stored, and the number of all messages is counted
 * for each reason. `post` never waits, never fails and needs no fiber. If there is a log, each message is also written
 * to the daemon's stream, as a lazy rune `actor.dead_letter`. At most `capacity` such runes are written per turn of the
 * event loop.
 */
import { Cause as EffectCause, Clock, Context, Effect, Layer, Scheduler } from "effect"
import { type Cause, DAEMON_STREAM, type Payload, type RuneDraft } from "../event-log/Rune.ts"
import { EventLog } from "../event-log/EventLog.ts"

export type Reason =
  /** The state machine does not accept the message in its current state: the sender has a bug. */
  | "illegal"
  /** The message crashed its actor `POISON_AFTER` times. */
  | "poison"
  | "full"
  | "postponed-limit"
  /** The actor refused the message with an error, or the log refused a rune that the message caused. */
  | "refused"
  /** The actor was stopped or removed, or was down for too long. */
  | "closed"

export interface DeadLetter {
  readonly address: string
  readonly reason: Reason
  readonly message: unknown
  /** The error that the message caused, or the refusal; undefined: neither. */
  readonly why?: unknown
  readonly cause?: Cause
  /** When the message was dead-lettered, in ms since the epoch. */
  readonly at: number
}

/** Maximum length, in characters, of the message and of its error in a rune. */
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
    /** Records a dead letter. Synchronous, so that code in the middle of a turn can call it. */
    readonly post: (letter: Omit<DeadLetter, "at">) => void
    /** The stored dead letters, oldest first. */
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
    // `appendLazy` neither waits nor fails, so the fiber's result can be ignored
    Effect.runForkWith(context)(log!.appendLazy(letters.map(draft)))
  }

  const post = (letter: Omit<DeadLetter, "at">) => {
    const dated = { ...letter, at: clock.currentTimeMillisUnsafe() }
    ring[next] = dated
    next = (next + 1) % options.capacity
    counts[letter.reason] = (counts[letter.reason] ?? 0) + 1
    if (log === undefined || pending.length >= options.capacity) return
    pending.push(dated)
    // one fiber writes all letters that are posted before the next turn of the event loop
    if (pending.length === 1) dispatcher.scheduleTask(flush, 0)
  }

  return DeadLetters.of({
    post,
    recent: Effect.sync(() => [...ring.slice(next), ...ring.slice(0, next)]),
    counts: Effect.sync(() => ({ ...counts }))
  })
})

export const layerMemory = (capacity = 256): Layer.Layer<DeadLetters> => Layer.effect(DeadLetters, make({ capacity }))

export const layer = (capacity = 256): Layer.Layer<DeadLetters, never, EventLog> =>
  Layer.effect(
    DeadLetters,
    Effect.flatMap(EventLog, (log) => make({ capacity, log }))
  )
