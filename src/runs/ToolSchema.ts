/**
 * ToolSchema: the JSON Schema of a tool's input, in a form that every provider accepts. A provider rejects every
 * request that contains a schema that it does not support.
 *
 * Guarantees: The schema is an object with properties, and has no `allOf`, `anyOf`, `oneOf`, `enum` or `not` at its top
 * level.
 */
import { Schema } from "effect"

type JsonSchema = { readonly [keyword: string]: unknown }

/**
 * Removes the keywords that a provider would reject. If the schema comes from an MCP server, that server still checks
 * the input.
 */
export const plain = ({
  allOf: _all,
  anyOf: _any,
  enum: _enum,
  not: _not,
  oneOf: _one,
  ...schema
}: JsonSchema): JsonSchema => ({
  properties: {},
  ...schema,
  type: "object"
})

export const of = (schema: Schema.Constraint): JsonSchema => {
  const { definitions, schema: body } = Schema.toJsonSchemaDocument(schema, { onExcessProperty: "error" })
  return {
    ...plain(body),
    additionalProperties: false,
    ...(Object.keys(definitions).length === 0 ? {} : { $defs: definitions })
  }
}
