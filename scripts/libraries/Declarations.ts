/**
 * Declarations: the types of all procedures as plain TypeScript, for users of `agentd/client`, who have no Effect. Made
 * from the schemas against which the daemon checks each call.
 */
import { Schema, SchemaRepresentation } from "effect"
import { Control } from "../../src/api/rpc/Protocol.ts"
import type { Input } from "../../src/api/rpc/Procedure.ts"

interface Declared {
  readonly tag: string
  readonly payload: Schema.Top
  readonly answer: Schema.Top
  readonly streams: boolean
}

const declared = (): ReadonlyArray<Declared> =>
  Array.from(Control.requests.values(), (rpc) => {
    const [payload, answer] = [rpc.payloadSchema as Schema.Top & Partial<Input>, rpc.successSchema as Schema.Top]
    const value = "success" in answer ? (answer.success as Schema.Top) : undefined
    return {
      tag: rpc._tag,
      payload: payload.bounds ?? Schema.Null,
      answer: value ?? answer,
      streams: value !== undefined
    }
  })

/** Without checks, which types cannot state. The one opaque schema is that of any JSON value. */
const bare = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(bare)
  if (typeof value !== "object" || value === null) return value
  if ("_tag" in value && value._tag === "Declaration") return { _tag: "Unknown", checks: [] }
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, key === "checks" ? [] : bare(one)]))
}

/** The types that these schemas have on the wire. */
const typesOf = (schemas: ReadonlyArray<Schema.Top>): ReadonlyArray<string> => {
  const [first, ...others] = schemas.map((schema) => Schema.toCodecJson(schema as Schema.Codec<unknown>).ast)
  const made = SchemaRepresentation.toRepresentations([first!, ...others])
  const { codes, references } = SchemaRepresentation.toCodeDocument(bare(made) as typeof made)
  const named = Object.keys(references.recursives).length + references.nonRecursives.length
  if (named > 0) throw new Error("libraries: a procedure's schema has a name, which its declaration would need")
  return codes.map(({ Type }) => Type.replaceAll(/"([A-Za-z_]\w*)"(\??):/g, "$1$2:"))
}

/** Replaces the declarations of src/api/rpc/ProcedureTypes.ts. */
export const procedures = (): string => {
  const all = declared()
  const payloads = typesOf(all.map(({ payload }) => payload))
  const answers = typesOf(all.map(({ answer }) => answer))
  const rows = all.map(({ streams, tag }, at) => ` ${tag}: [${payloads[at]}, ${answers[at]}, ${streams}]`)
  return `/** The procedures of the protocol: the payload, the answer, and whether it is a stream of answers. */
interface Procedures {
${rows.join("\n")}
}
export type Tag = keyof Procedures
/** Procedures that reply with a stream. */
export type StreamTag = { [T in Tag]: Procedures[T][2] extends true ? T : never }[Tag]
/** The payload's type; null for a procedure without a payload. */
export type PayloadOf<T extends Tag> = Procedures[T][0]
/** The reply. For a procedure that replies with a stream, the type of each value. */
export type Answer<T extends Tag> = Procedures[T][1]
`
}
