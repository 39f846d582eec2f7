/**
 * OwnAgent: writes the JSON schemas of `_meta` into docs/own-agent.md, between the two marks.
 */
import { Schema } from "effect"
import { SCHEMAS } from "../../src/runs/acp/AcpMeta.ts"

const [FROM, TO] = ["<!-- schemas -->", "<!-- end of the schemas -->"] as const

const schemaOf = (schema: Schema.Top): string =>
  JSON.stringify(Schema.toJsonSchemaDocument(schema, { onExcessProperty: "ignore" }).schema, null, 2)

/** Returns the page with the current schemas. */
export const render = (page: string): string => {
  const [before, after] = [page.indexOf(FROM), page.indexOf(TO)]
  if (before === -1 || after === -1) throw new Error(`docs/own-agent.md has no ${FROM} … ${TO}`)
  const all = Object.entries(SCHEMAS).map(
    ([name, schema]) => `\`${name}\`:\n\n\`\`\`json\n${schemaOf(schema)}\n\`\`\`\n`
  )
  return `${page.slice(0, before)}${FROM}\n\n${all.join("\n")}\n${page.slice(after)}`
}
