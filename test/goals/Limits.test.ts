/** Tests of large, hostile and obstructing input. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { says } from "./CrewDouble.ts"
import { caller, run } from "./World.ts"

const done = says("done")
const never = () => Effect.never

describe("a goal", () => {
  it.live("a plan of 2,300 tasks is written in pieces of two hundred, and is whole after a restart", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          world.crew.add("bob", done)
          const tasks = Array.from({ length: 2_300 }, (_, n) => ({
            id: `t${n}`,
            title: `task ${n}`,
            // the first of all waits for the last
            dependsOn: n === 0 ? ["t2299"] : []
          }))
          yield* world.submit({ plan: world.file(...tasks) })
          assert.deepStrictEqual(yield* world.kinds, ["goal_received", "created", ...Array(11).fill("updated")])
          const pieces = (yield* world.runes).slice(1).map(({ payload }) => {
            const event = payload["event"] as { tasks?: ReadonlyArray<unknown>; added?: ReadonlyArray<unknown> }
            return (event.tasks ?? event.added)!.length
          })
          assert.deepStrictEqual(pieces, [...Array(11).fill(200), 100])
          yield* world.restart
          const { goal, next, tasks: page } = yield* world.goals.page("g1", 2_000, caller)
          assert.deepStrictEqual([goal.total, goal.tasks.pending, page.length, next], [2_300, 2_300, 300, null])
          yield* world.approve("g1", caller)
          yield* world.until("g1", "some are done", ({ tasks }) => tasks.completed > 10)
          yield* world.goals.cancel("g1", "enough", caller)
          assert.notInclude(world.crew.carried, "plan/g1/t0/1")
        }),
      { goals: { autoStart: false } }
    )
  )

  it.live("tasks may be called as objects call their own: constructor, toString", () =>
    run((world) =>
      Effect.gen(function* () {
        world.crew.add("bob", done)
        yield* world.submit({
          plan: world.file(
            { id: "constructor", title: "x" },
            { id: "toString", title: "y", dependsOn: ["constructor"] }
          )
        })
        yield* world.state("g1", "goal_met")
      })
    )
  )

  it.live("while its conversation takes no work it waits, and goes on when that is resumed", () =>
    run((world) =>
      Effect.gen(function* () {
        world.crew.add("bob", done)
        world.crew.set("bob", { online: false })
        world.crew.stand("resting")
        yield* world.restart
        yield* world.submit({ plan: world.file({ id: "a", title: "x" }) })
        yield* world.until("g1", "it says so", ({ detail }) => detail.includes("takes no work"))
        world.crew.stand("working")
        world.crew.set("bob", { online: true })
        yield* world.state("g1", "goal_met")
        assert.notInclude(yield* world.kinds, "blocked")
      })
    )
  )

  it.live("a closing conversation stops its goals, and says why", () =>
    run((world) =>
      Effect.gen(function* () {
        world.crew.add("bob", never)
        yield* world.submit({ plan: world.file({ id: "a", title: "x" }) })
        yield* world.until("g1", "it runs", ({ tasks }) => tasks.running === 1)
        yield* world.goals.stopAll("c", "ada", "the conversation is closed")
        const goal = yield* world.state("g1", "stopped")
        assert.strictEqual(goal.reason, "the conversation is closed")
        yield* world.until("g1", "bob is free", () => !world.crew.agents.get("bob")!.member.busy)
      })
    )
  )

  it.live("nobody resolves it in time: it stops as unresolvable", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          world.crew.add("bob", done)
          yield* world.submit({ plan: world.file({ id: "a", title: "x", needs: ["rust"] }) })
          const goal = yield* world.state("g1", "stopped")
          assert.match(goal.reason!, /nobody resolved it in time: task a needs rust/)
          assert.strictEqual((yield* world.runes).at(-1)!.trigger, "unresolvable")
        }),
      { goals: { blockedTimeout: 30 } }
    )
  )

  it.live("a critic that cannot be understood passes nothing", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          world.crew.add("bob", done)
          world.crew.add("judge", says('{"findings":[{"severity":"terrible","message":"?"}]}'))
          yield* world.submit({ plan: world.file({ id: "a", title: "x" }) })
          const goal = yield* world.state("g1", "blocked")
          assert.strictEqual(goal.reason, "2 reviews did not pass")
          const { findings } = yield* world.goals.page("g1", 0, caller)
          assert.match(findings[0]!.message, /there is no review: judge: none of 2 answers could be used/)
          assert.strictEqual(goal.total, 1, "no agent is told to mend the critic")
        }),
      { goals: { critic: "judge", rounds: 2, planTries: 2 } }
    )
  )

  it.live("a thousand large findings fit into the log, and so do the tasks that they become", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          world.crew.add("bob", done)
          const finding = {
            severity: "error",
            task: "a",
            message: `bad\u0000${"m".repeat(9_000)}`,
            fix: "f".repeat(9_000)
          }
          const findings = Array.from({ length: 1_000 }, () => finding)
          world.crew.add(
            "judge",
            says(JSON.stringify({ findings: [{ severity: "info", message: "well" }, ...findings] }))
          )
          yield* world.submit({ plan: world.file({ id: "a", title: "x", description: "d".repeat(60_000) }) })
          const goal = yield* world.state("g1", "blocked")
          assert.strictEqual(goal.reason, "2 reviews did not pass")
          const page = yield* world.goals.page("g1", 0, caller)
          assert.match(page.findings.at(-1)!.message, /^and 9\d\d more findings$/)
          assert.isAbove(page.tasks.length, 10)
          for (const { message } of world.crew.messages.values()) assert.notInclude(message.text, "\u0000")
        }),
      { goals: { critic: "judge", rounds: 2 } }
    )
  )

  it.live("INV-AGENT-SUPERVISED: a goal that stumbles says so, goes on after a while, and touches no other", () =>
    run((world) =>
      Effect.gen(function* () {
        world.crew.add("bob", done)
        const { members } = world.crew.service
        let broken = true
        Object.assign(world.crew.service, {
          members: (conversation: string) =>
            Effect.flatMap(members(conversation), (all) =>
              broken ? Effect.die(new Error("no members")) : Effect.succeed(all)
            )
        })
        broken = false
        yield* world.submit({ plan: world.file({ id: "a", title: "x" }), autoStart: false })
        yield* world.state("g1", "planning")
        broken = true
        yield* world.approve("g1", caller)
        yield* world.until("g1", "it says so", ({ detail }) => detail === "it cannot go on: no members")
        broken = false
        yield* world.submit({ plan: world.file({ id: "a", title: "x" }), autoStart: true })
        yield* world.state("g2", "goal_met")
        yield* world.state("g1", "goal_met")
      })
    )
  )

  it.live("what was sealed takes nothing more, and is not carried on after a restart", () =>
    run((world) =>
      Effect.gen(function* () {
        world.crew.add("bob", never)
        yield* world.submit({ plan: world.file({ id: "a", title: "x" }) })
        yield* world.until("g1", "it runs", ({ tasks }) => tasks.running === 1)
        const event = { _tag: "cleanup_complete", stats: null }
        yield* world.log.append([
          { stream: "c", kind: "session.closed", actor: "conversation", to: "closed", payload: { event } }
        ])
        world.crew.stand("sealed")
        yield* world.until("g1", "it says so", ({ detail }) => detail === "its conversation is closed")
        yield* world.restart
        const { goal } = yield* world.goals.page("g1", 0, caller)
        assert.deepInclude(goal, { state: "executing", detail: "its conversation is closed" })
        const refused = yield* Effect.flip(world.goals.cancel("g1", "", caller))
        assert.match(refused.message, /The conversation of g1 is closed/)
      })
    )
  )
})
