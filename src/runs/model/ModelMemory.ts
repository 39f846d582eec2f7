/**
 * ModelMemory: how full the context of a run's model is, and the compaction of its conversation.
 *
 * Guarantees: the size is counted before a request: what the last answer reported, and an estimate
 * of what was added; the limit is the config's, or what the provider said when it refused; a
 * compaction that fails leaves the history as it is; the history is replaced at once or not at all.
 */
import { Effect } from "effect"
import type * as Config from "../../config/BackendConfig.ts"
import { HistoryReplay } from "../HistoryReplay.ts"
import type { RunEvent } from "../Backend.ts"
import { type Answer, ask, type AskOptions } from "./ModelAsk.ts"
import * as Compaction from "./ModelCompaction.ts"
import type { ModelSession } from "./ModelSession.ts"
import { type Message, ProviderError } from "./Provider.ts"
import { definitionsOf, type Tool } from "./Tool.ts"

export interface MemoryOptions extends Omit<AskOptions, "request" | "retelling"> {
  readonly config: Pick<Config.ModelBackend, "contextTokens" | "maxOutputTokens">
  readonly session: ModelSession
  readonly system: string
  readonly tools: () => ReadonlyMap<string, Tool>
}

/** Bytes of a token before a provider has reported any, and the bounds of what it may report. */
const BYTES = 3.5
const LEAST_BYTES = 1
const MOST_BYTES = 8
/** The share of the room that is taken before it is made. */
const FULL = 0.9
/** The least context that a provider is believed to have: a smaller number in its words is another one. */
const LEAST = 1_000

/** The patterns in which providers tell their limit. */
const LIMITS = [
  /tokens? > (\d+) (?:token )?maximum/i,
  /maximum context length (?:is|of) (\d+)/i,
  /context (?:window|size|length)(?: limit)?(?: is| of|:)? \(?(\d+)/i,
  /exceeds? (?:the )?(?:available )?context size \(?(\d+)/i
]

/** The context that a refusal names, in tokens. */
export const limitIn = (message: string): number | undefined => {
  const plain = message.replaceAll(/(?<=\d)[,_](?=\d)/g, "")
  for (const pattern of LIMITS) {
    const found = Number(pattern.exec(plain)?.[1])
    if (found >= LEAST) return found
  }
  return undefined
}

/** A file counts as a text of so many bytes: an image takes about 1,500 tokens, whatever its size. */
const FILE_BYTES = 1_500 * BYTES

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value) ?? "")

const bytesOfMessage = (message: Message): number => {
  if (message.role !== "user" || message.files === undefined) return bytesOf(message)
  const { files, ...rest } = message
  return bytesOf(rest) + files.length * FILE_BYTES
}

const unsummarised = (why: string): ProviderError =>
  new ProviderError({
    kind: "garbage",
    message: `the conversation could not be compacted: ${why}`,
    remedy: "wait; if it goes on, name another model, or set resume to false for a new conversation"
  })

export class ModelMemory {
  private readonly options: MemoryOptions
  private readonly sizes = new WeakMap<Message, number>()
  /** The limit that a refusal has shown. */
  private learned: number | undefined
  private reported: { readonly tokens: number; readonly bytes: number } | undefined

  constructor(options: MemoryOptions) {
    this.options = options
  }

  /** Counts an answer: its request, and itself, as long as the history ends with it. */
  answered({ parts, usage }: Answer, asked: ReadonlyArray<Message>): void {
    let tokens = 0
    for (const event of usage) if (event._tag === "Usage") tokens += event.inputTokens + event.outputTokens
    if (tokens > 0) this.reported = { tokens, bytes: this.bytes(asked) + bytesOf(parts) }
  }

  /** Makes room where the next request would not fit any more. */
  get ahead(): Effect.Effect<void, ProviderError> {
    return Effect.suspend(() => {
      const { room } = this
      return room === undefined || this.tokens(this.history) <= room * FULL ? Effect.void : Effect.asVoid(this.compact)
    })
  }

  /** Makes room after the provider has refused a request as too long; false: there is none to make. */
  after(error: ProviderError): Effect.Effect<boolean, ProviderError> {
    return Effect.suspend(() => {
      const told = limitIn(error.message)
      const size = this.tokens(this.history)
      // an estimate that the provider has just refuted tells less than its own words
      this.learned = told ?? Math.min(this.learned ?? size, size)
      if (told !== undefined && size < told) this.reported = { tokens: told, bytes: this.bytes(this.history) }
      return this.compact
    })
  }

  /** Bytes of what goes with each request. */
  private get fixed(): number {
    return bytesOf([this.options.system, definitionsOf(this.options.tools())])
  }

  private get history(): ReadonlyArray<Message> {
    return this.options.session.history()
  }

  /** Tokens that a request may take, beside its answer; undefined: nobody has said. */
  private get room(): number | undefined {
    const { contextTokens, maxOutputTokens } = this.options.config
    const context = Math.min(contextTokens ?? Number.POSITIVE_INFINITY, this.learned ?? Number.POSITIVE_INFINITY)
    return Number.isFinite(context) ? context - Math.min(maxOutputTokens, context / 2) : undefined
  }

  private get perToken(): number {
    if (this.reported === undefined) return BYTES
    return Math.min(MOST_BYTES, Math.max(LEAST_BYTES, this.reported.bytes / this.reported.tokens))
  }

  private size(message: Message): number {
    const known = this.sizes.get(message)
    if (known !== undefined) return known
    const size = bytesOfMessage(message)
    this.sizes.set(message, size)
    return size
  }

  private bytes(history: ReadonlyArray<Message>): number {
    return history.reduce((sum, message) => sum + this.size(message), this.fixed)
  }

  private tokens(history: ReadonlyArray<Message>): number {
    const { tokens, bytes } = this.reported ?? { tokens: 0, bytes: 0 }
    return Math.max(0, Math.round(tokens + (this.bytes(history) - bytes) / this.perToken))
  }

  private get compact(): Effect.Effect<boolean, ProviderError> {
    return Effect.gen({ self: this }, function* () {
      const { emit, session } = this.options
      const { history, perToken } = this
      const from = this.tokens(history)
      const room = this.room ?? from
      const size = (message: Message) => this.size(message) / perToken
      yield* emit({ _tag: "Notice", text: `makes room in its conversation: about ${from} tokens` })
      const made =
        Compaction.byResults(history, room, size, this.fixed / perToken) ?? (yield* this.summarised(room, size))
      if (made === undefined || this.bytes(made.history) >= this.bytes(history)) return false
      const { cutResults, summarised } = made
      const told: RunEvent = { _tag: "Compacted", from, to: this.tokens(made.history), cutResults, summarised }
      yield* Effect.uninterruptible(Effect.andThen(session.replace(made.history), emit(told)))
      return true
    })
  }

  private summarised(room: number, size: Compaction.Size) {
    return Effect.gen({ self: this }, function* () {
      const { config, emit, session, system: _system, tools: _tools, ...rest } = this.options
      const parts = Compaction.part(session.history(), room, size)
      const characters = Math.floor(room * this.perToken)
      const most = Math.min(config.maxOutputTokens, Math.max(256, Math.floor(room / 8)))
      const request = Compaction.question(parts, characters, most)
      if (request === undefined) return undefined
      // nobody asked for these words: they are no answer of the turn
      const heard = (event: RunEvent) => (event._tag === "Delta" ? Effect.void : emit(event))
      const answer = yield* ask({ ...rest, emit: heard, request, retelling: new HistoryReplay() })
      yield* Effect.forEach(answer.usage, emit, { discard: true })
      const text = answer.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("")
      if (answer.stop === "refusal" || answer.stop === "filter") return yield* unsummarised("the model refused")
      if (text.trim() === "") return yield* unsummarised("the model gave no summary")
      return Compaction.bySummary(parts, text, characters)
    })
  }
}
