/** `agentd init`: what it finds on a machine, and what it writes: each text that it may write is valid, and says so. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawn, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { dirname, join } from "node:path"
import { find, type Found } from "../../../src/cli/setup/AgentPrograms.ts"
import { SAMPLE } from "../../../src/cli/setup/Init.ts"
import { AGENTS, type Role, ROLES } from "../../../src/cli/setup/InitChoices.ts"
import { backendOf, textOf } from "../../../src/cli/setup/InitText.ts"
import { proposalOf, wordsOf } from "../../../src/cli/setup/InitTree.ts"
import { parse } from "../../../src/config/ConfigFile.ts"
import { isConfined } from "../../../src/agents/actors/Approval.ts"
import { probe } from "../../../src/runs/sandbox/Sandbox.ts"
import { PROGRAM } from "../../support/Program.ts"
import { folder } from "../rpc/World.ts"
import { agentd } from "./Child.ts"

const hasPty = spawnSync("script", ["--version"]).status === 0
const mechanism = await Effect.runPromise(
  Effect.provide(probe({ PATH: process.env["PATH"] ?? "" }, ["bubblewrap", "namespaces"]), NodeServices.layer)
)

const PATH = "/home/ada/shop/agentd.jsonc"

/** With all that stands there as an example taken in: lines of JSON, not of prose. */
const uncommented = SAMPLE.replaceAll(/^( *)\/\/ (?=,"| +"| *\})/gm, "$1")

describe("what it writes", () => {
  it.effect("the sample is valid as it is written", () =>
    Effect.gen(function* () {
      const { agents } = yield* parse(SAMPLE, PATH)
      assert.deepStrictEqual(Object.keys(agents), ["builder"])
      assert.strictEqual(agents["builder"]!.backend.type, "claude")
    })
  )

  it.effect("each example in it is valid, too", () =>
    Effect.gen(function* () {
      const { agents, channels, goals, mail } = yield* parse(uncommented, PATH)
      assert.deepStrictEqual(
        Object.values(agents).map(({ backend }) => backend.type),
        ["claude", "command", "model", "acp"]
      )
      assert.deepStrictEqual([Object.keys(channels), goals.critic, mail?.to], [["review"], "critic", "ada@example.org"])
    })
  )

  const programs: { readonly [id in (typeof AGENTS)[number]]: ReadonlyArray<string | null> } = {
    claude: ["/bin/claude"],
    codex: ["/bin/codex", "/bin/codex-acp"],
    opencode: ["/bin/opencode"],
    gemini: ["/bin/gemini"],
    model: [null]
  }
  const keys = [null, "ANTHROPIC_API_KEY", "OPENAI_API_KEY"]
  const founds = AGENTS.flatMap((id) => programs[id].flatMap((program) => keys.map((key) => ({ id, program, key }))))
  const choices: ReadonlyArray<ReadonlyArray<Role>> = [1, 2, 3, 4, 5, 6, 7].map((bits) =>
    ROLES.filter((_, at) => (bits & (1 << at)) !== 0)
  )

  it.effect("for each agent, key and choice of roles it is valid, and has these agents and no other", () =>
    Effect.gen(function* () {
      for (const found of founds)
        for (const roles of choices)
          for (const isRepository of [true, false]) {
            const { agents, goals } = yield* parse(textOf({ found, roles, isRepository }), PATH)
            assert.deepStrictEqual(Object.keys(agents), [...roles])
            for (const role of roles) {
              const agent = agents[role]!
              assert.deepInclude(agent.backend, backendOf(found))
              assert.strictEqual(agent.worktree, role === "builder" && isRepository)
              assert.strictEqual(agent.approvals.mode, role === "builder" ? "auto" : "read_only")
            }
            const several = roles.length > 1
            assert.strictEqual(goals.planner, several && roles.includes("planner") ? "planner" : undefined)
            assert.strictEqual(goals.critic, several && roles.includes("reviewer") ? "reviewer" : undefined)
          }
    })
  )
})

it.effect("what stays in a sandbox runs unasked only if that was wanted, and then a sandbox is required", () =>
  Effect.gen(function* () {
    const found = { id: "claude", program: "/bin/claude", key: null } as const
    const of = (inside: boolean) => textOf({ found, roles: ROLES, isRepository: true, inside })
    const { builder, reviewer } = (yield* parse(of(true), PATH)).agents
    assert.isTrue(isConfined(builder!))
    assert.strictEqual(builder!.approvals.inside, "run")
    assert.strictEqual(reviewer!.approvals.inside, "ask")
    assert.include(of(true), "runs without your approval")
    assert.strictEqual((yield* parse(of(false), PATH)).agents["builder"]!.approvals.inside, "ask")
    assert.include(of(false), '"inside": "run"')
  })
)

/** A machine with these programs and files. */
const machine = Effect.fnUntraced(function* (programs: ReadonlyArray<string>, files: ReadonlyArray<string>) {
  const home = yield* folder
  for (const name of [...programs.map((program) => `bin/${program}`), ...files]) {
    fs.mkdirSync(dirname(join(home, name)), { recursive: true })
    fs.writeFileSync(join(home, name), "#!/bin/sh\n", { mode: name.startsWith("bin/") ? 0o755 : 0o600 })
  }
  return { home, env: { HOME: home, PATH: join(home, "bin") } }
})

const brief = (found: ReadonlyArray<Found>, home: string) =>
  found.map(({ id, login, program }) => [id, program?.replace(home, "~") ?? null, login?.replace(home, "~") ?? null])

describe("what it finds", () => {
  it.effect("is nothing on a bare machine", () =>
    Effect.gen(function* () {
      const { env } = yield* machine([], [])
      assert.deepStrictEqual(yield* find(env), [])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("is by program and login, those that are logged in first", () =>
    Effect.gen(function* () {
      const logins = [".codex/auth.json", ".local/share/opencode/auth.json"]
      const { env, home } = yield* machine(["claude", "codex", "opencode", "gemini"], logins)
      assert.deepStrictEqual(brief(yield* find(env), home), [
        ["codex", "~/bin/codex", "~/.codex/auth.json"],
        ["opencode", "~/bin/opencode", "~/.local/share/opencode/auth.json"],
        ["claude", "~/bin/claude", null],
        ["gemini", "~/bin/gemini", null]
      ])
      fs.writeFileSync(join(home, "bin/codex-acp"), "", { mode: 0o755 })
      assert.deepStrictEqual(brief(yield* find(env), home)[0], ["codex", "~/bin/codex", "~/.codex/auth.json"])
      fs.rmSync(join(home, "bin/codex"))
      assert.deepStrictEqual(brief(yield* find(env), home)[0], ["codex", "~/bin/codex-acp", "~/.codex/auth.json"])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("is by a key in the environment as well, or where a variable says", () =>
    Effect.gen(function* () {
      const { env, home } = yield* machine(["claude", "gemini"], ["elsewhere/oauth_creds.json", "bin/none"])
      fs.chmodSync(join(home, "bin/none"), 0o600)
      const said = yield* find({ ...env, ANTHROPIC_API_KEY: "sk", GEMINI_CONFIG_DIR: join(home, "elsewhere") })
      assert.deepStrictEqual(brief(said, home), [
        ["claude", "~/bin/claude", "ANTHROPIC_API_KEY"],
        ["gemini", "~/bin/gemini", "~/elsewhere/oauth_creds.json"],
        ["model", null, "ANTHROPIC_API_KEY"]
      ])
      assert.deepStrictEqual(yield* find({ ...env, PATH: "", OPENAI_API_KEY: " " }), [])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})

describe("agentd init", () => {
  it.live("asks nobody where nobody is, writes for what is there, once, and names the next command", () =>
    Effect.gen(function* () {
      const { env, home } = yield* machine(["claude", "opencode"], [".local/share/opencode/auth.json"])
      const project = join(home, "shop")
      fs.mkdirSync(project)
      const init = (...args: ReadonlyArray<string>) => agentd(["init", ...args], { cwd: project, env })
      const absent = yield* init("--agent", "codex")
      assert.strictEqual(absent.code, 1)
      assert.match(absent.err, /There is no codex here.*Nothing was written/)
      assert.include(absent.err, "agentd init --agent opencode")
      assert.isFalse(fs.existsSync(join(project, "agentd.jsonc")))

      const done = yield* init("--role", "reviewer", "--role", "builder")
      assert.strictEqual(done.code, 0, done.err)
      assert.include(
        done.out,
        `Found opencode: ${home}/bin/opencode, logged in by ${home}/.local/share/opencode/auth.json.`
      )
      assert.include(done.out, `Found claude: ${home}/bin/claude, probably not logged in.`)
      assert.include(done.out, "agentd.jsonc: builder, reviewer, by opencode.")
      assert.match(done.out, /Next: agentd start, then: agentd send builder "/)
      const text = fs.readFileSync(join(project, "agentd.jsonc"), "utf8")
      assert.deepStrictEqual(Object.keys((yield* parse(text, PATH)).agents), ["builder", "reviewer"])

      const again = yield* init("--agent", "claude", "--yes")
      assert.strictEqual(again.code, 1)
      assert.match(again.err, /already exists, and was not changed/)
      assert.strictEqual(fs.readFileSync(join(project, "agentd.jsonc"), "utf8"), text)
      fs.rmSync(join(project, "agentd.jsonc"))
      const json = JSON.parse((yield* init("--agent", "claude", "--json")).out)
      assert.deepInclude(json, { agent: "claude", roles: ["builder"] })
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.live.skipIf(!hasPty || mechanism.kind === "none")(
    "at a terminal, offers to run unasked what stays in the sandbox",
    () =>
      Effect.gen(function* () {
        const { env, home } = yield* machine(["claude"], [])
        const run = (answer: string) =>
          Effect.callback<string>((resume) => {
            const path = `${env.PATH}:${process.env["PATH"]}`
            const child = spawn("script", ["-qec", `'${process.execPath}' '${PROGRAM}' init`, "/dev/null"], {
              cwd: home,
              env: { ...env, PATH: path, LANG: "C.UTF-8", TERM: "xterm-256color" },
              stdio: ["pipe", "pipe", "ignore"]
            })
            let out = ""
            let pressed = 0
            const steps = [
              ["Which roles", "\r"],
              ["without asking you?", answer]
            ] as const
            child.stdout.setEncoding("utf8").on("data", (text: string) => {
              out += text
              const [shown, key] = steps[pressed] ?? []
              if (shown === undefined || !out.replaceAll(/\s+/g, " ").includes(shown)) return
              pressed++
              child.stdin.write(key!)
            })
            child.on("close", () => resume(Effect.succeed(out)))
          })
        const file = join(home, "agentd.jsonc")
        const settings = Effect.suspend(() => parse(fs.readFileSync(file, "utf8"), PATH))
        assert.include(yield* run("y"), "runs without your approval. All else waits: agentd approve")
        assert.deepInclude((yield* settings).agents["builder"]!.approvals, { inside: "run" })
        fs.rmSync(file)
        assert.notInclude(yield* run("n"), "All else waits")
        assert.deepInclude((yield* settings).agents["builder"]!.approvals, { inside: "ask" })
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})

describe("what it proposes for the work tree", () => {
  const PROJECTS: ReadonlyArray<readonly [names: ReadonlyArray<string>, online: object, offline: object]> = [
    [["README.md", "src"], {}, {}],
    [["package.json", "package-lock.json"], { setup: "npm ci" }, {}],
    [
      ["pnpm-lock.yaml", "package-lock.json", "node_modules", ".env.example"],
      { copy: [".env"], setup: "pnpm install --frozen-lockfile" },
      { link: ["node_modules"] }
    ],
    [["uv.lock", "requirements.txt", ".venv"], { setup: "uv sync --frozen" }, { link: [".venv"] }],
    [["package-lock.json", "poetry.lock"], { setup: "npm ci && poetry install" }, {}],
    [["compose.yaml", ".env"], { copy: [".env"], ports: 4 }, { ports: 4 }]
  ]

  it.effect("by lock files, examples of .env and compose files; offline it installs nothing and copies no .env", () =>
    Effect.gen(function* () {
      const found = { id: "claude", program: "/bin/claude", key: null } as const
      for (const [names, online, offline] of PROJECTS) {
        assert.deepStrictEqual(proposalOf(names, false), online)
        assert.deepStrictEqual(proposalOf(names, true), offline)
        for (const tree of [online, offline]) {
          const { agents } = yield* parse(textOf({ found, roles: ["builder"], isRepository: true, tree }), PATH)
          const { worktree } = agents["builder"]!
          if (Object.keys(tree).length === 0) assert.strictEqual(worktree, true)
          else assert.deepInclude(worktree, tree)
        }
      }
    })
  )

  it("says what it proposes, and that the agent can read a copy", () => {
    assert.strictEqual(wordsOf({}), undefined)
    assert.match(
      wordsOf({ copy: [".env"], setup: "npm ci", ports: 4 })!,
      /copy of \.env, which the agent can read.*npm ci.*PORT_3/
    )
  })
})
