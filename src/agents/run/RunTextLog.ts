/**
 * RunTextLog: writes a run's text to the log with a delay: its answers and thinking, and the output of its calls and
 * programs.
 *
 * Guarantees: Secrets are redacted, even if a secret arrives in several chunks. Text that is delayed for this purpose
 * is written after a short pause, and before the run's next event of another kind. For an adopted run, text that the
 * log already has is not written again.
 */
import { Effect } from "effect"
import type { RunEvent } from "../../runs/Backend.ts"
import type { EventLog } from "../../core/event-log/EventLog.ts"
import type { Redact } from "../../core/event-log/Redact.ts"
import type { RuneDraft } from "../../core/event-log/Rune.ts"
import type { AgentEnvironment } from "../actors/AgentEnvironment.ts"
import { toolName, turnName, workerName } from "../machines/AgentStates.ts"
import * as LogExcerpt from "./LogExcerpt.ts"
import type { LiveRun } from "./LiveRun.ts"
import { type KnownOutput, RunOutput } from "./RunOutput.ts"
import { RunRedaction, type Written } from "./RunRedaction.ts"
import type { Heard, ProcessedEvents } from "./ProcessedEvents.ts"

type Delta = Extract<RunEvent, { _tag: "Delta" }>

/** Maximum stored size of a turn's answer, bytes. */
export const MAX_ANSWER = 256 * 1024
export const MAX_LINES = 128 * 1024
const MAX_CHUNK = 128 * 1024
/** How long text is held back because its next part may complete a secret. */
const HELD = "200 millis"

export interface KnownWords {
  readonly answer: number
  readonly thought: number
  readonly lines: string
  readonly output: KnownOutput | undefined
}

const ANSWER = "answer"
const THOUGHT = "thought"
/** Maximum length of the stored thinking of a turn, characters. */
const MAX_THOUGHT = 256 * 1024
const LEFT_OUT = "\n… more thoughts are omitted\n"

type Write = (text: string) => RuneDraft | undefined

/** The source of a text event. Text of one source is written together. */
const placeOf = ({ stream }: Delta): "answer" | "lines" | "thought" =>
  stream === "assistant" ? ANSWER : stream === "thinking" ? THOUGHT : "lines"

interface Thinking {
  readonly turnId: string | undefined
  readonly after: number
  readonly isCut: boolean
}
const NO_THOUGHTS: Thinking = { turnId: undefined, after: 0, isCut: false }

export class RunTextLog {
  private readonly setting: AgentEnvironment["Service"]
  private readonly log: EventLog["Service"]
  private readonly live: LiveRun
  private readonly text: RunRedaction
  private output: RunOutput | undefined = undefined
  /** Functions that write the text of a source that was held back. */
  private readonly writers = new Map<string, Write>()
  /** Incremented for each group of events. If it does not change, the run is pausing. */
  private beat = 0
  private isFlushing = false
  /** All lines of a command so far. Together they are the answer of the command. */
  private lines = ""
  private runId = ""
  private told: ProcessedEvents | undefined = undefined
  /** Number of characters that the run has produced, by source. */
  private said = new Map<string, number>()
  /** The turn's thinking: how many characters the run had produced before it, and whether it was cut. */
  private thinking = NO_THOUGHTS
  /** True if the run's events have positions in the run's output. */
  isPlaced = false

  constructor(
    {
      log,
      redact,
      setting
    }: {
      readonly log: EventLog["Service"]
      readonly redact: Redact["Service"]
      readonly setting: AgentEnvironment["Service"]
    },
    live: LiveRun
  ) {
    this.setting = setting
    this.log = log
    this.live = live
    this.text = new RunRedaction(redact)
  }

  /** `told`: the part of an adopted run that is in the log. */
  begin(runId: string, told: ProcessedEvents | undefined): void {
    this.runId = runId
    this.told = told
    this.said = new Map()
    this.thinking = NO_THOUGHTS
    this.isPlaced = false
  }

  /** State of the run's text at a point where no text is held back. */
  get known(): KnownWords {
    const count = (key: string) => this.said.get(key) ?? 0
    return { answer: count(ANSWER), thought: count(THOUGHT), lines: this.lines, output: this.output?.known }
  }

  recalls({ answer, lines, output, thought }: KnownWords): void {
    this.said.set(ANSWER, answer)
    this.said.set(THOUGHT, thought)
    // between two turns, this state is always saved
    this.thinking = { ...NO_THOUGHTS, after: thought }
    this.lines = lines
    if (output !== undefined) this.outputs.recalls(output)
  }

  private get outputs(): RunOutput {
    const { agent, config, conversation } = this.setting
    return (this.output ??= new RunOutput(conversation, workerName(agent), this.runId, config().output))
  }

  heard(): void {
    this.beat += 1
  }

  /** How many characters of this source the log contains after this rune. */
  private heardSaid(key: string): { readonly heard?: Heard } {
    if (!this.isPlaced) return {}
    const count = (this.said.get(key) ?? 0) - this.text.heldOf(key)
    return { heard: { run: this.runId, said: { [key]: count } } }
  }

  /** Counts text of a source, and returns the part that is not in the log. */
  private unwritten(key: string, words: string): string {
    const before = this.said.get(key) ?? 0
    this.said.set(key, before + words.length)
    return words.slice(Math.max(0, (this.told?.saidOf(key) ?? 0) - before))
  }

  /** Writes text that was held back, until there is none. Runs as a child of the run's fiber. */
  readonly flushing: Effect.Effect<void> = Effect.suspend(() => {
    if (this.isFlushing || !this.text.isOpen) return Effect.void
    this.isFlushing = true
    return Effect.asVoid(
      Effect.forkChild(
        Effect.ensuring(
          this.flush,
          Effect.sync(() => void (this.isFlushing = false))
        )
      )
    )
  })

  private readonly flush: Effect.Effect<void> = Effect.gen({ self: this }, function* () {
    while (this.text.isOpen) {
      const { beat } = this
      yield* Effect.sleep(HELD)
      if (beat === this.beat) yield* this.rest
      else yield* this.log.appendLazy(this.drafts(this.text.words()))
    }
  })

  /** Writes all text that was held back. */
  readonly rest: Effect.Effect<void> = Effect.suspend(() =>
    this.text.isOpen ? this.log.appendLazy(this.drafts(this.text.rest())) : Effect.void
  )

  private drafts(written: ReadonlyArray<Written>): ReadonlyArray<RuneDraft> {
    return written.flatMap(({ key, text }) => this.writers.get(key)!(text) ?? [])
  }

  /** Writes text events in order. */
  write(deltas: ReadonlyArray<Delta>): Effect.Effect<void> {
    const drafts: Array<RuneDraft> = []
    for (let from = 0, to = 0; from < deltas.length; from = to) {
      const place = placeOf(deltas[from]!)
      while (to < deltas.length && placeOf(deltas[to]!) === place) to++
      const some = deltas.slice(from, to)
      // text of the model ends here, unless the new text is a line of a program: that can come in the middle of a word
      if (place === "lines") drafts.push(...this.printed(some))
      else if (place === THOUGHT) drafts.push(...this.drafts(this.text.restOf(ANSWER)), ...this.thought(some))
      else drafts.push(...this.drafts(this.text.restOf(THOUGHT)), ...this.answered(some))
    }
    return this.log.appendLazy(drafts)
  }

  private thought(thoughts: ReadonlyArray<Delta>): ReadonlyArray<RuneDraft> {
    const { agent, conversation } = this.setting
    const { turnId } = this.live
    if (turnId !== this.thinking.turnId) this.thinking = { turnId, after: this.said.get(THOUGHT) ?? 0, isCut: false }
    const write = (text: string): RuneDraft | undefined => {
      const kept = this.keptOf(text)
      if (kept === "") return undefined
      const payload = { runId: this.runId, text: kept, ...this.heardSaid(THOUGHT) }
      return { stream: conversation, kind: "run.thought", actor: workerName(agent), payload }
    }
    return this.written(THOUGHT, thoughts.map(({ text }) => text).join(""), write)
  }

  /**
   * The part of a redacted piece of thinking that still fits into the turn's limit. A note says that the rest is
   * omitted.
   */
  private keptOf(text: string): string {
    const { after, isCut } = this.thinking
    const gone = (this.said.get(THOUGHT) ?? 0) - this.text.heldOf(THOUGHT) - after
    if (gone <= MAX_THOUGHT) return LogExcerpt.text(text, MAX_LINES)
    // for an adopted run, the log may already contain this note
    if (isCut || (this.told?.saidOf(THOUGHT) ?? 0) - after > MAX_THOUGHT) return ""
    this.thinking = { ...this.thinking, isCut: true }
    const left = Math.max(0, MAX_THOUGHT - (gone - text.length))
    return `${LogExcerpt.text(text.slice(0, left), MAX_LINES)}${LEFT_OUT}`
  }

  private printed(lines: ReadonlyArray<Delta>): ReadonlyArray<RuneDraft> {
    const { told } = this
    if (lines.length === 0) return []
    if (!this.live.turns) {
      for (const { stream, text } of lines) if (stream === "stdout") this.lines += `${text}\n`
      if (this.lines.length > 2 * MAX_ANSWER) this.lines = LogExcerpt.text(this.lines, MAX_ANSWER)
    }
    const output = this.outputs
    const taken = (some: ReadonlyArray<Delta>) =>
      output.take(some.map(({ text, ...line }) => ({ ...line, text: this.shown(line.stream, text) })))
    // lines that are already in the log count towards the limit, but are not written again
    if (told !== undefined) taken(lines.filter((line) => told.has(line)))
    return taken(lines.filter((line) => told?.has(line) !== true))
  }

  /** Redacts a line. For a run without turns, the user sees its newest line as its status. */
  private shown(stream: Delta["stream"], text: string): string {
    const line = this.text.line(stream, text)
    if (!this.live.turns) this.live.show(`${line}\n`)
    return line
  }

  private answered(said: ReadonlyArray<Delta>): ReadonlyArray<RuneDraft> {
    const { agent, conversation } = this.setting
    const { turnId } = this.live
    if (said.length === 0 || turnId === undefined) return []
    const words = said.map(({ text }) => text).join("")
    this.live.say(words)
    const write = (text: string): RuneDraft => {
      this.live.show(text)
      const content = LogExcerpt.text(text, MAX_LINES)
      const event = { _tag: "assistant_delta", turnId, content }
      return {
        stream: conversation,
        kind: "turn.assistant_delta",
        actor: turnName(agent),
        from: "streaming",
        to: "streaming",
        trigger: "assistant_delta",
        payload: { turn_id: turnId, content, event, ...this.heardSaid(ANSWER) }
      }
    }
    return this.written(ANSWER, words, write)
  }

  progress(callId: string, stream: "stdout" | "stderr", whole: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { agent, conversation } = this.setting
      const key = `${callId}/${stream}`
      const write = (text: string): RuneDraft => {
        const chunk = LogExcerpt.text(text, MAX_CHUNK)
        const event = { _tag: "progress_update", callId, stream, chunk }
        return {
          stream: conversation,
          kind: "tool.progress",
          actor: toolName(agent, callId),
          from: "executing",
          to: "executing",
          trigger: "progress_update",
          payload: { call_id: callId, stream, chunk, event, ...this.heardSaid(key) }
        }
      }
      return this.log.appendLazy(this.written(key, whole, write))
    })
  }

  private written(key: string, words: string, write: Write): ReadonlyArray<RuneDraft> {
    this.writers.set(key, write)
    const text = this.text.push(key, this.unwritten(key, words))
    return text === "" ? [] : this.drafts([{ key, text }])
  }

  /** Deletes the sources of a call that has its result. */
  forget(callId: string): void {
    for (const key of [`${callId}/stdout`, `${callId}/stderr`]) {
      this.text.forget(key)
      this.writers.delete(key)
    }
  }

  /** Writes all remaining text. Returns the lines of a command. */
  readonly end: Effect.Effect<string> = Effect.gen({ self: this }, function* () {
    yield* this.rest
    this.text.forget()
    this.writers.clear()
    const left = this.output?.end() ?? []
    this.output = undefined
    if (left.length > 0) yield* this.log.appendLazy(left)
    const { lines } = this
    // not reset when a run starts, because a run may print lines before its start is recorded
    this.lines = ""
    return lines
  })
}
