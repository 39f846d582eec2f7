/**
 * RunText: redacts the words of a run before they are logged, even if a secret arrives in several chunks.
 *
 * Guarantees: whole lines are written at once. An incomplete line waits for its end, or until no more words have come
 * for a moment. Nothing is held back when the run reports something else, or ends. A secret whose parts arrive further
 * apart than that moment is not found.
 */
import type { Redact, RedactedChunks } from "../../core/event-log/Redact.ts"

export interface Written {
  /** The source of the words: the answer of a turn, a call's output, a command's lines. */
  readonly key: string
  readonly text: string
}

export class RunText {
  private readonly redact: Redact["Service"]
  private readonly sources = new Map<string, RedactedChunks>()
  /** Sources that may hold words back. */
  private readonly open = new Set<string>()

  constructor(redact: Redact["Service"]) {
    this.redact = redact
  }

  get isOpen(): boolean {
    return this.open.size > 0
  }

  /** Takes a chunk of the source, and returns the text that can be written now. */
  push(key: string, chunk: string): string {
    this.open.add(key)
    return this.source(key).push(chunk)
  }

  /** Takes a whole line, without its line end. */
  line(key: string, line: string): string {
    const text = this.source(key).push(`${line}\n`)
    return text.endsWith("\n") ? text.slice(0, -1) : text
  }

  /** Number of characters of the source that are held back. */
  heldOf(key: string): number {
    return this.sources.get(key)?.held() ?? 0
  }

  /** Returns the whole words of all sources, while more is still coming. */
  words(): ReadonlyArray<Written> {
    return this.all((source) => source.words())
  }

  rest(): ReadonlyArray<Written> {
    const rest = this.all((source) => source.rest())
    this.open.clear()
    return rest
  }

  /** Returns all text of the source that is held back. */
  restOf(key: string): ReadonlyArray<Written> {
    if (!this.open.delete(key)) return []
    const text = this.source(key).rest()
    return text === "" ? [] : [{ key, text }]
  }

  /** Forgets the source of a call, or all sources when the run has ended. */
  forget(key?: string): void {
    if (key === undefined) this.sources.clear()
    else this.sources.delete(key)
  }

  private source(key: string): RedactedChunks {
    const known = this.sources.get(key) ?? this.redact.chunks()
    this.sources.set(key, known)
    return known
  }

  private all(take: (source: RedactedChunks) => string): ReadonlyArray<Written> {
    return [...this.open].flatMap((key) => {
      const text = take(this.source(key))
      return text === "" ? [] : [{ key, text }]
    })
  }
}
