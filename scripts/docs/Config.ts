/** Config: docs/reference/config.md, each field of `agentd.jsonc` and of the user's own file, from their JSON Schemas. */
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

/** The form of a value, in a few words. */
const formOf = (node: Node): string => {
  if (node.enum !== undefined) return node.enum.map((value) => `\`${JSON.stringify(value)}\``).join(" ")
  if (node.anyOf !== undefined) return [...new Set(node.anyOf.map(formOf))].join(" or ")
  if (node.patternProperties !== undefined) return "object by name"
  if (node.type === "array") return `list of ${formOf(node.items ?? {})}`
  const range = node.allOf?.find(({ maximum }) => maximum !== undefined) ?? node
  const type = node.type ?? node.$ref?.replace(/^.*\//, "") ?? "any"
  return range.minimum === undefined || range.maximum === undefined
    ? type
    : `${type}, ${range.minimum} to ${range.maximum}`
}

/** An option with a `type` of its own, such as a backend. */
const typeOf = (node: Node): string | undefined => node.properties?.["type"]?.enum?.map(String).join(" ")

interface Row {
  readonly path: string
  readonly node: Node
  readonly required: boolean
}

const isPlain = (value: unknown): boolean =>
  typeof value !== "object" || value === null || Object.keys(value).length < 4

/** Fields below a node, depth first, each with its path. */
const rowsOf = (node: Node, path: string): ReadonlyArray<Row> => {
  if (node.anyOf !== undefined) return node.anyOf.flatMap((option) => rowsOf(option, path))
  if (node.items !== undefined) return rowsOf(node.items, `${path}[]`)
  if (node.patternProperties !== undefined) {
    return Object.values(node.patternProperties).flatMap((value) => rowsOf(value, `${path}.NAME`))
  }
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
  /** As it is written; empty where there is none, or a long one. */
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
  /** Empty: the first fields of the file. */
  readonly title: string
  readonly fields: ReadonlyArray<Field>
}

/** Fields of a file, by their first word. */
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

const backendsOf = (file: Node): ReadonlyArray<Part> => {
  const agents = Object.values(file.properties!["agents"]!.patternProperties!)[0]!
  return agents.properties!["backend"]!.anyOf!.map((backend) => ({
    title: `backend: ${typeOf(backend)}`,
    fields: rowsOf(backend, "")
      .filter(({ path }) => path !== "type")
      .map((row) => fieldOf(row, ""))
  }))
}

/** Both files. */
export const files = (): ReadonlyArray<{
  readonly title: string
  readonly about: string
  readonly parts: ReadonlyArray<Part>
}> => {
  const project: Node = jsonSchema("project")
  return [
    {
      title: "agentd.jsonc, a project's file",
      about: "In the project's folder.",
      parts: [...partsOf(project), ...backendsOf(project)]
    },
    {
      title: "config.jsonc, your own",
      about: "In `$XDG_CONFIG_HOME/agentd` (`~/.config/agentd`); it counts for all projects.",
      parts: partsOf(jsonSchema("user"))
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
