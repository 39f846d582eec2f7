/**
 * ModelMemory: measures how full the model's context is, and compacts the conversation.
 *
 * Guarantees: the size of the context is determined before each request: the usage that the last answer reported, plus
 * an estimate for the text added since. The limit comes from the config, or from the message with which the provider
 * rejected a request. A compaction that fails leaves the history unchanged. The history is replaced completely or not
 * at all.
 */
import { Effect } from "effect"
import type * as Config from "../config/BackendConfig.ts"
import { ReplayFilter } from "../runs/ReplayFilter.ts"
import type { RunEvent } from "../runs/Backend.ts"
import { type Answer, ask, type AskOptions } from "./ProviderRequest.ts"
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

/**
 * Number of bytes per token that is assumed until a provider has reported usage, and the limits of the measured number.
 */
const BYTES = 3.5
const LEAST_BYTES = 1
const MOST_BYTES = 8
/** The part of the available context that may be used before the history is compacted. */
const FULL = 0.9
/**
 * The smallest context size that is believed when a provider's message contains it: a smaller number means something
 * else.
 */
const LEAST = 1_000

/** Patterns of provider messages that contain the context limit. */
const LIMITS = [
  /tokens? > (\d+) (?:token )?maximum/i,
  /maximum context length (?:is|of) (\d+)/i,
  /context (?:window|size|length)(?: limit)?(?: is| of|:)? \(?(\d+)/i,
  /exceeds? (?:the )?(?:available )?context size \(?(\d+)/i
]

/** Returns the context size that a provider names when it rejects a request, in tokens; undefined if it names none. */
export const limitIn = (message: string): number | undefined => {
  const plain = message.replaceAll(/(?<=\d)[,_](?=\d)/g, "")
  for (const pattern of LIMITS) {
    const found = Number(pattern.exec(plain)?.[1])
    if (found >= LEAST) return found
  }
  return undefined
}

/** A file is estimated as this many bytes of text: an image takes about 1,500 tokens, whatever its size. */
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
    remedy: "wait; if this continues, name another model, or set resume to false for a new conversation"
  })

export class ModelMemory {
  private readonly options: MemoryOptions
  private readonly sizes = new WeakMap<Message, number>()
  /** Context size that the provider named when it rejected a request, tokens. */
  private learned: number | undefined
  private reported: { readonly tokens: number; readonly bytes: number } | undefined

  constructor(options: MemoryOptions) {
    this.options = options
  }

  /** Records how many tokens a request and its answer took. Valid as long as the history ends with that answer. */
  answered({ parts, usage }: Answer, asked: ReadonlyArray<Message>): void {
    let tokens = 0
    for (const event of usage) if (event._tag === "Usage") tokens += event.inputTokens + event.outputTokens
    if (tokens > 0) this.reported = { tokens, bytes: this.bytes(asked) + bytesOf(parts) }
  }

  /** Compacts the history if the next request would not fit. */
  get ahead(): Effect.Effect<void, ProviderError> {
    return Effect.suspend(() => {
      const { room } = this
      return room === undefined || this.tokens(this.history) <= room * FULL ? Effect.void : Effect.asVoid(this.compact)
    })
  }

  /**
   * Compacts the history after the provider has rejected a request as too long. Returns false if that is not possible.
   */
  after(error: ProviderError): Effect.Effect<boolean, ProviderError> {
    return Effect.suspend(() => {
      const told = limitIn(error.message)
      const size = this.tokens(this.history)
      // the rejected request proves that the estimate is wrong, so the provider's own number is preferred
      this.learned = told ?? Math.min(this.learned ?? size, size)
      if (told !== undefined && size < told) this.reported = { tokens: told, bytes: this.bytes(this.history) }
      return this.compact
    })
  }

  /** Number of bytes in the system prompt and the tools, which each request contains. */
  private get fixed(): number {
    return bytesOf([this.options.system, definitionsOf(this.options.tools())])
  }

  private get history(): ReadonlyArray<Message> {
    return this.options.session.history()
  }

  /** How many tokens a request can use besides its answer; undefined if the limit is unknown. */
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
      // The text of the summary is not part of the turn's answer.
      const heard = (event: RunEvent) => (event._tag === "Delta" ? Effect.void : emit(event))
      const answer = yield* ask({ ...rest, emit: heard, request, retelling: new ReplayFilter() })
      yield* Effect.forEach(answer.usage, emit, { discard: true })
      const text = answer.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("")
      if (answer.stop === "refusal" || answer.stop === "filter") return yield* unsummarised("the model refused")
      if (text.trim() === "") return yield* unsummarised("the model gave no summary")
      return Compaction.bySummary(parts, text, characters)
    })
  }
}
