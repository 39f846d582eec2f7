/** An entry of `fallback` without a type is the agent's own backend with these fields changed: what it takes over, and what it must not. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { consequencesOf } from "../../../src/config/ConfigChange.ts"
import * as ConfigFile from "../../../src/config/ConfigFile.ts"

type Fields = { readonly [field: string]: unknown }

const file = (backend: Fields, ...fallback: ReadonlyArray<unknown>) =>
  JSON.stringify({ agents: { ann: { backend, fallback } } }, null, 1)
const parsed = (text: string) => Effect.runSync(Effect.result(ConfigFile.parse(text, "/w/shop/agentd.jsonc")))
const project = (backend: Fields, ...fallback: ReadonlyArray<unknown>) => {
  const result = parsed(file(backend, ...fallback))
  if (Result.isFailure(result)) throw new Error(result.failure.message)
  return result.success
}
const fallbacks = (backend: Fields, ...fallback: ReadonlyArray<unknown>) =>
  project(backend, ...fallback).agents["ann"]!.fallback as unknown as ReadonlyArray<Fields>
const problems = (backend: Fields, ...fallback: ReadonlyArray<unknown>) => {
  const result = parsed(file(backend, ...fallback))
  return Result.isFailure(result) ? result.failure.problems : []
}

const MODEL = {
  type: "model",
  provider: "anthropic",
  model: "big",
  baseUrl: "https://one.example.org",
  keyFile: "key",
  price: { input: 5, output: 25 },
  contextTokens: 200_000,
  maxRounds: 7
}

describe("a fallback without a type", () => {
  it("is the agent's own backend with these fields in place of its own", () => {
    const [other] = fallbacks(MODEL, { keyFile: "other" })
    assert.deepInclude(other, {
      type: "model",
      model: "big",
      baseUrl: MODEL.baseUrl,
      keyFile: "/w/shop/other",
      maxRounds: 7
    })
    const claude = { type: "claude", binary: "/opt/claude", env: { A: "1", CLAUDE_CONFIG_DIR: "/one" } }
    const [login, cheap] = fallbacks(claude, { env: { CLAUDE_CONFIG_DIR: "/two" } }, { model: "haiku" })
    assert.deepInclude(login, { binary: "/opt/claude", env: { A: "1", CLAUDE_CONFIG_DIR: "/two" } })
    assert.deepInclude(cheap, { binary: "/opt/claude", model: "haiku", env: claude.env })
  })

  it("takes no key to another provider, no price to another model, and one place of a key at a time", () => {
    const [elsewhere, cheap, variable] = fallbacks(
      MODEL,
      { provider: "openai", model: "other" },
      { model: "small" },
      { keyEnv: "OTHER_KEY" }
    )
    for (const field of ["baseUrl", "keyFile", "keyEnv", "price"]) assert.isUndefined(elsewhere![field], field)
    assert.deepInclude(cheap, { keyFile: "/w/shop/key", baseUrl: MODEL.baseUrl })
    for (const field of ["price", "contextTokens"]) assert.isUndefined(cheap![field], field)
    assert.deepInclude(variable, { keyEnv: "OTHER_KEY", price: MODEL.price })
    assert.isUndefined(variable!["keyFile"])
    const acp = { type: "acp", argv: ["a"], provider: { api: "openai", baseUrl: "https://x.example.org", keyEnv: "X" } }
    assert.deepStrictEqual(
      fallbacks(acp, { provider: { keyFile: "/y" } }, { provider: { api: "gemini" } }).map((one) => one["provider"]),
      [{ api: "openai", baseUrl: "https://x.example.org", keyFile: "/y" }, { api: "gemini" }]
    )
    const [line] = fallbacks({ type: "command", argv: ["a"] }, { shell: "b" })
    assert.deepInclude(line, { shell: "b" })
    assert.isUndefined(line!["argv"])
  })

  it("with a type is a whole backend: nothing of the agent's own is in it", () => {
    const [whole] = fallbacks(MODEL, { type: "model", provider: "anthropic", model: "small" })
    for (const field of ["baseUrl", "keyFile", "price"]) assert.isUndefined(whole![field], field)
    assert.strictEqual(whole!["maxRounds"], 200)
    assert.deepStrictEqual(
      problems(MODEL, { type: "model", model: "small" }).map(({ field, message }) => `${field} ${message}`),
      ["agents.ann.fallback[0].provider is missing"]
    )
  })

  it("that is wrong is told by its field, with what may stand there", () => {
    const [unknown] = problems({ type: "claude" }, { keyFile: "x" })
    assert.deepInclude(unknown, { field: "agents.ann.fallback[0].keyFile", line: 9 })
    assert.match(unknown!.message, /is not a field of the type "claude"/)
    assert.match(unknown!.remedy, /"model" takes it/)
    const [wrong] = problems(MODEL, { retries: "often" })
    assert.strictEqual(wrong!.field, "agents.ann.fallback[0].retries")
    assert.match(wrong!.message, /must be a/)
    const [lonely] = problems({}, { model: "x" })
    assert.match(`${lonely!.field} ${lonely!.message}`, /type is missing/)
    for (const odd of [null, 3, "claude", [], [[]]]) assert.isNotEmpty(problems(MODEL, odd), JSON.stringify(odd))
  })

  it("says nothing of a field that is wrong in the agent's own", () => {
    assert.deepStrictEqual(
      problems({ ...MODEL, retries: -1 }, { model: "small" }).map(({ field }) => field),
      ["agents.ann.backend.retries"]
    )
  })

  it("is asked about where it is more than before, and not where a harmless field of the own one changes", () => {
    const before = project(MODEL, { keyFile: "other" })
    const shown = (backend: Fields, ...fallback: ReadonlyArray<unknown>) =>
      consequencesOf(before, project(backend, ...fallback)).map(
        ({ dangerous, text }) => `${dangerous ? "! " : ""}${text}`
      )
    assert.deepStrictEqual(shown({ ...MODEL, maxRounds: 9 }, { keyFile: "other" }), [
      "agents.ann.backend.maxRounds: 7 → 9",
      "agents.ann.fallback.1.maxRounds: 7 → 9"
    ])
    assert.deepStrictEqual(shown(MODEL), [
      'agents.ann.fallback.1: asks big, sent to https://one.example.org with the key of /w/shop/other, tools ["shell","read","write","edit","list","search"] → nothing'
    ])
    assert.deepStrictEqual(shown(MODEL, { keyFile: "third" }), [
      '! agents.ann.fallback.1.keyFile: "/w/shop/other" → "/w/shop/third"'
    ])
    const [more] = shown(MODEL, { keyFile: "other" }, { type: "command", argv: ["curl", "evil"] })
    assert.strictEqual(more, '! agents.ann.fallback.2: nothing → runs ["curl","evil"]')
    const [born] = consequencesOf(undefined, before)
    assert.include(born!.text, "falls back: asks big, sent to https://one.example.org with the key of /w/shop/other")
  })

  it("is what editors take, too", () => {
    const schema = JSON.stringify(ConfigFile.jsonSchema())
    assert.include(schema, '"required":[]')
    assert.notInclude(JSON.stringify(ConfigFile.jsonSchema("user")), '"required":[]')
  })
})
