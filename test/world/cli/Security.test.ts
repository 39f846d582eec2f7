/**
 * `agentd doctor --security` for a person and for a script: with a daemon and without one it says
 * the same of the same config; it is as wide as a terminal, starts nothing, and shows no value.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, realpathSync } from "node:fs"
import { PROGRAM } from "../../support/Program.ts"
import * as Sandbox from "../../support/Sandbox.ts"
import { held } from "../../support/toolbox.ts"

const SECRET = "value-that-nobody-may-see"

const config = {
  agents: {
    "an-agent-with-a-name-of-some-length": {
      backend: { type: "command", shell: "cat", passEnv: ["SHOP_TOKEN"], env: { EXTRA_SECRET: SECRET } },
      budget: { usd: 3 },
      approvals: { always: ["*"] }
    },
    keyless: { backend: { type: "model", provider: "openai", model: "m", keyEnv: "NOT_THERE" } }
  }
}

const box = Effect.tap(Sandbox.make("shop"), (made) =>
  Effect.sync(() => {
    made.environment["SHOP_TOKEN"] = SECRET
    made.configure(config)
  })
)

describe("doctor --security", () => {
  it.live("says what nothing holds in honest words, in 80 columns, without a daemon and without starting one", () =>
    Effect.gen(function* () {
      const made = yield* box
      const { code, stderr, stdout } = yield* made.cli("doctor", "--security")
      assert.strictEqual(code, 4, "one agent would not run")
      assert.match(stderr, /1 of 2 agents would not run/)
      assert.match(stdout, /not confined: this agent has your rights; the\s+log\s+of\s+its\s+actions\s+is\s+no\s+proof/)
      assert.match(stdout, /EXTRA_SECRET, SHOP_TOKEN/)
      assert.match(stdout, /they bind nothing/)
      assert.match(stdout, /there is no key for the API in the variable\s+NOT_THERE/)
      assert.deepStrictEqual(
        stdout.split("\n").filter((line) => line.length > 80),
        []
      )
      assert.notInclude(stdout + stderr, SECRET)
      assert.isFalse(existsSync(made.state), "nothing was made")
    })
  )

  it.live("names the caches that agents of a project share", () =>
    Effect.gen(function* () {
      const made = yield* box
      const cache = ["own", { path: "target", shared: true }]
      made.configure({ agents: { one: { backend: { type: "command", shell: "cat" }, worktree: { cache } } } })
      const { stdout } = yield* made.cli("doctor", "--security")
      assert.match(stdout, /it shares target with its project's agents: each\s+can\s+change\s+what\s+another/)
      assert.notInclude(stdout, "shares own")
    })
  )

  it.live("says what runs unasked in a sandbox, and where that setting has no effect", () =>
    Effect.gen(function* () {
      const made = yield* box
      const backend = { type: "command", shell: "cat" }
      const approvals = { inside: "run" }
      made.configure({
        agents: {
          held: { backend: { ...backend, sandbox: "required" }, approvals },
          loose: { backend: { ...backend, sandbox: "on" }, approvals },
          open: { backend: { ...backend, sandbox: "required", network: true }, approvals }
        }
      })
      const { stdout } = yield* made.cli("doctor", "--security", "--json")
      const all = JSON.parse(stdout) as ReadonlyArray<{
        readonly agent: string
        readonly approvals: { readonly inside: boolean }
      }>
      assert.deepStrictEqual(
        all.map(({ agent, approvals }) => [agent, approvals.inside]),
        [
          ["held", true],
          ["loose", false],
          ["open", false]
        ]
      )
      const text = (yield* made.cli("doctor", "--security")).stdout.replace(/\s+/g, " ")
      assert.include(text, "what stays in its sandbox runs unasked")
      assert.include(text, 'inside "run" has no effect: it needs "sandbox": "required" and no network')
    })
  )

  it.live("says the same of what the daemon runs, and a table of all agents comes first", () =>
    Effect.gen(function* () {
      const made = yield* box
      const alone = JSON.parse((yield* made.cli("doctor", "--security", "--json")).stdout)
      yield* made.up()
      const { stdout } = yield* made.cli("doctor", "--security", "--json")
      assert.deepStrictEqual(JSON.parse(stdout), alone)
      assert.notInclude(stdout, SECRET)
      assert.deepStrictEqual(Object.keys(alone[0]), [
        "project",
        "agent",
        "backend",
        "confined",
        "by",
        "note",
        "refused",
        "reads",
        "writes",
        "runs",
        "network",
        "provider",
        "keys",
        "environment",
        "control",
        "unheld",
        "approvals",
        "limits",
        "may"
      ])
      const [head, ...rows] = (yield* made.cli("doctor", "--security")).stdout.split("\n")
      assert.match(head ?? "", /^AGENT +HELD BY +NETWORK +CONTROL +KEYS$/)
      assert.match(rows[0] ?? "", /^shop\/an-agent-with-a-na… +nothing +host +yes +EXTRA_SECRET, SHOP_TO/)
    })
  )

  it.live.skipIf(held.length === 0)("names agentd's own files, where a confined agent is given its server", () =>
    Effect.gen(function* () {
      const made = yield* Sandbox.make("shop")
      const program = realpathSync(PROGRAM)
      const backend = { type: "command", shell: "cat", sandbox: "required" }
      made.configure({ agents: { speaks: { backend, may: ["message"] }, silent: { backend, may: [] } } })
      yield* made.up()
      const { stdout } = yield* made.cli("doctor", "--security", "--json")
      const reaching = (JSON.parse(stdout) as ReadonlyArray<{ agent: string; reads: ReadonlyArray<string> }>)
        .filter(({ reads }) => reads.some((one) => program.startsWith(`${one}/`)))
        .map(({ agent }) => agent)
      assert.deepStrictEqual(reaching, ["speaks"])
    })
  )
})
