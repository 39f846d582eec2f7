import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { says } from "./CrewDouble.ts"
import { caller, run } from "./World.ts"
import { PATIENCE } from "../../support/Patience.ts"

const done = says("done")
const never = () => Effect.never

describe("Goals", () => {
  it.live("a plan from a file is worked off in its order, reviewed, and met", () =>
    run((world) =>
      Effect.gen(function* () {
        world.crew.add("bob", done)
        world.crew.add("eve", done)
        const plan = world.file(
          { id: "a", title: "first" },
          { id: "b", title: "second", dependsOn: ["a"] },
          { id: "c", title: "beside", dependsOn: ["a"] },
          { id: "d", title: "last", dependsOn: ["b", "c"] }
        )
        const { goalId, message } = yield* world.submit({ plan })
        assert.strictEqual(goalId, "g1")
        assert.match(message, /plan of 4 tasks/)
        const goal = yield* world.state("g1", "goal_met")
        assert.strictEqual(goal.tasks.completed, 4)
        const kinds = yield* world.kinds
        assert.deepStrictEqual(kinds.slice(0, 4), ["goal_received", "created", "approved", "task_assigned"])
        assert.deepStrictEqual(kinds.slice(-3), ["reviewing", "critique", "goal_met"])
        assert.strictEqual(world.crew.carried.at(-1), "plan/g1/d/1")
        assert.lengthOf(world.crew.carried, 4)
      })
    )
  )

  it.live("a planner's bad answers are handed back with what is wrong, then its plan waits for approval", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          const asked: Array<string> = []
          const answers = ["no idea", '```json\n{"tasks":[{"id":"a","title":"x","dependsOn":["b"]}]}\n```']
          world.crew.add("pm", (message, n) => {
            asked.push(message.text)
            return Effect.succeed({ output: answers[n - 1] ?? '{"tasks":[{"id":"a","title":"go"}]}' })
          })
          world.crew.add("bob", done, { can: ["rust"], role: "builder" })
          yield* world.submit({})
          yield* world.until("g1", "its plan waits for a person", ({ detail, state }) => {
            return state === "planning" && /plan of 1 task waits for approval: agentd goal approve g1/.test(detail)
          })
          assert.match(asked[0]!, /- bob: builder \(can: rust\)/)
          assert.match(asked[1]!, /could not be used:\nit contains no JSON object/)
          assert.match(asked[2]!, /tasks\[0\]\.dependsOn\[0\]: there is no task "b"/)
          yield* world.goals.reject("g1", "too small", caller)
          yield* world.until("g1", "it is asked again", ({ state }) => state === "planning")
          assert.match(asked.at(-1)!, /was rejected:\n> too small/)
          yield* world.approve("g1", caller)
          yield* world.state("g1", "goal_met")
        }),
      { goals: { planner: "pm", autoStart: false } }
    )
  )

  it.live("a planner that never gives a plan stops the goal with the reason", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          world.crew.add("pm", says("I would rather not"))
          yield* world.submit({})
          const goal = yield* world.state("g1", "stopped")
          assert.match(
            goal.reason!,
            /pm: none of 2 answers could be used: it contains no JSON object.*; it had said: I would rather not$/
          )
          assert.lengthOf(world.crew.carried, 2)
        }),
      { goals: { planner: "pm", planTries: 2 } }
    )
  )

  it.live(
    "a task that fails is tried again with its thresholds, then failed, its dependents blocked; a person lets it go on",
    () =>
      run((world) =>
        Effect.gen(function* () {
          let broken = true
          world.crew.add("bob", (message) =>
            Effect.succeed(
              broken && message.messageId.includes("/a/")
                ? { outcome: "error" as const, output: "it broke" }
                : { output: "ok" }
            )
          )
          const plan = world.file(
            { id: "a", title: "x" },
            { id: "b", title: "y", dependsOn: ["a"] },
            { id: "c", title: "z" }
          )
          yield* world.submit({ plan })
          const goal = yield* world.state("g1", "blocked")
          assert.match(
            goal.reason!,
            /1 task depends on a \(its turn ended with an error; it had said: it broke\), which failed/
          )
          assert.deepStrictEqual(yield* world.tasks("g1"), { a: "failed bob", b: "blocked", c: "completed bob" })
          const of = (id: string) => world.crew.carried.filter((messageId) => messageId.includes(`/${id}/`))
          assert.deepStrictEqual(of("a"), ["plan/g1/a/1", "plan/g1/a/2", "plan/g1/a/3"])
          broken = false
          const refused = yield* Effect.flip(world.goals.retry("g1", "c", caller))
          assert.match(refused.message, /no failed task "c"/)
          yield* world.goals.retry("g1", "a", caller)
          yield* world.state("g1", "goal_met")
          assert.deepStrictEqual(of("a").slice(3), ["plan/g1/a/4"])
          assert.lengthOf(of("c"), 1)
        })
      )
  )

  it.live("a report of failure counts as one, and one of being blocked is not tried again", () =>
    run((world) =>
      Effect.gen(function* () {
        const report = (status: "blocked" | "done" | "failed", summary: string) => ({
          status,
          summary,
          evidence: ["npm test: ok"]
        })
        world.crew.add("bob", (message, n) =>
          Effect.succeed({
            output: "I ended",
            reports: message.messageId.includes("/a/")
              ? [n === 1 ? report("failed", "tests are red") : report("done", "all green")]
              : [report("blocked", "I need a key")]
          })
        )
        yield* world.submit({
          plan: world.file(
            { id: "a", title: "x", priority: 9 },
            { id: "b", title: "y" },
            { id: "c", title: "z", dependsOn: ["b"] }
          )
        })
        const goal = yield* world.state("g1", "blocked")
        assert.match(goal.reason!, /b \(blocked: I need a key\)/)
        assert.deepStrictEqual(
          world.crew.carried,
          ["plan/g1/a/1", "plan/g1/b/1", "plan/g1/a/2"].toSorted(
            (x, y) => world.crew.carried.indexOf(x) - world.crew.carried.indexOf(y)
          )
        )
        const runes = yield* world.runes
        const completed = runes.find(({ kind }) => kind === "plan.task_completed")!
        assert.deepInclude(completed.payload, { task_id: "a", result: "all green" })
        assert.deepInclude(completed.payload["evidence"] as object, { reported: ["npm test: ok"] })
        const retried = runes.find(({ kind }) => kind === "plan.task_retried")!
        assert.deepInclude(retried.payload, { task_id: "a", error: "tests are red" })
      })
    )
  )

  it.live("a task that failed for good is made good by its follow-up, however many that takes", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          world.crew.add("bob", ({ text }) =>
            Effect.succeed(/Task fix-2-1/.test(text) ? { output: "done" } : { outcome: "error" as const, output: "no" })
          )
          yield* world.submit({ plan: world.file({ id: "a", title: "x" }) })
          const goal = yield* world.state("g1", "goal_met")
          assert.strictEqual(goal.rounds, 2)
          const tasks = { a: "failed bob", "fix-1-1": "failed bob", "fix-2-1": "completed bob" }
          assert.deepStrictEqual(yield* world.tasks("g1"), tasks)
        }),
      { goals: { maxTaskErrors: 1 } }
    )
  )

  it.live("what the critic finds becomes tasks, for so many rounds; then a person decides", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          world.crew.add("bob", done)
          let happy = false
          world.crew.add("judge", () =>
            Effect.succeed({
              output: happy
                ? '{"findings":[{"severity":"info","message":"fine"}]}'
                : '{"findings":[{"severity":"error","task":"a","message":"no tests","fix":"write tests"},{"severity":"warning","message":"slow"}]}'
            })
          )
          yield* world.submit({ plan: world.file({ id: "a", title: "x" }) })
          const blocked = yield* world.state("g1", "blocked")
          assert.strictEqual(blocked.reason, "2 reviews did not pass")
          assert.deepStrictEqual(Object.keys(yield* world.tasks("g1")), ["a", "fix-1-1", "fix-2-1"])
          const page = yield* world.goals.page("g1", 0, caller)
          assert.deepInclude(page.tasks[1], { title: "write tests", owner: "bob", state: "completed" })
          assert.lengthOf(page.findings, 2)
          happy = true
          yield* world.goals.retry("g1", null, caller)
          yield* world.state("g1", "goal_met")
        }),
      { goals: { critic: "judge", rounds: 2 } }
    )
  )

  it.live("needs_replan goes back to the planner, which adds tasks and is not asked for the old ones", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          world.crew.add("pm", (_, n) =>
            Effect.succeed({ output: `{"tasks":[{"id":"t${n}","title":"go","dependsOn":[${n > 1 ? '"t1"' : ""}]}]}` })
          )
          world.crew.add("judge", (_, n) =>
            Effect.succeed({
              output:
                n === 1
                  ? '{"findings":[{"severity":"error","message":"wrong track","needsReplan":true}]}'
                  : '{"findings":[]}'
            })
          )
          world.crew.add("bob", done)
          yield* world.submit({})
          const goal = yield* world.state("g1", "goal_met")
          assert.strictEqual(goal.rounds, 1)
          assert.deepStrictEqual(yield* world.tasks("g1"), { t1: "completed bob", t2: "completed bob" })
          assert.include(yield* world.kinds, "replanning")
        }),
      { goals: { planner: "pm", critic: "judge" } }
    )
  )

  it.live("it waits for agents that are not there, and goes on by itself when one is able to", () =>
    run((world) =>
      Effect.gen(function* () {
        world.crew.add("bob", done)
        yield* world.submit({ plan: world.file({ id: "a", title: "x", needs: ["rust"] }) })
        const goal = yield* world.state("g1", "blocked")
        assert.match(goal.reason!, /needs rust, which no agent can/)
        world.crew.add("eve", done, { can: ["rust"] })
        world.crew.set("eve", { online: true })
        yield* world.state("g1", "goal_met")
        assert.deepStrictEqual(yield* world.tasks("g1"), { a: "completed eve" })
      })
    )
  )

  it.live("a task whose agent is away for a moment stays with it; away for longer, it goes to another", () =>
    run((world) =>
      Effect.gen(function* () {
        world.crew.add("bob", never)
        yield* world.submit({ plan: world.file({ id: "a", title: "x" }) })
        yield* world.until("g1", "a runs", ({ tasks }) => tasks.running === 1)
        world.crew.add("eve", done)
        const kept = world.crew.messages.get("plan/g1/a/1")!
        // its run is lost, as by a stop or a pause: the message waits again
        const lost = Effect.suspend(() => {
          kept.fate = { _tag: "Waiting" }
          world.crew.set("bob", { online: false, busy: false })
          return Effect.sleep("50 millis")
        })
        yield* lost
        world.crew.set("bob", { online: true })
        yield* world.until("g1", "bob goes on with it", () => kept.fate._tag === "Carried")
        yield* lost
        yield* world.state("g1", "goal_met")
        assert.deepStrictEqual(yield* world.tasks("g1"), { a: "completed eve" })
        assert.deepStrictEqual(world.crew.carried, ["plan/g1/a/1", "plan/g1/a/1", "plan/g1/a/2"])
      })
    )
  )

  it.live("every able agent spent: the plan stops and says so", () =>
    run((world) =>
      Effect.gen(function* () {
        world.crew.add("bob", done, { spent: true })
        yield* world.submit({ plan: world.file({ id: "a", title: "x" }) })
        const goal = yield* world.state("g1", "stopped")
        assert.strictEqual(goal.reason, "the budget of bob is spent")
        const last = (yield* world.runes).at(-1)!
        assert.deepInclude(last, { kind: "plan.stopped", trigger: "budget_exhausted" })
      })
    )
  )

  it.live("a person cancels: every turn under way ends, however long each takes for it", () =>
    run((world) =>
      Effect.gen(function* () {
        world.crew.grace = 30
        for (const agent of ["ann", "bob", "eve"]) world.crew.add(agent, () => Effect.never)
        yield* world.submit({ plan: world.file(...["a", "b", "c"].map((id) => ({ id, title: "x" }))) })
        yield* world.until("g1", "all run", ({ tasks }) => tasks.running === 3)
        yield* world.goals.cancel("g1", "enough", caller)
        const free = Effect.sync(() => [...world.crew.agents.values()].every(({ member }) => !member.busy))
        yield* Effect.timeout(Effect.repeat(Effect.delay(free, "5 millis"), { until: (all) => all }), PATIENCE)
      })
    )
  )

  it.live("a person cancels: turns under way end, and nothing more is given out", () =>
    run((world) =>
      Effect.gen(function* () {
        world.crew.add("bob", never)
        yield* world.submit({ plan: world.file({ id: "a", title: "x" }, { id: "b", title: "y" }) })
        yield* world.until("g1", "a runs", ({ tasks }) => tasks.running === 1)
        yield* world.goals.cancel("g1", "changed my mind", caller)
        const goal = yield* world.state("g1", "stopped")
        assert.strictEqual(goal.reason, "changed my mind")
        assert.deepStrictEqual(yield* world.tasks("g1"), { a: "cancelled bob", b: "pending" })
        yield* world.until("g1", "bob is free", () => !world.crew.agents.get("bob")!.member.busy)
        const refused = yield* Effect.flip(world.goals.cancel("g1", "", caller))
        assert.match(refused.message, /g1 has ended: stopped/)
      })
    )
  )

  it.live("a try that takes too long is ended and counts", () =>
    run((world) =>
      Effect.gen(function* () {
        world.crew.add("bob", (_, n) => (n === 1 ? Effect.never : Effect.succeed({ output: "quick" })))
        yield* world.submit({ plan: world.file({ id: "a", title: "x", timeout: 30 }) })
        yield* world.state("g1", "goal_met")
        const retried = (yield* world.runes).find(({ kind }) => kind === "plan.task_retried")!
        assert.deepInclude(retried.payload, { error: "it took too long" })
      })
    )
  )

  it.live("a goal that cannot be worked off is refused at the door, and nothing is written", () =>
    run((world) =>
      Effect.gen(function* () {
        world.crew.add("bob", done)
        const refusals = [
          world.submit({}),
          world.submit({ planner: "nobody" }),
          world.submit({ plan: "plan.json" }),
          world.submit({ plan: world.file({ id: "a", title: "x", dependsOn: ["a"] }) }),
          world.submit({ plan: "/plan.json", target: "nowhere" })
        ]
        const messages: Array<string> = []
        for (const refusal of refusals) messages.push((yield* Effect.flip(refusal)).message)
        assert.deepStrictEqual(messages, [
          "planner: no agent makes a plan for the goal.",
          'planner: there is no agent "nobody".',
          "plan: plan.json is not an absolute path",
          'tasks[0].dependsOn[0]: "a" depends on itself',
          'target: there is no branch "nowhere".'
        ])
        assert.deepStrictEqual(yield* world.runes, [])
      })
    )
  )
})
