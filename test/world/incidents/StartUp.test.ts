/** Incidents that others had, by their names: a start over a store of which a part cannot be read. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import * as Sandbox from "../../support/Sandbox.ts"
import * as Stage from "../../support/Stage.ts"

const tryKill = (pid: number) => {
  try {
    process.kill(pid, "SIGKILL")
  } catch {
    // it has gone
  }
}

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
      assert.match((yield* box.cli("status")).stdout, /shop-\S+ cannot be read, so it is skipped: .*payload of rune/)
      const refused = yield* box.cli("start")
      assert.notStrictEqual(refused.code, 0)
      assert.match(refused.stderr + refused.stdout, /is set apart, because its log is damaged/)
    })
  )

  it.live("a keeper that hangs and a git that hangs hold up their own agents alone", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.keeping
      const bin = join(stage.box.folder, "bin")
      mkdirSync(bin)
      const sleeping = { backend: { type: "command", shell: "cat > /dev/null; exec sleep 1000", readyAfter: "50ms" } }
      const quick = { backend: { type: "command", shell: "cat" }, minRunInterval: "0ms" }
      const shop = stage.home({ agents: { held: sleeping, tree: { ...quick, worktree: true } } })
      execFileSync("git", ["init", "-q", shop.root])
      execFileSync("git", [
        "-C",
        shop.root,
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.org",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "first"
      ])
      const other = stage.project("other", { agents: { a: quick } })
      yield* stage.up
      yield* shop.register
      yield* other.register
      yield* shop.send("held", "go")
      yield* shop.of("held", 1, "turn.started")
      yield* stage.box.kill9
      const keepers = stage.keepers
      for (const pid of keepers) process.kill(pid, "SIGSTOP")
      yield* Effect.addFinalizer(() => Effect.sync(() => keepers.forEach((pid) => tryKill(pid))))
      writeFileSync(join(bin, "git"), "#!/bin/sh\nexec sleep 1000\n", { mode: 0o755 })
      stage.box.environment["PATH"] = `${bin}:${process.env["PATH"]}`
      yield* stage.up
      yield* other.send("a", "hello")
      assert.lengthOf(yield* other.answers("a", 1), 1)
    })
  )
})
