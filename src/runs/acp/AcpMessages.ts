/**
 * AcpMessages: schemas of the Agent Client Protocol's messages, with only the fields that agentd
 * reads.
 *
 * Guarantees: additional or newer fields are ignored. A message that lacks a required field decodes
 * to undefined.
 */
import { Option, Schema } from "effect"
import * as AcpMeta from "./AcpMeta.ts"

const maybe = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))
const text = maybe(Schema.String)

const Block = Schema.Struct({ type: Schema.String, text, uri: text })

const ToolContent = Schema.Struct({
  type: Schema.String,
  content: maybe(Block),
  path: text,
  oldText: text,
  newText: text,
  terminalId: text
})
export type ToolContent = typeof ToolContent.Type

/** A tool call, or an update of one: everything except the id can be omitted. */
export const ToolCall = Schema.Struct({
  toolCallId: Schema.String,
  title: text,
  name: text,
  kind: text,
  status: text,
  content: maybe(Schema.Array(ToolContent)),
  locations: maybe(Schema.Array(Schema.Struct({ path: Schema.String }))),
  rawInput: Schema.optional(Schema.Unknown),
  rawOutput: Schema.optional(Schema.Unknown)
})
export type ToolCall = typeof ToolCall.Type

export const Chunk = Schema.Struct({ content: Block, messageId: text })

export const UsageUpdate = Schema.Struct({
  /** Number of tokens in the session's context, and the maximum. */
  used: maybe(Schema.Finite),
  size: maybe(Schema.Finite),
  cost: maybe(Schema.Struct({ amount: Schema.Finite, currency: Schema.String })),
  _meta: maybe(Schema.Struct({ "_claude/model": text }))
})

export const Update = Schema.Struct({
  sessionId: Schema.String,
  update: Schema.StructWithRest(Schema.Struct({ sessionUpdate: Schema.String }), [
    Schema.Record(Schema.String, Schema.Unknown)
  ])
})

/** Sent by either side: the answer to the request is no longer needed. */
export const CancelRequest = Schema.Struct({ requestId: Schema.Union([Schema.String, Schema.Finite]) })

export const PermissionRequest = Schema.Struct({
  toolCall: ToolCall,
  options: Schema.Array(Schema.Struct({ optionId: Schema.String, kind: Schema.String }))
})
export type PermissionOptions = (typeof PermissionRequest.Type)["options"]

const count = maybe(Schema.Finite)

/** Form in which an agent reports the usage of one request to its model. `inputTokens` includes cached tokens. */
const CallUsage = Schema.Struct({
  _meta: Schema.Struct({
    usage: Schema.Struct({
      inputTokens: Schema.Finite,
      outputTokens: Schema.Finite,
      totalTokens: count,
      cachedReadTokens: count
    })
  })
})

/** Form in which the Codex adapter reports the status of its thread, and errors of its provider. */
export const CodexInfo = Schema.Struct({
  _meta: Schema.Struct({
    codex: Schema.Struct({
      threadStatus: maybe(Schema.Struct({ type: Schema.String })),
      error: Schema.optional(Schema.Unknown)
    })
  })
})

/** A request that Codex retries by itself. Example of `message`: "Reconnecting... 1/5". */
const CodexRetry = Schema.Struct({
  willRetry: Schema.Literal(true),
  message: Schema.String,
  additionalDetails: text
})

/**
 * Asks Claude's adapter to report the retries of its CLI. codex-acp 2.6.0 reports its retries without this request;
 * opencode 1.18.33 never reports them.
 */
export const RETRIES = { claudeCode: { emitRawSDKMessages: [{ type: "system", subtype: "api_retry" }] } }
const ClaudeRetry = Schema.Struct({
  message: Schema.Struct({
    subtype: Schema.Literal("api_retry"),
    attempt: Schema.Finite,
    max_retries: Schema.Finite,
    error_status: count,
    error: text
  })
})

export const PromptAnswer = Schema.Struct({ stopReason: Schema.String })

/** Usage of a turn. The first version of the protocol does not define it, but several agents send it. */
export const TurnUsage = Schema.Struct({
  inputTokens: Schema.Finite,
  outputTokens: Schema.Finite,
  cachedReadTokens: count,
  cachedWriteTokens: count
})

/** Gemini's form of a turn's usage. */
export const QuotaUsage = Schema.Struct({
  quota: Schema.Struct({
    token_count: Schema.Struct({ input_tokens: Schema.Finite, output_tokens: Schema.Finite })
  })
})

export const AuthMethod = Schema.Struct({ id: Schema.String, name: text, description: text })
export type AuthMethod = typeof AuthMethod.Type

export const InitializeAnswer = Schema.Struct({
  protocolVersion: Schema.Finite,
  agentCapabilities: maybe(
    Schema.Struct({
      loadSession: maybe(Schema.Boolean),
      promptCapabilities: maybe(
        Schema.Struct({ image: maybe(Schema.Boolean), embeddedContext: maybe(Schema.Boolean) })
      ),
      sessionCapabilities: maybe(
        Schema.Struct({ resume: Schema.optional(Schema.Unknown), fork: Schema.optional(Schema.Unknown) })
      )
    })
  ),
  authMethods: maybe(Schema.Array(AuthMethod)),
  agentInfo: maybe(Schema.Struct({ name: text, title: text }))
})
export type InitializeAnswer = typeof InitializeAnswer.Type

export const SessionAnswer = Schema.Struct({
  sessionId: text,
  models: maybe(
    Schema.Struct({
      currentModelId: text,
      availableModels: maybe(Schema.Array(Schema.Struct({ modelId: Schema.String, name: text })))
    })
  ),
  modes: maybe(
    Schema.Struct({
      currentModeId: text,
      availableModes: Schema.Array(Schema.Struct({ id: Schema.String, name: text, description: text }))
    })
  ),
  configOptions: maybe(
    Schema.Array(
      Schema.Struct({
        id: Schema.String,
        name: text,
        description: text,
        category: text,
        currentValue: Schema.optional(Schema.Unknown),
        options: maybe(Schema.Array(Schema.Unknown))
      })
    )
  )
})
export type SessionAnswer = typeof SessionAnswer.Type

export const ConfigValue = Schema.Struct({ value: Schema.String, name: text, description: text })
export const ModeUpdate = Schema.Struct({ currentModeId: Schema.String })

export const CommandsUpdate = Schema.Struct({
  availableCommands: Schema.Array(
    Schema.Struct({ name: Schema.String, description: text, input: maybe(Schema.Struct({ hint: text })) })
  )
})

export const ReadFile = Schema.Struct({ path: Schema.String, line: count, limit: count })
export const WriteFile = Schema.Struct({ path: Schema.String, content: Schema.String })

export const CreateTerminal = Schema.Struct({
  command: Schema.String,
  args: maybe(Schema.Array(Schema.String)),
  env: maybe(Schema.Array(Schema.Struct({ name: Schema.String, value: Schema.String }))),
  cwd: text,
  outputByteLimit: count
})
/** Returns the arguments of the tool call that a `terminal/create` request causes, without empty fields. */
export const given = ({ args, command, cwd, env }: typeof CreateTerminal.Type): { readonly [name: string]: unknown } =>
  Object.fromEntries(Object.entries({ command, args, cwd, env }).filter(([, value]) => value != null))

export const NamedTerminal = Schema.Struct({ terminalId: Schema.String })

export const read = <S extends Schema.ConstraintDecoder<unknown>>(schema: S, input: unknown): S["Type"] | undefined =>
  Option.getOrUndefined(Schema.decodeUnknownOption(schema)(input))

/** Codex's message about a retry; undefined if the error is not about a retry. */
export const codexRetry = (error: unknown): string | undefined => {
  const told = read(CodexRetry, error)
  return told?.additionalDetails ? `${told.message} (${told.additionalDetails})` : told?.message
}

/** Describes a retry of Claude's CLI; undefined if the message is not about a retry. */
export const claudeRetry = (params: unknown): string | undefined => {
  const told = read(ClaudeRetry, params)?.message
  if (told === undefined) return undefined
  const what = [told.error_status, told.error].filter((one) => one !== null && one !== undefined && one !== "")
  return `the API failed (${what.join(" ")}); try ${told.attempt} of ${told.max_retries} follows`
}

/** Converts reported usage. The input includes cached tokens. */
export interface Spent {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cacheRead?: number
  readonly cacheWrite?: number
  /** True if the agent has reported no usage. */
  readonly untold?: boolean
  /** Usage since the last report, in agentd's own form. */
  readonly own?: AcpMeta.Usage
}

/**
 * Usage of this prompt only, although drafts of the protocol say otherwise. Copilot reports the sum since its process
 * began.
 */
const wholeOf = (result: unknown): Spent => {
  const { _meta, usage } = (result ?? {}) as { readonly _meta?: unknown; readonly usage?: unknown }
  const told = read(TurnUsage, usage)
  if (told !== undefined) {
    const cacheRead = told.cachedReadTokens ?? 0
    const cacheWrite = told.cachedWriteTokens ?? 0
    const inputTokens = told.inputTokens + cacheRead + cacheWrite
    return { inputTokens, outputTokens: told.outputTokens, cacheRead, cacheWrite }
  }
  const tokens = read(QuotaUsage, _meta)?.quota.token_count
  if (tokens === undefined) return { inputTokens: 0, outputTokens: 0, untold: true }
  return { inputTokens: tokens.input_tokens, outputTokens: tokens.output_tokens }
}

/** Usage that the answer to a prompt reports. */
export const usageOf = (result: unknown): Spent => {
  const own = AcpMeta.usageOf(result)
  return own === undefined ? wholeOf(result) : { ...wholeOf(result), untold: false, own }
}

/** Reads the usage of a request that a part of an answer reports. Thinking tokens count as output. */
export const callUsageOf = (update: unknown): Spent | undefined => {
  const told = read(CallUsage, update)?._meta.usage
  if (told === undefined) return undefined
  const { inputTokens, outputTokens, totalTokens } = told
  return {
    inputTokens,
    outputTokens: Math.max(outputTokens, (totalTokens ?? 0) - inputTokens),
    cacheRead: told.cachedReadTokens ?? 0
  }
}
