/**
 * An upgrade for real: npm packs and installs, in a prefix of the test's own and without a network, and `agentd restart`
 * takes over. The package's program is this tree's, with another version in it; an agent's run goes on over all of it.
 */
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { dirname, join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import * as ProcessTable from "../../../src/runs/process/ProcessTable.ts"
import { SCHEMA_VERSION } from "../../../src/core/event-log/Migrations.ts"
import * as StoreCopy from "../../../src/core/event-log/StoreCopy.ts"
import { VERSION } from "../../../src/api/rpc/Version.ts"
import { launch } from "../cli/Child.ts"
import * as Package from "../../support/Package.ts"
import * as Stage from "../../support/Stage.ts"
import { long } from "../../support/Long.ts"

const hasNpm = spawnSync("npm", ["--version"]).status === 0
if (!hasNpm) console.warn("SKIPPED: upgrade (no npm on this machine)")

/** Makes the program one whose daemon keeps the store, brings it forward, and dies of it. */
const forward = (at: string): void => {
  fs.renameSync(join(at, "dist", "agentd.mjs"), join(at, "dist", "whole.mjs"))
  const up = `const { DatabaseSync } = await import("node:sqlite")
    const file = process.argv[process.argv.indexOf("--state") + 1] + "/runes.db"
    const store = new DatabaseSync(file)
    store.exec("VACUUM INTO '" + file + ".schema-${SCHEMA_VERSION}'")
    store.exec("INSERT INTO schema_versions (migration_id, name) VALUES (99, 'tomorrow')")
    store.close()
    process.exit(1)`
  Package.write(
    join(at, "dist", "agentd.mjs"),
    `if (process.argv.includes("up")) { ${up} }\nawait import("./whole.mjs")\n`
  )
}

const alive = (pid: number): boolean => ProcessTable.isAlive(ProcessTable.identify(pid))

/** A stage whose program is installed in a prefix of its own. */
const installed = Effect.gen(function* () {
  const stage = yield* Stage.keeping
  const { box } = stage
  const folder = fs.realpathSync(box.folder)
  const prefix = join(folder, "prefix")
  const home = join(prefix, "lib", "node_modules", "agentd")
  Package.layOut(home, VERSION)
  fs.mkdirSync(join(prefix, "bin"))
  fs.symlinkSync("../lib/node_modules/agentd/scripts/agentd", join(prefix, "bin", "agentd"))
  box.program = join(home, "dist", "agentd.mjs")
  Object.assign(box.environment, {
    XDG_RUNTIME_DIR: "/nonexistent",
    npm_config_cache: join(folder, "npm"),
    npm_config_offline: "true",
    PATH: `${dirname(process.execPath)}:${process.env["PATH"]}`
  })
  const env = { ...process.env, ...box.environment, PATH: `${join(prefix, "bin")}:${box.environment["PATH"]}` }
  /** As a person types it, in the folder where the packages lie. */
  const sh = (line: string) => execFileSync("sh", ["-c", line], { cwd: folder, env, encoding: "utf8" }).trim()
  const pack = Package.packer(folder, env)
  const npm = (file: string) => sh(`npm install -g --prefix ${prefix} ${file}`)
  const daemon = Effect.map(
    stage.rpc((client) => client.Status()),
    ({ daemon: { pid, replaced, version } }) => ({ pid, replaced, version })
  )
  yield* Effect.addFinalizer(() =>
    Effect.ignore(Effect.map(daemon, ({ pid }) => alive(pid) && process.kill(pid, "SIGKILL")))
  )
  return { stage, box, prefix, home, pack, daemon, npm, sh }
})

/** A store's schema, changed under a daemon. */
const withSchema = (file: string, sql: string): void => {
  const store = new DatabaseSync(file)
  store.exec(sql)
  store.close()
}

describe.skipIf(!hasNpm)("npm install and agentd restart", () => {
  long.live(
    "a run goes on over a new version, and over one whose daemon does not start: one process, one turn, one result",
    () =>
      Effect.gen(function* () {
        const { box, daemon, home, npm, pack, prefix, sh, stage } = yield* installed
        const shell = "cat > /dev/null; echo $$ >> pids; while [ ! -e go ]; do sleep 0.05; done; echo done"
        const shop = stage.home({ agents: { one: { backend: { type: "command", shell, readyAfter: "50ms" } } } })
        yield* stage.up
        yield* shop.register
        yield* shop.send("one", "work")
        yield* shop.of("one", 1, "turn.started")
        yield* box.until(
          "it works",
          Effect.sync(() => shop.noted("one", "pids")),
          (pids) => pids.length === 1
        )
        const [run = ""] = shop.noted("one", "pids")
        const first = yield* daemon
        assert.strictEqual(first.version, VERSION)
        pack(VERSION)

        npm(pack("0.4.0", {}, Package.ending))
        const sick = yield* shop.cli("restart", "--yes")
        assert.strictEqual(sick.code, 1)
        assert.match(sick.stderr, /^agentd: no good\n.*does not start\. The previous version was 0\.1\.0\.\n/)
        assert.isFalse(alive(first.pid))
        const back = /Or go back to agentd 0\.1\.0: (.*)/.exec(sick.stderr)?.[1] ?? ""
        assert.strictEqual(
          back,
          `npm install -g --prefix ${prefix} agentd-${VERSION}.tgz && agentd --state ${box.state} start`
        )
        sh(back)
        const second = yield* daemon
        assert.deepStrictEqual(second, { pid: second.pid, replaced: undefined, version: VERSION })

        npm(pack("0.2.0"))
        const store = join(box.state, "runes.db")
        withSchema(store, "INSERT INTO schema_versions (migration_id, name) VALUES (98, 'tomorrow')")
        const older = yield* shop.cli("restart", "--yes")
        assert.strictEqual(older.code, 1)
        assert.match(
          older.stderr,
          /has schema 98\. agentd 0\.2\.0 reads schema \d+ .*\(pid \d+, agentd 0\.1\.0\) was not stopped/
        )
        assert.strictEqual((yield* daemon).pid, second.pid)
        withSchema(store, "DELETE FROM schema_versions WHERE migration_id = 98")
        const good = yield* shop.cli("restart", "--yes")
        assert.strictEqual(good.code, 0, good.stderr)
        const third = yield* daemon
        assert.deepStrictEqual(third, { pid: third.pid, replaced: undefined, version: "0.2.0" })

        // as the verb upgrade of an older agentd left it
        const kept = join(dirname(home), ".agentd-0.0.9-kept")
        fs.mkdirSync(kept)
        const gone = yield* shop.cli("uninstall", "--dry-run")
        assert.include(gone.stdout, `To remove the program: npm rm -g --prefix '${prefix}' agentd && rm -rf '${kept}'`)

        const { head } = yield* StoreCopy.facts(store)
        npm(pack("0.5.0", {}, forward))
        const ahead = yield* shop.cli("restart", "--yes")
        assert.strictEqual(ahead.code, 1)
        const copy = `${store}.schema-${SCHEMA_VERSION}`
        assert.include(
          ahead.stderr,
          `The previous version was 0.2.0. The installed agentd has changed the store from schema ${SCHEMA_VERSION} to 99. A copy with the old schema is ${copy}.`
        )
        sh(/Or go back to agentd 0\.2\.0: (.*)/.exec(ahead.stderr)?.[1] ?? "")
        assert.strictEqual((yield* daemon).version, "0.2.0")
        assert.strictEqual((yield* StoreCopy.facts(store)).schema, SCHEMA_VERSION)
        assert.isAtLeast((yield* StoreCopy.facts(store)).head, head)

        // the program is replaced while a restart waits for the turn
        const waiting = yield* launch(["--state", box.state, "restart", "--drain"], {
          env: box.environment,
          program: box.program
        })
        yield* box.until("it waits", Effect.sync(waiting.err), (err) => err.includes("Waiting for 1 agent to end"))
        const fourth = yield* daemon
        Package.write(box.program, 'console.error("torn"); process.exit(1)\n')
        assert.deepStrictEqual(shop.noted("one", "pids"), [run])
        fs.writeFileSync(join(shop.root, "one", "go"), "")
        assert.deepStrictEqual(yield* shop.answers("one", 1), ["done\n"])
        assert.lengthOf(yield* shop.log("turn.started"), 1)
        assert.deepStrictEqual(shop.noted("one", "pids"), [run])
        const torn = yield* waiting.ended
        assert.strictEqual(torn.code, 1)
        assert.match(torn.err, /does not start: torn\. The running daemon \(pid \d+, agentd 0\.2\.0\) was not stopped/)
        assert.include(
          torn.err,
          `npm install -g --prefix ${prefix} agentd-0.2.0.tgz && agentd --state ${box.state} restart`
        )
        assert.strictEqual((yield* daemon).pid, fourth.pid)
      })
  )
})
