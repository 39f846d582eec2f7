/**
 * OpenApi: generates the OpenAPI description of the HTTP interface for pages and programs from the verbs' schemas.
 * Pure.
 *
 * Guarantees: the schemas are the ones against which calls are checked, so the description is never out of date. For
 * each verb, the required right and the possible refusals are listed.
 */
import { JsonSchema, Schema, SchemaRepresentation } from "effect"
import { isReadonlyObject as isObject } from "effect/Predicate"
import { Code } from "../../domain/Messages.ts"
import type { VerbForm } from "../../domain/Verb.ts"
import * as ApiDescriptions from "./ApiDescriptions.ts"

export interface Versions {
  readonly version: string
  readonly protocol: number
}

const REFUSAL = Schema.Struct({
  error: Schema.String.annotate({ description: "What went wrong." }),
  code: Code.annotate({
    description: "The reason as a code for programs; the reference of errors explains each code."
  }),
  field: Schema.NullOr(Schema.String).annotate({
    description: "The field of the request that is wrong; null: no particular field."
  }),
  remedy: Schema.String.annotate({ description: "What to do." })
})

const refusals: { readonly [status: string]: string } = {
  "400": "The body is not JSON, or did not arrive completely.",
  "401": "The token is missing or unknown.",
  "403": "The token lacks the right, or the request has another host name, or comes from another page.",
  "409": "The request is refused: a value is invalid, a name is unknown, or it is not possible now.",
  "413": "The body is too long.",
  "503": "The daemon is stopping, cannot write, or has too many calls. Try again."
}

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })
const content = (type: string, name: string) => ({ content: { [type]: { schema: ref(name) } } })
const refused = Object.fromEntries(
  Object.keys(refusals).map((status) => [status, { $ref: `#/components/responses/${status}` }])
)

const rightOf = ({ reads }: VerbForm): string => (reads ? "view" : "act")

const operation = (form: VerbForm) => ({
  operationId: form.name,
  tags: [form.reads ? "reads" : "acts"],
  summary: ApiDescriptions.verbs[form.name] ?? "",
  description: form.streams
    ? `Needs the right to ${rightOf(form)}. Returns a stream of values, one JSON value per line. If the call fails, the refusal is the last line.`
    : `Needs the right to ${rightOf(form)}.`,
  "x-agentd-right": rightOf(form),
  security: [{ token: [] }],
  ...(form.payload === undefined
    ? {}
    : { requestBody: { required: true, ...content("application/json", `${form.name}Request`) } }),
  responses: {
    "200": {
      description: form.streams ? "One line for each value." : form.reads ? "The requested data." : "Done.",
      ...content(form.streams ? "application/x-ndjson" : "application/json", `${form.name}Reply`)
    },
    ...refused
  }
})

const query = (name: string, type: string, description: string) => ({
  name,
  in: "query",
  required: false,
  description,
  schema: { type }
})

/** The response description of an event stream. `of`: schema of the events' data. */
const stream = (operationId: string, description: string, of: string, parameters: ReadonlyArray<object>) => ({
  get: {
    operationId,
    tags: ["streams"],
    summary: description,
    description: `${description} Needs the right to view. The stream ends when the token is revoked. If it fails, its last event is \`event: refused\`.`,
    "x-agentd-right": "view",
    security: [{ token: [] }],
    parameters,
    responses: {
      "200": {
        description: "Server-sent events: `id` is a rune's number, `data` is JSON.",
        content: { "text/event-stream": { schema: { type: "string" }, "x-agentd-data": ref(of) } }
      },
      "401": refused["401"],
      "403": refused["403"]
    }
  }
})

const streams = {
  "/events": stream("events", "The log's runes after a position, then new runes as they are written.", "LogReply", [
    {
      name: "Last-Event-ID",
      in: "header",
      required: false,
      description: "Number of the last rune that was received.",
      schema: { type: "integer" }
    },
    query("after", "integer", "Number of the last rune that was received, if the header is missing."),
    query("tail", "integer", "Without a position: how many of the newest runes to send first."),
    query("kinds", "string", "Only runes of these kinds, separated by commas."),
    query("agent", "string", "Only runes of this agent."),
    query("stream", "string", "Only runes of this stream."),
    query("internal", "boolean", "Includes internal runes.")
  ]),
  "/board": stream("board", "The whole board first, then its changes.", "BoardNewsReply", [])
}

/** Adds a description to each field in a schema that has no description of its own. */
const worded = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(worded)
  if (!isObject(value)) return value
  const { properties, ...rest } = value
  const others = Object.fromEntries(Object.entries(rest).map(([key, one]) => [key, worded(one)]))
  if (!isObject(properties)) return properties === undefined ? others : { ...others, properties }
  const named = Object.entries(properties).map(([name, one]) => {
    const field = worded(one)
    const word = ApiDescriptions.fields[name]
    return [
      name,
      isObject(field) && !("description" in field) && word !== undefined ? { ...field, description: word } : field
    ]
  })
  return { ...others, properties: Object.fromEntries(named) }
}

/** All schemas by name in one table, as OpenAPI requires. */
const schemasOf = (named: ReadonlyArray<readonly [string, Schema.Codec<unknown, unknown>]>) => {
  const asts = named.map(([, schema]) => Schema.toCodecJson(schema).ast)
  const made = JsonSchema.toMultiDocumentOpenApi3_1(
    SchemaRepresentation.toJsonSchemaMultiDocument(
      SchemaRepresentation.toRepresentations(asts as [(typeof asts)[0], ...typeof asts])
    )
  )
  return { ...made.definitions, ...Object.fromEntries(named.map(([name], index) => [name, made.schemas[index]!])) }
}

export const describe = (forms: ReadonlyArray<VerbForm>, { protocol, version }: Versions) => ({
  openapi: "3.1.0",
  info: {
    title: "agentd",
    version: `${version}`,
    description: `The HTTP API of an agentd daemon, on loopback. Protocol ${protocol}. Create a token: agentd access new`,
    "x-agentd-protocol": protocol
  },
  servers: [
    {
      url: "http://127.0.0.1:{port}",
      description: "agentd access new prints the port.",
      variables: { port: { default: "20000" } }
    }
  ],
  paths: {
    ...Object.fromEntries(forms.map((form) => [`/v1/${form.name}`, { post: operation(form) }])),
    ...streams
  },
  components: {
    securitySchemes: { token: { type: "http", scheme: "bearer" } },
    responses: Object.fromEntries(
      Object.entries(refusals).map(([status, description]) => [
        status,
        { description, ...content("application/json", "Refusal") }
      ])
    ),
    schemas: worded(
      schemasOf([
        ["Refusal", REFUSAL as Schema.Codec<unknown, unknown>],
        ...forms.flatMap((form): ReadonlyArray<readonly [string, Schema.Codec<unknown, unknown>]> => [
          ...(form.payload === undefined ? [] : [[`${form.name}Request`, form.payload] as const]),
          [`${form.name}Reply`, form.success]
        ])
      ])
    ) as ReturnType<typeof schemasOf>
  }
})
