/**
 * toolbox: a home with secrets, a workspace in it, and the environment of a daemon that knows only this home. Also a
 * marked run whose processes are ended with the test. For the tests of agentd's own tools.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Duration, Effect, Layer, Schema } from "effect"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import type { RunSpec } from "../../src/runs/Backend.ts"
import { ProcessTree } from "../../src/runs/process/ProcessTree.ts"
import { Reaper } from "../../src/runs/process/Reaper.ts"
import { type Mechanism, probe, Sandbox } from "../../src/runs/sandbox/Sandbox.ts"
import type { Tool, ToolOutcome } from "../../src/model-agent/Tool.ts"
import type { Host } from "../../src/runs/Host.ts"
import { ModelBackend } from "../../src/config/BackendConfig.ts"
import { world } from "./backend-run.ts"

export const SECRET = "the-secret-of-this-test"

export const config = (given: Partial<typeof ModelBackend.Encoded> = {}): ModelBackend =>
  Schema.decodeSync(ModelBackend)({ type: "model", provider: "anthropic", model: "m", ...given })

export const yard = Effect.gen(function* () {
  const { store, folder } = yield* world
  const at = (...parts: ReadonlyArray<string>) => path.join(folder, ...parts)
  const [home, root, outside] = [at("home"), at("home", "project"), at("outside")]
  for (const one of [root, outside, at("home", ".ssh"), at("home", ".local", "state", "agentd")])
    fs.mkdirSync(one, { recursive: true })
  fs.writeFileSync(at("outside", "secret"), SECRET)
  fs.writeFileSync(at("home", ".ssh", "id_ed25519"), SECRET)
  fs.writeFileSync(at("home", ".local", "state", "agentd", "runes.db"), SECRET)
  // without the entries of package managers: the checkout can be in a folder that the sandbox hides
  const PATH = (process.env["PATH"] ?? "").split(":").filter((entry) => !entry.includes("node_modules"))
  const environment = { PATH: PATH.join(":"), HOME: home, OPENAI_API_KEY: SECRET, LANG: "C.UTF-8" }
  const host: Host = { store, environment }
  const spec: RunSpec = {
    runId: "run-1",
    agent: "builder",
    turnId: "turn-1",
    prompt: "",
    cwd: root,
    env: {},
    resume: undefined,
    mcp: {}
  }
  return { folder, home, root, outside, environment, host, spec, at }
})

export const services = Layer.mergeAll(ProcessTree.layer, Reaper.layerNone, NodeFileSystem.layer)

/** A layer for a mechanism that was found before. */
export const sandboxOf = (mechanism: Mechanism) => Layer.succeed(Sandbox, { mechanism: Effect.succeed(mechanism) })

/** The result of trying each kind of sandbox on this machine; a missing kind has the kind `none` and a note. */
export const mechanisms: ReadonlyArray<Mechanism> = await Promise.all(
  (["bubblewrap", "namespaces"] as const).map((kind) => Effect.runPromise(probe(process.env, [kind])))
)

export const held = mechanisms.filter((one) => one.kind !== "none")

export const missing = mechanisms.filter((one) => one.kind === "none").map(({ note }) => note)
for (const note of missing) process.stderr.write(`SKIPPED, no sandbox of this kind on this machine: ${note}\n`)

/** Calls a tool; its output while it runs is added to `told`. */
export const call = (tool: Tool | undefined, input: unknown, told: Array<string> = []): Effect.Effect<ToolOutcome> =>
  tool === undefined
    ? Effect.die(new Error("there is no such tool"))
    : Effect.scoped(
        tool.run(input, {
          callId: "call-1",
          limit: Duration.infinity,
          progress: (_, chunk) => Effect.sync(() => void told.push(chunk))
        })
      )

export const git = (folder: string, ...args: ReadonlyArray<string>) =>
  execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.org", "-C", folder, ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"]
  })
