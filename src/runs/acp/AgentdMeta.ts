/**
 * AgentdMeta: what agentd's own model agent tells agentd in `_meta`, beyond the protocol and beyond AcpMeta. Nothing of
 * it is promised to other agents. A run outlives an upgrade, so the daemon can be newer than the agent: fields are only
 * added, and each is optional.
 *
 * Guarantees: a value that does not match is ignored as a whole, and the rest of its message is not.
 */
import { Effect, Option, Schema } from "effect"
import { Outcome } from "../Outcome.ts"
import type { Wire } from "./AcpWire.ts"

export const KEY = "agentdModel"

/** Usage since the last report: a difference, never a sum. */
const Usage = Schema.Struct({
  inputTokens: Schema.Finite,
  outputTokens: Schema.Finite,
  cacheRead: Schema.optionalKey(Schema.Finite),
  cacheWrite: Schema.optionalKey(Schema.Finite),
  model: Schema.optionalKey(Schema.String),
  usd: Schema.optionalKey(Schema.Finite),
  context: Schema.optionalKey(Schema.Struct({ used: Schema.Finite, window: Schema.optionalKey(Schema.Finite) }))
})

const Window = Schema.Struct({
  name: Schema.String,
  used: Schema.optionalKey(Schema.Finite),
  status: Schema.optionalKey(Schema.Literals(["allowed", "warning", "rejected"])),
  resetsAt: Schema.optionalKey(Schema.Finite),
  limit: Schema.optionalKey(Schema.Finite),
  remaining: Schema.optionalKey(Schema.Finite)
})

const Status = Schema.Literals(["success", "error", "unknown", "sandbox_violation", "timeout", "cancelled", "denied"])

const Fault = Schema.Struct({
  /** The class of the error: "rate_limit", "overloaded", "auth" and so on. */
  class: Schema.String,
  message: Schema.String,
  /** Milliseconds after which the provider allows a retry. */
  retryAfter: Schema.optionalKey(Schema.Finite),
  /** Whether the same prompt can succeed when it is sent again. */
  retry: Schema.Boolean,
  /** Whether the agent can take the next prompt. */
  goesOn: Schema.Boolean,
  outcome: Outcome
})
export type Fault = typeof Fault.Type

export const AgentdMeta = Schema.Struct({
  /** The agent works on the prompt. */
  begun: Schema.optionalKey(Schema.Boolean),
  notice: Schema.optionalKey(
    Schema.Struct({
      text: Schema.String,
      lasting: Schema.optionalKey(Schema.Struct({ about: Schema.String, isOver: Schema.Boolean })),
      retries: Schema.optionalKey(Schema.Struct({ since: Schema.optionalKey(Schema.Finite) }))
    })
  ),
  usage: Schema.optionalKey(Schema.Array(Usage)),
  compacted: Schema.optionalKey(
    Schema.Struct({
      from: Schema.Finite,
      to: Schema.Finite,
      cutResults: Schema.Finite,
      summarised: Schema.Finite
    })
  ),
  windows: Schema.optionalKey(
    Schema.Struct({
      windows: Schema.Array(Window),
      rejected: Schema.optionalKey(Schema.Struct({ name: Schema.String, until: Schema.optionalKey(Schema.Finite) }))
    })
  ),
  /** With a `tool_call`. */
  call: Schema.optionalKey(
    Schema.Struct({
      tool: Schema.String,
      readOnly: Schema.Boolean,
      voice: Schema.optionalKey(Schema.Boolean),
      /** Why the call asks; a call that does not ask has none. */
      reason: Schema.optionalKey(Schema.String),
      always: Schema.optionalKey(Schema.Boolean)
    })
  ),
  /** With a `tool_call_update`: the call has begun, has written, or has ended in this way. */
  started: Schema.optionalKey(Schema.Boolean),
  progress: Schema.optionalKey(Schema.Struct({ stream: Schema.Literals(["stdout", "stderr"]), chunk: Schema.String })),
  status: Schema.optionalKey(Status),
  /** With the answer to a prompt: the text of the last answer, complete. */
  output: Schema.optionalKey(Schema.String),
  /** With a refused request. */
  error: Schema.optionalKey(Fault)
})
export type AgentdMeta = typeof AgentdMeta.Type

const decode = Schema.decodeUnknownOption(Schema.Struct({ _meta: Schema.Struct({ [KEY]: AgentdMeta }) }))

/** Reads `_meta` of a message, or of an error's data; empty if it says nothing. */
export const of = (message: unknown): AgentdMeta =>
  Option.match(decode(message), { onNone: () => ({}), onSome: ({ _meta }) => _meta[KEY] })

/** With the answer to a permission request: why the call was denied, and whether its turn ends with it. */
export const Denial = Schema.Struct({ message: Schema.String, interrupt: Schema.optionalKey(Schema.Boolean) })
export type Denial = typeof Denial.Type

/** A notification that ends one call, for which the protocol has no message. */
export const CANCEL_CALL = "_agentd/cancel_call"

/** A request of the agent before its next request to the model in a turn. It is answered if the turn goes on. */
export const GOES_ON = "_agentd/goes_on"

/** Asks the agent to end one call; does nothing if the call is not open. */
export const cancel = (wire: Pick<Wire, "notify">, sessionId: string | undefined, toolCallId: string | undefined) =>
  toolCallId === undefined ? Effect.void : wire.notify(CANCEL_CALL, { sessionId, toolCallId })
