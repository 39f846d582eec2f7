/**
 * Ring: appends from the actors' thread to the log's, through shared memory.
 *
 * One writer, one reader, no lock. Names (streams, kinds, actors, states) repeat, so
 * each crosses once and is a number from then on; a rune is 72 bytes and its payload.
 * A thread that has nothing to do sleeps in `Atomics.wait` on the bell.
 *
 *     record = 8 bytes (tag, count) … padded to 8
 *       SKIP     go on at the start
 *       NAME     (tag, id) (length) text
 *       APPEND   (tag, runes), then for each rune: id seq at cause's seq (f64) ·
 *                stream kind actor from to trigger visibility cause's stream, moves, length (u32) · text
 *       PARCEL   (tag, runes): an append too large for the ring, which came as a message
 */
import { joinHeader, quote } from "./HashChain.ts"
import type { Unit } from "./Log.ts"
import { BELL, CONTROL_BYTES, controlOf, EPOCH, FREED, ring, RING_BYTES, WRITTEN } from "./RingControl.ts"
import type { Rune } from "./Rune.ts"

/** A rune as it is inserted: its columns, and the texts of header and payload. */
export interface Row {
  readonly eventId: number
  readonly seq: number
  readonly stream: string
  readonly at: number
  readonly kind: string
  readonly actor: string
  readonly from: string | null
  readonly to: string | null
  readonly trigger: string | null
  readonly causeStream: string | null
  readonly causeSeq: number | null
  /** JSON; null for none. */
  readonly moves: string | null
  readonly visibility: string
  readonly header: string
  readonly text: string
}

const SKIP = 0
const NAME = 1
const APPEND = 2
const PARCEL = 3
const DOUBLES = 4
const WORDS = 10
const RUNE_UNITS = DOUBLES + WORDS / 2
/** Names that are known at both ends before all are forgotten. */
const MAX_NAMES = 50_000

const UNITS = RING_BYTES / 8
/** An append that may be larger than this goes as a message. */
const MAX_UNITS = UNITS / 4

const views = (shared: SharedArrayBuffer) => ({
  control: controlOf(shared),
  words: new Uint32Array(shared, CONTROL_BYTES),
  doubles: new Float64Array(shared, CONTROL_BYTES),
  bytes: Buffer.from(shared, CONTROL_BYTES)
})

const movesOf = ({ moves }: Rune): string | null => (moves.length === 0 ? null : JSON.stringify(moves))

/** Units of 8 bytes that a name may need, with its record's head. */
const unitsOfName = (name: string | null): number => (name === null ? 0 : 3 + ((name.length * 3) >> 3))

/** The most that a unit may need, names included. */
const unitsOf = ({ runes, texts }: Unit): number => {
  let most = 1
  for (let index = 0; index < runes.length; index++) {
    const rune = runes[index]!
    most +=
      RUNE_UNITS +
      1 +
      ((texts[index]!.length * 3) >> 3) +
      unitsOfName(rune.stream) +
      unitsOfName(rune.kind) +
      unitsOfName(rune.actor) +
      unitsOfName(rune.from) +
      unitsOfName(rune.to) +
      unitsOfName(rune.trigger) +
      unitsOfName(rune.visibility) +
      unitsOfName(rune.cause?.stream ?? null) +
      unitsOfName(movesOf(rune))
  }
  return most
}

/** The answer of `append`. */
export type Room = "taken" | "full" | "too-large"

export class RingWriter {
  readonly control: Int32Array
  private readonly words: Uint32Array
  private readonly doubles: Float64Array
  private readonly bytes: Buffer
  private names = new Map<string, number>()
  /** Where the next record begins, in units of 8 bytes. */
  private at = 0
  /** Units written so far, wrapped to 32 bits; seen by the reader from `publish` on. */
  private written = 0

  constructor(shared: SharedArrayBuffer) {
    const { bytes, control, doubles, words } = views(shared)
    this.control = control
    this.words = words
    this.doubles = doubles
    this.bytes = bytes
  }

  append(unit: Unit): Room {
    const most = unitsOf(unit)
    if (most > MAX_UNITS) return "too-large"
    if (!this.fits(most)) return "full"
    if (this.names.size > MAX_NAMES) this.names = new Map()
    for (const rune of unit.runes) this.nameAll(rune)
    let at = this.at
    this.words[at * 2] = APPEND
    this.words[at * 2 + 1] = unit.runes.length
    at += 1
    for (let index = 0; index < unit.runes.length; index++) at = this.rune(unit.runes[index]!, unit.texts[index]!, at)
    this.move(at - this.at)
    this.at = at
    return "taken"
  }

  /** The place in the order of an append that goes as a message. */
  parcel(runes: number): boolean {
    if (!this.fits(1)) return false
    this.words[this.at * 2] = PARCEL
    this.words[this.at * 2 + 1] = runes
    this.move(1)
    this.at += 1
    return true
  }

  publish(): void {
    Atomics.store(this.control, WRITTEN, this.written)
    ring(this.control)
  }

  /** After a failure: both ends begin anew. */
  reset(): void {
    this.at = 0
    this.written = 0
    this.names = new Map()
    Atomics.store(this.control, WRITTEN, 0)
    Atomics.store(this.control, FREED, 0)
    Atomics.add(this.control, EPOCH, 1)
    Atomics.notify(this.control, EPOCH)
  }

  private get free(): number {
    return UNITS - 1 - ((this.written - Atomics.load(this.control, FREED)) | 0)
  }

  private fits(most: number): boolean {
    if (most > UNITS - this.at) {
      if (UNITS - this.at + most > this.free) return false
      if (this.at < UNITS) this.words[this.at * 2] = SKIP
      this.move(UNITS - this.at)
      this.at = 0
    }
    return most <= this.free
  }

  private rune(rune: Rune, text: string, at: number): number {
    const { doubles, words } = this
    doubles[at] = rune.eventId
    doubles[at + 1] = rune.seq
    doubles[at + 2] = rune.at
    doubles[at + 3] = rune.cause?.seq ?? -1
    const word = (at + DOUBLES) * 2
    words[word] = this.id(rune.stream)
    words[word + 1] = this.id(rune.kind)
    words[word + 2] = this.id(rune.actor)
    words[word + 3] = this.id(rune.from)
    words[word + 4] = this.id(rune.to)
    words[word + 5] = this.id(rune.trigger)
    words[word + 6] = this.id(rune.visibility)
    words[word + 7] = this.id(rune.cause?.stream ?? null)
    words[word + 8] = this.id(movesOf(rune))
    const length = this.bytes.write(text, (at + RUNE_UNITS) * 8, "utf8")
    words[word + 9] = length
    return at + RUNE_UNITS + ((length + 7) >> 3)
  }

  private move(units: number): void {
    this.written = (this.written + units) | 0
  }

  private id(name: string | null): number {
    return name === null ? 0 : this.names.get(name)!
  }

  private nameAll(rune: Rune): void {
    this.name(rune.stream)
    this.name(rune.kind)
    this.name(rune.actor)
    this.name(rune.from)
    this.name(rune.to)
    this.name(rune.trigger)
    this.name(rune.visibility)
    this.name(rune.cause?.stream ?? null)
    this.name(movesOf(rune))
  }

  private name(name: string | null): void {
    if (name === null || this.names.has(name)) return
    const id = this.names.size + 1
    this.names.set(name, id)
    const { at, words } = this
    words[at * 2] = NAME
    words[at * 2 + 1] = id
    const length = this.bytes.write(name, (at + 2) * 8, "utf8")
    words[at * 2 + 2] = length
    const units = 2 + ((length + 7) >> 3)
    this.move(units)
    this.at = at + units
  }
}

/** The row of a rune that did not pass through the ring. */
export const rowOf = (rune: Rune, text: string): Row => {
  const moves = movesOf(rune)
  return {
    eventId: rune.eventId,
    seq: rune.seq,
    stream: rune.stream,
    at: rune.at,
    kind: rune.kind,
    actor: rune.actor,
    from: rune.from,
    to: rune.to,
    trigger: rune.trigger,
    causeStream: rune.cause?.stream ?? null,
    causeSeq: rune.cause?.seq ?? null,
    moves,
    visibility: rune.visibility,
    header: joinHeader(
      quote(rune.stream),
      rune.seq,
      rune.at,
      quote(rune.kind),
      quote(rune.actor),
      quote(rune.from),
      quote(rune.to),
      quote(rune.trigger),
      rune.cause === null ? "null" : `[${quote(rune.cause.stream)},${rune.cause.seq}]`,
      moves ?? "[]",
      quote(rune.visibility)
    ),
    text
  }
}

export class RingReader {
  readonly control: Int32Array
  private readonly words: Uint32Array
  private readonly doubles: Float64Array
  private readonly bytes: Buffer
  private readonly parcel: () => ReadonlyArray<Row>
  private names: Array<string | null> = [null]
  private quoted: Array<string> = ["null"]
  private at = 0
  private seen = 0
  private heard = 0

  /** `parcel`: the next append that came as a message; waits for it. */
  constructor(shared: SharedArrayBuffer, parcel: () => ReadonlyArray<Row>) {
    const { bytes, control, doubles, words } = views(shared)
    this.control = control
    this.words = words
    this.doubles = doubles
    this.bytes = bytes
    this.parcel = parcel
  }

  /** Sleeps until the bell rings, or so long (ms), unless there is something already. False: nothing happened. */
  wait(atMost: number): boolean {
    if (Atomics.load(this.control, WRITTEN) !== this.seen) return true
    const told = Atomics.wait(this.control, BELL, this.heard, atMost) !== "timed-out"
    this.heard = Atomics.load(this.control, BELL)
    return told
  }

  /** Whole appends, oldest first, until they have `atMost` rows. */
  take(atMost: number): Array<ReadonlyArray<Row>> {
    const appends: Array<ReadonlyArray<Row>> = []
    const written = Atomics.load(this.control, WRITTEN)
    let rows = 0
    while (this.seen !== written && rows < atMost) {
      const tag = this.at < UNITS ? this.words[this.at * 2]! : SKIP
      if (tag === SKIP) {
        this.seen = (this.seen + (UNITS - this.at)) | 0
        this.at = 0
      } else if (tag === NAME) this.learn()
      else {
        const append = tag === PARCEL ? this.unpack() : this.append()
        rows += append.length
        appends.push(append)
      }
    }
    return appends
  }

  /** Frees the taken part. */
  free(): void {
    Atomics.store(this.control, FREED, this.seen)
  }

  reset(): void {
    this.names = [null]
    this.quoted = ["null"]
    this.at = 0
    this.seen = 0
  }

  private unpack(): ReadonlyArray<Row> {
    this.go(1)
    return this.parcel()
  }

  private learn(): void {
    const { at, words } = this
    const id = words[at * 2 + 1]!
    const length = words[at * 2 + 2]!
    const name = this.bytes.toString("utf8", (at + 2) * 8, (at + 2) * 8 + length)
    this.names[id] = name
    this.quoted[id] = JSON.stringify(name)
    this.go(2 + ((length + 7) >> 3))
  }

  private append(): Array<Row> {
    const count = this.words[this.at * 2 + 1]!
    const rows: Array<Row> = []
    let at = this.at + 1
    for (let index = 0; index < count; index++) {
      rows.push(this.row(at))
      at += RUNE_UNITS + ((this.words[(at + DOUBLES) * 2 + 9]! + 7) >> 3)
    }
    this.go(at - this.at)
    return rows
  }

  private row(unit: number): Row {
    const { doubles, names, quoted, words } = this
    const seq = doubles[unit + 1]!
    const at = doubles[unit + 2]!
    const causeSeq = doubles[unit + 3]!
    const word = (unit + DOUBLES) * 2
    const [stream, kind, actor] = [words[word]!, words[word + 1]!, words[word + 2]!]
    const [from, to, trigger] = [words[word + 3]!, words[word + 4]!, words[word + 5]!]
    const [visibility, cause, moved] = [words[word + 6]!, words[word + 7]!, words[word + 8]!]
    const start = (unit + RUNE_UNITS) * 8
    const moves = names[moved]!
    return {
      eventId: doubles[unit]!,
      seq,
      stream: names[stream]!,
      at,
      kind: names[kind]!,
      actor: names[actor]!,
      from: names[from]!,
      to: names[to]!,
      trigger: names[trigger]!,
      causeStream: names[cause]!,
      causeSeq: causeSeq === -1 ? null : causeSeq,
      moves,
      visibility: names[visibility]!,
      header: joinHeader(
        quoted[stream]!,
        seq,
        at,
        quoted[kind]!,
        quoted[actor]!,
        quoted[from]!,
        quoted[to]!,
        quoted[trigger]!,
        causeSeq === -1 ? "null" : `[${quoted[cause]!},${causeSeq}]`,
        moves ?? "[]",
        quoted[visibility]!
      ),
      text: this.bytes.toString("utf8", start, start + words[word + 9]!)
    }
  }

  private go(units: number): void {
    this.at += units
    this.seen = (this.seen + units) | 0
  }
}
