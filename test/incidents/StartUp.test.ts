/** Incidents that others had, by their names: a start over a store of which a part cannot be read. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import * as Sandbox from "../support/Sandbox.ts"

const config = { agents: { a: { backend: { type: "command", shell: "cat" } } } }

describe("start-up blocked by recovery", () => {
  it.live("a conversation that cannot be read stops no other; status names it, and its project is not begun anew", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure(config)
      yield* box.up()
      const other = join(box.folder, "other")
      mkdirSync(other)
      writeFileSync(join(other, "agentd.jsonc"), JSON.stringify(config))
      assert.strictEqual((yield* box.cliIn(other, "start")).code, 0)
      yield* box.until(
        "both wait",
        box.rows,
        (rows) => rows.length === 2 && rows.every(({ state }) => state === "BuildingPrompt")
      )
      yield* box.terminate
      const store = new DatabaseSync(join(box.state, "runes.db"))
      store.exec(
        "DROP TRIGGER runes_are_immutable; UPDATE runes SET payload = '{' WHERE kind = 'worker.started' AND stream LIKE 'shop-%'"
      )
      store.close()
      yield* box.up()
      const rows = yield* box.until("the other lives", box.rows, (agents) => agents.length > 0)
      assert.deepStrictEqual(
        rows.map(({ project }) => project),
        ["other"]
      )
      const status = JSON.parse((yield* box.cli("--json", "status")).stdout)
      const { unreadable, ...counted } = status.daemon.reading
      assert.match(unreadable[0].stream, /^shop-/)
      assert.strictEqual(counted.read, counted.streams)
      assert.match((yield* box.cli("status")).stdout, /shop-\S+ cannot be read, and is left out: .*payload of rune/)
      const refused = yield* box.cli("start")
      assert.notStrictEqual(refused.code, 0)
      assert.match(refused.stderr + refused.stdout, /is set apart, since its log is damaged/)
    })
  )
})
