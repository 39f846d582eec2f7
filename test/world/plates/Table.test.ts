/**
 * The plate's table has no dead cell: each event has a sender in the running board, each legal
 * cell is reached through the board's own ways in, and leaves its rune; a cell that no way leads
 * to says why. The machine has no actions.
 */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Stream } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { identify } from "../../../src/runs/process/ProcessTable.ts"
import { type Event, Plate, type State } from "../../../src/plates/PlateMachine.ts"
import { Gemini } from "../../../src/plates/sources/Gemini.ts"
import { unreached, whyNot } from "../../support/Unreached.ts"
import {
  bookkeeping,
  type Board,
  caller,
  child,
  interrupt,
  nobody,
  payload,
  result,
  run,
  until,
  user,
  type World
} from "./World.ts"

type Tag = Event["_tag"]
type Way = Effect.Effect<unknown, unknown>
type Fields = { readonly [field: string]: unknown }

const bash = { tool_name: "Bash", tool_input: { command: "ls" }, tool_use_id: "b1" }
const question = { tool_name: "AskUserQuestion", tool_input: { questions: [] }, tool_use_id: "q1" }

/** A session, told of by hooks. */
class Session {
  readonly board: Board
  readonly id: string
  readonly plateId: string

  constructor(board: Board, id: string) {
    this.board = board
    this.id = id
    this.plateId = `p-${id}`
  }

  /** Where its process would note itself beside. */
  get transcript(): string {
    return join(this.board.folder, "config", "projects", "-home-user-project", `${this.id}.jsonl`)
  }

  hook(name: string, more: Fields = {}, pid?: number): Way {
    return this.board.hook(name, this.id, more, { plate: this.plateId, pid })
  }

  post(event_type: string, more: Fields = {}): Way {
    const { id: session_id, plateId: plate_id } = this
    return this.board.plates.event({ event_type, session_id, plate_id, cwd: "/home/user/project", ...more })
  }

  register(): Way {
    return this.board.plates.register({ plate_id: this.plateId, cwd: "/home/user/project" })
  }

  get stands() {
    return Effect.map(Effect.option(this.board.plates.find(this.plateId)), (row) =>
      row._tag === "Some" ? row.value.status : undefined
    )
  }
}

/** How a session comes into each state. */
const into: { readonly [state in State]: (session: Session) => ReadonlyArray<Way> } = {
  Starting: (session) => [session.register()],
  Idle: (session) => [session.register(), session.hook("SessionStart", { source: "startup" })],
  Running: (session) => [...into.Idle(session), session.hook("UserPromptSubmit", { prompt: "go" })],
  AwaitingInput: (session) => [
    ...into.Running(session),
    session.hook("PreToolUse", question),
    session.hook("PermissionRequest", question)
  ],
  AwaitingApproval: (session) => [
    ...into.Running(session),
    session.hook("PreToolUse", bash),
    session.hook("PermissionRequest", bash)
  ],
  Error: (session) => [...into.Running(session), session.hook("StopFailure", { error: "rate_limit" })],
  Closed: (session) => [...into.Running(session), session.board.plates.stopped({ plate_id: session.plateId })]
}

/** Writes transcript records that the health check finds. */
const written = (session: Session, ...records: ReadonlyArray<Fields>): Way =>
  Effect.andThen(session.board.write(session.id, ...records), session.board.check())

/** A person answers a request that came through the hook which can be answered. */
const answered = (session: Session): Way =>
  Effect.gen(function* () {
    const input = {
      questions: [{ question: "Which?", options: [{ label: "A" }, { label: "B" }], multiSelect: false }]
    }
    const asks =
      (yield* session.stands) === "AwaitingInput" ? { tool_name: "AskUserQuestion", tool_input: input } : bash
    const request = payload("PermissionRequest", session.id, asks)
    // Another agent's: the main one's is open in the terminal.
    yield* Effect.forkChild(session.board.plates.permission({ ...request, agent_id: "a1" }, nobody))
    const row = yield* until(
      "it can be answered",
      session.board.plates.find(session.plateId),
      ({ approval }) => approval !== null
    )
    yield* session.board.plates.answer(row.plateId, { behavior: "deny", message: "no" }, caller)
  })

/** Lets the process note itself as of now, when the note is older than hooks are late. */
const noted = (session: Session, status: string): Way =>
  Effect.scoped(
    Effect.gen(function* () {
      const pid = yield* child
      yield* session.board.hook("PreCompact", session.id, { transcript_path: session.transcript }, { pid })
      yield* session.board.hook("PostCompact", session.id, { transcript_path: session.transcript }, { pid })
      const folder = join(session.board.folder, "config", "sessions")
      mkdirSync(folder, { recursive: true })
      const note = {
        pid,
        procStart: String(identify(pid).start),
        sessionId: session.id,
        cwd: "/home/user/project",
        kind: "interactive",
        startedAt: 1,
        status,
        statusUpdatedAt: (yield* Clock.currentTimeMillis) + 1
      }
      writeFileSync(join(folder, `${pid}.json`), JSON.stringify(note))
      yield* session.board.check()
    })
  )

const hooked =
  (name: string, more: Fields = {}) =>
  (session: Session): Way =>
    session.hook(name, more)

/** A turn of another CLI, whose hooks report its failure as any end. */
const failed = ({ board, id }: Session): Way =>
  Effect.gen(function* () {
    const transcript_path = board.transcript("of-gemini")
    yield* board.plates.hook(payload("BeforeAgent", id, { transcript_path }), nobody, Gemini)
    yield* board.plates.hook(payload("AfterAgent", id, { transcript_path }), nobody, Gemini)
    yield* board.settled(id)
    yield* board.write("of-gemini", { type: "error", content: "[API Error: 401]" })
    yield* board.check()
  })

/** The sender of each event: a hook, `/events`, the health check, a command. */
const senders: { readonly [tag in Tag]: (session: Session, state: State) => Way } = {
  SessionStart: (session) => session.post("session_start"),
  PromptSubmit: (session) => session.post("prompt_submit"),
  ToolStart: (session) => session.post("tool_start", { tool_name: "Bash" }),
  ToolCall: (session) => session.post("tool_call"),
  Stop: (session) => session.post("stop"),
  HookSessionStart: hooked("SessionStart", { source: "resume" }),
  HookSessionEnd: hooked("SessionEnd", { reason: "clear" }),
  HookUserPromptSubmit: hooked("UserPromptSubmit", { prompt: "on" }),
  HookPreToolUse: hooked("PreToolUse", { ...bash, tool_use_id: "b2" }),
  HookPostToolUse: hooked("PostToolUse", bash),
  HookPostToolUseFailure: hooked("PostToolUseFailure", bash),
  HookPostToolBatch: hooked("PostToolBatch"),
  HookPermissionRequest: hooked("PermissionRequest", { tool_name: "Write", tool_input: {} }),
  HookPermissionDenied: hooked("PermissionDenied", bash),
  HookNotification: hooked("Notification", { notification_type: "idle_prompt", message: "" }),
  HookStop: hooked("Stop", { background_tasks: [] }),
  HookStopFailure: hooked("StopFailure", { error: "rate_limit" }),
  HookSubagentStop: hooked("SubagentStop", { agent_id: "a1" }),
  HookElicitation: hooked("Elicitation", { mcp_server_name: "m" }),
  HookElicitationResult: hooked("ElicitationResult", { mcp_server_name: "m" }),
  HookPreCompact: hooked("PreCompact"),
  HookPostCompact: hooked("PostCompact"),
  PromptAnswered: answered,
  HealthCheckRecovery: (session, state) =>
    // a failure is over when somebody tries again; of a dialog nothing is known but that the file was written
    state === "Error"
      ? written(session, user("again"))
      : Effect.andThen(session.board.write(session.id, "no record\n"), session.board.check()),
  DialogEndObserved: (session, state) =>
    written(session, result(state === "AwaitingInput" ? question.tool_use_id : bash.tool_use_id)),
  TurnEndObserved: (session, state) => (state === "Idle" ? failed(session) : written(session, interrupt())),
  StatusNoted: (session, state) => noted(session, state === "Running" ? "idle" : "busy"),
  Registered: (session) => session.register(),
  ProcessExited: (session) => session.board.plates.stopped({ plate_id: session.plateId }),
  Forgotten: (session) => session.board.plates.forget(session.plateId, caller)
}

const isLegal = (state: State, tag: Tag): boolean => typeof Plate.table[state][tag] === "object"

const runesOf = ({ log }: World) =>
  Effect.map(Stream.runCollect(log.read({ kinds: ["plate.moved", "plate.forgotten"] })), (runes) =>
    runes.map(({ from, payload }) => `${from} × ${(payload["event"] as Event)._tag}`)
  )

describe("the plate's table is what the board does", () => {
  for (const state of Object.keys(Plate.table) as ReadonlyArray<State>) {
    for (const tag of Object.keys(senders) as ReadonlyArray<Tag>) {
      const cell = `${state} × ${tag}`
      if (!isLegal(state, tag) || whyNot("plate", cell) !== undefined) continue
      it.effect(cell, () =>
        run((world) =>
          Effect.gen(function* () {
            const session = new Session(world.board, "s1")
            for (const way of into[state](session)) yield* way
            yield* until(`it is ${state}`, session.stands, (status) => status === state)
            if (tag === "TurnEndObserved" || tag === "DialogEndObserved" || tag === "HealthCheckRecovery")
              yield* Effect.andThen(world.board.write(session.id, bookkeeping), world.board.check())
            yield* senders[tag](session, state)
            yield* until(`${cell} is told`, runesOf(world), (runes) => runes.includes(cell))
          })
        )
      )
    }
  }

  it("names no cell as out of reach that is none", () => {
    for (const cell of Object.keys(unreached.plate)) {
      const [state, tag] = cell.split(" × ") as [State, Tag]
      assert.isTrue(isLegal(state, tag), cell)
    }
  })

  it("has no action, and each event of its alphabet a sender", () => {
    assert.deepStrictEqual(Object.keys(Plate.actions), [])
    for (const row of Object.values(Plate.table)) assert.sameMembers(Object.keys(row), Object.keys(senders))
  })
})
