/**
 * Tests of the description of what is answered over HTTP: it is OpenAPI 3.1, it has every verb with its right, and
 * what was recorded of the protocol fits its schemas.
 */
import { assert, describe, it } from "@effect/vitest"
import { Context, JsonSchema, Result, Schema, SchemaRepresentation } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import * as ApiDescriptions from "../../../src/api/http/ApiDescriptions.ts"
import * as OpenApi from "../../../src/api/http/OpenApi.ts"
import { Speaks } from "../../../src/api/rpc/Procedure.ts"
import { procedures } from "../../../src/api/rpc/Protocol.ts"
import { forms } from "../../../src/api/rpc/VerbForms.ts"
import { ourselves, PROTOCOL } from "../../../src/api/rpc/Version.ts"

// as it goes out
const document = JSON.parse(JSON.stringify(OpenApi.describe(forms, ourselves))) as ReturnType<typeof OpenApi.describe>
const schemas = document.components.schemas as unknown as { readonly [name: string]: JsonSchema.JsonSchema }

interface Exchange {
  readonly tag: string
  readonly payload: null | { readonly caller?: { readonly config: string | null }; readonly by?: unknown }
  readonly chunks: ReadonlyArray<unknown>
  readonly exit: { readonly _tag: string; readonly value?: unknown }
}

const recorded = readFileSync(join(import.meta.dirname, `../../world/rpc/exchanges/protocol-${PROTOCOL}.jsonl`), "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Exchange)

/** Why the value does not fit the schema of that name; undefined: it does. */
const misfit = (name: string, value: unknown): string | undefined => {
  const schema = SchemaRepresentation.fromJsonSchemaDocument(JsonSchema.fromSchemaOpenApi3_1(schemas[name]!), {
    patterns: "apply"
  })
  const read = Schema.decodeUnknownResult(schema as Schema.Codec<unknown>)(value)
  return Result.isFailure(read) ? `${name}: ${read.failure.message}` : undefined
}

/** Every object in it, with its path. */
const walk = (value: unknown, at: string): ReadonlyArray<readonly [string, Record<string, unknown>]> =>
  typeof value !== "object" || value === null
    ? []
    : [
        [at, value as Record<string, unknown>],
        ...Object.entries(value).flatMap(([key, inner]) => walk(inner, `${at}/${key}`))
      ]

/** The place that a reference names. */
const at = (pointer: string): unknown =>
  pointer
    .slice(2)
    .split("/")
    .reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], document)

describe("the description", () => {
  it("has a line for each verb and each stream, a word for each field, and no word that nothing has", () => {
    const operations = Object.values(document.paths).flatMap((item) => Object.values(item as object)) as ReadonlyArray<{
      readonly operationId: string
      readonly summary: string
    }>
    const silent = operations
      .filter(({ summary }) => !/^[A-Z][^]+\.$/.test(summary))
      .map(({ operationId }) => operationId)
    assert.deepStrictEqual(silent, [])
    const known = new Set(forms.map(({ name }) => name))
    assert.deepStrictEqual(
      Object.keys(ApiDescriptions.verbs).filter((name) => !known.has(name)),
      []
    )
    const used = new Set<string>()
    const wordless = walk(schemas, "").flatMap(([path, object]) => {
      const properties = path.endsWith("/properties") ? [] : Object.entries(object["properties"] ?? {})
      return properties.flatMap(([name, field]: [string, any]) => {
        if (field.description === ApiDescriptions.fields[name]) used.add(name)
        return typeof field.description === "string" && field.description !== "" ? [] : [`${path}/${name}`]
      })
    })
    assert.deepStrictEqual(wordless, [])
    assert.deepStrictEqual(
      Object.keys(ApiDescriptions.fields).filter((name) => !used.has(name)),
      []
    )
    for (const [status, { description }] of Object.entries<{ readonly description: string }>(
      document.components.responses
    ))
      assert.isNotEmpty(description, status)
  })

  it("is OpenAPI 3.1: its objects have what they must, its names their form, its references a place", () => {
    assert.match(document.openapi, /^3\.1\.\d+$/)
    assert.hasAllKeys(document, ["openapi", "info", "servers", "paths", "components"])
    assert.isString(document.info.title)
    assert.strictEqual(document.info.version, ourselves.version)
    const ids: Array<string> = []
    for (const [path, item] of Object.entries(document.paths))
      for (const [method, operation] of Object.entries(item as object) as ReadonlyArray<[string, any]>) {
        assert.match(path, /^\/[\w/.]+$/)
        assert.include(["get", "post"], method)
        ids.push(operation.operationId)
        assert.isNotEmpty(Object.keys(operation.responses))
        for (const [status, response] of Object.entries<any>(operation.responses)) {
          assert.match(status, /^[1-5]\d\d$/)
          assert.isString((response.$ref === undefined ? response : (at(response.$ref) as any)).description)
        }
        for (const parameter of operation.parameters ?? []) {
          assert.include(["query", "header"], parameter.in)
          assert.isObject(parameter.schema)
        }
        for (const [scheme] of Object.entries(operation.security[0]))
          assert.property(document.components.securitySchemes, scheme)
      }
    assert.strictEqual(new Set(ids).size, ids.length)
    for (const name of Object.keys(schemas)) assert.match(name, /^[a-zA-Z0-9._-]+$/)
    for (const [path, { $ref }] of walk(document, "#"))
      if ($ref !== undefined) assert.isDefined(at(String($ref)), `${path}: ${String($ref)}`)
  })

  it("has every procedure but those of runs and of tokens, with the right that it needs", () => {
    const hidden = /^(Hello|Voice\w*|Grant|Invite|Accesses|Revoke)$/
    const paths = document.paths as Record<string, any>
    for (const { rpc } of procedures) {
      const operation = paths[`/v1/${rpc._tag}`]?.post
      if (hidden.test(rpc._tag)) assert.isUndefined(operation, rpc._tag)
      else {
        const reads = Context.get(rpc.annotations, Speaks) === undefined && !/^(Alert|Notify)Test$/.test(rpc._tag)
        assert.strictEqual(operation?.["x-agentd-right"], reads ? "view" : "act", rpc._tag)
      }
    }
    assert.strictEqual(forms.length, Object.keys(paths).length - 2)
  })

  it("fits what was recorded: requests, replies, values of streams", () => {
    let seen = 0
    for (const { chunks, exit, payload, tag } of recorded) {
      if (schemas[`${tag}Reply`] === undefined) continue
      const { by: _, caller, ...rest } = payload ?? {}
      const body =
        tag === "Costs" ? payload : { ...rest, ...(caller === undefined ? {} : { caller: { config: caller.config } }) }
      if (exit._tag === "Success" && schemas[`${tag}Request`] !== undefined)
        assert.isUndefined(misfit(`${tag}Request`, body))
      for (const chunk of chunks) assert.isUndefined(misfit(`${tag}Reply`, chunk))
      const form = forms.find(({ name }) => name === tag)!
      if (exit._tag === "Success" && !form.streams) assert.isUndefined(misfit(`${tag}Reply`, exit.value))
      seen++
    }
    assert.isAbove(seen, 40)
  })

  it("says what is refused", () => {
    const send = { name: "builder", text: "hello", how: "queue" }
    assert.isUndefined(misfit("SendRequest", send))
    for (const bad of [{ ...send, text: " " }, { ...send, how: "soon" }, { name: "builder" }, "hello", null])
      assert.isDefined(misfit("SendRequest", bad), JSON.stringify(bad))
    assert.isDefined(misfit("AgentRequest", { name: "x".repeat(10_000) }))
  })
})
