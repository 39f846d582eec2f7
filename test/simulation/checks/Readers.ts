/**
 * Readers: whoever reads the log reads what is on the disk: each rune that was asked for, once,
 * in order, without a gap; who follows hears of each later one, too.
 */
import { isDeepStrictEqual } from "node:util"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import type { Verdicts } from "./Check.ts"
import type { Chronicle } from "./Chronicle.ts"

const PROMISE = "who reads the log reads each rune once and in order"

export interface Selection {
  /** Runes after that one. */
  readonly after?: number
  readonly kinds?: ReadonlyArray<string>
  /** The newest so many. */
  readonly tail?: number
}

/** Somebody who follows the log. */
export class Follower {
  readonly of: Selection
  /** True for a follower that takes its time. */
  readonly isSlow: boolean
  /** The newest rune that came. */
  last: number

  constructor(of: Selection, isSlow: boolean) {
    this.of = of
    this.isSlow = isSlow
    this.last = of.after ?? 0
  }
}

const isSame = (one: Rune, other: Rune): boolean =>
  one.kind === other.kind &&
  one.stream === other.stream &&
  one.actor === other.actor &&
  one.at === other.at &&
  one.to === other.to &&
  isDeepStrictEqual(one.payload, other.payload)

export class Readers {
  private readonly verdicts: Verdicts
  private readonly log: Chronicle
  private readonly followers = new Set<Follower>()

  constructor(verdicts: Verdicts, log: Chronicle) {
    this.verdicts = verdicts
    this.log = log
  }

  /** Checks an answer; `head`: the newest durable rune as it was asked. */
  read({ after = 0, kinds, tail }: Selection, head: number, runes: ReadonlyArray<Rune>): void {
    const last = runes.at(-1)?.eventId ?? 0
    const wanted = this.log.runes.filter(
      ({ eventId, kind }) => eventId > after && eventId <= Math.max(head, last) && (kinds?.includes(kind) ?? true)
    )
    const expected = tail === undefined ? wanted : wanted.slice(-tail)
    // the newest runes may have come as they were read
    const isWhole = expected.length === runes.length && expected.every((rune, index) => isSame(rune, runes[index]!))
    if (!isWhole) this.verdicts.broken(PROMISE, `${JSON.stringify({ after, kinds, tail })}: ${told(expected, runes)}`)
  }

  follow(of: Selection, isSlow: boolean): Follower {
    const follower = new Follower(of, isSlow)
    this.followers.add(follower)
    return follower
  }

  /** Forgets a follower that was refused, or whose daemon goes. */
  leaves(follower: Follower): void {
    this.followers.delete(follower)
  }

  /** The daemon is gone. */
  allLeave(): void {
    this.followers.clear()
  }

  came(follower: Follower, rune: Rune): void {
    const expected = this.next(follower)
    if (expected === undefined || expected.eventId !== rune.eventId || !isSame(expected, rune))
      this.verdicts.broken(PROMISE, `a follower has ${follower.last}: ${rune.eventId} comes, not ${expected?.eventId}`)
    follower.last = rune.eventId
  }

  /** Nothing moves: everybody has heard of everything. */
  isQuiet(): void {
    for (const follower of this.followers) {
      if (follower.isSlow) continue
      const next = this.next(follower)
      if (next !== undefined) this.verdicts.broken(PROMISE, `a follower has not heard of rune ${next.eventId}`)
    }
  }

  private next({ last, of: { kinds } }: Follower): Rune | undefined {
    for (let eventId = last + 1; eventId <= this.log.head; eventId++) {
      const rune = this.log.at(eventId)!
      if (kinds?.includes(rune.kind) ?? true) return rune
    }
    return undefined
  }
}

const told = (expected: ReadonlyArray<Rune>, runes: ReadonlyArray<Rune>): string => {
  const at = expected.findIndex((rune, index) => runes[index] === undefined || !isSame(rune, runes[index]))
  return at === -1
    ? `${runes.length} runes for ${expected.length}`
    : `rune ${expected[at]!.eventId} is ${runes[at] === undefined ? "missing" : JSON.stringify(runes[at]).slice(0, 100)}`
}
