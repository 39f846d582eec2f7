/**
 * Mail: a message with its metadata. A plain tell without a cause is put into the mailbox without a
 * Mail. An `Ask` also has the asker, and ends once.
 *
 * Guarantees: an ask ends exactly once. An ask that is put off ends when it is settled, when its
 * actor stops, or after `PUT_OFF_AT_MOST` ms.
 */
import { Context, Exit } from "effect"
import type { Cause } from "../event-log/Rune.ts"
import { actorStopped } from "./ActorError.ts"

export interface Addressee {
  readonly address: string
  /** The state after the last macrostep; can be ahead of the log. */
  readonly ahead: unknown
  /** When the actor was first started, ms since the epoch. */
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
  /** True if the macrostep that sent it was undone. */
  isGone = false
  /** The last eventId of the macrostep that sent it, which may not be durable yet. */
  behind = 0

  constructor(message: unknown, cause: Cause | null) {
    this.message = message
    this.cause = cause
  }

  /** True if the message need not be handled any more. */
  isVoid(_of: Addressee): boolean {
    return this.isGone
  }
}

/** A timer's message. Void if the state, including macrosteps not yet durable, no longer has that timer. */
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

/** Maximum time in ms that an ask waits after it was put off. */
export const PUT_OFF_AT_MOST = 60_000

/** The asks that a fiber works for, if they were put off. Used to detect cycles. */
export const Asking = Context.Reference<ReadonlyArray<Ask>>("agentd/event-actor/Asking", { defaultValue: () => [] })

/** True if a fiber performs an action: its messages follow from accepted mail, and are always accepted. */
export const Performing = Context.Reference<boolean>("agentd/event-actor/Performing", { defaultValue: () => false })

export class Ask<A extends Addressee = Addressee> extends Mail {
  readonly member: A
  /** The asks that the asker works for, if they were put off. */
  readonly chain: ReadonlyArray<Ask>
  exit: Exit.Exit<unknown, unknown> | undefined = undefined
  resume: ((exit: Exit.Exit<unknown, unknown>) => void) | undefined = undefined
  /** A later message settles the ask by this token; 0 until the actor has read it. */
  token = 0
  isCounted = true
  /** True once the macrostep of the message is accepted. */
  isStepped = false
  /** Removes the ask from the list of asks that were put off. */
  forget: (() => void) | undefined = undefined

  constructor(member: A, message: unknown, cause: Cause | null, chain: ReadonlyArray<Ask>) {
    super(message, cause)
    this.member = member
    this.chain = chain
  }

  override isVoid(_of: Addressee): boolean {
    return this.exit !== undefined
  }

  /** True if putting the ask off would make it wait for an ask that waits for it. */
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

/** The timer for asks that are put off. */
export interface Alarm {
  /** Calls the task after `ms` milliseconds. The returned function cancels it. */
  after(ms: number, task: () => void): () => void
}

/** Asks that a later message answers, by token. */
export class PutOffAsks {
  private readonly asks = new Map<number, Ask>()
  private readonly alarm: Alarm
  private next: number

  /** `first` differs between runs of the process, so that a token of an earlier run settles nothing. */
  constructor(alarm: Alarm, first: number) {
    this.alarm = alarm
    this.next = first
  }

  /** The ask's token; assigned on first use. */
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

  /** Does nothing if the token belongs to another actor, or if no ask with it is waiting. */
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
