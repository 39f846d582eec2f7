/**
 * HashingLog: a log in memory that makes the hashes of each rune at once, as the log on
 * the disk does; the newest runes are kept. Its peer in Erlang keeps as many, in ets.
 */
import { hash } from "node:crypto"
import type { Log, Prepared, Unit } from "../../src/event-log/Log.ts"
import type { Rune, RuneDraft } from "../../src/event-log/Rune.ts"

/** Runes that are kept. */
const KEPT = 16_384
const GENESIS = "0".repeat(64)

interface Kept {
  readonly rune: Rune
  readonly text: string
  readonly hash: string
}

export class HashingLog implements Log {
  head = 0
  readonly flight = undefined
  readonly kept: Array<Kept> = []
  private readonly seqs = new Map<string, number>()
  private readonly chains = new Map<string, string>()

  get durable(): number {
    return this.head
  }

  seqOf(stream: string): number {
    return this.seqs.get(stream) ?? 0
  }

  prepare({ payload, visibility = "internal" }: RuneDraft): Prepared {
    return { payload, text: JSON.stringify(payload), visibility }
  }

  refuses(): undefined {
    return undefined
  }

  share(): number {
    return Number.MAX_SAFE_INTEGER
  }

  append({ runes, texts }: Unit): boolean {
    for (let index = 0; index < runes.length; index++) {
      const rune = runes[index]!
      const text = texts[index]!
      const { stream } = rune
      const header = headerText(rune)
      const before = this.chains.get(stream) ?? GENESIS
      const chained = hash("sha256", `${before}\n${header}\n${hash("sha256", text, "hex")}`, "hex")
      this.head = rune.eventId
      this.seqs.set(stream, rune.seq)
      this.chains.set(stream, chained)
      this.kept[rune.eventId % KEPT] = { rune, text, hash: chained }
    }
    return true
  }
}

const quoted = new Map<string, string>()
const quote = (name: string | null): string => {
  if (name === null) return "null"
  let text = quoted.get(name)
  if (text === undefined) quoted.set(name, (text = JSON.stringify(name)))
  return text
}

const headerText = ({ actor, at, cause, from, kind, moves, seq, stream, to, trigger, visibility }: Rune): string => {
  const led = cause === null ? "null" : `[${quote(cause.stream)},${cause.seq}]`
  const named = moves.length === 0 ? "[]" : JSON.stringify(moves)
  return `["rune/2",${quote(stream)},${seq},${at},${quote(kind)},${quote(actor)},${quote(from)},${quote(to)},${quote(trigger)},${led},${named},${quote(visibility)}]`
}
