/**
 * Timers: the timers of one actor, in line with its committed state.
 *
 * Guarantees: a timer counts on the monotonic clock from when its state was entered, also
 * over a restart of the scope, so that no change of the wall clock touches it; after a
 * restart of the process, as far as the wall clock can be believed: never longer than the
 * whole. A timer fires once for a deadline; its message is void once the state, as
 * stepped, no longer has that timer. Whoever decides on it reads a time that is not before
 * the deadline, whatever the wall clock says. A timer costs a fiber while it waits, none else.
 */
import type { Timer } from "./EventSourcedActor.ts"
import { Due } from "./Mail.ts"

export interface Time {
  readonly clock: { readonly currentTimeMillisUnsafe: () => number }
  readonly monotonic: () => number
  /** Calls the task after so many ms; the answer cancels it. */
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
  /** None until there is a timer: most actors have none most of the time. */
  private entries: Map<string, Entry> | undefined = undefined
  /** When the actor was started first, ms since the epoch. */
  readonly began: number

  constructor(of: Timed, time: Time) {
    this.of = of
    this.time = time
    this.began = time.clock.currentTimeMillisUnsafe()
  }

  /** Sets these timers, and no others. */
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

  /** The incarnation ends; what has fired, and how long the others have run, is kept for the next. */
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

  /** The moment on the monotonic clock: as a timer that counts from it knows, else by the wall clock. */
  private beganAt(since: number): number {
    for (const entry of this.entries?.values() ?? []) if (entry.since === since) return entry.began
    const { clock, monotonic } = this.time
    return monotonic() - Math.max(0, clock.currentTimeMillisUnsafe() - since)
  }

  private arm(timer: Timer<unknown>, entry: Entry): void {
    if (entry.after === Number.POSITIVE_INFINITY) return
    const wait = entry.began + entry.after - this.time.monotonic()
    if (wait <= 0) return this.fire(timer, entry)
    // Node's timers are early where its loop was busy as they were set: what is not due is waited for again
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
