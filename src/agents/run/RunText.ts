/**
 * RunText: the words of a run on their way into the log, with secrets taken out also where a
 * secret comes in several chunks.
 *
 * Guarantees: what comes in whole lines waits for nothing; what has begun a line waits for its
 * end, or until nothing more came for a moment; nothing is held when the run says something
 * else, or ends. The secret whose parts come further apart than that moment is not found.
 */
import type { Redact, RedactedChunks } from "../../core/event-log/Redact.ts"

export interface Written {
  /** The words belong to this: the answer of a turn, a call's output, a command's lines. */
  readonly key: string
  readonly text: string
}

export class RunText {
  private readonly redact: Redact["Service"]
  private readonly sources = new Map<string, RedactedChunks>()
  /** Sources that may hold something back. */
  private readonly open = new Set<string>()

  constructor(redact: Redact["Service"]) {
    this.redact = redact
  }

  get isOpen(): boolean {
    return this.open.size > 0
  }

  /** Takes a chunk of the source; gives what can be written of it now. */
  push(key: string, chunk: string): string {
    this.open.add(key)
    return this.source(key).push(chunk)
  }

  /** A whole line, which comes without its end. */
  line(key: string, line: string): string {
    const text = this.source(key).push(`${line}\n`)
    return text.endsWith("\n") ? text.slice(0, -1) : text
  }

  /** Characters of the source that are held back. */
  heldOf(key: string): number {
    return this.sources.get(key)?.held() ?? 0
  }

  /** Whole words of all sources: more is still coming. */
  words(): ReadonlyArray<Written> {
    return this.all((source) => source.words())
  }

  rest(): ReadonlyArray<Written> {
    const rest = this.all((source) => source.rest())
    this.open.clear()
    return rest
  }

  /** All that is held back of the source. */
  restOf(key: string): ReadonlyArray<Written> {
    if (!this.open.delete(key)) return []
    const text = this.source(key).rest()
    return text === "" ? [] : [{ key, text }]
  }

  /** The run is over, or the call is. */
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
