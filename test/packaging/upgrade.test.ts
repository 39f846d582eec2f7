/**
 * `agentd upgrade` for real: npm packs and installs, in a prefix of the test's own and without a network. The package's
 * program is this tree's, with another version in it; an agent's run goes on over all of it.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { dirname, join } from "node:path"
import * as ProcessTable from "../../src/runs/process/ProcessTable.ts"
import { SCHEMA_VERSION } from "../../src/core/event-log/Migrations.ts"
import * as StoreCopy from "../../src/core/event-log/StoreCopy.ts"
import { VERSION } from "../../src/api/rpc/Version.ts"
import { launch } from "../cli/Child.ts"
import * as Package from "../support/Package.ts"
import * as Stage from "../support/Stage.ts"

const hasNpm = spawnSync("npm", ["--version"]).status === 0
if (!hasNpm) console.warn("SKIPPED: upgrade (no npm on this machine)")

/** Makes the program one whose daemon brings the store forward, and dies of it. */
const forward = (at: string): void => {
  fs.renameSync(join(at, "dist", "agentd.mjs"), join(at, "dist", "whole.mjs"))
  const up = `const { DatabaseSync } = await import("node:sqlite")
    const store = new DatabaseSync(process.argv[process.argv.indexOf("--state") + 1] + "/runes.db")
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
  const pack = Package.packer(folder, { ...process.env, ...box.environment })
  const daemon = Effect.map(
    stage.rpc((client) => client.Status()),
    ({ daemon: { pid, replaced, version } }) => ({ pid, replaced, version })
  )
  yield* Effect.addFinalizer(() =>
    Effect.ignore(Effect.map(daemon, ({ pid }) => alive(pid) && process.kill(pid, "SIGKILL")))
  )
  const version = () =>
    execFileSync(join(prefix, "bin", "agentd"), ["--version"], {
      encoding: "utf8",
      env: { ...process.env, ...box.environment }
    }).trim()
  return { stage, box, prefix, home, pack, daemon, version }
})

describe.skipIf(!hasNpm)("agentd upgrade", () => {
  it.live(
    "a run goes on over an upgrade, and over two that are broken and undone: one process, one turn, one result",
    () =>
      Effect.gen(function* () {
        const { box, daemon, home, pack, prefix, stage, version } = yield* installed
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

        const good = pack("0.2.0")
        const dry = yield* shop.cli("upgrade", good, "--dry-run")
        assert.strictEqual(dry.code, 0, dry.stderr)
        assert.include(dry.stdout, `agentd ${VERSION} → 0.2.0: ${good}`)
        assert.include(dry.stdout, `restarts: the daemon (pid ${first.pid}, agentd ${VERSION})`)
        assert.strictEqual((yield* shop.cli("upgrade", good)).code, 2, "nobody is there to be asked")
        const older = yield* shop.cli("upgrade", pack("0.0.9", { agentd: { schema: SCHEMA_VERSION - 1 } }), "--yes")
        assert.strictEqual(older.code, 1)
        assert.match(older.stderr, /has schema \d+; agentd 0\.0\.9 reads no newer one than \d+\. Nothing was done\./)
        assert.deepStrictEqual(yield* daemon, first)
        assert.deepStrictEqual(fs.readdirSync(dirname(home)), ["agentd"], "nothing was touched")

        const mute = pack("0.3.0", {}, (at) =>
          Package.write(join(at, "scripts", "agentd"), "#!/bin/sh\necho broken >&2; exit 1\n")
        )
        const one = yield* shop.cli("upgrade", mute, "--yes")
        assert.strictEqual(one.code, 1)
        assert.match(
          one.stderr,
          /agentd 0\.3\.0 is not in force: .*broken.* agentd 0\.1\.0 is in its place again, and its daemon ran on/
        )
        assert.deepStrictEqual(yield* daemon, first, "it was not even restarted")

        // interrupted while npm works
        const npm = join(dirname(prefix), "slow", "npm")
        fs.mkdirSync(dirname(npm))
        Package.write(
          npm,
          `#!/bin/sh\nmkdir '${home}/../.agentd-12345678'; rm '${home}/package.json'; touch '${npm}.begun'; exec sleep 60\n`
        )
        const env = { ...box.environment, PATH: `${dirname(npm)}:${box.environment["PATH"]}` }
        const args = ["--state", box.state, "upgrade", good, "--yes"]
        const { child, ended } = yield* launch(args, { env, program: box.program })
        yield* box.until(
          "npm works",
          Effect.sync(() => fs.existsSync(`${npm}.begun`)),
          (begun) => begun
        )
        const meanwhile = yield* shop.cli("upgrade", good, "--yes")
        assert.strictEqual(meanwhile.code, 1)
        assert.match(meanwhile.stderr, /Another agentd upgrade of .* is under way \(pid \d+\)\. Nothing was done\./)
        child.kill("SIGINT")
        const over = yield* ended
        assert.strictEqual(over.code, 130)
        assert.include(over.err, "is not in force: it was interrupted. agentd 0.1.0 is in its place again")
        assert.deepStrictEqual(fs.readdirSync(dirname(home)), [".agentd-upgrading", "agentd"])
        assert.strictEqual(version(), `agentd v${VERSION}`)
        assert.deepStrictEqual(yield* daemon, first)

        const sick = pack("0.4.0", {}, Package.ending)
        const two = yield* shop.cli("upgrade", sick, "--yes")
        assert.strictEqual(two.code, 1)
        assert.match(
          two.stderr,
          /agentd 0\.4\.0 is not in force: .*no good.* in its place again, and its daemon runs again \(pid \d+\)/
        )
        const second = yield* daemon
        assert.strictEqual(second.version, VERSION)
        assert.notStrictEqual(second.pid, first.pid)
        assert.strictEqual(version(), `agentd v${VERSION}`)

        const done = yield* shop.cli("upgrade", good, "--yes", "--json")
        assert.strictEqual(done.code, 0, done.stderr)
        const told = JSON.parse(done.stdout)
        const third = yield* daemon
        assert.deepInclude(told, {
          from: VERSION,
          to: "0.2.0",
          upgraded: true,
          daemon: { pid: third.pid, version: "0.2.0" }
        })
        assert.deepStrictEqual(third, { pid: third.pid, replaced: undefined, version: "0.2.0" })
        assert.strictEqual(version(), "agentd v0.2.0")
        assert.isTrue(fs.existsSync(told.backup))
        assert.deepStrictEqual(fs.readdirSync(dirname(home)).toSorted(), [
          `.agentd-${VERSION}-kept`,
          ".agentd-upgrading",
          "agentd"
        ])
        assert.strictEqual(prefix, told.prefix)
        const gone = yield* shop.cli("uninstall", "--dry-run")
        const kept = join(dirname(home), `.agentd-${VERSION}-kept`)
        assert.include(gone.stdout, `The program: npm rm -g --prefix '${prefix}' agentd && rm -rf '${kept}'`)

        assert.deepStrictEqual(shop.noted("one", "pids"), [run])
        fs.writeFileSync(join(shop.root, "one", "go"), "")
        assert.deepStrictEqual(yield* shop.answers("one", 1), ["done\n"])
        assert.lengthOf(yield* shop.log("turn.started"), 1)
        assert.deepStrictEqual(shop.noted("one", "pids"), [run])

        const { head } = yield* StoreCopy.facts(join(box.state, "runes.db"))
        const three = yield* shop.cli("upgrade", pack("0.5.0", { agentd: { schema: 99 } }, forward), "--yes")
        assert.strictEqual(three.code, 1)
        assert.match(
          three.stderr,
          /The store has been brought to schema 99 already, which agentd 0\.2\.0 does not read/
        )
        const typed = /→ Put the backup in its place, and go on: (.*)/.exec(three.stderr)?.[1] ?? ""
        const path = `${join(prefix, "bin")}:${box.environment["PATH"]}`
        execFileSync("sh", ["-c", typed], { cwd: "/", env: { ...process.env, ...box.environment, PATH: path } })
        assert.strictEqual((yield* daemon).version, "0.2.0")
        assert.isAtLeast((yield* StoreCopy.facts(join(box.state, "runes.db"))).head, head)
      })
  )
})
