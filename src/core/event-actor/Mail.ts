/**
 * Mail: a message with its metadata. A tell that has no cause is queued as the message itself, without a `Mail` around
 * it. An `Ask` also contains the function that returns the answer to the asker.
 *
 * Guarantees: an ask ends exactly once. An ask that is deferred ends when it is answered, when its actor stops, or
 * after `PUT_OFF_AT_MOST` ms.
 */
import { Context, Exit } from "effect"
import type { Cause } from "../event-log/Rune.ts"
import { actorStopped } from "./ActorError.ts"

export interface Addressee {
  readonly address: string
  /** The actor's state after the last macrostep, which may not be durable yet. */
  readonly ahead: unknown
  /** When the actor was first started, in ms since the epoch. */
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
  /** True if the macrostep that sent this message was undone. */
  isGone = false
  /** The last eventId of the macrostep that sent this message; it may not be durable yet. */
  behind = 0

  constructor(message: unknown, cause: Cause | null) {
    this.message = message
    this.cause = cause
  }

  /** Returns true if the message no longer needs to be handled. */
  isVoid(_of: Addressee): boolean {
    return this.isGone
  }
}

/** A message sent by a timer. It is void if the actor's newest state, durable or not, no longer has this timer. */
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

/** Maximum time in ms for which a deferred ask waits for its answer. */
export const PUT_OFF_AT_MOST = 60_000

/** The deferred asks that the current fiber is working on; used to detect cycles of asks. */
export const Asking = Context.Reference<ReadonlyArray<Ask>>("agentd/event-actor/Asking", { defaultValue: () => [] })

/** True in a fiber that performs an action: its messages follow from accepted mail, so a full mailbox accepts them. */
export const Performing = Context.Reference<boolean>("agentd/event-actor/Performing", { defaultValue: () => false })

export class Ask<A extends Addressee = Addressee> extends Mail {
  readonly member: A
  /** The deferred asks that the asker was working on when it sent this ask. */
  readonly chain: ReadonlyArray<Ask>
  exit: Exit.Exit<unknown, unknown> | undefined = undefined
  resume: ((exit: Exit.Exit<unknown, unknown>) => void) | undefined = undefined
  /** Token with which a later message can answer the ask; 0: no token has been requested yet. */
  token = 0
  isCounted = true
  /** True when the macrostep that handles the message has been accepted. */
  isStepped = false
  /** Removes the ask from the list of deferred asks. */
  forget: (() => void) | undefined = undefined

  constructor(member: A, message: unknown, cause: Cause | null, chain: ReadonlyArray<Ask>) {
    super(message, cause)
    this.member = member
    this.chain = chain
  }

  override isVoid(_of: Addressee): boolean {
    return this.exit !== undefined
  }

  /** True if this ask must not be deferred: it and a deferred ask of the same actor would wait for each other. */
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

/** Starts the timeouts of deferred asks. */
export interface Alarm {
  /** Calls `task` after `ms` milliseconds. The returned function cancels the call. */
  after(ms: number, task: () => void): () => void
}

export class PutOffAsks {
  private readonly asks = new Map<number, Ask>()
  private readonly alarm: Alarm
  private next: number

  /**
   * `first`: the number before the first token. This number differs for each start of the process, so that a token of
   * an earlier process answers no ask.
   */
  constructor(alarm: Alarm, first: number) {
    this.alarm = alarm
    this.next = first
  }

  /** Assigns a token if the ask has none yet. */
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

  /** Ends a deferred ask. Does nothing if the ask belongs to another actor, or if no such ask is waiting. */
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
