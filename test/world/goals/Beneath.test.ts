/** Goals that take turns on one agent's branch: each is merged without the commits of the others. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { caller, commit, git, run, type World } from "./World.ts"
import { long } from "../../support/Long.ts"

const plan = (world: World, ...ids: ReadonlyArray<string>) =>
  world.file(...ids.map((id, n) => ({ id, title: id, owner: "bob", ...(n === 0 ? {} : { dependsOn: [ids[n - 1]] }) })))

/** Goals with a task after the other, each on bob's branch, in the order in which their turns are let go on. */
const bob = (
  world: World,
  writes: (task: string) => readonly [string, string] | undefined,
  order: ReadonlyArray<string>
) => {
  const place = world.worktree("bob")
  const doing: Array<string> = []
  world.crew.add(
    "bob",
    ({ messageId }) =>
      Effect.gen(function* () {
        const task = messageId.split("/")[2]!
        doing.push(task)
        // the next in order has been asked for before this one ends
        const written = writes(task)
        if (written !== undefined) commit(place.cwd, task, { [written[0]]: written[1] })
        if (order.includes(task)) return yield* Effect.never
        return { output: task }
      }),
    place
  )
  return { ...place, doing }
}
const own = (task: string) => [`${task}.txt`, `${task}\n`] as const
const inMain = (world: World) => ["a", "b", "c", "d"].filter((id) => existsSync(join(world.root, `${id}.txt`))).join("")
const refusal = (refused: { readonly message: string }) =>
  `${refused.message}\n${"remedy" in refused ? String(refused.remedy) : ""}`

describe("goals on one agent's branch", () => {
  it.live("a goal is merged without what a cancelled one has done beneath it, which is kept by its name", () =>
    run((world) =>
      Effect.gen(function* () {
        world.repository()
        const { doing } = bob(world, own, ["c"])
        yield* world.submit({ plan: plan(world, "a", "c") })
        yield* world.until("g1", "c is under way", () => doing.includes("c"))
        yield* world.submit({ plan: plan(world, "b") })
        const { message } = yield* world.goals.cancel("g1", "", caller)
        assert.strictEqual(message, "g1 is stopped; any commits of bob for it are kept as agentd/kept/bob/g1.")
        yield* world.state("g2", "goal_met")
        const { message: merged } = yield* world.merge("g2")
        assert.strictEqual(merged, "1 merged into main, 0 already there.")
        assert.strictEqual(inMain(world), "b")
        assert.strictEqual(git(world.root, "log", "--format=%s", "-1").trim(), "Merge agentd/bob: ship it")
        assert.strictEqual(git(world.root, "show", "agentd/kept/bob/g1:a.txt").trim(), "a")
        assert.match((yield* world.merge("g2")).message, /^0 merged into main, 1 already there/)
      })
    )
  )

  long.live("two goals that take turns are merged one after the other", () =>
    run((world) =>
      Effect.gen(function* () {
        world.repository()
        bob(world, own, [])
        yield* world.submit({ plan: plan(world, "a", "c") })
        yield* world.submit({ plan: plan(world, "b", "d") })
        yield* world.state("g1", "goal_met")
        yield* world.state("g2", "goal_met")
        const made = git(world.root, "log", "--format=%s", "--reverse", "main..agentd/bob").trim().replaceAll("\n", "")
        assert.notStrictEqual(made.replace(/[bd]{2}|[ac]{2}/, ""), "", `they took no turns: ${made}`)
        yield* world.merge("g1")
        assert.strictEqual(inMain(world), "ac")
        yield* world.merge("g2")
        assert.strictEqual(inMain(world), "abcd")
      })
    )
  )

  it.live("a goal that looks late at what its agent has done merges none of another goal's", () =>
    run((world) =>
      Effect.gen(function* () {
        world.repository()
        const { doing } = bob(world, own, [])
        const { fate } = world.crew.service
        Object.assign(world.crew.service, {
          fate: (...asked: Parameters<typeof fate>) =>
            Effect.tap(fate(...asked), ({ _tag }) => Effect.sleep(_tag === "Ended" ? "1 second" : 0))
        })
        yield* world.submit({ plan: plan(world, "a", "c") })
        yield* world.submit({ plan: plan(world, "b", "d") })
        yield* world.state("g1", "goal_met")
        yield* world.state("g2", "goal_met")
        assert.sameMembers(doing, ["a", "b", "c", "d"])
        yield* world.merge("g1")
        assert.strictEqual(inMain(world), "ac")
        yield* world.merge("g2")
        assert.strictEqual(inMain(world), "abcd")
      })
    )
  )

  it.live("a goal without a commit of its own is not said to be in the branch with another goal's commits", () =>
    run((world) =>
      Effect.gen(function* () {
        world.repository()
        bob(world, (task) => (task === "b" ? undefined : own(task)), [])
        yield* world.submit({ plan: plan(world, "a") })
        yield* world.state("g1", "goal_met")
        yield* world.submit({ plan: plan(world, "b") })
        yield* world.state("g2", "goal_met")
        assert.strictEqual(
          refusal(yield* Effect.flip(world.merge("g2"))),
          "There is nothing to merge: no task of g2 has a commit on its own branch.\nSee where its tasks were done: agentd goal show g2"
        )
        assert.strictEqual(inMain(world), "")
        yield* world.merge("g1")
        assert.match((yield* world.merge("g2")).message, /^0 merged into main, 1 already there/)
      })
    )
  )

  it.live("what is built on another goal's commits says on which, and what goes on", () =>
    run((world) =>
      Effect.gen(function* () {
        world.repository()
        const lines: Array<string> = []
        bob(world, (task) => ["same.txt", `${(lines.push(task), lines).join("\n")}\n`], [])
        yield* world.submit({ plan: plan(world, "a") })
        yield* world.state("g1", "goal_met")
        yield* world.submit({ plan: plan(world, "b") })
        yield* world.state("g2", "goal_met")
        assert.strictEqual(
          refusal(yield* Effect.flip(world.merge("g2"))),
          "agentd/bob: the work of g2 there is built on commits of g1 (goal_met): without them it conflicts in same.txt.\nMerge that goal first: agentd goal merge g1"
        )
        yield* world.merge("g1")
        yield* world.merge("g2")
        assert.strictEqual(git(world.root, "show", "main:same.txt").trim(), "a\nb")
      })
    )
  )
})
