/**
 * Timers: starts and cancels the timers of one actor, as its committed state requires.
 *
 * Guarantees: a timer uses the monotonic clock, even across a restart of the scope, so changes of the wall clock do not
 * affect it. The duration counts from the time at which the state was entered. After a restart of the process, the
 * elapsed time is computed from the wall clock, and the timer never waits longer than its full duration. A timer fires
 * once for each deadline. Its message is void if the actor's newest state, which may not be durable yet, no longer has
 * the timer. The handler of the message reads a time that is not before the deadline. A timer uses a fiber only while
 * it waits.
 */
import type { Timer } from "./EventSourcedActor.ts"
import { Due } from "./Mail.ts"

export interface Time {
  readonly clock: { readonly currentTimeMillisUnsafe: () => number }
  readonly monotonic: () => number
  /** Calls the task when the time is over. The returned function cancels the timer. */
  after(ms: number, task: () => void): () => void
}

export interface Timed {
  readonly stream: string
  push(due: Due): void
}

interface Entry {
  readonly since: number
  readonly after: number
  /** Start of the timer (`since`) on the monotonic clock, in ms. */
  readonly began: number
  hasFired: boolean
  cancel: (() => void) | undefined
}

export class Timers {
  private readonly of: Timed
  private readonly time: Time
  /** The actor's timers by key; undefined while there are none, because most actors have no timer most of the time. */
  private entries: Map<string, Entry> | undefined = undefined
  /** When the actor was first started, in ms since the epoch. */
  readonly began: number

  constructor(of: Timed, time: Time) {
    this.of = of
    this.time = time
    this.began = time.clock.currentTimeMillisUnsafe()
  }

  /** Starts the given timers if they are not running, and cancels all others. */
  set(timers: ReadonlyArray<Timer<unknown>>): void {
    if (timers.length === 0 && this.entries === undefined) return
    const before = [...(this.entries ??= new Map<string, Entry>())]
    for (const timer of timers) this.hold(this.entries, timer)
    for (const [key, entry] of before) {
      if (timers.some((timer) => timer.key === key)) continue
      entry.cancel?.()
      this.entries.delete(key)
    }
    if (this.entries.size === 0) this.entries = undefined
  }

  /**
   * Pauses all timers because the incarnation ends. The next incarnation continues them with the elapsed time; timers
   * that have fired do not fire again.
   */
  leave(): void {
    for (const entry of this.entries?.values() ?? []) {
      entry.cancel?.()
      entry.cancel = undefined
    }
  }

  private hold(entries: Map<string, Entry>, timer: Timer<unknown>): void {
    const { after, key, since } = timer
    const known = entries.get(key)
    if (known !== undefined && known.since === since && known.after === after) {
      if (known.cancel === undefined && !known.hasFired) this.arm(timer, known)
      return
    }
    known?.cancel?.()
    const entry: Entry = { since, after, began: this.beganAt(since), hasFired: false, cancel: undefined }
    entries.set(key, entry)
    this.arm(timer, entry)
  }

  /** Converts a start time to the monotonic clock, by another timer with the same start or else by the wall clock. */
  private beganAt(since: number): number {
    for (const entry of this.entries?.values() ?? []) if (entry.since === since) return entry.began
    const { clock, monotonic } = this.time
    return monotonic() - Math.max(0, clock.currentTimeMillisUnsafe() - since)
  }

  private arm(timer: Timer<unknown>, entry: Entry): void {
    if (entry.after === Number.POSITIVE_INFINITY) return
    const wait = entry.began + entry.after - this.time.monotonic()
    if (wait <= 0) return this.fire(timer, entry)
    // Node's timers can fire early if the event loop was busy when they were set; `arm` then waits again
    entry.cancel = this.time.after(Math.ceil(wait), () => this.arm(timer, entry))
  }

  private fire({ after, key, message, seq, since }: Timer<unknown>, entry: Entry): void {
    entry.cancel = undefined
    entry.hasFired = true
    const { of } = this
    const cause = seq === undefined || seq === 0 ? null : { stream: of.stream, seq }
    of.push(new Due(message, cause, key, since, after))
  }
}
