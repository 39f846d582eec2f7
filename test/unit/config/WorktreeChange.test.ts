/** A changed work tree in agentd.jsonc: dangerous where it reads files of the user or runs commands. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { consequencesOf } from "../../../src/config/ConfigChange.ts"
import * as ConfigFile from "../../../src/config/ConfigFile.ts"

const backend = { type: "command", argv: ["x"] }
const project = (worktree: unknown) =>
  Effect.runSync(
    ConfigFile.parse(JSON.stringify({ agents: { a: { backend, worktree } } }), "/home/ada/demo/agentd.jsonc")
  )
type Project = ReturnType<typeof project>
const shown = (before: Project | undefined, after: Project) =>
  consequencesOf(before, after).map(({ dangerous, text }) => `${dangerous ? "! " : ""}${text}`)

const W = "agents.a.worktree"

describe("a changed work tree", () => {
  for (const [what, before, after, expected] of [
    ["one that is added", false, true, [`${W}: false → true`]],
    ["one that is removed", true, false, [`! ${W}: true → false`]],
    ["the same, in another form", true, {}, []],
    ["base", true, { base: "main" }, [`${W}.base: nothing → "main"`]],
    ["ports", { ports: 1 }, { ports: 3 }, [`${W}.ports: 1 → 3`]],
    ["setup", true, { setup: "npm ci" }, [`! ${W}.setup: nothing → "npm ci"`]],
    ["setup of a new one", false, { setup: "npm ci" }, [`! ${W}.setup: nothing → "npm ci"`, `${W}: false → true`]],
    ["teardown", { teardown: "a" }, { teardown: "b" }, [`! ${W}.teardown: "a" → "b"`]],
    ["copy", { copy: [".env"] }, { copy: [".env", "*.pem"] }, [`! ${W}.copy: [".env"] → [".env","*.pem"]`]],
    ["link", true, { link: ["node_modules"] }, [`! ${W}.link: [] → ["node_modules"]`]],
    [
      "cache",
      { cache: ["target"] },
      { cache: [{ path: "target", shared: true }] },
      [`! ${W}.cache: ["target"] → [{"path":"target","shared":true}]`]
    ],
    ["timeout", true, { timeout: "1 hour" }, [`! ${W}.timeout: 10m → 1h`]]
  ] as const) {
    it(what, () => assert.deepStrictEqual(shown(project(before), project(after)), [...expected]))
  }

  it("a time is shown as a time, and stays harmless", () => {
    const of = (idleTimeout: string) =>
      Effect.runSync(
        ConfigFile.parse(JSON.stringify({ agents: { a: { backend, idleTimeout } } }), "/home/ada/demo/agentd.jsonc")
      )
    assert.deepStrictEqual(shown(of("90 seconds"), of("1 hour")), ["agents.a.idleTimeout: 1m 30s → 1h"])
  })

  it("a new agent's set-up is named", () => {
    const [first] = shown(undefined, project({ setup: "npm ci", copy: [".env"], ports: 2 }))
    assert.include(first, 'worktree.copy [".env"], worktree.setup "npm ci"')
    assert.notInclude(first, "ports")
  })
})

describe("a cache inside another one", () => {
  for (const [what, a, b, expected] of [
    [
      "of the same agent",
      ["target", "./target/debug"],
      [],
      /agents\.a\.worktree\.cache\[1\]: is inside the cache "target\/" of a/
    ],
    ["twice the same", ["x", { path: "x/", shared: true }], [], /agents\.a\.worktree\.cache\[0\]/],
    ["of two agents that share them", [{ path: "x/y", shared: true }], [{ path: "x", shared: true }], /of b/],
    ["of two agents, each its own", ["x/y"], ["x"], undefined],
    ["one shared by two", [{ path: "x", shared: true }], [{ path: "x/.", shared: true }], undefined],
    ["beside another with a longer name", ["x", "xy"], [], undefined]
  ] as const)
    it(what, () => {
      const agents = { a: { backend, worktree: { cache: a } }, b: { backend, worktree: { cache: b } } }
      const result = Effect.runSync(
        Effect.result(ConfigFile.parse(JSON.stringify({ agents }), "/home/ada/demo/agentd.jsonc"))
      )
      if (expected === undefined) assert.strictEqual(result._tag, "Success")
      else assert.match(result._tag === "Failure" ? result.failure.message : "", expected)
    })
})

describe("a path of a work tree that leads out of the project", () => {
  for (const path of ["/etc/passwd", "../x", "a/../../x", "~/.ssh", ".git/config", "a/.git", ".", ""]) {
    it(JSON.stringify(path), () => {
      for (const field of ["copy", "link", "cache"]) {
        const result = Effect.runSync(Effect.result(Effect.try(() => project({ [field]: [path] }))))
        assert.strictEqual(result._tag, "Failure")
        assert.include(
          String(result._tag === "Failure" ? (result.failure.cause ?? result.failure) : ""),
          `worktree.${field}`
        )
      }
    })
  }
})
