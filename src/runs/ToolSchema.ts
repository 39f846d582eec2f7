/**
 * ToolSchema: the JSON Schema of a tool's input, in a form that every provider accepts. A refused schema would make
 * every request fail.
 *
 * Guarantees: The schema is an object with properties, and has no choice (`anyOf` and the like) and no negation at its
 * top level.
 */
import { Schema } from "effect"

type JsonSchema = { readonly [keyword: string]: unknown }

/**
 * A schema from a foreign server, without keywords that a provider would refuse. The tool's own server still checks the
 * input.
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
