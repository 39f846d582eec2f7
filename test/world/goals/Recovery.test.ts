/** The daemon's loss at any moment: nothing that ran to its end runs again, nothing is forgotten. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, References, Stream } from "effect"
import { existsSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import * as GoalHistory from "../../../src/goals/GoalHistory.ts"
import * as GoalMachine from "../../../src/goals/GoalMachine.ts"
import { readGoal } from "../../../src/goals/GoalActor.ts"
import { fold, recordsOf } from "../../../src/goals/GoalRegistry.ts"
import { says } from "./CrewDouble.ts"
import { caller, git, run, type World } from "./World.ts"

const FIVE = [
  { id: "a", title: "a" },
  { id: "b", title: "b", dependsOn: ["a"] },
  { id: "c", title: "c", dependsOn: ["a"] },
  { id: "d", title: "d", dependsOn: ["b", "c"] },
  { id: "e", title: "e" }
]

/** Every message was carried once, whoever posted it how often. */
const onlyOnce = (world: World) => {
  const { carried } = world.crew
  assert.strictEqual(new Set(carried).size, carried.length, `twice: ${carried.join(", ")}`)
}

describe("Recovery", () => {
  it.live("INV-TASK-SINGLE: the daemon is lost again and again; what ran to its end is not run again", () =>
    run((world) =>
      Effect.gen(function* () {
        const slowly = () => Effect.as(Effect.sleep("6 millis"), { output: "done" })
        world.crew.add("bob", slowly)
        world.crew.add("eve", slowly)
        yield* world.submit({ plan: world.file(...FIVE) })
        for (let loss = 0; loss < 6; loss++) {
          yield* Effect.sleep(`${3 + loss} millis`)
          yield* world.restart
        }
        const goal = yield* world.state("g1", "goal_met")
        assert.strictEqual(goal.tasks.completed, 5)
        onlyOnce(world)
        assert.lengthOf(world.crew.carried, 5)
        const ended = (yield* world.runes).filter(({ kind }) => kind === "plan.task_completed")
        assert.lengthOf(ended, 5)
      })
    )
  )

  for (const lastWord of ["lost", "untold"] as const) {
    it.live(
      `the disk goes away at any rune, which is ${lastWord}: after the restart each task runs to its end once`,
      () =>
        Effect.gen(function* () {
          let met = false
          for (let appends = 1; !met; appends++) {
            assert.isBelow(appends, 60, "the plan never came to its end")
            met = yield* run((world) =>
              Effect.gen(function* () {
                world.crew.add("bob", says("done"))
                world.crew.add("eve", (_, n) =>
                  Effect.succeed(n === 1 ? { outcome: "error" as const } : { output: "done" })
                )
                world.crew.add("judge", says('{"findings":[]}'))
                Object.assign(world, { appends, lastWord })
                const plan = world.file(
                  { id: "a", title: "a" },
                  { id: "b", title: "b", owner: "eve", dependsOn: ["a"] }
                )
                // it waits some seconds for an actor that does not come back
                yield* Effect.forkDetach(Effect.ignore(world.submit({ plan, critic: "judge" })))
                // until the disk is gone or the goal is met, and what else there was to append
                const ended = Effect.map(world.kinds, (kinds) => world.appends < 0 || kinds.includes("goal_met"))
                yield* Effect.repeat(Effect.delay(ended, "2 millis"), { until: (yes) => yes })
                yield* Effect.sleep("15 millis")
                const unharmed = world.appends >= 0
                yield* world.stop
                world.appends = Number.POSITIVE_INFINITY
                yield* world.start
                const open = yield* world.goals.list({ all: true }, caller)
                if (open.length === 0) return false
                // a plan that was cut off while it was written waits for another; it was never acknowledged
                if (open[0]!.state === "goal_received") return false
                yield* world.state("g1", "goal_met")
                onlyOnce(world)
                assert.deepStrictEqual(world.crew.carried.filter((id) => !id.includes("/review/")).toSorted(), [
                  "plan/g1/a/1",
                  "plan/g1/b/1",
                  "plan/g1/b/2"
                ])
                return unharmed
              })
            )
          }
          // hundreds of crashes, all of them meant
        }).pipe(Effect.provideService(References.MinimumLogLevel, "None"))
    )
  }

  it.live("respawn of the finished: a task that ended while nobody listened is not given out again", () =>
    run((world) =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        world.crew.add("bob", () => Effect.as(Deferred.await(gate), { output: "done" }))
        yield* world.submit({ plan: world.file({ id: "a", title: "a" }) })
        yield* world.until("g1", "it runs", ({ tasks }) => tasks.running === 1)
        yield* world.stop
        yield* Deferred.succeed(gate, undefined)
        yield* Effect.repeat(Effect.sleep("2 millis"), { until: () => !world.crew.agents.get("bob")!.member.busy })
        yield* world.start
        yield* world.state("g1", "goal_met")
        assert.deepStrictEqual(world.crew.carried, ["plan/g1/a/1"])
      })
    )
  )

  it.live("what an agent reported while nobody listened counts: the log has it", () =>
    run((world) =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        const report = { agent_id: "bob", turn_id: "", status: "blocked", summary: "I need a key", evidence: [] }
        world.crew.add("bob", () => Effect.as(Deferred.await(gate), { output: "I ended" }))
        yield* world.submit({ plan: world.file({ id: "a", title: "a" }, { id: "b", title: "b", dependsOn: ["a"] }) })
        yield* world.until("g1", "it runs", ({ tasks }) => tasks.running === 1)
        yield* world.stop
        const { fate } = world.crew.messages.get("plan/g1/a/1")!
        const payload = { ...report, turn_id: fate._tag === "Carried" ? fate.turnId : "" }
        yield* world.log.append([{ stream: "c", kind: "agent.reported", actor: "voice/bob", payload }])
        yield* Deferred.succeed(gate, undefined)
        yield* world.start
        const goal = yield* world.state("g1", "blocked")
        assert.match(goal.reason!, /a \(blocked: I need a key\)/)
      })
    )
  )

  it.live("a task that was written and never posted is posted", () =>
    run((world) =>
      Effect.gen(function* () {
        world.crew.add("bob", () => Effect.never)
        yield* world.submit({ plan: world.file({ id: "a", title: "a" }) })
        yield* world.until("g1", "it runs", ({ tasks }) => tasks.running === 1)
        yield* world.stop
        world.crew.messages.clear()
        world.crew.carried.length = 0
        world.crew.agents.get("bob")!.script = says("done")
        world.crew.agents.get("bob")!.member = { ...world.crew.agents.get("bob")!.member, busy: false }
        yield* world.start
        yield* world.state("g1", "goal_met")
        assert.deepStrictEqual(world.crew.carried, ["plan/g1/a/1"])
      })
    )
  )

  it.live("a planner and a critic are asked once, whoever asks", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          const slowly = (output: string) => () => Effect.as(Effect.sleep("10 millis"), { output })
          world.crew.add("pm", slowly('{"tasks":[{"id":"a","title":"a"}]}'))
          world.crew.add("judge", slowly('{"findings":[]}'))
          world.crew.add("bob", says("done"))
          yield* world.submit({})
          for (let loss = 0; loss < 4; loss++) {
            yield* Effect.sleep("7 millis")
            yield* world.restart
          }
          yield* world.state("g1", "goal_met")
          onlyOnce(world)
          assert.lengthOf(world.crew.carried, 3)
        }),
      { goals: { planner: "pm", critic: "judge" } }
    )
  )

  it.live("a plan of which only a part was written is not carried out", () =>
    run((world) =>
      Effect.gen(function* () {
        world.crew.add("bob", says("done"))
        yield* world.submit({ plan: world.file({ id: "a", title: "a" }) })
        yield* world.state("g1", "goal_met")
        yield* world.stop
        // another goal, as a daemon leaves it that is lost between two pieces
        const [first] = (yield* world.runes).filter(({ kind }) => kind === "plan.goal_received")
        const submitted = first!.payload["event"] as GoalMachine.Event
        const draft = (kind: string, event: unknown) => ({ stream: "c", kind, actor: "plan/g2", payload: { event } })
        yield* world.log.append([
          draft("plan.goal_received", { ...submitted, planId: "g2" }),
          draft("plan.created", { _tag: "decompose_goal", tasks: [], total: 7 })
        ])
        yield* world.start
        const goal = yield* world.state("g2", "goal_received")
        assert.match(goal.detail, /waits for a plan: agentd goal plan g2/)
        yield* world.goals.plan("g2", world.file({ id: "z", title: "z" }), caller)
        yield* world.state("g2", "goal_met")
      })
    )
  )

  it.live(
    "a goal that was stopped while the daemon was lost is not carried on; its turn is ended, its checkout taken away",
    () =>
      run((world) =>
        Effect.gen(function* () {
          world.repository()
          world.crew.add("bob", () => Effect.never)
          yield* world.submit({ plan: world.file({ id: "a", title: "a" }) })
          yield* world.until("g1", "it runs", ({ tasks }) => tasks.running === 1)
          yield* world.stop
          // the stop is durable, its action was not carried out, nor what follows it
          const scratch = join(world.folder, "scratch/c/g1")
          mkdirSync(scratch, { recursive: true })
          git(world.folder, "clone", "--quiet", world.root, scratch)
          const event: GoalMachine.Event = { _tag: "user_cancel", by: "ada", reason: "enough" }
          yield* world.log.append([
            { stream: "c", kind: "plan.stopped", actor: "plan/g1", to: "stopped", payload: { event } }
          ])
          yield* world.start
          yield* world.until("g1", "bob is free", () => !world.crew.agents.get("bob")!.member.busy)
          assert.deepStrictEqual(yield* world.tasks("g1"), { a: "cancelled bob" })
          yield* world.until("g1", "its checkout is gone", () => !existsSync(scratch))
        })
      )
  )

  it.live("a start goes on from a snapshot, and a damaged goal's name is not given again", () =>
    run((world) =>
      Effect.gen(function* () {
        world.crew.add("bob", says("done"))
        yield* world.submit({ plan: world.file(...FIVE) })
        yield* world.state("g1", "goal_met")
        yield* world.submit({ plan: world.file(...FIVE), autoStart: false })
        yield* world.stop
        const { goals: kept } = yield* world.log.recover("c", { goals: fold })
        world.log.keep("c", fold, kept.state, kept.eventId)
        const { goals } = yield* world.log.recover("c", { goals: fold })
        assert.strictEqual(goals.read, 0)
        assert.deepStrictEqual(
          [...recordsOf(goals.state)].map(([goalId, { stand }]) => [goalId, stand.state]).toSorted(),
          [
            ["g1", "goal_met"],
            ["g2", "planning"]
          ]
        )
        const event = { _tag: "critique_passed", summary: "" }
        yield* world.log.append([{ stream: "c", kind: "plan.goal_met", actor: "plan/g3", payload: { event } }])
        yield* world.start
        const { goalId } = yield* world.submit({ plan: world.file({ id: "z", title: "z" }) })
        assert.strictEqual(goalId, "g4")
        yield* world.approve("g2", caller)
        yield* world.state("g2", "goal_met")
      })
    )
  )

  it.live("INV-REPLAY-DETERMINISTIC: the state of a goal is the fold of its runes at every end", () =>
    run((world) =>
      Effect.gen(function* () {
        let n = 0
        world.crew.add("bob", () => Effect.succeed(++n % 3 === 0 ? { outcome: "error" as const } : { output: "done" }))
        yield* world.submit({ plan: world.file(...FIVE) })
        const live = yield* world.until("g1", "some are done", ({ tasks }) => tasks.completed >= 2)
        assert.isAtLeast(live.tasks.completed, 2)
        const goal = yield* world.state("g1", "goal_met")
        const { plan, stand } = yield* readGoal(world.log, "c", "g1")
        assert.strictEqual(stand.state, goal.state)
        assert.deepStrictEqual(plan.counts, goal.tasks)
        const { tasks } = yield* world.goals.page("g1", 0, caller)
        assert.deepStrictEqual(
          tasks.map(({ errors, id }) => [id, errors]),
          [...plan.nodes].map(({ errors, task }) => [task.id, errors])
        )
      })
    )
  )

  it.live("a goal of an archived conversation is refused with words, and no mail stands still for its story", () =>
    run((world) =>
      Effect.gen(function* () {
        world.crew.add("bob", says("done"))
        yield* world.submit({ plan: world.file({ id: "a", title: "a" }) })
        yield* world.state("g1", "goal_met")
        const { read } = world.log
        Object.assign(world.log, {
          read: (...of: Parameters<typeof read>) =>
            Stream.map(read(...of), (rune) => ({ ...rune, payload: { archived: true } }))
        })
        const how = { into: null, unreviewed: false, all: false }
        const gone = /g1 is archived with its conversation/
        assert.match((yield* Effect.flip(world.goals.page("g1", 0, caller))).message, gone)
        assert.match((yield* Effect.flip(world.goals.merge("g1", how, caller))).message, gone)
        const told = GoalHistory.story(world.log, { stream: "c", actor: "plan/g1", upTo: 100 })
        assert.match((yield* Effect.flip(told)).message, /archive/)
      })
    )
  )
})
