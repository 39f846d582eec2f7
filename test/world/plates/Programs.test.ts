/** Coding CLIs that a person has started in a terminal, and that have reported nothing. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { sourceOf } from "../../../src/plates/Programs.ts"
import { SESSION_SOURCES } from "../../../src/plates/SessionSources.ts"
import { Lookup, type Program } from "../../../src/runs/process/ProcessTable.ts"
import { type Board, caller, child, nobody, payload, run, until } from "./World.ts"

const codex = SESSION_SOURCES.find(({ id }) => id === "codex")!
const home = process.env["HOME"]!

/** Clock ticks. */
const OLDER = 1_000

const world = <E>(body: (board: Board, programs: Array<Program>) => Effect.Effect<void, E, Scope.Scope>) =>
  Effect.gen(function* () {
    const programs: Array<Program> = []
    const real = yield* Lookup
    // each process, as if it had run for ten seconds more
    const lookup: Lookup = {
      ...real,
      identify: (pid) => ({ pid, start: real.identify(pid).start - OLDER }),
      isAlive: ({ pid, start }) => real.isAlive({ pid, start: start + OLDER }),
      programs: Effect.sync(() => programs)
    }
    yield* Effect.provideService(
      run(({ board }) => body(board, programs), { home }),
      Lookup,
      lookup
    )
  })

const program = Effect.fnUntraced(function* (argv: ReadonlyArray<string>, parent = 1) {
  const { identify } = yield* Lookup
  const { pid, start } = identify(yield* child)
  return { pid, start, parent, group: pid, session: pid, argv, cwd: "/home/user/project" }
})

const round = TestClock.adjust("10 seconds")

describe("a program in a terminal", () => {
  it.each([
    [["codex"], "codex"],
    [["/usr/local/bin/codex", "resume", "--last"], "codex"],
    [["node", "/usr/bin/gemini", "-m", "flash"], "gemini"],
    [["/usr/bin/node", "--no-warnings", "/opt/qwen/bin/qwen.js"], "qwen"],
    [["bash", "-c", "codex exec"], undefined],
    [["vim", "codex"], undefined],
    [["node", "server.js", "gemini"], undefined],
    [["npm", "exec", "@google/gemini-cli"], undefined],
    [["node"], undefined],
    [[], undefined]
  ] as const)("%j is %s", (argv, id) => {
    assert.strictEqual(sourceOf(argv)?.id, id)
  })

  it.effect("is open, and its session's hooks find its row", () =>
    world((board, programs) =>
      Effect.gen(function* () {
        const wrapper = yield* program(["node", "/usr/bin/codex"])
        const inner = yield* program(["/opt/codex"], wrapper.pid)
        programs.push(wrapper, inner)
        yield* round
        const [row] = yield* until("it has a row", board.rows, (rows) => rows[0]?.pid === inner.pid)
        assert.include(row, { status: "Starting", word: "open", detail: "Codex: has reported nothing yet" })
        yield* round
        const start = payload("SessionStart", "s1", { source: "startup" })
        yield* board.plates.hook(start, { ...nobody, pid: inner.pid }, codex)
        yield* board.status("s1", "Idle")
        assert.deepStrictEqual(
          (yield* board.rows).map(({ plateId }) => plateId),
          [row!.plateId]
        )
      })
    )
  )

  it.effect("is the row of its session, even if the session's first hook is not its start", () =>
    world((board, programs) =>
      Effect.gen(function* () {
        const open = yield* program(["codex"])
        programs.push(open)
        yield* round
        const [row] = yield* until("it has a row", board.rows, ({ length }) => length === 1)
        // as Codex does when the user leaves it before the first prompt
        const end = payload("SessionEnd", "s1", { reason: "other" })
        yield* board.plates.hook(end, { ...nobody, pid: open.pid }, codex)
        assert.strictEqual((yield* board.settled("s1")).plateId, row!.plateId)
        assert.strictEqual((yield* board.rows).length, 1)
      })
    )
  )

  it.effect("whose session is known already has one row, even if the hook came from its wrapper", () =>
    world((board, programs) =>
      Effect.gen(function* () {
        const wrapper = yield* program(["node", "/usr/bin/codex"])
        const inner = yield* program(["/opt/codex"], wrapper.pid)
        const start = payload("SessionStart", "s1", { source: "startup" })
        yield* board.plates.hook(start, { ...nobody, pid: wrapper.pid }, codex)
        yield* board.status("s1", "Idle")
        programs.push(wrapper, inner)
        yield* round
        yield* board.settled("s1")
        assert.strictEqual((yield* board.rows).length, 1)
      })
    )
  )

  it.effect("that the user told agentd to forget is not found again; one that ends without a session is gone", () =>
    world((board, programs) =>
      Effect.gen(function* () {
        programs.push(yield* program(["codex"]), yield* program(["gemini"]))
        yield* round
        const rows = yield* until("both have rows", board.rows, ({ length }) => length === 2)
        const forgotten = rows.find(({ detail }) => detail.startsWith("Codex"))!
        yield* board.plates.forget(forgotten.plateId, caller)
        yield* round
        const left = yield* board.rows
        assert.deepStrictEqual(
          left.map(({ detail }) => detail),
          ["Gemini CLI: has reported nothing yet"]
        )
        process.kill(left[0]!.pid!)
        programs.splice(0)
        const shown = Effect.andThen(TestClock.adjust("1 second"), board.plates.list({ closed: false }))
        yield* until("it is gone", shown, ({ length }) => length === 0)
      })
    )
  )
})
