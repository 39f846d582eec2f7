/** Rules in config files: each that cannot be kept is refused in its place, with what is wrong and what helps. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as ConfigFile from "../../../src/config/ConfigFile.ts"
import { entryOf, ruleOf } from "../../../src/config/RuleConfig.ts"

const backend = { type: "command", argv: ["x"] }
const project = (top: ReadonlyArray<unknown>, own: ReadonlyArray<unknown> = []) =>
  JSON.stringify({ approvals: { rules: top }, agents: { a: { backend, approvals: { rules: own } } } })
const ofProject = (text: string) => ConfigFile.parse(text, "/home/ada/demo/agentd.jsonc")
const ofUser = (approvals: object) =>
  ConfigFile.parseUser(JSON.stringify({ approvals }), "/home/ada/.config/agentd/config.jsonc")

describe("a rule of agentd.jsonc", () => {
  for (const [what, rule, field, says] of [
    ["has no effect", { note: "x" }, "", "has no effect: add one of allow, ask and deny"],
    ["has two effects", { allow: "ls", deny: "ls" }, "", "has 2 effects, deny and allow: keep one of them"],
    ["has an effect that agentd does not know", { alow: "ls" }, ".alow", 'Did you mean "allow"?'],
    ["is text", "npm test", "", "must be an object, but is text"],
    ["names nothing", { ask: "" }, ".ask", "must not be empty"],
    ["names no kind of call", { ask: {} }, ".ask", "names no call: write a command as text, or one of write, read"],
    ["names two kinds", { ask: { read: "a", write: "a" } }, ".ask", "names write and read: make a rule of each"],
    ["names a kind that agentd does not know", { ask: { wirte: "a" } }, ".ask.wirte", 'Did you mean "write"?'],
    ["has arguments of no tool", { ask: { url: "a", argument: { a: "*" } } }, ".ask.argument", "is for a tool"],
    ["leaves the work tree", { allow: { write: "../x" } }, ".allow", "it reaches out of the work tree"],
    ["leaves it also to deny", { deny: { read: "/etc/**" } }, ".deny", "it reaches out of the work tree"],
    ["has a star before the subcommand", { allow: "git * status" }, ".allow", "no star can stand for them"],
    ["has a star for every command of git", { allow: "git **" }, ".allow", "it covers every git command"],
    ["has a star for a program without an entry", { allow: "mytool **" }, ".allow", "agentd does not know"],
    ["has a star for a program that runs its words", { allow: "node **" }, ".allow", "node runs, sends or removes"],
    ["is two commands", { allow: "npm test && ls" }, ".allow", "it is not one simple command"],
    ["would never match", { allow: "timeout 5 npm test" }, ".allow", "it would never match"],
    ["is for every tool", { ask: { tool: "*" } }, ".ask", "it names every tool"],
    ["begins with a star", { allow: "* test" }, ".allow", "is no rule that can be kept: it "]
  ] as const) {
    it.effect(`${what}: ${says}`, () =>
      Effect.gen(function* () {
        for (const [text, place] of [
          [project([rule]), "approvals.rules[0]"],
          [project([], [{ ask: "git push" }, rule]), "agents.a.approvals.rules[1]"]
        ] as const) {
          const error = yield* Effect.flip(ofProject(text))
          assert.strictEqual(error.problems[0]?.field, `${place}${field}`)
          assert.include(error.message, says)
          assert.notStrictEqual(error.problems[0]?.remedy, "")
        }
      })
    )
  }

  it.effect("that a stronger one takes the use from is refused, with the line and the one that wins", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        ofProject(`{
  "approvals": { "rules": [
    { "ask": "git push" },
    { "deny": { "write": "build/**" } }
  ] },
  "agents": { "a": { "backend": { "type": "command", "argv": ["x"] }, "approvals": { "rules": [
    { "allow": "git push" },
    { "ask": { "write": "build/**" } },
    { "deny": "npm publish" },
    { "allow": "npm publish" }
  ] } } }
}`)
      )
      assert.deepStrictEqual(
        error.problems.map(({ line, message }) => `${line} ${message}`),
        [
          '7 has no use: approvals.rules[0] says ask "git push", and ask goes before allow. Remove one of the two',
          '8 has no use: approvals.rules[1] says deny "write build/**", and deny goes before ask. Remove one of the two',
          '10 has no use: agents.a.approvals.rules[2] says deny "npm publish", and deny goes before allow. Remove one of the two'
        ]
      )
    })
  )

  it.effect("may deny for one agent what another one may, and say the same twice", () =>
    ofProject(project([{ allow: "npm test" }, { allow: "npm test" }], [{ deny: "npm test" }]))
  )

  it.effect("is kept as it is written", () =>
    Effect.gen(function* () {
      const rules = [
        { allow: "npm test **", note: "tests" },
        { ask: "git push" },
        { deny: { read: "fixtures/private/**" } },
        { allow: { write: "build/**" } },
        { allow: { url: "https://docs.example/*" } },
        { allow: { tool: "mcp__shop__search", argument: { limit: "*" } } }
      ]
      const { agents, approvals } = yield* ofProject(project(rules, rules))
      assert.deepStrictEqual([approvals.rules, agents["a"]!.approvals.rules], [rules, rules])
      for (const { note: _, ...rule } of approvals.rules) {
        const { effect, subject } = ruleOf(rule)
        assert.deepStrictEqual(entryOf(effect, subject), rule)
      }
    })
  )

  it.effect("more than a thousand are refused", () =>
    Effect.map(
      Effect.flip(ofProject(project(Array.from({ length: 1001 }, (_, n) => ({ allow: `make x${n}` }))))),
      (error) => assert.include(error.message, "approvals.rules: must contain at most 1000 rules")
    )
  )
})

describe("rules of the user's own config", () => {
  const rules = [{ allow: "npm test" }]
  for (const [what, approvals, says] of [
    [
      "a scope that agentd does not know",
      { everywhere: rules },
      "approvals.everywhere: is not a field that agentd knows"
    ],
    ["an agent at the top", { agents: { a: { rules } } }, "approvals.agents: is not a field"],
    [
      "a project by its name",
      { projects: { demo: { rules } } },
      "approvals.projects.demo: is not a name that is allowed"
    ],
    ["a folder with a slash at its end", { projects: { "/demo/": { rules } } }, "is not a name that is allowed here"],
    [
      "a folder that is not spelled out",
      { projects: { "/a/../demo": { rules } } },
      "is not a name that is allowed here"
    ],
    [
      "a rule without use",
      { rules: [{ deny: "npm test" }], projects: { "/demo": { agents: { a: { rules } } } } },
      'approvals.projects."/demo".agents.a.rules[0]: has no use: approvals.rules[0] says deny "npm test"'
    ],
    [
      "a rule that a rule for the project overrules",
      { projects: { "/demo": { rules: [{ ask: "npm test" }], agents: { a: { rules } } } } },
      'has no use: approvals.projects."/demo".rules[0] says ask "npm test"'
    ]
  ] as const) {
    it.effect(`${what} is refused: ${says}`, () =>
      Effect.map(Effect.flip(ofUser(approvals)), (error) => assert.include(error.message, says))
    )
  }
})
