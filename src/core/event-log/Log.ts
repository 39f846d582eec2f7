/**
 * Log: what an actor, or any other that appends, needs of the log, and the part that
 * all logs share.
 *
 * Positions and seqs are given on the thread of the callers, while they step: a
 * macrostep is synchronous, so nothing else takes one meanwhile, and a macrostep that
 * is thrown away takes none. Appends reach the store in the order of their positions,
 * always, so positions are dense and rise with the commits, and a reader by cursor
 * misses nothing.
 *
 * A failed append undoes all appends behind it, of every owner: the positions go back
 * to the last durable one, and what was stepped ahead is stepped again.
 */
import { Context } from "effect"
import type { RuneRefused } from "./EventLog.ts"
import type { Payload, Rune, RuneDraft, Visibility } from "./Rune.ts"

/** An atomic append, from stepping until it is durable. */
export interface Unit {
  readonly owner: Owner
  readonly runes: ReadonlyArray<Rune>
  /** The payloads' JSON, exactly as it is stored. */
  readonly texts: ReadonlyArray<string>
}

/** The owner of units, which waits for their durability. */
export interface Owner {
  /** Count of the owner's units that are not durable yet; kept by the log. */
  ahead: number
  durable(unit: Unit): void
  /** `culprit`: the append that the store did not take; the others stood behind it. */
  failed(unit: Unit, error: unknown, culprit: boolean): void
  /** After the last `failed` of one failure. */
  refold(): void
  /** More is durable: for what has no runes of its own and waited for another owner's. */
  rest(): void
}

/** The folded and stored parts of a draft. */
export interface Prepared {
  readonly payload: Payload
  readonly text: string
  readonly visibility: Visibility
}

export interface Log {
  /** The position given last, durable or not. */
  readonly head: number
  readonly durable: number
  /** The seq given last in the stream, durable or not; 0 for a stream without runes. */
  seqOf(stream: string): number
  /** The draft's kind is known, its payload is shaped, encoded, scrubbed and bounded: what is folded is what is stored. */
  prepare(draft: RuneDraft): Prepared | RuneRefused
  /** Why the unit may not be written: an invariant, a sealed or a halted stream. Nothing was taken. */
  refuses(unit: Unit): RuneRefused | undefined
  /**
   * Takes the unit whole and gives its ids for good. True: it is durable already. A throw means that nothing was
   * taken. A log whose storage has given up takes units that never become durable: the program is about to end.
   */
  append(unit: Unit): boolean
  /** Called between appends: what was given before and nobody waits for comes before the next one. */
  readonly beforeAppend?: (() => void) | undefined
  /** How many runes of one owner may be on their way, where so many others are ready; an owner beyond its share waits. */
  share(ready: number): number
  /** Units on their way; none where everything is durable at once. */
  readonly flight: Flight | undefined
}

/** The log that a program's actors append to. */
export const Log = Context.Service<Log>("agentd/event-log/Log")

/** Runes that one owner alone may have on their way: a group on the disk, and more that gather. */
export const ALONE = 384
/** Runes that all owners together may have on their way: what stands before a newcomer's first rune. */
export const TOGETHER = 32
/** An owner may always have this many on their way. */
export const LEAST_SHARE = 2

export const shareOf = (owners: number): number =>
  owners <= 1 ? ALONE : Math.max(LEAST_SHARE, Math.floor(TOGETHER / owners))

/** From here on the emptied front of the queue is given back. */
const COMPACT_FROM = 1_024

/** Appends on their way, oldest first. */
export class Flight {
  private units: Array<Unit | undefined> = []
  private first = 0
  /** Owners that have something on its way. */
  owners = 0
  /** Owners that wait for a position of another owner's. */
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

  /** After a group has landed. */
  passed(durable: number): void {
    if (this.waiting.length === 0) return
    const all = this.waiting
    this.waiting = all.filter(([eventId]) => eventId > durable)
    for (const [eventId, owner] of all) if (eventId <= durable) owner.rest()
  }

  /** The store did not take the oldest append: it and all behind it are undone. */
  fail(error: unknown, hasCulprit = true): void {
    const hit = new Set<Owner>(this.waiting.map(([, owner]) => owner))
    this.waiting = []
    let isCulprit = hasCulprit
    // only those of now: an owner may append again from `failed`
    for (let left = this.size; left > 0; left--) {
      const unit = this.shift()
      hit.add(unit.owner)
      unit.owner.failed(unit, error, isCulprit)
      isCulprit = false
    }
    for (const owner of hit) owner.refold()
  }
}
