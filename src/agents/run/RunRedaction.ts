/**
 * RunRedaction: redacts a run's text before it is logged, even if a secret arrives in several chunks.
 *
 * Guarantees: Complete lines are written at once. An incomplete line is written when it is complete, or after a short
 * pause in the text. Nothing is delayed when the run reports another event or ends. A secret is not found if the pause
 * between its parts is longer than that.
 */
import type { Redact, RedactedChunks } from "../../core/event-log/Redact.ts"

export interface Written {
  /** Where text comes from: the answer of a turn, the output of a call, or the lines of a command. */
  readonly key: string
  readonly text: string
}

export class RunRedaction {
  private readonly redact: Redact["Service"]
  private readonly sources = new Map<string, RedactedChunks>()
  /** Sources that may have delayed text. */
  private readonly open = new Set<string>()

  constructor(redact: Redact["Service"]) {
    this.redact = redact
  }

  get isOpen(): boolean {
    return this.open.size > 0
  }

  /** Returns the text that can be written now. */
  push(key: string, chunk: string): string {
    this.open.add(key)
    return this.source(key).push(chunk)
  }

  /** Adds a whole line; `line` does not contain the line end. */
  line(key: string, line: string): string {
    const text = this.source(key).push(`${line}\n`)
    return text.endsWith("\n") ? text.slice(0, -1) : text
  }

  /** How many characters of this source are held back. */
  heldOf(key: string): number {
    return this.sources.get(key)?.held() ?? 0
  }

  /** Returns the complete words of all sources, while more text may still arrive. */
  words(): ReadonlyArray<Written> {
    return this.all((source) => source.words())
  }

  rest(): ReadonlyArray<Written> {
    const rest = this.all((source) => source.rest())
    this.open.clear()
    return rest
  }

  restOf(key: string): ReadonlyArray<Written> {
    if (!this.open.delete(key)) return []
    const text = this.source(key).rest()
    return text === "" ? [] : [{ key, text }]
  }

  /** Deletes the source `key`; without `key`, all sources, because the run has ended. */
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
