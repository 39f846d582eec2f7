/**
 * Mail: a message with what is known of it beside its text. A plain tell lies in the
 * mailbox bare; an `Ask` carries the asker, and ends once.
 *
 * Guarantees: an ask ends once, early or late; one that is put off ends when it is
 * settled, when its actor stops, or after `PUT_OFF_AT_MOST` ms.
 */
import { Context, Exit } from "effect"
import type { Cause } from "../event-log/Rune.ts"
import { actorStopped } from "./ActorError.ts"

export interface Addressee {
  readonly address: string
  /** As stepped. */
  readonly ahead: unknown
  /** When it was started first, ms since the epoch. */
  readonly began: number
  readonly definition: {
    readonly timers?: (
      state: never,
      began: number
    ) => ReadonlyArray<{ readonly key: string; readonly since: number; readonly after: number }>
  }
}

export class Mail {
  readonly message: unknown
  readonly cause: Cause | null
  crashes = 0
  /** Taken back: the macrostep that sent it never came to be. */
  isGone = false
  /** Sent by a macrostep that may not be durable: the id of its last rune. */
  behind = 0

  constructor(message: unknown, cause: Cause | null) {
    this.message = message
    this.cause = cause
  }

  /** True where nothing is to be done any more. */
  isVoid(_of: Addressee): boolean {
    return this.isGone
  }
}

/** A timer's message: void once the state, as stepped, no longer has that timer. */
export class Due extends Mail {
  readonly key: string
  readonly since: number
  readonly after: number

  constructor(message: unknown, cause: Cause | null, key: string, since: number, after: number) {
    super(message, cause)
    this.key = key
    this.since = since
    this.after = after
  }

  override isVoid({ ahead, began, definition }: Addressee): boolean {
    const timers = definition.timers?.(ahead as never, began) ?? []
    return !timers.some(({ after, key, since }) => key === this.key && since === this.since && after === this.after)
  }
}

/** ms that an ask which was put off waits at most. */
export const PUT_OFF_AT_MOST = 60_000

/** The asks that a fiber works for, as far as they were put off: how a cycle is seen. */
export const Asking = Context.Reference<ReadonlyArray<Ask>>("agentd/event-actor/Asking", { defaultValue: () => [] })

/** Whether a fiber performs an action: what it sends follows from mail that was taken, and is always taken. */
export const Performing = Context.Reference<boolean>("agentd/event-actor/Performing", { defaultValue: () => false })

export class Ask<A extends Addressee = Addressee> extends Mail {
  readonly member: A
  /** Asks that the asker works for, as far as they were put off. */
  readonly chain: ReadonlyArray<Ask>
  exit: Exit.Exit<unknown, unknown> | undefined = undefined
  resume: ((exit: Exit.Exit<unknown, unknown>) => void) | undefined = undefined
  /** By which a later message settles it; 0 until the actor has looked at it. */
  token = 0
  isCounted = true
  /** True once the message's macrostep stands. */
  isStepped = false
  /** Takes it off the list of those that were put off. */
  forget: (() => void) | undefined = undefined

  constructor(member: A, message: unknown, cause: Cause | null, chain: ReadonlyArray<Ask>) {
    super(message, cause)
    this.member = member
    this.chain = chain
  }

  override isVoid(_of: Addressee): boolean {
    return this.exit !== undefined
  }

  /** Put off, it would wait for an ask that waits for it. */
  get isCycle(): boolean {
    return this.chain.some((ask) => ask.exit === undefined && ask.member === this.member)
  }

  succeed(value: unknown): void {
    this.end(Exit.succeed(value))
  }

  fail(error: unknown): void {
    this.end(Exit.fail(error))
  }

  end(exit: Exit.Exit<unknown, unknown>): void {
    if (this.exit !== undefined) return
    this.exit = exit
    this.forget?.()
    this.resume?.(exit)
  }
}

/** The timer that asks need which are put off. */
export interface Alarm {
  /** Calls the task after so many ms; the answer cancels it. */
  after(ms: number, task: () => void): () => void
}

/** Asks whose answer comes with a later message, by token. */
export class PutOffAsks {
  private readonly asks = new Map<number, Ask>()
  private readonly alarm: Alarm
  private next: number

  /** `first` differs from life to life of the process, so that a token of an earlier life settles nothing. */
  constructor(alarm: Alarm, first: number) {
    this.alarm = alarm
    this.next = first
  }

  /** The ask's token, given when it is asked for. */
  tokenOf(ask: Ask): number {
    if (ask.token === 0) ask.token = ++this.next
    return ask.token
  }

  add(ask: Ask): void {
    if (ask.exit !== undefined || ask.forget !== undefined) return
    const token = this.tokenOf(ask)
    const cancel = this.alarm.after(PUT_OFF_AT_MOST, () => ask.fail(actorStopped(ask.member.address, "unanswered")))
    this.asks.set(token, ask)
    ask.forget = () => {
      cancel()
      this.asks.delete(token)
    }
  }

  /** Of another actor, or of none that waits: nothing happens. */
  settle(member: Addressee, token: number, value: unknown): void {
    const ask = this.asks.get(token)
    if (ask?.member === member) ask.succeed(value)
  }

  stopped(members: ReadonlyArray<Addressee>): void {
    if (this.asks.size === 0) return
    for (const ask of this.asks.values()) {
      if (members.includes(ask.member)) ask.fail(actorStopped(ask.member.address, "stopped"))
    }
  }
}
