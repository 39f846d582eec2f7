/** The rules in force for an agent: of both files, each with its line, and the tools named in always and never. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { ruleWords } from "../../../src/approvals/Rule.ts"
import * as ConfigFile from "../../../src/config/ConfigFile.ts"
import { remove } from "../../../src/config/JsoncEdit.ts"
import { ofProject, ofUser, rulesOf } from "../../../src/config/RulesInForce.ts"

const PROJECT = `{
  // for all agents
  "approvals": { "rules": [
    { "deny": "git push --force" } // never
  ] },
  "agents": {
    "a": {
      "backend": { "type": "command", "argv": ["x"] },
      "approvals": {
        "always": ["Write"],
        "never": [
          "Read",
          "mcp__shop__*"
        ],
        "rules": [
          { "allow": "npm test **", "note": "fast" },

          { "allow": { "write": "build/**" } }
        ]
      }
    },
    "b": { "backend": { "type": "command", "argv": ["x"] }, "approvals": { "rules": [{ "ask": "git push" }] } }
  }
}
`
const USER = `{ "approvals": {
  "rules": [{ "allow": "git log **" }],
  "projects": {
    "/home/ada/demo": {
      "rules": [{ "allow": { "url": "https://docs.example/*" } }],
      "agents": { "a": { "rules": [
        { "allow": { "tool": "mcp__shop__search", "argument": { "limit": "*" } } }
      ] } }
    },
    "/home/ada/other": { "rules": [{ "deny": "make" }] }
  }
} }
`

const kept = Effect.gen(function* () {
  const config = yield* ConfigFile.parse(PROJECT, "/home/ada/demo/agentd.jsonc")
  const user = yield* ConfigFile.parseUser(USER, "/home/ada/.config/agentd/config.jsonc")
  return {
    project: ofProject({ config, text: PROJECT }),
    user: ofUser({ config: user, text: USER }, "/home/ada/.config/agentd/config.jsonc")
  }
})

describe("rules in force", () => {
  for (const [agent, expected] of [
    [
      "a",
      [
        'project deny "git push --force" (agentd.jsonc:4)',
        'agent allow "npm test **" (agentd.jsonc:16)',
        'agent allow "write build/**" (agentd.jsonc:18)',
        'agent ask "tool Write" (agentd.jsonc:10)',
        'agent allow "tool Read" (agentd.jsonc:12)',
        'agent allow "tool mcp__shop__*" (agentd.jsonc:13)',
        'user allow "git log **" (config.jsonc:2)',
        'user project allow "url https://docs.example/*" (config.jsonc:5)',
        'user agent allow "tool mcp__shop__search limit=*" (config.jsonc:7)'
      ]
    ],
    [
      "b",
      [
        'project deny "git push --force" (agentd.jsonc:4)',
        'agent ask "git push" (agentd.jsonc:22)',
        'user allow "git log **" (config.jsonc:2)',
        'user project allow "url https://docs.example/*" (config.jsonc:5)'
      ]
    ],
    // a sub-agent that the file does not have
    [
      "helper",
      [
        'project deny "git push --force" (agentd.jsonc:4)',
        'user allow "git log **" (config.jsonc:2)',
        'user project allow "url https://docs.example/*" (config.jsonc:5)'
      ]
    ]
  ] as const) {
    it.effect(`for ${agent}`, () =>
      Effect.map(kept, ({ project, user }) =>
        assert.deepStrictEqual(
          rulesOf({ agent, root: "/home/ada/demo" }, [...project, ...user]).map(
            (rule) => `${rule.place.scope} ${ruleWords(rule)}`
          ),
          [...expected]
        )
      )
    )
  }

  it.effect("each is removed by its path, and no other goes with it", () =>
    Effect.gen(function* () {
      const { project, user } = yield* kept
      const words = (of: typeof project) =>
        of.map(({ rule }) => `${rule.place.scope} ${rule.effect} ${JSON.stringify(rule.subject)}`)
      for (const [index, { path }] of project.entries()) {
        const text = remove(PROJECT, path)!
        const config = yield* ConfigFile.parse(text, "/home/ada/demo/agentd.jsonc")
        assert.deepStrictEqual(words(ofProject({ config, text })), words(project.toSpliced(index, 1)))
      }
      for (const [index, { path }] of user.entries()) {
        const text = remove(USER, path)!
        const config = yield* ConfigFile.parseUser(text, "/c.jsonc")
        assert.deepStrictEqual(words(ofUser({ config, text }, "/c.jsonc")), words(user.toSpliced(index, 1)))
      }
    })
  )
})
