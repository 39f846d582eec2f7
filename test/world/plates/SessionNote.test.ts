/** Tests of the session's own note: it makes good what no hook has told, and nothing that a hook knows better. */
import { assert, describe, it } from "@effect/vitest"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Clock, Effect, FileSystem, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { identify, isAlive } from "../../../src/runs/process/ProcessTable.ts"
import type { PlateInfo } from "../../../src/domain/Messages.ts"
import { Discovery } from "../../../src/plates/Discovery.ts"
import type { EventIntake, Origin } from "../../../src/plates/EventIntake.ts"
import { EventRefused } from "../../../src/plates/JsonReader.ts"
import type { PlateRegistry } from "../../../src/plates/PlateRegistry.ts"
import { type Board, breathe, caller, child, interrupt, restart, run, until } from "./World.ts"

const bash = { tool_name: "Bash", tool_input: { command: "ls" }, tool_use_id: "c1" }
const question = { tool_name: "AskUserQuestion", tool_input: { questions: [] }, tool_use_id: "q1" }

type Fields = { readonly [field: string]: unknown }

/** A session with its config folder, whose process is the given one. */
class Session {
  private readonly board: Board
  readonly pid: number
  private readonly config: string

  constructor(board: Board, pid: number, config = join(board.folder, "config")) {
    this.board = board
    this.pid = pid
    this.config = config
    mkdirSync(join(this.config, "sessions"), { recursive: true })
    mkdirSync(dirname(this.transcript), { recursive: true })
  }

  get transcript(): string {
    return join(this.config, "projects", "-home-user-project", "s1.jsonl")
  }

  hook(name: string, more: Fields = {}, origin: Partial<Origin> = {}) {
    return this.board.hook(name, "s1", { transcript_path: this.transcript, ...more }, origin)
  }

  /** As Claude Code writes it, now. */
  readonly notes = Effect.fnUntraced({ self: this }, function* (this: Session, status: string, more: Fields = {}) {
    const file = {
      pid: this.pid,
      procStart: String(identify(this.pid).start),
      sessionId: "s1",
      cwd: "/home/user/project",
      kind: "interactive",
      startedAt: 1,
      status,
      statusUpdatedAt: yield* Clock.currentTimeMillis,
      ...more
    }
    this.writes(JSON.stringify(file))
  })

  /** A record of its transcript. */
  readonly says = Effect.fnUntraced({ self: this }, function* (this: Session, record: Fields) {
    const timestamp = new Date(yield* Clock.currentTimeMillis).toISOString()
    appendFileSync(this.transcript, `${JSON.stringify({ timestamp, ...record })}\n`)
  })

  writes(text: string): void {
    writeFileSync(join(this.config, "sessions", `${this.pid}.json`), text)
  }

  readonly status = Effect.suspend(() =>
    Effect.map(Effect.andThen(this.board.check(), this.board.settled("s1")), ({ status }) => status)
  )
}

const story = (name: string, body: (session: Session, board: Board) => Effect.Effect<void, unknown>) =>
  it.effect(name, () =>
    run(({ board }) =>
      Effect.gen(function* () {
        const session = new Session(board, yield* child)
        yield* session.hook("SessionStart", { source: "startup" })
        yield* body(session, board)
      })
    )
  )

const turn = (session: Session) => session.hook("UserPromptSubmit", { prompt: "go" })
const asking = (session: Session) =>
  Effect.andThen(
    turn(session),
    Effect.andThen(session.hook("PreToolUse", question), session.hook("PermissionRequest", question))
  )
const failed = (session: Session) => Effect.andThen(turn(session), session.hook("StopFailure", { error: "rate_limit" }))
const nothing = () => Effect.void

const waiting = { waitingFor: "permission prompt" }

describe("a note that is newer than the hooks", () => {
  const rows: ReadonlyArray<
    readonly [
      what: string,
      before: (session: Session) => Effect.Effect<unknown, unknown>,
      string,
      Fields,
      PlateInfo["status"]
    ]
  > = [
    ["a turn that began unheard", nothing, "busy", {}, "Running"],
    ["a turn that ended unheard, as by Esc before the first word", turn, "idle", {}, "Idle"],
    ["a turn that ended while a shell goes on", turn, "shell", {}, "Idle"],
    ["a permission that is asked for unheard", turn, "waiting", waiting, "AwaitingApproval"],
    ["a question that was asked unheard", turn, "waiting", { waitingFor: "input needed" }, "AwaitingInput"],
    ["a dialog of a kind that is not known", turn, "waiting", { waitingFor: "of a later version" }, "AwaitingInput"],
    ["a person's own dialog, as of /model", turn, "waiting", { waitingFor: "dialog open" }, "Running"],
    ["a person's own dialog with no turn", nothing, "waiting", { waitingFor: "dialog open" }, "Idle"],
    ["a dialog that opened with no turn", nothing, "waiting", waiting, "AwaitingApproval"],
    ["a question that was answered unheard", asking, "busy", {}, "Running"],
    ["a question that was escaped from", asking, "idle", {}, "Idle"],
    ["a try after a failure", failed, "busy", {}, "Running"],
    ["a failure, which leaves the session idle", failed, "idle", {}, "Error"],
    ["a status of a later version", turn, "dreaming", {}, "Running"]
  ]
  for (const [what, before, status, more, then] of rows) {
    story(`${what}: ${then}`, (session, board) =>
      Effect.gen(function* () {
        yield* before(session)
        yield* TestClock.adjust("1 second")
        yield* session.notes(status, more)
        assert.strictEqual(yield* session.status, then)
        const { restsOn } = yield* board.settled("s1")
        const says = what !== "a failure, which leaves the session idle" && what !== "a status of a later version"
        if (says && more["waitingFor"] !== "dialog open") {
          assert.strictEqual(restsOn?.signal, "session")
        }
      })
    )
  }
})

describe("a note counts for nothing", () => {
  const ignored = (name: string, write: (session: Session) => Effect.Effect<void, unknown>) =>
    story(name, (session) =>
      Effect.gen(function* () {
        yield* turn(session)
        yield* TestClock.adjust("1 second")
        yield* write(session)
        assert.strictEqual(yield* session.status, "Running")
      })
    )
  ignored("that is no JSON", (session) => Effect.sync(() => session.writes('{"pid":')))
  ignored("that is a folder's worth of something else", (session) => Effect.sync(() => session.writes("[1,2,3]")))
  ignored("of another session in this process", (session) => session.notes("idle", { sessionId: "s2" }))
  ignored("of a process that is gone: its pid is another's now", (session) => session.notes("idle", { procStart: "1" }))
  ignored("from before the turn that was heard of", (session) => session.notes("idle", { statusUpdatedAt: 1 }))

  story("that was written before the dialog opened", (session) =>
    Effect.gen(function* () {
      yield* turn(session)
      yield* session.notes("busy")
      yield* TestClock.adjust("1 second")
      yield* asking(session)
      assert.strictEqual(yield* session.status, "AwaitingInput")
    })
  )

  story("where the turn is over and only its background work is busy", (session) =>
    Effect.gen(function* () {
      yield* turn(session)
      yield* session.hook("Stop", { background_tasks: [{ id: "b1", type: "agent", status: "running" }] })
      yield* TestClock.adjust("1 second")
      yield* session.notes("busy")
      assert.strictEqual(yield* session.status, "Idle")
    })
  )
})

story("a turn that is noted as busy is not ended by silence; one that says nothing is", (session) =>
  Effect.gen(function* () {
    yield* turn(session)
    yield* session.notes("busy")
    yield* TestClock.adjust("15 minutes")
    assert.strictEqual(yield* session.status, "Running")
    session.writes("")
    assert.strictEqual(yield* session.status, "Idle")
  })
)

story("whose a dialog is that was noted is known with its hook: that call's end ends it", (session, board) =>
  Effect.gen(function* () {
    yield* turn(session)
    yield* TestClock.adjust("1 second")
    yield* session.notes("waiting", waiting)
    assert.strictEqual(yield* session.status, "AwaitingApproval")
    yield* session.hook("PermissionRequest", bash)
    yield* session.hook("PostToolUse", { ...bash, tool_response: {} })
    yield* board.status("s1", "Running")
  })
)

story("an interrupt that is older than a dialog which is noted ends nothing", (session, board) =>
  Effect.gen(function* () {
    yield* turn(session)
    yield* TestClock.adjust("1 second")
    yield* session.says(interrupt())
    assert.strictEqual(yield* session.status, "Idle")
    // the next prompt and its dialog are told by no hook
    yield* session.notes("waiting", waiting)
    yield* TestClock.adjust("1 second")
    for (let round = 0; round < 3; round++) assert.strictEqual(yield* session.status, "AwaitingApproval")
    yield* session.says(interrupt())
    assert.strictEqual(yield* session.status, "Idle")
    assert.strictEqual((yield* board.settled("s1")).restsOn?.signal, "transcript")
  })
)

story("an interrupt that is older than a dialog which only a notification told of ends nothing", (session, board) =>
  Effect.gen(function* () {
    yield* turn(session)
    yield* TestClock.adjust("1 second")
    yield* session.says(interrupt())
    assert.strictEqual(yield* session.status, "Idle")
    yield* session.hook("Notification", { notification_type: "permission_prompt", message: "" })
    for (let round = 0; round < 3; round++) assert.strictEqual(yield* session.status, "AwaitingApproval")
    yield* session.says(interrupt())
    assert.strictEqual(yield* session.status, "Idle")
    assert.strictEqual((yield* board.settled("s1")).restsOn?.signal, "transcript")
  })
)

story("the note of its process is read where that is known, whatever else lies there", (session) =>
  Effect.gen(function* () {
    yield* session.hook("SessionStart", { source: "resume" }, { pid: session.pid })
    yield* turn(session)
    yield* TestClock.adjust("1 second")
    yield* session.notes("idle")
    assert.strictEqual(yield* session.status, "Idle")
  })
)

describe("a session that no hook has told of", () => {
  /** Once it is on the board, and was looked at. */
  const found = (session: Session, board: Board) =>
    Effect.gen(function* () {
      yield* session.notes("waiting", waiting)
      yield* TestClock.adjust("10 seconds")
      yield* until("it is met", board.rows, (rows) => rows.length > 0)
      yield* board.check()
    })
  const unheard = (name: string, body: (session: Session, board: Board) => Effect.Effect<void, unknown, Scope.Scope>) =>
    it.effect(name, () =>
      Effect.gen(function* () {
        const folder = mkdtempSync(join(tmpdir(), "agentd-claude-"))
        yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true })))
        const pid = yield* child
        yield* run(({ board }) => body(new Session(board, pid, folder), board), { claudeFolder: folder })
      })
    )

  unheard("is on the board with what it notes of itself, and closed when its process is gone", (session, board) =>
    Effect.gen(function* () {
      yield* found(session, board)
      const identity = identify(session.pid)
      const row = yield* board.status("s1", "AwaitingApproval")
      assert.strictEqual(row.restsOn?.signal, "session")
      assert.strictEqual(row.cwd, "/home/user/project")
      process.kill(session.pid, "SIGKILL")
      yield* until(
        "it is gone",
        Effect.sync(() => isAlive(identity)),
        (alive) => !alive
      )
      yield* TestClock.adjust("2 seconds")
      yield* board.status("s1", "Closed")
    })
  )

  unheard("that Claude Code holds in the background is on the board like another", (session, board) =>
    Effect.gen(function* () {
      yield* session.notes("waiting", { ...waiting, kind: "bg", entrypoint: "cli", jobId: "297e68bf" })
      yield* TestClock.adjust("10 seconds")
      yield* until("it is met", board.rows, (rows) => rows.length > 0)
      yield* board.check()
      yield* board.status("s1", "AwaitingApproval")
    })
  )

  unheard("is on the board with what it is about from the first moment", (session, board) =>
    Effect.gen(function* () {
      yield* TestClock.adjust("1 second")
      yield* session.notes("busy", { statusUpdatedAt: yield* Clock.currentTimeMillis })
      yield* TestClock.adjust("9 seconds")
      // no check, and no watch, has looked at it since
      const rows = yield* until("it is met", board.rows, (rows) => rows.some(({ status }) => status !== "Starting"))
      // its note is read at once, and no clock goes on for it
      yield* board.status("s1", "Running")
      assert.lengthOf(rows, 1)
    })
  )

  unheard("that two processes have open has one row, which needs a person when either does", (session, board) =>
    Effect.gen(function* () {
      const other = new Session(board, yield* child, dirname(dirname(dirname(session.transcript))))
      const both = (first: string, second: string) =>
        Effect.gen(function* () {
          yield* TestClock.adjust("1 second")
          yield* session.notes(first, waiting)
          yield* other.notes(second, waiting)
          yield* TestClock.adjust("9 seconds")
          yield* board.check()
          return (yield* board.settled("s1")).status
        })
      yield* session.notes("idle")
      yield* TestClock.adjust("10 seconds")
      yield* until("it is met", board.rows, (rows) => rows.length > 0)
      yield* both("idle", "idle")
      assert.strictEqual(yield* both("idle", "waiting"), "AwaitingApproval")
      assert.strictEqual(yield* both("waiting", "idle"), "AwaitingApproval")
      assert.strictEqual(yield* both("busy", "idle"), "Running")
      assert.strictEqual(yield* both("idle", "idle"), "Idle")
      assert.lengthOf(yield* board.rows, 1)
      const gone = identify(session.pid)
      process.kill(session.pid, "SIGKILL")
      yield* until(
        "it is gone",
        Effect.sync(() => isAlive(gone)),
        (alive) => !alive
      )
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* both("idle", "busy"), "Running")
    })
  )

  unheard("has one plate when its hooks come after all", (session, board) =>
    Effect.gen(function* () {
      yield* found(session, board)
      yield* board.status("s1", "AwaitingApproval")
      yield* session.hook("PostToolUse", { ...bash, tool_response: {} })
      yield* board.status("s1", "Running")
      assert.lengthOf(yield* board.rows, 1)
    })
  )

  unheard("is not introduced again when it is forgotten", (session, board) =>
    Effect.gen(function* () {
      yield* found(session, board)
      const { plateId } = yield* board.status("s1", "AwaitingApproval")
      yield* board.plates.forget(plateId, caller)
      for (let round = 0; round < 3; round++) {
        yield* TestClock.adjust("10 seconds")
        for (let beat = 0; beat < 10; beat++) yield* breathe
      }
      assert.lengthOf(yield* board.rows, 0)
    })
  )

  unheard("is met again when it has ended and is resumed, and no hook tells of that", (session, board) =>
    Effect.gen(function* () {
      yield* session.hook("UserPromptSubmit", { prompt: "go" })
      yield* session.hook("SessionEnd", { reason: "prompt_input_exit" })
      // told late, of what was before its end
      yield* session.hook("Notification", { notification_type: "idle_prompt", message: "" })
      yield* board.status("s1", "Idle")
      yield* TestClock.adjust("1 second")
      yield* session.notes("waiting", waiting)
      // a look that is under way reads files in real time: the next one may begin to wait after the clock has moved
      const looked = Effect.andThen(TestClock.adjust("10 seconds"), board.rows)
      yield* until("it is met", looked, (rows) => rows.some(({ pid }) => pid === session.pid))
      yield* board.check()
      yield* board.status("s1", "AwaitingApproval")
      // what it tells counts again, and it has one plate
      yield* session.hook("PostToolUse", { ...bash, tool_response: {} })
      yield* board.status("s1", "Running")
      assert.lengthOf(yield* board.rows, 1)
    })
  )

  unheard("is shown with the turn that was on when it was met", (session, board) =>
    Effect.gen(function* () {
      yield* session.notes("busy")
      yield* TestClock.adjust("10 seconds")
      yield* until("it is met", board.rows, (rows) => rows.length > 0)
      yield* board.check()
      yield* board.status("s1", "Running")
    })
  )

  for (const how of ["at once", "after a restart"] as const) {
    it.effect(`one that hooks told of is not introduced when it is forgotten, ${how}`, () =>
      Effect.gen(function* () {
        const folder = mkdtempSync(join(tmpdir(), "agentd-claude-"))
        yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true })))
        const pid = yield* child
        const setting = { claudeFolder: folder }
        yield* run(
          (world) =>
            Effect.gen(function* () {
              const session = new Session(world.board, pid, folder)
              yield* session.notes("idle")
              yield* session.hook("SessionStart", { source: "startup" }, { pid })
              const { plateId } = yield* world.board.status("s1", "Idle")
              yield* world.board.plates.forget(plateId, caller)
              const board = how === "at once" ? world.board : yield* restart(world, setting)
              for (let round = 0; round < 3; round++) {
                yield* TestClock.adjust("10 seconds")
                for (let beat = 0; beat < 10; beat++) yield* breathe
              }
              assert.lengthOf(yield* board.rows, 0)
              // a hook opens a new one
              yield* board.hook("UserPromptSubmit", "s1", { prompt: "go" })
              yield* board.status("s1", "Running")
            }),
          setting
        )
      })
    )
  }

  it.effect("is met as soon as there is room for it", () =>
    Effect.gen(function* () {
      const folder = mkdtempSync(join(tmpdir(), "agentd-claude-"))
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true })))
      const fs = yield* FileSystem.FileSystem
      yield* new Session({ folder } as Board, yield* child, folder).notes("idle")
      const full = new EventRefused({ field: "session_id", message: "full", remedy: "" })
      let asked = 0
      const take = () => Effect.suspend(() => (++asked === 1 ? Effect.fail(full) : Effect.void))
      const discovery = new Discovery({
        registry: { ofSession: () => undefined, isForgotten: () => false, open: [] } as unknown as PlateRegistry,
        intake: { isOpen: true, take } as unknown as EventIntake,
        fs,
        sessions: Effect.succeed([]),
        config: folder
      })
      yield* Effect.forkScoped(discovery.loop)
      const rounds = Effect.andThen(
        TestClock.adjust("10 seconds"),
        Effect.sync(() => asked)
      )
      yield* until("it is asked for again", rounds, (count) => count === 2)
      for (let round = 0; round < 5; round++) {
        for (let beat = 0; beat < 10; beat++) yield* breathe
        assert.strictEqual(yield* rounds, 2)
      }
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  const held: ReadonlyArray<Fields> = [
    { kind: "print" },
    { entrypoint: "sdk-cli" },
    { kind: "bg", entrypoint: "cli", spare: true },
    { kind: "bg", entrypoint: "sdk-cli" }
  ]
  for (const program of held) {
    unheard(`is not shown where a program holds it: ${JSON.stringify(program)}`, (session, board) =>
      Effect.gen(function* () {
        yield* session.notes("busy", program)
        for (let round = 0; round < 3; round++) {
          yield* TestClock.adjust("10 seconds")
          for (let beat = 0; beat < 10; beat++) yield* breathe
        }
        assert.lengthOf(yield* board.rows, 0)
      })
    )
  }
})

describe("a process that Claude Code keeps in reserve", () => {
  const spare = { kind: "bg", entrypoint: "cli", jobId: "96fdfb38", spare: true }

  story("has no row though its hook tells of a start, and has one as soon as it is taken", (session, board) =>
    Effect.gen(function* () {
      yield* session.notes("idle", spare)
      yield* board.check()
      assert.lengthOf(yield* board.rows, 0)
      yield* turn(session)
      yield* board.status("s1", "Running")
      assert.lengthOf(yield* board.rows, 1)
      yield* session.notes("busy", { kind: "bg" })
      yield* session.hook("Stop", { background_tasks: [] })
      yield* board.check()
      assert.lengthOf(yield* board.rows, 1)
    })
  )
})

describe("Claude Code's list of sessions, which tells of others under an id of its own", () => {
  for (const type of ["agent_needs_input", "agent_completed", "auth_success"]) {
    it.effect(`${type} opens no row, and a session's own does`, () =>
      run(({ board }) =>
        Effect.gen(function* () {
          yield* board.hook("Notification", "view", { notification_type: type, message: "" })
          yield* board.hook("UserPromptSubmit", "s1", { prompt: "go" })
          yield* board.hook("Notification", "s1", { notification_type: type, message: "" })
          yield* board.hook("Notification", "s2", { notification_type: "permission_prompt", message: "" })
          yield* board.settled("s2")
          const rows = (yield* board.rows).map(({ sessionId, status }) => [sessionId, status])
          assert.sameDeepMembers(rows, [
            ["s1", type === "agent_needs_input" ? "AwaitingInput" : "Running"],
            ["s2", "AwaitingApproval"]
          ])
        })
      )
    )
  }
})

describe("where the clock is set back by an hour in mid turn", () => {
  /** A story with a wall clock that can be set; no timer moves with it. */
  const setting = (
    name: string,
    body: (session: Session, board: Board, setBack: Effect.Effect<void>) => Effect.Effect<void, unknown>
  ) =>
    it.effect(name, () =>
      Effect.gen(function* () {
        const base = yield* Clock.Clock
        let step = 0
        const clock: Clock.Clock = Object.assign(Object.create(base), {
          currentTimeMillisUnsafe: () => base.currentTimeMillisUnsafe() + step,
          currentTimeMillis: Effect.sync(() => base.currentTimeMillisUnsafe() + step)
        })
        const setBack = Effect.sync(() => void (step = -3_600_000))
        yield* run(({ board }) =>
          Effect.gen(function* () {
            const session = new Session(board, yield* child)
            yield* session.hook("SessionStart", { source: "startup" })
            yield* body(session, board, setBack)
          })
        ).pipe(Effect.provideService(Clock.Clock, clock))
      })
    )
  const user = (content: unknown) => ({ type: "user", message: { role: "user", content } })
  const failure = {
    type: "assistant",
    message: {
      id: "f",
      role: "assistant",
      stop_reason: "stop_sequence",
      content: [{ type: "text", text: "API Error" }]
    },
    error: "rate_limit",
    isApiErrorMessage: true
  }
  const rows: ReadonlyArray<
    readonly [
      what: string,
      before: (session: Session) => Effect.Effect<unknown, unknown>,
      after: (session: Session) => Effect.Effect<unknown, unknown>,
      PlateInfo["status"]
    ]
  > = [
    ["Esc ends the turn", turn, (session) => session.says(interrupt()), "Idle"],
    ["Esc ends a question", asking, (session) => session.says(interrupt()), "Idle"],
    ["a failure ends the turn", turn, (session) => session.says(failure), "Error"],
    ["a note says that it is idle", turn, (session) => session.notes("idle"), "Idle"],
    ["a note says that a question is answered", asking, (session) => session.notes("busy"), "Running"],
    ["a note says that it waits", turn, (session) => session.notes("waiting", waiting), "AwaitingApproval"],
    ["a person tries again after a failure", failed, (session) => session.says(user("again")), "Idle"],
    ["a question stays where nothing says more", asking, nothing, "AwaitingInput"],
    ["a turn stays where nothing says more", turn, nothing, "Running"]
  ]
  for (const [what, before, after, then] of rows) {
    setting(`${what}: ${then}`, (session, board, setBack) =>
      Effect.gen(function* () {
        // an interrupt of the turn before
        yield* session.says(user("first"))
        yield* session.says(interrupt())
        yield* TestClock.adjust("1 second")
        yield* session.says(user("go"))
        yield* before(session)
        yield* board.check()
        yield* setBack
        yield* board.check()
        yield* TestClock.adjust("5 seconds")
        yield* after(session)
        assert.strictEqual(yield* session.status, then)
      })
    )
  }

  setting("silence ends a turn after ten minutes, not after an hour", (session, board, setBack) =>
    Effect.gen(function* () {
      yield* turn(session)
      yield* board.check()
      yield* setBack
      for (let round = 0; round < 61; round++) yield* board.check()
      assert.strictEqual(yield* session.status, "Idle")
    })
  )
})
