/**
 * HashingLog: the log in memory with the daemon's own kinds, invariants and redaction,
 * which makes the hashes of each rune at once, as the log on the disk does. The newest
 * runes are kept; the peer in Erlang keeps as many.
 */
import { Effect, Layer } from "effect"
import { rules } from "../../src/app/DaemonLog.ts"
import { AdmissionState } from "../../src/event-log/AdmissionState.ts"
import { AdmittingLog } from "../../src/event-log/AdmittingLog.ts"
import { EventDraft } from "../../src/event-log/EventDraft.ts"
import { chain, GENESIS, hashPayload, joinHeader, movesText, quote } from "../../src/event-log/HashChain.ts"
import { Log, type Unit } from "../../src/event-log/Log.ts"
import { Redact } from "../../src/event-log/Redact.ts"
import type { Rune } from "../../src/event-log/Rune.ts"

/** Runes that are kept. */
const KEPT = 16_384

interface Kept {
  readonly rune: Rune
  readonly text: string
  readonly hash: string
}

class HashingLog extends AdmittingLog {
  readonly flight = undefined
  private readonly kept: Array<Kept> = []
  private readonly chains = new Map<string, string>()
  private readonly quoted = new Map<string | null, string>()

  get durable(): number {
    return this.head
  }

  share(): number {
    return Number.MAX_SAFE_INTEGER
  }

  append(unit: Unit): boolean {
    this.admission.take(unit, true)
    for (let index = 0; index < unit.runes.length; index++) {
      const rune = unit.runes[index]!
      const text = unit.texts[index]!
      const hash = chain(this.chains.get(rune.stream) ?? GENESIS, this.header(rune), hashPayload(text))
      this.chains.set(rune.stream, hash)
      this.kept[rune.eventId % KEPT] = { rune, text, hash }
    }
    return true
  }

  /** As the thread of the log on the disk makes it: each name is quoted once. */
  private header({ actor, at, cause, from, kind, moves, seq, stream, to, trigger, visibility }: Rune): string {
    return joinHeader(
      this.quote(stream),
      seq,
      at,
      this.quote(kind),
      this.quote(actor),
      this.quote(from),
      this.quote(to),
      this.quote(trigger),
      cause === null ? "null" : `[${this.quote(cause.stream)},${cause.seq}]`,
      movesText(moves),
      this.quote(visibility)
    )
  }

  private quote(name: string | null): string {
    let text = this.quoted.get(name)
    if (text === undefined) this.quoted.set(name, (text = quote(name)))
    return text
  }
}

export const layer = Layer.effect(
  Log,
  Effect.map(Redact, ({ json }) => {
    const { guard, kinds } = rules
    return new HashingLog(new AdmissionState({ guard, kinds }), new EventDraft(kinds, json))
  })
).pipe(Layer.provide(Redact.layer))
