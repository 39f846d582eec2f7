/**
 * ChainWalk: checks runes in order, in one pass, and reports each damaged rune. Positions and seqs must have no gap,
 * and each hash must match the rune's content and the previous hash. Pure. At run time this module imports only
 * `HashChain`, because the log's threads load it.
 */
import { GENESIS, hashPayload, hashRune } from "./HashChain.ts"
import type { Erased, Problem } from "./EventLog.ts"
import type { StoredRune } from "./StoredRune.ts"

/** Maximum number of reported problems. With more, the whole store is damaged, and further reports are of no use. */
const MAX_PROBLEMS = 1_000

/** The last rune of a stream that the walk has read. */
export interface Link {
  readonly eventId: number
  readonly seq: number
  readonly hash: string
}

const ERASING = "rune.erasing"

const START: Link = { eventId: 0, seq: 0, hash: GENESIS }

export const PAYLOAD = "its payload is not the one that was appended"

type Break = Pick<Problem, "rule" | "message">

const NONE: ReadonlyArray<Break> = []

/** Problems in a rune's link to the previous rune of its stream; empty if there are none. Ignores the payload. */
export const breaksOf = (rune: StoredRune, last: Link = START): ReadonlyArray<Break> => {
  const number: ReadonlyArray<Break> =
    rune.seq === last.seq + 1
      ? NONE
      : [
          {
            rule: "INV-EVENTID-MONOTONIC",
            message: `it is #${rune.seq} of its stream, and comes after #${last.seq}`
          }
        ]
  const message = unchained(rune, last)
  return message === undefined ? number : [...number, { rule: "INV-HASH-VALID", message }]
}

const unchained = (rune: StoredRune, last: Link): string | undefined => {
  if (hashRune(last.hash, rune, rune.payloadHash) !== rune.hash) {
    return "its hash does not follow from its header and the rune before it"
  }
  if (rune.prev !== last.eventId) {
    return `it names rune ${rune.prev} as the one before it, which is ${last.eventId}`
  }
  if (rune.format !== 1 && rune.causeId !== null) {
    return "its cause was changed: only runes of format 1 have one by its position"
  }
  return undefined
}

export class ChainWalk {
  private readonly links = new Map<string, Link>()
  /** Returns the previous rune of a rune's stream, for a walk that did not read it; undefined if there is none. */
  private readonly before: (rune: StoredRune) => Link | undefined
  readonly problems: Array<Problem> = []
  private readonly changed = new Map<number, { readonly stream: string; readonly hash: string }>()
  /** Hash of the payload that remained after an erasure, by the eventId of the erased rune. */
  readonly erasures = new Map<number, string>()
  runes = 0
  head: number

  constructor(options: { readonly after?: number; readonly before?: (rune: StoredRune) => Link | undefined } = {}) {
    this.head = options.after ?? 0
    this.before = options.before ?? (() => undefined)
  }

  /** Begins after deleted runes. `last`: newest deleted eventId. `links`: newest deleted rune of each stream. */
  begin(last: number, links: ReadonlyArray<Link & { readonly stream: string }>): void {
    for (const { eventId, hash, seq, stream } of links) this.links.set(stream, { eventId, seq, hash })
    this.head = last
  }

  get streams(): number {
    return this.links.size
  }

  next(rune: StoredRune): void {
    if (rune.eventId !== this.head + 1) {
      const missing = rune.eventId - this.head - 1
      this.report(rune, "INV-EVENTID-MONOTONIC", `${missing} runes are missing before it (after ${this.head})`)
    }
    const last = this.links.get(rune.stream) ?? this.before(rune)
    for (const { message, rule } of breaksOf(rune, last)) this.report(rune, rule, message)
    if (rune.payload !== null) this.payload(rune, rune.payload)
    this.links.set(rune.stream, { eventId: rune.eventId, seq: rune.seq, hash: rune.hash })
    this.head = rune.eventId
    this.runes += 1
  }

  /** Checks a payload. If it has changed since it was appended, a later rune can record the reason: an erasure. */
  private payload(rune: StoredRune, payload: string): void {
    const hash = hashPayload(payload)
    const isChanged = hash !== rune.payloadHash
    if (isChanged) this.changed.set(rune.eventId, { stream: rune.stream, hash })
    if (rune.kind !== ERASING || isChanged) return
    const { eventId, left } = JSON.parse(payload) as { readonly eventId: number; readonly left: string }
    this.erasures.set(eventId, left)
  }

  /** Call this after the last rune. Returns the erased payloads. Reports each other changed payload as a problem. */
  end(): ReadonlyArray<Erased> {
    const erased: Array<Erased> = []
    for (const [eventId, { hash, stream }] of this.changed) {
      if (this.erasures.get(eventId) === hash) erased.push({ eventId, stream })
      else this.report({ eventId, stream }, "INV-HASH-VALID", PAYLOAD)
    }
    return erased
  }

  report(rune: { readonly eventId: number; readonly stream: string }, rule: string, message: string): void {
    if (this.problems.length < MAX_PROBLEMS) {
      this.problems.push({ eventId: rune.eventId, stream: rune.stream, rule, message })
    }
  }
}
