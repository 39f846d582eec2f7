/**
 * TurnScheduler: decides which scope runs next. Scopes that have mail run one after another (round robin). Each runs
 * for a limited time, whatever the number of messages. After `PASS` ms the event loop runs. Therefore sockets and
 * timers wait at most `PASS` ms plus the time of one step.
 */
import type { EventLoopShape } from "./EventLoop.ts"

export interface Turn {
  /**
   * Handles messages until the time `until` (on the clock of the event loop's `now`), or until none is left. Returns
   * true if the scope needs another turn.
   */
  turn(until: number): boolean
}

/** Time slice of a scope, in ms. After it, another scope runs. */
export const SLICE = 0.5
/** Time in ms for which scopes run before the event loop gets a turn. */
export const PASS = 4
/** Minimum number of used entries at the front of the queue that are freed together. */
const COMPACT_FROM = 1_024

export class TurnScheduler {
  /** True while a turn is running on the current call stack. Other turns must be queued. */
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

  /** Runs the task as a separate turn. Turns that the task causes are queued, so that they do not interrupt it. */
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
