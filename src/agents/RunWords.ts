/**
 * RunWords: what a run says in passing (the words of its answers and thoughts, the output of its calls and of its programs), on the
 * way into the log's lazy kinds.
 *
 * Guarantees: secrets are taken out, also where one comes in several chunks; words that are held back for that are
 * written within a moment, and before anything else that the run tells; of a run that was taken up nothing is
 * written that the log has.
 */
import { Effect } from "effect"
import type { RunEvent } from "../backends/Backend.ts"
import type { EventLog } from "../event-log/EventLog.ts"
import type { Redact } from "../event-log/Redact.ts"
import type { RuneDraft } from "../event-log/Rune.ts"
import type { AgentSetting } from "./AgentSetting.ts"
import { toolName, turnName, workerName } from "./AgentStates.ts"
import * as Excerpt from "./Excerpt.ts"
import type { LiveRun } from "./LiveRun.ts"
import { type KnownOutput, Output } from "./Output.ts"
import { RunText, type Written } from "./RunText.ts"
import type { Heard, Told } from "./Told.ts"

type Delta = Extract<RunEvent, { _tag: "Delta" }>

/** Longest answer of a turn that is kept, bytes. */
export const MAX_ANSWER = 256 * 1024
export const MAX_LINES = 128 * 1024
const MAX_CHUNK = 128 * 1024
/** How long words are held back for what may follow them. */
const HELD = "200 millis"

/** Knowledge of what a run has said. */
export interface KnownWords {
  readonly answer: number
  readonly thought: number
  readonly lines: string
  readonly output: KnownOutput | undefined
}

/** The words of the turn. */
const ANSWER = "answer"
/** The thoughts of the run's model. */
const THOUGHT = "thought"
/** Longest thoughts of a run that are kept, characters. */
const MAX_THOUGHT = 256 * 1024

export class RunWords {
  private readonly setting: AgentSetting["Service"]
  private readonly log: EventLog["Service"]
  private readonly live: LiveRun
  private readonly text: RunText
  private output: Output | undefined = undefined
  /** How to write what was held back, by where it belongs. */
  private readonly writers = new Map<string, (text: string) => RuneDraft>()
  /** Rises with all that is heard. */
  private beat = 0
  private isFlushing = false
  /** The lines of a command, from the first: its answer. */
  private lines = ""
  private runId = ""
  private told: Told | undefined = undefined
  /** Characters that the run has said, by where they belong. */
  private said = new Map<string, number>()
  /** True where what the run tells has places. */
  isPlaced = false

  constructor(
    {
      log,
      redact,
      setting
    }: {
      readonly log: EventLog["Service"]
      readonly redact: Redact["Service"]
      readonly setting: AgentSetting["Service"]
    },
    live: LiveRun
  ) {
    this.setting = setting
    this.log = log
    this.live = live
    this.text = new RunText(redact)
  }

  /** A run is heard for the first time. `told`: known of the log for one that was taken up. */
  begin(runId: string, told: Told | undefined): void {
    this.runId = runId
    this.told = told
    this.said = new Map()
    this.isPlaced = false
  }

  /** Nothing is held back. */
  get known(): KnownWords {
    const count = (key: string) => this.said.get(key) ?? 0
    return { answer: count(ANSWER), thought: count(THOUGHT), lines: this.lines, output: this.output?.known }
  }

  recalls({ answer, lines, output, thought }: KnownWords): void {
    this.said.set(ANSWER, answer)
    this.said.set(THOUGHT, thought)
    this.lines = lines
    if (output !== undefined) this.outputs.recalls(output)
  }

  private get outputs(): Output {
    const { agent, config, conversation } = this.setting
    return (this.output ??= new Output(conversation, workerName(agent), this.runId, config().output))
  }

  /** Something was heard. */
  heard(): void {
    this.beat += 1
  }

  /** Characters of this source that are written once this is. */
  private heardSaid(key: string): { readonly heard?: Heard } {
    if (!this.isPlaced) return {}
    const count = (this.said.get(key) ?? 0) - this.text.heldOf(key)
    return { heard: { run: this.runId, said: { [key]: count } } }
  }

  /** Takes words of the source; gives those that the log has not. */
  private unwritten(key: string, words: string): string {
    const before = this.said.get(key) ?? 0
    this.said.set(key, before + words.length)
    return words.slice(Math.max(0, (this.told?.saidOf(key) ?? 0) - before))
  }

  /** Lets go of words that are held back, for as long as there are some: a child of the run's fiber. */
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

  /** Writes all that is held back. */
  readonly rest: Effect.Effect<void> = Effect.suspend(() =>
    this.text.isOpen ? this.log.appendLazy(this.drafts(this.text.rest())) : Effect.void
  )

  private drafts(written: ReadonlyArray<Written>): ReadonlyArray<RuneDraft> {
    return written.map(({ key, text }) => this.writers.get(key)!(text))
  }

  write(deltas: ReadonlyArray<Delta>): Effect.Effect<void> {
    const of = (...streams: ReadonlyArray<Delta["stream"]>) => deltas.filter(({ stream }) => streams.includes(stream))
    const [lines, thoughts, said] = [of("stdout", "stderr"), of("thinking"), of("assistant")]
    return this.log.appendLazy([...this.printed(lines), ...this.thought(thoughts), ...this.answered(said)])
  }

  private thought(thoughts: ReadonlyArray<Delta>): ReadonlyArray<RuneDraft> {
    const left = MAX_THOUGHT - (this.said.get(THOUGHT) ?? 0)
    const words = thoughts
      .map(({ text }) => text)
      .join("")
      .slice(0, Math.max(0, left))
    if (words === "") return []
    const { agent, conversation } = this.setting
    const write = (text: string): RuneDraft => ({
      stream: conversation,
      kind: "run.thought",
      actor: workerName(agent),
      payload: { runId: this.runId, text: Excerpt.text(text, MAX_LINES), ...this.heardSaid(THOUGHT) }
    })
    return this.written(THOUGHT, words, write)
  }

  private printed(lines: ReadonlyArray<Delta>): ReadonlyArray<RuneDraft> {
    const { told } = this
    if (lines.length === 0) return []
    if (!this.live.turns) {
      for (const { stream, text } of lines) if (stream === "stdout") this.lines += `${text}\n`
      if (this.lines.length > 2 * MAX_ANSWER) this.lines = Excerpt.text(this.lines, MAX_ANSWER)
    }
    const output = this.outputs
    const taken = (some: ReadonlyArray<Delta>) =>
      output.take(some.map(({ text, ...line }) => ({ ...line, text: this.shown(line.stream, text) })))
    // what the log has counts, and is not written again
    if (told !== undefined) taken(lines.filter((line) => told.has(line)))
    return taken(lines.filter((line) => told?.has(line) !== true))
  }

  /** A line without secrets; the newest is what a run without turns does now. */
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
      const content = Excerpt.text(text, MAX_LINES)
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

  /** A call has put out this. */
  progress(callId: string, stream: "stdout" | "stderr", whole: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { agent, conversation } = this.setting
      const key = `${callId}/${stream}`
      const write = (text: string): RuneDraft => {
        const chunk = Excerpt.text(text, MAX_CHUNK)
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

  private written(key: string, words: string, write: (text: string) => RuneDraft): ReadonlyArray<RuneDraft> {
    this.writers.set(key, write)
    const text = this.text.push(key, this.unwritten(key, words))
    return text === "" ? [] : [write(text)]
  }

  /** The call has its result. */
  forget(callId: string): void {
    for (const key of [`${callId}/stdout`, `${callId}/stderr`]) {
      this.text.forget(key)
      this.writers.delete(key)
    }
  }

  /** The run is over: all is written. Answers with the lines of a command. */
  readonly end: Effect.Effect<string> = Effect.gen({ self: this }, function* () {
    yield* this.rest
    this.text.forget()
    this.writers.clear()
    const left = this.output?.end() ?? []
    this.output = undefined
    if (left.length > 0) yield* this.log.appendLazy(left)
    const { lines } = this
    // not where a run starts: what it says first comes before it counts as started
    this.lines = ""
    return lines
  })
}
