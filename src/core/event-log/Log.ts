/**
 * Log: the interface of the log for actors and other writers, and the code that all logs share.
 *
 * Positions and seqs are assigned on the callers' thread, during the callers' steps. A macrostep is synchronous, so no
 * other writer gets a position at the same time. A discarded macrostep uses no position. Appends always reach the store
 * in the order of their positions. Positions therefore have no gaps and rise in commit order, and a reader with a
 * cursor misses no rune.
 *
 * If an append fails, all later appends of all owners are undone. The last assigned position is then the last durable
 * one again, and the owners repeat the undone steps.
 */
import { Context } from "effect"
import type { RuneRefused } from "./EventLog.ts"
import type { Payload, Rune, RuneDraft, Visibility } from "./Rune.ts"

/** Runes to append atomically. A unit exists from the step that creates it until it is durable. */
export interface Unit {
  readonly owner: Owner
  readonly runes: ReadonlyArray<Rune>
  /** The payloads' JSON, exactly as it is stored. */
  readonly texts: ReadonlyArray<string>
}

/** Creates units. An owner is notified when its units are durable or have failed. */
export interface Owner {
  /** Number of the owner's units that are not durable yet; the log maintains it. */
  ahead: number
  durable(unit: Unit): void
  /** Called when a unit was undone. `culprit`: true if the store refused this unit, false if an earlier unit failed. */
  failed(unit: Unit, error: unknown, culprit: boolean): void
  /** Called once per failure, after all `failed` calls: the owner must repeat its undone steps. */
  refold(): void
  /**
   * Called when the position that this owner waited for (`Flight.wait`) is durable. Used for steps without runes, which
   * wait for the position of another owner.
   */
  rest(): void
}

/** A draft after all checks: its payload for folds, and the payload's JSON for the store. */
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
   * Checks a draft's kind, shape and size, removes known secrets, and encodes the payload. The returned payload is
   * exactly the stored one.
   */
  prepare(draft: RuneDraft): Prepared | RuneRefused
  /** Reason why the unit may not be written (invariant, sealed or halted stream), else undefined. Appends nothing. */
  refuses(unit: Unit): RuneRefused | undefined
  /**
   * Accepts the whole unit and its positions. Returns true if the unit is already durable. If this method throws,
   * nothing was accepted. After a permanent storage failure it always throws, because the program is about to end.
   */
  append(unit: Unit): boolean
  /** Call this before each step that can append. It appends the lazy runes that were received earlier. */
  readonly beforeAppend?: (() => void) | undefined
  /**
   * Maximum number of runes of one owner that may be waiting to become durable, if `ready` other owners are ready to
   * append. At this limit, the owner waits.
   */
  share(ready: number): number
  /** The units that are not durable yet; undefined if every append is durable at once. */
  readonly flight: Flight | undefined
}

/** The log to which a program's actors append. */
export const Log = Context.Service<Log>("agentd/event-log/Log")

/**
 * Maximum number of runes in flight (not durable yet) if there is a single owner: one group that is being written to
 * disk, and the runes that gather meanwhile.
 */
export const ALONE = 384
/** Number of runes in flight that all owners share. Small, because a new owner's first rune waits behind them. */
export const TOGETHER = 32
/** Minimum number of runes that each owner may have in flight. */
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
  /** Owners that are waiting for a position of another owner to become durable. */
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

  /** Call this when a group has become durable. Notifies the owners that waited for one of its positions. */
  passed(durable: number): void {
    if (this.waiting.length === 0) return
    const all = this.waiting
    this.waiting = all.filter(([eventId]) => eventId > durable)
    for (const [eventId, owner] of all) if (eventId <= durable) owner.rest()
  }

  /** Undoes all appends. The oldest of them was refused by the store, unless `hasCulprit` is false. */
  fail(error: unknown, hasCulprit = true): void {
    const hit = new Set<Owner>(this.waiting.map(([, owner]) => owner))
    this.waiting = []
    let isCulprit = hasCulprit
    // only the units that are queued now, because an owner can append again while it handles `failed`
    for (let left = this.size; left > 0; left--) {
      const unit = this.shift()
      hit.add(unit.owner)
      unit.owner.failed(unit, error, isCulprit)
      isCulprit = false
    }
    for (const owner of hit) owner.refold()
  }
}
