/** The table of invariants, and that a test breaks each of them on purpose. */
import { describe, expect, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { invariants, severityOf } from "../../../src/domain/Invariants.ts"

const listed = {
  FATAL: ["INV-EVENTID-MONOTONIC", "INV-RUNE-IMMUTABLE", "INV-HASH-VALID"],
  ERROR: [
    "INV-TURN-SEQUENTIAL",
    "INV-TURN-TERMINAL",
    "INV-TURN-ORDER",
    "INV-TOOL-TERMINAL",
    "INV-TOOL-CALL-BEFORE-RESULT",
    "INV-TOOL-APPROVAL-BEFORE-EXEC",
    "INV-TOOL-SANDBOX",
    "INV-AGENT-SUPERVISED",
    "INV-RUN-FENCED",
    "INV-FLOOR-SINGLE",
    "INV-TASK-SINGLE",
    "INV-RECOVERY-BOUNDED",
    "INV-RESUME-NO-DUPLICATES",
    "INV-REPLAY-DETERMINISTIC",
    "INV-REPLAY-IDEMPOTENT"
  ],
  WARN: ["INV-AGENT-BUDGET", "INV-RESUME-NO-GAPS"]
} as const

const tests = join(import.meta.dirname, "..", "..")

/** All tests but these: a title begins with the ids that the test breaks. */
const titles = readdirSync(tests, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".test.ts") && path !== join("domain", "Invariants.test.ts"))
  .map((path) => readFileSync(join(tests, path), "utf8"))
  .join("\n")

describe("Invariants", () => {
  it("has one row for each id, with its severity", () => {
    for (const [severity, ids] of Object.entries(listed)) {
      expect(
        invariants
          .filter((row) => row.severity === severity)
          .map(({ id }) => id)
          .toSorted()
      ).toEqual([...ids].toSorted())
    }
    expect(new Set(invariants.map(({ id }) => id)).size).toBe(invariants.length)
  })

  it("knows no severity of a rule that is no invariant", () => {
    expect(severityOf("INV-HASH-VALID")).toBe("FATAL")
    expect(severityOf("size")).toBeUndefined()
  })

  for (const { id } of invariants) {
    it(`${id} is named by a test that breaks it`, () => {
      expect(new RegExp(`["\`](INV-[A-Z-]+, )?${id}[:,] `).test(titles)).toBe(true)
    })
  }
})
