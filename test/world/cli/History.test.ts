/** `agentd log --messages`: what people asked, and what came of it. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { kinds } from "../../../src/app/EventKinds.ts"
import { type AskedRow, HistoryView, KINDS, linesOf } from "../../../src/cli/log/HistoryView.ts"
import type { Rune, RuneDraft } from "../../../src/core/event-log/Rune.ts"
import { Limits } from "../../../src/board/Limits.ts"
import { conversationInfo, makeWorld, serve, T0 } from "../rpc/World.ts"
import { agentd } from "./Child.ts"

const draft = (actor: string, kind: string, event: object, fields: object = {}): RuneDraft => ({
  stream: "web-1a2b3c4d",
  actor,
  kind,
  payload: { event, ...fields }
})
const received = (messageId: string, text: string, from = "ada") =>
  draft("inbox/builder", "inbox.received", {
    _tag: "Received",
    message: { messageId, from, text, urgent: false, at: T0 }
  })
const inbox = (kind: string, event: object) => draft("inbox/builder", `inbox.${kind}`, event)
const turn = (id: string, messageIds: ReadonlyArray<string>) =>
  draft(
    "turn/builder",
    "turn.started",
    { _tag: "start_turn", turnId: id, agentId: "builder", input: "x", source: "queue", messageIds, at: 1 },
    { turn_id: id, agent_id: "builder", input: "x" }
  )
const completed = (id: string, output: string) =>
  draft(
    "turn/builder",
    "turn.completed",
    { _tag: "response_done", turnId: id, finalOutput: output, usage: {} },
    { turn_id: id, final_output: output, usage: {} }
  )
const failed = (id: string, retry: boolean) =>
  draft(
    "turn/builder",
    "turn.error",
    { _tag: "stream_error", turnId: id, errorType: "server", message: "boom", retry },
    { turn_id: id, error_type: "server", message: "boom" }
  )
const tool = (kind: string, event: object, fields: object = {}) =>
  draft("tool/builder/c1", `tool.${kind}`, { callId: "c1", ...event }, { call_id: "c1", ...fields })
const called = tool("call", { _tag: "call_requested" }, { tool_name: "shell", arguments: { command: "make" } })
const approved = (approver: string, event: object = {}) =>
  tool("approved", { _tag: "approved", approver, ...event }, { approver })
const denied = (approver: string) =>
  tool("denied", { _tag: "denied", approver, reason: "not now" }, { approver, reason: "not now" })
const result = (status: string) => tool("result", { _tag: "success" }, { status })
const goal = (kind: string, event: object, to: string) => ({ ...draft("plan/g1", `plan.${kind}`, event), to })

const rowsOf = (...drafts: ReadonlyArray<RuneDraft>): ReadonlyArray<AskedRow> => {
  const view = new HistoryView(100)
  for (const [at, each] of drafts.entries())
    view.feed({
      from: null,
      to: null,
      trigger: null,
      cause: null,
      moves: [],
      visibility: "public",
      ...each,
      format: 2,
      eventId: at + 1,
      seq: at + 1,
      at: T0 + at
    } as Rune)
  return view.rows
}
const brief = ({ by, detail, text, to, what, word }: AskedRow) => [by, what, to, text, word, detail]

describe("the history", () => {
  it("reads kinds that there are", () => {
    expect(KINDS.filter((kind) => kinds.get(kind) === undefined)).toEqual([])
    expect(KINDS.length).toBeLessThanOrEqual(Limits.kinds)
  })

  it.each([
    ["waits", [], "waiting", ""],
    ["is worked on", [turn("t1", ["m1"])], "working", "its turn is in progress"],
    ["is answered", [turn("t1", ["m1"]), completed("t1", "it\nis done")], "done", "it is done"],
    ["is tried again", [turn("t1", ["m1"]), failed("t1", true)], "retrying", "boom"],
    [
      "failed, then was answered",
      [turn("t1", ["m1"]), failed("t1", true), turn("t2", ["m1"]), completed("t2", "yes")],
      "done",
      "yes"
    ],
    ["has failed", [turn("t1", ["m1"]), failed("t1", false)], "failed", "boom"],
    ["was taken back", [inbox("withdrawn", { _tag: "Withdrawn", messageId: "m1" })], "done", "withdrawn"],
    [
      "came to nothing",
      [
        inbox("dropped", {
          _tag: "Dropped",
          messageIds: ["m1"],
          turnId: "t1",
          errorType: "refusal",
          reason: "no",
          at: 1
        })
      ],
      "failed",
      "ended without an answer: no"
    ],
    [
      "was asked again",
      [
        inbox("asked_again", { _tag: "AskedAgain", messages: [{ messageId: "m1", as: "m2" }], by: "bob", at: 1 }),
        turn("t1", ["m2"]),
        completed("t1", "at last")
      ],
      "done",
      "at last"
    ]
  ] as const)("a message %s", (_, then, word, detail) =>
    expect(rowsOf(received("m1", "do it"), ...then).map(brief)).toEqual([
      ["ada", "message", "builder", "do it", word, detail]
    ])
  )

  it("a call that nobody answered is a row, and a turn of nothing else has failed", () => {
    const asked = (id: string, kind: string, event: object, fields: object = {}) =>
      draft(`tool/builder/${id}`, `tool.${kind}`, { callId: id, ...event }, { call_id: id, ...fields })
    const make = (id: string) =>
      asked(id, "call", { _tag: "call_requested", turnId: "t1" }, { tool_name: "shell", arguments: { command: id } })
    const late = (id: string) => asked(id, "result", { _tag: "approval_timeout" }, { status: "timeout" })
    const begun = [received("m1", "do it"), turn("t1", ["m1"]), make("c1"), late("c1")]
    const row = [
      "nobody",
      "answer",
      "builder",
      'shell {"command":"c1"}',
      "failed",
      "expired: nobody answered in time, so the call was denied"
    ]
    expect(rowsOf(...begun, completed("t1", "I could not")).map(brief)).toEqual([
      ["ada", "message", "builder", "do it", "failed", "a call expired; I could not"],
      row
    ])
    const ran = [make("c2"), asked("c2", "result", { _tag: "success" }, { status: "success" })]
    expect(rowsOf(...begun, ...ran, completed("t1", "in part")).map(brief)).toEqual([
      ["ada", "message", "builder", "do it", "done", "a call expired; in part"],
      row
    ])
  })

  it("an answer to a call says what the call was, and what it came to", () => {
    expect(rowsOf(called, approved("ada"), result("success")).map(brief)).toEqual([
      ["ada", "answer", "builder", 'shell {"command":"make"}', "done", "allowed; result of the call: success"]
    ])
    expect(rowsOf(called, approved("ada", { answers: ["Red"] }), result("error"))[0]).toMatchObject({ word: "failed" })
    expect(rowsOf(called, denied("ada"), result("denied")).map(brief)).toEqual([
      ["ada", "answer", "builder", 'shell {"command":"make"}', "done", "denied: not now"]
    ])
  })

  it("a goal and its plan", () => {
    const submitted = goal(
      "goal_received",
      { _tag: "goal_submitted", planId: "g1", goal: "port it", by: "ada" },
      "goal_received"
    )
    expect(
      rowsOf(
        submitted,
        goal("approved", { _tag: "plan_approved", by: "bob" }, "executing"),
        goal("blocked", { _tag: "all_runnable_blocked", reason: "no key" }, "blocked")
      ).map(brief)
    ).toEqual([
      ["ada", "goal", "g1", "port it", "needs you", "no key"],
      ["bob", "answer", "g1", "its plan", "done", "allowed"]
    ])
    const met = goal("goal_met", { _tag: "critique_passed", summary: "all is ported" }, "goal_met")
    expect(rowsOf(submitted, met)[0]).toMatchObject({ word: "done", detail: "all is ported" })
    const over = goal("stopped", { _tag: "budget_exhausted", reason: "spent" }, "stopped")
    expect(rowsOf(submitted, over)[0]).toMatchObject({ word: "failed", detail: "spent" })
  })

  it("leaves out what agents, agentd and rules ask and decide among themselves", () => {
    const post = (by: string) =>
      draft("channel/reviews", "channel.posted", {}, { messageId: "p1", by, from: "ada", text: "hello" })
    const rows = rowsOf(
      received("m1", "x", "agent:tester"),
      received("m2", "x", "channel:reviews"),
      received("m3", "x", "agentd"),
      called,
      denied("the agent's own rules"),
      approved("agentd"),
      post("agent"),
      post("person")
    )
    expect(rows.map(brief)).toEqual([["ada", "post", "#reviews", "hello", "done", "posted"]])
  })

  it("holds no more than is asked for, and no text whole that is endless", () => {
    const many = Array.from({ length: 300 }, (_, at) => received(`m${at}`, "\u001b[2J".repeat(10_000)))
    const rows = rowsOf(...many)
    expect(rows).toHaveLength(100)
    expect(rows[0]!.eventId).toBe(201)
    expect(rows[0]!.text.length).toBeLessThanOrEqual(2_000)
    const lines = linesOf(
      rows.map((row) => ({ ...row, name: row.to })),
      { colour: false, columns: 80, now: T0 }
    )
    for (const line of lines) expect(line).not.toMatch(/\p{Cc}/u)
  })
})

describe("agentd log --messages", () => {
  it.live("lists it, by name, pattern and number, as lines, JSON and CSV", () =>
    Effect.gen(function* () {
      const world = makeWorld({ conversations: [conversationInfo()] })
      const { state } = yield* serve(world, [
        received("m1", "=first"),
        turn("t1", ["m1"]),
        completed("t1", "yes"),
        received("m2", "second", "bob")
      ])
      const history = (...args: ReadonlyArray<string>) => agentd(["--state", state, "log", "--messages", ...args])
      const { out } = yield* history()
      expect(out).toMatch(/^AT .*\n.*ada .*builder .*done .*=first → yes\n.*bob .*waiting .*second\n$/)
      expect((yield* history("-n", "1")).out).not.toContain("first")
      expect(JSON.parse((yield* history("builder", "-g", "BOB|second", "--json")).out)).toMatchObject([{ by: "bob" }])
      const [head, row] = (yield* history("--csv")).out.split("\n")
      expect(head).toBe("at,by,what,to,text,outcome,detail")
      expect(row).toMatch(/Z,ada,message,builder,'=first,done,yes$/)
      expect(yield* history("nobody")).toMatchObject({ code: 1, err: /There is no agent "nobody"/ })
    })
  )
})
