/** Whether what agents are configured with is there, on a real disk. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { join } from "node:path"
import { checks } from "../../../src/board/Readiness.ts"
import { parse } from "../../../src/config/ConfigFile.ts"

const PROGRAM = "#!/bin/sh\n"

/** A project with a program on the PATH, one beside the config, and one that may not be executed. */
const project = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const root = yield* fs.makeTempDirectoryScoped()
  yield* fs.makeDirectory(join(root, "bin"))
  for (const [file, mode] of [
    ["bin/coder", 0o755],
    ["here.sh", 0o755],
    ["bin/data", 0o644]
  ] as const) {
    yield* fs.writeFileString(join(root, file), PROGRAM, { mode })
  }
  return root
})

const found = Effect.fnUntraced(function* (agents: object, environment: { readonly [name: string]: string } = {}) {
  const root = yield* project
  const text = JSON.stringify({
    agents: Object.fromEntries(Object.entries(agents).map(([a, backend]) => [a, { backend }]))
  })
  const config = yield* parse(text, join(root, "agentd.jsonc"))
  const place = { root, environment: { PATH: join(root, "bin"), ...environment }, whose: "the daemon's" }
  const all = yield* checks(config.agents, place)
  return all.map(({ detail, level, name }) => `${level} ${name}: ${detail.replaceAll(root, "…")}`)
})

const withFiles = <A, E>(body: Effect.Effect<A, E, FileSystem.FileSystem | import("effect").Scope.Scope>) =>
  body.pipe(Effect.scoped, Effect.provide(NodeFileSystem.layer))

it.live("programs are looked for where the agent would be started, each once", () =>
  withFiles(
    Effect.gen(function* () {
      assert.deepStrictEqual(
        yield* found({
          a: { type: "claude", binary: "coder" },
          b: { type: "acp", argv: ["coder", "acp"] },
          c: { type: "command", argv: ["./here.sh"] },
          d: { type: "command", argv: ["data"] },
          e: { type: "command", argv: ["../gone"], cwd: "bin" },
          f: { type: "command", shell: "whatever it is" },
          g: { type: "command", argv: ["coder"], env: { PATH: "/nowhere" } }
        }),
        [
          "ok program coder: …/bin/coder (a, b)",
          "ok program here.sh: …/here.sh (c)",
          "fail program data: it is not on the daemon's PATH (d)",
          "fail program gone: ../gone does not exist (e)",
          "fail program coder: it is not on the daemon's PATH (g)"
        ]
      )
    })
  )
)

it.live("a known program's login is looked for, as init looks, and is a doubt where there is none", () =>
  withFiles(
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const home = yield* fs.makeTempDirectoryScoped()
      yield* fs.writeFileString(join(home, "claude"), PROGRAM, { mode: 0o755 })
      yield* fs.makeDirectory(join(home, "settings"))
      yield* fs.writeFileString(join(home, "settings", ".credentials.json"), "{}")
      const logins = (environment: { readonly [name: string]: string }, backend: object = {}) =>
        Effect.map(found({ a: { type: "claude", ...backend } }, { HOME: home, PATH: home, ...environment }), (lines) =>
          lines.filter((line) => line.includes("login")).map((line) => line.replaceAll(home, "~"))
        )
      const none = yield* logins({})
      assert.match(none.join(), /^warn login claude: probably not logged in.* ANTHROPIC_API_KEY, .* \(a\)$/)
      assert.deepStrictEqual(yield* logins({ ANTHROPIC_API_KEY: "k" }), ["ok login claude: ANTHROPIC_API_KEY (a)"])
      assert.deepStrictEqual(yield* logins({}, { env: { ANTHROPIC_AUTH_TOKEN: "k" } }), [
        "ok login claude: ANTHROPIC_AUTH_TOKEN (a)"
      ])
      assert.deepStrictEqual(yield* logins({ CLAUDE_CONFIG_DIR: join(home, "settings") }), [
        "ok login claude: ~/settings/.credentials.json (a)"
      ])
    })
  )
)

it.live("an agent that asks nobody by itself is named, unless it has full access", () =>
  withFiles(
    Effect.gen(function* () {
      const backend = { type: "acp", argv: ["opencode", "acp"] }
      const said = (yield* found({ a: backend, b: backend, c: { ...backend, argv: ["gemini", "--acp"] } })).filter(
        (line) => line.includes("asks")
      )
      assert.deepStrictEqual(said, [
        "warn asks: opencode has no mode for asking: unless its own config says so, its calls run without approval"
      ])
    })
  )
)

it.live("a model's key is looked for, and never shown", () =>
  withFiles(
    Effect.gen(function* () {
      const model = { type: "model", model: "m", tools: [] }
      const said = yield* found(
        {
          a: { ...model, provider: "anthropic" },
          b: { ...model, provider: "openai" },
          c: { ...model, provider: "openai", keyEnv: "MINE" },
          d: { ...model, provider: "openai", keyFile: "here.sh" },
          e: { ...model, provider: "openai", keyFile: "gone" }
        },
        { ANTHROPIC_API_KEY: "sk-secret", MINE: " " }
      )
      assert.deepStrictEqual(said, [
        "ok key ANTHROPIC_API_KEY: is set (a)",
        "fail key OPENAI_API_KEY: it is not set in the daemon's environment (b)",
        "fail key MINE: it is not set in the daemon's environment (c)",
        "ok key here.sh: …/here.sh (d)",
        "fail key gone: …/gone cannot be read: there is no such file (e)"
      ])
      assert.notInclude(said.join(), "sk-secret")
    })
  )
)

it.live("where a model has a shell, it is said what holds it; without a sandbox, what follows", () =>
  withFiles(
    Effect.gen(function* () {
      const model = { type: "model", provider: "openai", model: "m" }
      const sandboxOf = (backend: object, path: string) =>
        Effect.map(found({ a: backend }, { OPENAI_API_KEY: "x", PATH: path }), (all) =>
          all.find((line) => line.includes("sandbox"))
        )
      assert.match((yield* sandboxOf(model, "/nowhere")) ?? "", /^warn sandbox: .*every shell command/)
      assert.match(
        (yield* sandboxOf({ ...model, sandbox: "required" }, "/nowhere")) ?? "",
        /^fail sandbox: .*no shell command runs/
      )
      assert.isUndefined(yield* sandboxOf({ ...model, tools: ["read"] }, "/nowhere"))
      const path = process.env["PATH"] ?? ""
      assert.match((yield* sandboxOf(model, path)) ?? "", /^(ok|warn) sandbox: ./)
    })
  )
)

it.live(
  "of agents that are processes it is said what holds them, which run without, and whether the key is there",
  () =>
    withFiles(
      Effect.gen(function* () {
        const path = process.env["PATH"] ?? ""
        const provider = { api: "openai" }
        const agents = {
          a: { type: "command", shell: "true" },
          b: { type: "command", shell: "true", sandbox: "on", provider },
          c: { type: "claude", binary: "coder", sandbox: "required" }
        }
        const without = yield* found(agents, { PATH: "/nowhere" })
        assert.isTrue(
          without.some((line) => /^fail sandbox: .*no program and no shell command runs \(c\)/.test(line)),
          without.join("\n")
        )
        assert.isTrue(without.some((line) => line.startsWith("fail key OPENAI_API_KEY: it is not set")))
        const { c, ...others } = agents
        assert.isTrue(
          (yield* found(others, { PATH: "/nowhere", OPENAI_API_KEY: "x" })).some((line) =>
            /^warn sandbox: .*run without one \(b\)/.test(line)
          )
        )
        const here = yield* found({ ...others, c }, { PATH: path, OPENAI_API_KEY: "x" })
        // where this machine has a sandbox it is offered
        if (here.some((line) => line.startsWith("ok sandbox")))
          assert.isTrue(here.includes("ok unconfined: a: may do all that you may"), here.join("\n"))
        assert.isTrue(here.includes("ok key OPENAI_API_KEY: is set (b)"))
      })
    )
)
