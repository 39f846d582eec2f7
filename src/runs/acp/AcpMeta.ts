/**
 * AcpMeta: what an agent can tell agentd beyond the Agent Client Protocol. The protocol lets every message have a field
 * `_meta`, and clients ignore the keys that they do not know. agentd reads the key `agentd`. Pure.
 *
 * Guarantees: The JSON schema in docs/own-agent.md is that of these types. A value that does not match is ignored as a
 * whole.
 */
import { Option, Schema } from "effect"

const { String, optionalKey } = Schema
const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Positive = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))

/** In `_meta` of the `data` of a JSON-RPC error. */
const ErrorMeta = Schema.Struct({
  error: Schema.Literals(["rate_limit", "overloaded", "auth", "billing", "overflow", "held"]).annotate({
    description: "Class of the error."
  }),
  retryAfter: optionalKey(Positive.annotate({ description: "Seconds until the request can succeed." })),
  remedy: optionalKey(String.annotate({ description: "What a person must do; for auth and billing." }))
})
export type ErrorMeta = typeof ErrorMeta.Type

const Usage = Schema.Struct({
  input: Count.annotate({ description: "Tokens, including those read from and written to a cache." }),
  output: Count,
  cacheRead: optionalKey(Count),
  cacheWrite: optionalKey(Count),
  model: optionalKey(String),
  usd: optionalKey(Positive)
})
export type Usage = typeof Usage.Type

/** In `_meta` of an update, and of the answer to a prompt. */
const UsageMeta = Schema.Struct({ usage: Usage.annotate({ description: "What was used since the last report." }) })

/** In `_meta` of `agentCapabilities`, of `session/load`, and of its answer. */
const ForkMeta = Schema.Struct({
  fork: optionalKey(Schema.Boolean.annotate({ description: "Capability; in session/load: continue a copy." })),
  sessionId: optionalKey(String.annotate({ description: "In the answer to session/load: the id of the copy." }))
})

export const SCHEMAS = { error: ErrorMeta, usage: UsageMeta, fork: ForkMeta }

const within = <S extends Schema.ConstraintDecoder<unknown>>(schema: S, value: unknown): S["Type"] | undefined => {
  const { _meta: meta } = (value ?? {}) as { readonly _meta?: { readonly agentd?: unknown } | null }
  return Option.getOrUndefined(Schema.decodeUnknownOption(schema)(meta?.agentd))
}

export const errorOf = (data: unknown): ErrorMeta | undefined =>
  typeof data === "object" ? within(ErrorMeta, data) : undefined

export const usageOf = (value: unknown): Usage | undefined => within(UsageMeta, value)?.usage

/** Whether the agent says that it can continue a copy of a session. */
export const forks = (capabilities: unknown): boolean => within(ForkMeta, capabilities)?.fork === true

/** Id of the copy that the agent has loaded; undefined if it names none. */
export const copyOf = (answer: unknown): string | undefined => within(ForkMeta, answer)?.sessionId
