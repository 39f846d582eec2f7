import { describe, expect, it } from "@effect/vitest"
import { past } from "../../../src/projects/service/WhyCalls.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import type { Event } from "../../../src/agents/machines/ToolMachine.ts"

const rune = (eventId: number, kind: string, event: Event): Rune => ({
  format: 2,
  eventId,
  seq: eventId,
  moves: [],
  stream: "web-1a2b3c4d",
  at: eventId,
  kind,
  actor: `tool/builder/${event.callId}`,
  from: null,
  to: null,
  trigger: event._tag,
  cause: null,
  visibility: "public",
  payload: { event, call_id: event.callId }
})
const call = (eventId: number, callId: string, command: string) =>
  rune(eventId, "tool.call", {
    _tag: "call_requested",
    callId,
    turnId: "t1",
    toolName: "Bash",
    arguments: { command }
  })

describe("the decisions on an agent's calls", () => {
  it("are told from their runes: by whom, for how long, or by which rule; what ran as ever is left out", () => {
    const rules = [{ command: "npm test" }]
    const runes = [
      call(1, "a", "npm test"),
      rune(2, "tool.approved", { _tag: "approved", callId: "a", approver: "ann", scope: "run", run: "r1", rules }),
      call(3, "b", "npm test"),
      rune(4, "tool.started", { _tag: "auto_approved", callId: "b", policyReason: 'allow "npm test"' }),
      call(5, "c", "ls"),
      rune(6, "tool.started", { _tag: "auto_approved", callId: "c", policyReason: "it only reads the work tree" }),
      call(7, "d", "git push"),
      rune(8, "tool.denied", { _tag: "denied", callId: "d", approver: "ann", reason: "not today" }),
      call(9, "e", "make"),
      rune(10, "tool.approved", {
        _tag: "approved",
        callId: "e",
        approver: "rules",
        policyReason: 'allow "make" (a:4)'
      })
    ]
    expect(past(runes, 0).map(({ text }) => text)).toEqual([
      "Bash: npm test: approved by ann, for this run: npm test",
      'Bash: npm test: ran unasked: allow "npm test"',
      "Bash: git push: denied by ann: not today",
      'Bash: make: allowed by a rule that was added: allow "make" (a:4)'
    ])
    expect(past(runes, 9).map(({ eventId }) => eventId)).toEqual([10])
  })
})
