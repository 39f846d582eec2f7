/**
 * ClaudeUsage: turns the usage that Claude Code reports into differences. Pure.
 *
 * Guarantees: no token and no cost is emitted twice, however often a message's usage is repeated. Usage is counted by
 * message id, and only the increase is emitted. Tokens are emitted when a request to the model has ended; the tokens of
 * subagents, when they are reported. The usage of an interrupted request is emitted at the turn's end. The cost comes
 * with the result. The sums of a result can include earlier processes of the session, and can lack requests that were
 * cut off. Usage since the last result is therefore taken from the field that reports exactly that, if it exists.
 */
import type { RunEvent } from "../Backend.ts"
import { type ClaudeRecord, inner, number, text } from "./ClaudeRecord.ts"

/** Token counts by kind; `input` does not include cached tokens. */
interface Tokens {
  readonly input: number
  readonly read: number
  readonly write: number
  readonly output: number
}
const NONE: Tokens = { input: 0, read: 0, write: 0, output: 0 }
const FIELDS = ["input", "read", "write", "output"] as const

interface Message {
  readonly model: string
  seen: Tokens
  told: Tokens
}

/** State of the usage. Stored with a checkpoint, for a daemon that resumes the process. */
export interface KnownUsage {
  readonly messages: ReadonlyArray<readonly [string, Message]>
  readonly coming: string
  readonly unnamed: number
  readonly told: ReadonlyArray<readonly [string, Tokens]>
  readonly sums: ReadonlyArray<readonly [string, Spent]>
  readonly usd: number
}

/** Maximum number of messages whose usage is kept since the last result. */
const MAX_MESSAGES = 256
const MAX_MODELS = 32

const count = (record: ClaudeRecord, key: string) => Math.max(0, number(record, key) ?? 0)

const each = (make: (field: keyof Tokens) => number): Tokens => ({
  input: make("input"),
  read: make("read"),
  write: make("write"),
  output: make("output")
})

const tokensOf = (usage: ClaudeRecord): Tokens => ({
  input: count(usage, "input_tokens"),
  read: count(usage, "cache_read_input_tokens"),
  write: count(usage, "cache_creation_input_tokens"),
  output: count(usage, "output_tokens")
})

interface Spent {
  readonly tokens: Tokens
  readonly usd: number
}
const NOTHING: Spent = { tokens: NONE, usd: 0 }

const modelsOf = (models: ClaudeRecord): ReadonlyMap<string, Spent> =>
  new Map(
    Object.keys(models)
      .slice(0, MAX_MODELS)
      .map((name) => {
        const used = inner(models, name)
        const tokens: Tokens = {
          input: count(used, "inputTokens"),
          read: count(used, "cacheReadInputTokens"),
          write: count(used, "cacheCreationInputTokens"),
          output: count(used, "outputTokens")
        }
        return [name, { tokens, usd: count(used, "costUSD") }]
      })
  )

/** Returns by how much a sum has grown. A sum that became smaller was counted from zero again. */
const since = (sum: number, before: number) => (sum < before ? sum : sum - before)

const add = (a: Tokens, b: Tokens): Tokens => each((field) => a[field] + b[field])
const less = (a: Tokens, b: Tokens): Tokens => each((field) => Math.max(0, a[field] - b[field]))
const isNothing = (tokens: Tokens) => FIELDS.every((field) => tokens[field] === 0)

const eventOf = (model: string, { input, output, read, write }: Tokens, usd: number): RunEvent => ({
  _tag: "Usage",
  inputTokens: input + read + write,
  outputTokens: output,
  ...(read === 0 ? {} : { cacheRead: read }),
  ...(write === 0 ? {} : { cacheWrite: write }),
  ...(model === "" ? {} : { model }),
  ...(usd === 0 ? {} : { usd })
})

export class ClaudeUsage {
  /** Usage of the messages since the last result, by message id. */
  private readonly messages: Map<string, Message>
  /** Id of the message that is arriving, without messages of subagents. */
  private coming: string
  private unnamed: number
  /** Tokens that were emitted since the last result, by model. */
  private readonly told: Map<string, Tokens>
  /** The sums in the last result, by model. */
  private sums: ReadonlyMap<string, Spent>
  private usd: number

  constructor({ coming = "", messages = [], sums = [], told = [], unnamed = 0, usd = 0 }: Partial<KnownUsage> = {}) {
    this.messages = new Map(messages)
    this.coming = coming
    this.unnamed = unnamed
    this.told = new Map(told)
    this.sums = new Map(sums)
    this.usd = usd
  }

  get known(): KnownUsage {
    const { coming, messages, sums, told, unnamed, usd } = this
    return { coming, messages: [...messages], sums: [...sums], told: [...told], unnamed, usd }
  }

  /** Handles a `stream_event` that does not come from a subagent. */
  streamed(event: ClaudeRecord): ReadonlyArray<RunEvent> {
    if (event["type"] === "message_start") {
      const message = inner(event, "message")
      this.coming = text(message, "id") || `unnamed ${++this.unnamed}`
      this.see(this.coming, text(message, "model"), inner(message, "usage"))
    }
    if (event["type"] !== "message_delta") return []
    const id = this.coming || `unnamed ${++this.unnamed}`
    this.see(id, "", inner(event, "usage"))
    return this.rest(id)
  }

  /**
   * Handles a complete message, from a subagent or from a CLI that does not stream. A streamed message is already
   * counted.
   */
  message(message: ClaudeRecord): ReadonlyArray<RunEvent> {
    const id = text(message, "id")
    if (id === "" || !("usage" in message)) return []
    this.see(id, text(message, "model"), inner(message, "usage"))
    return id === this.coming ? [] : this.rest(id)
  }

  /** Emits the remaining usage of requests that were cut off. */
  cut(): ReadonlyArray<RunEvent> {
    this.coming = ""
    return [...this.messages.keys()].flatMap((id) => this.rest(id))
  }

  result(record: ClaudeRecord): ReadonlyArray<RunEvent> {
    const cut = this.cut()
    const sums = modelsOf(inner(record, "modelUsage"))
    const usd = count(record, "total_cost_usd")
    const isSaid = "model_usage_since_last_result" in record
    const spent = isSaid ? modelsOf(inner(record, "model_usage_since_last_result")) : this.sinceLast(sums)
    const priced = [...spent.values()].reduce((sum, one) => sum + one.usd, 0)
    const rest = isSaid ? 0 : Math.max(0, since(usd, this.usd) - priced)
    const events = this.untold(spent, rest)
    this.sums = sums
    this.usd = usd
    this.told.clear()
    this.messages.clear()
    return [...cut, ...events]
  }

  private sinceLast(sums: ReadonlyMap<string, Spent>): ReadonlyMap<string, Spent> {
    return new Map(
      [...sums].map(([model, { tokens, usd }]) => {
        const before = this.sums.get(model) ?? NOTHING
        const now = each((field) => since(tokens[field], before.tokens[field]))
        return [model, { tokens: now, usd: since(usd, before.usd) }]
      })
    )
  }

  /** Emits the usage that no message reported. A model can have another name here than in its messages. */
  private untold(spent: ReadonlyMap<string, Spent>, unnamed: number): ReadonlyArray<RunEvent> {
    const all = [...spent.values()].reduce((sum, { tokens }) => add(sum, tokens), NONE)
    let left = less(all, [...this.told.values()].reduce(add, NONE))
    const only = spent.size === 1 ? unnamed : 0
    const events = [...spent].flatMap(([model, { tokens, usd }]) => {
      const more = less(tokens, this.told.get(model) ?? NONE)
      const now = each((field) => Math.min(more[field], left[field]))
      left = less(left, now)
      return isNothing(now) && usd + only === 0 ? [] : [eventOf(model, now, usd + only)]
    })
    return unnamed === only ? events : [...events, eventOf("", NONE, unnamed)]
  }

  private see(id: string, model: string, usage: ClaudeRecord): void {
    const now = tokensOf(usage)
    const known = this.messages.get(id)
    if (known !== undefined) {
      known.seen = each((field) => Math.max(known.seen[field], now[field]))
      return
    }
    this.messages.set(id, { model, seen: now, told: NONE })
    const [oldest] = this.messages.keys()
    if (this.messages.size > MAX_MESSAGES && oldest !== undefined) this.messages.delete(oldest)
  }

  /** Emits the part of a message's usage that has not been emitted yet. */
  private rest(id: string): ReadonlyArray<RunEvent> {
    const message = this.messages.get(id)
    if (message === undefined) return []
    const { model, seen, told } = message
    const now = less(seen, told)
    message.told = seen
    if (isNothing(now)) return []
    this.told.set(model, add(this.told.get(model) ?? NONE, now))
    const used = seen.input + seen.read + seen.write
    return [{ ...eventOf(model, now, 0), ...(id === this.coming ? { context: { used } } : {}) }]
  }
}
