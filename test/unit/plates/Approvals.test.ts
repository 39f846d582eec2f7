/** Permission requests of other people's sessions, answered from here. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { PlateInfo } from "../../../src/domain/Messages.ts"
import { type Board, caller, nobody, payload, run, until, type World } from "../../world/plates/World.ts"

const bash = { tool_name: "Bash", tool_input: { command: "touch a" }, tool_use_id: "c1" }
const allow = { behavior: "allow" } as const

const request = (more: object = {}) => payload("PermissionRequest", "s1", { ...bash, tool_use_id: undefined, ...more })

/** A session that asks, and whoever holds its hook open. */
const asking = Effect.fnUntraced(function* (board: Board, more: object = {}) {
  yield* board.hook("UserPromptSubmit", "s1")
  yield* board.hook("PreToolUse", "s1", { ...bash, ...more })
  const answer = yield* Effect.forkChild(board.plates.permission(request(more), nobody))
  const row = yield* board.until("s1", "it can be answered", ({ approval }) => approval !== null)
  return { answer, row }
})

const settledBy = (name: string, settle: (board: Board, row: PlateInfo) => Effect.Effect<unknown, unknown>) =>
  it.effect(name, () =>
    run(({ board }) =>
      Effect.gen(function* () {
        const { answer, row } = yield* asking(board)
        yield* Effect.orDie(settle(board, row))
        assert.strictEqual(yield* Fiber.join(answer), undefined)
        yield* until("nothing can be answered", board.rows, (rows) => rows.every(({ approval }) => approval === null))
        const late = yield* Effect.flip(board.plates.answer(row.approval!, allow, caller))
        assert.strictEqual(late._tag, "CommandRefused")
      })
    )
  )

/** Leave by somebody who has seen the request whole. */
const approve = (board: Board, name: string) =>
  Effect.flatMap(board.plates.asked(name), ({ hash }) => board.plates.answer(name, { ...allow, hash }, caller))

const answers = (world: World) => world.log.tail({ kinds: ["plate.answered"] }, 10)

describe("a permission request", () => {
  it.effect("is answered once, by its id, as a rune before it is given", () =>
    run((world) =>
      Effect.gen(function* () {
        const { board } = world
        const { answer, row } = yield* asking(board)
        assert.strictEqual(row.status, "AwaitingApproval")
        const done = yield* board.plates.answer(row.approval!, { behavior: "deny", message: "not now" }, caller)
        assert.deepStrictEqual(yield* Fiber.join(answer), { behavior: "deny", message: "not now" })
        const [rune] = yield* answers(world)
        assert.strictEqual(rune?.eventId, done.eventId)
        assert.deepInclude(rune?.payload, { tool: "Bash", behavior: "deny", by: "ada", message: "not now" })
        assert.strictEqual(
          (yield* Effect.flip(board.plates.answer(row.approval!, allow, caller)))._tag,
          "CommandRefused"
        )
        assert.strictEqual((yield* answers(world)).length, 1)
      })
    )
  )

  it.effect("that is allowed leaves the tool running, not waiting", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        const { answer, row } = yield* asking(board)
        yield* approve(board, row.plateId)
        assert.deepStrictEqual(yield* Fiber.join(answer), allow)
        assert.strictEqual((yield* board.settled("s1")).status, "Running")
      })
    )
  )

  it.effect("for a plan shows the plan as the session wrote it, which the hook itself does not say", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        const path = "/home/ada/.claude/plans/go-jazzy-stardust.md"
        const call = (tool_name: string, tool_input: object) => ({ tool_name, tool_input, tool_use_id: "w" })
        yield* board.hook("UserPromptSubmit", "s1")
        yield* board.hook("PreToolUse", "s1", call("Write", { file_path: path, content: "# Plan\n1. look" }))
        yield* board.hook("PreToolUse", "s1", call("Edit", { file_path: path, old_string: "look", new_string: "leap" }))
        const { answer, row } = yield* asking(board, { tool_name: "ExitPlanMode", tool_input: {} })
        assert.strictEqual(row.arguments, JSON.stringify({ plan: "# Plan\n1. leap" }))
        const asked = yield* board.plates.asked(row.plateId)
        assert.strictEqual(asked.input, JSON.stringify({ plan: "# Plan\n1. leap" }))
        yield* approve(board, row.plateId)
        assert.deepStrictEqual(yield* Fiber.join(answer), allow)
      })
    )
  )

  it.effect("is answered by its plate's name only where one of the plate's requests waits", () =>
    run((world) =>
      Effect.gen(function* () {
        const { board } = world
        yield* asking(board)
        const other = { tool_input: { command: "touch b" }, tool_use_id: "c2" }
        yield* board.hook("PreToolUse", "s1", { ...bash, ...other })
        const second = yield* Effect.forkChild(board.plates.permission(request(other), nobody))
        const { plateId } = yield* board.settled("s1")
        const refused = yield* until(
          "both wait",
          Effect.flip(board.plates.answer(plateId, allow, caller)),
          ({ message }) => message.startsWith("2 requests")
        )
        assert.include(refused.message, "2 requests")
        // The terminal answers the second: only its own ends.
        yield* board.hook("PostToolUse", "s1", { ...bash, ...other })
        assert.strictEqual(yield* Fiber.join(second), undefined)
        yield* approve(board, plateId)
        assert.strictEqual((yield* Effect.flip(board.plates.answer("nobody", allow, caller)))._tag, "CommandRefused")
      })
    )
  )

  it.effect("shows what it would do, bounded at a glance, and leaves none of it in the log before it is decided", () =>
    run((world) =>
      Effect.gen(function* () {
        const { board } = world
        const key = `sk-${"a".repeat(1_600)}`
        const input = { tool_input: { command: `curl -H "x: ${key}" ${"b".repeat(3_000)} end` } }
        const { row } = yield* asking(board, input)
        const shown = row.arguments ?? ""
        assert.match(shown, /^\{"command":"curl -H \\"x: sk-a+\n… \d+ characters are left out …\nb+ end"\}$/)
        assert.isBelow(shown.length, 2_100)
        const runes = yield* world.log.tail({}, 1_000)
        assert.notInclude(JSON.stringify(runes), "curl")
      })
    )
  )

  it.effect("of a run that tells its calls itself is not offered: the call has an id of its own", () => {
    const session = { agent: "shop/builder", runId: "r1" as string | null, isUp: true, turns: true, pid: 7 }
    const sessions = Effect.sync(() => [{ ...session, sessionId: "s1" }])
    return run(
      ({ board }) =>
        Effect.gen(function* () {
          const ours = { ...nobody, run: "r1" }
          yield* board.hook("UserPromptSubmit", "s1", {}, ours)
          yield* board.hook("PreToolUse", "s1", bash, ours)
          assert.strictEqual(yield* board.plates.permission(request(), ours), undefined)
          assert.deepStrictEqual(yield* board.rows, [])
          // Whoever resumes it when the run is over may answer it here.
          Object.assign(session, { runId: null, isUp: false })
          yield* board.hook("SessionStart", "s1", { source: "resume" })
          yield* asking(board, { tool_use_id: "c2" })
        }),
      { sessions }
    )
  })

  it.effect("that is open in its terminal only is refused with where that is", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* board.hook("PreToolUse", "s1", bash)
        yield* board.plates.hook(request(), nobody)
        const { plateId } = yield* board.status("s1", "AwaitingApproval")
        const refused = yield* Effect.flip(board.plates.answer(plateId, allow, caller))
        assert.include("remedy" in refused ? refused.remedy : "", `agentd focus ${plateId}`)
      })
    )
  )

  settledBy("is settled by the tool's end", (board) => board.hook("PostToolUse", "s1", bash))
  settledBy("is settled by the turn's end", (board) => board.hook("Stop", "s1", { background_tasks: [] }))
  settledBy("is settled by the process's end", (board) => board.plates.stopped({ session_id: "s1" }))
  settledBy("is settled when its plate is forgotten", (board, row) => board.plates.forget(row.plateId, caller))
  settledBy("ends when nobody answers in time", () => TestClock.adjust("10 minutes"))

  it.effect("ends when the daemon stops", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        const { answer } = yield* asking(board)
        yield* board.stop
        assert.strictEqual(yield* Fiber.join(answer), undefined)
      })
    )
  )

  it.effect("that asks to choose takes an answer, and no approval", () =>
    run((world) =>
      Effect.gen(function* () {
        const { board } = world
        const options = [{ label: "Red", description: "" }, { label: "Blue" }]
        const question = {
          tool_name: "AskUserQuestion",
          tool_input: { questions: [{ question: "Which colour?", options, multiSelect: false }] }
        }
        const { answer, row } = yield* asking(board, question)
        assert.strictEqual(row.status, "AwaitingInput")
        assert.strictEqual(row.questions?.[0]?.options[1]?.label, "Blue")
        const refused = yield* Effect.flip(board.plates.answer(row.plateId, allow, caller))
        assert.match("remedy" in refused ? refused.remedy : "", /agentd answer/)
        const two = { behavior: "allow", answers: ["1", "2"] } as const
        assert.match((yield* Effect.flip(board.plates.answer(row.plateId, two, caller))).message, /2 answered/)
        const done = yield* board.plates.answer(row.plateId, { behavior: "allow", answers: ["2"] }, caller)
        assert.strictEqual(done.message, "AskUserQuestion is answered: Blue.")
        assert.deepStrictEqual(yield* Fiber.join(answer), { behavior: "allow", answers: ["Blue"] })
        const [rune] = yield* answers(world)
        assert.deepStrictEqual(rune?.payload["answers"], ["Blue"])
        assert.strictEqual((yield* board.settled("s1")).status, "Running")
      })
    )
  )

  it.effect("is not offered for a question that cannot be told, and refused for what asks nothing", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* board.hook("UserPromptSubmit", "s1")
        const question = payload("PermissionRequest", "s1", { tool_name: "AskUserQuestion", tool_input: {} })
        assert.strictEqual(yield* board.plates.permission(question, nobody), undefined)
        assert.strictEqual((yield* board.settled("s1")).status, "AwaitingInput")
        const error = yield* Effect.flip(board.plates.permission(payload("Stop", "s1"), nobody))
        assert.strictEqual(error.field, "hook_event_name")
      })
    )
  )

  it.effect("told twice, to be seen and to be answered, is one request", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* board.hook("PreToolUse", "s1", bash)
        yield* board.plates.hook(request(), nobody)
        const answer = yield* Effect.forkChild(board.plates.permission(request(), nobody))
        const row = yield* board.until("s1", "it can be answered", ({ approval }) => approval !== null)
        assert.strictEqual(row.detail, "asks to use Bash")
        yield* approve(board, row.approval!)
        assert.deepStrictEqual(yield* Fiber.join(answer), allow)
        assert.strictEqual((yield* board.settled("s1")).status, "Running")
      })
    )
  )
})
