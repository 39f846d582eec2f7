/**
 * ConfigProblem: turns a schema issue into a problem that a user can fix, with the position in the file, the field, a
 * message and a remedy.
 *
 * Pure. The allowed values of a field come from the generated JSON Schema, so messages and editors always agree.
 */
import { didYouMean } from "./DidYouMean.ts"
import { Predicate, Schema, type SchemaIssue } from "effect"
import { retired } from "./BackendConfig.ts"
import * as Jsonc from "./Jsonc.ts"

export const ConfigProblem = Schema.Struct({
  line: Schema.Int,
  column: Schema.Int,
  /** Path of the field, for example `agents.builder.backend.argv`; empty for the file as a whole. */
  field: Schema.String,
  message: Schema.String,
  remedy: Schema.String
})
export type ConfigProblem = typeof ConfigProblem.Type

/** The parts of a JSON Schema that this module reads. */
export interface Shape {
  readonly type?: string
  readonly enum?: ReadonlyArray<unknown>
  readonly anyOf?: ReadonlyArray<Shape>
  readonly required?: ReadonlyArray<string>
  readonly properties?: { readonly [key: string]: Shape }
  readonly patternProperties?: { readonly [pattern: string]: Shape }
  readonly additionalProperties?: Shape | boolean
  readonly items?: Shape
  readonly description?: string
  readonly default?: unknown
}

type Path = ReadonlyArray<PropertyKey>

/** Maximum number of reported problems; no further problems are searched for. */
export const MAX_PROBLEMS = 50

const TYPES: { readonly [type: string]: string } = {
  string: "text",
  number: "a number",
  integer: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  null: "null"
}

const kindOf = (value: unknown): string =>
  value === null ? "null" : Array.isArray(value) ? "a list" : (TYPES[typeof value] ?? typeof value)

const literal = (value: unknown): string => {
  const text = JSON.stringify(value)
  return text.length > 80 ? `${text.slice(0, 77)}…` : text
}

/** False for the type of a backend that agentd no longer has: it is accepted, but no message suggests it. */
const isOffered = (type: unknown): boolean => typeof type !== "string" || retired({ type }) === undefined

/** A description of the values that a shape accepts, which follows "must be" in a message. */
const expectation = (shape: Shape | undefined): string => {
  if (shape?.enum !== undefined) return shape.enum.map(literal).join(" or ")
  if (shape?.anyOf !== undefined) return [...new Set(shape.anyOf.map(expectation))].join(", or ")
  return TYPES[shape?.type ?? ""] ?? "something else"
}

/** The alternatives of a schema that match the value's own `type`; all alternatives if none matches. */
const fitting = (alternatives: ReadonlyArray<Shape>, value: unknown): ReadonlyArray<Shape> => {
  const type = Predicate.hasProperty(value, "type") ? value.type : undefined
  const same = alternatives.filter(({ properties }) => properties?.["type"]?.enum?.includes(type) === true)
  return same.length > 0 ? same : alternatives
}

/**
 * The shape of a field of an object, or of an element of a list. `segment`: the field's name or the element's index;
 * `value`: the object or list. Alternatives are searched, too.
 */
const below = (shape: Shape | undefined, segment: PropertyKey, value: unknown): Shape | undefined => {
  if (shape === undefined) return undefined
  if (typeof segment === "number" && shape.items !== undefined) return shape.items
  const key = String(segment)
  if (shape.properties !== undefined && Object.hasOwn(shape.properties, key)) return shape.properties[key]
  const byPattern = Object.values(shape.patternProperties ?? {})[0]
  if (byPattern !== undefined) return byPattern
  if (typeof shape.additionalProperties === "object") return shape.additionalProperties
  const found = fitting(shape.anyOf ?? [], value)
    .map((one) => below(one, segment, value))
    .filter((one) => one !== undefined)
  // If the alternatives differ in an enum (such as `type`), the field can have the values of any of them.
  const words = [...new Set(found.flatMap((one) => one.enum ?? []))].filter(isOffered)
  return found.length > 1 && found.every((one) => one.enum !== undefined) ? { ...found[0], enum: words } : found[0]
}

/** Another config file of agentd, in which an unknown field may belong. */
export interface OtherFile {
  readonly file: string
  readonly shape: Shape
}

interface Root {
  readonly shape: Shape
  readonly value: unknown
  readonly other: OtherFile | undefined
}

const inside = (value: unknown, segment: PropertyKey): unknown =>
  Predicate.hasProperty(value, segment) && Object.hasOwn(value, segment) ? value[segment] : undefined

const valueAt = ({ value }: Root, path: Path): unknown => path.reduce<unknown>(inside, value)

const shapeAt = (root: Root, path: Path): Shape | undefined =>
  path.reduce<{ readonly shape: Shape | undefined; readonly value: unknown }>(
    ({ shape, value }, segment) => ({ shape: below(shape, segment, value), value: inside(value, segment) }),
    root
  ).shape

const knownKeys = (shape: Shape | undefined, value: unknown): ReadonlyArray<string> => [
  ...new Set([
    ...Object.keys(shape?.properties ?? {}),
    ...fitting(shape?.anyOf ?? [], value).flatMap((one) => knownKeys(one, value))
  ])
]

/** A path as text: `agents.builder.backend.argv[0]`. */
export const fieldOf = (path: Path): string =>
  path.reduce<string>((text, segment) => {
    if (typeof segment === "number") return `${text}[${segment}]`
    const key = /^[\w$.-]{1,80}$/.test(String(segment)) ? String(segment) : literal(String(segment))
    return text === "" ? key : `${text}.${key}`
  }, "")

/** Maximum depth at which the place of a misplaced field is searched. */
const LEVELS = 3

/** The objects that have a field of this name, as paths such as `agents.NAME`; "" is the top level. */
const homesOf = (root: Shape, key: string): ReadonlyArray<string> => {
  const homes = new Set<string>()
  const visit = (shape: Shape, path: Path): void => {
    const { additionalProperties: rest, anyOf = [], patternProperties = {}, properties = {} } = shape
    if (Object.hasOwn(properties, key)) homes.add(fieldOf(path))
    for (const one of anyOf) visit(one, path)
    if (path.length === LEVELS) return
    for (const [name, one] of Object.entries(properties)) visit(one, [...path, name])
    for (const one of [...Object.values(patternProperties), ...(typeof rest === "object" ? [rest] : [])])
      visit(one, [...path, "NAME"])
  }
  visit(root, [])
  return [...homes].toSorted((one, other) => one.split(".").length - other.split(".").length)
}

/** A sentence that names where an unknown field belongs; "" if it belongs nowhere. */
const belongs = (key: string, path: Path, { other, shape }: Root): string => {
  const homes = homesOf(shape, key)
    .slice(0, 2)
    .map((home) => (home === "" ? "the top level" : home))
  if (homes.length > 0) return `It is a field of ${homes.join(" and of ")}.`
  return path.length === 1 && Object.hasOwn(other?.shape.properties ?? {}, key)
    ? `It is a field of ${other?.file}.`
    : ""
}

interface Found {
  readonly path: Path
  readonly message: string
  readonly remedy: string
  /** True if the problem concerns the key, false if it concerns the value. */
  readonly key: boolean
}

const about = (shape: Shape | undefined): string => {
  const fallback = shape?.default === undefined ? "" : ` Default: ${literal(shape.default)}.`
  return `${shape?.description ?? ""}${fallback}`.trim()
}

/** Fields of agentd, by the names that they have elsewhere. */
const WORDS: { readonly [key: string]: string } = {
  cmd: "shell",
  command: "shell",
  daily: "perDay",
  dollars: "usd",
  members: "agents",
  monthly: "perMonth",
  participants: "agents",
  schedule: "schedules",
  script: "shell",
  system: "instructions",
  systemPrompt: "instructions",
  task: "prompt",
  timeout: "runTimeout"
}

const unexpected = (path: Path, root: Root): Found => {
  const above = path.slice(0, -1)
  const shape = shapeAt(root, above)
  const known = knownKeys(shape, valueAt(root, above))
  if (known.length === 0)
    return { path, key: true, message: "is not a name that is allowed here", remedy: about(shape) }
  const key = String(path.at(-1))
  const home = belongs(key, path, root)
  // a field that belongs one level deeper is no misspelling of one here
  const isDeeper = path.length > 1 && home.includes(`${String(path[0])}.NAME.`)
  const word = WORDS[key]
  const meant = isDeeper
    ? undefined
    : (didYouMean(key, known) ?? (word !== undefined && known.includes(word) ? word : undefined))
  const takers = (shape?.anyOf ?? [])
    .filter((one) => Object.hasOwn(one.properties ?? {}, key))
    .flatMap((one) => one.properties?.["type"]?.enum ?? [])
    .filter(isOffered)
    .map(literal)
  const type = literal(inside(valueAt(root, above), "type") ?? null)
  const remedy = [
    ...(takers.length === 0 ? [] : [`${takers.join(", ")} ${takers.length === 1 ? "takes" : "take"} it.`]),
    ...(meant === undefined ? [home].filter((one) => one !== "") : [`Did you mean "${meant}"?`]),
    `Known here: ${known.join(", ")}.`
  ].join(" ")
  const message = takers.length === 0 ? "is not a field that agentd knows" : `is not a field of the type ${type}`
  return { path, key: true, message, remedy }
}

const missing = (path: Path, root: Root): Found => {
  const shape = shapeAt(root, path)
  const words = shape?.enum === undefined ? "" : `: ${expectation(shape)}`
  return {
    path,
    key: false,
    message: "is missing",
    remedy: `Add "${String(path.at(-1))}"${words}. ${about(shape)}`.trim()
  }
}

const wrong = (path: Path, root: Root): Found => {
  const shape = shapeAt(root, path)
  const value = valueAt(root, path)
  const options = shape?.enum?.filter((option) => typeof option === "string") ?? []
  const meant = typeof value === "string" ? didYouMean(value, options) : undefined
  const isShown = typeof value === "boolean" || (typeof value === "string" && options.length > 0)
  const is = isShown ? literal(value) : kindOf(value)
  return {
    path,
    key: false,
    message: `must be ${expectation(shape)}, but is ${is}`,
    remedy: `${meant === undefined ? example(path, shape, value) : `Did you mean "${meant}"? `}${about(shape)}`.trim()
  }
}

/** True if a field of this shape can have the value. */
const takes = ({ anyOf = [], enum: options, type }: Shape, value: unknown): boolean =>
  options === undefined
    ? anyOf.some((one) => takes(one, value)) ||
      (typeof value === "number"
        ? type === "number" || type === "integer"
        : type === typeof value && type === "boolean")
    : options.includes(value)

const AGENT = { backend: { type: "claude" } }
const SEND = { agent: "builder", text: "Update the changelog" }

/** Examples of objects, by the path; `*` is any name. */
const EXAMPLES: { readonly [path: string]: object } = {
  "": { agents: { builder: AGENT } },
  agents: { builder: AGENT },
  "agents.*": AGENT,
  "agents.*.backend": AGENT.backend,
  "agents.*.backend.env": { NAME: "value" },
  channels: { review: { agents: ["builder", "reviewer"] } },
  "channels.*": { agents: ["builder", "reviewer"] },
  http: { port: 8080 },
  notify: { channels: { phone: { type: "ntfy", topic: "my-agents" } } },
  "notify.channels": { phone: { type: "ntfy", topic: "my-agents" } },
  "notify.channels.*": { type: "ntfy", topic: "my-agents" },
  schedules: { nightly: { cron: "30 2 * * *", send: SEND } },
  "schedules.*": { cron: "30 2 * * *", send: SEND },
  "schedules.*.send": SEND
}

/**
 * An example for a value of the wrong kind: a list with the value, an object with it in one of its fields, or one of
 * the table; "" if there is none.
 */
const example = (path: Path, shape: Shape | undefined, value: unknown): string => {
  if (shape?.type === "array" && typeof value !== "object") return `For example: ${literal([value])}. `
  const known = Object.keys(EXAMPLES).find((one) => {
    const parts = one === "" ? [] : one.split(".")
    return parts.length === path.length && parts.every((part, n) => part === "*" || part === path[n])
  })
  const fields = Object.entries(shape?.properties ?? {}).filter(([, one]) => takes(one, value))
  // for a number, sums of money come before counts
  const field = (fields.find(([, { type }]) => type === "number") ?? fields[0])?.[0]
  const found = field === undefined ? EXAMPLES[known ?? "none"] : { [field]: value }
  return found === undefined ? "" : `For example: ${literal(found)}. `
}

/** The problems in a schema issue. It is a lazy generator, so that a caller can stop when it has enough problems. */
const found = function* (issue: SchemaIssue.Issue, path: Path, root: Root): Generator<Found> {
  const spoken = (message: unknown): Found | undefined =>
    typeof message === "string" ? { path, key: false, message, remedy: about(shapeAt(root, path)) } : undefined
  switch (issue._tag) {
    case "Pointer":
      return yield* found(issue.issue, [...path, ...issue.path], root)
    case "Composite":
      for (const one of issue.issues) yield* found(one, path, root)
      return
    case "Encoding":
      return yield* found(issue.issue, path, root)
    case "Filter": {
      const said = spoken(issue.filter.annotations?.["message"])
      return yield* said === undefined ? found(issue.issue, path, root) : [said]
    }
    case "MissingKey":
      return yield missing(path, root)
    case "UnexpectedKey":
      return yield unexpected(path, root)
    case "InvalidValue":
    case "Forbidden":
      return yield spoken(issue.annotations?.["message"]) ?? wrong(path, root)
    case "AnyOf":
      return yield* alternatives(issue.issues, path, root)
    case "InvalidType":
    case "OneOf":
      return yield wrong(path, root)
  }
}

/**
 * The problems of a value with several alternatives. If the value has the type of one alternative, only the problems
 * with that alternative are reported.
 */
const alternatives = function* (issues: ReadonlyArray<SchemaIssue.Issue>, path: Path, root: Root): Generator<Found> {
  const typed = issues.find((issue) => issue._tag !== "InvalidType")
  if (typed !== undefined) return yield* found(typed, path, root)
  const type = [...path, "type"]
  // If no alternative has this `type`, report the field `type` instead of the whole object.
  if (Predicate.isObject(valueAt(root, path)) && shapeAt(root, type) !== undefined) {
    return yield valueAt(root, type) === undefined ? missing(type, root) : wrong(type, root)
  }
  yield wrong(path, root)
}

/** The first `MAX_PROBLEMS` problems found while decoding a config, sorted by position in the file. */
export const problemsOf = (
  issue: SchemaIssue.Issue,
  text: string,
  root: Jsonc.Node,
  shape: Shape,
  other?: OtherFile
): ReadonlyArray<ConfigProblem> => {
  // If two rules for a field have the same message, the message is reported only once.
  const all = new Map<string, Found>()
  for (const one of found(issue, [], { shape, value: root.value, other })) {
    all.set(`${fieldOf(one.path)}: ${one.message}`, one)
    if (all.size === MAX_PROBLEMS) break
  }
  return [...all.values()]
    .map(({ path, key, message, remedy }) => ({ offset: Jsonc.locate(root, path, key), path, message, remedy }))
    .toSorted((a, b) => a.offset - b.offset)
    .map(({ offset, path, message, remedy }) => ({
      ...Jsonc.position(text, offset),
      field: fieldOf(path),
      message,
      remedy
    }))
}
