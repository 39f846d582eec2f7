/**
 * EventDraft: prepares a draft for the log, on the fiber of the caller. The kind must be known. The payload must have
 * the kind's shape and must not be too large. Known secrets are removed, and the payload is encoded.
 *
 * The prepared payload is exactly what is read back later. If the draft's payload is not plain JSON, the prepared
 * payload is parsed from the stored text.
 */
import type { KnownKinds } from "./EventKinds.ts"
import { RuneRefused } from "./EventLog.ts"
import type { Prepared } from "./Log.ts"
import { isPlainJson } from "./PlainJson.ts"
import type { Payload, RuneDraft } from "./Rune.ts"

/** Maximum length of the name of a stream, kind, actor, state, trigger or moved machine, in UTF-16 units. */
export const MAX_NAME = 512
/** Maximum number of state machines that one rune can move, in addition to its own actor. */
export const MAX_MOVES = 64

export interface Limits {
  /** Maximum size of one payload's JSON, in UTF-8 bytes. */
  readonly maxRuneBytes: number
  /** Maximum number of drafts in one append. */
  readonly maxDrafts: number
}

export const defaultLimits: Limits = { maxRuneBytes: 1024 * 1024, maxDrafts: 4096 }

/** Removes known secrets from a JSON text. */
export type Scrub = (json: string) => string

/** Control characters and lone surrogates are rejected, because some stores change them in text columns. */
const plain = (name: string): boolean =>
  // oxlint-disable-next-line no-control-regex
  name.length <= MAX_NAME && name.isWellFormed() && !/[\u0000-\u001f]/.test(name)

/** Maximum number of names in the cache of valid names. Names repeat, so most checks are answered from the cache. */
const MAX_KNOWN = 10_000

class PlainNames {
  private readonly known = new Set<string>()

  has(name: string | null | undefined): boolean {
    if (name === null || name === undefined || this.known.has(name)) return true
    if (!plain(name)) return false
    if (this.known.size >= MAX_KNOWN) this.known.clear()
    this.known.add(name)
    return true
  }

  areOf({ actor, cause, from, kind, moves, stream, to, trigger }: RuneDraft): boolean {
    return (
      stream !== "" &&
      this.has(stream) &&
      this.has(kind) &&
      this.has(actor) &&
      this.has(from) &&
      this.has(to) &&
      this.has(trigger) &&
      this.has(cause?.stream) &&
      (moves === undefined || moves.length === 0 || this.haveAll(moves))
    )
  }

  private haveAll(moves: ReadonlyArray<string>): boolean {
    return moves.length <= MAX_MOVES && moves.every((name) => this.has(name))
  }
}

const refuse = ({ actor, kind }: RuneDraft, rule: string, message: string): RuneRefused =>
  new RuneRefused({ kind, rule, message: `${kind} (${actor}): ${message}` })

/** Size in UTF-8 bytes if it exceeds `most`, else undefined. If the text is too short for that, nothing is counted. */
const bytesOver = (text: string, most: number): number | undefined => {
  if (text.length * 3 <= most) return undefined
  const bytes = Buffer.byteLength(text)
  return bytes > most ? bytes : undefined
}

const encode = (draft: RuneDraft): string | RuneRefused => {
  try {
    return JSON.stringify(draft.payload) ?? refuse(draft, "schema", "the payload is not JSON: it is undefined")
  } catch (error) {
    return refuse(draft, "schema", `the payload is not JSON: ${String(error)}`)
  }
}

export class EventDraft {
  private readonly kinds: KnownKinds
  private readonly scrub: Scrub
  private readonly limits: Limits
  private readonly names = new PlainNames()

  constructor(kinds: KnownKinds, scrub: Scrub, limits: Limits = defaultLimits) {
    this.kinds = kinds
    this.scrub = scrub
    this.limits = limits
  }

  prepare(draft: RuneDraft): Prepared | RuneRefused {
    const entry = this.kinds.get(draft.kind)
    if (entry === undefined) return refuse(draft, "schema", this.kinds.explain(draft.kind, draft.payload))
    if (!this.names.areOf(draft)) {
      return refuse(draft, "schema", `a name is empty, longer than ${MAX_NAME} characters, or not plain text`)
    }
    const encoded = encode(draft)
    if (typeof encoded !== "string") return encoded
    const text = this.scrub(encoded)
    const tooLarge = bytesOver(text, this.limits.maxRuneBytes)
    if (tooLarge !== undefined) {
      return refuse(draft, "size", `the payload has ${tooLarge} bytes; at most ${this.limits.maxRuneBytes} are kept`)
    }
    const payload = text === encoded && isPlainJson(draft.payload) ? draft.payload : (JSON.parse(text) as Payload)
    if (!this.kinds.accepts(draft.kind, payload)) {
      return refuse(draft, "schema", this.kinds.explain(draft.kind, payload))
    }
    return { payload, text, visibility: draft.visibility ?? entry.visibility }
  }

  /** Prepares all drafts of an append. Returns the first refusal, if there is one. */
  prepareAll(drafts: ReadonlyArray<RuneDraft>): ReadonlyArray<Prepared> | RuneRefused {
    const { maxDrafts } = this.limits
    if (drafts.length > maxDrafts) {
      return refuse(drafts[0]!, "size", `${drafts.length} runes in one append; at most ${maxDrafts} are taken`)
    }
    const all: Array<Prepared> = []
    for (const draft of drafts) {
      const one = this.prepare(draft)
      if (one instanceof RuneRefused) return one
      all.push(one)
    }
    return all
  }

  /** Prepares a lazy draft. Refuses a kind that is not lazy, because folds can read runes of that kind. */
  prepareLazy(draft: RuneDraft): Prepared | RuneRefused {
    return this.kinds.get(draft.kind)?.lazy === false
      ? refuse(draft, "schema", "the kind is not lazy: it is appended, and waited for")
      : this.prepare(draft)
  }
}
