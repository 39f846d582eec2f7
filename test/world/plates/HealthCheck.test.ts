/** Tests of reading the transcript for facts that hooks do not tell, within the health check's bounds. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Stream } from "effect"
import { TestClock } from "effect/testing"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { PlateInfo } from "../../../src/domain/Messages.ts"
import {
  apiError,
  assistant,
  type Board,
  bookkeeping,
  interrupt,
  restart,
  result,
  run,
  said,
  T0,
  toolUse,
  until,
  user
} from "./World.ts"

const bash = { tool_name: "Bash", tool_input: { command: "ls" }, tool_use_id: "c1" }
const question = { tool_name: "AskUserQuestion", tool_input: { questions: [] }, tool_use_id: "q1" }
const asked = { tool_name: "AskUserQuestion", tool_input: { questions: [] } }

const fixture = (name: string) =>
  readFileSync(join(import.meta.dirname, "../../fixtures/hooks", name), "utf8").split(/(?<=\n)/)

const statusOf = (board: Board) => Effect.map(board.settled("s1"), ({ status }) => status)

/** A session with a question open, and its transcript as it is then. */
const withQuestion = Effect.fnUntraced(function* (board: Board) {
  yield* board.hook("SessionStart", "s1", { source: "startup" })
  yield* board.hook("UserPromptSubmit", "s1", { prompt: "go" })
  yield* board.write("s1", user("go"), toolUse("m1", "q1", "AskUserQuestion"))
  yield* board.hook("PreToolUse", "s1", question)
  yield* board.hook("PermissionRequest", "s1", asked)
  yield* board.status("s1", "AwaitingInput")
})

/** The records of 15 seconds after the question, and the next check's result. */
const story = (name: string, ends: PlateInfo["status"], act: (board: Board) => Effect.Effect<void, unknown>) =>
  it.effect(name, () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* withQuestion(board)
        yield* board.check()
        yield* TestClock.adjust("5 seconds")
        yield* act(board).pipe(Effect.orDie)
        yield* board.check()
        assert.strictEqual(yield* statusOf(board), ends)
      })
    )
  )

describe("a question that is open", () => {
  story("is over when its call has its result, and the turn goes on", "Running", (board) =>
    board.write("s1", result("q1"))
  )
  story("is over when the agent has gone on to its next message", "Running", (board) =>
    board.write("s1", assistant("m2", [{ type: "text", text: "Well." }]))
  )
  story("is over when a person has gone on to another prompt", "Running", (board) =>
    board.write("s1", user("never mind"))
  )
  story("is over, and the turn with it, when the turn has ended", "Idle", (board) =>
    board.write("s1", result("q1"), said("m2"), { type: "system", subtype: "turn_duration" })
  )
  story("is over when it was escaped from", "Idle", (board) =>
    board.write("s1", result("q1"), interrupt(" for tool use"))
  )
  story("is not over while the file holds bookkeeping only", "AwaitingInput", (board) =>
    board.write("s1", bookkeeping, { type: "queue-operation", operation: "enqueue" })
  )
  story("is not over when another call has its result", "AwaitingInput", (board) =>
    board.write("s1", toolUse("m1", "c1", "Bash"), result("c1"))
  )
  story("is not over for what another chain says, an interrupt of it included", "AwaitingInput", (board) =>
    board.write("s1", { ...interrupt(), isSidechain: true }, { ...said("m9"), isSidechain: true })
  )
  story("is not over while a record is half written", "AwaitingInput", (board) => board.write("s1", '{"type":"ass'))
  story("is over by the file's time where the content says nothing: it was touched", "Idle", (board) =>
    board.write("s1")
  )
  story("is over by the file's time where nobody knows the content", "Idle", (board) =>
    board.write("s1", "no json at all\n", '{"kind":"of a later version"}\n')
  )
  story("is over by the file's time where a half record stays one", "Idle", (board) =>
    Effect.andThen(board.write("s1", '{"type":"ass'), board.check())
  )
})

describe("the mtime alone", () => {
  const after = (millis: number) =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* withQuestion(board)
        yield* board.check()
        yield* board.touch("s1", T0 + millis)
        yield* board.check()
        return yield* statusOf(board)
      })
    )
  it.effect("102 over 100 is fresh", () =>
    Effect.map(after(2_999), (status) => assert.strictEqual(status, "AwaitingInput"))
  )
  it.effect("103 over 100 is stale", () => Effect.map(after(3_000), (status) => assert.strictEqual(status, "Idle")))
})

describe("an error", () => {
  const failing = (act: (board: Board) => Effect.Effect<void, unknown>, ends: PlateInfo["status"]) =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* board.hook("UserPromptSubmit", "s1")
        yield* board.hook("StopFailure", "s1", { error: "rate_limit" })
        yield* board.write("s1", user("go"))
        yield* board.status("s1", "Error")
        yield* TestClock.adjust("5 seconds")
        yield* Effect.orDie(act(board))
        yield* board.check()
        assert.strictEqual(yield* statusOf(board), ends)
      })
    )
  it.effect("is over when a person tries again", () => failing((board) => board.write("s1", user("again")), "Idle"))
  it.effect("is not over for bookkeeping", () => failing((board) => board.write("s1", bookkeeping), "Error"))
})

describe("a turn that is on", () => {
  const running = Effect.fnUntraced(function* (board: Board) {
    yield* board.hook("SessionStart", "s1", { source: "startup" })
    yield* board.hook("UserPromptSubmit", "s1", { prompt: "go" })
    yield* board.write("s1", user("go"))
    yield* board.status("s1", "Running")
  })

  it.effect("ends at once by an interrupt's line", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* running(board)
        yield* TestClock.adjust("1 second")
        yield* board.write("s1", interrupt())
        yield* board.check()
        const row = yield* board.settled("s1")
        assert.deepStrictEqual([row.status, row.restsOn?.signal], ["Idle", "transcript"])
      })
    )
  )

  it.effect("does not end by an interrupt of before it", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* running(board)
        yield* TestClock.adjust("1 second")
        yield* board.write("s1", interrupt())
        yield* TestClock.adjust("200 millis")
        yield* board.hook("UserPromptSubmit", "s1", { prompt: "another" })
        yield* board.check()
        assert.strictEqual(yield* statusOf(board), "Running")
      })
    )
  )

  it.effect("that failed ends at once by its line, though the hook that tells of it is lost, and says why", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* running(board)
        yield* TestClock.adjust("1 second")
        yield* board.write("s1", apiError("rate_limit"))
        yield* board.check()
        const row = yield* board.settled("s1")
        assert.deepStrictEqual([row.status, row.restsOn?.signal, row.detail], ["Error", "transcript", "rate_limit"])
        yield* TestClock.adjust("1 second")
        yield* board.hook("UserPromptSubmit", "s1", { prompt: "again" })
        yield* board.write("s1", user("again"))
        yield* board.check()
        assert.strictEqual(yield* statusOf(board), "Running")
      })
    )
  )

  it.effect("that failed as its session ended has failed in the log, too", () =>
    run(({ board, log }) =>
      Effect.gen(function* () {
        yield* running(board)
        yield* TestClock.adjust("1 second")
        yield* board.write("s1", apiError("server_error"))
        yield* board.hook("SessionEnd", "s1", { reason: "other" })
        yield* board.settled("s1")
        const moves = yield* log.read({ kinds: ["plate.moved"] }).pipe(Stream.runCollect)
        assert.include(
          moves.map(({ to }) => to),
          "Error"
        )
      })
    )
  )

  it.effect("ends by an interrupt also while subagents go on telling", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* running(board)
        yield* TestClock.adjust("1 second")
        yield* board.write("s1", interrupt())
        yield* TestClock.adjust("1 second")
        yield* board.hook("PreToolUse", "s1", { ...bash, agent_id: "a1" })
        yield* board.check()
        assert.strictEqual(yield* statusOf(board), "Idle")
      })
    )
  )

  it.effect("goes on where an interrupt only makes room for a prompt that was queued", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* running(board)
        yield* board.hook("PreToolUse", "s1", bash)
        yield* board.hook("UserPromptSubmit", "s1", { prompt: "second" })
        yield* TestClock.adjust("1 second")
        yield* board.write("s1", { type: "queue-operation", operation: "dequeue" }, user("second"))
        yield* board.write("s1", result("c1"), interrupt(" for tool use"))
        yield* board.check()
        assert.strictEqual(yield* statusOf(board), "Running")
      })
    )
  )

  it.effect("ends when all has been quiet for 30 s and the last record ends a turn", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* running(board)
        yield* board.write("s1", said("m1"))
        for (let round = 0; round < 3; round++) yield* board.check()
        assert.strictEqual(yield* statusOf(board), "Running")
        yield* board.check()
        assert.strictEqual(yield* statusOf(board), "Idle")
      })
    )
  )

  it.effect("goes on for 600 s where the last record ends none, and no longer", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* running(board)
        for (let round = 0; round < 60; round++) yield* board.check()
        assert.strictEqual(yield* statusOf(board), "Running")
        assert.include((yield* board.plates.find("s1")).detail, "silent for")
        yield* board.check()
        assert.strictEqual(yield* statusOf(board), "Idle")
      })
    )
  )

  it.effect("goes on while anything is heard", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* running(board)
        yield* board.write("s1", said("m1"))
        for (let round = 0; round < 8; round++) {
          yield* board.hook("MessageDisplay", "s1")
          yield* board.check()
        }
        assert.strictEqual(yield* statusOf(board), "Running")
      })
    )
  )

  it.effect("goes on while the conversation is compacted, however long that takes", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* running(board)
        yield* board.write("s1", said("m1"))
        yield* board.hook("Stop", "s1", { background_tasks: [] })
        yield* board.hook("PreCompact", "s1", { trigger: "manual" })
        for (let round = 0; round < 8; round++) yield* board.check()
        assert.strictEqual(yield* statusOf(board), "Running")
      })
    )
  )

  it.effect("a compaction does not end by an interrupt of before it", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* running(board)
        yield* TestClock.adjust("1 second")
        yield* board.write("s1", interrupt())
        yield* TestClock.adjust("200 millis")
        yield* board.hook("PreCompact", "s1", { trigger: "manual" })
        for (let round = 0; round < 3; round++) yield* board.check()
        assert.strictEqual(yield* statusOf(board), "Running")
      })
    )
  )

  it.effect("ends by what was written while no daemon ran", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* running(world.board)
        yield* world.board.stop
        yield* TestClock.adjust("1 second")
        yield* world.board.write("s1", interrupt())
        const again = yield* restart(world)
        yield* again.status("s1", "Idle")
      })
    )
  )
})

describe("the captured transcripts", () => {
  for (const [name, waits] of [
    ["transcript-permission-escape.jsonl", true],
    ["transcript-streaming-escape.jsonl", false]
  ] as const) {
    it.effect(`${name}: the session is idle after the escape`, () =>
      run(({ board }) =>
        Effect.gen(function* () {
          const lines = fixture(name)
          const started = Date.parse(/"timestamp":"([^"]+)"/.exec(lines.join(""))![1]!)
          yield* TestClock.setTime(started)
          yield* board.hook("UserPromptSubmit", "s1")
          if (waits) yield* board.hook("PermissionRequest", "s1", { tool_name: "Bash", tool_input: {} })
          yield* board.status("s1", waits ? "AwaitingApproval" : "Running")
          yield* TestClock.adjust("5 seconds")
          yield* board.write("s1", ...lines.filter((line) => line !== ""))
          yield* board.check()
          assert.strictEqual(yield* statusOf(board), "Idle")
          const row = yield* board.plates.find("s1")
          assert.deepStrictEqual([row.branch, row.title], ["main", waits ? "make a file" : "tell me"])
          assert.isAbove(row.tokens ?? 0, 0)
        })
      )
    )
  }
})

describe("a subagent's dialog", () => {
  it.effect("is over when the subagent's own transcript says so", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* board.hook("UserPromptSubmit", "s1")
        yield* board.hook("Stop", "s1", { background_tasks: [{ id: "a1" }] })
        yield* board.hook("PreToolUse", "s1", { ...bash, agent_id: "a1" })
        yield* board.hook("PermissionRequest", "s1", { tool_name: "Bash", tool_input: bash.tool_input, agent_id: "a1" })
        yield* board.write("s1", user("go"), said("m1"))
        yield* board.write("s1/subagents/agent-a1", { ...toolUse("m1", "c1", "Bash"), isSidechain: true })
        yield* board.status("s1", "AwaitingApproval")
        yield* TestClock.adjust("5 seconds")
        yield* board.write("s1", user("another"), said("m2"))
        yield* board.check()
        assert.strictEqual(yield* statusOf(board), "AwaitingApproval")
        yield* board.write("s1/subagents/agent-a1", { ...result("c1"), isSidechain: true })
        yield* board.check()
        assert.strictEqual(yield* statusOf(board), "Idle")
      })
    )
  )
})

describe("the check itself", () => {
  it.effect("waits one round when it comes late by more than three intervals", () =>
    Effect.gen(function* () {
      // A machine that sleeps: the wall clock jumps, and no timer with it.
      const base = yield* Clock.Clock
      let slept = 0
      const clock: Clock.Clock = Object.assign(Object.create(base), {
        currentTimeMillisUnsafe: () => base.currentTimeMillisUnsafe() + slept,
        currentTimeMillis: Effect.sync(() => base.currentTimeMillisUnsafe() + slept)
      })
      yield* run(({ board }) =>
        Effect.gen(function* () {
          yield* withQuestion(board)
          yield* board.check()
          yield* board.write("s1", "no json\n")
          const { checkedAt } = yield* board.plates.health
          slept = 31_000
          yield* TestClock.adjust("10 seconds")
          assert.strictEqual(yield* statusOf(board), "AwaitingInput")
          assert.strictEqual((yield* board.plates.health).checkedAt, checkedAt)
          yield* board.check()
          assert.strictEqual(yield* statusOf(board), "Idle")
        })
      ).pipe(Effect.provideService(Clock.Clock, clock))
    })
  )

  it.effect("does not even wake up while no plate is open, and goes on with the next one", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* board.hook("SessionStart", "s1", { source: "startup" })
        yield* board.settled("s1")
        yield* board.plates.stopped({ session_id: "s1" })
        const { checkedAt } = yield* board.plates.health
        yield* TestClock.adjust("5 minutes")
        yield* board.settled("s1")
        assert.strictEqual((yield* board.plates.health).checkedAt, checkedAt)
        yield* withQuestion(board)
        yield* TestClock.adjust("1 second")
        yield* board.write("s1", result("q1"))
        yield* board.check()
        yield* board.check()
        assert.strictEqual(yield* statusOf(board), "Running")
      })
    )
  )

  it.effect("a session without a transcript is reported, not skipped in silence", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* board.plates.event({ event_type: "prompt_submit", session_id: "s1", cwd: "/" })
        yield* board.hook("UserPromptSubmit", "s2")
        yield* board.hook("SessionStart", "s3", { source: "startup" })
        yield* board.settled("s3")
        yield* board.check()
        yield* board.check()
        const watchable = (yield* board.rows).map((row) => [row.sessionId, row.watchable])
        assert.sameDeepMembers(watchable, [
          ["s1", false],
          ["s2", false],
          // Before its first prompt it has none yet.
          ["s3", true]
        ])
      })
    )
  )

  it.effect("a transcript that is cut short, replaced or huge holds it up nowhere", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* withQuestion(board)
        yield* board.wipe("s1")
        yield* board.write("s1", `${JSON.stringify({ type: "user", message: { content: "x".repeat(5_000_000) } })}\n`)
        yield* board.write("s1", user("go"), toolUse("m1", "q1", "AskUserQuestion"))
        yield* board.check()
        yield* board.check()
        assert.strictEqual(yield* statusOf(board), "AwaitingInput")
        yield* board.write("s1", result("q1"))
        yield* board.check()
        assert.strictEqual(yield* statusOf(board), "Running")
      })
    )
  )

  it.live("looks sooner where the system tells that the file was written", () =>
    // In real time, and long before the health check's first round after it.
    run(
      ({ board }) =>
        Effect.gen(function* () {
          yield* withQuestion(board)
          yield* TestClock.adjust("3 seconds")
          yield* until(
            "the watch sees a line",
            Effect.gen(function* () {
              yield* board.write("s1", result("q1"))
              yield* TestClock.adjust("60 millis")
              return yield* board.plates.find("s1")
            }),
            ({ status }) => status === "Running"
          )
          assert.isBelow((yield* board.plates.health).checkedAt!, T0 + 10_000)
        }),
      { watch: true }
    ).pipe(Effect.provide(TestClock.layer()))
  )
})
