/**
 * FallbackEntry: an entry of `fallback` in a config file. An entry with a `type` is a complete backend. An entry
 * without one is the agent's own backend, changed in the named fields. Pure: the JSON is transformed before it is
 * decoded.
 *
 * Guarantees: if an entry changes a field, it does not inherit the fields that depend on that field. A key depends on
 * its provider; a price and a context size depend on their model. Each environment variable, and each field of
 * `provider`, is changed separately.
 */
import { isReadonlyObject as isObject } from "effect/Predicate"
import type { Shape } from "./ConfigProblem.ts"

interface Json {
  readonly [field: string]: unknown
}

/**
 * For each field that an entry can set: the fields that the entry then does not inherit from the agent's own backend.
 */
const INSTEAD: { readonly [named: string]: ReadonlyArray<string> } = {
  api: ["baseUrl", "keyEnv", "keyFile"],
  provider: ["baseUrl", "keyEnv", "keyFile"],
  keyEnv: ["keyFile"],
  keyFile: ["keyEnv"],
  model: ["price", "contextTokens"],
  argv: ["shell"],
  shell: ["argv"]
}

/** Fields with objects as values. An entry changes these objects field by field. */
const INNER: ReadonlySet<string> = new Set(["env", "provider"])

const changed = (own: Json, entry: Json): Json => {
  const gone = new Set(Object.keys(entry).flatMap((name) => INSTEAD[name] ?? []))
  const kept = Object.entries(own).filter(([name]) => !gone.has(name))
  const named = Object.entries(entry).map(([name, value]) => {
    const before = own[name]
    return [name, INNER.has(name) && isObject(before) && isObject(value) ? changed(before, value) : value] as const
  })
  return Object.fromEntries([...kept, ...named])
}

const filledAgent = (agent: unknown): unknown => {
  if (!isObject(agent)) return agent
  const { backend, fallback } = agent
  if (!isObject(backend) || !Array.isArray(fallback)) return agent
  return {
    ...agent,
    fallback: fallback.map((entry: unknown) =>
      isObject(entry) && !Object.hasOwn(entry, "type") ? changed(backend, entry) : entry
    )
  }
}

/**
 * Replaces all fallback entries of a config file by complete backends. Values of an unexpected type are not changed.
 */
export const filled = (file: unknown): unknown => {
  if (!isObject(file) || !isObject(file["agents"])) return file
  const agents = Object.entries(file["agents"]).map(([name, agent]) => [name, filledAgent(agent)] as const)
  return { ...file, agents: Object.fromEntries(agents) }
}

/**
 * Maps a field of a fallback to the agent's own backend, from which the value can be inherited:
 * `agents.ann.fallback[0].model` becomes `agents.ann.backend.model`.
 */
export const ownField = (field: string): string => field.replace(/^(agents\..+)\.fallback\[\d{1,4}\]/u, "$1.backend")

/**
 * The schema of an entry without `type`, for editors: a backend's schema in which all fields are optional and have no
 * defaults.
 */
const part = ({ properties = {}, ...rest }: Shape): Shape => {
  const { type: _, ...fields } = properties
  const open = Object.entries(fields).map(([name, { default: _own, ...shape }]) => [name, shape] as const)
  return { ...rest, properties: Object.fromEntries(open), required: [] }
}

/** Extends the JSON Schema of a config file, so that fallback entries without a type are valid. */
export const withParts = (file: Shape): Shape => {
  const { agents } = file.properties ?? {}
  if (agents === undefined) return file
  const each = Object.entries(agents.patternProperties ?? {}).map(([pattern, agent]) => {
    const fallback = agent.properties?.["fallback"]
    const whole = fallback?.items?.anyOf ?? []
    const items: Shape = { anyOf: [...whole, ...whole.map(part)] }
    return [pattern, { ...agent, properties: { ...agent.properties, fallback: { ...fallback, items } } }] as const
  })
  return {
    ...file,
    properties: { ...file.properties, agents: { ...agents, patternProperties: Object.fromEntries(each) } }
  }
}
