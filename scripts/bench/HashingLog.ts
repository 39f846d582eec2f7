/**
 * HashingLog: the log in memory with the daemon's own kinds, invariants and redaction,
 * which makes the hashes of each rune at once, as the log on the disk does. The newest
 * runes are kept; the peer in Erlang keeps as many.
 */
import { Effect, Layer } from "effect"
import { rules } from "../../src/app/DaemonLog.ts"
import { AdmissionState } from "../../src/core/event-log/AdmissionState.ts"
import { AdmittingLog } from "../../src/core/event-log/AdmittingLog.ts"
import { EventDraft } from "../../src/core/event-log/EventDraft.ts"
import { chain, GENESIS, hashPayload, movesText, quote } from "../../src/core/event-log/HashChain.ts"
import { Log, type Unit } from "../../src/core/event-log/Log.ts"
import { Redact } from "../../src/core/event-log/Redact.ts"
import type { Rune } from "../../src/core/event-log/Rune.ts"

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
  /** The rune whose names these are. */
  private named: Rune | undefined = undefined
  private stream = ""
  private before = ""
  private names = ""
  private after = ""

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

  /** Names repeat: the text around them is made once, and in the peer it is a constant. */
  private header(rune: Rune): string {
    const { at, cause, seq, stream } = rune
    if (this.named === undefined || !haveOneName(rune, this.named)) this.name(rune)
    const led =
      cause === null ? "null" : `[${cause.stream === stream ? this.stream : quote(cause.stream)},${cause.seq}]`
    return `${this.before}${seq},${at}${this.names}${led}${this.after}`
  }

  private name(rune: Rune): void {
    const { actor, from, kind, moves, stream, to, trigger, visibility } = rune
    this.named = rune
    this.stream = quote(stream)
    this.before = `["rune/2",${this.stream},`
    this.names = `,${[kind, actor, from, to, trigger].map(quote).join(",")},`
    this.after = `,${movesText(moves)},${quote(visibility)}]`
  }
}

const haveOneName = (one: Rune, other: Rune): boolean =>
  one.stream === other.stream &&
  one.kind === other.kind &&
  one.actor === other.actor &&
  one.from === other.from &&
  one.to === other.to &&
  one.trigger === other.trigger &&
  one.visibility === other.visibility &&
  one.moves.length + other.moves.length === 0

export const layer = Layer.effect(
  Log,
  Effect.map(Redact, ({ json }) => {
    const { guard, kinds } = rules
    return new HashingLog(new AdmissionState({ guard, kinds }), new EventDraft(kinds, json))
  })
).pipe(Layer.provide(Redact.layer))
