/**
 * Finding: an agent that is held works in a worktree of the person's repository, so that it can
 * write the person's branches and those of other agents. In a repository of its own it commits,
 * and what it writes there moves no branch but its own and runs nothing outside.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Worktree from "../../src/agents/workplace/Worktree.ts"
import * as ToolSandbox from "../../src/runs/ToolSandbox.ts"
import * as GitStore from "../../src/runs/git/GitStore.ts"
import * as Confined from "../support/Confined.ts"
import { held, missing } from "../support/toolbox.ts"
import { run as inGoals } from "../world/goals/World.ts"
import { long } from "../support/Long.ts"

const environment = { PATH: process.env["PATH"]!, HOME: "/nonexistent" }

const git = (folder: string, ...args: ReadonlyArray<string>) =>
  execFileSync("git", ["-C", folder, "-c", "user.name=p", "-c", "user.email=p@localhost", ...args], {
    encoding: "utf8",
    stdio: "pipe"
  }).trim()

/** A person's repository, a daemon's state beside it, and two agents with repositories of their own. */
const world = Effect.gen(function* () {
  const home = yield* Effect.acquireRelease(
    Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "agentd-own-")))),
    (home) => Effect.sync(() => fs.rmSync(home, { recursive: true, force: true }))
  )
  const [person, state, canary] = ["project", "state", "canary"].map((name) => path.join(home, name)) as [
    string,
    string,
    string
  ]
  fs.mkdirSync(person)
  git(person, "init", "--quiet", "--initial-branch=main")
  git(person, "config", "user.name", "ada")
  git(person, "config", "user.email", "ada@localhost")
  fs.writeFileSync(path.join(person, "f"), "1\n")
  git(person, "add", ".")
  git(person, "commit", "--quiet", "-m", "one")
  const spec = (agent: string): Worktree.WorktreeSpec => ({
    agent,
    repository: person,
    folder: path.join(state, "worktrees/p", agent),
    stores: path.join(state, "store")
  })
  const layer = Layer.merge(NodeFileSystem.layer, ToolSandbox.layer({ environment, hidden: [state] }))
  const asDaemon = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provide(effect, layer)
  const prepare = (agent: string) => asDaemon(Worktree.prepare(spec(agent)))
  const handOver = (agent: string) => asDaemon(Worktree.handOver(spec(agent)))
  const bob = (yield* prepare("bob")).folder
  fs.writeFileSync(path.join(bob, "b"), "bob's\n")
  git(bob, "add", ".")
  git(bob, "commit", "--quiet", "-m", "bob's")
  yield* handOver("bob")
  const eve = (yield* prepare("eve")).folder
  /** All that is the person's, but what is eve's of it. */
  const theirs = () => ({
    refs: git(person, "for-each-ref", "--format=%(refname) %(objectname)")
      .split("\n")
      .filter((line) => !line.includes("eve")),
    config: fs.readFileSync(path.join(person, ".git/config"), "utf8"),
    files: fs.readdirSync(path.join(person, ".git")).toSorted(),
    hooks: fs.existsSync(path.join(person, ".git/hooks")) ? fs.readdirSync(path.join(person, ".git/hooks")) : [],
    bob: git(bob, "log", "--format=%s %H")
  })
  return { home, person, state, canary, spec, bob, eve, asDaemon, prepare, handOver, theirs }
})
type World = Effect.Success<typeof world>

if (missing.length > 0) it.skip(`not tried, since this machine cannot: ${missing.join("; ")}`)

const WORK = "echo 2 >> f && git commit -qam work"

for (const mechanism of held) {
  /** Runs a script of eve's: its words, and `did N` for each line that worked. */
  const inside = (w: World, ...lines: ReadonlyArray<string>) =>
    Effect.map(
      Confined.run(
        mechanism,
        { workspace: w.eve, network: false, hidden: [w.state], environment },
        ["/bin/sh", "-c", lines.map((line, n) => `( ${line} ) && echo "did ${n}"`).join("\n")],
        environment
      ),
      ({ output }) => output
    )

  describe(`an agent that is held by ${mechanism.kind}, in a repository of its own`, () => {
    it.live("edits, commits by the person's name, rebases on the person's branch, and hands its branch over", () =>
      Effect.gen(function* () {
        const w = yield* world
        const output = yield* inside(
          w,
          WORK,
          "git log --format=%an -1 | grep -x ada",
          "git diff --stat main agentd/bob && git log --oneline main.. | grep work",
          "git merge -q --no-edit agentd/bob && test -f b",
          "echo x >> f && git stash -q && git stash pop -q && git checkout -q f",
          "git rebase -q main && git gc -q && git status --short"
        )
        assert.strictEqual(output.match(/did \d/g)?.length, 6, output)
        yield* w.handOver("eve")
        assert.strictEqual(git(w.person, "rev-parse", "agentd/eve"), git(w.eve, "rev-parse", "HEAD"))
        git(w.person, "merge", "--quiet", "--ff-only", "agentd/eve")
        assert.strictEqual(fs.readFileSync(path.join(w.person, "b"), "utf8"), "bob's\n")
        assert.strictEqual(git(w.person, "status", "--porcelain"), "")
        assert.deepStrictEqual(yield* w.asDaemon(Worktree.remove(w.spec("eve"))), { _tag: "Removed" })
      })
    )

    long.live("sees the person's branches as they stand when its next run begins", () =>
      Effect.gen(function* () {
        const w = yield* world
        fs.writeFileSync(path.join(w.person, "new"), "new\n")
        git(w.person, "add", ".")
        git(w.person, "commit", "--quiet", "-m", "later")
        yield* w.prepare("eve")
        assert.include(yield* inside(w, "git log -1 --format=%s main | grep later && git merge -q main"), "did 0")
      })
    )

    it.live("moves no branch of the person's or of another agent, by whatever it writes", () =>
      Effect.gen(function* () {
        const w = yield* world
        const before = w.theirs()
        const folder = path.join(w.person, ".git")
        const output = yield* inside(
          w,
          WORK,
          `git --git-dir ${folder} update-ref refs/heads/agentd/bob $(git rev-parse HEAD)`,
          `git --git-dir ${folder} update-ref refs/heads/main $(git rev-parse HEAD)`,
          `git --git-dir ${folder} symbolic-ref HEAD refs/heads/agentd/eve`,
          "git push -q --force person HEAD:refs/heads/main HEAD:refs/heads/agentd/bob",
          `echo x > ${folder}/refs/heads/x`,
          `echo x > ${folder}/packed-refs`,
          `echo x > ${folder}/objects/x`,
          `mkdir ${folder}/logs/x`
        )
        assert.deepStrictEqual(output.match(/did \d/g), ["did 0"], output)
        // in its own repository it may call anything what it likes
        yield* inside(
          w,
          "for b in main agentd/bob x; do git update-ref refs/heads/$b HEAD; git update-ref refs/remotes/$b HEAD; done",
          "git update-ref refs/person/heads/main HEAD; git update-ref refs/agents/x/head HEAD",
          "git symbolic-ref refs/heads/agentd/eve refs/heads/main"
        )
        yield* w.handOver("eve")
        yield* w.prepare("bob")
        assert.deepStrictEqual(w.theirs(), before)
        assert.strictEqual(git(w.person, "log", "-1", "--format=%s", "agentd/eve"), "work")
      })
    )

    long.live("floods the person's repository with no branches", () =>
      Effect.gen(function* () {
        const w = yield* world
        yield* inside(
          w,
          WORK,
          `for n in $(seq 2000); do echo "create refs/heads/b$n HEAD"; done | git update-ref --stdin`
        )
        yield* w.handOver("eve")
        assert.strictEqual(git(w.person, "log", "-1", "--format=%s", "agentd/eve"), "work")
        const refs = git(w.person, "for-each-ref", "--format=%(refname)", "refs/agentd").split("\n")
        assert.strictEqual(refs.filter((name) => name.includes("/eve-")).length, 2)
      })
    )

    long.live("writes neither the person's git folder nor the daemon's", () =>
      Effect.gen(function* () {
        const w = yield* world
        const before = w.theirs()
        const folder = path.join(w.person, ".git")
        const store = fs.readdirSync(path.join(w.state, "store")).find((name) => name.startsWith("project-"))!
        const daemons = () => execFileSync("find", [w.state, "-not", "-path", "*/p/eve/*"], { encoding: "utf8" })
        const was = daemons()
        const output = yield* inside(
          w,
          `echo evil > ${folder}/config`,
          `git --git-dir ${folder} config core.fsmonitor evil`,
          `mkdir -p ${folder}/hooks && echo evil > ${folder}/hooks/post-checkout`,
          `echo e > ${folder}/commondir`,
          `echo ref: refs/heads/evil > ${folder}/HEAD`,
          `mkdir -p ${folder}/info && echo '* filter=x' > ${folder}/info/attributes`,
          `cat ${w.state}/store/${store}/HEAD`,
          `cat ${w.bob}/b`
        )
        assert.isNull(output.match(/did \d/g), output)
        // that may succeed, in the private emptiness around its tree
        yield* inside(w, `echo ${w.eve} > ${w.state}/store/own/x`, `mkdir ${w.state}/worktrees/p/x`)
        assert.strictEqual(daemons(), was)
        assert.deepStrictEqual(w.theirs(), before)
      })
    )

    long.live("runs nothing outside by config, hooks, filters or commondir of its own", () =>
      Effect.gen(function* () {
        const w = yield* world
        const { canary } = w
        yield* inside(
          w,
          WORK,
          "mkdir -p .git/hooks h",
          `for h in pre-receive update post-receive reference-transaction post-checkout pre-commit push-to-checkout fsmonitor-watchman; do
             for d in .git/hooks h; do printf '#!/bin/sh\\ntouch ${canary}\\n' > $d/$h; chmod +x $d/$h; done; done`,
          `git config core.hooksPath "$PWD/h"; git config core.fsmonitor "touch ${canary}; true"`,
          `git config filter.x.clean "touch ${canary}; cat"; git config filter.x.smudge "touch ${canary}; cat"`,
          `git config uploadpack.packObjectsHook "touch ${canary}; git pack-objects"; git config remote.person.receivepack "touch ${canary}"`,
          `git config core.alternateRefsCommand "touch ${canary}"; git config gc.recentObjectsHook "touch ${canary}"`,
          "mkdir -p .git/info; echo '* filter=x' > .git/info/attributes; echo 3 > f",
          "mkdir .git/e; for n in objects refs logs packed-refs; do ln -s ../$n .git/e/$n; done; cp .git/config .git/e/; echo e > .git/commondir"
        )
        yield* w.handOver("eve")
        yield* w.prepare("eve")
        const store = (yield* w.asDaemon(GitStore.open(path.join(w.state, "store"), w.person)))!
        yield* w.asDaemon(GitStore.changes(store, w.eve, "all"))
        assert.deepInclude(yield* w.asDaemon(Worktree.remove(w.spec("eve"))), { _tag: "Kept", reason: "Uncommitted" })
        git(w.person, "status")
        git(w.person, "fetch", "--quiet", "--all")
        assert.isFalse(fs.existsSync(canary))
        try {
          git(w.eve, "status")
        } catch {
          // it only has to run what is planted
        }
        assert.isTrue(fs.existsSync(canary), "the plant does not work")
      })
    )

    for (const [what, turn] of [
      ["a link to the person's git folder", (w: World) => `ln -s ${w.person}/.git .git`],
      ["a file that names the person's git folder", (w: World) => `echo gitdir: ${w.person}/.git > .git`],
      ["a link to another agent's git folder", (w: World) => `ln -s ${w.bob}/.git .git`],
      ["a link to where a git folder of the daemon's lies", (w: World) => `ln -s ${w.state}/store .git`]
    ] as const) {
      long.live(`gains nothing by ${what} in place of its own`, () =>
        Effect.gen(function* () {
          const w = yield* world
          const before = w.theirs()
          yield* inside(w, WORK, `mv .git g && ${turn(w)}`)
          // its next run is mounted after that
          yield* inside(
            w,
            "git update-ref refs/heads/main $(git --git-dir g rev-parse HEAD)",
            "git update-ref refs/heads/agentd/bob $(git --git-dir g rev-parse HEAD)",
            "git config core.fsmonitor evil",
            "touch .git/evil"
          )
          yield* w.handOver("eve")
          assert.deepStrictEqual(w.theirs(), before)
          const refused = yield* Effect.flip(w.prepare("eve"))
          assert.strictEqual(refused._tag, "WorktreeError")
          const removal = yield* Effect.exit(w.asDaemon(Worktree.remove(w.spec("eve"))))
          assert.isFalse(removal._tag === "Success" && removal.value._tag === "Removed")
          assert.isTrue(fs.existsSync(path.join(w.eve, "g/HEAD")), "the work is still there")
          assert.deepStrictEqual(w.theirs(), before)
        })
      )
    }
  })

  describe(`a goal whose agents are held by ${mechanism.kind}`, () => {
    long.live("is worked on, checked in the agent's repository, reviewed and merged", () =>
      inGoals(
        (goals) =>
          Effect.gen(function* () {
            goals.repository()
            const state = path.join(goals.folder, "state")
            for (const agent of ["bob", "eve"]) {
              const spec = {
                agent,
                repository: goals.root,
                folder: path.join(state, "worktrees/p", agent),
                stores: path.join(state, "store")
              }
              const layer = Layer.merge(NodeFileSystem.layer, ToolSandbox.layer({ environment, hidden: [state] }))
              const { cwd } = yield* Effect.provide(Worktree.prepare(spec), layer)
              const rules = { workspace: cwd, network: false, hidden: [state], environment }
              const script = `echo ${agent} > ${agent}.txt; git add .; git -c user.name=a -c user.email=a@b commit -qm ${agent}
                if test ${agent} = eve; then git -c user.name=a -c user.email=a@b merge -q --no-edit "$(git --git-dir ${goals.root}/.git rev-parse agentd/bob)"; fi`
              const work = () =>
                Effect.map(Confined.run(mechanism, rules, ["/bin/sh", "-c", script], environment), ({ output }) => ({
                  output: `done ${output}`
                }))
              goals.crew.add(agent, work, { cwd, branch: `agentd/${agent}` })
            }
            yield* goals.submit({
              plan: goals.file(
                { id: "a", title: "a", owner: "bob" },
                { id: "b", title: "b", owner: "eve", dependsOn: ["a"] }
              ),
              checks: ["test -f bob.txt && test -f eve.txt", "git log --format=%s | grep -x first"]
            })
            yield* goals.state("g1", "goal_met")
            yield* goals.merge("g1")
            assert.strictEqual(git(goals.root, "show", "main:bob.txt", "main:eve.txt"), "bob\neve")
          }),
        { isHeld: true }
      )
    )
  })
}
