/** agentd.jsonc: complete when taken, and when refused with every problem in its place. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Result, Schema } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as ConfigFile from "../../../src/config/ConfigFile.ts"
import { MAX_PROBLEMS, problemsOf } from "../../../src/config/ConfigProblem.ts"
import { didYouMean } from "../../../src/config/DidYouMean.ts"
import * as Jsonc from "../../../src/config/Jsonc.ts"

const PATH = "/home/ada/demo/agentd.jsonc"
const parse = (text: string) => ConfigFile.parse(text, PATH)
const refused = (text: string) => Effect.map(Effect.flip(parse(text)), (error) => error.problems)

const least = { agents: { builder: { backend: { type: "command", argv: ["claude", "-p"] } } } }

const whole = {
  $schema: "./agentd.schema.json",
  name: "demo",
  agents: {
    builder: {
      role: "builds",
      instructions: "Be brief.",
      prompt: "Go on.",
      backend: {
        type: "command",
        argv: ["claude", "-p"],
        cwd: "sub",
        env: { A_1: "x" },
        promptBy: "file",
        readyAfter: "2s",
        killGrace: 500
      },
      mode: "loop",
      autostart: false,
      worktree: { base: "main" },
      maxConsecutiveErrors: 3,
      maxTotalErrors: 9,
      backoff: { base: "1s", cap: "1 minute", jitter: 0.1 },
      runTimeout: "1.5 hours",
      interruptGrace: "3 seconds",
      minRunInterval: "10s",
      maxRunsPerHour: 12,
      output: { maxBytesPerRun: 4096, tailLines: 5 }
    }
  },
  mail: {
    to: ["ada@example.org"],
    from: "agentd <agentd@example.org>",
    smtp: {
      host: "mail.example.org",
      port: 2525,
      security: "tls",
      user: "ada",
      passwordFile: "secret/password",
      caFile: "/etc/ca.pem",
      rejectUnauthorized: true
    },
    digestWindow: "1 minute",
    maxPerHour: 5
  }
}

/** An agent's config with one thing changed, as text. */
const agent = (change: object) => JSON.stringify({ agents: { a: { ...least.agents.builder, ...change } } })
const mail = (change: object, smtp: object = {}) =>
  JSON.stringify({ ...least, mail: { to: "ada@example.org", smtp: { host: "h", ...smtp }, ...change } })

describe("ConfigFile", () => {
  it.effect("fills in every default", () =>
    Effect.gen(function* () {
      const { agents, id, name, path, root } = yield* parse(JSON.stringify(least))
      assert.deepStrictEqual([name, path, root], ["demo", PATH, "/home/ada/demo"])
      assert.match(id, /^demo-[0-9a-f]{8}$/)
      assert.deepStrictEqual(agents["builder"], {
        backend: {
          type: "command",
          argv: ["claude", "-p"],
          env: {},
          promptBy: "stdin",
          readyAfter: Duration.seconds(1),
          killGrace: Duration.seconds(5),
          sandbox: "off",
          network: false,
          share: []
        },
        fallback: [],
        onLimit: "move",
        mode: "inbox",
        autostart: true,
        worktree: false,
        maxConsecutiveErrors: 5,
        maxTotalErrors: 20,
        backoff: { base: Duration.seconds(2), cap: Duration.seconds(60), jitter: 0, by: "failures" },
        interruptGrace: Duration.seconds(10),
        minRunInterval: Duration.seconds(1),
        idleTimeout: Duration.minutes(5),
        approvals: { mode: "auto", rules: [], inside: "ask", always: [], never: [], timeout: "off" },
        toolTimeout: Duration.minutes(2),
        maxToolTimeout: Duration.minutes(30),
        budget: {},
        may: ["inbox", "message", "post", "report", "ask"],
        can: [],
        labels: [],
        limits: { memory: 4e9, tasks: 1000, cpuWeight: 100, disk: 10e9 },
        output: { maxBytesPerRun: 1_048_576, tailLines: 40 }
      })
    })
  )

  it.effect("takes every field, and makes the files that it names absolute", () =>
    Effect.gen(function* () {
      const project = yield* parse(JSON.stringify(whole))
      assert.deepStrictEqual(project.agents["builder"]!.runTimeout, Duration.millis(5_400_000))
      assert.strictEqual(project.mail?.smtp.passwordFile, "/home/ada/demo/secret/password")
      assert.strictEqual(project.mail?.smtp.caFile, "/etc/ca.pem")
    })
  )

  it.effect("names all problems at once, in their order, each with place, field, fault and remedy", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        parse(`{
  // three agents
  "agnets": {},
  "agents": {
    "Builder": { "backend": { "type": "command", "argv": ["x"] } },
    "b": { "backend": { "type": "commnd" }, "mode": "lop" },
    "c": { "backend": { "type": "command", "argv": "x", "promtBy": "stdin" } }
  }
}`)
      )
      assert.strictEqual(error.reason, "invalid")
      assert.deepStrictEqual(
        error.problems.map(({ column, field, line, message }) => `${line}:${column} ${field}: ${message}`),
        [
          "3:3 agnets: is not a field that agentd knows",
          "5:5 agents.Builder: is not a name that is allowed here",
          '6:33 agents.b.backend.type: must be "command" or "claude" or "codex" or "acp" or "model", but is "commnd"',
          '6:53 agents.b.mode: must be "inbox" or "loop", but is "lop"',
          "7:52 agents.c.backend.argv: must be a list, but is text",
          "7:57 agents.c.backend.promtBy: is not a field that agentd knows"
        ]
      )
      for (const problem of error.problems) assert.notStrictEqual(problem.remedy, "")
      assert.include(error.message, `${PATH}:3:3: agnets: is not a field that agentd knows\n  Did you mean "agents"?`)
      assert.include(error.message, 'Did you mean "loop"?')
    })
  )

  for (const [what, text, expected] of [
    ["no agents", "{}", "agents: is missing"],
    ["a list", "[]", "must be an object, but is a list"],
    ["no backend", '{"agents": {"a": {}}}', "agents.a.backend: is missing"],
    ["no type", agent({ backend: { argv: ["x"] } }), "agents.a.backend.type: is missing"],
    ["a mistyped type", agent({ backend: { type: "modle" } }), 'Did you mean "model"?'],
    [
      "another type's field",
      agent({ backend: { type: "model", provider: "openai", model: "x", killGrace: "2s" } }),
      'killGrace: is not a field of the type "model"\n  "command", "claude", "codex", "acp" take it.'
    ],
    [
      "a field that no type has",
      agent({ backend: { type: "acp", argv: ["x"], silnce: 1 } }),
      'Did you mean "silence"?'
    ],
    ["neither argv nor shell", agent({ backend: { type: "command" } }), "agents.a.backend: must have exactly one of"],
    [
      "argv and shell",
      agent({ backend: { type: "command", argv: ["x"], shell: "x" } }),
      "agents.a.backend: must have exactly one of"
    ],
    ["an empty argv", agent({ backend: { type: "command", argv: [] } }), "agents.a.backend.argv: must name a program"],
    [
      "a NUL byte",
      agent({ backend: { type: "command", argv: ["a\0b"] } }),
      "agents.a.backend.argv[0]: must not contain"
    ],
    [
      "a reserved variable",
      agent({ backend: { type: "command", shell: "x", env: { AGENTD_RUN: "" } } }),
      "env.AGENTD_RUN"
    ],
    ["a fraction", agent({ maxTotalErrors: 0.5 }), "agents.a.maxTotalErrors: must be a whole number from 1"],
    ["a negative time", agent({ runTimeout: "-1s" }), "agents.a.runTimeout: must not be negative"],
    [
      "a wrong time",
      agent({ runTimeout: "soon" }),
      'agents.a.runTimeout: must be a length of time such as "30 seconds"'
    ],
    ["loop without a prompt", agent({ mode: "loop" }), 'agents.a.mode: is "loop", which needs a prompt'],
    [
      "a wrong worktree",
      agent({ worktree: "yes" }),
      "agents.a.worktree: must be true or false, or an object, but is text"
    ],
    ["an unknown key in an alternative", agent({ worktree: { bas: "x" } }), "agents.a.worktree.bas: is not a field"],
    ["jitter above 1", agent({ backoff: { jitter: 2 } }), "agents.a.backoff.jitter: must be a number from 0 to 1"],
    [
      "a seat for nobody",
      JSON.stringify({ ...least, channels: { a: { agents: ["builder", "bilder"] } } }),
      `channels.a.agents[1]: there is no agent "bilder" in this file; did you mean "builder"?`
    ],
    ["a planner that is nobody", JSON.stringify({ ...least, goals: { planner: "pm" } }), "goals.planner: there is no"],
    ["a worker that is nobody", JSON.stringify({ ...least, goals: { workers: ["pm"] } }), "goals.workers[0]: there is"],
    ["a parent that is nobody", agent({ parent: "pm" }), "agents.a.parent: there is no agent"],
    [
      "a remedy of the backend that is meant",
      agent({ backend: { type: "model", provider: "openai", model: "" } }),
      "agents.a.backend.model: must not be empty or contain a NUL byte\n  The model to use."
    ],
    ["a wrong address", mail({ to: "ada" }), "mail.to: must be one mail address"],
    ["a header in a sender", mail({ from: "x\nBcc: eve <a@b.c>" }), "mail.from: must be a mail address"],
    ["no address", mail({ to: [] }), "mail.to: must contain from 1 to 100"],
    ["a user without password", mail({}, { user: "ada" }), "mail.smtp: has a user but no password"],
    ["a password without user", mail({}, { passwordFile: "x" }), "mail.smtp: has a passwordFile but no user"],
    [
      "two passwords",
      mail({}, { user: "a", passwordFile: "x", passwordEnv: "Y" }),
      "mail.smtp: must take the password from one place"
    ],
    ["a tilde", mail({}, { caFile: "~/ca.pem" }), "mail.smtp.caFile: must be a path"],
    ["a port", mail({}, { port: 0 }), "mail.smtp.port: must be a whole number from 1 to 65535"]
  ] as const) {
    it.effect(`${what}: ${expected}`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(parse(text))
        assert.strictEqual(error.problems.length, 1)
        assert.include(error.message, expected)
      })
    )
  }

  it.effect("a key that is there twice is an error", () =>
    Effect.gen(function* () {
      const [problem] = yield* refused(`{"name": "a", "name": "b", "agents": {}}`)
      assert.deepInclude(problem, { line: 1, column: 15, message: '"name" appears twice' })
    })
  )

  it.effect("ten megabytes, a million brackets and a thousand and one agents are refused, not read for ever", () =>
    Effect.gen(function* () {
      const agents = Object.fromEntries(Array.from({ length: 1001 }, (_, n) => [`a${n}`, least.agents.builder]))
      for (const [text, what] of [
        [`{"name": "${"x".repeat(1e7)}"}`, "larger than 1024 KiB"],
        [`{"name": "${"é".repeat(6e5)}"}`, "larger than 1024 KiB"],
        ["[".repeat(1e6), "nested deeper"],
        [JSON.stringify({ agents }), "at most 1000 agents"],
        [agent({ role: `${"x".repeat(5e5)}\0` }), "NUL byte"],
        [
          JSON.stringify({ agents: {}, ...Object.fromEntries(Array.from({ length: 9e4 }, (_, n) => [`x${n}`, 1])) }),
          "x0"
        ]
      ] as const) {
        const error = yield* Effect.flip(parse(text))
        assert.include(error.message.slice(0, 300), what)
        assert.isBelow(error.problems.length, 60)
      }
    })
  )

  it.effect(
    "of five thousand broken agents no more is looked at than of five hundred, once there are enough problems",
    () =>
      Effect.gen(function* () {
        const decoded = Schema.decodeUnknownResult(Schema.Record(Schema.String, Schema.Struct({ mode: Schema.Int })))
        const looksAt = (count: number): number => {
          let looks = 0
          const agents = Object.fromEntries(Array.from({ length: count }, (_, n) => [`a${n}`, { modee: 1 }]))
          const text = JSON.stringify(agents)
          const result = decoded(agents, { errors: "all", onExcessProperty: "error" })
          assert.isTrue(Result.isFailure(result))
          if (!Result.isFailure(result)) return 0
          const value = new Proxy(agents, {
            get: (target, key) => {
              looks++
              return Reflect.get(target, key)
            }
          })
          const root = { ...Jsonc.read(text).root!, value }
          const shape = { additionalProperties: { properties: { mode: { type: "integer" } } } }
          assert.lengthOf(problemsOf(result.failure.issue, text, root, shape), MAX_PROBLEMS)
          return looks
        }
        const few = looksAt(500)
        assert.isAbove(few, 0)
        assert.strictEqual(looksAt(5_000), few)
        // each names an agent that is not there
        const others = Object.fromEntries(
          Array.from({ length: 1_000 }, (_, n) => [`agent${n}`, { ...least.agents.builder, parent: `agemt${n}` }])
        )
        const { problems } = yield* Effect.flip(parse(JSON.stringify({ agents: others })))
        assert.lengthOf(problems, MAX_PROBLEMS)
        assert.match(problems[0]!.message, /did you mean "agent0"/)
      })
  )

  it.prop("no JSON makes it throw", [Schema.Json], ([value]) => {
    for (const text of [value, { agents: value }, { agents: { a: value } }, { agents: { a: { backend: value } } }]) {
      Effect.runSync(Effect.exit(parse(JSON.stringify(text))))
    }
  })

  it.live("reads a file, and says what is wrong with one that is none", () =>
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "agentd-config-"))),
        (path) => Effect.sync(() => rmSync(path, { recursive: true }))
      )
      const path = join(folder, "agentd.jsonc")
      const reason = (at: string) => Effect.map(Effect.flip(ConfigFile.load(at)), (error) => error.reason)
      assert.strictEqual(yield* reason(path), "missing")
      assert.strictEqual(yield* reason(folder), "unreadable")
      assert.strictEqual(yield* reason("agentd.jsonc"), "unreadable")
      writeFileSync(path, Buffer.from([0xff, 0xfe, 0x7b, 0x00]))
      assert.strictEqual(yield* reason(path), "unreadable")
      writeFileSync(path, "x".repeat(2e6))
      assert.strictEqual(yield* reason(path), "unreadable")
      writeFileSync(path, `\uFEFF${JSON.stringify(least)}`)
      assert.deepStrictEqual(Object.keys((yield* ConfigFile.load(path)).agents), ["builder"])
    }).pipe(Effect.scoped, Effect.provide(NodeFileSystem.layer))
  )

  it.live("a user's config that is not there says nothing; one that is wrong is an error", () =>
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "agentd-config-"))),
        (path) => Effect.sync(() => rmSync(path, { recursive: true }))
      )
      const path = join(folder, "config.jsonc")
      assert.isUndefined((yield* ConfigFile.loadUser(path)).mail)
      writeFileSync(path, JSON.stringify({ agents: {} }))
      assert.include((yield* Effect.flip(ConfigFile.loadUser(path))).message, "agents: is not a field")
      writeFileSync(path, JSON.stringify({ mail: whole.mail }))
      assert.strictEqual((yield* ConfigFile.loadUser(path)).mail?.smtp.passwordFile, join(folder, "secret/password"))
    }).pipe(Effect.scoped, Effect.provide(NodeFileSystem.layer))
  )
})

interface Shape {
  readonly description?: string
  readonly default?: unknown
  readonly properties?: { readonly [key: string]: Shape }
  readonly patternProperties?: { readonly [key: string]: Shape }
  readonly additionalProperties?: unknown
  readonly required?: ReadonlyArray<string>
  readonly anyOf?: ReadonlyArray<Shape>
}

/** The shapes that a value may have at a key. */
const below = (shape: Shape, key: string): Shape | undefined =>
  shape.properties?.[key] ??
  Object.entries(shape.patternProperties ?? {}).find(([pattern]) => new RegExp(pattern, "u").test(key))?.[1] ??
  shape.anyOf?.map((one) => below(one, key)).find((one) => one !== undefined)

describe("a value in the wrong place or of the wrong kind", () => {
  const agent = (more: string) => `{ "agents": { "a": { "backend": { "type": "claude" }, ${more} } } }`
  for (const [text, says] of [
    ['{ "http": {}, "agents": {} }', "It is a field of your own config.jsonc, by default in ~/.config/agentd."],
    ['{ "budget": {}, "agents": {} }', "It is a field of conversation and of agents.NAME."],
    [agent('"mail": {}'), "It is a field of the top level."],
    [agent('"nothing": 1'), "Known here: role"],
    ['{"agents": {"a": {"backend": "claude"}}}', 'must be an object, but is text\n  For example: {"type":"claude"}.'],
    ['{"agents": {}, "channels": {"c": ["a"]}}', 'For example: {"agents":["builder","reviewer"]}.'],
    ['{"agents": {}, "goals": {"workers": "a"}}', 'must be a list, but is text\n  For example: ["a"].'],
    [agent('"model": "opus"'), "It is a field of agents.NAME.backend."],
    [agent('"approvals": "auto"'), 'must be an object, but is text\n  For example: {"mode":"auto"}.'],
    [agent('"budget": { "perDay": 5 }'), 'must be an object, but is a number\n  For example: {"usd":5}.'],
    [agent('"mode": true'), "but is true\n"]
  ] as const) {
    it.effect(`${text}: ${says}`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(parse(text))
        assert.include(error.message, says)
      })
    )
  }
})

describe("ConfigFile.jsonSchema", () => {
  const schema = ConfigFile.jsonSchema() as Shape

  it("knows every field of a config that has them all", () => {
    const walk = (value: unknown, shape: Shape | undefined, path: string): void => {
      assert.isDefined(shape, path)
      if (typeof value !== "object" || value === null || Array.isArray(value)) return
      for (const [key, item] of Object.entries(value)) walk(item, below(shape!, key), `${path}.${key}`)
    }
    walk(whole, schema, "")
  })

  it("describes every field, and gives the default of each that may be left out and has one", () => {
    const walk = (shape: Shape, path: string): void => {
      for (const [key, item] of Object.entries(shape.properties ?? {})) {
        assert.isString(item.description, `${path}.${key}`)
        walk(item, `${path}.${key}`)
      }
      for (const item of [...(shape.anyOf ?? []), ...Object.values(shape.patternProperties ?? {})]) walk(item, path)
    }
    walk(schema, "")
    const builder = below(below(schema, "agents")!, "builder")!
    assert.deepStrictEqual([builder.required, builder.properties?.["autostart"]?.default], [["backend"], true])
    assert.isUndefined(builder.properties?.["runTimeout"]?.default)
  })

  it("refuses unknown fields as the reader does", () => {
    assert.strictEqual(schema.additionalProperties, false)
  })

  it("the user's file has what holds for all projects, the daemon's settings, and nothing of one project", () => {
    const user = ConfigFile.jsonSchema("user") as Shape
    const keys = [
      "$schema",
      "http",
      "approvals",
      "telemetry",
      "budget",
      "prices",
      "mail",
      "notify",
      "orphanGrace",
      "keepPrompts",
      "verifyLog",
      "keepLog"
    ]
    assert.deepStrictEqual(Object.keys(user.properties ?? {}), keys)
  })
})

describe("didYouMean", () => {
  const known = ["agents", "mail", "maxTotalErrors", "runTimeout"]
  for (const [word, meant] of [
    ["agnets", "agents"],
    ["Agents", "agents"],
    ["maxTotalError", "maxTotalErrors"],
    ["run_timeout", "runTimeout"],
    ["frobnicate", undefined],
    ["x".repeat(1e6), undefined]
  ] as const) {
    it(`${word.slice(0, 20)} → ${meant}`, () => assert.strictEqual(didYouMean(word, known), meant))
  }
})
