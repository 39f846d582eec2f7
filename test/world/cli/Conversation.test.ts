import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { spending } from "../../../src/cli/projects/Conversation.ts"
import { argumentsOf, shorten } from "../../../src/board/WaitingList.ts"
import * as PlatesDouble from "../http/PlatesDouble.ts"
import { agentInfo, askedOf, callInfo, conversationInfo, makeWorld, serve, T0, type World } from "../rpc/World.ts"
import { inProcess } from "./Child.ts"

const withWorld = Effect.fnUntraced(function* (over: Partial<World> = {}) {
  const world = makeWorld(over)
  const { state } = yield* serve(world)
  const run = (...args: ReadonlyArray<string>) => inProcess(["--state", state, ...args])
  return { world, run, state }
})

it.live("a conversation is paused, resumed, closed and archived by name, as was asked", () =>
  Effect.gen(function* () {
    const { run, world } = yield* withWorld()
    for (const line of [
      ["project", "pause", "web"],
      ["project", "pause", "--complete", "--reason", "release", "web-1a"],
      ["project", "resume", "web"],
      ["project", "close", "web", "--yes", "--force", "--reason", "done"],
      ["project", "archive", "web", "-y"]
    ]) {
      expect((yield* run(...line)).code).toBe(0)
    }
    expect(world.commands).toEqual([
      ["pause", "web-1a2b3c4d", { inFlight: "interrupt", reason: "" }],
      ["pause", "web-1a2b3c4d", { inFlight: "complete", reason: "release" }],
      ["resume", "web-1a2b3c4d", null],
      ["close", "web-1a2b3c4d", { reason: "done", force: true }],
      ["archive", "web-1a2b3c4d", null]
    ])
  })
)

it.live.each(["close", "archive"])("%s without a terminal needs --yes: it exits 2 and changes nothing", (verb) =>
  Effect.gen(function* () {
    const { run, world } = yield* withWorld()
    const { code, err } = yield* run("project", verb, "web")
    expect(code).toBe(2)
    expect(err).toContain("web-1a2b3c4d (project web)")
    expect(err).toContain("→ Pass --yes")
    expect(world.commands).toEqual([])
  })
)

it.live("a name that nobody has is told with the one that was meant", () =>
  Effect.gen(function* () {
    const { run } = yield* withWorld()
    expect(yield* run("project", "pause", "wbe")).toMatchObject({
      code: 1,
      err: expect.stringContaining('Did you mean "web"?')
    })
    expect((yield* run("stop", "biulder")).err).toContain('Did you mean "web/builder"?')
    expect((yield* run("stop", "web/biulder")).err).toContain('Did you mean "web/builder"?')
    expect((yield* run("spawn", "bilder", "t", "x")).err).toContain('Did you mean "web/builder"?')
    expect((yield* run("stop", "zzz")).err).not.toContain("Did you mean")
  })
)

it.live("ls leaves out what is closed, --all does not; show tells what was spent of what", () =>
  Effect.gen(function* () {
    const closed = conversationInfo({ conversation: "web-0", state: "closed", archive: "/x.zst" })
    const { run } = yield* withWorld({ conversations: [conversationInfo(), closed] })
    expect((yield* run("project", "ls", "--conversations")).out).not.toContain("web-0")
    expect((yield* run("project", "ls", "--conversations", "--all")).out).toMatch(/\nweb-0 +web +done/)
    expect(JSON.parse((yield* run("project", "ls", "--conversations", "--json")).out)).toMatchObject([
      { state: "active" }
    ])
    const { out } = yield* run("project", "show", "web-1a")
    expect(out).toContain("web-1a2b3c4d is working since")
    expect(out).toMatch(/\nspent +1200 of 100000 tokens, 3 tool calls\n/)
    expect(out).toMatch(/\nagents +builder\n/)
  })
)

it("what is neither limited nor used is not told", () => {
  const none = { tokens: null, toolCalls: null, wallTime: null, usd: null }
  expect(spending(none, none)).toEqual([])
  expect(spending({ ...none, tokens: 0, usd: 0.5 }, { ...none, usd: 2 })).toEqual(["$0.50 of $2.00"])
  expect(spending({ ...none, wallTime: 90_000 }, { ...none, wallTime: 3_600_000 })).toEqual(["1m of 1h in turns"])
})

it.live("new needs a project here", () =>
  Effect.gen(function* () {
    const { run, world } = yield* withWorld()
    // the tests run in a folder without a config
    expect(yield* run("project", "new")).toMatchObject({ code: 1, err: expect.stringContaining("agentd.jsonc") })
    expect(world.commands).toEqual([])
  })
)

it.live("spawn passes on what was given, and nothing else", () =>
  Effect.gen(function* () {
    const { run, world } = yield* withWorld()
    yield* run("spawn", "web/builder", "tester", "run the tests", "--role", "tester")
    expect(world.commands).toMatchObject([
      ["spawn", "web/builder", { name: "tester", task: "run the tests", role: "tester" }]
    ])
  })
)

it.live("send tells queue, steer and urgent apart, and takes one of the last two", () =>
  Effect.gen(function* () {
    const { run, world } = yield* withWorld()
    for (const flag of [[], ["--steer"], ["--urgent"]]) yield* run("send", "builder", "x", ...flag)
    expect(world.commands.map(([, , detail]) => detail)).toMatchObject([
      { how: "queue" },
      { how: "steer" },
      { how: "urgent" }
    ])
    expect((yield* run("send", "builder", "x", "--steer", "--urgent")).code).toBe(2)
    expect(world.commands).toHaveLength(3)
  })
)

it.live("approve without a call lists what waits, with harmless arguments and how to answer", () =>
  Effect.gen(function* () {
    const evil = callInfo({ arguments: '{"command":"echo \u202e\u001b[2J safe"}', reason: "effects\nmore" })
    const done = callInfo({ callId: "01done", state: "executing" })
    const board = PlatesDouble.makeBoard({
      plates: [
        PlatesDouble.plateInfo({
          plateId: "01plateplateplate",
          status: "AwaitingApproval",
          approval: "01req",
          arguments: '{"command":"rm \u001b[2J x"}'
        }),
        PlatesDouble.plateInfo({ plateId: "02terminal", status: "AwaitingInput", detail: "asks a question" }),
        PlatesDouble.plateInfo({ plateId: "03own", status: "AwaitingApproval", agent: "web/builder" })
      ]
    })
    const { run, state } = yield* withWorld({ calls: [evil, done], board })
    const { out } = yield* run("approve")
    expect(out).toContain("web/builder: wants to use shell")
    expect(out).toContain('    {"command":"echo \\u{202e}\\u{1b}[2J safe"}\n    effects\\u{a}more\n')
    expect(out).toMatch(/the session in \/home\/ada\/shop.*\n    \{"command":"rm \\u\{1b\}\[2J x"\}\n/)
    expect(out).toMatch(/the session .*asks a question/)
    expect(out).toContain(`    → agentd --state ${state} focus 02terminal `)
    expect(out).not.toContain("03own")
    expect(out).toContain(`agentd --state ${state} approve 01call000000 `)
    expect(out).not.toContain("01done")
    expect(JSON.parse((yield* run("deny", "--json")).out)).toMatchObject({
      rows: [{ kind: "approval", text: "wants to use shell" }, { kind: "approval" }, { kind: "session" }]
    })
  })
)

it.live("approve and deny answer the call that a beginning names", () =>
  Effect.gen(function* () {
    const { run, world } = yield* withWorld({ calls: [callInfo(), callInfo({ callId: "02call" })] })
    const { hash } = askedOf(world.calls[0]!)
    expect(yield* run("approve", "01", hash)).toMatchObject({ code: 0, out: "shell: allow\n" })
    expect(yield* run("deny", "02", "--reason", "no")).toMatchObject({ code: 0 })
    expect(yield* run("approve", "01call000000000000000000aa", hash)).toMatchObject({
      code: 1,
      err: expect.stringContaining("approved already")
    })
    expect(world.commands).toMatchObject([
      ["answerCall", "01call000000000000000000aa", { behavior: "allow" }],
      ["answerCall", "02call", { behavior: "deny", reason: "no" }]
    ])
    expect((yield* run("approve")).out).toBe("Nothing waits for you.\n")
  })
)

it.live("answer chooses for the call that a beginning names, and lists the options without one", () =>
  Effect.gen(function* () {
    const options = [
      { label: "Red", description: "warm\u001b[2J" },
      { label: "Blue", description: "" }
    ]
    const call = callInfo({ questions: [{ question: "Which?", options, several: false }] })
    const { run, state, world } = yield* withWorld({ calls: [call] })
    const { out } = yield* run("answer")
    expect(out).toContain("    Which?\n      1  Red: warm\\u{1b}[2J\n      2  Blue\n")
    expect(out).toContain(`agentd --state ${state} answer 01call000000 1 `)
    expect(yield* run("answer", "01", "2", "b c")).toMatchObject({ code: 0 })
    expect(world.commands).toMatchObject([["answerCall", call.callId, { behavior: "allow", answers: ["2", "b c"] }]])
  })
)

it.live("ps shows what asks first, then what is paused, and says how to go on", () =>
  Effect.gen(function* () {
    const { run } = yield* withWorld({
      agents: [agentInfo({ word: "needs you" })],
      calls: [callInfo()],
      conversations: [conversationInfo({ state: "paused", since: T0 + 1, detail: "paused by ada" })]
    })
    const [, group, first, idle, second] = (yield* run("ps")).out.split("\n")
    expect([group, idle]).toEqual(["Needs you 1", "Idle 1"])
    expect(first).toMatch(
      /^◆ web\/builder .*wants to use shell: .*rm -rf build.* → agentd --state \S+ approve 01call000000$/
    )
    expect(second).toMatch(/^‖ web-1a2b3c4d .*is paused by ada .*→ agentd --state \S+ project resume web-1a2b3c4d$/)
  })
)

it("ids are cut as far as they stay apart, and a cut of arguments says what is missing", () => {
  const ids = ["01k9aaaaaaaaaaX", "01k9aaaaaaaaaaY"]
  expect(ids.map(shorten(ids))).toEqual(ids)
  expect(shorten(["01k9aaaaaaaaaaX"])("01k9aaaaaaaaaaX")).toBe("01k9aaaaaaaa")
  expect(shorten(["same", "same"])("same")).toBe("same")
  expect(argumentsOf("x".repeat(2500))).toMatch(/^x{2400} … and 100 more characters/)
})
