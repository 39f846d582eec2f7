/**
 * Finding: the daemon's own git runs what an agent plants. A repository that an agent writes can
 * make git execute a command in some fifty ways; each is planted here, and every command of the
 * daemon's is run on it. The canary shows that the plant works: a person's git, in that checkout,
 * runs it.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFile, execFileSync, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { createServer } from "node:http"
import * as os from "node:os"
import * as path from "node:path"
import { afterAll, beforeAll } from "vitest"
import * as Git from "../../src/runs/git/Git.ts"
import { keyOf } from "../../src/runs/git/AgentRepositoryRecord.ts"
import * as GitStore from "../../src/runs/git/GitStore.ts"
import * as GitCheckout from "../../src/runs/git/GitCheckout.ts"
import * as TreeDiff from "../../src/runs/git/TreeDiff.ts"
import * as GitMerge from "../../src/goals/GitMerge.ts"
import { type Vector, VECTORS } from "./Planted.ts"
import { long, sample } from "../support/Long.ts"

const base = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "agentd-planted-")))
const canary = path.join(base, "canary-was-here")
const program = path.join(base, "canary.sh")
const home = path.join(base, "home")
const environment = {
  PATH: process.env["PATH"]!,
  HOME: home,
  LC_ALL: "C",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_TERMINAL_PROMPT: "0"
}
const sh = (cwd: string, script: string, extra: Record<string, string> = {}) =>
  execFileSync("sh", ["-c", script], {
    cwd,
    env: { ...environment, ...extra },
    stdio: ["ignore", "pipe", "pipe"]
  }).toString()

/** A server that asks for a password. */
const server = createServer((_, response) => {
  response.writeHead(401, { "www-authenticate": "Basic realm=x" })
  response.end()
})

/** A person's repository with two branches that both change `f`, and a checkout of it: a clone, or a worktree. */
const ground = (folder: string, linked: boolean) => {
  fs.mkdirSync(path.join(folder, "person"), { recursive: true })
  fs.mkdirSync(path.join(folder, "beside"))
  sh(
    path.join(folder, "person"),
    `git init -q; printf 'a\nb\nc\nd\ne\nf\ng\n' > f; printf '1\n' > g; git add .; git commit -qm one
     git branch side; printf '* filter=x diff=x merge=x\n' > .gitattributes; printf 'A\nb\nc\nd\ne\nf\ng\n' > f; git add .; git commit -qm two
     git checkout -q side; printf 'a\nb\nc\nd\ne\nf\nG\n' > f; git commit -qam side; git checkout -q main`
  )
  sh(
    path.join(folder, "person"),
    linked
      ? "git worktree add -q -b agent ../tree"
      : "git clone -q . ../tree; cd ../tree; git branch -q side origin/side; git remote remove origin; git checkout -q -b agent"
  )
}

/** A branch ahead of the agent's, to fast-forward to. */
const AHEAD = `t=$(git rev-parse HEAD^{tree}); b=$(printf '9\n' | git hash-object -w --stdin --no-filters)
n=$( (git ls-tree $t | grep -v '	g$'; printf '100644 blob %s	g\n' $b) | git mktree)
git update-ref refs/heads/ahead $(git commit-tree $n -p HEAD -m ahead)`

beforeAll(async () => {
  fs.mkdirSync(home)
  fs.writeFileSync(
    path.join(home, ".gitconfig"),
    "[user]\n\tname = p\n\temail = p@localhost\n[init]\n\tdefaultBranch = main\n"
  )
  fs.writeFileSync(program, `#!/bin/sh\n: > ${canary}\n[ "$1" = cat ] && exec cat\nexit 0\n`, { mode: 0o755 })
  ground(path.join(base, "ground"), false)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
})
afterAll(() => {
  server.close()
  fs.rmSync(base, { recursive: true, force: true })
})

/** A ground of its own with the vector planted. */
const planted = ({ linked = false, plant }: Vector, n: number) => {
  const folder = path.join(base, `v${n}`)
  // a worktree knows its place; a clone can be copied
  if (linked) ground(folder, true)
  else
    fs.cpSync(path.join(base, "ground"), folder, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true })
  const tree = path.join(folder, "tree")
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  sh(tree, `${AHEAD}\n${plant}\ntrue`, {
    C: program,
    E: path.join(folder, "beside"),
    HTTP: `http://127.0.0.1:${port}`
  })
  fs.rmSync(canary, { force: true })
  return { folder, tree, person: path.join(folder, "person"), victim: path.join(folder, "beside/victim") }
}
type Planted = ReturnType<typeof planted>

/** Whether what was planted has run, or has written where it should not. */
const fired = ({ victim }: Planted) => {
  const wrote = fs.existsSync(victim) && fs.readdirSync(victim).length > 0
  const ran = fs.existsSync(canary)
  fs.rmSync(canary, { force: true })
  if (wrote) for (const name of fs.readdirSync(victim)) fs.rmSync(path.join(victim, name), { recursive: true })
  return ran || wrote
}

/** A person's commands in a checkout, the likeliest to fire first. */
const PLAIN =
  `status|diff|log -p --max-count=2|merge-tree --write-tree agent side|fetch origin|update-ref refs/heads/y HEAD
checkout --quiet --force --detach ahead|checkout --quiet --force agent|merge --no-edit side|commit -qam x|rebase -q ahead
show HEAD|gc --auto`.split(/[|\n]/)

const plainly = (of: Planted, { below = "" }: Vector) =>
  Effect.gen(function* () {
    const cwd = path.join(of.tree, below)
    for (const command of PLAIN) {
      // asynchronous: the server that asks for a password is this process
      yield* Effect.callback<void>((resume) => {
        execFile("git", command.split(" "), { cwd, env: environment, timeout: 20_000 }, () => resume(Effect.void))
      })
      if (fired(of)) return command
      fs.writeFileSync(path.join(of.tree, "f"), `${command}\n`)
    }
    return undefined
  })

/** Commands that a hostile tree must not reach through, each as the daemon can give it. */
const callsOf = (gitDir: string, workTree: string, head: string): ReadonlyArray<Git.Call> => {
  const of = { gitDir, workTree }
  return [
    { ...of, command: "rev-parse", options: ["--verify", "--quiet"], names: ["HEAD^{commit}"] },
    { ...of, command: "for-each-ref", options: ["--format=%(refname)"], names: ["refs/person/heads/"] },
    { ...of, command: "ls-files", options: ["-v"] },
    { ...of, command: "read-tree", names: [head] },
    { ...of, command: "update-index", options: ["-q", "--refresh"] },
    { ...of, command: "diff-index", options: ["--patch"], names: [head] },
    { ...of, command: "status", options: ["--porcelain", "--untracked-files=all"] },
    { ...of, command: "status", paths: [] },
    { ...of, command: "log", options: ["-p", "--max-count=5"], names: [head], paths: [] },
    { ...of, command: "merge-base", options: ["--is-ancestor"], names: [head, "refs/person/heads/side"] },
    { ...of, command: "merge-tree", options: ["--write-tree"], names: [head, "refs/person/heads/side"] },
    { ...of, command: "commit-tree", options: ["-m", "x"], names: [`${head}^{tree}`] },
    { ...of, command: "update-ref", names: ["refs/y", head] },
    { ...of, command: "cat-file", options: ["blob", "HEAD:f"] },
    { ...of, command: "check-attr", options: ["filter"], paths: ["f"] }
  ]
}

/** All that the daemon does with an agent's checkout; answers with what let the plant run, and how much git has done. */
const byDaemon = (of: Planted) =>
  Effect.gen(function* () {
    const found: Array<string> = []
    let worked = 0
    const step = Effect.fnUntraced(function* <A>(
      name: string,
      step: Effect.Effect<A, GitStore.Trouble | GitMerge.MergeRefused, never>
    ) {
      const result = yield* Effect.result(step)
      if (fired(of)) found.push(name)
      if (result._tag === "Success") worked++
      return result._tag === "Success" ? result.success : undefined
    })
    const stores = path.join(of.folder, "state/store")
    const files = Effect.provide(NodeFileSystem.layer)
    const store = (yield* step("open", files(GitStore.open(stores, of.person))))!
    const taken = yield* step("take over", files(GitStore.takeOver(store, of.tree)))
    const person = (yield* step("the person's", files(GitStore.commitOf(store, "HEAD"))))!
    const head = taken ?? person
    yield* step("status", files(GitStore.changes(store, of.tree, "all", head)))
    yield* step("diff", files(TreeDiff.diff(store, stores, of.tree)))
    const gitDir = path.join(store.gitDir, "trees", keyOf(of.tree))
    for (const call of callsOf(gitDir, of.tree, head)) yield* step(call.command, Git.git(call))
    const works = [{ branch: "agentd/x", head, tasks: ["t"], spans: [] }]
    yield* step("foreign", files(GitMerge.foreign(store, person, works[0]!)))
    const side = yield* step("side", files(GitStore.commitOf(store, "side")))
    const merged = yield* step("combine", files(GitMerge.combine(store, side ?? person, works, "it")))
    yield* step(
      "checks",
      files(GitCheckout.checkOut(store, path.join(of.folder, "state/goals/g1"), merged?.commit ?? head))
    )
    yield* step("again", files(GitCheckout.checkOut(store, path.join(of.folder, "state/goals/g1"), person)))
    yield* step("merge", files(GitMerge.into(store, "side", works, { goalId: "g1", what: "it" })))
    yield* step("into what is checked out", files(GitMerge.into(store, "main", works, { goalId: "g2", what: "it" })))
    return { found, worked }
  })

const hasLfs = spawnSync("git-lfs", ["version"]).status === 0

describe("what an agent plants in its checkout is not run by the daemon's git", () => {
  const fires: Array<string> = []
  VECTORS.forEach((vector, n) => {
    const live = vector.needs === "git-lfs" && !hasLfs ? it.live.skip : vector.more === undefined ? it.live : long.live
    live(vector.name, () =>
      Effect.gen(function* () {
        const of = planted(vector, n)
        const { found, worked } = yield* byDaemon(of)
        assert.deepStrictEqual(found, [])
        // the daemon can work all the same, or refuses for a reason of git's: it is not that nothing ran
        assert.isAbove(worked, 10)
        if ((yield* plainly(of, vector)) !== undefined) fires.push(vector.name)
        fs.rmSync(of.folder, { recursive: true, force: true })
      })
    )
  })

  it("and the plants work: a person's git runs most of them (the others need another version of git, or time)", () => {
    assert.isAtLeast(fires.length, sample(38, 18), fires.join(", "))
  })
})
