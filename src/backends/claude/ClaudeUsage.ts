/**
 * ClaudeUsage: what Claude Code says it has spent, as differences. Pure.
 *
 * Guarantees: no token and no cent is told of twice. Sums of a result may go back to
 * earlier processes of the session, and leave out what an interrupt cut off: what was
 * used since the last result is taken from the record that says just that, where it is.
 * Tokens are told as soon as a request to the model has ended, the cost with the result.
 */
import type { RunEvent } from "../Backend.ts"
import { type ClaudeRecord, inner, number } from "./ClaudeRecord.ts"

interface Spent {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly usd: number
}
const NONE: Spent = { inputTokens: 0, outputTokens: 0, usd: 0 }

const count = (record: ClaudeRecord, ...keys: ReadonlyArray<string>) =>
  keys.reduce((sum, key) => sum + (number(record, key) ?? 0), 0)

/** As in a message: what a cache gave counts as input, too. */
const inputOf = (usage: ClaudeRecord) =>
  count(usage, "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")

/** Of all models, as in a result. */
const sumOf = (models: ClaudeRecord): Spent =>
  Object.keys(models).reduce<Spent>((sum, name) => {
    const used = inner(models, name)
    return {
      inputTokens: sum.inputTokens + count(used, "inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens"),
      outputTokens: sum.outputTokens + count(used, "outputTokens"),
      usd: sum.usd + count(used, "costUSD")
    }
  }, NONE)

/** A sum that became smaller has begun anew. */
const since = (sum: number, before: number) => (sum < before ? sum : sum - before)

export class ClaudeUsage {
  /** Of the request under way. */
  private input = 0
  /** Since the last result. */
  private told = NONE
  private sum = NONE

  /** A `stream_event` of the main chain. */
  streamed(event: ClaudeRecord): ReadonlyArray<RunEvent> {
    if (event["type"] === "message_start") this.input = inputOf(inner(inner(event, "message"), "usage"))
    if (event["type"] !== "message_delta") return []
    const usage: Spent = {
      inputTokens: this.input,
      outputTokens: count(inner(event, "usage"), "output_tokens"),
      usd: 0
    }
    this.input = 0
    this.told = {
      inputTokens: this.told.inputTokens + usage.inputTokens,
      outputTokens: this.told.outputTokens + usage.outputTokens,
      usd: 0
    }
    return this.tell(usage)
  }

  result(record: ClaudeRecord): ReadonlyArray<RunEvent> {
    const { told } = this
    const sum = { ...sumOf(inner(record, "modelUsage")), usd: number(record, "total_cost_usd") ?? 0 }
    const spent: Spent =
      "model_usage_since_last_result" in record
        ? sumOf(inner(record, "model_usage_since_last_result"))
        : {
            inputTokens: since(sum.inputTokens, this.sum.inputTokens),
            outputTokens: since(sum.outputTokens, this.sum.outputTokens),
            usd: since(sum.usd, this.sum.usd)
          }
    this.sum = sum
    this.told = NONE
    return this.tell({
      inputTokens: Math.max(0, spent.inputTokens - told.inputTokens),
      outputTokens: Math.max(0, spent.outputTokens - told.outputTokens),
      usd: spent.usd
    })
  }

  private tell({ inputTokens, outputTokens, usd }: Spent): ReadonlyArray<RunEvent> {
    if (inputTokens === 0 && outputTokens === 0 && usd === 0) return []
    return [{ _tag: "Usage", inputTokens, outputTokens, ...(usd === 0 ? {} : { usd }) }]
  }
}
