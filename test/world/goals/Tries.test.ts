/** The tries of a task: what git does not say, agents that come and go, turns that were lost: done work is not forgotten, and not done again. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import * as Git from "../../../src/runs/git/Git.ts"
import type { RuneDraft } from "../../../src/core/event-log/Rune.ts"
import { show } from "../../../src/cli/goals/GoalView.ts"
import { stepsOf } from "../../../src/goals/GoalWhy.ts"
import { waitedIn } from "../../../src/goals/TaskRunner.ts"
import { caller, commit, git, run, type World } from "./World.ts"

const BUSY: Git.Answer = {
  code: 128,
  stdout: "",
  stderr: "fatal: unable to create thread: Resource temporarily unavailable"
}

/** The machine's git, with something before each command. */
const withGit = <A, E, R>(
  before: (call: Git.Call) => Effect.Effect<Git.Answer | undefined>,
  body: Effect.Effect<A, E, R>
) =>
  Effect.flatMap(Git.Git, (real) =>
    Effect.provideService(body, Git.Git, (call) =>
      Effect.flatMap(before(call), (answer) => (answer === undefined ? real(call) : Effect.succeed(answer)))
    )
  )

const asksWhere = ({ command, names }: Git.Call) => command === "fetch" && names?.[1]?.startsWith("+HEAD:") === true

/** The runes of a turn that carried the message and was completed. */
const turnOf = (agent: string, messageId: string): ReadonlyArray<RuneDraft> => {
  const [turn_id, actor] = ["t1", `turn/${agent}`]
  const input = "do it"
  const usage = { inputTokens: 0, outputTokens: 0, usd: 0 }
  return [
    {
      stream: "c",
      actor,
      kind: "turn.started",
      payload: {
        turn_id,
        agent_id: agent,
        input,
        event: {
          _tag: "start_turn",
          turnId: turn_id,
          agentId: agent,
          input,
          source: "queue",
          messageIds: [messageId],
          at: 0
        }
      }
    },
    {
      stream: "c",
      actor,
      kind: "turn.completed",
      payload: {
        turn_id,
        final_output: "done",
        usage,
        event: { _tag: "response_done", turnId: turn_id, finalOutput: "done", usage }
      }
    }
  ]
}

const heads = (world: World) =>
  Effect.map(world.runes, (runes) =>
    runes
      .filter(({ kind }) => kind === "plan.task_completed")
      .map(({ payload }) => (payload["evidence"] as { readonly head: string | null }).head)
  )

/** The runes of a turn with these calls, by what each came to. */
const calling = (agent: string, messageId: string, ...came: ReadonlyArray<string>): ReadonlyArray<RuneDraft> => {
  const [start, end] = turnOf(agent, messageId)
  const calls = came.flatMap((status, at): ReadonlyArray<RuneDraft> => {
    const [callId, actor] = [`c${at}`, `tool/${agent}/c${at}`]
    const event = status === "expired" ? "approval_timeout" : status === "denied" ? "denial_reported" : "success"
    const call = { _tag: "call_requested", callId, turnId: "t1", toolName: "shell", arguments: {} }
    const result = {
      call_id: callId,
      status: status === "expired" ? "timeout" : status,
      event: { _tag: event, callId, output: null }
    }
    return [
      {
        stream: "c",
        actor,
        kind: "tool.call",
        payload: { call_id: callId, tool_name: "shell", arguments: {}, event: call }
      },
      { stream: "c", actor, kind: "tool.result", payload: result }
    ]
  })
  return [start!, ...calls, end!]
}

/** A task that is tried once with these calls. */
const triedWith = (...came: ReadonlyArray<string>) =>
  run(
    (world) =>
      Effect.gen(function* () {
        // what the review makes of it is done at once
        world.crew.add("bob", ({ messageId }, n) =>
          n > 1
            ? Effect.succeed({ output: "ok" })
            : Effect.as(Effect.orDie(world.log.append(calling("bob", messageId, ...came))), { output: "all is done" })
        )
        yield* world.submit({ plan: world.file({ id: "a", title: "a" }) })
        yield* world.state("g1", "goal_met")
        const { tasks } = yield* world.goals.page("g1", 0, caller)
        return [tasks[0]!.state, tasks[0]!.error] as const
      }),
    { goals: { maxTaskErrors: 1 } }
  )

describe("a task of which nothing was let run", () => {
  for (const [what, came, ended] of [
    ["expired and refused calls are none", ["expired", "denied"], "failed"],
    ["one call that expired is none", ["expired"], "failed"],
    ["one that ran among them is enough", ["denied", "success", "expired"], "completed"],
    ["a try without any call is one", [], "completed"]
  ] as const)
    it.live(what, () =>
      Effect.map(triedWith(...came), ([state, error]) => {
        assert.strictEqual(state, ended)
        assert.strictEqual((error ?? "").endsWith("denied, or expired without an answer"), ended === "failed")
      })
    )

  it("time in which every open call waits for a person is counted by itself", () => {
    const runes = [
      "call a 0",
      "approval_requested a 10",
      "call b 20",
      "result b 25",
      "approved a 60",
      "result a 70"
    ].map((words) => {
      const [kind, actor, at] = words.split(" ")
      return { kind: `tool.${kind}`, actor: actor!, at: Number(at) }
    })
    assert.deepStrictEqual(waitedIn(runes, 100), { asks: false, time: 45 })
    assert.deepStrictEqual(waitedIn(runes.slice(0, 2), 100), { asks: true, time: 90 })
  })
})

describe("a task that is to leave a commit", () => {
  const place = (world: World) => {
    world.repository()
    return world.worktree("bob")
  }

  it.live("is tried again where it leaves none, and is told so", () =>
    run((world) =>
      Effect.gen(function* () {
        const at = place(world)
        const told: Array<string> = []
        const work = ({ text }: { readonly text: string }, n: number) =>
          Effect.sync(() => {
            told.push(text)
            if (n === 2) commit(at.cwd, "a", { "a.txt": "a\n" })
            return { output: "done" }
          })
        world.crew.add("bob", work, at)
        yield* world.submit({ plan: world.file({ id: "a", title: "a", commit: true }) })
        yield* world.state("g1", "goal_met")
        assert.match(told[0]!, /without a commit it is retried/)
        assert.match(told[1]!, /it ended without a commit/)
        const { tasks } = yield* world.goals.page("g1", 0, caller)
        assert.deepInclude(tasks[0], { state: "completed", errors: 1 })
        assert.notProperty(tasks[0], "noCommit")
      })
    )
  )

  it.live("that does not say so is completed without one; its row and the review say it", () =>
    run((world) =>
      Effect.gen(function* () {
        world.crew.add("bob", () => Effect.succeed({ output: "I looked" }), place(world))
        yield* world.submit({ plan: world.file({ id: "a", title: "a" }) })
        yield* world.state("g1", "goal_met")
        const page = yield* world.goals.page("g1", 0, caller)
        assert.deepInclude(page.tasks[0], { state: "completed", noCommit: true })
        assert.deepStrictEqual(page.findings, [{ severity: "info", task: "a", message: "no commit" }])
        assert.match(show(page, 0, false).join("\n"), /a a {2}\(bob; no commit\)/)
        const { newest } = yield* stepsOf(world.log, { conversation: "c", goalId: "g1" })
        assert.include(
          newest.map(({ text }) => text),
          "a is done: no commit"
        )
      })
    )
  )
})

describe("what git does not say", () => {
  it.live("a task whose commit git cannot name for a moment is done when git can, with its commit", () => {
    const state = { committed: "", refused: 0 }
    return withGit(
      (call) =>
        Effect.sync(() => {
          if (state.committed === "" || state.refused > 0 || !asksWhere(call)) return undefined
          state.refused += 1
          return BUSY
        }),
      run((world) =>
        Effect.gen(function* () {
          world.repository()
          const place = world.worktree("bob")
          world.crew.add(
            "bob",
            () =>
              Effect.sync(() => {
                commit(place.cwd, "a", { "a.txt": "a\n" })
                state.committed = git(place.cwd, "rev-parse", "HEAD")
                return { output: "done" }
              }),
            place
          )
          yield* world.submit({ plan: world.file({ id: "a", title: "a" }) })
          yield* world.state("g1", "goal_met")
          assert.strictEqual(state.refused, 1)
          assert.deepStrictEqual(yield* heads(world), [state.committed])
          const { message } = yield* world.merge("g1")
          assert.match(message, /1 merged into main/)
        })
      )
    )
  })

  it.live("what an agent has done stays so, though it leaves the project before git has named its commit", () => {
    const state: { committed: string; crew: World["crew"] | undefined; gone: boolean } = {
      committed: "",
      crew: undefined,
      gone: false
    }
    return withGit(
      (call) =>
        Effect.sync(() => {
          if (state.committed === "" || !asksWhere(call)) return undefined
          // the project's file is edited in this moment
          if (!state.gone) state.crew!.agents.delete("bob")
          state.gone = true
          return state.crew!.agents.has("bob") ? undefined : BUSY
        }),
      run((world) =>
        Effect.gen(function* () {
          const { crew, log } = world
          state.crew = crew
          world.repository()
          const place = world.worktree("bob")
          crew.add(
            "bob",
            ({ messageId }) =>
              Effect.gen(function* () {
                commit(place.cwd, "a", { "a.txt": "a\n" })
                state.committed = git(place.cwd, "rev-parse", "HEAD")
                yield* Effect.orDie(log.append(turnOf("bob", messageId)))
                return { output: "done" }
              }),
            place
          )
          const bob = crew.agents.get("bob")!
          yield* world.submit({ plan: world.file({ id: "a", title: "a" }) })
          yield* world.until("g1", "it is said", ({ detail }) =>
            /bob has finished its task, and is not an agent/.test(detail)
          )
          crew.agents.set("bob", bob)
          crew.set("bob", { online: true })
          yield* world.state("g1", "goal_met")
          assert.deepStrictEqual(crew.carried, ["plan/g1/a/1"])
          assert.deepStrictEqual(yield* heads(world), [state.committed])
        })
      )
    )
  })

  it.live(
    "an agent whose first turn comes and goes while another's task is looked at has its place in the evidence",
    () => {
      const seen = Deferred.makeUnsafe<void>()
      const over = Deferred.makeUnsafe<void>()
      const state = { isDone: false, committed: "" }
      return withGit(
        (call) =>
          state.isDone && asksWhere(call)
            ? Effect.as(Effect.andThen(Deferred.succeed(seen, undefined), Deferred.await(over)), undefined)
            : Effect.undefined,
        run((world) =>
          Effect.gen(function* () {
            world.repository()
            const [bob, eve] = [world.worktree("bob"), world.worktree("eve")]
            world.crew.add(
              "bob",
              () =>
                Effect.as(
                  Effect.sync(() => void (state.isDone = true)),
                  { output: "done" }
                ),
              bob
            )
            // where she works is known once she has begun
            world.crew.add("eve", () =>
              Effect.andThen(
                Deferred.await(seen),
                Effect.sync(() => {
                  commit(eve.cwd, "b", { "b.txt": "b\n" })
                  state.committed = git(eve.cwd, "rev-parse", "HEAD")
                  world.crew.set("eve", eve)
                  return { output: "done" }
                })
              )
            )
            yield* world.submit({
              plan: world.file({ id: "a", title: "a", owner: "bob" }, { id: "b", title: "b", owner: "eve" })
            })
            yield* Deferred.await(seen)
            while (world.crew.messages.get("plan/g1/b/1")?.fate._tag !== "Ended") yield* Effect.sleep("2 millis")
            yield* Deferred.succeed(over, undefined)
            yield* world.state("g1", "goal_met")
            assert.include(yield* heads(world), state.committed)
          })
        )
      )
    }
  )
})

describe("a task that is offered again", () => {
  it.live("waits for its agent though its time is over, and is not looked at in a circle", () =>
    run(
      (world) =>
        Effect.gen(function* () {
          const lost = Deferred.makeUnsafe<void>()
          world.crew.add("bob", () => Effect.as(Deferred.await(lost), { output: "done" }))
          yield* world.submit({ plan: world.file({ id: "a", title: "a" }) })
          yield* world.until("g1", "it runs", ({ tasks }) => tasks.running === 1)
          // its turn was lost with its process, and its agent is at something else
          const message = world.crew.messages.get("plan/g1/a/1")!
          message.fate = { _tag: "Waiting" }
          const looks = { count: 0 }
          const { fate } = world.crew.service
          Object.assign(world.crew.service, {
            fate: (...of: Parameters<typeof fate>) => {
              looks.count += 1
              return fate(...of)
            }
          })
          yield* Effect.sleep("300 millis")
          assert.isBelow(looks.count, 20)
          yield* Deferred.succeed(lost, undefined)
          yield* world.state("g1", "goal_met")
        }),
      { goals: { taskTimeout: "100 millis" } }
    )
  )

  it.live("is taken back from an agent that was out of the project, and given to it anew", () =>
    run((world) =>
      Effect.gen(function* () {
        const { crew } = world
        const away = Deferred.makeUnsafe<void>()
        crew.add("eve", () => Effect.never)
        crew.add("bob", () => Effect.as(Deferred.await(away), { outcome: "interrupted" }))
        yield* world.submit({ plan: world.file({ id: "a", title: "a", owner: "bob" }) })
        yield* world.until("g1", "it runs", ({ tasks }) => tasks.running === 1)
        crew.agents.delete("bob")
        crew.set("eve", { online: true })
        yield* world.state("g1", "blocked")
        // its inbox has the first try still
        crew.messages.get("plan/g1/a/1")!.fate = { _tag: "Waiting" }
        crew.add("bob", () => Effect.succeed({ output: "done" }))
        crew.set("eve", { online: true })
        yield* world.state("g1", "goal_met")
        assert.deepStrictEqual(crew.messages.get("plan/g1/a/1")!.fate, { _tag: "Dropped" })
        assert.deepStrictEqual(crew.carried, ["plan/g1/a/1", "plan/g1/a/2"])
        yield* Deferred.succeed(away, undefined)
      })
    )
  )
})
