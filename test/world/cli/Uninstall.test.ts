/** Tests of `uninstall`: it shows, asks, removes and leaves. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Worktree from "../../../src/agents/workplace/Worktree.ts"
import * as ProcessTable from "../../../src/runs/process/ProcessTable.ts"
import { agentd } from "./Child.ts"
import { long } from "../../support/Long.ts"

/** On the disk: a sandbox begins with an empty /dev. */
const folder = Effect.acquireRelease(
  Effect.sync(() => fs.realpathSync(fs.mkdtempSync(join(tmpdir(), "agentd-uninstall-")))),
  (path) => Effect.sync(() => fs.rmSync(path, { recursive: true, force: true }))
)

const git = (at: string, ...args: ReadonlyArray<string>) =>
  execFileSync("git", ["-C", at, ...args], { stdio: "ignore" })

const alive = (pid: number): boolean => ProcessTable.isAlive(ProcessTable.identify(pid))

it.live("shows it, asks, ends the daemon, and leaves what holds work and what is not agentd's", () =>
  Effect.gen(function* () {
    const base = yield* folder
    const [state, repository, claude] = [join(base, "s"), join(base, "repo"), join(base, "claude")]
    fs.mkdirSync(repository)
    fs.mkdirSync(claude)
    fs.writeFileSync(join(claude, "settings.json"), '{ "theme": "dark" }')
    git(repository, "init", "--quiet", "--initial-branch=main")
    git(
      repository,
      "-c",
      "user.name=a",
      "-c",
      "user.email=a@example.org",
      "commit",
      "--quiet",
      "--allow-empty",
      "-m",
      "1"
    )
    const env = { CLAUDE_CONFIG_DIR: claude }
    const ask = (...verb: ReadonlyArray<string>) => agentd(["--state", state, ...verb], { cwd: base, env })
    const { pid } = JSON.parse((yield* ask("start", "--json")).out) as { pid: number }
    yield* Effect.addFinalizer(() => Effect.sync(() => (alive(pid) ? process.kill(pid, "SIGKILL") : true)))
    assert.strictEqual((yield* ask("hooks", "install", "--yes")).code, 0)
    const at = (agent: string) => join(state, "worktrees", "shop-1", agent)
    for (const agent of ["clean", "dirty"])
      yield* Worktree.prepare({ repository, stores: join(state, "store"), folder: at(agent), agent })
    fs.writeFileSync(join(at("dirty"), "new"), "new")
    fs.writeFileSync(join(state, "mine.txt"), "mine")
    // as agentd repair leaves it
    fs.mkdirSync(join(state, "damaged", "2026-11-26T08-00-34"), { recursive: true })

    const dry = yield* ask("uninstall", "--dry-run")
    assert.strictEqual(dry.code, 0, dry.err)
    for (const line of [
      "stops: the daemon",
      `removes: ${state}/runes.db (`,
      `removes: ${state}/control.sock`,
      `removes: agentd's hooks in ${claude}/settings.json`,
      `keeps: ${at("dirty")}: not committed: ?? new`,
      `keeps: ${state}/mine.txt: it does not belong to agentd`
    ])
      assert.isTrue(dry.out.includes(line), `${line}\n${dry.out}`)
    assert.strictEqual((yield* ask("uninstall")).code, 2)
    assert.isTrue(alive(pid))
    assert.isTrue(fs.existsSync(join(state, "runes.db")))

    const done = yield* ask("uninstall", "--yes")
    assert.strictEqual(done.code, 0, done.err)
    assert.include(done.out, `Kept: ${at("dirty")}`)
    assert.isFalse(alive(pid))
    assert.sameMembers(fs.readdirSync(state), ["mine.txt", "store", "worktrees"])
    assert.deepStrictEqual(fs.readdirSync(join(state, "worktrees", "shop-1")), ["dirty"])
    assert.strictEqual(fs.readFileSync(join(at("dirty"), "new"), "utf8"), "new")
    assert.strictEqual(fs.readFileSync(join(claude, "settings.json"), "utf8"), '{ "theme": "dark" }')
    assert.strictEqual((yield* ask("uninstall", "--yes")).code, 1)
    // the work tree is one that agents go on from
    yield* Worktree.prepare({ repository, stores: join(state, "store"), folder: at("dirty"), agent: "dirty" })
  }).pipe(Effect.provide(NodeFileSystem.layer))
)

long.live("of a store that is stopped leaves nothing; of a folder without one it removes nothing", () =>
  Effect.gen(function* () {
    const base = yield* folder
    const state = join(base, "s")
    const ask = (...verb: ReadonlyArray<string>) => agentd(["--state", state, ...verb], { cwd: base })
    fs.mkdirSync(state, { mode: 0o700 })
    fs.mkdirSync(join(state, "files"))
    const { code, err } = yield* ask("uninstall", "--yes")
    assert.strictEqual(code, 1)
    assert.include(err, "There are no files of agentd in")
    assert.deepStrictEqual(fs.readdirSync(state), ["files"])
    yield* ask("start")
    yield* ask("stop", "--yes")
    assert.strictEqual((yield* ask("uninstall", "--yes")).code, 0)
    assert.isFalse(fs.existsSync(state))
  })
)
