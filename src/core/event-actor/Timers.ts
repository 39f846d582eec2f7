/**
 * Timers: keeps the timers of one actor in line with its committed state.
 *
 * Guarantees: a timer counts on the monotonic clock from when its state was entered, also across a
 * restart of the scope. So changes of the wall clock do not affect it. After a restart of the
 * process, the elapsed time comes from the wall clock, and the timer never waits longer than its
 * full length. A timer fires once for a deadline. Its message is void if the state, including
 * macrosteps not yet durable, no longer has that timer. The handler of its message reads a time
 * that is not before the deadline. A timer costs a fiber while it waits, and none otherwise.
 */
import type { Timer } from "./EventSourcedActor.ts"
import { Due } from "./Mail.ts"

export interface Time {
  readonly clock: { readonly currentTimeMillisUnsafe: () => number }
  readonly monotonic: () => number
  /** Calls the task after `ms` milliseconds. The returned function cancels it. */
  after(ms: number, task: () => void): () => void
}

export interface Timed {
  readonly stream: string
  push(due: Due): void
}

interface Entry {
  readonly since: number
  readonly after: number
  /** `since` on the monotonic clock. */
  readonly began: number
  hasFired: boolean
  cancel: (() => void) | undefined
}

export class Timers {
  private readonly of: Timed
  private readonly time: Time
  /** Undefined until there is a timer: most actors have none most of the time. */
  private entries: Map<string, Entry> | undefined = undefined
  /** When the actor was first started, ms since the epoch. */
  readonly began: number

  constructor(of: Timed, time: Time) {
    this.of = of
    this.time = time
    this.began = time.clock.currentTimeMillisUnsafe()
  }

  /** Sets these timers, and removes all others. */
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

  /** Pauses all timers because the incarnation ends. Fired timers and elapsed times are kept for the next one. */
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

  /** The moment on the monotonic clock: from another timer with the same start, or else from the wall clock. */
  private beganAt(since: number): number {
    for (const entry of this.entries?.values() ?? []) if (entry.since === since) return entry.began
    const { clock, monotonic } = this.time
    return monotonic() - Math.max(0, clock.currentTimeMillisUnsafe() - since)
  }

  private arm(timer: Timer<unknown>, entry: Entry): void {
    if (entry.after === Number.POSITIVE_INFINITY) return
    const wait = entry.began + entry.after - this.time.monotonic()
    if (wait <= 0) return this.fire(timer, entry)
    // Node's timers can fire early if its event loop was busy when they were set; `arm` then waits again.
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
