/** Real repositories, real worktrees, real commands. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as GitMerge from "../../../src/goals/GitMerge.ts"
import { caller, commit, git, run, type World } from "./World.ts"
import { long } from "../../support/Long.ts"

/** An agent that commits one file in its worktree. */
const committer = (world: World, agent: string, file: (task: string) => readonly [string, string]) => {
  const place = world.worktree(agent)
  world.crew.add(
    agent,
    ({ messageId }) =>
      Effect.sync(() => {
        const task = messageId.split("/")[2]!
        const [name, text] = file(task)
        commit(place.cwd, `${task} by ${agent}`, { [name]: text })
        return { output: `did ${task}` }
      }),
    place
  )
  return place.cwd
}
const own = (task: string) => [`${task}.txt`, `${task}\n`] as const
const TWO = [
  { id: "a", title: "a", owner: "bob" },
  { id: "b", title: "b", owner: "eve" }
]

describe("Merge", () => {
  it.live("evidence holds the commits since the task began; done work is merged into what is checked out", () =>
    run((world) =>
      Effect.gen(function* () {
        world.repository()
        committer(world, "bob", own)
        committer(world, "eve", own)
        yield* world.submit({ plan: world.file(...TWO, { id: "c", title: "c", owner: "bob", dependsOn: ["a"] }) })
        yield* world.state("g1", "goal_met")
        const evidence = (yield* world.runes)
          .filter(({ kind }) => kind === "plan.task_completed")
          .map(({ payload }) => payload["evidence"] as { branch: string; commits: ReadonlyArray<string> })
        assert.deepStrictEqual(
          evidence
            .map(({ branch, commits }) => `${branch}: ${commits.map((line) => line.replace(/^\w+ /, "")).join()}`)
            .toSorted(),
          ["agentd/bob: a by bob", "agentd/bob: c by bob", "agentd/eve: b by eve"]
        )
        // what is done after the goal is not merged
        commit(join(world.folder, "eve"), "later", { "later.txt": "no\n" })
        const reply = yield* world.merge("g1")
        assert.strictEqual(reply.target, "main")
        assert.match(reply.message, /2 merged into main/)
        for (const file of ["a.txt", "b.txt", "c.txt"]) assert.isTrue(existsSync(join(world.root, file)), file)
        assert.isFalse(existsSync(join(world.root, "later.txt")))
        assert.strictEqual(git(world.root, "status", "--porcelain"), "")
        const again = yield* world.merge("g1")
        assert.match(again.message, /0 merged into main, 2 already there/)
      })
    )
  )

  it.live("what conflicts is named and left alone, the rest is merged, nothing is forced", () =>
    run((world) =>
      Effect.gen(function* () {
        world.repository()
        git(world.root, "branch", "release")
        committer(world, "bob", (task) => ["same.txt", `${task} of bob\n`])
        committer(world, "eve", (task) => ["same.txt", `${task} of eve\n`])
        yield* world.submit({ plan: world.file(...TWO), rounds: 1 })
        const goal = yield* world.state("g1", "blocked")
        assert.strictEqual(goal.reason, "1 reviews did not pass")
        const { findings } = yield* world.goals.page("g1", 0, caller)
        assert.match(findings[0]!.message, /conflicts with the rest of the work in same.txt/)
        const refused = yield* Effect.flip(
          world.goals.merge("g1", { into: "release", unreviewed: false, all: false }, caller)
        )
        assert.match(refused.message, /g1 is not met: it is blocked/)
        const reply = yield* world.goals.merge("g1", { into: "release", unreviewed: true, all: false }, caller)
        assert.deepStrictEqual(
          reply.results.map(({ conflicts, outcome }) => [outcome, conflicts]),
          [
            ["merged", []],
            ["conflict", ["same.txt"]]
          ]
        )
        assert.match(reply.message, /conflicts in same.txt: nothing was forced/)
        assert.match(git(world.root, "show", "release:same.txt"), /of (bob|eve)/)
        assert.strictEqual(git(world.root, "log", "--oneline", "main").split("\n").length, 1)
      })
    )
  )

  long.live("another goal's work on the same branch is told to the critic, and merged only where that is said", () =>
    run((world) =>
      Effect.gen(function* () {
        world.repository()
        const place = committer(world, "bob", own)
        yield* world.submit({ plan: world.file(TWO[0]!) })
        yield* world.state("g1", "goal_met")
        // and what somebody did there by hand
        commit(place, "by hand", { "hand.txt": "x\n" })
        yield* world.submit({ plan: world.file({ id: "z", title: "z", owner: "bob" }) })
        yield* world.state("g2", "goal_met")
        const { findings } = yield* world.goals.page("g2", 0, caller)
        const warning = findings.find(({ severity }) => severity === "warning")?.message ?? ""
        assert.match(
          warning,
          /agentd\/bob contains 2 commits of no task of this goal: \w{12} by hand; \w{12} a by bob, merged only if a person requests it/
        )
        const only = { into: null, unreviewed: false, all: false }
        const refused = yield* Effect.flip(world.merge("g2", only))
        assert.match(refused.message, /contains 2 commits of no task/)
        assert.match("remedy" in refused ? refused.remedy : "", /agentd goal merge g2 --all/)
        assert.isFalse(existsSync(join(world.root, "z.txt")))
        yield* world.merge("g1", only)
        assert.isFalse(existsSync(join(world.root, "hand.txt")))
        assert.match((yield* Effect.flip(world.merge("g2", only))).message, /contains a commit of no task/)
        yield* world.merge("g2", { ...only, all: true })
        for (const file of ["a.txt", "hand.txt", "z.txt"]) assert.isTrue(existsSync(join(world.root, file)), file)
      })
    )
  )

  it.live("what cannot be told from another's work is not taken for the goal's own", () =>
    run((world) =>
      Effect.gen(function* () {
        world.repository()
        const target = git(world.root, "rev-parse", "HEAD").trim()
        const place = world.worktree("bob")
        commit(place.cwd, "of nobody knows whom", { "x.txt": "x\n" })
        const head = git(place.cwd, "rev-parse", "HEAD").trim()
        const store = (yield* world.gitStore)!
        const foreign = (from: string | null) =>
          Effect.provide(GitMerge.foreign(store, target, { head, spans: [{ from, to: head }] }), NodeFileSystem.layer)
        assert.lengthOf(yield* foreign(target), 0)
        assert.lengthOf(yield* foreign(null), 1)
        assert.strictEqual((yield* Effect.flip(foreign("f".repeat(40))))._tag, "GitFailed")
        // tasks in a row, and one that took the branch back and went on again
        commit(place.cwd, "second", { "y.txt": "y\n" })
        const last = git(place.cwd, "rev-parse", "HEAD").trim()
        const row = [
          { from: head, to: last },
          { from: target, to: head },
          { from: last, to: last }
        ]
        const back = [...row, { from: last, to: head }]
        for (const spans of [row, back])
          assert.lengthOf(
            yield* Effect.provide(GitMerge.foreign(store, target, { head: last, spans }), NodeFileSystem.layer),
            0
          )
      })
    )
  )

  it.live("a checkout is the person's: what it is to be brought to is said, and nothing is touched", () =>
    run((world) =>
      Effect.gen(function* () {
        world.repository()
        committer(world, "bob", own)
        yield* world.submit({ plan: world.file(TWO[0]!) })
        yield* world.state("g1", "goal_met")
        writeFileSync(join(world.root, "README.md"), "mine\n")
        const how = { into: null, unreviewed: false, all: false }
        const { eventId, message, toCheckout } = yield* world.goals.merge("g1", how, caller)
        assert.strictEqual(eventId, 0)
        assert.match(message, /main is checked out in .*: git merge --ff-only \w{40} there/)
        assert.strictEqual(git(world.root, "status", "--porcelain"), "M README.md")
        assert.notInclude(yield* world.kinds, "merged")
        const done = { from: toCheckout!.from, commit: toCheckout!.commit }
        const early = yield* Effect.flip(world.goals.merge("g1", { ...how, done }, caller))
        assert.match(early.message, /main does not have \w{12}/)
        const nowhere = yield* Effect.flip(world.goals.merge("g1", { ...how, into: "nope" }, caller))
        assert.match(nowhere.message, /There is no branch "nope"/)
      })
    )
  )
})

describe("Gate", () => {
  it.live("checks run on the work of all, merged; one that fails goes back to who did the work", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          world.repository()
          committer(world, "bob", own)
          committer(world, "eve", (task) => [task === "b" ? "b.txt" : "fixed.txt", "x\n"])
          yield* world.submit({
            plan: world.file(...TWO),
            checks: ["test -f a.txt && test -f b.txt", 'test -f fixed.txt || { echo "no fixed.txt"; exit 3; }']
          })
          yield* world.state("g1", "blocked")
          const { findings, tasks } = yield* world.goals.page("g1", 0, caller)
          assert.deepStrictEqual(
            findings.map(({ severity }) => severity),
            ["info", "error"]
          )
          assert.match(findings[1]!.message, /ended with exit code 3, without a sandbox: [^\n]+:\nno fixed.txt/)
          assert.match(tasks[2]!.title, /^Make `test -f fixed.txt/)
          assert.isTrue(existsSync(join(world.folder, "scratch/c/g1/a.txt")), "a checkout of our own")
          yield* world.goals.cancel("g1", "seen", caller)
          yield* world.until("g1", "it is gone", () => !existsSync(join(world.folder, "scratch/c/g1")))
        }),
      { goals: { rounds: 1 } }
    )
  )

  long.live("a checkout of our own that a git was cut off in is made anew", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          world.repository()
          committer(world, "bob", own)
          committer(world, "eve", (task) => [task === "b" ? "b.txt" : "fixed.txt", "x\n"])
          yield* world.submit({ plan: world.file(...TWO), checks: ["test -f fixed.txt"] })
          yield* world.state("g1", "blocked")
          writeFileSync(join(world.folder, "scratch/c/g1/.git/index.lock"), "")
          yield* world.goals.retry("g1", null, caller)
          yield* world.until("g1", "the next review", ({ state }) => state === "goal_met" || state === "blocked")
          const { findings } = yield* world.goals.page("g1", 0, caller)
          for (const { message } of findings) assert.notMatch(message, /could not be checked out/)
        }),
      { goals: { rounds: 1 } }
    )
  )

  it.live("work that is not committed is found before any command runs", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          world.repository()
          const cwd = committer(world, "bob", own)
          const { script } = world.crew.agents.get("bob")!
          world.crew.agents.get("bob")!.script = (message, n) =>
            Effect.tap(script(message, n), () =>
              Effect.sync(() => writeFileSync(join(cwd, "README.md"), `half ${n}\n`))
            )
          yield* world.submit({ plan: world.file(TWO[0]!) })
          yield* world.state("g1", "blocked")
          const { findings } = yield* world.goals.page("g1", 0, caller)
          assert.match(findings[0]!.message, /agentd\/bob has changes that are not committed: +M README.md/)
        }),
      { goals: { rounds: 1 } }
    )
  )

  it.live("a check that takes too long is ended", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          world.crew.add("bob", () => Effect.succeed({ output: "done" }))
          yield* world.submit({ plan: world.file({ id: "a", title: "a" }), checks: ["sleep 100"] })
          yield* world.state("g1", "blocked")
          const { findings } = yield* world.goals.page("g1", 0, caller)
          assert.match(findings[0]!.message, /`sleep 100` took longer than 100ms/)
        }),
      { goals: { rounds: 1, checkTimeout: 100 } }
    )
  )
})
