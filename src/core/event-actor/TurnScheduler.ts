/**
 * TurnScheduler: decides which scope gets the next turn. Round robin among scopes that have mail,
 * in slices of time, not of messages. After `PASS` ms the event loop gets its turn. So sockets and
 * timers wait at most that long plus one step, however expensive the steps are.
 */
import type { EventLoopShape } from "./EventLoop.ts"

export interface Turn {
  /** Works until `until` (the loop's `now`), or until nothing is left. Returns true if it wants another turn. */
  turn(until: number): boolean
}

/** ms that one scope works before another gets its turn. */
export const SLICE = 0.5
/** ms that scopes work before the event loop gets its turn. */
export const PASS = 4
/** When this many entries at the front of the queue have been used, they are freed. */
const COMPACT_FROM = 1_024

export class TurnScheduler {
  /** True while a turn is running on this stack: others must queue. */
  isBusy = false
  private readonly loop: EventLoopShape
  private ready: Array<Turn> = []
  private next = 0
  private isPlanned = false
  private readonly run = (): void => this.pass()

  constructor(loop: EventLoopShape) {
    this.loop = loop
  }

  get waiting(): number {
    return this.ready.length - this.next
  }

  schedule(turn: Turn): void {
    this.ready.push(turn)
    if (!this.isBusy) this.plan()
  }

  /**
   * Runs the task as its own turn. Turns that it causes must queue, so that its own answers and
   * tells do not interrupt it.
   */
  alone(task: () => void): void {
    if (this.isBusy) return task()
    this.isBusy = true
    try {
      task()
    } finally {
      this.isBusy = false
      if (this.waiting > 0) this.plan()
    }
  }

  private plan(): void {
    if (this.isPlanned) return
    this.isPlanned = true
    this.loop.soon(this.run)
  }

  private pass(): void {
    this.isPlanned = false
    this.isBusy = true
    try {
      this.turns()
    } finally {
      this.isBusy = false
      if (this.ready.length > 0 && !this.isPlanned) {
        this.isPlanned = true
        this.loop.later(this.run)
      }
    }
  }

  private turns(): void {
    const end = this.loop.now() + PASS
    while (this.next < this.ready.length) {
      const turn = this.ready[this.next++]!
      if (this.next > COMPACT_FROM && this.next * 2 > this.ready.length) {
        this.ready = this.ready.slice(this.next)
        this.next = 0
      }
      const now = this.loop.now()
      if (turn.turn(Math.min(now + SLICE, end))) this.ready.push(turn)
      if (now >= end) break
    }
    if (this.next === this.ready.length) {
      this.ready = []
      this.next = 0
    }
  }
}
