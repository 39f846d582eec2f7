/**
 * ToolDialect: checks the schemas of tools against the strictest known rules of model providers.
 *
 * Sources: OpenAI "Structured outputs", supported schemas (the root is an object and no anyOf, objects have properties
 * and "additionalProperties": false, no not, allOf, oneOf or if); Anthropic's Messages API (input_schema has type
 * object and at its top no oneOf, allOf or anyOf); Gemini function declarations (arrays have items, enums are of
 * strings).
 */
export type Json = { readonly [keyword: string]: unknown }
const NEVER = [
  "not",
  "allOf",
  "oneOf",
  "if",
  "then",
  "else",
  "dependentSchemas",
  "dependentRequired",
  "patternProperties"
]
const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)

/** Rules that the schema breaks, each with its place in the schema. */
export const broken = (schema: Json, root: Json = schema, place = "#"): ReadonlyArray<string> => {
  const said = (rule: string) => `${place}: ${rule}`
  const inner = (value: unknown, at: string) =>
    isObject(value) ? broken(value, root, `${place}/${at}`) : [said(`${at} is no schema`)]
  const own: Array<string> = NEVER.filter((word) => word in schema).map(said)
  if (place === "#" && (schema["type"] !== "object" || "anyOf" in schema)) own.push(said("the top is no plain object"))
  if (typeof schema["$ref"] === "string") {
    const name = /^#\/\$defs\/(.+)$/.exec(schema["$ref"])?.[1]
    const defs = root["$defs"]
    if (name === undefined || !isObject(defs) || !isObject(defs[name])) own.push(said("a $ref leads nowhere"))
    return own
  }
  const { anyOf, properties, required = [], type } = schema
  if (type === undefined && anyOf === undefined) own.push(said("no type"))
  if (Array.isArray(type)) own.push(said("several types"))
  if (schema["enum"] !== undefined && !(schema["enum"] as ReadonlyArray<unknown>).every((one) => typeof one === type))
    own.push(said("enum of another type"))
  if (type === "object") {
    if (!isObject(properties)) return [...own, said("no properties")]
    if (schema["additionalProperties"] !== false && schema["additionalProperties"] !== undefined)
      own.push(said("additionalProperties"))
    for (const name of required as ReadonlyArray<string>)
      if (!(name in properties)) own.push(said(`${name} is required and unknown`))
    for (const [name, value] of Object.entries(properties)) own.push(...inner(value, name))
  }
  if (type === "array") own.push(...inner(schema["items"], "items"))
  if (Array.isArray(anyOf)) for (const [at, value] of anyOf.entries()) own.push(...inner(value, `anyOf/${at}`))
  for (const [name, value] of Object.entries(
    (place === "#" && isObject(schema["$defs"]) ? schema["$defs"] : {}) as Json
  ))
    own.push(...inner(value, name))
  return own
}
