/**
 * CodexMessages: schemas of the messages of `codex app-server`, with only the fields that agentd reads.
 *
 * Guarantees: additional or newer fields are ignored. A message that lacks a required field decodes to undefined.
 */
import { Option, Schema } from "effect"

const maybe = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))
const text = maybe(Schema.String)
const count = maybe(Schema.Finite)

export const RequestId = Schema.Union([Schema.String, Schema.Finite])
export type RequestId = typeof RequestId.Type

const Refusal = Schema.Struct({ code: count, message: Schema.String, data: Schema.optional(Schema.Unknown) })
export type Refusal = typeof Refusal.Type

/** A request or a notification (`method`), or an answer to a request from agentd. */
export const Message = Schema.Struct({
  id: maybe(RequestId),
  method: text,
  params: Schema.optional(Schema.Unknown),
  result: Schema.optional(Schema.Unknown),
  error: maybe(Refusal)
})

/** The thread and the turn that a notification or a request is about. */
export const About = Schema.Struct({ threadId: text, turnId: text, itemId: text })

const Change = Schema.Struct({ path: Schema.String, kind: Schema.optional(Schema.Unknown), diff: text })

/** A part of a turn: a message, a tool call and so on. */
export const Item = Schema.Struct({
  id: Schema.String,
  type: Schema.String,
  /** Id that agentd gave to the input. */
  clientId: text,
  text,
  command: text,
  cwd: text,
  /** Set if the command is already running. */
  processId: text,
  status: text,
  aggregatedOutput: text,
  changes: maybe(Schema.Array(Change)),
  server: text,
  namespace: text,
  tool: text,
  arguments: Schema.optional(Schema.Unknown),
  prompt: text,
  query: text,
  path: text,
  result: Schema.optional(Schema.Unknown),
  error: maybe(Schema.Struct({ message: Schema.String })),
  contentItems: Schema.optional(Schema.Unknown),
  success: maybe(Schema.Boolean)
})
export type Item = typeof Item.Type

export const ItemNotice = Schema.Struct({ item: Item })
export const Delta = Schema.Struct({ itemId: Schema.String, delta: Schema.String })
export const Patch = Schema.Struct({ itemId: Schema.String, changes: Schema.Array(Change) })

/** The result of an MCP tool. */
export const McpResult = Schema.Struct({ content: Schema.Array(Schema.Unknown) })
export const TextBlock = Schema.Struct({ type: Schema.Literal("text"), text: Schema.String })

const TurnError = Schema.Struct({
  message: Schema.String,
  codexErrorInfo: Schema.optional(Schema.Unknown),
  additionalDetails: text
})
export type TurnError = typeof TurnError.Type

const Turn = Schema.Struct({
  id: Schema.String,
  status: text,
  error: maybe(TurnError),
  items: maybe(Schema.Array(Item))
})
export const TurnNotice = Schema.Struct({ turn: Turn })
export const ErrorNotice = Schema.Struct({ error: TurnError, willRetry: maybe(Schema.Boolean) })

/** Answer to a request that starts, resumes or forks a thread. `sandbox`: what Codex itself lets commands do. */
export const ThreadAnswer = Schema.Struct({
  thread: Schema.Struct({ id: Schema.String }),
  model: text,
  approvalPolicy: Schema.optional(Schema.Unknown),
  sandbox: maybe(Schema.Struct({ type: Schema.String, networkAccess: Schema.optional(Schema.Unknown) }))
})
export type ThreadAnswer = typeof ThreadAnswer.Type

const Tokens = Schema.Struct({
  totalTokens: Schema.Finite,
  inputTokens: Schema.Finite,
  outputTokens: Schema.Finite,
  cachedInputTokens: count,
  cacheWriteInputTokens: count
})
export type Tokens = typeof Tokens.Type

export const TokenUsage = Schema.Struct({
  tokenUsage: Schema.Struct({ total: Tokens, last: Tokens, modelContextWindow: count })
})
export type TokenUsage = (typeof TokenUsage.Type)["tokenUsage"]

const Window = maybe(Schema.Struct({ usedPercent: Schema.Finite, windowDurationMins: count, resetsAt: count }))

export const RateLimits = Schema.Struct({
  rateLimits: Schema.Struct({
    limitId: text,
    primary: Window,
    secondary: Window,
    individualLimit: maybe(Schema.Struct({ remainingPercent: Schema.Finite, resetsAt: count })),
    spendControlReached: maybe(Schema.Boolean),
    rateLimitReachedType: text
  })
})
export type RateLimits = (typeof RateLimits.Type)["rateLimits"]

export const CommandApproval = Schema.Struct({
  reason: text,
  command: text,
  cwd: text,
  additionalPermissions: Schema.optional(Schema.Unknown),
  networkApprovalContext: Schema.optional(Schema.Unknown)
})
export const PatchApproval = Schema.Struct({ reason: text, grantRoot: text })
export const PermissionsApproval = Schema.Struct({ reason: text, permissions: Schema.Unknown })

/** A request of an MCP server to the user. Codex uses the same request to ask about a call of the server's tool. */
export const Elicitation = Schema.Struct({
  serverName: Schema.String,
  message: text,
  _meta: maybe(
    Schema.Struct({ codex_approval_kind: text, tool_name: text, tool_params: Schema.optional(Schema.Unknown) })
  )
})

export const UserInput = Schema.Struct({
  questions: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      question: Schema.String,
      options: maybe(Schema.Array(Schema.Struct({ label: Schema.String, description: text })))
    })
  )
})

export const Resolved = Schema.Struct({ requestId: RequestId })
export const Warning = Schema.Struct({ message: text, summary: text })
export const ServerStatus = Schema.Struct({ name: Schema.String, status: text, error: text })
export const Rerouted = Schema.Struct({ fromModel: Schema.String, toModel: Schema.String })

/** Commands that run on although their turn has ended. */
export const Terminals = Schema.Struct({
  data: Schema.Array(Schema.Struct({ itemId: Schema.String, processId: Schema.String }))
})

export const read = <S extends Schema.ConstraintDecoder<unknown>>(schema: S, input: unknown): S["Type"] | undefined =>
  Option.getOrUndefined(Schema.decodeUnknownOption(schema)(input))

/** The message in a line; undefined if the line contains none. */
export const parse = (line: string): typeof Message.Type | undefined => {
  try {
    return read(Message, JSON.parse(line))
  } catch {
    return undefined
  }
}
