/**
 * Config: generates docs/reference/config.md from JSON Schemas: each field of `agentd.jsonc` and of the user's own
 * file.
 */
import { retired } from "../../src/config/BackendConfig.ts"
import { jsonSchema } from "../../src/config/ConfigFile.ts"
import { cell, table } from "./Markdown.ts"

interface Node {
  readonly type?: string
  readonly description?: string
  readonly default?: unknown
  readonly enum?: ReadonlyArray<unknown>
  readonly properties?: { readonly [field: string]: Node }
  readonly patternProperties?: { readonly [pattern: string]: Node }
  readonly required?: ReadonlyArray<string>
  readonly items?: Node
  readonly anyOf?: ReadonlyArray<Node>
  readonly allOf?: ReadonlyArray<Node>
  readonly $ref?: string
  readonly minimum?: number
  readonly maximum?: number
}

/** The `type` of one alternative of a union, such as a backend; undefined if it has none. */
const typeOf = (node: Node): string | undefined => node.properties?.["type"]?.enum?.map(String).join(" ")

/** Names of the shapes that are used in several places, by their fields. */
const SHAPES: { readonly [fields: string]: string } = {
  "allow ask deny note": "rule",
  "argument read tool url write": "calls",
  "base by cap jitter": "backoff",
  "cacheRead cacheWrite input output": "price",
  "cpuWeight disk memory tasks": "limits",
  "credential env file": "secret",
  "digestWindow from maxPerHour outageAfter smtp to": "mail",
  "perDay perMonth perTurn tokens toolCalls usd wallTime whenSpent": "budget",
  "api baseUrl keyEnv keyFile": "provider",
  "tokens toolCalls usd wallTime": "perTurn",
  "tokens usd": "period"
}

/** The name of an object's shape; undefined if the shape is used in one place only. */
const shapeOf = (node: Node): string | undefined =>
  node.properties === undefined ? undefined : SHAPES[Object.keys(node.properties).toSorted().join(" ")]

const linked = (shape: string): string => `[${shape}](#shape-${shape.toLowerCase()})`

/** The form of a value, in a few words. */
const formOf = (node: Node): string => {
  const shape = shapeOf(node)
  if (shape !== undefined) return linked(shape)
  if (node.enum !== undefined) return node.enum.map((value) => `\`${JSON.stringify(value)}\``).join(" ")
  if (node.anyOf !== undefined) return [...new Set(node.anyOf.map(formOf))].join(" or ")
  if (node.patternProperties !== undefined) {
    const shapes = Object.values(node.patternProperties).map(shapeOf)
    return shapes[0] === undefined ? "object by name" : `${linked(shapes[0])} by name`
  }
  if (node.type === "array") return `list of ${formOf(node.items ?? {})}`
  const range = node.allOf?.find(({ maximum }) => maximum !== undefined) ?? node
  const type = node.type ?? node.$ref?.replace(/^.*\//, "") ?? "any"
  return range.minimum === undefined || range.maximum === undefined
    ? type
    : `${type}, ${range.minimum} to ${range.maximum}`
}

interface Row {
  readonly path: string
  readonly node: Node
  readonly required: boolean
}

const isPlain = (value: unknown): boolean =>
  typeof value !== "object" || value === null || Object.keys(value).length < 4

/** Placeholder name for many similar fields that are shown as one. */
const KIND = "KIND"
const MANY = 6

/** The common beginning of all texts, up to the end of a word. */
const beginning = (texts: ReadonlyArray<string>): string => {
  const [first = ""] = texts
  let end = 0
  while (end < first.length && texts.every((text) => text[end] === first[end])) end++
  return first.slice(0, first.lastIndexOf(" ", end) + 1)
}

/** Combines many fields of one form into one field, whose text lists them; undefined if the fields are not alike. */
const alikeIn = ({ properties = {} }: Node): Node | undefined => {
  const fields = Object.entries(properties)
  const [first] = fields
  if (first === undefined || fields.length < MANY) return undefined
  if (fields.some(([, node]) => formOf(node) !== formOf(first[1]) || node.default !== undefined)) return undefined
  const texts = fields.map(([, { description = "" }]) => description)
  const same = beginning(texts)
  if (same === "") return undefined
  const each = fields.map(([field], at) => `${field} (${texts[at]!.slice(same.length).replace(/\.$/, "")})`)
  return { ...first[1], description: `${same.trim()} KIND: ${each.join(", ")}.` }
}

/** Fields below a node, depth first, each with its path. A shape that has a name is described in its own section. */
const rowsOf = (node: Node, path: string): ReadonlyArray<Row> =>
  shapeOf(node) === undefined ? fieldsBelow(node, path) : []

const fieldsBelow = (node: Node, path: string): ReadonlyArray<Row> => {
  if (node.anyOf !== undefined) return node.anyOf.flatMap((option) => rowsOf(option, path))
  if (node.items !== undefined) return rowsOf(node.items, `${path}[]`)
  if (node.patternProperties !== undefined) {
    return Object.values(node.patternProperties).flatMap((value) => rowsOf(value, `${path}.NAME`))
  }
  const alike = alikeIn(node)
  if (alike !== undefined) return [{ path: `${path}.${KIND}`, node: alike, required: false }]
  return Object.entries(node.properties ?? {}).flatMap(([field, below]) => {
    const at = path === "" ? field : `${path}.${field}`
    const here = { path: at, node: below, required: node.required?.includes(field) ?? false }
    const isApart = (below.items ?? below).anyOf?.some((option) => typeOf(option) !== undefined) ?? false
    return [here, ...(isApart ? [] : rowsOf(below, at))]
  })
}

/** A field of a file, as people read it. */
export interface Field {
  readonly path: string
  readonly form: string
  readonly required: boolean
  /** The default as JSON; empty if there is none, or if it is long. */
  readonly byDefault: string
  readonly text: string
}

const fieldOf = ({ node, path, required }: Row, cut: string): Field => ({
  path: path.slice(cut.length),
  form: formOf(node),
  required,
  byDefault: node.default === undefined || !isPlain(node.default) ? "" : JSON.stringify(node.default),
  text: node.description ?? ""
})

export interface Part {
  /** Empty for the top-level fields of the file. */
  readonly title: string
  readonly fields: ReadonlyArray<Field>
}

/** Fields of a file, grouped by the first name in their path. */
const partsOf = (file: Node): ReadonlyArray<Part> => {
  const rows = rowsOf(file, "").filter(({ path }) => path !== "$schema")
  const deep = Map.groupBy(
    rows.filter(({ path }) => path.includes(".")),
    ({ path }) => path.slice(0, path.indexOf("."))
  )
  return [
    { title: "", fields: rows.filter(({ path }) => !path.includes(".")).map((row) => fieldOf(row, "")) },
    ...[...deep].map(([first, below]) => {
      const cut = below.every(({ path }) => path.startsWith(`${first}.NAME.`)) ? `${first}.NAME.` : `${first}.`
      return { title: cut.slice(0, -1), fields: below.map((row) => fieldOf(row, cut)) }
    })
  ]
}

/** Combines a field that several backends have; if the defaults differ, each backend's default is listed. */
const together = (all: ReadonlyArray<{ readonly of: string; readonly field: Field }>): Field => {
  const [first] = all
  const defaults = [...Map.groupBy(all, ({ field }) => field.byDefault)]
  const told = defaults.map(([text, them]) => `${text === "" ? "none" : text} (${them.map(({ of }) => of).join(", ")})`)
  return {
    ...first!.field,
    byDefault: defaults.length === 1 ? first!.field.byDefault : told.join("; "),
    text: `${first!.field.text} Of: ${all.map(({ of }) => of).join(", ")}.`
  }
}

/** Fields that several backends share, then those of each backend. A backend that agentd no longer has is left out. */
const backendsOf = (file: Node): ReadonlyArray<Part> => {
  const agents = Object.values(file.properties!["agents"]!.patternProperties!)[0]!
  const alive = agents.properties!["backend"]!.anyOf!.filter(
    (backend) => retired({ type: typeOf(backend)! }) === undefined
  )
  const backends = alive.map((backend) => ({
    of: typeOf(backend)!,
    fields: rowsOf(backend, "")
      .filter(({ path }) => path !== "type")
      .map((row) => fieldOf(row, ""))
  }))
  const all = backends.flatMap(({ fields, of }) => fields.map((field) => ({ of, field })))
  const alike = Map.groupBy(all, ({ field: { form, path, text } }) => [path, form, text].join("\n"))
  const shared = [...alike.values()].filter((them) => them.length > 1)
  const isShared = new Set(shared.flat().map(({ field }) => field))
  return [
    { title: "backend: several", fields: shared.map(together) },
    ...backends.map(({ fields, of }) => ({
      title: `backend: ${of}`,
      fields: fields.filter((field) => !isShared.has(field))
    }))
  ]
}

/** The first object of each named shape in or below the nodes. */
const shapesIn = (nodes: ReadonlyArray<Node>, found: Map<string, Node> = new Map()): ReadonlyMap<string, Node> => {
  for (const node of nodes) {
    const shape = shapeOf(node)
    if (shape !== undefined && !found.has(shape)) found.set(shape, node)
    const below = [node.properties ?? {}, node.patternProperties ?? {}].flatMap((fields) => Object.values(fields))
    shapesIn([...below, ...(node.anyOf ?? []), ...(node.items === undefined ? [] : [node.items])], found)
  }
  return found
}

/** The sections of the project's file, of the user's file, and of the named shapes. */
export const files = (): ReadonlyArray<{
  readonly title: string
  readonly about: string
  readonly parts: ReadonlyArray<Part>
}> => {
  const project: Node = jsonSchema("project")
  const user: Node = jsonSchema("user")
  return [
    {
      title: "agentd.jsonc, a project's file",
      about: "In the project's folder.",
      parts: [...partsOf(project), ...backendsOf(project)]
    },
    {
      title: "config.jsonc, your own",
      about: "In `$XDG_CONFIG_HOME/agentd` (`~/.config/agentd`); it counts for all projects.",
      parts: partsOf(user)
    },
    {
      title: "Shapes that recur",
      about: "What stands in several places looks the same in each.",
      parts: [...shapesIn([project, user])].map(([shape, node]) => ({
        title: `Shape: ${shape}`,
        fields: fieldsBelow(node, "").map((row) => fieldOf(row, ""))
      }))
    }
  ]
}

const code = (text: string): string => (text === "" ? "" : `\`${cell(text)}\``)

const part = ({ fields, title }: Part): string => {
  const rows = fields.map(({ byDefault, form, path, required, text }) => [
    code(path),
    cell(form),
    required ? "must be given" : code(byDefault),
    cell(text)
  ])
  return `${title === "" ? "" : `### ${title}\n\n`}${table(["field", "form", "default", "is"], rows)}`
}

export const render = (): string => `# Settings

Generated by \`npm run docs\` from the schemas that the files are read by: edit those, not this file.
\`agentd schema\` and \`agentd schema --user\` print them as JSON Schema, for an editor. NAME stands for a name of yours.
A time is a text such as \`"90 seconds"\`, a size one such as \`"4 GB"\`.

${files()
  .map(({ about, parts, title }) => `## ${title}\n\n${about}\n\n${parts.map(part).join("\n\n")}`)
  .join("\n\n")}
`
