/** The goal verbs, through the real socket, on real goals. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Schedule } from "effect"
import type { GoalInfo, GoalPage } from "../../../src/domain/GoalMessages.ts"
import * as Control from "../rpc/World.ts"
import { says } from "../goals/CrewDouble.ts"
import { run as runGoals, type Setting, type World } from "../goals/World.ts"
import { inProcess } from "./Child.ts"

type Agentd = (...args: ReadonlyArray<string>) => ReturnType<typeof inProcess>

const withCli = (body: (agentd: Agentd, world: World) => Effect.Effect<void, unknown>, setting: Setting = {}) =>
  runGoals(
    (world) =>
      Effect.gen(function* () {
        const state = yield* Control.folder
        yield* Layer.build(Control.layer(Control.makeWorld(), `${state}/control.sock`, { goals: world.goals }))
        yield* body((...args) => inProcess(["--state", state, ...args]), world)
      }).pipe(Effect.scoped),
    setting
  )

describe("agentd goal", () => {
  it.live("submit, show, approve, watch, ls: from a plan to a goal met", () =>
    withCli((agentd, world) =>
      Effect.gen(function* () {
        world.crew.add("bob", says("done"))
        world.crew.add("pm", says('{"tasks":[{"id":"a","title":"first"},{"id":"b","title":"then","dependsOn":["a"]}]}'))
        const submitted = yield* agentd("goal", "ship it", "--planner", "pm", "--check", "true", "--rounds", "2")
        assert.deepInclude(submitted, { code: 0, err: "" })
        assert.match(submitted.out, /^g1 is submitted: pm makes a plan\. See: agentd .*goal show g1/)
        yield* world.state("g1", "goal_met")
        const shown = yield* agentd("goal", "show", "g1")
        assert.match(shown.out, /web\/g1 is done for \d+s: 2 of 2 done\nship it\n/)
        assert.match(shown.out, /✓ a first {2}\(bob\)\n└ ✓ b then {2}\(bob\)/)
        assert.match(shown.out, /info: `true` succeeded/)
        const { goal, tasks } = JSON.parse((yield* agentd("--json", "goal", "show", "g1")).out) as GoalPage
        assert.deepStrictEqual([goal.maxRounds, tasks.length], [2, 2])
        const watched = yield* agentd("goal", "watch", "web/g1")
        assert.match(watched.out, /g1 is done: 2 of 2 done/)
        assert.strictEqual(watched.code, 0)
        const rows = JSON.parse((yield* agentd("--json", "goal", "ls")).out) as ReadonlyArray<GoalInfo>
        assert.deepStrictEqual(
          rows.map(({ goalId }) => goalId),
          ["g1"]
        )
        assert.match((yield* agentd("goal", "ls")).out, /web\/g1 +done +\d+s +2\/2/)
      })
    )
  )

  it.live("--wait ends with the outcome: 0 is met, 1 stopped, 5 waits for a person", () =>
    withCli(
      (agentd, world) =>
        Effect.gen(function* () {
          world.crew.add("bob", says("done"))
          const plan = world.file({ id: "a", title: "x" })
          const met = yield* agentd("goal", "ship it", "--plan", plan, "--auto-start", "--wait")
          assert.strictEqual(met.code, 0, met.err)
          assert.match(met.out, /^g1 has a plan of 1 task[^]*g1 is done: 1 of 1 done/)
          const asks = yield* agentd("goal", "ship it again", "--plan", plan, "--wait")
          assert.strictEqual(asks.code, 5)
          assert.match(
            asks.err,
            /g2 waits for you: .*\n.*goal approve g2\. Then continue to wait: agentd .*goal watch g2/
          )
          world.crew.add("slow", () => Effect.never)
          const long = world.file({ id: "a", title: "x", owner: "slow" })
          const waiting = yield* Effect.forkChild(
            agentd("goal", "ship more", "--plan", long, "--auto-start", "--wait", "--json")
          )
          yield* agentd("goal", "show", "g3").pipe(
            Effect.flatMap(({ code }) => (code === 0 ? Effect.void : Effect.fail("it is not there yet"))),
            Effect.retry(Schedule.spaced("20 millis"))
          )
          yield* world.until("g3", "it runs", ({ tasks }) => tasks.running === 1)
          yield* agentd("goal", "cancel", "g3", "--reason", "enough")
          const stopped = yield* Fiber.join(waiting)
          assert.strictEqual(stopped.code, 1)
          assert.deepInclude(JSON.parse(stopped.err), { exitCode: 1, message: "g3 stopped: enough" })
          for (const line of stopped.out.trim().split("\n")) assert.deepInclude(JSON.parse(line), { goalId: "g3" })
          assert.strictEqual((yield* agentd("goal", "ship", "--wait")).code, 2)
        }),
      { goals: { autoStart: false } }
    )
  )

  it.live("cancel, retry, approve and merge say what they cannot do, and what to do instead", () =>
    withCli((agentd, world) =>
      Effect.gen(function* () {
        world.crew.add("bob", () => Effect.never)
        yield* agentd("goal", "ship it", "--plan", world.file({ id: "a", title: "x" }), "--auto-start")
        yield* world.until("g1", "it runs", ({ tasks }) => tasks.running === 1)
        for (const [args, words] of [
          [["approve", "g1"], /g1 is being worked on: there is nothing to approve\.\n.*goal show g1/],
          [["retry", "g1", "a"], /There is no failed task "a" in g1\.\n.*goal show g1/],
          [["merge", "g1"], /g1 is not met: it is being worked on.*\n.*--unreviewed/],
          [["merge", "g1", "--unreviewed"], /nothing to merge: no task of g1 has a commit.*\n.*goal show g1/],
          [["show", "g9"], /There is no goal "g9"\.\n.*goal ls --all/],
          [["plan", "g1", "plan.json"], /g1 does not wait for a plan: it is being worked on/]
        ] as const) {
          const { code, err } = yield* agentd("goal", ...args)
          assert.strictEqual(code, 1)
          assert.match(err, words)
        }
        const cancelled = yield* agentd("goal", "cancel", "g1", "--reason", "enough")
        assert.match(cancelled.out, /g1 is stopped/)
        const watched = yield* agentd("goal", "watch", "g1")
        assert.deepInclude(watched, { code: 1 })
        assert.match(watched.err, /g1 stopped: enough/)
      })
    )
  )

  it.live("a goal without words, with a broken plan or a silly number of rounds is refused", () =>
    withCli((agentd, world) =>
      Effect.gen(function* () {
        world.crew.add("bob", says("done"))
        assert.deepInclude(yield* agentd("goal"), { code: 2 })
        const slip = yield* agentd("goal", "aprove", "--planner", "bob")
        assert.match(slip.err, /no subcommand "aprove"/)
        assert.strictEqual(slip.code, 2)
        const broken = yield* agentd("goal", "x", "--plan", world.file({ id: "a" }))
        assert.match(broken.err, /tasks\[0\]\.title: .*\n.*schema goal/)
        const rounds = yield* agentd("goal", "x", "--plan", world.file({ id: "a", title: "x" }), "--rounds", "0")
        assert.match(rounds.err, /rounds is 0 and must lie between 1 and 100/)
        assert.match((yield* agentd("schema", "goal")).out, /"A plan of agentd"/)
      })
    )
  )
})
