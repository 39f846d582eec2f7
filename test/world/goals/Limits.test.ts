/** Tests of large, hostile and obstructing input. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { says } from "./CrewDouble.ts"
import { move } from "../../../src/core/event-actor/StateMachineActor.ts"
import type { RuneDraft } from "../../../src/core/event-log/Rune.ts"
import * as GoalMachine from "../../../src/goals/GoalMachine.ts"
import { actorOf, table } from "../../../src/goals/GoalState.ts"
import { options, task } from "./Tasks.ts"
import { caller, CONVERSATION, run } from "./World.ts"

const done = says("done")
const never = () => Effect.never

/** The runes of a goal whose plan was longer than plans may be today, as an earlier version wrote them: all tasks but the last `left` are done. */
const longGoal = (size: number, left: number): ReadonlyArray<RuneDraft> => {
  const tasks = Array.from({ length: size }, (_, n) => task(`t${n}`, { dependsOn: n === 0 ? [] : [`t${n - 1}`] }))
  const drafts: Array<RuneDraft> = []
  let stand = table.initial
  const say = (event: GoalMachine.Event) => {
    const at = { nextId: drafts.length + 1, nextSeq: drafts.length + 1, now: 1 }
    const made = move(GoalMachine.Autonomy, stand, event, at)
    if (typeof made === "string") throw new Error(`${event._tag} is ${made}`)
    stand = made.after
    drafts.push({ ...made.draft, stream: CONVERSATION, actor: actorOf("g1") })
  }
  say({ _tag: "goal_submitted", planId: "g1", goal: "all of it", by: "ada", options: options() })
  for (let from = 0; from < size; from += 200) {
    const piece = tasks.slice(from, from + 200)
    say(
      from === 0
        ? { _tag: "decompose_goal", tasks: piece, total: size }
        : { _tag: "plan_updated", added: piece, cancelled: [], total: size }
    )
  }
  say({ _tag: "auto_start" })
  for (const { id: taskId } of tasks.slice(0, size - left)) {
    say({ _tag: "task_assigned", taskId, agentId: "bob", messageId: `plan/g1/${taskId}/1` })
    say({ _tag: "task_started", taskId })
    say({ _tag: "task_completed", taskId, result: "done", evidence: null })
  }
  return drafts
}

describe("a goal", () => {
  it.live("a plan of 1,900 tasks is written in pieces of two hundred, and is whole after a restart", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          world.crew.add("bob", done)
          const tasks = Array.from({ length: 1_900 }, (_, n) => ({
            id: `t${n}`,
            title: `task ${n}`,
            // the first of all waits for the last
            dependsOn: n === 0 ? ["t1899"] : []
          }))
          yield* world.submit({ plan: world.file(...tasks) })
          assert.deepStrictEqual(yield* world.kinds, ["goal_received", "created", ...Array(9).fill("updated")])
          const pieces = (yield* world.runes).slice(1).map(({ payload }) => {
            const event = payload["event"] as { tasks?: ReadonlyArray<unknown>; added?: ReadonlyArray<unknown> }
            return (event.tasks ?? event.added)!.length
          })
          assert.deepStrictEqual(pieces, [...Array(9).fill(200), 100])
          yield* world.restart
          const { goal, next, tasks: page } = yield* world.goals.page("g1", 1_600, caller)
          assert.deepStrictEqual([goal.total, goal.tasks.pending, page.length, next], [1_900, 1_900, 300, null])
          yield* world.approve("g1", caller)
          yield* world.until("g1", "some are done", ({ tasks }) => tasks.completed > 10)
          yield* world.goals.cancel("g1", "enough", caller)
          assert.notInclude(world.crew.carried, "plan/g1/t0/1")
        }),
      { goals: { autoStart: false } }
    )
  )

  it.live("a plan of 2,001 tasks is refused with what to do; nothing is written", () =>
    run((world) =>
      Effect.gen(function* () {
        world.crew.add("bob", done)
        const tasks = Array.from({ length: 2_001 }, (_, n) => ({ id: `t${n}`, title: "x" }))
        const refused = yield* Effect.flip(world.submit({ plan: world.file(...tasks) }))
        assert.deepInclude(refused, {
          message: "tasks: contains 2001 tasks; at most 2000 are allowed",
          remedy: "Split it into several goals."
        })
        assert.deepStrictEqual(yield* world.kinds, [])
      })
    )
  )

  it.live("a goal of an earlier version with 3,000 tasks is folded, goes on where it was, and is met", () =>
    run((world) =>
      Effect.gen(function* () {
        world.crew.add("bob", done)
        yield* world.stop
        const drafts = longGoal(3_000, 5)
        for (let from = 0; from < drafts.length; from += 500) yield* world.log.append(drafts.slice(from, from + 500))
        yield* world.start
        const goal = yield* world.state("g1", "goal_met")
        assert.deepInclude(goal, { total: 3_000, tasks: { ...goal.tasks, completed: 3_000 } })
        assert.deepStrictEqual(
          world.crew.carried,
          [2_995, 2_996, 2_997, 2_998, 2_999].map((n) => `plan/g1/t${n}/1`)
        )
      })
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
        yield* world.until("g1", "it says so", ({ detail }) => detail.includes("accepts no work"))
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
        yield* world.until("g1", "it says so", ({ detail }) => detail === "it cannot continue: no members")
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
