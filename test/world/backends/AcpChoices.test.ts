import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as path from "node:path"
import * as AcpChoices from "../../../src/runs/acp/AcpChoices.ts"
import * as Messages from "../../../src/runs/acp/AcpMessages.ts"

/** Answers of the newest releases to `session/new` in November 2026, without their models. */
const recorded: { readonly [agent: string]: unknown } = JSON.parse(
  fs.readFileSync(path.join(import.meta.dirname, "../../fixtures/acp/modes.json"), "utf8")
)
const choicesOf = (agent: string) => AcpChoices.of(Messages.read(Messages.SessionAnswer, recorded[agent])!)

describe("the modes of real agents", () => {
  const begins: ReadonlyArray<
    readonly [agent: string, mode: string, asks: boolean | undefined, by: AcpChoices.Leave["by"]]
  > = [
    ["claude", "auto", false, { mode: "default" }],
    ["codex", "agent", false, { mode: "read-only" }],
    ["qwen", "auto", false, { mode: "default" }],
    ["gemini", "default", true, undefined],
    ["droid", "normal", true, undefined],
    ["copilot", "https://agentclientprotocol.com/protocol/session-modes#agent", true, undefined],
    ["cline", "act", true, undefined],
    ["opencode", "build", undefined, undefined],
    ["kilo", "code", undefined, undefined]
  ]
  for (const [agent, mode, asks, by] of begins) {
    it(`${agent} begins in ${mode}: what is set for a person to be asked`, () =>
      assert.deepStrictEqual(AcpChoices.leaveOf(choicesOf(agent)), { mode, asks, ...(by === undefined ? {} : { by }) }))
  }

  it("each mode in which calls run unasked is told as such, and no other", () => {
    const unasked = Object.keys(recorded).flatMap((agent) => {
      const choices = choicesOf(agent)
      const modes = AcpChoices.offersOf(choices).modes ?? []
      return modes.flatMap(({ id }) =>
        AcpChoices.offersOf(AcpChoices.inMode(choices, id)).mode?.isUnasked === true
          ? [`${agent} ${id.split("#").at(-1)}`]
          : []
      )
    })
    assert.deepStrictEqual(unasked.toSorted(), [
      "claude acceptEdits",
      "claude auto",
      "claude bypassPermissions",
      "codex agent",
      "codex agent-full-access",
      "codex workspace-write",
      "copilot autopilot",
      "droid auto-high",
      "droid auto-low",
      "droid auto-medium",
      "gemini autoEdit",
      "gemini yolo",
      "qwen auto",
      "qwen auto-edit",
      "qwen yolo"
    ])
  })

  it("what is not known of a session is not said", () => {
    const warning = (agent: string, mode?: string) => {
      const choices = choicesOf(agent)
      const now = mode === undefined ? choices : AcpChoices.inMode(choices, mode)
      return AcpChoices.unasked({ name: agent, authMethods: [] }, now, { approvals: "auto" })
    }
    assert.strictEqual(
      warning("opencode"),
      "agentd does not know whether opencode asks for approval (its mode is build): calls that it does not ask about run without approval"
    )
    assert.strictEqual(warning("gemini", "yolo"), "gemini runs calls without approval (its mode is yolo)")
    assert.isUndefined(warning("gemini"))
  })

  it("a switch that lets all calls run is turned off, where a person has left it on", () => {
    const on = JSON.parse(JSON.stringify(recorded["copilot"]).replace('"currentValue":"off"', '"currentValue":"on"'))
    const { asks, by } = AcpChoices.leaveOf(AcpChoices.of(Messages.read(Messages.SessionAnswer, on)!))
    assert.deepStrictEqual([asks, by], [false, { letsAll: { id: "allow_all", on: true, off: "off" } }])
  })
})
