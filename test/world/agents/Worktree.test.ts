import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync, spawn } from "node:child_process"
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Worktree from "../../../src/agents/workplace/Worktree.ts"
import * as GitStore from "../../../src/runs/git/GitStore.ts"
import * as AgentRepositoryRecord from "../../../src/runs/git/AgentRepositoryRecord.ts"

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
const handOver = (spec: Worktree.WorktreeSpec) => Effect.provide(Worktree.handOver(spec), NodeFileSystem.layer)
const remove = (spec: Worktree.WorktreeSpec) => Effect.provide(Worktree.remove(spec), NodeFileSystem.layer)

/** A linked worktree of the person's repository, as agents had them before. */
const linked = ({ folder, repository }: Worktree.WorktreeSpec) => {
  fs.mkdirSync(path.dirname(folder), { recursive: true })
  git(repository, "worktree", "add", "--quiet", "-b", "agentd/builder", folder)
}

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

  it.live("a branch that was left behind, and is merged, is no beginning: the base is", () =>
    Effect.gen(function* () {
      const { folder, repository, spec } = yield* world
      git(repository, "branch", "agentd/builder")
      write(repository, "new.txt", "new\n")
      const base = commit(repository, "second")
      yield* prepare(spec)
      assert.strictEqual(git(folder, "rev-parse", "HEAD"), base)
      assert.strictEqual(git(folder, "branch", "--show-current"), "agentd/builder")
    })
  )

  it.live(
    "a branch that was left with work that is not merged is gone on from, and a person is told; so is one lock",
    () =>
      Effect.gen(function* () {
        const { folder, repository, spec } = yield* world
        git(repository, "switch", "--quiet", "-c", "agentd/builder")
        write(repository, "left.txt", "left\n")
        const left = commit(repository, "left")
        git(repository, "switch", "--quiet", "-")
        const said: Array<readonly [string, boolean]> = []
        const tell = (text: string, needs: boolean) => Effect.sync(() => void said.push([text, needs]))
        yield* prepare({ ...spec, tell })
        assert.strictEqual(git(folder, "rev-parse", "HEAD"), left)
        const begins = `it starts at ${left.slice(0, 12)}, because the branch agentd/builder has work that is not merged`
        assert.deepStrictEqual(said, [[begins, true]])
        const lock = path.join(folder, ".git", "index.lock")
        fs.writeFileSync(lock, "")
        fs.utimesSync(lock, 0, 0)
        yield* prepare({ ...spec, tell })
        assert.deepStrictEqual(said.slice(1), [[`agentd removed ${lock}, which a killed git process had left`, false]])
      })
  )

  it.live(
    "a lock that a killed git has left goes, in the agent's repository alone, and none while somebody works there",
    () =>
      Effect.gen(function* () {
        const { folder, repository, spec } = yield* world
        yield* prepare(spec)
        const names = [
          "index.lock",
          "HEAD.lock",
          "config.lock",
          "packed-refs.lock",
          "shallow.lock",
          "refs/heads/x.lock"
        ]
        const old = new Date(Date.now() - 60_000)
        for (const top of [folder, repository])
          for (const name of names) {
            fs.writeFileSync(path.join(top, ".git", name), "")
            fs.utimesSync(path.join(top, ".git", name), old, old)
          }
        const outside = path.join(repository, ".git", "refs", "heads")
        fs.symlinkSync(outside, path.join(folder, ".git", "refs", "linked"))
        const there = (top: string) => names.filter((name) => fs.existsSync(path.join(top, ".git", name)))
        yield* prepare(spec)
        assert.deepStrictEqual([there(folder), there(repository)], [[], names])
        const fresh = path.join(folder, ".git", "index.lock")
        fs.writeFileSync(fresh, "")
        yield* prepare(spec)
        assert.isFalse(fs.existsSync(fresh))
        // one that works there may hold it
        const working = spawn("sleep", ["60"], { cwd: folder, stdio: "ignore" })
        fs.writeFileSync(fresh, "")
        yield* prepare(spec)
        working.kill("SIGKILL")
        assert.isTrue(fs.existsSync(fresh))
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
      git(repository, "switch", "--quiet", "--create", "agentd/builder")
      write(repository, "work.txt", "work\n")
      const tip = commit(repository, "work")
      git(repository, "switch", "--quiet", "main")
      yield* prepare(spec)
      assert.strictEqual(git(folder, "rev-parse", "HEAD"), tip)
    })
  )

  it.live("a worktree whose folder was deleted is made again with all that was handed over", () =>
    Effect.gen(function* () {
      const { folder, spec } = yield* world
      yield* prepare(spec)
      write(folder, "work.txt", "work\n")
      const tip = commit(folder, "work")
      yield* handOver(spec)
      fs.rmSync(folder, { recursive: true })
      yield* prepare(spec)
      assert.strictEqual(git(folder, "rev-parse", "HEAD"), tip)
    })
  )

  it.live("a worktree that was cut off while it was made is made anew", () =>
    Effect.gen(function* () {
      const { folder, repository, spec } = yield* world
      yield* prepare(spec)
      const store = (yield* Effect.provide(GitStore.open(spec.stores, repository), NodeFileSystem.layer))!
      const making = `refs/making/${AgentRepositoryRecord.keyOf(folder)}`
      git(repository, "--git-dir", store.gitDir, "update-ref", making, "refs/person/heads/main")
      fs.rmSync(path.join(folder, "a.txt"))
      yield* prepare(spec)
      assert.strictEqual(git(folder, "status", "--porcelain"), "")
    })
  )

  it.live("a repository that was moved lends from where it is now", () =>
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

  it.live("names of the person's that exclude each other keep nobody from working", () =>
    Effect.gen(function* () {
      const { folder, repository, spec } = yield* world
      git(repository, "branch", "origin")
      git(repository, "update-ref", "refs/remotes/origin/main", "main")
      git(repository, "tag", "v1")
      yield* prepare(spec)
      write(repository, "later.txt", "later\n")
      const later = commit(repository, "later")
      yield* prepare(spec)
      assert.strictEqual(git(folder, "rev-parse", "v1"), git(folder, "rev-parse", "HEAD"))
      git(folder, "fetch", "--quiet", "person", "refs/heads/main:refs/remotes/main")
      assert.strictEqual(git(folder, "rev-parse", "main"), later)
    })
  )

  it.live(
    "settings, hooks and remotes of the person's repository are the agent's, too; those of its place are not",
    () =>
      Effect.gen(function* () {
        const { folder, home, repository, spec } = yield* world
        git(repository, "config", "alias.say", '!echo "it is \\"so\\""; #')
        git(repository, "config", "remote.origin.url", "https://git.example/x y.git")
        git(repository, "config", "filter.a b.clean", "cat")
        git(repository, "config", "core.worktree", "..")
        git(repository, "config", "core.bare", "false")
        write(repository, ".git/hooks/pre-commit", `#!/bin/sh\ntouch ${home}/hook-ran\n`)
        fs.chmodSync(path.join(repository, ".git/hooks/pre-commit"), 0o755)
        yield* prepare(spec)
        for (const name of ["user.name", "alias.say", "remote.origin.url", "filter.a b.clean"])
          assert.strictEqual(git(folder, "config", name), git(repository, "config", name))
        assert.throws(() => git(folder, "config", "core.worktree"))
        write(folder, "work.txt", "work\n")
        commit(folder, "work")
        assert.isTrue(fs.existsSync(path.join(home, "hook-ran")))
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
      assert.strictEqual(git(folder, "branch", "--show-current"), "agentd/builder")
      assert.include(git(spec.repository, "branch", "--list"), "agentd/builder")
      assert.notInclude(git(other.repository, "branch", "--list"), "agentd/builder")
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

  it.live("a worktree that has lost its git folder keeps its files", () =>
    Effect.gen(function* () {
      const { folder, spec } = yield* world
      yield* prepare(spec)
      write(folder, "new.txt", "precious\n")
      fs.rmSync(path.join(folder, ".git"), { recursive: true })
      assert.strictEqual(yield* refused(spec), "FolderTaken")
      assert.isTrue(fs.existsSync(path.join(folder, "new.txt")))
    })
  )
})

describe("a linked worktree of before", () => {
  it.live("becomes a repository of the agent's own with all that is in it, under way or not committed", () =>
    Effect.gen(function* () {
      const { folder, repository, spec } = yield* world
      linked(spec)
      write(folder, "work.txt", "work\n")
      const tip = commit(folder, "work")
      write(folder, "a.txt", "theirs\n")
      const theirs = commit(folder, "theirs")
      git(folder, "reset", "--quiet", "--hard", tip)
      write(folder, "a.txt", "mine\n")
      commit(folder, "mine")
      assert.throws(() => git(folder, "merge", theirs))
      write(folder, "staged.txt", "staged\n")
      git(folder, "add", "staged.txt")
      write(folder, "new.txt", "untracked\n")
      write(folder, "ignored/cache", "cached\n")
      const before = git(folder, "status", "--porcelain")
      assert.deepStrictEqual(yield* prepare(spec), { branch: "agentd/builder", folder, cwd: folder })
      assert.strictEqual(git(folder, "status", "--porcelain"), before)
      assert.isTrue(fs.existsSync(path.join(folder, "ignored/cache")))
      assert.isTrue(fs.statSync(path.join(folder, ".git")).isDirectory())
      assert.notInclude(git(repository, "worktree", "list"), folder)
      assert.include(git(folder, "reflog"), "theirs")
      git(folder, "checkout", "--quiet", "--ours", "a.txt")
      const merged = commit(folder, "merged")
      yield* handOver(spec)
      assert.strictEqual(git(repository, "rev-parse", "agentd/builder"), merged)
    })
  )

  it.live("that was cut off between its two git folders is ended", () =>
    Effect.gen(function* () {
      const { folder, spec } = yield* world
      linked(spec)
      write(folder, "new.txt", "untracked\n")
      yield* prepare(spec)
      fs.renameSync(path.join(folder, ".git"), `${AgentRepositoryRecord.recordOf(spec.stores, folder)}.git`)
      yield* prepare(spec)
      assert.strictEqual(git(folder, "status", "--porcelain"), "?? new.txt")
    })
  )

  it.live("that is on no branch, or on another, stays where it stands", () =>
    Effect.gen(function* () {
      const { folder, repository, spec } = yield* world
      linked(spec)
      git(folder, "switch", "--quiet", "--create", "feature")
      write(folder, "work.txt", "work\n")
      const tip = commit(folder, "work")
      assert.strictEqual((yield* prepare(spec)).branch, "feature")
      assert.strictEqual(git(folder, "rev-parse", "HEAD"), tip)
      const other = { ...spec, agent: "other", folder: path.join(path.dirname(folder), "other") }
      git(repository, "worktree", "add", "--quiet", "--detach", other.folder, "feature")
      write(other.folder, "more.txt", "more\n")
      const detached = commit(other.folder, "more")
      assert.isUndefined((yield* prepare(other)).branch)
      assert.strictEqual(git(other.folder, "rev-parse", "HEAD"), detached)
      git(repository, "branch", "--quiet", "-D", "feature")
      git(repository, "reflog", "expire", "--expire=now", "--all")
      git(repository, "gc", "--quiet", "--prune=now")
      assert.strictEqual(git(other.folder, "log", "-1", "--format=%s"), "more")
      git(folder, "fsck")
    })
  )

  it.live("that is locked, or has submodules, is left as it is, with what to do", () =>
    Effect.gen(function* () {
      const { folder, repository, spec } = yield* world
      linked(spec)
      const gitDir = path.join(repository, ".git/worktrees/builder")
      fs.mkdirSync(path.join(gitDir, "modules"))
      assert.strictEqual(yield* refused(spec), "Submodules")
      git(repository, "worktree", "lock", folder)
      assert.strictEqual(yield* refused(spec), "Locked")
      fs.renameSync(folder, `${folder}-away`)
      assert.strictEqual(yield* refused(spec), "Locked")
      fs.renameSync(`${folder}-away`, folder)
      assert.strictEqual(git(folder, "status", "--porcelain"), "")
    })
  )
})

describe("what the person's repository gets", () => {
  it.live("the agent's branch, moved by amends and rebases; what a person has moved stays", () =>
    Effect.gen(function* () {
      const { folder, repository, spec } = yield* world
      yield* prepare(spec)
      const tip = () => git(repository, "rev-parse", "--verify", "--quiet", "agentd/builder")
      for (const work of ["one", "two"]) {
        write(folder, "work.txt", `${work}\n`)
        commit(folder, work)
        yield* handOver(spec)
        assert.strictEqual(tip(), git(folder, "rev-parse", "HEAD"))
      }
      git(folder, "commit", "--quiet", "--amend", "-m", "better")
      yield* handOver(spec)
      assert.strictEqual(tip(), git(folder, "rev-parse", "HEAD"))
      assert.include(git(repository, "reflog", "agentd/builder"), "agentd/builder@{1}")
      const theirs = git(repository, "commit-tree", "-p", tip(), "-m", "a person's", `${tip()}^{tree}`)
      git(repository, "branch", "--force", "agentd/builder", theirs)
      write(folder, "work.txt", "three\n")
      const three = commit(folder, "three")
      yield* handOver(spec)
      assert.strictEqual(tip(), theirs)
      assert.strictEqual(
        git(repository, "rev-parse", `refs/agentd/trees/${AgentRepositoryRecord.keyOf(folder)}/head`),
        three
      )
      git(folder, "fetch", "--quiet", "person")
      git(folder, "merge", "--quiet", "--no-edit", "person/agentd/builder".replace("person/", "refs/remotes/"))
      yield* handOver(spec)
      assert.strictEqual(tip(), git(folder, "rev-parse", "HEAD"))
    })
  )

  it.live("a branch that a person has deleted comes back with more work, one that is checked out stays", () =>
    Effect.gen(function* () {
      const { folder, repository, spec } = yield* world
      yield* prepare(spec)
      git(repository, "branch", "--quiet", "-D", "agentd/builder")
      yield* handOver(spec)
      assert.strictEqual(git(repository, "branch", "--list", "agentd/*"), "")
      write(folder, "work.txt", "one\n")
      const one = commit(folder, "one")
      yield* handOver(spec)
      git(repository, "switch", "--quiet", "agentd/builder")
      write(folder, "work.txt", "two\n")
      commit(folder, "two")
      yield* handOver(spec)
      assert.strictEqual(git(repository, "rev-parse", "HEAD"), one)
      assert.strictEqual(git(repository, "status", "--porcelain"), "")
    })
  )

  it.live("the content of files of Git LFS, under the hash that it has, and by no link", () =>
    Effect.gen(function* () {
      const { folder, home, repository, spec } = yield* world
      yield* prepare(spec)
      write(home, "secret", "secret")
      const put = (text: string, name = text) => {
        const oid = createHash("sha256").update(name).digest("hex")
        const file = `lfs/objects/${oid.slice(0, 2)}/${oid.slice(2, 4)}/${oid}`
        write(folder, `.git/${file}`, text)
        return file
      }
      const [right, wrong, link] = [put("content"), put("other", "what it is not"), put("secret")]
      fs.rmSync(path.join(folder, ".git", link))
      fs.symlinkSync(path.join(home, "secret"), path.join(folder, ".git", link))
      yield* handOver(spec)
      assert.strictEqual(fs.readFileSync(path.join(repository, ".git", right), "utf8"), "content")
      assert.isFalse(fs.existsSync(path.join(repository, ".git", wrong)))
      assert.isFalse(fs.existsSync(path.join(repository, ".git", link)))
      assert.strictEqual(yield* keptBecause(spec), "Unmerged")
    })
  )

  it.live("nothing that a git gc of the person's could take away from the agent", () =>
    Effect.gen(function* () {
      const { folder, repository, spec } = yield* world
      git(repository, "switch", "--quiet", "--create", "feature")
      write(repository, "b.txt", "b\n")
      commit(repository, "feature")
      git(repository, "switch", "--quiet", "main")
      yield* prepare({ ...spec, base: "feature" })
      write(folder, "work.txt", "work\n")
      commit(folder, "work")
      write(folder, "a.txt", "stashed\n")
      git(folder, "stash", "--quiet")
      git(folder, "switch", "--quiet", "--create", "aside")
      write(folder, "aside.txt", "aside\n")
      commit(folder, "aside")
      yield* handOver(spec)
      // the agent's own gc drops what the person has; then the person drops it
      git(folder, "gc", "--quiet", "--prune=now")
      git(repository, "branch", "--quiet", "-D", "feature", "agentd/builder")
      git(repository, "reflog", "expire", "--expire=now", "--all")
      git(repository, "gc", "--quiet", "--prune=now")
      git(folder, "fsck", "--full")
      git(folder, "stash", "pop", "--quiet")
      assert.strictEqual(git(folder, "status", "--porcelain"), "M a.txt")
      assert.strictEqual(git(folder, "log", "--format=%s", "agentd/builder"), "work\nfeature\nfirst")
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
      yield* handOver(spec)
      git(repository, "merge", "--quiet", "agentd/builder")
      assert.deepStrictEqual(yield* remove(spec), { _tag: "Removed" })
      assert.isFalse(fs.existsSync(folder))
      assert.strictEqual(git(repository, "branch", "--list", "agentd/*"), "")
      assert.strictEqual(git(repository, "for-each-ref", "refs/agentd"), "")
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
    [
      "a stash",
      "Unmerged",
      (folder: string) => {
        write(folder, "a.txt", "stashed\n")
        git(folder, "stash", "--quiet")
      }
    ],
    [
      "a commit on another branch",
      "Unmerged",
      (folder: string) => {
        git(folder, "switch", "--quiet", "--create", "aside")
        write(folder, "work.txt", "work\n")
        commit(folder, "work")
        git(folder, "switch", "--quiet", "agentd/builder")
      }
    ],
    [
      "a commit that only a tag holds",
      "Unmerged",
      (folder: string) => {
        git(folder, "switch", "--quiet", "--detach")
        write(folder, "work.txt", "work\n")
        commit(folder, "work")
        git(folder, "tag", "aside")
        git(folder, "switch", "--quiet", "agentd/builder")
      }
    ]
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
      yield* handOver(spec)
      assert.strictEqual(yield* keptBecause(spec), "Unmerged")
    })
  )

  it.live("a commit that only a detached HEAD holds is merged nowhere", () =>
    Effect.gen(function* () {
      const { folder, repository, spec } = yield* world
      yield* prepare(spec)
      write(folder, "work.txt", "work\n")
      commit(folder, "work")
      yield* handOver(spec)
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
