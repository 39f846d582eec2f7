/** Tests of the rows that `ps` and the board show of agents, sessions, goals, channels and waiting things. */
import { describe, expect, it } from "@effect/vitest"
import { render } from "../../../src/cli/sessions/Board.ts"
import { chosen, fits } from "../../../src/cli/sessions/RowFilter.ts"
import type { BoardGiven } from "../../../src/board/BoardList.ts"
import { plateInfo } from "../../world/http/PlatesDouble.ts"
import { agentInfo, boardOf, callInfo, conversationInfo, T0 } from "../../world/rpc/World.ts"

const asker = agentInfo({ word: "needs you", detail: "asks for shell" })
const call = callInfo()
const own = plateInfo({ status: "AwaitingApproval", agent: `${call.project}/${call.agent}`, approval: null })
const shown = (over: Partial<BoardGiven>, columns: number | null = null, world: string | null = null): string =>
  render(boardOf(over, T0 + 1000), T0 + 1000, { colour: false, columns, world }).join("\n")

describe("a thing is one row", () => {
  it("an agent that asks, its run and its call are the agent's, with the command that answers", () => {
    const { rows } = boardOf({ agents: [asker], calls: [call], plates: [own] })
    expect(rows).toMatchObject([{ kind: "agent", word: "needs you", asks: [call.callId], name: "builder" }])
    expect(rows[0]!.says).toContain("wants to use shell: ")
    expect(rows[0]!.commands[0]!.command).toContain("agentd approve")
  })

  it("several calls of one agent are its row, and each of them is named", () => {
    const second = callInfo({ callId: "01call000000000000000000bb" })
    const { rows } = boardOf({ agents: [asker], calls: [call, second] })
    expect(rows.map(({ kind }) => kind)).toEqual(["agent"])
    expect(rows[0]!.asks).toEqual([call.callId, second.callId])
    expect(rows[0]!.says).toContain("wants to use shell, and 1 more: ")
  })

  it("an agent that works asks nobody, whatever its run's session says of a call that is decided", () => {
    const working = agentInfo({ word: "working", backend: "claude" })
    const runs = { ...call, state: "executing" as const }
    for (const calls of [[runs], []]) {
      const { rows } = boardOf({ agents: [working], calls, plates: [own] })
      expect(rows.map(({ kind, word }) => [kind, word])).toEqual([["agent", "working"]])
    }
  })

  it("a person's own session is a row, whatever else asks", () => {
    const { rows } = boardOf({
      agents: [asker],
      calls: [call],
      plates: [plateInfo({ status: "AwaitingApproval", agent: null }), own]
    })
    expect(rows.map(({ kind }) => kind).toSorted()).toEqual(["agent", "session"])
    expect(rows.every(({ word }) => word === "needs you")).toBe(true)
  })

  it("messages that a stopped agent holds need a person", () => {
    const stopped = agentInfo({ state: "Stopped", word: "needs you", inbox: 2 })
    const { agent, conversation, project } = stopped
    const backlog = [{ agent, conversation, project, dropped: [], more: 0, held: 2, heldSince: T0 }]
    const { rows } = boardOf({ agents: [stopped], backlog })
    expect(rows.map(({ kind, word }) => [kind, word])).toEqual([["agent", "needs you"]])
    expect(rows[0]!.says).toContain("has 2 queued messages")
  })
})

it.each([
  ["needs you", "Needs you 1"],
  ["failed", "Failed 1"],
  ["retrying", "Working 1"],
  ["waiting", "Working 1"],
  ["paused", "Idle 1"],
  ["done", "Idle 1"]
] as const)("%s stands under %s", (word, group) => {
  expect(shown({ agents: [agentInfo({ word })] }).split("\n")[1]).toBe(group)
})

it("what needs a person comes first, then what failed; a row keeps its place while its word stays", () => {
  const agents = (["idle", "failed", "needs you", "working"] as const).map((word, at) =>
    agentInfo({ word, agent: `a${at}`, since: T0 + at })
  )
  const words = boardOf({ agents }).rows.map(({ word }) => word)
  expect(words).toEqual(["needs you", "failed", "working", "idle"])
  const later = agents.map((agent) => ({ ...agent, since: T0 + 500, detail: "another" }))
  expect(boardOf({ agents: later }).rows.map(({ word }) => word)).toEqual(words)
})

it("each command that is named is typed in this world", () => {
  const conversations = [conversationInfo({ state: "paused", detail: "paused by ada" })]
  const text = shown({ agents: [asker], calls: [call], conversations }, null, "/tmp/w")
  for (const verb of ["approve", "project resume"]) expect(text).toContain(`agentd --state /tmp/w ${verb}`)
  expect(shown({}, null, "/tmp/w")).not.toMatch(/agentd (init|start|hooks)/)
})

it("in a narrow terminal columns make room, and no command is cut", () => {
  const agents = [
    { ...asker, role: "builds things", model: "opus", branch: "agent/builder" },
    agentInfo({ agent: "b" })
  ]
  for (const columns of [60, 80, 120, 200]) {
    const lines = shown({ agents, calls: [call] }, columns).split("\n")
    expect(lines.some((line) => line.endsWith("→ agentd approve 01call000000"))).toBe(true)
    expect(lines[0]).toContain("NAME")
  }
  expect(shown({ agents, calls: [call] }, 60).split("\n")[0]).not.toContain("BRANCH")
  expect(shown({ agents, calls: [call] }, 200).split("\n")[0]).toContain("BRANCH")
})

describe("a conversation that is closed", () => {
  const closed = conversationInfo({ conversation: "web-1", state: "closed", since: T0, detail: "closed" })
  it("is why a project has no agents, and what comes next is said, for a day", () => {
    expect(shown({ conversations: [closed] })).toContain("is closed: agentd project new")
    expect(boardOf({ conversations: [closed] }, T0 + 90_000_000).rows).toEqual([])
    expect(boardOf({ conversations: [closed], all: true }, T0 + 90_000_000).rows).toHaveLength(1)
  })

  it("needs no word when the next one has begun", () => {
    const next = conversationInfo({ conversation: "web-1.2", state: "active" })
    expect(boardOf({ conversations: [closed, next] }).rows).toEqual([])
  })
})

it("a paused project and a paused channel are told once, each with what lets it go on", () => {
  const conversations = [conversationInfo({ state: "paused", detail: "paused by ada" })]
  const { rows } = boardOf({ agents: [agentInfo({ word: "paused" })], conversations })
  expect(rows.map(({ kind, word }) => [kind, word])).toEqual([
    ["agent", "paused"],
    ["project", "paused"]
  ])
  expect(rows[1]!.commands[0]!.command).toBe("agentd project resume web-1a2b3c4d")
})

it("an agent that has stopped for good says that, and counts what it holds", () => {
  const failed = agentInfo({ state: "Stopped", word: "failed", failed: true, detail: "exit code 3", inbox: 1 })
  const { agent, conversation, project } = failed
  const backlog = [{ agent, conversation, project, dropped: [], more: 0, held: 1, heldSince: T0 }]
  const { rows } = boardOf({ agents: [failed], backlog })
  expect(rows).toMatchObject([{ kind: "agent", says: "exit code 3 · stopped permanently", inbox: 1 }])
})

describe("names and patterns", () => {
  const { rows } = boardOf({
    agents: [
      agentInfo(),
      agentInfo({ agent: "tester", word: "failed" }),
      agentInfo({ project: "shop", conversation: "shop-1", agent: "builder" })
    ]
  })
  const named = (names: ReadonlyArray<string>, more: Partial<Parameters<typeof chosen>[1]> = {}) =>
    chosen(rows, { names, labels: [], project: undefined, word: undefined, sort: "name", ...more }).map(
      ({ name, project }) => `${project}/${name}`
    )

  it("a name means the thing, of each project; a project all that is in it; a pattern what fits", () => {
    expect(named(["builder"])).toEqual(["shop/builder", "web/builder"])
    expect(named(["web"])).toEqual(["web/builder", "web/tester"])
    expect(named(["web/*", "shop/b*"])).toEqual(["shop/builder", "web/builder", "web/tester"])
    expect(named(["*"])).toHaveLength(3)
    expect(named(["nobody"])).toEqual([])
    expect(named([], { project: "sh*" })).toEqual(["shop/builder"])
    expect(named([], { word: "failed" })).toEqual(["web/tester"])
  })

  it("a label means the agents that have it, and rows can be grouped by it, or by project", () => {
    const { rows } = boardOf({
      agents: [
        agentInfo({ labels: ["web", "slow"] }),
        agentInfo({ agent: "tester", labels: ["web"] }),
        agentInfo({ agent: "plain", project: "shop", conversation: "shop-1" })
      ]
    })
    const all = { names: [], project: undefined, word: undefined, sort: "name" } as const
    const labelled = (...labels: ReadonlyArray<string>) => chosen(rows, { ...all, labels }).map(({ name }) => name)
    expect(labelled("web")).toEqual(["builder", "tester"])
    expect(labelled("web", "slow")).toEqual(["builder"])
    expect(labelled("nothing")).toEqual([])
    const page = (by: "label" | "project") => render({ rows, by }, T0, { colour: false, columns: null }).join("\n")
    expect(page("label")).toMatch(/LABELS[^]*no label 1\n.*shop\/plain[^]*slow 1\n.*web,slow[^]*web 2\n/)
    expect(page("project")).toMatch(/shop 1\n[^]*web 2\n/)
  })

  it("a star stops at a slash, and what else an expression would mean is itself", () => {
    expect(fits("a*", "a/b")).toBe(false)
    expect(fits("a.b", "axb")).toBe(false)
    expect(fits("(a|b)", "a")).toBe(false)
    expect(fits("a?c", "abc")).toBe(true)
    expect(fits("a?c", "a/c")).toBe(false)
    expect(fits("*a*b*", "xxaxxbxx")).toBe(true)
    expect(fits("*/b*", "shop/builder")).toBe(true)
    expect(fits("*".repeat(50) + "z", "a".repeat(5_000))).toBe(false)
  })
})

it.each([
  ["hook", true],
  ["stream", false],
  ["process", false]
] as const)("without a transcript, what rests on a %s is warned of: %s", (signal, warned) => {
  const plates = [plateInfo({ watchable: false, restsOn: { signal, at: T0 } })]
  expect(shown({ plates }).includes("a missed hook cannot be recovered")).toBe(warned)
})

it("a command that leaves its text no room stands below it; where no column says the state, the text does", () => {
  const retrying = { word: "retrying", state: "CoolingDown", nextAt: T0 + 9000, detail: "after: exit code 1" } as const
  const agents = [asker, agentInfo({ agent: "tester", ...retrying })]
  const narrow = shown({ agents, calls: [call] }, 60).split("\n")
  expect(narrow.join("\n")).toMatch(/tester +(1s +)?retrying in 8 s: after: exit code 1/)
  const at = narrow.findIndex((line) => line.includes("builder"))
  expect(narrow[at]).not.toContain("→")
  expect(narrow[at + 1]).toMatch(/^ {8,}→ agentd approve 01call000000$/)
  const wide = shown({ agents, calls: [call] }, 200)
  expect(wide).toMatch(/tester +retrying in 8 s +.*after: exit code 1/)
  expect(wide).toMatch(/builder.* {2}→ agentd approve 01call000000/)
})
