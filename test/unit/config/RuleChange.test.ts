/** A changed rule of agentd.jsonc: named rule by rule, dangerous where agents may do more than before. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { consequencesOf } from "../../../src/config/ConfigChange.ts"
import * as ConfigFile from "../../../src/config/ConfigFile.ts"

const backend = { type: "command", argv: ["x"] }
const project = (approvals: object, top: ReadonlyArray<unknown> = []) =>
  Effect.runSync(
    ConfigFile.parse(
      JSON.stringify({ approvals: { rules: top }, agents: { a: { backend, approvals } } }),
      "/home/ada/demo/agentd.jsonc"
    )
  )
type Project = ReturnType<typeof project>
const shown = (before: Project | undefined, after: Project) =>
  consequencesOf(before, after).map(({ dangerous, text }) => `${dangerous ? "! " : ""}${text}`)

const test = { allow: "npm test" }
const push = { deny: "git push" }
const ask = { ask: { write: "docs/**" } }

describe("a changed rule", () => {
  for (const [what, before, after, expected] of [
    ["an added allow", [], [test], ['! X: + allow "npm test"']],
    ["a removed allow", [test], [], ['X: - allow "npm test"']],
    ["a widened allow", [test], [{ allow: "npm test **" }], ['! X: + allow "npm test **"', 'X: - allow "npm test"']],
    ["an added deny", [], [push], ['X: + deny "git push"']],
    ["a removed deny", [test, push], [test], ['! X: - deny "git push"']],
    [
      "a changed deny",
      [push],
      [{ deny: "git push --force" }],
      ['! X: - deny "git push"', 'X: + deny "git push --force"']
    ],
    ["a removed ask", [ask], [], ['! X: - ask {"write":"docs/**"}']],
    ["an ask that becomes allow", [{ ask: "make" }], [{ allow: "make" }], ['! X: - ask "make"', '! X: + allow "make"']],
    ["an ask that becomes deny", [{ ask: "make" }], [{ deny: "make" }], ['! X: - ask "make"', 'X: + deny "make"']],
    // the same words, but no longer a rule about a file
    [
      "a deny of a file that becomes one of a command",
      [{ deny: { write: "x" } }],
      [{ deny: "write x" }],
      ['! X: - deny {"write":"x"}', 'X: + deny "write x"']
    ],
    ["another order", [test, push], [push, test], ["X: the same rules, in another order or with other notes"]],
    ["another note", [test], [{ ...test, note: "n" }], ["X: the same rules, in another order or with other notes"]],
    ["nothing", [test, push], [test, push], []]
  ] as const) {
    it(what, () => {
      for (const [place, of] of [
        ["agents.a.approvals.rules", (rules: ReadonlyArray<unknown>) => project({ rules })],
        ["approvals.rules", (rules: ReadonlyArray<unknown>) => project({}, rules)]
      ] as const) {
        assert.deepStrictEqual(
          shown(of(before), of(after)),
          expected.map((text) => text.replace("X", place))
        )
      }
    })
  }

  it("inside: run is dangerous, and back is not", () => {
    assert.deepStrictEqual(shown(project({}), project({ inside: "run" })), [
      '! agents.a.approvals.inside: "ask" → "run"'
    ])
    assert.deepStrictEqual(shown(project({ inside: "run" }), project({})), ['agents.a.approvals.inside: "run" → "ask"'])
  })

  it("a new agent, and a new project, name all rules that come with them", () => {
    const [born, ...rest] = shown(undefined, project({ inside: "run", rules: [test, push] }, [{ allow: "make" }, ask]))
    assert.include(born, 'approvals auto, inside run, allow "npm test", deny "git push", may')
    assert.deepStrictEqual(rest, ['! approvals.rules: + allow "make"', 'approvals.rules: + ask {"write":"docs/**"}'])
    assert.lengthOf(shown(undefined, project({})), 1)
  })
})
