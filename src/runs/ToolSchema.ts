/**
 * ToolSchema: the JSON Schema of a tool's input, as every provider takes it: one that is refused ends each request.
 *
 * Guarantees: an object with its properties, and at its top neither a choice nor a negation.
 */
import { Schema } from "effect"

type JsonSchema = { readonly [keyword: string]: unknown }

/** A schema of somebody else's: what a provider would refuse goes, since the tool's own server checks the input. */
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
