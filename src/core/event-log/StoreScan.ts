/**
 * StoreScan: one pass of `verify` over a whole store. It checks the hash chains, and collects the runes that the guard
 * must check. Pure. At run time this module uses no npm packages, because the verifying thread loads it.
 */
import { ChainWalk } from "./ChainWalk.ts"
import type { Erased, Problem } from "./EventLog.ts"
import { fromRow } from "./RuneRow.ts"
import type { Head, SegmentHead } from "./SegmentFile.ts"
import type { Segments } from "./Segments.ts"
import type { StoredRune } from "./StoredRune.ts"
import type { Tables } from "./TableCheck.ts"

/** Kinds of runes that determine what the store records about a stream whose runes are moved to segments. */
export interface Marks {
  /** Kinds of runes after which a stream accepts no more runes. */
  readonly seals: ReadonlyArray<string>
  readonly guarded: ReadonlyArray<string>
}

/** A rune that the guard must check, or that records an archive or a segment. */
export interface Looked {
  readonly eventId: number
  readonly stream: string
  readonly kind: string
  readonly actor: string
  readonly moves: ReadonlyArray<string>
  readonly to: string | null
  readonly payload: string | null
  /** True if this rune or an earlier one of its stream has no payload, so that invariants cannot be checked. */
  readonly isErased: boolean
}

export interface Walked {
  readonly head: number
  readonly runes: number
  readonly streams: number
  readonly problems: ReadonlyArray<Problem>
  readonly erased: ReadonlyArray<Erased>
  /** The first rune that has no payload, by stream. */
  readonly bare: ReadonlyMap<string, number>
  /** Result of the check of the tables. Set only for a store in a file. */
  readonly tables?: Tables
}

export class StoreScan {
  private readonly chain = new ChainWalk()
  private readonly relevant: ReadonlySet<string>
  private readonly bare = new Map<string, number>()
  private readonly seals: ReadonlySet<string>
  private readonly guarded: ReadonlySet<string>
  private hasLeft = 0
  /** The newest rune in the segments, by stream. */
  private readonly heads = new Map<string, Head>()
  /** False if a segment could not be read, or if a segment file differs from the store's list. */
  private isComplete = true

  /** `relevant`: the kinds of runes to collect. */
  constructor(relevant: ReadonlyArray<string>, { guarded, seals }: Marks = { seals: [], guarded: [] }) {
    this.relevant = new Set(relevant)
    this.seals = new Set(seals)
    this.guarded = new Set(guarded)
  }

  get head(): number {
    return this.chain.head
  }

  /** Compares the segment files with the store's list of segments. */
  files(segments: Segments): void {
    this.hasLeft = segments.last
    this.chain.head = segments.deleted
    for (const { content, first, last, sha256 } of segments.open) {
      try {
        if (first < 1 || last < first) this.broken(first, "a segment is listed that cannot be")
        else if (content.sha256 !== sha256) this.broken(first, `its segment ${content.path} is not as it was made`)
        else if (content.footer.last !== last) this.broken(first, `its segment ${content.path} ends elsewhere`)
        else if (last <= segments.deleted) this.begin(content.footer.heads, last)
      } catch (error) {
        this.broken(first, `its segment cannot be read: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
  }

  /** The next runes from segments; undefined after the last segment. An unreadable file is reported and skipped. */
  page(segments: Segments): ReadonlyArray<StoredRune> | undefined {
    while (this.head < segments.last) {
      const first = this.head + 1
      try {
        const rows = segments.after(this.head)
        if (rows.length > 0) return rows.map(fromRow)
        this.chain.head = segments.last
      } catch (error) {
        this.broken(first, `its segment cannot be read: ${error instanceof Error ? error.message : String(error)}`)
        this.chain.head = segments.end(first)
      }
    }
    return undefined
  }

  private begin(heads: ReadonlyArray<SegmentHead>, last: number): void {
    this.chain.begin(last, heads)
    for (const { stream, ...left } of heads) this.heads.set(stream, left)
  }

  private broken(eventId: number, message: string): void {
    this.isComplete = false
    this.chain.report({ eventId, stream: "" }, "INV-HASH-VALID", message)
  }

  next(runes: ReadonlyArray<StoredRune>): ReadonlyArray<Looked> {
    const looked: Array<Looked> = []
    for (const rune of runes) {
      this.chain.next(rune)
      const { actor, eventId, kind, moves, payload, stream, to } = rune
      if (payload === null && !this.bare.has(stream)) this.bare.set(stream, eventId)
      if (eventId <= this.hasLeft) this.leave(rune)
      if (this.relevant.has(kind)) {
        looked.push({ eventId, stream, kind, actor, moves, to, payload, isErased: this.bare.has(stream) })
      }
    }
    return looked
  }

  /**
   * The newest runes in the segments, by stream. `segments`: the last position in the segments that the store lists
   * now. Undefined if the segments have changed since the walk began, or if not all were read.
   */
  left(segments: number): ReadonlyMap<string, Head> | undefined {
    return this.isComplete && segments === this.hasLeft ? this.heads : undefined
  }

  private leave({ eventId, hash, kind, seq, stream }: StoredRune): void {
    const guarded = this.guarded.has(kind) ? eventId : (this.heads.get(stream)?.guarded ?? 0)
    this.heads.set(stream, { eventId, seq, hash, isSealed: this.seals.has(kind), guarded })
  }

  get end(): Walked {
    const erased = this.chain.end()
    const { head, problems, runes, streams } = this.chain
    return { head, runes, streams, problems, erased, bare: this.bare }
  }
}
