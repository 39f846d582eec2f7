/** Tests of the schemas that models are given: each passes a checker of the strictest dialect that is known. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { toolsOf } from "../../../src/cli/mcp/AssistantTools.ts"
import * as ChannelTools from "../../../src/cli/mcp/ChannelTools.ts"
import * as McpTools from "../../../src/cli/mcp/McpTools.ts"
import { broken, type Json } from "../../support/ToolDialect.ts"
import * as ToolSchema from "../../../src/runs/ToolSchema.ts"

const person = { socket: "", caller: { by: "ada", config: null } }
const own = [...McpTools.tools, ...ChannelTools.tools, ...toolsOf(person)].map(
  ({ input, name }) => [name, input as Json] as const
)

describe("the schema of every tool passes the strictest dialect", () => {
  it.each(own)("agentd mcp: %s", (_, input) => assert.deepStrictEqual(broken(input), []))

  it("an empty input is an object without properties", () => {
    assert.deepStrictEqual(ToolSchema.of(Schema.Struct({})), {
      type: "object",
      properties: {},
      additionalProperties: false
    })
  })

  it("a schema of another server's loses what is refused, and keeps what it says of its fields", () => {
    const properties = { path: { type: "string" } }
    for (const more of [
      {},
      { not: { type: "null" } },
      { anyOf: [{ required: ["path"] }] },
      { oneOf: [] },
      { allOf: [] },
      { enum: [1] }
    ]) {
      assert.deepStrictEqual(broken(ToolSchema.plain({ ...more, properties })), [])
      assert.deepStrictEqual(broken(ToolSchema.plain(more)), [])
      assert.deepStrictEqual(ToolSchema.plain({ ...more, properties })["properties"], properties)
    }
  })

  it("the checker finds what is wrong", () => {
    for (const bad of [
      { type: "object" },
      { type: "object", not: { type: "null" } },
      { anyOf: [] },
      { type: "object", properties: { a: { type: "array" } } },
      { type: "object", properties: { a: { $ref: "#/$defs/b" } } },
      { type: "object", properties: {}, required: ["a"] },
      { type: "object", properties: {}, additionalProperties: true }
    ])
      assert.isNotEmpty(broken(bad))
  })
})
