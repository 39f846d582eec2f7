/** Tests of `agentd project`: its list, its questions, its name in the file. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { calledOf, rowsOf } from "../../../src/cli/projects/Project.ts"
import { factOf } from "../../../src/cli/projects/ProjectRemove.ts"
import { renamed } from "../../../src/cli/projects/ProjectFile.ts"
import { standing } from "../../../src/cli/projects/ProjectRestart.ts"
import type { ConversationInfo, ProjectInfo } from "../../../src/domain/Messages.ts"
import { agentInfo, boardOf, conversationInfo, makeWorld, serve } from "../rpc/World.ts"
import { inProcess } from "./Child.ts"

const project = (over: Partial<ProjectInfo> = {}): ProjectInfo => ({
  conversation: "web-1a2b3c4d",
  name: "web",
  config: "/srv/web/agentd.jsonc",
  agents: ["builder", "tester"],
  problems: [],
  ...over
})
const agents = [agentInfo(), agentInfo({ agent: "tester", word: "failed" })]

const row = (over: Partial<ProjectInfo> = {}, conversation: Partial<ConversationInfo> = {}) =>
  rowsOf(
    {
      projects: [project(over)],
      conversations: [conversationInfo(conversation)],
      board: boardOf({
        agents,
        today: new Map([["agent/web-1a2b3c4d/builder", { tokens: 5, usd: 1 }]])
      })
    },
    false
  )[0]!

describe("a project's row", () => {
  it("says how it stands: what concerns all of it goes before its agents, the worst of them counts", () => {
    assert.deepInclude(row(), { word: "failed", called: "web", folder: "/srv/web", today: { tokens: 5, usd: 1 } })
    assert.deepStrictEqual(
      row().agents.map(({ name, word }) => `${name} ${word}`),
      ["tester failed", "builder working"]
    )
    const stopped = row({ stopped: { by: "ada", since: 1 } })
    assert.deepInclude(stopped, { word: "stopped", says: "stopped by ada: agentd project start web" })
    const paused = row({}, { state: "paused", word: "paused", detail: "paused by ada" })
    assert.deepInclude(paused, { word: "paused", says: "paused by ada: agentd project resume web" })
    assert.deepInclude(row({}, { state: "suspended", word: "needs you" }), { word: "needs you" })
    assert.deepInclude(row({ damage: "a hash differs" }), { word: "failed" })
    assert.include(row({ waits: { hash: "h", since: 1 } }).says, "agentd trust web")
    assert.include(row({ problems: ["line 3"] }).says, "line 3")
    assert.deepInclude(row({ problems: ["it is lost"], lost: true }), { word: "failed", says: "it is lost" })
  })
  it("two of one name are called by their conversations", () => {
    const two = [project(), project({ conversation: "web-2" })]
    assert.deepStrictEqual(two.map(calledOf(two)), ["web-1a2b3c4d", "web-2"])
    assert.strictEqual(calledOf([project()])(project()), "web")
  })
  it("one that is closed is there with --all, once, unless its file has an open one", () => {
    const closed = [
      conversationInfo({ conversation: "old-1", config: "/old/agentd.jsonc", state: "closed", since: 1 }),
      conversationInfo({ conversation: "old-1.2", config: "/old/agentd.jsonc", state: "archived", since: 2 }),
      conversationInfo({ conversation: "web-0", state: "closed" })
    ]
    const given = { projects: [project()], conversations: [...closed, conversationInfo()], board: boardOf({ agents }) }
    const names = (over: boolean) => rowsOf(given, over).map(({ called }) => called)
    assert.deepStrictEqual(names(false), ["web"])
    assert.deepStrictEqual(names(true), ["web", "old-1.2"])
  })
})

it("after its restart an agent is up, lost, or on its way", () => {
  const at = (over: Parameters<typeof agentInfo>[0]) => standing(boardOf({ agents: [agentInfo(over)] }).rows[0]!)
  assert.strictEqual(at({}), "up")
  assert.strictEqual(at({ word: "idle", state: "BuildingPrompt" }), "up")
  assert.strictEqual(at({ state: "Spawning" }), "on its way")
  assert.strictEqual(at({ word: "retrying", state: "CoolingDown" }), "lost")
  assert.strictEqual(at({ word: "failed", state: "Stopped" }), "lost")
  assert.strictEqual(at({ word: "waiting", reason: "network", state: "CoolingDown" }), "lost")
  assert.strictEqual(at({ word: "waiting", reason: "run", state: "BuildingPrompt" }), "up")
})

it("a new name stands in the file, and nothing else of it is changed", () => {
  const text = '{\n  // mine\n  "name": "shop", // so\n  "agents": {},\n}\n'
  assert.strictEqual(renamed(text, "store"), text.replace('"shop"', '"store"'))
  const fresh = renamed('{\n  // mine\n  "agents": {}\n}\n', "store")
  assert.match(fresh, /^\{\s+"name": "store",/)
  assert.include(fresh, '// mine\n  "agents": {}\n}\n')
  assert.match(renamed("{}", "store"), /^\{\s*"name": "store"\s*\}$/)
})

it("before it is removed, what ends and what is left are said", () => {
  const fact = factOf(
    conversationInfo(),
    [agentInfo({ busy: true, cwd: "/state/trees/builder" }), agentInfo({ agent: "tester" })],
    boardOf({ agents }).rows
  )
  assert.match(
    fact,
    /^This permanently ends the project web: its agents \(builder, tester\)\. 1 agent works \(builder\)\./
  )
  assert.match(fact, /its log \(web-1a2b3c4d\), its folder \/srv\/web with agentd\.jsonc, 1 work tree/)
})

const played = Effect.fnUntraced(function* (busy: boolean) {
  const world = makeWorld({ agents: [agentInfo({ busy }), agentInfo({ agent: "tester", word: "idle" })] })
  const { state } = yield* serve(world)
  return { world, run: (...args: ReadonlyArray<string>) => inProcess(["--state", state, "project", ...args]) }
})

it.live("ls shows each; --json has the agents by word", () =>
  Effect.gen(function* () {
    const { run } = yield* played(true)
    assert.match((yield* run("ls")).out, /^PROJECT .*\n● web +working +1 working, 1 idle +\/srv\/web\n$/)
    const [json] = JSON.parse((yield* run("ls", "--json")).out)
    assert.deepInclude(json, { project: "web", word: "working", config: "/srv/web/agentd.jsonc" })
  })
)

it.live("stop, restart and remove ask where work ends, and without a terminal change nothing", () =>
  Effect.gen(function* () {
    const { run, world } = yield* played(true)
    for (const verb of ["stop", "restart", "remove"]) {
      const { code, err } = yield* run(verb, "web")
      assert.strictEqual(code, 2, verb)
      assert.match(err, /1 agent works \(builder\)[^]*→ Pass --yes/)
    }
    assert.strictEqual((yield* run("stop", "w*")).code, 2)
    assert.deepStrictEqual(world.commands, [])
    assert.strictEqual((yield* run("stop", "web", "--yes")).code, 0)
    assert.strictEqual((yield* run("restart", "web", "--yes")).code, 0)
    assert.strictEqual((yield* run("remove", "web", "--yes")).code, 0)
    assert.deepStrictEqual(
      world.commands.map(([verb, name]) => `${verb} ${name}`),
      ["stopProject web-1a2b3c4d", "restart web/builder", "restart web/tester", "close web-1a2b3c4d"]
    )
  })
)

it.live("where nobody works stop does not ask; restart leaves a stopped agent alone, and a stopped project", () =>
  Effect.gen(function* () {
    const { run, world } = yield* played(false)
    assert.strictEqual((yield* run("stop", "web")).code, 0)
    world.agents[1] = agentInfo({ agent: "tester", word: "stopped", state: "Stopped" })
    assert.strictEqual((yield* run("restart", "web")).code, 0)
    world.projects[0] = { ...world.projects[0]!, stopped: { by: "ada", since: 1 } }
    const { code, err } = yield* run("restart", "web")
    assert.strictEqual(code, 1)
    assert.match(err, /was stopped by ada\.\n.*project start web/)
    assert.deepStrictEqual(
      world.commands.map(([verb, name]) => `${verb} ${name}`),
      ["stopProject web-1a2b3c4d", "restart web/builder"]
    )
  })
)

it.live("rename refuses what is no name, with one that is", () =>
  Effect.gen(function* () {
    const { run } = yield* played(false)
    const { code, err } = yield* run("rename", "web", "My Shop")
    assert.strictEqual(code, 2)
    assert.match(err, /→ Try: agentd --state \S+ project rename web my-shop/)
  })
)
