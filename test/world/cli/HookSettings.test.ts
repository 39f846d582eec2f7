import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import * as HookSettings from "../../../src/cli/setup/HookSettings.ts"

const plan: HookSettings.Plan = {
  script: "/home/ada/.local/state/agentd/hooks/session-start.sh",
  reporter: {
    way: "perl",
    script: "/home/ada/.local/state/agentd/hooks/report.pl",
    socket: "/run/user/1000/agentd/http.sock"
  },
  http: undefined,
  approvals: undefined
}

const http = { port: 21_000, token: "t".repeat(43) }

const added = (settings: HookSettings.JsonObject, over: Partial<HookSettings.Plan> = {}) =>
  Result.getOrThrow(HookSettings.add(settings, { ...plan, ...over }))

/** Lists of groups of handlers, as people have them, and things that no one has. */
const Handler = Schema.Union([
  Schema.Struct({ type: Schema.Literal("command"), command: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("http"),
    url: Schema.String,
    headers: Schema.Record(Schema.String, Schema.String)
  }),
  Schema.Json
])
const Group = Schema.Union([
  Schema.Struct({ matcher: Schema.String, hooks: Schema.Array(Handler) }),
  Schema.Struct({ hooks: Schema.Array(Handler) }),
  Schema.Json
])
const Event = Schema.Union([Schema.Literals(["SessionStart", ...HookSettings.EVENTS]), Schema.String])
const Settings = Schema.Struct({
  rest: Schema.Record(Schema.String, Schema.Json),
  hooks: Schema.Union([
    Schema.Undefined,
    Schema.Json,
    Schema.Record(Event, Schema.Union([Schema.Array(Group), Schema.Json]))
  ])
})

const isJson = Schema.is(Schema.Record(Schema.String, Schema.Json))

const settingsOf = ({ hooks, rest }: typeof Settings.Type): HookSettings.JsonObject => {
  const settings: unknown = JSON.parse(JSON.stringify(hooks === undefined ? rest : { ...rest, hooks }))
  assert.isTrue(isJson(settings))
  return settings as HookSettings.JsonObject
}

describe("hooks in the settings", () => {
  it.prop(
    "what is put in is taken out, and nothing else: any settings are the same again, key by key and in order",
    [Settings],
    ([drawn]) => {
      const settings = settingsOf(drawn)
      const result = HookSettings.add(settings, plan)
      if (Result.isFailure(result)) {
        assert.match(result.failure.field, /^hooks/)
        return
      }
      assert.strictEqual(JSON.stringify(HookSettings.remove(result.success)), JSON.stringify(settings))
      assert.deepStrictEqual(HookSettings.remove(settings), settings)
    },
    { arbitrary: { runs: 1000 } }
  )

  it.prop(
    "adding twice, or anew in another way, is adding once; the rest is untouched",
    [Settings],
    ([drawn]) => {
      const settings = settingsOf(drawn)
      if (Result.isFailure(HookSettings.add(settings, plan))) return
      const once = added(settings)
      assert.strictEqual(JSON.stringify(added(once)), JSON.stringify(once))
      assert.strictEqual(JSON.stringify(added(added(settings, { http, approvals: 60 }))), JSON.stringify(once))
      for (const key of Object.keys(settings).filter((key) => key !== "hooks")) {
        assert.deepStrictEqual(once[key], settings[key])
      }
    },
    { arbitrary: { runs: 300 } }
  )

  it.each([
    {},
    { hooks: {} },
    { hooks: { Stop: [] } },
    { hooks: { Stop: [{ hooks: [] }] } },
    { hooks: { Stop: [{ matcher: "*", hooks: [{ type: "command", command: "say done" }] }], Custom: 5 } },
    { hooks: { SessionStart: [null, "odd", { hooks: "odder" }] } },
    { model: "opus", hooks: { PreToolUse: [{ matcher: "Bash", hooks: [] }] }, env: { A: "1" } }
  ] satisfies ReadonlyArray<HookSettings.JsonObject>)("%j is the same again", (settings) => {
    assert.strictEqual(JSON.stringify(HookSettings.remove(added(settings))), JSON.stringify(settings))
  })

  it("what a person added to a group of ours stays", () => {
    const mine = { type: "command", command: "say done" }
    const settings = added({})
    const hooks = settings["hooks"] as HookSettings.JsonObject
    const [group] = hooks["Stop"] as ReadonlyArray<HookSettings.JsonObject>
    const edited = {
      ...hooks,
      Stop: [{ ...group, hooks: [...(group!["hooks"] as ReadonlyArray<HookSettings.Json>), mine] }]
    }
    assert.deepStrictEqual(HookSettings.remove({ hooks: edited }), { hooks: { Stop: [{ hooks: [mine] }] } })
  })

  it.each([
    [{ hooks: [] }, "hooks"],
    [{ hooks: null }, "hooks"],
    [{ hooks: { Stop: {} } }, "hooks.Stop"]
  ] as const)("%j has no place for them: refused by name", (settings, field) => {
    const result = HookSettings.add(settings, plan)
    assert.isTrue(Result.isFailure(result) && result.failure.field === field)
  })

  it("every hook has a timeout of 2 s, but the one that waits for a person", () => {
    const timeouts = (over: Partial<HookSettings.Plan>) =>
      Object.entries(added({}, over)["hooks"] as HookSettings.JsonObject).flatMap(([event, groups]) =>
        (groups as ReadonlyArray<{ hooks: ReadonlyArray<{ timeout: number }> }>).flatMap(({ hooks }) =>
          hooks.map(({ timeout }) => [event, timeout] as const)
        )
      )
    assert.deepStrictEqual([...new Set(timeouts({}).map(([, timeout]) => timeout))], [2])
    assert.deepStrictEqual(
      timeouts({ approvals: 610 }).filter(([, timeout]) => timeout !== 2),
      [["PermissionRequest", 610]]
    )
  })

  /** The hooks that are installed, each with the way that it goes. */
  const waysOf = (settings: HookSettings.JsonObject) =>
    Object.entries(settings["hooks"] as HookSettings.JsonObject).flatMap(([event, groups]) =>
      (groups as ReadonlyArray<{ hooks: ReadonlyArray<{ type: string }> }>).flatMap(({ hooks }) =>
        hooks.map(({ type }) => [event, type] as const)
      )
    )

  it("all are commands without port and token; where http is asked for, those that decide stay commands", () => {
    assert.deepStrictEqual([...new Set(waysOf(added({})).map(([, type]) => type))], ["command"])
    assert.notInclude(JSON.stringify(added({})), "127.0.0.1")
    const over = added({}, { http, approvals: 60 })
    assert.deepStrictEqual(
      waysOf(over)
        .filter(([, type]) => type === "command")
        .map(([event]) => event),
      ["SessionStart", "PreToolUse", "PermissionRequest", "Elicitation"]
    )
    assert.isTrue(HookSettings.find(over).approvals)
    assert.isTrue(HookSettings.find(added({}, { approvals: 60 })).approvals)
    assert.isFalse(HookSettings.find(added({})).approvals)
  })

  it("those that are not exactly ours of now are known as old: of another way, place or time", () => {
    const reporter = { ...plan.reporter, way: "curl" as const }
    for (const over of [{ http }, { reporter }, { approvals: 60 }, { script: "/elsewhere" }]) {
      assert.isTrue(HookSettings.isCurrent(added({}, over), { ...plan, ...over }))
      assert.isFalse(HookSettings.isCurrent(added({}, over), plan))
    }
    assert.isFalse(HookSettings.isCurrent({}, plan))
  })

  it("settings under which they would not run are told", () => {
    assert.deepStrictEqual(HookSettings.obstacles({}, 7433), [])
    assert.lengthOf(HookSettings.obstacles({ disableAllHooks: true }, undefined), 1)
    assert.deepStrictEqual(HookSettings.obstacles({ allowedHttpHookUrls: [] }, undefined), [])
    assert.lengthOf(HookSettings.obstacles({ allowedHttpHookUrls: [] }, 7433), 1)
    assert.lengthOf(HookSettings.obstacles({ allowedHttpHookUrls: ["https://hooks.example.org/*"] }, 7433), 1)
    assert.deepStrictEqual(HookSettings.obstacles({ allowedHttpHookUrls: ["http://127.0.0.1:*"] }, 7433), [])
  })
})

describe("a settings file's text", () => {
  it.each([
    '{\n  "a": 1\n}\n',
    '{\n    "a": [\n        1\n    ]\n}',
    '{\n\t"a": {}\n}\n\n',
    '{"a":1,"b":[]}',
    '\uFEFF{\r\n  "a": 1\r\n}\r\n',
    '{\n  "big": 12345678901234567890,\n  "one": 1.0,\n  "huge": 1e400\n}\n',
    '{\n  "__proto__": 1\n}\n'
  ])("%j is written as it was read, also after hooks went in and out", (text) => {
    const read = HookSettings.read(text)!
    assert.strictEqual(HookSettings.write(read), text)
    const { style } = read
    const between = HookSettings.read(HookSettings.write({ settings: added(read.settings), style }))!
    assert.strictEqual(HookSettings.write({ settings: HookSettings.remove(between.settings), style }), text)
  })

  it.each([
    '{\n  "permissions": { "allow": ["Bash(ls)", "Read"] },\n\n  "model": "opus"\n}\n',
    '\uFEFF{\r\n\t"env": {},\r\n\t"list": [ 1.0, 12345678901234567890 ]\r\n}\r\n',
    '{\n  "hooks": {\n    "Custom": [ { "hooks": [] } ]\n  },\n  "env": {"A": "1"}\n}\n',
    '{\n  "__proto__": { "a": [1, 2] }\n}',
    '{\n  // mine\n  "permissions": { "allow": ["Bash(ls)"] }, /* here, too */\n  "model": "opus" // the last\n}\n',
    '// above\r\n{\r\n\t// c\r\n\t"list": [ 1, 2 ]\r\n}\r\n'
  ])("%j, which a person wrote, keeps its lines and blanks beside our hooks, and has them alone afterwards", (text) => {
    const before = HookSettings.read(text)!
    const settings = added(before.settings)
    const between = HookSettings.rewrite(text, before, settings)!
    for (const line of text.split(/\r?\n/).filter((line) => line.includes("["))) {
      assert.include(between, line.replace(/,$/, ""))
    }
    const after = HookSettings.read(between)!
    assert.deepStrictEqual(after.settings, settings)
    assert.strictEqual(HookSettings.rewrite(between, after, settings), between)
    assert.strictEqual(HookSettings.rewrite(between, after, HookSettings.remove(after.settings)), text)
  })

  it.prop("any settings are rewritten to what is meant, however they were written", [Settings], ([drawn]) => {
    const settings = settingsOf(drawn)
    const result = HookSettings.add(settings, plan)
    if (Result.isFailure(result)) return
    for (const text of [JSON.stringify(settings), JSON.stringify(settings, null, 2).replaceAll(/\[\n\s+/g, "[ ")]) {
      const read = HookSettings.read(text)
      if (read === undefined) continue
      const written = HookSettings.rewrite(text, read, result.success)!
      assert.deepStrictEqual(HookSettings.read(written)?.settings, result.success)
    }
  })

  it.each(["{", "[]", "null", '{"a": 1,}', "// c", '{"a": 1 /*', "{} {}"])("%j is no settings file", (text) => {
    assert.isUndefined(HookSettings.read(text))
  })
})
