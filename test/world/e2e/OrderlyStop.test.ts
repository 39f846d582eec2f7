/** A daemon that is stopped while its agents work. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import * as Sandbox from "../../support/Sandbox.ts"

const AGENTS = Array.from({ length: 12 }, (_, n) => `agent${n}`)

describe("an orderly stop", () => {
  it.live("leaves no dead letter, whatever its agents are at", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      const backend = { type: "command", shell: "cat; exec sleep 1000" }
      box.configure({ agents: Object.fromEntries(AGENTS.map((name) => [name, { backend }])) })
      yield* box.up()
      yield* Effect.forEach(AGENTS, (name) => box.cli("send", name, "Go."), { concurrency: 4 })
      yield* box.until(
        "all work",
        box.rows,
        (rows) => rows.length === AGENTS.length && rows.every(({ runId }) => runId !== null)
      )
      yield* box.terminate
      const store = new DatabaseSync(join(box.state, "runes.db"))
      const kinds = store.prepare("SELECT kind, count(*) AS many FROM runes GROUP BY kind").all()
      const letters = store.prepare("SELECT actor, payload FROM runes WHERE kind = 'actor.dead_letter'").all()
      store.close()
      assert.isTrue(kinds.some(({ kind }) => kind === "daemon.stopped"))
      assert.deepStrictEqual(letters, [])
    }).pipe(Effect.scoped)
  )
})
