/**
 * RunOutput: writes a run's output to the log with a delay, in runes of limited size.
 *
 * Lines of one chunk share a rune. Lines beyond `maxBytesPerRun` are not written at once. At the end of the run, the
 * last of them are written, with the number of bytes that were omitted. Users need both the start and the end of a
 * large output.
 */
import type { Place, RunEvent } from "../../runs/Backend.ts"
import type { OutputConfig } from "../../config/AgentConfig.ts"
import type { RuneDraft } from "../../core/event-log/Rune.ts"

type Delta = Extract<RunEvent, { _tag: "Delta" }>

export interface KnownOutput {
  readonly kept: number
  readonly skipped: number
  readonly tail: ReadonlyArray<Delta>
}

/** Maximum length of the text in one output rune, characters. */
const MAX_TEXT = 8 * 1024

export class RunOutput {
  private kept = 0
  private skipped = 0
  private tail: Array<Delta> = []
  private readonly base: Pick<RuneDraft, "stream" | "actor" | "kind">
  private readonly runId: string
  private readonly limits: OutputConfig

  constructor(stream: string, actor: string, runId: string, limits: OutputConfig) {
    this.base = { stream, actor, kind: "run.output" }
    this.runId = runId
    this.limits = limits
  }

  get known(): KnownOutput {
    const { kept, skipped, tail } = this
    return { kept, skipped, tail }
  }

  recalls({ kept, skipped, tail }: KnownOutput): void {
    this.kept = kept
    this.skipped = skipped
    this.tail = [...tail]
  }

  take(deltas: ReadonlyArray<Delta>): ReadonlyArray<RuneDraft> {
    const parts: Array<Delta> = []
    for (const delta of deltas) {
      const size = Buffer.byteLength(delta.text)
      if (this.kept + size > this.limits.maxBytesPerRun) {
        this.skipped += size
        this.tail.push(delta)
        if (this.tail.length > this.limits.tailLines) this.tail.shift()
        continue
      }
      this.kept += size
      parts.push(delta)
    }
    return this.runes(parts)
  }

  /** Returns the runes that contain the last lines, after the run has ended. */
  end(): ReadonlyArray<RuneDraft> {
    if (this.skipped === 0) return []
    const note = `… ${this.skipped} bytes of output above the limit of ${this.limits.maxBytesPerRun} are omitted; the last lines:`
    return [this.rune("agentd", note), ...this.runes(this.tail)]
  }

  private runes(deltas: ReadonlyArray<Delta>): ReadonlyArray<RuneDraft> {
    const runes: Array<RuneDraft> = []
    let [source, lines, size]: [string, Array<string>, number] = ["", [], 0]
    let place: Place | undefined
    const flush = () => {
      if (lines.length > 0) runes.push(this.rune(source, lines.join("\n"), place))
      ;[lines, size] = [[], 0]
    }
    for (const delta of deltas) {
      if (delta.stream !== source || size + delta.text.length > MAX_TEXT) flush()
      source = delta.stream
      ;({ place } = delta)
      lines.push(delta.text)
      size += delta.text.length + 1
    }
    flush()
    return runes
  }

  private rune(source: string, text: string, place?: Place): RuneDraft {
    const heard = place === undefined ? {} : { heard: { run: this.runId, ...place } }
    return { ...this.base, payload: { runId: this.runId, source, text, ...heard } }
  }
}
