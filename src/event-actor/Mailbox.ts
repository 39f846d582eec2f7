/**
 * Mailbox: what an actor has been sent and has not dealt with.
 *
 * Guarantees: at most `capacity` messages, postponed ones included; first in,
 * first out, except that postponed messages come back in front, oldest first;
 * nothing is taken out before it is dealt with, so a crash loses nothing; an
 * empty mailbox holds no array. Stop and failure are no mail: an actor looks at
 * them before each batch, so they never wait behind work.
 */
import { Effect, Exit } from "effect"
import type { Cause } from "../event-log/Rune.ts"

/** A message with what is known of it beside its text. A plain tell lies in the mailbox without one. */
export class Envelope<M> {
  readonly message: M
  /** The eventId that led here. */
  readonly cause: Cause | undefined
  /** Of a state timeout: which one; it is void when another has taken its place. */
  readonly timer: number
  crashes: number

  constructor(message: M, cause: Cause | undefined, timer: number = 0) {
    this.message = message
    this.cause = cause
    this.timer = timer
    this.crashes = 0
  }

  /** Whoever asked no longer waits: there is nothing to do. */
  get isVoid(): boolean {
    return false
  }
}

/** A message whose sender waits for an answer. Settled once, early or late. */
export class Ask<M, A = unknown, E = unknown> extends Envelope<M> {
  private exit: Exit.Exit<A, E> | undefined = undefined
  private resume: ((exit: Exit.Exit<A, E>) => void) | undefined = undefined

  override get isVoid(): boolean {
    return this.exit !== undefined
  }

  settle(exit: Exit.Exit<A, E>): void {
    if (this.exit !== undefined) return
    this.exit = exit
    this.resume?.(exit)
  }

  /** Interrupted before its turn, the ask is not carried out. */
  answer(): Effect.Effect<A, E> {
    if (this.exit !== undefined) return this.exit
    return Effect.callback<A, E>((resume) => {
      this.resume = resume
      return Effect.sync(() => {
        this.resume = undefined
        this.settle(Exit.interrupt())
      })
    })
  }
}

/** What lies in a mailbox: nobody sends an `Envelope`, so they can be told apart. */
export type Item<M> = M | Envelope<M>

/** A teller that waits for room; resumed with false when its message was not taken. */
interface Waiter<M> {
  readonly item: Item<M>
  readonly resume: (taken: boolean) => void
}

/** Settled messages are cut off the front when there are this many, and more than half. */
const COMPACT_AT = 1_024

export class Mailbox<M> {
  private limit: number
  private items: Array<Item<M>> | undefined = undefined
  private head = 0
  private kept: Array<Envelope<M>> | undefined = undefined
  private waiters: Array<Waiter<M>> | undefined = undefined

  constructor(capacity: number) {
    this.limit = capacity
  }

  /** 0 once it is closed. */
  get capacity(): number {
    return this.limit
  }

  /** Messages that can be worked on now. */
  get ready(): number {
    return this.items === undefined ? 0 : this.items.length - this.head
  }

  get postponed(): number {
    return this.kept === undefined ? 0 : this.kept.length
  }

  /** False when there is no room, or others wait for it already. */
  push(item: Item<M>): boolean {
    const items = this.items
    if (items === undefined) {
      if (this.postponed >= this.limit) return false
      this.items = [item]
      return true
    }
    if (items.length - this.head + this.postponed >= this.limit || this.waiters !== undefined) return false
    items.push(item)
    return true
  }

  /** Room or not: for a state's own timeout, of which there is one at most. */
  force(item: Item<M>): void {
    if (this.items === undefined) this.items = [item]
    else this.items.push(item)
  }

  /** What lies `index` places from the front; `index` is below `ready`. */
  peek(index: number): Item<M> {
    return this.items![this.head + index]!
  }

  /** The same, in an envelope that stays with it. */
  at(index: number): Envelope<M> {
    const item = this.items![this.head + index]!
    if (item instanceof Envelope) return item
    const envelope = new Envelope(item, undefined)
    this.items![this.head + index] = envelope
    return envelope
  }

  /** The first `count` have been dealt with; those of them in `postponed` are kept for a retry. */
  settle(count: number, postponed?: ReadonlyArray<Envelope<M>>): void {
    const items = this.items
    if (items === undefined) return // closed while the batch was being committed
    if (postponed !== undefined && postponed.length > 0) {
      if (this.kept === undefined) this.kept = [...postponed]
      else this.kept.push(...postponed)
    }
    this.head += count
    if (this.head === items.length) {
      this.items = undefined
      this.head = 0
    } else if (this.head >= COMPACT_AT && this.head * 2 >= items.length) {
      this.items = items.slice(this.head)
      this.head = 0
    }
    if (this.waiters !== undefined) this.admit()
  }

  /** The postponed ones come back, in front and oldest first. */
  retry(): void {
    if (this.kept === undefined) return
    this.items = this.items === undefined ? this.kept : [...this.kept, ...this.items.slice(this.head)]
    this.head = 0
    this.kept = undefined
  }

  /** Waits for room; true once the message is in, false when it never will be. */
  wait(item: Item<M>): Effect.Effect<boolean> {
    return Effect.callback<boolean>((resume) => {
      const waiter = { item, resume: (taken: boolean) => resume(Effect.succeed(taken)) }
      if (this.waiters === undefined) this.waiters = [waiter]
      else this.waiters.push(waiter)
      return Effect.sync(() => {
        const left = this.waiters?.filter((other) => other !== waiter)
        this.waiters = left === undefined || left.length === 0 ? undefined : left
      })
    })
  }

  /** Takes in everybody who waits for room, beyond capacity: nobody waits on an actor that is down. */
  admitAll(): void {
    this.admit(Number.POSITIVE_INFINITY)
  }

  /** Fails every ask that still waits, all with the same. They keep their place until their turn comes, and are void by then. */
  failAsks(exit: () => Exit.Exit<never, unknown>): void {
    let failed: Exit.Exit<never, unknown> | undefined
    for (const item of this.all()) if (item instanceof Ask && !item.isVoid) item.settle((failed ??= exit()))
  }

  /** Takes nothing more; answers what was left, oldest first. */
  close(): ReadonlyArray<Item<M>> {
    const left = this.all()
    const waiters = this.waiters ?? []
    this.limit = 0
    this.items = undefined
    this.kept = undefined
    this.waiters = undefined
    this.head = 0
    for (const waiter of waiters) waiter.resume(false)
    return left
  }

  private all(): ReadonlyArray<Item<M>> {
    return [...(this.kept ?? []), ...(this.items?.slice(this.head) ?? [])]
  }

  private admit(limit = this.limit): void {
    const waiters = this.waiters ?? []
    const admitted = waiters.slice(0, Math.max(0, limit - this.ready - this.postponed))
    if (admitted.length === 0) return
    this.waiters = admitted.length === waiters.length ? undefined : waiters.slice(admitted.length)
    for (const waiter of admitted) this.force(waiter.item)
    for (const waiter of admitted) waiter.resume(true)
  }
}
