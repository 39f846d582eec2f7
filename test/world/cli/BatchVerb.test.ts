/** Tests of verbs that take several names and patterns. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { isOne } from "../../../src/cli/parse/DeclaredVerb.ts"
import { resolve } from "../../../src/cli/parse/NamePatterns.ts"
import { factOf } from "../../../src/cli/parse/BatchVerb.ts"
import { conversationId } from "../../../src/config/ProjectName.ts"
import { agentInfo, boardOf, conversationInfo, makeWorld, serve } from "../rpc/World.ts"
import { inProcess } from "./Child.ts"

const CONFIG = "/home/ada/shop/agentd.jsonc"
const SHOP = conversationId(CONFIG)
const agents = [
  agentInfo(),
  agentInfo({ agent: "tester", word: "idle" }),
  agentInfo({ agent: "builder", project: "shop", conversation: SHOP }),
  agentInfo({ agent: "buyer", project: "shop", conversation: SHOP, word: "idle" })
]
const { rows } = boardOf({ agents })

describe("what is meant", () => {
  const meant = (config: string | null, ...names: ReadonlyArray<string>) => {
    const found = resolve(rows, "agent", { names, labels: [] }, config)
    return "remedy" in found ? found : found.map(({ called }) => called)
  }
  it("a pattern means all that fit, a name one thing, the caller's own first; each once", () => {
    assert.sameMembers(meant(null, "shop/*") as Array<string>, ["shop/builder", "shop/buyer"])
    assert.sameMembers(meant(null, "*/b*er") as Array<string>, ["web/builder", "shop/builder", "shop/buyer"])
    assert.deepStrictEqual(meant(CONFIG, "builder"), ["shop/builder"])
    assert.deepStrictEqual(meant(null, "tester", "shop/buyer", "web/tester"), ["web/tester", "shop/buyer"])
    assert.deepStrictEqual(meant(null, `${SHOP}/buyer`), ["shop/buyer"])
  })
  it("a name of two things is told with both, an unknown one with its neighbour, a project with its pattern", () => {
    assert.deepInclude(meant(null, "builder"), { remedy: "Use one of these names: shop/builder, web/builder" })
    const unknown = meant(null, "tester", "shop/buider", "zzz/*")
    assert.deepInclude(unknown, { message: 'No agent is called "shop/buider", "zzz/*", so nothing was done.' })
    assert.match((unknown as { remedy: string }).remedy, /Did you mean "shop\/builder"\?.*agentd ps/)
    assert.match((meant(null, "shop") as { remedy: string }).remedy, /'shop\/\*'/)
  })
  it("a label means all agents that have it, of those that are named", () => {
    const some = boardOf({
      agents: [agentInfo({ labels: ["web"] }), agentInfo({ agent: "tester", labels: ["web", "slow"] })]
    }).rows
    const of = (names: ReadonlyArray<string>, ...labels: ReadonlyArray<string>) => {
      const found = resolve(some, "agent", { names, labels }, null)
      return "remedy" in found ? found.remedy : found.map(({ name }) => name).toSorted()
    }
    assert.deepStrictEqual(of([], "web"), ["builder", "tester"])
    assert.deepStrictEqual(of([], "web", "slow"), ["tester"])
    assert.deepStrictEqual(of(["b*"], "web"), ["builder"])
    assert.strictEqual(of([], "wbe"), 'Did you mean "web"? Known labels: slow, web')
    assert.strictEqual(of(["builder"], "slow"), "List all labels: agentd ps --by label")
    assert.include(resolve(rows, "agent", { names: [], labels: ["web"] }, null), {
      remedy: 'Add labels to agents in agentd.jsonc: "labels": ["web"]'
    })
  })
  it("one name is one; several and patterns are not", () => {
    assert.isTrue(isOne({ names: ["a"] }))
    assert.isTrue(isOne({ names: [] }))
    assert.isTrue(isOne({ name: "a/b" }))
    assert.isFalse(isOne({ name: "a*" }))
    assert.isFalse(isOne({ names: ["a", "b"] }))
  })
  it("what is to be ended is told by name and word", () => {
    const two = resolve(rows, "agent", { names: ["shop/*"], labels: [] }, null)
    assert.isFalse("remedy" in two)
    if ("remedy" in two) return
    assert.strictEqual(
      factOf("stops", "agent", two),
      "This stops 2 agents: shop/builder is working, shop/buyer is idle."
    )
  })
})

const worldOf = () =>
  makeWorld({
    agents: [...agents],
    conversations: [
      conversationInfo(),
      conversationInfo({ conversation: SHOP, project: "shop", config: CONFIG, turnsActive: 0 })
    ]
  })

const played = Effect.fnUntraced(function* () {
  const world = worldOf()
  const { state } = yield* serve(world)
  return { world, run: (...args: ReadonlyArray<string>) => inProcess(["--state", state, ...args]) }
})
const did = ({ commands }: ReturnType<typeof worldOf>) => commands.map(([verb, name]) => `${verb} ${name}`).toSorted()

it.live.each(["start", "stop", "restart", "interrupt", "retry", "dismiss"])("%s acts on each that is named", (verb) =>
  Effect.gen(function* () {
    const { run, world } = yield* played()
    const { code, out } = yield* run(verb, "web/tester", "shop/buyer")
    assert.strictEqual(code, 0)
    assert.deepStrictEqual(did(world), [`${verb} shop/buyer`, `${verb} web/tester`])
    assert.include(out, `${verb} web/tester: done\n`)
  })
)

it.live.each([
  ["stop", "stops"],
  ["restart", "restarts"],
  ["interrupt", "interrupts"],
  ["dismiss", "discards messages of"],
  ["set --mode plan", "sets the model or mode of"]
])(
  "%s outside a project asks before it acts on a bare name, also on one; a script gets the whole name",
  ([verb, does]) =>
    Effect.gen(function* () {
      const { run, world } = yield* played()
      for (const names of [["tester"], ["tester", "shop/buyer"]]) {
        const { code, err } = yield* run(...verb!.split(" "), ...names)
        assert.strictEqual(code, 2)
        assert.match(err, new RegExp(`This ${does} ${names.length} agents?: web/tester is idle.*nothing was done`))
        assert.match(err, /Use the full name: web\/tester/)
      }
      assert.strictEqual((yield* run(...verb!.split(" "), "builder")).code, 1)
      assert.deepStrictEqual(did(world), [])
      if (verb!.startsWith("set")) return
      const { code, out } = yield* run(verb!, "tester", "--yes", "--json")
      assert.deepStrictEqual([code, did(world)], [0, [`${verb} web/tester`]])
      assert.isFalse(Array.isArray(JSON.parse(out)))
    })
)

it("a bare name is one of the folder's project, though that is not started", () => {
  const found = resolve(rows, "agent", { names: ["tester"], labels: [] }, "/home/ada/new/agentd.jsonc")
  assert.match((found as { message: string }).message, /Here "tester" means an agent of this folder's project/)
  assert.match((found as { remedy: string }).remedy, /agentd start/)
})

it.live("a pattern that ends work needs a person's yes, or --yes; what is to be ended is said", () =>
  Effect.gen(function* () {
    const { run, world } = yield* played()
    const asked = yield* run("stop", "shop/*")
    assert.strictEqual(asked.code, 2)
    assert.match(asked.err, /This stops 2 agents: shop\/builder is working, shop\/buyer is idle\..*\n.*--yes/)
    assert.deepStrictEqual(did(world), [])
    assert.strictEqual((yield* run("stop", "shop/*", "--yes")).code, 0)
    assert.deepStrictEqual(did(world), ["stop shop/builder", "stop shop/buyer"])
    assert.strictEqual((yield* run("send", "web/*", "hello")).code, 0)
    assert.strictEqual((yield* run("send", "web/*", "hello", "--urgent")).code, 2)
    assert.strictEqual(world.commands.length, 4)
  })
)

it.live("a label is named as a pattern is: what ends work asks", () =>
  Effect.gen(function* () {
    const { run, world } = yield* played()
    world.agents[0] = agentInfo({ labels: ["web"] })
    world.agents[3] = agentInfo({ agent: "buyer", project: "shop", conversation: SHOP, labels: ["web"] })
    const asked = yield* run("stop", "-l", "web")
    assert.strictEqual(asked.code, 2)
    assert.match(asked.err, /This stops 2 agents: .*shop\/buyer/)
    assert.strictEqual((yield* run("restart", "--label", "web", "-y")).code, 0)
    assert.strictEqual((yield* run("send", "*", "-l", "web", "hello")).code, 0)
    assert.deepStrictEqual(did(world), [
      "restart shop/buyer",
      "restart web/builder",
      "send shop/buyer",
      "send web/builder"
    ])
    assert.match((yield* run("ps", "--label", "web")).out, /LABELS[^]*shop\/buyer/)
    assert.notInclude((yield* run("ps", "-l", "web")).out, "tester")
  })
)

it.live("a name that means nothing: nothing is done, and the near one is named", () =>
  Effect.gen(function* () {
    const { run, world } = yield* played()
    const { code, err, out } = yield* run("stop", "tester", "shop/buider")
    assert.deepStrictEqual([code, out], [1, ""])
    assert.match(err, /No agent is called "shop\/buider", so nothing was done\.\n.*Did you mean "shop\/builder"\?/)
    assert.deepStrictEqual(did(world), [])
  })
)

it.live("one that fails keeps no other from its turn; --json has all, the exit code says it", () =>
  Effect.gen(function* () {
    const { run, world } = yield* played()
    const { push } = world.commands
    world.commands.push = function (...all) {
      if (all.some(([, name]) => name === "shop/buyer")) throw new Error("it broke")
      return push.apply(this, all)
    }
    const { code, err, out } = yield* run("interrupt", "web/tester", "shop/buyer", "web/builder", "--json")
    assert.strictEqual(code, 1)
    assert.deepStrictEqual(did(world), ["interrupt web/builder", "interrupt web/tester"])
    const all = JSON.parse(out) as ReadonlyArray<{ readonly name: string; readonly ok: boolean }>
    assert.deepStrictEqual(
      all.map(({ name, ok }) => [name, ok]),
      [
        ["web/tester", true],
        ["shop/buyer", false],
        ["web/builder", true]
      ]
    )
    assert.deepInclude(JSON.parse(err), { exitCode: 1, message: "1 of 3 failed: shop/buyer." })
  })
)

it.live("conversations are paused and resumed by pattern; close asks, also of what is named", () =>
  Effect.gen(function* () {
    const { run, world } = yield* played()
    assert.strictEqual((yield* run("project", "pause", "web", "shop")).code, 0)
    assert.strictEqual((yield* run("project", "resume", "*")).code, 0)
    const ids = [SHOP, "web-1a2b3c4d"]
    assert.deepStrictEqual(
      did(world),
      ["pause", "resume"].flatMap((verb) => ids.map((id) => `${verb} ${id}`))
    )
    assert.strictEqual((yield* run("project", "close", "web", "shop")).code, 2)
    assert.strictEqual(world.commands.length, 4)
  })
)

it.live.each(["interrupt", "retry", "set", "forget", "goal cancel", "channel pause"])(
  "%s without a name is wrong use",
  (verb) =>
    Effect.gen(function* () {
      const { code, err } = yield* inProcess(verb.split(" "))
      assert.strictEqual(code, 2)
      assert.include(err, "Missing required argument")
    })
)
