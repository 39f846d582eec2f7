/** A conversation whose stream is damaged: set apart by itself, named first, closed at once; every other goes on. */
import { assert, describe, it } from "@effect/vitest"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { force } from "../event-log/Disk.ts"
import * as Sandbox from "../../support/Sandbox.ts"
import { long, sample } from "../../support/Long.ts"

/** A run that lasts; a second agent and a channel, which write to the stream too. */
const config = {
  agents: {
    a: { backend: { type: "command", shell: "echo here; sleep 1000" } },
    b: { backend: { type: "command", shell: "cat" } }
  },
  channels: { talk: { agents: ["a", "b"] } }
}

/** Two projects with a run each. */
const world = Effect.gen(function* () {
  const box = yield* Sandbox.make()
  box.configure(config)
  yield* box.up()
  const other = join(box.folder, "other")
  mkdirSync(other)
  writeFileSync(join(other, "agentd.jsonc"), JSON.stringify(config))
  assert.strictEqual((yield* box.cliIn(other, "start")).code, 0)
  for (const cwd of [box.project, other]) assert.strictEqual((yield* box.cliIn(cwd, "send", "a", "work")).code, 0)
  yield* box.until(
    "both run",
    box.rows,
    (rows) => rows.filter(({ agent, state }) => agent === "a" && state === "Running").length === 2
  )
  return { box, other }
})

/** A person sees and can do the same with it, however the stream is damaged. */
const apart = Effect.fnUntraced(function* ({ box, other }: Effect.Success<typeof world>) {
  const rows = yield* box.until(
    "the other lives, and nothing of the damaged one",
    box.rows,
    (rows) => rows.some(({ agent, state }) => agent === "a" && state === "Running") && rows.length === 2
  )
  assert.deepStrictEqual([...new Set(rows.map(({ project }) => project))], ["other"])
  yield* box.until("one run is left", box.processes, (pids) => pids.length > 0 && pids.length < 4)
  const waiting = JSON.parse((yield* box.cli("--json", "waiting")).stdout)
  assert.strictEqual(waiting.rows[0].kind, "damage")
  assert.match((yield* box.cli("ps")).stdout.split("\n")[2]!, /set apart.*its log is damaged/)
  const alerts = yield* box.until("a person is alerted", box.runes("alert.queued"), (all) => all.length > 0)
  assert.match(JSON.stringify(alerts), /shop-[^"]* is damaged/)
  for (const args of [["send", "a", "more"], ["start"], ["pause"]]) {
    const refused = yield* box.cli(...args)
    assert.notStrictEqual(refused.code, 0, args.join(" "))
    assert.match(refused.stderr, /damaged[^]*agentd .*close/, args.join(" "))
  }
  assert.strictEqual((yield* box.cliIn(other, "send", "b", "still here")).code, 0)
  const closed = yield* box.cli("project", "close", "--yes")
  assert.strictEqual(closed.code, 0, closed.stderr)
  const begun = yield* box.cli("project", "new")
  assert.strictEqual(begun.code, 0, begun.stderr)
  assert.strictEqual((yield* box.cli("send", "a", "anew")).code, 0)
  yield* box.untilAgent("a", "works anew", ({ project, state }) => project === "shop" && state === "Running")
  yield* box.terminate
  yield* box.up()
  yield* box.untilAgent("a", "works after a start", ({ project, state }) => project === "shop" && state === "Running")
  const now = JSON.parse((yield* box.cli("--json", "waiting")).stdout)
  assert.deepStrictEqual(
    now.rows.filter(({ kind }: { readonly kind: string }) => kind === "damage"),
    []
  )
})

const damaged: ReadonlyArray<readonly [what: string, sql: string]> = [
  ["a header that folds all the same", "UPDATE runes SET at = at + 1 WHERE"],
  ["a payload that cannot be read", "UPDATE runes SET payload = '{' WHERE"]
]

describe("a conversation whose stream is damaged", () => {
  for (const [what, sql] of sample(damaged, damaged.slice(0, 1))) {
    it.live(`${what}: is set apart at a start`, () =>
      Effect.gen(function* () {
        const { box, other } = yield* world
        yield* box.kill9
        force(join(box.state, "runes.db"), `${sql} kind = 'worker.started' AND stream LIKE 'shop-%'`)
        yield* box.up()
        yield* apart({ box, other })
      })
    )
  }

  it.live("is mended by a repair, and goes on from its last good rune", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure(config)
      yield* box.up()
      assert.strictEqual((yield* box.cli("send", "b", "kept")).code, 0)
      yield* box.until("it answers", box.runes("turn.completed"), (turns) => turns.length === 1)
      assert.strictEqual((yield* box.cli("send", "b", "a message to lose")).code, 0)
      yield* box.until("it answers again", box.runes("turn.completed"), (turns) => turns.length === 2)
      const refused = yield* box.cli("repair", "--yes")
      assert.strictEqual(refused.code, 75, refused.stderr)
      assert.match(refused.stderr, /agentd .*stop/)
      yield* box.terminate
      const store = join(box.state, "runes.db")
      force(store, `UPDATE runes SET at = at + 1 WHERE kind = 'inbox.received' AND payload LIKE '%a message to lose%'`)
      assert.strictEqual((yield* box.cli("verify")).code, 4)
      const dry = yield* box.cli("repair", "--dry-run")
      assert.match(dry.stdout, /continues after its rune \d+.*1 message \(“a message to lose”\), 1 turn/)
      assert.strictEqual((yield* box.cli("verify")).code, 4)
      assert.strictEqual((yield* box.cli("repair")).code, 2)
      const done = yield* box.cli("repair", "--yes")
      assert.strictEqual(done.code, 0, done.stderr)
      assert.match(done.stdout, /The store was repaired\. The old store is in .*damaged/)
      const verified = yield* box.cli("verify")
      assert.strictEqual(verified.code, 0, verified.stdout)
      yield* box.up()
      yield* box.untilAgent("b", "is there", ({ state }) => state === "BuildingPrompt")
      assert.strictEqual((yield* box.cli("send", "b", "goes on")).code, 0)
      yield* box.until("it answers", box.runes("turn.completed"), (turns) => turns.length === 2)
      assert.strictEqual((yield* box.cli("verify")).code, 0)
    })
  )

  long.live("is set apart when the check behind the start comes upon it, with its runs", () =>
    Effect.gen(function* () {
      const { box, other } = yield* world
      yield* box.terminate
      // beyond the runes that a start looks at
      force(
        join(box.state, "runes.db"),
        `UPDATE runes SET payload = replace(payload, '"work"', '"worm"') WHERE kind = 'inbox.received' AND stream LIKE 'shop-%'`
      )
      yield* box.up()
      yield* apart({ box, other })
    })
  )
})
