/**
 * AdmissionState: decides whether runes may be written. It keeps the last assigned position, the last seq of each
 * stream, the guard's states, and the list of streams that accept no more runes.
 *
 * The state of a stream is one immutable object. An append that is not durable yet keeps the objects that it replaced,
 * so a failed append can restore them.
 *
 * For a stream that existed when the log was opened, the guard's states are unknown until the stream is read. Until
 * then, the stream accepts only runes that no invariant checks.
 */
import { RuneRefused } from "./EventLog.ts"
import type { InvariantGuard, States } from "./InvariantGuard.ts"
import type { Unit } from "./Log.ts"
import type { KnownKinds } from "./EventKinds.ts"
import type { Rune } from "./Rune.ts"

/** The reason why a stream accepts no more runes. */
export interface Stop {
  /** "sealed", or the id of the FATAL invariant that halted the stream. */
  readonly rule: string
  readonly message: string
}

/**
 * Placeholder for the guard's states of a stream that has not been read yet. The states are set once, for every
 * `StreamState` that shares this object.
 */
export class UnreadGuard {
  states: States | undefined = undefined
}

export interface StreamState {
  /** Sequence number of the stream's newest rune, durable or not. */
  readonly seq: number
  readonly isSealed: boolean
  readonly guard: States | UnreadGuard
}

const SEALED: Stop = { rule: "sealed", message: "the conversation is closed, and its stream is sealed" }

/** The streams to which one unit appends, with their states after the append. Nearly always a single stream. */
class Moves {
  readonly unit: Unit
  stream = ""
  state: StreamState | undefined = undefined
  /** The streams after the first one; undefined if there is only one stream. */
  others: Map<string, StreamState> | undefined = undefined

  constructor(unit: Unit) {
    this.unit = unit
  }

  get(stream: string): StreamState | undefined {
    return stream === this.stream ? this.state : this.others?.get(stream)
  }

  set(stream: string, state: StreamState): void {
    if (this.state === undefined) this.stream = stream
    if (stream === this.stream) this.state = state
    else (this.others ??= new Map()).set(stream, state)
  }
}

const NONE: ReadonlyArray<never> = []

/** A list of streams, each followed by its state before an append; the state is undefined if the stream was new. */
type Replaced = ReadonlyArray<string | StreamState | undefined>

const COMPACT_FROM = 1_024

export class AdmissionState {
  head: number
  readonly guard: InvariantGuard
  private readonly kinds: KnownKinds
  private readonly streams: Map<string, StreamState>
  private readonly halted = new Map<string, Stop>()
  readonly onHalt = new Set<(stream: string, stop: Stop) => void>()
  /** Replaced states of each append that is not durable yet, oldest append first. */
  private ahead: Array<Replaced | undefined> = []
  private first = 0
  /** New stream states of the unit that `refuses` checked last. */
  private checked: Moves | undefined = undefined

  constructor(options: {
    readonly guard: InvariantGuard
    readonly kinds: KnownKinds
    readonly head?: number
    readonly streams?: Map<string, StreamState>
  }) {
    this.guard = options.guard
    this.kinds = options.kinds
    this.head = options.head ?? 0
    this.streams = options.streams ?? new Map()
  }

  seqOf(stream: string): number {
    return this.streams.get(stream)?.seq ?? 0
  }

  isSealed(stream: string): boolean {
    return this.streams.get(stream)?.isSealed === true
  }

  /** False if the stream was halted, for example because its hash chain is broken. */
  isWhole(stream: string): boolean {
    return !this.halted.has(stream)
  }

  isOpen(stream: string): boolean {
    return !this.halted.has(stream) && !this.isSealed(stream)
  }

  /** The guard's states, including runes that are not durable yet. Undefined if the stream must be read first. */
  guardOf(stream: string): States | undefined {
    return this.statesOf(this.streams.get(stream))
  }

  /** Sets the guard's states after a stream was read up to its newest rune. Only the first call has an effect. */
  restoreGuard(stream: string, states: States): void {
    const guard = this.streams.get(stream)?.guard
    if (guard instanceof UnreadGuard) guard.states ??= states
  }

  get stops(): ReadonlyArray<readonly [stream: string, stop: Stop]> {
    return [...this.halted]
  }

  /** Refuses all further appends to the stream. Only the first call for a stream has an effect. */
  halt(stream: string, stop: Stop): void {
    if (this.halted.has(stream)) return
    this.halted.set(stream, stop)
    for (const hear of this.onHalt) hear(stream, stop)
  }

  refuses(unit: Unit): RuneRefused | undefined {
    const moves = new Moves(unit)
    for (const rune of unit.runes) {
      const refused = this.admit(rune, moves)
      if (refused !== undefined) return refused
    }
    this.checked = moves
    return undefined
  }

  /** Records an append. `isDurable`: true if no failure can undo the append. */
  take(unit: Unit, isDurable: boolean): void {
    this.inOrder(unit)
    const moves = this.checked?.unit === unit ? this.checked : this.movesOf(unit)
    this.checked = undefined
    if (!isDurable) this.ahead.push(this.replacedBy(moves))
    const { others, state, stream } = moves
    if (state !== undefined) this.streams.set(stream, state)
    if (others !== undefined) for (const [stream, state] of others) this.streams.set(stream, state)
    this.head += unit.runes.length
  }

  /** Marks the oldest pending append as durable. */
  landed(): void {
    this.ahead[this.first++] = undefined
    if (this.first === this.ahead.length) {
      this.ahead = []
      this.first = 0
    } else if (this.first > COMPACT_FROM && this.first * 2 > this.ahead.length) {
      this.ahead = this.ahead.slice(this.first)
      this.first = 0
    }
  }

  /** Undoes all appends that are not durable. `durable`: eventId of the newest durable rune. */
  undo(durable: number): void {
    for (let index = this.ahead.length - 1; index >= this.first; index--) {
      const replaced = this.ahead[index]!
      for (let at = 0; at < replaced.length; at += 2) {
        const stream = replaced[at] as string
        const state = replaced[at + 1] as StreamState | undefined
        if (state === undefined) this.streams.delete(stream)
        else this.streams.set(stream, state)
      }
    }
    this.ahead = []
    this.first = 0
    this.head = durable
    this.checked = undefined
  }

  private replacedBy({ others, state, stream }: Moves): Replaced {
    if (state === undefined) return NONE
    const replaced = [stream, this.streams.get(stream)]
    for (const stream of others?.keys() ?? NONE) replaced.push(stream, this.streams.get(stream))
    return replaced
  }

  private admit(rune: Rune, moves: Moves): RuneRefused | undefined {
    const { stream } = rune
    const state = moves.get(stream) ?? this.streams.get(stream)
    const stop = this.halted.get(stream) ?? (state?.isSealed === true ? SEALED : undefined)
    if (stop !== undefined) return refuse(rune, stop.rule, stop.message)
    const violation = this.guard.sees(rune.kind) ? this.guard.check(this.read(state, rune), rune) : undefined
    if (violation !== undefined) return refuse(rune, violation.rule, violation.message)
    this.move(rune, state, moves)
    return undefined
  }

  private move(rune: Rune, state: StreamState | undefined, moves: Moves): void {
    const isSealed = this.kinds.get(rune.kind)?.seals === true
    // a sealed stream accepts no more runes, so its guard states are not needed
    const guard = isSealed ? this.guard.initial : this.guarded(rune, state)
    moves.set(rune.stream, { seq: rune.seq, isSealed, guard })
  }

  private guarded(rune: Rune, state: StreamState | undefined): StreamState["guard"] {
    return this.guard.sees(rune.kind)
      ? this.guard.apply(this.read(state, rune), rune)
      : (state?.guard ?? this.guard.initial)
  }

  private statesOf(state: StreamState | undefined): States | undefined {
    const guard = state?.guard ?? this.guard.initial
    return guard instanceof UnreadGuard ? guard.states : guard
  }

  /** Throws if the stream has not been read yet: the caller must recover a stream before it writes to the stream. */
  private read(state: StreamState | undefined, { kind, stream }: Rune): States {
    const states = this.statesOf(state)
    if (states === undefined) throw new Error(`${kind} comes before ${stream} was read: recover it first`)
    return states
  }

  private movesOf(unit: Unit): Moves {
    const moves = new Moves(unit)
    for (const rune of unit.runes) this.move(rune, moves.get(rune.stream) ?? this.streams.get(rune.stream), moves)
    return moves
  }

  /** Throws if an eventId or seq is out of order. Such a bug in the caller would leave a gap in the log. */
  private inOrder({ runes }: Unit): void {
    let others: Map<string, number> | undefined
    let { head } = this
    let before: Rune | undefined
    for (const rune of runes) {
      const { eventId, seq, stream } = rune
      const last = before?.stream === stream ? before.seq : (others?.get(stream) ?? this.seqOf(stream))
      if (before !== undefined && before.stream !== stream) (others ??= new Map()).set(before.stream, before.seq)
      head += 1
      if (eventId !== head || seq !== last + 1) {
        throw new Error(`a rune came as ${eventId}, ${stream}#${seq}: ${head}, ${stream}#${last + 1} was next`)
      }
      before = rune
    }
  }
}

const refuse = ({ actor, kind }: Rune, rule: string, message: string) =>
  new RuneRefused({ kind, rule, message: `${kind} (${actor}): ${message}` })
