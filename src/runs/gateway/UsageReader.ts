/**
 * UsageReader: reads the tokens of one answer that passes the gateway, streamed or whole. Understands Anthropic's
 * messages, OpenAI's chat completions and responses, and Google's contents.
 *
 * Guarantees: Usage that is reported twice, or as a growing sum, counts once. A value that is not a number, or is too
 * large, is ignored. A line or body that is too long is not read. If an answer reports no tokens, they are estimated
 * and counted separately. Imports nothing from Effect.
 */
import { MessageLines } from "../../config/LineSplitter.ts"
import { ESTIMATED } from "./Estimated.ts"

/** Tokens of an answer. Cache tokens are part of the input. */
export interface Tokens {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
}

const NONE: Tokens = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }
const FIELDS = ["input", "output", "cacheRead", "cacheWrite"] as const

const MAX_LINE = 4 * 1024 * 1024
/** Maximum plausible number of tokens: more than one request can use. */
const MOST = 1e9

type Json = { readonly [name: string]: unknown }

/** The same test as Effect's `isReadonlyObject`. The gateway's process contains nothing of Effect. */
export const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const object = (value: unknown): Json | undefined => (isObject(value) ? value : undefined)

const count = (of: Json | undefined, ...names: ReadonlyArray<string>): number => {
  for (const name of names) {
    const value = of?.[name]
    if (typeof value === "number" && value > 0 && value <= MOST) return value
  }
  return 0
}

/** Pattern for the model's text in a line. */
const SAID =
  /"(?:content|text|arguments|partial_json|thinking|reasoning|reasoning_content|refusal|delta)"\s*:\s*"([^"\\]*(?:\\.[^"\\]*)*)"/gu
const MAX_SAID = 64 * 1024
/** Estimated number of bytes of text per token. */
const TOKEN = 4

const saidIn = (line: string): number =>
  line.length > MAX_SAID
    ? line.length
    : [...line.matchAll(SAID)].reduce((sum, [, text = ""]) => sum + Buffer.byteLength(text), 0)

const parsed = (text: string): Json | undefined => {
  if (!/"usage/i.test(text)) return undefined
  try {
    return object(JSON.parse(text))
  } catch {
    return undefined
  }
}

/** The tokens that a value reports; undefined if it reports none. */
const tokensIn = (value: Json): Tokens | undefined => {
  const google = object(value["usageMetadata"])
  if (google !== undefined) {
    const output = count(google, "candidatesTokenCount") + count(google, "thoughtsTokenCount")
    return {
      ...NONE,
      input: count(google, "promptTokenCount"),
      output,
      cacheRead: count(google, "cachedContentTokenCount")
    }
  }
  const inner = object(value["message"]) ?? object(value["response"])
  const usage = object(value["usage"]) ?? object(inner?.["usage"])
  if (usage === undefined) return undefined
  const output = count(usage, "output_tokens", "completion_tokens")
  const details = object(usage["input_tokens_details"]) ?? object(usage["prompt_tokens_details"])
  const input = count(usage, "input_tokens", "prompt_tokens")
  if (details !== undefined || "prompt_tokens" in usage)
    return { ...NONE, input, output, cacheRead: count(details, "cached_tokens") }
  const cacheRead = count(usage, "cache_read_input_tokens")
  const cacheWrite = count(usage, "cache_creation_input_tokens")
  return { input: input + cacheRead + cacheWrite, output, cacheRead, cacheWrite }
}

const modelIn = (value: Json): string => {
  const inner = object(value["message"]) ?? object(value["response"])
  const model = value["model"] ?? inner?.["model"] ?? value["modelVersion"]
  return typeof model === "string" ? model.slice(0, 100) : ""
}

export class UsageReader {
  private readonly tell: (model: string, more: Tokens) => void
  private readonly lines = new MessageLines(MAX_LINE)
  private model = ""
  private seen = NONE
  /** True if the answer has reported its total usage. */
  private isTold = false
  /** Number of bytes of text that the model itself wrote. */
  private said = 0

  /** Creates the reader. `tell` receives each increase of the token counts. */
  constructor(tell: (model: string, more: Tokens) => void) {
    this.tell = tell
  }

  take(chunk: Uint8Array): void {
    for (const line of this.lines.push(chunk)) this.line(line)
  }

  /**
   * Called when the answer has ended. `sent`: number of bytes of the request. Tokens that the answer did not report are
   * estimated.
   */
  end(sent?: number): void {
    for (const line of this.lines.end()) this.line(line)
    if (this.whole !== "") this.value(parsed(this.whole))
    this.whole = ""
    if (sent === undefined || this.isTold) return
    this.isTold = true
    const { said, seen } = this
    const input = seen.input > 0 ? 0 : Math.ceil(sent / TOKEN)
    const output = Math.max(0, Math.ceil(said / TOKEN) - seen.output)
    if (input + output > 0) this.tell(`${this.model}${ESTIMATED}`, { ...NONE, input, output })
  }

  /** Lines that belong to no stream, but to a body that spans several lines. */
  private whole = ""

  private line(line: string | undefined): void {
    if (line === undefined) return
    this.said += saidIn(line)
    if (this.model === "") this.model = /"model(?:Version)?"\s*:\s*"([^"\\]{1,100})"/u.exec(line)?.[1] ?? ""
    if (line.startsWith("data:")) return this.value(parsed(line.slice(5)))
    if (/^\s*(event:|id:|retry:|:|$)/u.test(line)) return
    this.whole = this.whole.length + line.length > MAX_LINE ? "" : `${this.whole}${line}\n`
  }

  private value(value: Json | undefined): void {
    if (value === undefined) return
    const now = tokensIn(value)
    this.model = modelIn(value) || this.model
    if (now === undefined) return
    // Anthropic's first value contains only the input tokens
    if (now.input + now.output > 0 && object(value["message"]) === undefined) this.isTold = true
    const { seen } = this
    const of = (make: (field: keyof Tokens) => number): Tokens => ({
      input: make("input"),
      output: make("output"),
      cacheRead: make("cacheRead"),
      cacheWrite: make("cacheWrite")
    })
    const more = of((field) => Math.max(0, now[field] - seen[field]))
    this.seen = of((field) => Math.max(now[field], seen[field]))
    if (FIELDS.some((field) => more[field] > 0)) this.tell(this.model, more)
  }
}
