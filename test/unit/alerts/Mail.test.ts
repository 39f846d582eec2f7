/** Tests of the runes that are mailed, and of the mails. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { type Alert, alertOf } from "../../../src/alerts/AlertPolicy.ts"
import * as Mail from "../../../src/alerts/Mail.ts"
import type { Outcome } from "../../../src/runs/Outcome.ts"
import type { Payload, Rune } from "../../../src/core/event-log/Rune.ts"
import { step } from "../../../src/core/event-actor/StateMachine.ts"
import * as WorkerMachine from "../../../src/agents/machines/WorkerMachine.ts"

const rune = (rest: Partial<Rune>): Rune => ({
  eventId: 7,
  stream: "demo-00000000",
  at: 1_767_225_600_000,
  kind: "worker.moved",
  actor: "worker/builder",
  from: "Running",
  to: "Stopped",
  trigger: "SessionExited",
  cause: null,
  format: 2,
  seq: 1,
  moves: [],
  visibility: "public",
  payload: {},
  ...rest
})

/** The payload that the worker itself writes when a run ends so, as its `row`th error in a row, `all`th in all. */
const exited = (outcome: Outcome, row = 5, all = 5): Payload => {
  const data = { ...WorkerMachine.initial(), runId: "r5", consecutiveErrors: row - 1, totalErrors: all - 1 }
  const moved = step(WorkerMachine.Worker, "Running", data, { _tag: "SessionExited", runId: "r5", outcome })
  assert.strictEqual(moved._tag, "Moved")
  return moved._tag === "Moved" ? moved.payload : {}
}
const error: Outcome = { _tag: "Error", detail: "exit code 1: no such file" }
const fatal: Outcome = { _tag: "Fatal", detail: "not logged in", remedy: "Log in." }

describe("AlertPolicy", () => {
  for (const [what, given, headline] of [
    ["errors in a row", { payload: exited(error) }, "builder has failed: 5 errors in a row"],
    ["errors in all", { payload: exited(error, 1, 20) }, "builder has failed: 20 errors in all"],
    [
      "the 20th that is a timeout",
      { payload: exited({ _tag: "Timeout" }, 2, 20) },
      "builder has failed: 20 errors in all"
    ],
    ["a run that cannot succeed", { payload: exited(fatal) }, "builder has failed: not logged in"],
    [
      "an event of a newer agentd",
      { payload: { event: { _tag: "Later" }, fatal: { message: "no git\nrepository", remedy: null } } },
      "builder has failed: no git repository"
    ],
    [
      "a violated invariant",
      { kind: "invariant.violated", payload: { rule: "INV-RUN-FENCED", severity: "ERROR", message: "m" } },
      "INV-RUN-FENCED violated"
    ],
    [
      "a plan",
      { kind: "plan.stopped", actor: "plan/p1", payload: { event: { reason: "blocked" } } },
      "goal p1 has failed: blocked"
    ],
    [
      "a suspension",
      {
        kind: "session.suspended",
        actor: "conversation/demo",
        payload: { event: { _tag: "budget_exhausted", resource: "usd", spent: 2, limit: 1 } }
      },
      "demo needs you"
    ]
  ] as const) {
    it(`${what} → ${headline}`, () => assert.strictEqual(alertOf(rune(given as Partial<Rune>))?.headline, headline))
  }

  it("says what to do in words that hold wherever they are typed", () => {
    const payload = { event: { _tag: "another" }, question: "Which?" }
    const remedy = (kind: string, actor: string) => alertOf(rune({ kind, actor, stream: "shop-1", payload }))?.remedy
    assert.match(remedy("session.suspended", "conversation/shop-1") ?? "", /agentd project resume shop-1$/)
    assert.match(remedy("agent.asked", "agent/builder") ?? "", /agentd send shop-1\/builder/)
    assert.match(remedy("plan.blocked", "plan/g1") ?? "", /agentd goal retry shop-1\/g1/)
  })

  for (const [what, given] of [
    ["an operator's stop", { trigger: "OperatorStop" }],
    ["a spent budget: its agent's stop is told", { kind: "agent.budget_exhausted", actor: "agent/builder" }],
    ["a move to another state", { to: "CoolingDown" }],
    ["a warning", { kind: "invariant.violated", payload: { rule: "INV-AGENT-BUDGET", severity: "WARN" } }],
    [
      "a goal that a person cancels",
      { kind: "plan.stopped", actor: "plan/g1", payload: { event: { _tag: "user_cancel", by: "ada", reason: "no" } } }
    ],
    ["another kind", { kind: "run.started" }]
  ] as const) {
    it(`${what} → nothing`, () => assert.isUndefined(alertOf(rune(given))))
  }

  it("a blocked plan → with the commands that let it go on, from wherever they are typed", () => {
    const event = { _tag: "all_runnable_blocked", reason: "nobody is there" }
    const alert = alertOf(rune({ kind: "plan.blocked", stream: "shop-1", actor: "plan/g1", payload: { event } }))
    assert.match(alert!.remedy!, /agentd goal show shop-1\/g1\n.*agentd goal retry shop-1\/g1/)
  })

  it("a text without end fits a rune", () => {
    const long = alertOf(rune({ payload: exited({ _tag: "Error", detail: "x".repeat(1e6) }) }))
    assert.isBelow(JSON.stringify(long).length, 8000)
  })
})

const told = (alert: Partial<Alert> = {}, rest: Partial<Mail.Told> = {}): Mail.Told => ({
  alert: { ...alertOf(rune({ payload: exited(error) }))!, ...alert },
  project: "demo",
  why: [{ at: 1_767_225_590_000, text: "run r5 ended with exit code 1" }],
  output: ["\u001b[31mError:\u001b[0m no such file"],
  ...rest
})
const letter = (...all: ReadonlyArray<Mail.Told>): Mail.Letter => ({
  told: all,
  more: 0,
  host: "lab",
  redact: (text) => text
})

describe("Mail", () => {
  it("tells who, when, why, what led there, the last lines and how to start again", () => {
    assert.deepStrictEqual(Mail.render(letter(told())), {
      subject: "[agentd] builder has failed: 5 errors in a row",
      text: `builder has failed: 5 errors in a row

Who:     agent demo/builder
When:    2026-01-01 00:00:00 UTC
Errors:  5 in a row, 5 in all
Run:     r5
Rune:    7

Why:
  5 errors in a row; the last: exit code 1: no such file

What led there:
  2025-12-31 23:59:50 UTC  run r5 ended with exit code 1

Its last lines:
  | Error: no such file

What to do:
  Fix what the last error names, then start the agent again.

Start it again:
  agentd start demo/builder

-- 
agentd on lab
`
    })
  })

  it("says the remedy where there is one", () => {
    assert.include(Mail.render(letter(told({ remedy: "Log in." }))).text, "What to do:\n  Log in.\n")
  })

  it("a digest lists all, tells the first ten, and counts what is not named", () => {
    const all = Array.from({ length: 12 }, (_, n) =>
      told({ name: `a${n}`, headline: `a${n} has failed: 5 errors in a row` })
    )
    const { subject, text } = Mail.render({ ...letter(...all), more: 3 })
    assert.isTrue(subject.startsWith("[agentd] 15 alerts: a0 has failed, a1 has failed"))
    assert.isAtMost(subject.length, 78)
    assert.include(text, "demo: a11 has failed")
    assert.include(text, "and 3 more")
    assert.strictEqual(text.split("Start it again").length - 1, 10)
  })

  it("takes known secrets out of subject and text", () => {
    const secret = told({ headline: "builder has failed: hunter22", reason: "hunter22" }, { output: ["hunter22"] })
    const mail = Mail.render({ ...letter(secret), redact: (text) => text.replaceAll("hunter22", "[redacted]") })
    assert.notInclude(JSON.stringify(mail), "hunter22")
  })

  it.prop(
    "is bounded and plain for any text",
    [Schema.String, Schema.String, Schema.Array(Schema.String)],
    ([a, b, lines]) => {
      const { subject, text } = Mail.render(
        letter(told({ headline: a, name: b, reason: b }, { project: a, output: lines }))
      )
      // oxlint-disable-next-line no-control-regex
      assert.notMatch(subject, /[\u0000-\u001f\u007f]/)
      assert.isAtMost(subject.length, 78)
      // oxlint-disable-next-line no-control-regex
      assert.notMatch(text, /[\u0000-\u0008\u000b-\u001f\u007f\u202e]/)
    }
  )

  it("a flood of output has an end", () => {
    const flood = told(
      {},
      {
        output: Array.from({ length: 1e4 }, () => "x".repeat(1e4)),
        why: Array.from({ length: 1e4 }, () => ({ at: 0, text: "y" }))
      }
    )
    assert.isBelow(Mail.render(letter(flood)).text.length, 50_000)
  })
})
