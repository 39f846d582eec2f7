/** Tests of `agentd wait`, and of the words that people know from elsewhere. */
import { assert, describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { asFlags, meant } from "../../../src/cli/parse/VerbAliases.ts"
import { AIMS } from "../../../src/cli/sessions/RowFilter.ts"
import { VERBS } from "../../../src/cli/parse/HintCommand.ts"
import { standing, unclear } from "../../../src/cli/agents/Wait.ts"
import type { BoardRow } from "../../../src/domain/BoardMessages.ts"
import { conversationId } from "../../../src/config/ProjectName.ts"
import { agentInfo, boardOf, draft, folder, makeWorld, serveAt } from "../rpc/World.ts"
import { agentd, inProcess, launch } from "./Child.ts"

const { rows } = boardOf({
  agents: [
    agentInfo(),
    agentInfo({ agent: "tester", word: "idle" }),
    agentInfo({ agent: "lost", word: "failed", project: "shop", conversation: "shop-1" })
  ]
})
const of = (names: ReadonlyArray<string>, ...labels: ReadonlyArray<string>) => ({ names, labels })
const names = (found: ReadonlyArray<{ readonly name: string }>) => found.map(({ name }) => name)

describe("how it stands", () => {
  it("all that is named has to be so; what has failed will not be idle, but is failed", () => {
    expect(names(standing(rows, of(["web/*"]), "idle").left)).toEqual(["builder"])
    expect(names(standing(rows, of(["tester"]), "idle").left)).toEqual([])
    expect(names(standing(rows, of(["lost"]), "idle").never)).toEqual(["lost"])
    expect(names(standing(rows, of(["lost"]), "failed").left)).toEqual([])
    expect(names(standing(rows, of(["lost"]), "needs-you").never)).toEqual([])
    expect(standing(rows, of(["tester", "nobody"]), "idle").unknown).toEqual(["nobody"])
    const { rows: some } = boardOf({ agents: [agentInfo({ labels: ["slow"] }), agentInfo({ agent: "tester" })] })
    const own = "/home/ada/shop/agentd.jsonc"
    const two = boardOf({
      agents: [
        agentInfo(),
        agentInfo({ project: "shop", conversation: conversationId(own) }),
        agentInfo({ agent: "over", word: "done" }),
        agentInfo({ agent: "held", word: "needs you", state: "Stopped" })
      ]
    }).rows
    const is = (name: string, config: string | null) => {
      const found = standing(two, of([name]), "idle", config)
      return unclear(two, [name], found, config)?.message ?? found.found.flat().map(({ called }) => called)
    }
    expect(is("builder", own)).toEqual(["shop/builder"])
    expect(is("builder", null)).toMatch('"builder" matches 2 items')
    expect(is("over", null)).toEqual(["web/over"])
    expect(is("over", own)).toEqual('Nothing is called "over".')
    expect(is("builder", "/home/ada/new/agentd.jsonc")).toMatch("this folder's project")
    expect(names(standing(two, of(["over"]), "working").never)).toEqual(["over"])
    expect(names(standing(two, of(["over"]), "failed").never)).toEqual(["over"])
    expect(names(standing(two, of(["held"]), "idle").never)).toEqual(["held"])
    expect(names(standing(two, of(["held"]), "needs-you").never)).toEqual([])
    const row = (over: Parameters<typeof agentInfo>[0]) => boardOf({ agents: [agentInfo(over)] }).rows
    const never = (over: Parameters<typeof agentInfo>[0]) =>
      AIMS.filter((aim) => standing(row(over), of([]), aim).never.length > 0)
    expect(never({ mode: "loop" })).toEqual(["idle", "done"])
    expect(never({ mode: "loop", word: "waiting" })).toEqual(["idle", "done"])
    expect(never({ mode: "loop", word: "done", state: "Stopped" })).toEqual(["needs-you", "failed", "working"])
    expect(never({ word: "paused", detail: "its project is paused" })).toEqual([...AIMS])
    expect(never({ word: "failed", state: "Stopped" })).toEqual(["idle", "done", "needs-you", "working"])
    expect(never({ word: "retrying" })).toEqual(["done"])
    expect(never({ word: "needs you" })).toEqual(["done"])
    expect(never({ word: "idle", state: "Stopped", detail: "was never started" })).toEqual([
      "done",
      "needs-you",
      "failed",
      "working"
    ])
    // a sub-agent in the queue
    expect(never({ word: "waiting", state: "Stopped", reason: "place", parent: "builder" })).toEqual([])
    expect(names(standing(some, of([], "slow"), "idle").left)).toEqual(["builder"])
    expect(standing(some, of([], "nothing"), "idle").unknown).toEqual(["nothing"])
  })
})

/** Of each kind of row in each state: the words to which it does not come by itself. `I`dle, `D`one, `Y`ou, `F`ailed, `W`orking. */
const CELLS: ReadonlyArray<readonly [string, Partial<BoardRow>, string]> = [
  ["an agent that takes messages", { word: "idle" }, "D"],
  ["one at work", { word: "working" }, "D"],
  ["one that waits for a limit", { word: "waiting", reason: "limit" }, "D"],
  ["one that asks", { word: "needs you" }, "D"],
  [
    "one that a person stopped: a schedule may send it something that waits for it then",
    { word: "stopped", state: "Stopped" },
    "DFW"
  ],
  ["one that was stopped and holds messages", { word: "needs you", state: "Stopped" }, "IDFW"],
  ["one that was never started", { word: "idle", state: "Stopped" }, "DYFW"],
  ["one of a paused project", { word: "paused" }, "IDYFW"],
  ["one that has failed", { word: "failed", state: "Stopped" }, "IDYW"],
  ["one that works in a loop", { word: "working", mode: "loop" }, "ID"],
  ["one in a loop between two runs", { word: "waiting", mode: "loop", reason: "run" }, "ID"],
  ["a sub-agent", { word: "idle", parent: "builder" }, ""],
  ["a sub-agent in the queue", { word: "waiting", state: "Stopped", reason: "place", parent: "builder" }, ""],
  ["a sub-agent that is over", { word: "done", state: "Stopped", parent: "builder" }, "YFW"],
  ["a goal at work", { kind: "goal", word: "working" }, ""],
  ["a goal that needs a person", { kind: "goal", word: "needs you" }, ""],
  ["a goal of a paused project", { kind: "goal", word: "paused" }, "IDYFW"],
  ["a goal that is met", { kind: "goal", word: "done" }, "YFW"],
  ["a goal that came to nothing", { kind: "goal", word: "failed" }, "IDYW"],
  ["a goal that was cancelled", { kind: "goal", word: "stopped" }, "DYFW"],
  ["a channel at rest", { kind: "channel", word: "idle" }, "F"],
  ["a channel with a seat that waits for its agent", { kind: "channel", word: "waiting" }, "F"],
  ["a channel that is paused", { kind: "channel", word: "paused" }, "IDYFW"],
  ["a channel that is closed", { kind: "channel", word: "done" }, "YFW"],
  ["a project that is being closed", { kind: "project", word: "working" }, "F"],
  ["a project that is suspended", { kind: "project", word: "needs you" }, "F"],
  ["a session at rest", { kind: "session", word: "idle" }, ""],
  ["a session whose turn failed", { kind: "session", word: "failed" }, ""],
  ["a session that is closed", { kind: "session", word: "done" }, "YFW"]
]

describe("what will never be so by itself", () => {
  it.each(CELLS)("%s", (_, over, never) => {
    const [base] = boardOf({ agents: [agentInfo({ word: "idle" })] }).rows
    const row = { ...base!, ...over }
    const found = AIMS.filter((aim) => standing([row], of([]), aim).never.length > 0)
    expect(found.map((aim) => (aim === "needs-you" ? "Y" : aim[0]!.toUpperCase())).join("")).toBe(never)
  })
})

it.live("returns when it is so, is told of it, and says what has failed, what is unknown and what took too long", () =>
  Effect.gen(function* () {
    const state = yield* folder
    const world = makeWorld({ agents: [agentInfo()] })
    const { append } = yield* serveAt(state, world, [draft()])
    const waiting = yield* launch(["--state", state, "wait", "builder", "--json"], { input: null })
    world.agents[0] = agentInfo({ word: "idle" })
    yield* append(draft())
    const { code, out } = yield* waiting.ended
    assert.strictEqual(code, 0)
    assert.deepInclude(JSON.parse(out), { for: "idle", names: ["builder"] })
    const at = (...args: ReadonlyArray<string>) => agentd(["--state", state, "wait", ...args])
    expect(yield* at("nobody")).toMatchObject({ code: 1, err: expect.stringContaining('Nothing is called "nobody"') })
    expect(yield* at("builder", "--for", "needs-you", "--timeout", "1s")).toMatchObject({
      code: 1,
      err: expect.stringContaining("web/builder is idle")
    })
    const stays = yield* launch(["--state", state, "wait", "builder", "--for", "working"], { input: null })
    world.agents[0] = agentInfo({ word: "stopped", detail: "stopped by ada" })
    yield* append(draft())
    expect(yield* stays.ended).toMatchObject({
      code: 1,
      err: expect.stringContaining("web/builder is stopped: stopped by ada. It will not be working by itself.")
    })
    world.agents[0] = agentInfo()
    const lost = yield* launch(["--state", state, "wait", "builder"], { input: null })
    yield* append(draft())
    world.agents.length = 0
    yield* append(draft())
    expect(yield* lost.ended).toMatchObject({
      code: 1,
      err: expect.stringMatching(/no longer exists|Nothing is called/)
    })
    world.agents[0] = agentInfo({ mode: "loop", detail: "runs its command" })
    expect(yield* at("builder")).toMatchObject({
      code: 1,
      err: expect.stringContaining("runs its command. It works in a loop, so it will not be idle by itself.")
    })
    world.agents[0] = agentInfo({ word: "idle", detail: "waits for a message" })
    expect(yield* at("builder", "--for", "done")).toMatchObject({
      code: 1,
      err: expect.stringContaining(
        "waits for a message. An agent answers one message after the other, so it will not be done by itself."
      )
    })
    world.agents[0] = agentInfo({ word: "failed", detail: "exit code 3" })
    expect(yield* at("builder")).toMatchObject({
      code: 1,
      err: expect.stringMatching(/has failed: exit code 3[^]*agentd --state \S+ why/)
    })
  })
)

it.live("a daemon that goes away meanwhile, and comes back, is waited for", () =>
  Effect.gen(function* () {
    const state = yield* folder
    const rows = [agentInfo()]
    const asked = { times: 0 }
    const world = makeWorld({})
    Object.defineProperty(world, "agents", { get: () => (asked.times++, rows) })
    const first = yield* Scope.make()
    yield* Scope.provide(serveAt(state, world, [draft()]), first)
    const waiting = yield* launch(["--state", state, "wait", "builder"], { input: null })
    while (asked.times === 0) yield* Effect.sleep(20)
    yield* Scope.close(first, Exit.void)
    rows[0] = agentInfo({ word: "idle" })
    yield* serveAt(state, world, [draft()])
    const { code, err } = yield* waiting.ended
    assert.strictEqual(code, 0, err)
  })
)

describe("a word that is known from elsewhere", () => {
  it.live.each([
    ["list", "agentd ps"],
    ["kill", "agentd stop AGENT"],
    ["tail", "agentd log --text -f"],
    ["top", "the board"],
    ["reload", "agentd trust"]
  ] as const)("%s is answered with the verb that is meant", ([word, says]) =>
    Effect.gen(function* () {
      const { code, err } = yield* inProcess([word])
      assert.strictEqual(code, 2)
      assert.include(err, says)
      const json = JSON.parse((yield* inProcess([word, "--json"])).err)
      assert.deepInclude(json, { error: "UnknownSubcommand", exitCode: 2 })
    })
  )

  it.live("upgrade, with all that an older agentd took with it, is answered by how to do it now", () =>
    Effect.gen(function* () {
      for (const words of [[], ["agentd-0.2.0.tgz"], ["agentd-0.2.0.tgz", "--dry-run"], ["a.tgz", "--yes", "-y"]]) {
        const { code, err, out } = yield* inProcess(["upgrade", ...words])
        assert.deepStrictEqual([code, out], [2, ""], words.join(" "))
        assert.match(
          err,
          /agentd restart, after .* package: npm install -g FILE\.tgz \(or scripts\/install FILE\.tgz\)/
        )
      }
    })
  )

  it("is no verb, and what is meant by it is one", () => {
    for (const word of ["list", "kill", "tail", "reload", "update", "upgrade", "journal", "top"]) {
      assert.isFalse(VERBS.includes(word), word)
      const verb = /agentd (\w+)/.exec(meant([], word) ?? "")?.[1]
      assert.isTrue(verb === undefined || VERBS.includes(verb), `${word}: ${verb}`)
    }
    assert.isUndefined(meant([], "constructor"))
  })

  it.live("help and version do what they say", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(asFlags(["help", "send"]), ["send", "--help"])
      assert.deepStrictEqual(asFlags(["--state", "help", "version"]), ["--state", "help", "--version"])
      assert.deepStrictEqual(asFlags(["--state=/x", "--json", "help"]), ["--state=/x", "--json", "--help"])
      assert.deepStrictEqual(asFlags(["send", "help", "version"]), ["send", "help", "version"])
      assert.include((yield* inProcess(["help", "send"])).out, "agentd send")
      assert.match((yield* inProcess(["version"])).out, /\d+\.\d+\.\d+/)
    })
  )
})
