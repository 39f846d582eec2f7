/** The secrets that a project's file holds or names reach no log, whichever backend they are for. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Secrets from "../../../src/projects/Secrets.ts"
import * as ConfigFile from "../../../src/config/ConfigFile.ts"
import { Redact } from "../../../src/core/event-log/Redact.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "agentd-secrets-"))),
  (made) => Effect.sync(() => rmSync(made, { recursive: true }))
)

const KEY = "k3y-0f-the-pr0vider"
const TOKEN = "t0ken-0f-the-server"
const SET = "v4lue-that-is-set"

describe("a project's secrets", () => {
  for (const backend of [
    { type: "model", provider: "anthropic", model: "m", keyFile: "key" },
    { type: "claude", sandbox: "on", provider: { keyFile: "key" } },
    { type: "acp", argv: ["agent"], sandbox: "on", provider: { api: "openai", keyFile: "key" } },
    { type: "command", argv: ["agent"], sandbox: "on", provider: { api: "openai", keyFile: "key" } }
  ] as const) {
    it.effect(`of a ${backend.type} agent: its key's file, and what is set for its programs`, () =>
      Effect.gen(function* () {
        const root = yield* folder
        writeFileSync(join(root, "key"), `${KEY}\n`, { mode: 0o600 })
        const mcp = { tools: { argv: ["server"], env: { SERVER_TOKEN: TOKEN } } }
        const settings = { ...backend, env: { MY_TOKEN: SET }, ...(backend.type === "model" ? { mcp } : {}) }
        writeFileSync(join(root, "agentd.jsonc"), JSON.stringify({ agents: { a: { backend: settings } } }))
        const project = yield* ConfigFile.load(join(root, "agentd.jsonc"))
        yield* Secrets.register(project)
        const redact = yield* Redact
        const told = redact.text(`${KEY} ${SET} ${TOKEN}`)
        assert.notInclude(told, KEY)
        assert.notInclude(told, SET)
        if (backend.type === "model") assert.notInclude(told, TOKEN)
      }).pipe(Effect.scoped, Effect.provide(Layer.merge(Redact.layer, NodeFileSystem.layer)))
    )
  }
})
