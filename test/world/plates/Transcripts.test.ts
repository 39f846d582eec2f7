/**
 * Tests of what the transcripts of real programs say of a plate that asks for attention: within 12 seconds of a record
 * that nobody knows it is idle, and a record that is Claude Code's own bookkeeping moves nothing; after a restart, too.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { PlateInfo } from "../../../src/domain/Messages.ts"
import { type Board, bookkeeping, restart, result, run, said, T0, toolUse, until, user, type World } from "./World.ts"

const FOLDER = join(import.meta.dirname, "../../fixtures/transcripts")

/** The lines of a recorded transcript, as they were written. */
const lines = (name: string) => readFileSync(join(FOLDER, name), "utf8").split(/(?<=\n)/)

const others = readdirSync(FOLDER).filter((name) => !name.startsWith("claude-"))

const post = (board: Board, event_type: string, more: object = {}) =>
  board.plates.event({
    event_type,
    session_id: "s1",
    cwd: "/home/user/project",
    transcript_path: board.transcript("s1"),
    ...more
  })

/** Each way to ask for attention, by the five events. */
const attention: { readonly [status in PlateInfo["status"]]?: readonly [string, object] } = {
  AwaitingInput: ["tool_start", { tool_name: "AskUserQuestion" }],
  AwaitingApproval: ["tool_start", { tool_name: "ExitPlanMode" }],
  Error: ["stop", { error: "rate_limit" }]
}
const states = Object.keys(attention) as ReadonlyArray<PlateInfo["status"]>

/** Once the check has done the round that it begins with. */
const begun = (board: Board) => until("it is checked", board.plates.health, ({ checkedAt }) => checkedAt !== null)

/** Another daemon, once it has begun. */
const again = (world: World) => Effect.tap(restart(world), begun)

/** A plate that asks for attention, and whose transcript holds `before` by then. */
const asking = Effect.fnUntraced(function* (board: Board, status: PlateInfo["status"], before: ReadonlyArray<string>) {
  yield* post(board, "session_start")
  yield* post(board, "prompt_submit")
  yield* board.status("s1", "Running")
  yield* begun(board)
  yield* board.write("s1", ...before)
  yield* board.check()
  const [event, more] = attention[status]!
  yield* post(board, event, more)
  yield* board.status("s1", status)
})

/** The status that follows from what is written 5 s after it asked: at the next check, or at that of another daemon. */
const after = (
  status: PlateInfo["status"],
  before: ReadonlyArray<string>,
  written: ReadonlyArray<string | object>,
  how: "live" | "after a restart"
) =>
  run((world: World) =>
    Effect.gen(function* () {
      yield* asking(world.board, status, before)
      if (how === "live") yield* world.board.check()
      else yield* world.board.stop
      yield* TestClock.adjust("5 seconds")
      yield* world.board.write("s1", ...(written as ReadonlyArray<string>))
      const board = how === "live" ? world.board : yield* again(world)
      yield* board.check()
      return (yield* board.settled("s1")).status
    })
  )

for (const name of others) {
  describe(name, () => {
    for (const how of ["live", "after a restart"] as const) {
      it.effect(`any of its records ends what asks for attention, ${how}`, () =>
        Effect.gen(function* () {
          const all = lines(name)
          for (const [at, line] of all.entries()) {
            if (how !== "live" && at >= states.length) break
            const status = states[at % states.length]!
            assert.strictEqual(yield* after(status, all.slice(0, at), [line], how), "Idle", line.slice(0, 200))
          }
        })
      )
    }
  })
}

describe("Claude Code's own bookkeeping", () => {
  const all = lines("claude-2.1.332-bookkeeping.jsonl")
  const before = [user("go"), said("m1")].map(
    (record) => `${JSON.stringify({ timestamp: new Date(T0).toISOString(), ...record })}\n`
  )
  for (const how of ["live", "after a restart"] as const) {
    it.effect(`ends nothing, ${how}`, () =>
      Effect.gen(function* () {
        for (const [at, line] of all.entries()) {
          if (how !== "live" && at >= states.length) break
          const status = states[at % states.length]!
          if (status === "Error" && line.includes("local_command")) continue
          assert.strictEqual(yield* after(status, before, [line], how), status, line.slice(0, 200))
        }
      })
    )
  }

  it.effect("a person's own command ends an error", () =>
    Effect.gen(function* () {
      const command = { type: "system", subtype: "local_command", content: "<command-name>/model</command-name>" }
      assert.strictEqual(yield* after("Error", before, [command], "live"), "Idle")
    })
  )

  for (const unknown of [
    { type: "of-a-later-version" },
    { type: "system", subtype: "of_a_later_version" },
    { type: "user", text: "of another form" },
    { type: "assistant", message: { role: "model", parts: [{ text: "of another form" }] } }
  ]) {
    it.effect(`a record that is none of it says nothing, and the file's time decides: ${JSON.stringify(unknown)}`, () =>
      Effect.gen(function* () {
        for (const status of states) {
          for (const how of ["live", "after a restart"] as const) {
            assert.strictEqual(yield* after(status, before, [unknown], how), "Idle")
            assert.strictEqual(yield* after(status, before, [bookkeeping, unknown, bookkeeping], how), "Idle")
            const untimed = `${JSON.stringify(unknown)}\n`
            assert.strictEqual(yield* after(status, before, [untimed], how), "Idle")
            // what nobody knows is older than the turn's last record that is known
            assert.strictEqual(yield* after(status, [untimed, ...before], [bookkeeping], how), status)
          }
        }
      })
    )
  }
})

describe("a record without a time", () => {
  const untimed = (record: object) => `${JSON.stringify(record)}\n`

  it.effect("is no news after a restart", () =>
    Effect.gen(function* () {
      const answered = [untimed(user("go")), untimed(toolUse("m1", "q1", "AskUserQuestion")), untimed(result("q1"))]
      const known = `${JSON.stringify({ ...said("m2"), timestamp: new Date(T0).toISOString() })}\n`
      for (const how of ["live", "after a restart"] as const) {
        for (const status of states) {
          assert.strictEqual(yield* after(status, [...answered, known], [bookkeeping], how), status)
        }
      }
    })
  )

  it.effect("ends what asks for attention by the file's time, live and after a restart", () =>
    Effect.gen(function* () {
      for (const how of ["live", "after a restart"] as const) {
        for (const status of states) {
          assert.strictEqual(yield* after(status, [], [untimed(user("never mind"))], how), "Idle")
        }
      }
    })
  )
})

describe("a question that is open while background work ends, as Claude Code wrote it", () => {
  const all = lines("claude-2.1.332-question.jsonl")
  const asks = all.findIndex((line) => line.includes('"name":"AskUserQuestion"'))
  const answered = all.findIndex((line, at) => at > asks && line.includes('"tool_result"'))
  const timeOf = (line: string) => Date.parse(/"timestamp":"([^"]+)"/.exec(line)![1]!)

  for (const how of ["live", "after a restart"] as const) {
    it.effect(`stays until it is answered, ${how}`, () =>
      run((world: World) =>
        Effect.gen(function* () {
          yield* TestClock.setTime(timeOf(all[asks]!))
          yield* post(world.board, "session_start")
          yield* world.board.write("s1", ...all.slice(0, asks + 1))
          yield* post(world.board, "tool_start", { tool_name: "AskUserQuestion" })
          yield* world.board.status("s1", "AwaitingInput")
          yield* TestClock.adjust("12 seconds")
          yield* world.board.write("s1", ...all.slice(asks + 1, answered))
          const board = how === "live" ? world.board : yield* again(world)
          yield* board.check()
          assert.strictEqual((yield* board.settled("s1")).status, "AwaitingInput")
          yield* board.write("s1", ...all.slice(answered))
          yield* board.check()
          assert.strictEqual((yield* board.settled("s1")).status, "Idle")
        })
      )
    )
  }
})

it.effect("a file of one text that never ends in a line is looked at again within the bound", () =>
  run(({ board }) =>
    Effect.gen(function* () {
      yield* asking(board, "AwaitingInput", ['[{"role":"user"}'])
      yield* board.check()
      yield* TestClock.adjust("5 seconds")
      yield* board.write("s1", ',{"role":"assistant","content":"Done."}]')
      yield* board.check()
      yield* TestClock.adjust("2 seconds")
      // the clock of the test stands, so that a slow machine may take its time to read the file
      yield* board.status("s1", "Idle")
    })
  )
)
