/** Verbs by their old names do what they did, and say the new one; a mode may stand anywhere behind its verb. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { declared } from "../../../src/cli/parse/DeclaredVerbs.ts"
import { parse } from "../../../src/cli/parse/QuickArgs.ts"
import { asOneWord, present } from "../../../src/cli/parse/Renamed.ts"
import { inProcess } from "./Child.ts"

const OLD: ReadonlyArray<readonly [old: string, now: string, rest: string]> = [
  ["plates", "ps --plates", "--all"],
  ["watch", "ps --watch", "--bell"],
  ["logs", "log --text", "-f builder"],
  ["history", "log --messages", "builder -n 3"],
  ["runs", "log --runs", "web/*"],
  ["channel log", "log --channel", "reviews"],
  ["alerts", "alert ls", "--failed"],
  ["notify ls", "alert channels", "--json"],
  ["notify test", "alert test", "phone"],
  ["pause", "project pause", "--complete web"],
  ["resume", "project resume", "web"],
  ["close", "project close", "web --yes"],
  ["archive", "project archive", "web -y"],
  ["conversation ls", "project ls --conversations", "--all"],
  ["conversation show", "project show", "web"],
  ["conversation new", "project new", "--json"],
  ["tree", "status --tree", "builder"],
  ["goal schema", "schema goal", "--json"],
  ["conversation", "project", "--help"]
]

const words = (line: string): ReadonlyArray<string> => line.split(" ")

describe("an old name", () => {
  it.each(OLD)("%s is %s", (old, now, rest) => {
    const { args, note = "" } = present(words(`${old} ${rest}`))
    assert.deepStrictEqual(args, words(`${now} ${rest}`))
    assert.include(note, `"agentd ${old}" is now "agentd ${now}"`)
  })

  it("is one behind flags of the whole program, too", () => {
    assert.deepStrictEqual(present(words("--json --state /tmp/w logs builder")).args, [
      ...words("--json --state /tmp/w"),
      ...words("log --text builder")
    ])
    assert.deepStrictEqual(present(words("channel --json log reviews")).args, words("log --channel --json reviews"))
  })

  it("is none as an argument", () => {
    for (const line of [
      "conversation rename a b",
      "notify test",
      "send builder pause",
      "why logs",
      "channel pause reviews",
      "run -- watch",
      "goal watch g1"
    ])
      assert.deepStrictEqual(present(words(line)), { args: words(line), note: undefined })
  })

  it.live("names the new one on standard error, and fails as that does", () =>
    Effect.gen(function* () {
      const now = yield* inProcess(["--state", "/tmp/agentd-none", "status", "--tree"])
      const old = yield* inProcess(["--state", "/tmp/agentd-none", "tree"])
      assert.deepStrictEqual({ ...old, err: old.err.split("\n").slice(1).join("\n") }, now)
      assert.match(old.err, /^agentd: "agentd [t]ree" is now "agentd status --tree"/)
      assert.strictEqual(old.code, 3)
      const plan = yield* inProcess(["goal", "schema"])
      assert.include(plan.out, "A plan of agentd")
      assert.strictEqual(plan.code, 0)
    })
  )
})

it("is answered by the quick entry only where it is declared", () => {
  for (const line of ["logs builder", "history", "channel log reviews", "log --text -n 5", "log --messages builder"])
    assert.isUndefined(parse(present(words(line)).args, declared), line)
  for (const line of ["runs builder", "plates", "tree", "log builder"])
    assert.isDefined(parse(present(words(line)).args, declared), line)
})

describe("a mode", () => {
  it("may stand anywhere behind its verb", () => {
    assert.deepStrictEqual(present(words("log builder --runs -n 3")).args, words("log --runs builder -n 3"))
    assert.deepStrictEqual(present(words("log -n 3 --channel=reviews")).args, words("log --channel -n 3 reviews"))
    assert.strictEqual(parse(present(words("log builder --runs")).args, declared)?.verb.path.join(" "), "log --runs")
    assert.deepStrictEqual(asOneWord(words("--json log --text builder")), ["--json", "log --text", "builder"])
    assert.deepStrictEqual(present(words("send builder -- log --text")).args, words("send builder -- log --text"))
  })

  it.live("has flags of its own, and no other mode beside it", () =>
    Effect.gen(function* () {
      const help = yield* inProcess(["log", "--text", "--help"])
      assert.include(help.out, "agentd log --text [flags]")
      assert.include(help.out, "--grep")
      const both = yield* inProcess(["log", "--text", "--runs"])
      assert.strictEqual(both.code, 2)
      assert.include(both.err, "Unrecognized flag: --runs")
    })
  )
})
