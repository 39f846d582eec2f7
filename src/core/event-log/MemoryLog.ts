/**
 * MemoryLog: the log in memory. Appends count as durable at once, but are lost when the process ends. Positions, seqs,
 * guard and refusals work as in the real log. Hashes are computed when runes are read.
 */
import { AdmittingLog } from "./AdmittingLog.ts"
import { chain, GENESIS, hashPayload, headerText } from "./HashChain.ts"
import type { Unit } from "./Log.ts"
import type { Rune } from "./Rune.ts"
import type { StoredRune } from "./StoredRune.ts"

interface Kept {
  readonly rune: Rune
  readonly text: string
}

export class MemoryLog extends AdmittingLog {
  readonly flight = undefined
  private readonly kept: Array<Kept> = []
  /** The oldest runes, with their hashes. The hashes of later runes have not been computed yet. */
  private readonly sealed: Array<StoredRune> = []
  private readonly newest = new Map<string, StoredRune>()
  appends = 0
  /** For tests. If this function returns an error for an append, the append fails with that error. */
  breaks: ((unit: Unit) => unknown) | undefined = undefined

  get durable(): number {
    return this.head
  }

  share(): number {
    return Number.MAX_SAFE_INTEGER
  }

  append(unit: Unit): boolean {
    const error = this.breaks?.(unit)
    if (error !== undefined) throw error
    this.admission.take(unit, true)
    this.appends += 1
    for (const [index, rune] of unit.runes.entries()) this.kept.push({ rune, text: unit.texts[index]! })
    this.tell([unit])
    return true
  }

  get runes(): ReadonlyArray<Rune> {
    return this.kept.map(({ rune }) => rune)
  }

  /** All runes in the form in which a store on disk has them. A rune's array index is its position minus one. */
  stored(): ReadonlyArray<StoredRune> {
    for (let index = this.sealed.length; index < this.kept.length; index++) {
      const { rune, text } = this.kept[index]!
      const { payload: _, ...header } = rune
      const payloadHash = hashPayload(text)
      const before = this.newest.get(rune.stream)
      const of = { ...header, causeId: null, prev: before?.eventId ?? 0 }
      const hash = chain(before?.hash ?? GENESIS, headerText(of), payloadHash)
      const stored = { ...of, payload: text, payloadHash, hash }
      this.newest.set(rune.stream, stored)
      this.sealed.push(stored)
    }
    return this.sealed
  }
}
