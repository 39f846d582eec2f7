/**
 * StoreWalk: what `verify` looks at in one pass over a whole store: the chains, and the
 * runes that the guard is to see. Pure, and free of imports at run time but the hash: the
 * thread that verifies loads this file.
 */
import { ChainWalk } from "./ChainWalk.ts"
import type { Erased, Problem } from "./EventLog.ts"
import type { StoredRune } from "./StoredRune.ts"

/** A rune that the guard is to see, or that tells of an archive. */
export interface Looked {
  readonly eventId: number
  readonly stream: string
  readonly kind: string
  readonly actor: string
  readonly moves: ReadonlyArray<string>
  readonly to: string | null
  readonly payload: string | null
  /** Without all of its payloads a stream shows no invariant here; its archive does. */
  readonly isErased: boolean
}

/** How the walk ended. */
export interface Walked {
  readonly head: number
  readonly runes: number
  readonly streams: number
  readonly problems: ReadonlyArray<Problem>
  readonly erased: ReadonlyArray<Erased>
  /** The hash of what is left, by the rune whose texts were erased, also where they lie in an archive. */
  readonly erasures: ReadonlyMap<number, string>
}

export class StoreWalk {
  private readonly chain = new ChainWalk()
  private readonly relevant: ReadonlySet<string>
  private readonly erased = new Set<string>()

  /** `relevant`: kinds that are looked at. */
  constructor(relevant: ReadonlyArray<string>) {
    this.relevant = new Set(relevant)
  }

  get head(): number {
    return this.chain.head
  }

  /** Picks the runes that are to be looked at. */
  next(runes: ReadonlyArray<StoredRune>): ReadonlyArray<Looked> {
    const looked: Array<Looked> = []
    for (const rune of runes) {
      this.chain.next(rune)
      const { actor, eventId, kind, moves, payload, stream, to } = rune
      if (payload === null) this.erased.add(stream)
      if (this.relevant.has(kind)) {
        looked.push({ eventId, stream, kind, actor, moves, to, payload, isErased: this.erased.has(stream) })
      }
    }
    return looked
  }

  get end(): Walked {
    const erased = this.chain.end()
    const { erasures, head, problems, runes, streams } = this.chain
    return { head, runes, streams, problems, erased, erasures }
  }
}
