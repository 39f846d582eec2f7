/** Texts of the mails that a mail section sends. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { Alert } from "../../../src/alerts/Alert.ts"
import * as Mail from "../../../src/alerts/Mail.ts"

const stopped: Alert = {
  kind: "agent.stopped",
  key: "agent.stopped:demo-00000000/worker/builder",
  stream: "demo-00000000",
  actor: "worker/builder",
  name: "builder",
  headline: "builder has failed: 5 errors in a row",
  reason: "5 errors in a row; the last: exit code 1: no such file",
  remedy: "Fix what the last error names, then start the agent again.",
  errors: { row: 5, all: 5 },
  runId: "r5",
  cause: 7,
  seq: 1,
  at: 1_767_225_600_000,
  count: 1
}

const told = (alert: Partial<Alert> = {}, rest: Partial<Mail.Told> = {}): Mail.Told => ({
  alert: { ...stopped, ...alert },
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
Errors:  5 in a row, 5 in total
Run:     r5
Rune:    7

Why:
  5 errors in a row; the last: exit code 1: no such file

What happened before:
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
