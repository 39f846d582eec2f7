/** Tests of the rows that `ps` and `watch` show of sessions, agents and waiting things. */
import { describe, expect, it } from "@effect/vitest"
import { boardOf, render, waitingIn } from "../../src/cli/Board.ts"
import type { Board } from "../../src/cli/Board.ts"
import { listOf } from "../../src/rpc/WaitingList.ts"
import { agentInfo, callInfo, conversationInfo, nothingWaits, T0 } from "../rpc/World.ts"
import { plateInfo } from "../http/PlatesDouble.ts"

const call = callInfo()
const { agent, project } = call
const own = plateInfo({ status: "AwaitingApproval", agent: `${project}/${agent}`, approval: null })
const board = (over: Partial<Board>): Board => ({
  plates: [],
  agents: [],
  calls: [],
  conversations: [],
  projects: [],
  ...over,
  waiting: listOf({ ...nothingWaits, ...over })
})
const shown = (over: Partial<Board>, world: string | null = null): string =>
  render(board(over), T0 + 1000, { colour: false, columns: null, world }).join("\n")

describe("what waits", () => {
  it("a call of our own is shown once: as the call", () => {
    const both = { calls: [call], plates: [own] }
    expect(shown(both)).toContain("wants to use shell")
    expect(shown(both)).not.toContain("PLATE")
    expect(waitingIn(board(both))).toBe(1)
  })

  it("a session that asks for itself stays, whatever else asks", () => {
    const both = { calls: [call], plates: [plateInfo({ status: "AwaitingApproval", agent: null }), own] }
    expect(shown(both)).toContain("needs approval")
    expect(waitingIn(board(both))).toBe(2)
  })
})

it.each([
  ["hook", true],
  ["stream", false],
  ["process", false]
] as const)("without a transcript, what rests on a %s is warned of: %s", (signal, warned) => {
  const plates = [plateInfo({ watchable: false, restsOn: { signal, at: T0 } })]
  expect(shown({ plates }).includes("a missed hook cannot be made good")).toBe(warned)
})

it("each command that is named is typed in this world", () => {
  const agents = [agentInfo({ detail: "asks for shell: agentd approve 01" })]
  const conversations = [conversationInfo({ state: "paused", detail: "paused by ada" })]
  const text = shown({ agents, conversations }, "/tmp/w")
  expect(text).toContain("agentd --state /tmp/w approve 01")
  expect(text).toContain("agentd --state /tmp/w resume")
  expect(shown({}, "/tmp/w")).not.toMatch(/agentd (init|start|hooks)/)
})

describe("a conversation that is closed", () => {
  const closed = conversationInfo({ conversation: "web-1", state: "closed", since: T0, detail: "closed" })
  it("is why a project has no agents, and what comes next is said, for a day", () => {
    const conversations = boardOf(board({ conversations: [closed] })).conversations
    expect(shown({ conversations })).toContain("web-1 is closed for 1s (agentd conversation new")
    const later = render(board({ conversations }), T0 + 90_000_000, { colour: false, columns: null })
    expect(later.join("")).not.toContain("web-1")
  })

  it("needs no word when the next one has begun", () => {
    const next = conversationInfo({ conversation: "web-1.2", state: "active" })
    expect(boardOf(board({ conversations: [closed, next] })).conversations).toEqual([])
  })
})
