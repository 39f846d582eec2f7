/** Tests of `gc`: finds, removals, and all that it leaves. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import { dirname, join } from "node:path"
import * as Worktree from "../../../src/agents/workplace/Worktree.ts"
import * as UnusedFiles from "../../../src/cli/setup/UnusedFiles.ts"
import { folder, note, storeFile, withInlineLog } from "../event-log/Disk.ts"
import { agentd } from "./Child.ts"
import { long } from "../../support/Long.ts"

const git = (at: string, ...args: ReadonlyArray<string>) =>
  execFileSync("git", ["-C", at, ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }).trim()

const commit = (at: string, name: string) => {
  fs.writeFileSync(join(at, name), name)
  git(at, "add", "--all")
  git(at, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--message", name)
}

const EVER = Number.MAX_SAFE_INTEGER

/** A repository, and a state folder with a work tree of each of these agents. */
const world = (agents: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const base = fs.realpathSync(yield* folder)
    const repository = join(base, "repo")
    const state = join(base, "s")
    fs.mkdirSync(repository)
    git(repository, "init", "--quiet", "--initial-branch=main")
    commit(repository, "first")
    const at = (agent: string) => join(state, "worktrees", "shop-1", agent)
    for (const agent of agents) {
      yield* Worktree.prepare({ repository, stores: join(state, "store"), folder: at(agent), agent })
    }
    return { repository, state, at }
  })

const find = (options: UnusedFiles.Options) => UnusedFiles.find(options)

describe("gc", () => {
  it.live("takes caches and notes of work trees whose agent and folder are gone", () =>
    Effect.gen(function* () {
      const state = fs.realpathSync(yield* folder)
      const place = (...at: ReadonlyArray<string>) => fs.mkdirSync(join(state, ...at), { recursive: true })
      for (const agent of ["here", "gone", "kept", ".shared"]) place("caches", "shop-1", agent, "target")
      place("caches", "old-2", ".shared")
      place("worktrees", "shop-1", "kept")
      place("setups", "shop-1")
      for (const name of ["here.json", "gone.json", "gone.script", "kept.json"])
        fs.writeFileSync(join(state, "setups", "shop-1", name), "{}")
      fs.writeFileSync(join(state, "setups", "01run.copy"), "")
      const agents = [{ agent: "here", conversation: "shop-1-2", cwd: null }]
      const paths = ({ leftovers }: UnusedFiles.Found) =>
        leftovers.filter(({ kind }) => kind === "cache").map(({ path }) => path.slice(state.length + 1))
      assert.sameMembers(paths(yield* find({ state, before: EVER, agents })), [
        "caches/shop-1/gone",
        "caches/old-2/.shared",
        "setups/shop-1/gone.json",
        "setups/shop-1/gone.script"
      ])
      assert.deepStrictEqual(paths(yield* find({ state, before: EVER, agents: undefined })), [])
    }).pipe(Effect.scoped, Effect.provide(NodeFileSystem.layer))
  )

  long.live("takes a merged branch whose agent and work tree are gone, and the homes of agents that are", () =>
    Effect.gen(function* () {
      const { at, repository, state } = yield* world(["merged", "ahead", "named"])
      const stores = join(state, "store")
      for (const agent of ["merged", "ahead", "named"]) {
        commit(at(agent), agent)
        yield* Worktree.handOver({ repository, stores, folder: at(agent), agent })
        if (agent !== "ahead") git(repository, "merge", "--quiet", "--no-edit", `agentd/${agent}`)
        fs.rmSync(at(agent), { recursive: true })
      }
      git(repository, "branch", "agentd/here")
      git(repository, "worktree", "add", "--quiet", join(state, "..", "here"), "agentd/here")
      for (const name of ["named-1a", "other-2b"]) fs.mkdirSync(join(state, "homes", name), { recursive: true })
      const agents = [{ agent: "named", conversation: "shop-1-2", cwd: null }]
      const { leftovers } = yield* find({ state, before: EVER, agents })
      assert.sameMembers(
        leftovers.map(({ kind, path }) => `${kind} ${path}`),
        [`branch ${repository} agentd/merged`, `home ${join(state, "homes", "other-2b")}`]
      )
      assert.deepStrictEqual((yield* find({ state, before: 0, agents })).leftovers, [])
      assert.deepStrictEqual((yield* find({ state, before: EVER, agents: undefined })).leftovers, [])
      assert.deepStrictEqual(yield* Effect.forEach(leftovers, (one) => UnusedFiles.remove(one, state)), [
        undefined,
        undefined
      ])
      assert.strictEqual(
        git(repository, "branch", "--list", "agentd/*", "--format=%(refname:short)"),
        "agentd/ahead\nagentd/here\nagentd/named"
      )
      assert.deepStrictEqual(fs.readdirSync(join(state, "homes")), ["named-1a"])
    }).pipe(Effect.scoped, Effect.provide(NodeFileSystem.layer))
  )

  it.live("takes a work tree whose work is merged and that no agent is of, and none that holds work", () =>
    Effect.gen(function* () {
      const { at, repository, state } = yield* world([
        "merged",
        "empty",
        "changed",
        "untracked",
        "ahead",
        "used",
        "named"
      ])
      commit(at("merged"), "done")
      yield* Worktree.handOver({ repository, stores: join(state, "store"), folder: at("merged"), agent: "merged" })
      git(repository, "merge", "--quiet", "--ff-only", "agentd/merged")
      fs.writeFileSync(join(at("changed"), "first"), "changed")
      fs.writeFileSync(join(at("untracked"), "new"), "new")
      commit(at("ahead"), "ahead")
      const agents = [
        { agent: "other", conversation: "x", cwd: join(at("used"), "below") },
        { agent: "named", conversation: "shop-1-2", cwd: null }
      ]
      const { kept, leftovers } = yield* find({ state, before: EVER, agents })
      assert.sameMembers(
        leftovers.map(({ path }) => path),
        [at("merged"), at("empty")]
      )
      assert.sameMembers(
        kept.map(({ path }) => path),
        [at("changed"), at("untracked"), at("ahead")]
      )
      assert.isTrue(leftovers.every(({ bytes }) => bytes > 0))
      // work that comes between the look and the removal is seen
      fs.writeFileSync(join(at("empty"), "late"), "late")
      const left = yield* Effect.forEach(leftovers, (one) => UnusedFiles.remove(one, state))
      assert.deepStrictEqual(left.filter((why) => why === undefined).length, 1)
      assert.sameMembers(fs.readdirSync(join(state, "worktrees", "shop-1")), [
        "ahead",
        "changed",
        "empty",
        "named",
        "untracked",
        "used"
      ])
      assert.strictEqual(git(repository, "branch", "--list", "agentd/merged"), "")
      assert.include(git(repository, "log", "--format=%s"), "done")
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.live("leaves each work tree that was changed lately, and all of them where no daemon says who needs them", () =>
    Effect.gen(function* () {
      const { state } = yield* world(["one"])
      const lately = yield* find({ state, before: 1, agents: [] })
      assert.deepStrictEqual(lately.leftovers, [])
      assert.match(lately.kept[0]!.why, /changed recently/)
      const alone = yield* find({ state, before: EVER, agents: undefined })
      assert.deepStrictEqual(alone.leftovers, [])
      assert.match(alone.kept[0]!.why, /daemon does not run/)
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.live("by the command line: lists, asks, removes what is old enough, and says how much", () =>
    Effect.gen(function* () {
      const state = join(yield* folder, "s")
      fs.mkdirSync(join(state, "replaced-2026-01-01T00-00-00"), { recursive: true, mode: 0o700 })
      fs.mkdirSync(join(state, "replaced-2026-01-02T00-00-00"), { mode: 0o700 })
      fs.mkdirSync(join(state, "files"), { mode: 0o700 })
      fs.mkdirSync(join(state, "keeper", "1"), { recursive: true, mode: 0o700 })
      fs.mkdirSync(join(state, "keeper", "2"), { mode: 0o700 })
      const old = [
        "daemon.log.1",
        "replaced-2026-01-01T00-00-00/runes.db",
        "files/x.part",
        "keeper/1/log",
        "keeper/2/log",
        "daemon.log",
        "runes.db"
      ]
      for (const name of old) fs.writeFileSync(join(state, name), name)
      for (const name of [...old, "replaced-2026-01-01T00-00-00", "keeper/1", "keeper/2"]) {
        fs.utimesSync(join(state, name), 1, 1)
      }
      const ask = (...args: ReadonlyArray<string>) => agentd(["--state", state, "gc", ...args])
      const goes = ["keeper/1", "daemon.log.1", "replaced-2026-01-01T00-00-00", "files/x.part"].map((name) =>
        join(state, name)
      )
      const dry = yield* ask("--dry-run", "--json")
      assert.sameMembers(
        (JSON.parse(dry.out) as { leftovers: Array<{ path: string }> }).leftovers.map(({ path }) => path),
        goes
      )
      const asked = yield* ask()
      assert.deepStrictEqual(asked.code, 2)
      assert.include(asked.out, goes[0]!)
      assert.isTrue(goes.every((path) => fs.existsSync(path)))
      const done = yield* ask("--yes", "--json")
      assert.sameMembers((JSON.parse(done.out) as { removed: Array<string> }).removed, goes)
      assert.sameMembers(fs.readdirSync(state), [
        "daemon.log",
        "files",
        "keeper",
        "replaced-2026-01-02T00-00-00",
        "runes.db"
      ])
      assert.match((yield* ask("--yes")).out, /contains nothing older/)
      assert.strictEqual((yield* ask("--days", "-1")).code, 2)
    })
  )

  it.live(
    "says which segments of the log `keepLog` deletes, before it does; then verify says where the log begins",
    () =>
      Effect.gen(function* () {
        const file = yield* storeFile
        const [state, config] = [dirname(file), yield* folder]
        const env = { XDG_CONFIG_HOME: config }
        const ask = (...args: ReadonlyArray<string>) => agentd(["--state", state, ...args], { env })
        yield* withInlineLog({ file }, (log) =>
          Effect.gen(function* () {
            yield* log.append(Array.from({ length: 300 }, (_, n) => note("shop", n)))
            for (const upTo of [100, 200]) yield* log.seal({ upTo, before: EVER, least: 1 })
          })
        )
        assert.match((yield* ask("gc", "--dry-run")).out, /2 segments, .*keepLog is not set/)
        fs.mkdirSync(join(config, "agentd"))
        fs.writeFileSync(join(config, "agentd/config.jsonc"), JSON.stringify({ keepLog: "0 days" }))
        const { out } = yield* ask("gc", "--dry-run")
        assert.match(out, /keepLog "0 days"/)
        assert.include(out, `to delete: ${join(state, "segments/1-100.zst")}`)
        const { segments } = JSON.parse((yield* ask("gc", "--json")).out) as { segments: Array<{ goes: boolean }> }
        assert.deepStrictEqual(
          segments.map(({ goes }) => goes),
          [true, true]
        )
        assert.isTrue(fs.existsSync(join(state, "segments/1-100.zst")), "gc deletes none itself")
        yield* withInlineLog({ file }, (log) =>
          log.forget({ openSince: EVER, before: EVER, keepBytes: 0, by: "a test" })
        )
        const verdict = yield* ask("verify")
        assert.strictEqual(verdict.code, 0, verdict.err)
        assert.match(verdict.out, /The log begins at rune 201: .* were deleted \(a test\)\./)
      })
  )
})
