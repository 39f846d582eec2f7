/**
 * Log: the interface of the log for actors and for all others that append, and the part that all logs share.
 *
 * Positions and seqs are assigned on the thread of the callers, while they step. A macrostep is synchronous, so nothing
 * else takes a position during it, and a macrostep that is discarded takes none. Appends always reach the store in the
 * order of their positions. So positions are dense and rise with the commits, and a reader with a cursor misses
 * nothing.
 *
 * A failed append undoes all appends behind it, of every owner. The positions go back to the last durable one, and the
 * undone steps are stepped again.
 */
import { Context } from "effect"
import type { RuneRefused } from "./EventLog.ts"
import type { Payload, Rune, RuneDraft, Visibility } from "./Rune.ts"

/** An atomic append, from the step that makes it until it is durable. */
export interface Unit {
  readonly owner: Owner
  readonly runes: ReadonlyArray<Rune>
  /** The payloads' JSON, exactly as it is stored. */
  readonly texts: ReadonlyArray<string>
}

/** The owner of units: waits until they are durable. */
export interface Owner {
  /** Number of the owner's units that are not durable yet; the log maintains it. */
  ahead: number
  durable(unit: Unit): void
  /** `culprit`: true for the append that the store refused, false for the appends behind it. */
  failed(unit: Unit, error: unknown, culprit: boolean): void
  /** Called after the last `failed` of one failure. */
  refold(): void
  /**
   * Called when a position of another owner is durable for which this owner waited (`Flight.wait`). For steps without
   * runes of their own.
   */
  rest(): void
}

/** The folded and stored parts of a draft. */
export interface Prepared {
  readonly payload: Payload
  readonly text: string
  readonly visibility: Visibility
}

export interface Log {
  /** The last assigned position, durable or not. */
  readonly head: number
  readonly durable: number
  /** The last assigned seq of the stream, durable or not; 0 for a stream without runes. */
  seqOf(stream: string): number
  /**
   * Checks a draft's kind, shape and size, removes known secrets, and encodes the payload. What is folded is what is
   * stored.
   */
  prepare(draft: RuneDraft): Prepared | RuneRefused
  /**
   * Why the unit may not be written (an invariant, a sealed or a halted stream); undefined if it may. Takes nothing.
   */
  refuses(unit: Unit): RuneRefused | undefined
  /**
   * Takes the whole unit, with its ids. Returns true if the unit is already durable. A throw means that nothing was
   * taken. A log whose storage has given up throws: the program is about to end.
   */
  append(unit: Unit): boolean
  /** To be called before a step that can append: lazy runes that were passed in before are appended first. */
  readonly beforeAppend?: (() => void) | undefined
  /**
   * Maximum number of runes of one owner that are not durable yet, if `ready` others are ready. Beyond it, the owner
   * waits.
   */
  share(ready: number): number
  /** Units that are not durable yet; undefined if every append is durable at once. */
  readonly flight: Flight | undefined
}

/** The log that a program's actors append to. */
export const Log = Context.Service<Log>("agentd/event-log/Log")

/**
 * Maximum number of runes in flight (not durable yet) of an owner that is alone: a group on the disk, and more that
 * gather.
 */
export const ALONE = 384
/** Number of runes in flight that all owners share: the first rune of a new owner waits behind them. */
export const TOGETHER = 32
/** Number of runes in flight that an owner may always have. */
export const LEAST_SHARE = 2

export const shareOf = (owners: number): number =>
  owners <= 1 ? ALONE : Math.max(LEAST_SHARE, Math.floor(TOGETHER / owners))

/** Number of removed entries after which the front of the queue is freed. */
const COMPACT_FROM = 1_024

/** Appends that are not durable yet, oldest first. */
export class Flight {
  private units: Array<Unit | undefined> = []
  private first = 0
  /** Number of owners with appends in flight. */
  owners = 0
  /** Owners that wait until a position of another owner is durable. */
  private waiting: Array<readonly [eventId: number, owner: Owner]> = []

  get size(): number {
    return this.units.length - this.first
  }

  push(unit: Unit): void {
    this.units.push(unit)
    if (unit.owner.ahead++ === 0) this.owners += 1
  }

  peek(count: number): ReadonlyArray<Unit> {
    return this.units.slice(this.first, this.first + count) as ReadonlyArray<Unit>
  }

  shift(): Unit {
    const unit = this.units[this.first]!
    this.units[this.first++] = undefined
    if (this.first === this.units.length) {
      this.units = []
      this.first = 0
    } else if (this.first > COMPACT_FROM && this.first * 2 > this.units.length) {
      this.units = this.units.slice(this.first)
      this.first = 0
    }
    if (--unit.owner.ahead === 0) this.owners -= 1
    return unit
  }

  wait(eventId: number, owner: Owner): void {
    this.waiting.push([eventId, owner])
  }

  /** Call this after a group has become durable. */
  passed(durable: number): void {
    if (this.waiting.length === 0) return
    const all = this.waiting
    this.waiting = all.filter(([eventId]) => eventId > durable)
    for (const [eventId, owner] of all) if (eventId <= durable) owner.rest()
  }

  /**
   * Undoes the oldest append, which the store refused, and all appends behind it. `hasCulprit`: false if no single
   * append is at fault.
   */
  fail(error: unknown, hasCulprit = true): void {
    const hit = new Set<Owner>(this.waiting.map(([, owner]) => owner))
    this.waiting = []
    let isCulprit = hasCulprit
    // only the units that are here now: an owner can append again in `failed`
    for (let left = this.size; left > 0; left--) {
      const unit = this.shift()
      hit.add(unit.owner)
      unit.owner.failed(unit, error, isCulprit)
      isCulprit = false
    }
    for (const owner of hit) owner.refold()
  }
}
