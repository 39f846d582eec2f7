/**
 * DeadLetters: where messages go that no actor took.
 *
 * Guarantees: bounded (the newest `capacity` are kept, all are counted by
 * reason); noting one never waits and never fails; with a log each is a lazy
 * `actor.dead_letter` rune in the daemon's stream.
 */
import { Cause, Clock, Context, Effect, Layer } from "effect"
import { type Cause as RuneCause, DAEMON_STREAM, type Payload } from "../event-log/Rune.ts"
import { EventLog } from "../event-log/EventLog.ts"

export type Reason =
  /** The machine's state does not take it: the sender's bug. */
  | "illegal"
  /** It crashed its actor once too often. */
  | "poison"
  /** No room. */
  | "full"
  | "postponed-limit"
  /** The log did not take its rune. */
  | "refused"
  /** Its actor is gone for good. */
  | "closed"

export interface DeadLetter {
  readonly address: string
  readonly reason: Reason
  readonly message: unknown
  /** What broke or refused it. */
  readonly why?: unknown
  /** The eventId that led to it. */
  readonly cause?: RuneCause
  /** ms since the epoch */
  readonly at: number
}

/** Characters of a message, or of its crash, that a rune keeps. */
const TEXT_LIMIT = 2_000

const tagOf = (message: unknown): string =>
  typeof message === "object" && message !== null && "_tag" in message ? String(message._tag) : typeof message

const text = (value: unknown): string => {
  if (typeof value === "string") return value.slice(0, TEXT_LIMIT)
  if (Cause.isCause(value)) return Cause.pretty(value).slice(0, TEXT_LIMIT)
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

export class DeadLetters extends Context.Service<
  DeadLetters,
  {
    /** Synchronous, so that a drain in full swing can use it. */
    readonly post: (letter: Omit<DeadLetter, "at">) => void
    /** The newest, oldest first. */
    readonly recent: Effect.Effect<ReadonlyArray<DeadLetter>>
    /** How many there were, by reason. */
    readonly counts: Effect.Effect<{ readonly [r in Reason]?: number }>
  }
>()("agentd/actors/DeadLetters") {}

const make = Effect.fnUntraced(function* (options: { readonly capacity: number; readonly log?: EventLog["Service"] }) {
  const context = yield* Effect.context<never>()
  const clock = Context.get(context, Clock.Clock)
  const ring: Array<DeadLetter> = []
  const counts: { [r in Reason]?: number } = {}
  let next = 0

  const post = (letter: Omit<DeadLetter, "at">) => {
    const dated = { ...letter, at: clock.currentTimeMillisUnsafe() }
    ring[next] = dated
    next = (next + 1) % options.capacity
    counts[letter.reason] = (counts[letter.reason] ?? 0) + 1
    if (options.log === undefined) return
    const draft = {
      stream: DAEMON_STREAM,
      kind: "actor.dead_letter",
      actor: letter.address,
      trigger: tagOf(letter.message),
      cause: letter.cause ?? null,
      payload: payload(dated)
    }
    // `appendLazy` neither waits nor fails, so nobody needs to observe this fiber.
    Effect.runForkWith(context)(options.log.appendLazy([draft]))
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
