/**
 * Snapshots: what a snapshot holds is what its fold makes of the stream's runes up to the one
 * that it names, no more and no less.
 */
import { isDeepStrictEqual } from "node:util"
import { folds } from "../../../src/app/FeatureFolds.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import type { SnapshotOrder } from "../../../src/core/event-log/Snapshot.ts"
import { applyTo, plainOf, type Recovered, type StreamFold } from "../../../src/core/event-log/StreamFold.ts"
import type { Check, Verdicts } from "./Check.ts"

export class Snapshots implements Check {
  private readonly verdicts: Verdicts
  private readonly runes = new Map<string, Array<Rune>>()
  /** Folded states, by stream and fold. */
  private readonly folded = new Map<string, Recovered<unknown>>()

  constructor(verdicts: Verdicts) {
    this.verdicts = verdicts
  }

  rune(rune: Rune): void {
    const runes = this.runes.get(rune.stream)
    if (runes === undefined) this.runes.set(rune.stream, [rune])
    else runes.push(rune)
  }

  kept({ eventId, name, state, stream, version }: SnapshotOrder): void {
    const fold = folds.find((one) => one.name === name && (one.of?.(stream) ?? true))
    // the log's own folds have tests of their own
    if (fold === undefined || fold.version !== version) return
    this.verdicts.sometimes(`a snapshot of the ${name}`)
    const plain = plainOf(fold, this.stateAt(fold, stream, eventId))
    if (
      !isDeepStrictEqual(sorted(JSON.parse(Buffer.from(state).toString())), sorted(JSON.parse(JSON.stringify(plain))))
    )
      this.verdicts.broken("a snapshot is what its runes make", `the ${name} of ${stream} at rune ${eventId}`)
  }

  private stateAt(fold: StreamFold<unknown>, stream: string, eventId: number): unknown {
    const key = `${stream} ${fold.name}`
    const known = this.folded.get(key)
    const begin = known !== undefined && known.eventId <= eventId ? known : { state: fold.initial, eventId: 0, read: 0 }
    let { read, state } = begin
    const runes = this.runes.get(stream) ?? []
    for (let next = runes[read]; next !== undefined && next.eventId <= eventId; next = runes[++read])
      state = applyTo(fold, state, next)
    this.folded.set(key, { state, eventId, read })
    return state
  }
}

/** A hash map has no order. */
const sorted = (json: unknown): unknown => {
  if (Array.isArray(json)) return json.map(sorted)
  if (json === null || typeof json !== "object") return json
  const all = Object.fromEntries(Object.entries(json).map(([key, value]) => [key, sorted(value)]))
  const { $: kind, of } = all as { readonly $?: unknown; readonly of?: ReadonlyArray<unknown> }
  if (kind !== "HashMap" && kind !== "HashSet") return all
  return { ...all, of: of!.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)) }
}
