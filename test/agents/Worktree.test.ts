import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync, spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Worktree from "../../src/agents/Worktree.ts"

/** A real repository with one commit, a folder for worktrees beside it, both gone at the end. */
const world = Effect.acquireRelease(
  Effect.sync(() => {
    const home = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "agentd-worktree-")))
    const repository = path.join(home, "repo")
    fs.mkdirSync(repository)
    git(repository, "init", "--quiet", "--initial-branch=main")
    git(repository, "config", "user.email", "ada@example.org")
    git(repository, "config", "user.name", "Ada")
    write(repository, "a.txt", "a\n")
    write(repository, ".gitignore", "ignored/\n")
    commit(repository, "first")
    const folder = path.join(home, "state", "worktrees", "proj-1", "builder")
    return {
      home,
      repository,
      folder,
      spec: { repository, folder, agent: "builder", stores: path.join(home, "state", "store") }
    }
  }),
  ({ home }) => Effect.sync(() => fs.rmSync(home, { recursive: true, force: true }))
)

const git = (folder: string, ...args: ReadonlyArray<string>) =>
  execFileSync("git", ["-C", folder, ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }).trim()
const write = (folder: string, name: string, text: string) => {
  fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true })
  fs.writeFileSync(path.join(folder, name), text)
}
const commit = (folder: string, message: string) => {
  git(folder, "add", "--all")
  git(folder, "commit", "--quiet", "--message", message)
  return git(folder, "rev-parse", "HEAD")
}

const prepare = (spec: Worktree.WorktreeSpec) => Effect.provide(Worktree.prepare(spec), NodeFileSystem.layer)
const remove = (spec: Worktree.WorktreeSpec) => Effect.provide(Worktree.remove(spec), NodeFileSystem.layer)

const refused = (spec: Worktree.WorktreeSpec) =>
  Effect.map(Effect.flip(prepare(spec)), (error) => {
    assert.notStrictEqual(error.remedy, "")
    return error.reason
  })

const keptBecause = (spec: Worktree.WorktreeSpec) =>
  Effect.map(remove(spec), (removal) => {
    assert.strictEqual(removal._tag, "Kept")
    assert.isTrue(fs.existsSync(spec.folder), "the worktree is still there")
    return removal._tag === "Kept" ? removal.reason : undefined
  })

describe("Worktree.prepare", () => {
  it.live("makes a branch of the agent's own from HEAD, and leaves the user's checkout as it was", () =>
    Effect.gen(function* () {
      const { folder, repository, spec } = yield* world
      write(repository, "a.txt", "edited by the user\n")
      const before = git(repository, "status", "--porcelain", "--branch")
      assert.deepStrictEqual(yield* prepare(spec), { branch: "agentd/builder", folder, cwd: folder })
      assert.strictEqual(git(folder, "branch", "--show-current"), "agentd/builder")
      assert.strictEqual(fs.readFileSync(path.join(folder, "a.txt"), "utf8"), "a\n")
      assert.strictEqual(git(repository, "status", "--porcelain", "--branch"), before)
    })
  )

  it.live("again changes nothing, whatever the agent has left there", () =>
    Effect.gen(function* () {
      const { folder, spec } = yield* world
      yield* prepare(spec)
      write(folder, "a.txt", "half done\n")
      write(folder, "new.txt", "untracked\n")
      const before = git(folder, "status", "--porcelain")
      yield* prepare(spec)
      assert.strictEqual(git(folder, "status", "--porcelain"), before)
    })
  )

  it.live("a branch that the agent has switched to itself is taken as it is", () =>
    Effect.gen(function* () {
      const { folder, spec } = yield* world
      yield* prepare(spec)
      git(folder, "switch", "--quiet", "--create", "feature")
      assert.strictEqual((yield* prepare(spec)).branch, "feature")
      git(folder, "switch", "--quiet", "--detach")
      assert.isUndefined((yield* prepare(spec)).branch)
    })
  )

  it.live("an existing branch of the agent is used with the commits it has", () =>
    Effect.gen(function* () {
      const { folder, repository, spec } = yield* world
      yield* prepare(spec)
      write(folder, "work.txt", "work\n")
      const tip = commit(folder, "work")
      git(repository, "worktree", "remove", folder)
      yield* prepare(spec)
      assert.strictEqual(git(folder, "rev-parse", "HEAD"), tip)
    })
  )

  it.live("a worktree whose folder was deleted is made again on its branch", () =>
    Effect.gen(function* () {
      const { folder, spec } = yield* world
      yield* prepare(spec)
      write(folder, "work.txt", "work\n")
      const tip = commit(folder, "work")
      fs.rmSync(folder, { recursive: true })
      yield* prepare(spec)
      assert.strictEqual(git(folder, "rev-parse", "HEAD"), tip)
    })
  )

  it.live("a worktree that was cut off while git made it is made anew", () =>
    Effect.gen(function* () {
      const { folder, repository, spec } = yield* world
      yield* prepare(spec)
      fs.writeFileSync(path.join(repository, ".git/worktrees/builder/locked"), "initializing\n")
      fs.rmSync(path.join(folder, "a.txt"))
      yield* prepare(spec)
      assert.strictEqual(git(folder, "status", "--porcelain"), "")
    })
  )

  it.live("the links of a repository that was moved are mended", () =>
    Effect.gen(function* () {
      const { folder, home, repository, spec } = yield* world
      yield* prepare(spec)
      write(folder, "new.txt", "untracked\n")
      const moved = path.join(home, "moved")
      fs.renameSync(repository, moved)
      yield* prepare({ ...spec, repository: moved })
      assert.strictEqual(git(folder, "status", "--porcelain"), "?? new.txt")
    })
  )

  it.live("starts from the base that is configured", () =>
    Effect.gen(function* () {
      const { folder, repository, spec } = yield* world
      const first = git(repository, "rev-parse", "HEAD")
      git(repository, "branch", "stable")
      write(repository, "b.txt", "b\n")
      commit(repository, "second")
      yield* prepare({ ...spec, base: "stable" })
      assert.strictEqual(git(folder, "rev-parse", "HEAD"), first)
    })
  )

  it.live("a project in a folder of its repository works in that folder", () =>
    Effect.gen(function* () {
      const { folder, repository, spec } = yield* world
      write(repository, "packages/app/c.txt", "c\n")
      commit(repository, "app")
      const prepared = yield* prepare({ ...spec, repository: path.join(repository, "packages/app") })
      assert.deepStrictEqual([prepared.folder, prepared.cwd], [folder, path.join(folder, "packages/app")])
    })
  )

  it.live("no hook of the repository runs", () =>
    Effect.gen(function* () {
      const { home, repository, spec } = yield* world
      const hook = path.join(repository, ".git/hooks/post-checkout")
      fs.writeFileSync(hook, `#!/bin/sh\ntouch ${home}/hook-ran\n`, { mode: 0o755 })
      yield* prepare(spec)
      assert.isFalse(fs.existsSync(path.join(home, "hook-ran")))
    })
  )

  it.live("variables of a surrounding git command do not mislead it", () =>
    Effect.gen(function* () {
      const { folder, spec } = yield* world
      const other = yield* world
      yield* Effect.acquireUseRelease(
        Effect.sync(() => {
          process.env["GIT_DIR"] = path.join(other.repository, ".git")
          process.env["GIT_INDEX_FILE"] = path.join(other.repository, ".git/index")
        }),
        () => prepare(spec),
        () =>
          Effect.sync(() => {
            delete process.env["GIT_DIR"]
            delete process.env["GIT_INDEX_FILE"]
          })
      )
      assert.include(git(spec.repository, "worktree", "list"), folder)
      assert.notInclude(git(other.repository, "worktree", "list"), folder)
    })
  )

  it.live("agents of one repository are prepared side by side", () =>
    Effect.gen(function* () {
      const { folder, spec } = yield* world
      const agents = ["a", "b", "c", "d"]
      const prepared = yield* Effect.forEach(
        agents,
        (agent) => prepare({ ...spec, agent, folder: path.join(path.dirname(folder), agent) }),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(
        prepared.map(({ branch }) => branch),
        agents.map((agent) => `agentd/${agent}`)
      )
    })
  )

  it.live("what is no repository is refused", () =>
    Effect.gen(function* () {
      const { home, spec } = yield* world
      assert.strictEqual(yield* refused({ ...spec, repository: home }), "NotARepository")
      const bare = path.join(home, "bare.git")
      git(home, "init", "--quiet", "--bare", bare)
      assert.strictEqual(yield* refused({ ...spec, repository: bare }), "NotARepository")
    })
  )

  it.live("a repository without a commit is refused, and so is a base that does not exist", () =>
    Effect.gen(function* () {
      const { home, spec } = yield* world
      const empty = path.join(home, "empty")
      git(home, "init", "--quiet", empty)
      assert.strictEqual(yield* refused({ ...spec, repository: empty }), "NoCommits")
      assert.strictEqual(yield* refused({ ...spec, base: "--no-such" }), "NoSuchBase")
    })
  )

  it.live("a branch that is checked out elsewhere is refused", () =>
    Effect.gen(function* () {
      const { repository, spec } = yield* world
      git(repository, "switch", "--quiet", "--create", "agentd/builder")
      assert.strictEqual(yield* refused(spec), "BranchInUse")
    })
  )

  it.live("a branch named agentd is refused with what to do", () =>
    Effect.gen(function* () {
      const { repository, spec } = yield* world
      git(repository, "branch", "agentd")
      assert.strictEqual(yield* refused(spec), "BranchBlocked")
    })
  )

  it.live("a folder that holds something else is refused and left alone", () =>
    Effect.gen(function* () {
      const { folder, spec } = yield* world
      write(folder, "mine.txt", "precious\n")
      assert.strictEqual(yield* refused(spec), "FolderTaken")
      assert.strictEqual(fs.readFileSync(path.join(folder, "mine.txt"), "utf8"), "precious\n")
    })
  )

  it.live("a worktree whose entry git has pruned keeps its files", () =>
    Effect.gen(function* () {
      const { folder, repository, spec } = yield* world
      yield* prepare(spec)
      write(folder, "new.txt", "precious\n")
      fs.rmSync(path.join(repository, ".git/worktrees/builder"), { recursive: true })
      assert.strictEqual(yield* refused(spec), "FolderTaken")
      assert.isTrue(fs.existsSync(path.join(folder, "new.txt")))
    })
  )

  it.live("a locked worktree whose disk is absent is not made a second time", () =>
    Effect.gen(function* () {
      const { folder, repository, spec } = yield* world
      yield* prepare(spec)
      git(repository, "worktree", "lock", "--reason", "on a stick", folder)
      fs.renameSync(folder, `${folder}-away`)
      assert.strictEqual(yield* refused(spec), "Locked")
    })
  )
})

describe("Worktree.remove: cleanup destroys work", () => {
  it.live("a clean, merged worktree that nobody is in goes, with its branch; again is no error", () =>
    Effect.gen(function* () {
      const { folder, repository, spec } = yield* world
      yield* prepare(spec)
      write(folder, "work.txt", "work\n")
      commit(folder, "work")
      write(folder, "ignored/cache", "regrown\n")
      git(repository, "merge", "--quiet", "agentd/builder")
      assert.deepStrictEqual(yield* remove(spec), { _tag: "Removed" })
      assert.isFalse(fs.existsSync(folder))
      assert.strictEqual(git(repository, "branch", "--list", "agentd/*"), "")
      assert.deepStrictEqual(yield* remove(spec), { _tag: "Removed" })
    })
  )

  for (const [what, reason, spoil] of [
    ["a changed file", "Uncommitted", (folder: string) => write(folder, "a.txt", "changed\n")],
    ["an untracked file", "Uncommitted", (folder: string) => write(folder, "new.txt", "new\n")],
    [
      "a staged file",
      "Uncommitted",
      (folder: string) => {
        write(folder, "a.txt", "staged\n")
        git(folder, "add", "a.txt")
      }
    ],
    [
      "a change that git was told not to see",
      "Uncommitted",
      (folder: string) => {
        git(folder, "update-index", "--assume-unchanged", "a.txt")
        write(folder, "a.txt", "hidden\n")
      }
    ],
    [
      "an untracked file that the configuration hides",
      "Uncommitted",
      (folder: string) => {
        git(folder, "config", "status.showUntrackedFiles", "no")
        write(folder, "new.txt", "new\n")
      }
    ],
    [
      "a commit that is not merged",
      "Unmerged",
      (folder: string) => {
        write(folder, "work.txt", "work\n")
        commit(folder, "work")
      }
    ],
    [
      "a commit on no branch",
      "Unmerged",
      (folder: string) => {
        git(folder, "switch", "--quiet", "--detach")
        write(folder, "work.txt", "work\n")
        commit(folder, "work")
      }
    ],
    ["a bisection under way", "Unfinished", (folder: string) => git(folder, "bisect", "start")],
    ["a lock", "Locked", (folder: string) => git(folder, "worktree", "lock", folder)]
  ] as const) {
    it.live(`${what} keeps it`, () =>
      Effect.gen(function* () {
        const { folder, spec } = yield* world
        yield* prepare(spec)
        spoil(folder)
        assert.strictEqual(yield* keptBecause(spec), reason)
      })
    )
  }

  it.live("unmerged commits on the agent's branch keep it though the worktree stands elsewhere", () =>
    Effect.gen(function* () {
      const { folder, spec } = yield* world
      yield* prepare(spec)
      write(folder, "work.txt", "work\n")
      commit(folder, "work")
      git(folder, "switch", "--quiet", "--detach", "main")
      assert.strictEqual(yield* keptBecause(spec), "Unmerged")
    })
  )

  it.live("a commit that only a detached HEAD holds is merged nowhere", () =>
    Effect.gen(function* () {
      const { folder, repository, spec } = yield* world
      yield* prepare(spec)
      write(folder, "work.txt", "work\n")
      commit(folder, "work")
      git(repository, "switch", "--quiet", "--detach", "agentd/builder")
      assert.strictEqual(yield* keptBecause(spec), "NoBaseBranch")
    })
  )

  it.live("a process that works in it keeps it", () =>
    Effect.gen(function* () {
      const { folder, spec } = yield* world
      yield* prepare(spec)
      fs.mkdirSync(path.join(folder, "ignored"))
      const child = yield* Effect.acquireRelease(
        Effect.callback<ReturnType<typeof spawn>>((resume) => {
          const child = spawn("sleep", ["300"], { cwd: path.join(folder, "ignored"), stdio: "ignore" })
          child.once("spawn", () => resume(Effect.succeed(child)))
        }),
        (child) => Effect.sync(() => child.kill("SIGKILL"))
      )
      assert.strictEqual(yield* keptBecause(spec), "InUse")
      const gone = new Promise((resolve) => child.once("exit", resolve))
      child.kill("SIGKILL")
      yield* Effect.promise(() => gone)
      assert.deepStrictEqual(yield* remove(spec), { _tag: "Removed" })
    })
  )

  it.live("a branch that somebody has checked out elsewhere stays when the worktree goes", () =>
    Effect.gen(function* () {
      const { folder, home, repository, spec } = yield* world
      yield* prepare(spec)
      git(folder, "switch", "--quiet", "--detach")
      const elsewhere = path.join(home, "elsewhere")
      git(repository, "worktree", "add", "--quiet", elsewhere, "agentd/builder")
      assert.deepStrictEqual(yield* remove(spec), { _tag: "Removed" })
      assert.strictEqual(git(elsewhere, "status", "--porcelain"), "")
      assert.strictEqual(git(elsewhere, "branch", "--show-current"), "agentd/builder")
    })
  )

  it.live("a folder that is no worktree is not touched", () =>
    Effect.gen(function* () {
      const { folder, spec } = yield* world
      write(folder, "mine.txt", "precious\n")
      assert.strictEqual(yield* keptBecause(spec), "Unknown")
    })
  )
})
