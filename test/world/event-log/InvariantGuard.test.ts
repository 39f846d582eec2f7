/** Each invariant that the guard holds on append, broken on purpose; and machines that never break one. */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Effect, Schema, Stream } from "effect"
import type { Payload, RuneDraft } from "../../../src/core/event-log/Rune.ts"
import { step, type AnyMachine, type Tagged } from "../../../src/core/event-actor/StateMachine.ts"
import * as ToolMachine from "../../../src/agents/machines/ToolMachine.ts"
import * as TurnMachine from "../../../src/agents/machines/TurnMachine.ts"
import * as WorkerMachine from "../../../src/agents/machines/WorkerMachine.ts"
import { layerMemory } from "../../../src/app/DaemonLog.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import type { StreamFold } from "../../../src/core/event-log/StreamFold.ts"
import { sideFileOf } from "../../../src/core/event-log/SideFile.ts"
import * as StoreReads from "../../support/StoreReads.ts"
import { force, meddle, note, storeFile, withLog } from "./Disk.ts"

const rune = (
  actor: string,
  kind: string,
  event: Tagged,
  fields: Payload = {},
  to: string | null = null
): RuneDraft => ({
  stream: "a",
  actor,
  kind,
  to,
  trigger: event._tag,
  payload: { ...fields, event }
})

const turn = {
  started: (turnId: string, agent = "builder", actor = `turn/${agent}`) =>
    rune(
      actor,
      "turn.started",
      { _tag: "start_turn", turnId, agentId: agent, input: "", source: "queue", messageIds: [], at: 0 } as Tagged,
      { turn_id: turnId, agent_id: agent }
    ),
  completed: (turnId: string, agent = "builder") =>
    rune(`turn/${agent}`, "turn.completed", { _tag: "response_done", turnId, finalOutput: "", usage: null } as Tagged, {
      turn_id: turnId
    })
}

const tool = (kind: string, event: Tagged & { readonly callId: string }, fields: Payload = {}) =>
  rune(`tool/${event.callId}`, kind, event, { call_id: event.callId, ...fields })
const call = (callId: string) =>
  tool("tool.call", { _tag: "call_requested", callId, turnId: "t1", toolName: "sh", arguments: {} } as never)
const asked = (callId: string) =>
  tool("tool.approval_requested", { _tag: "requires_approval", callId, policyReason: "" } as never)
const approved = (callId: string) => tool("tool.approved", { _tag: "approved", callId, approver: "me" } as never)
const denied = (callId: string) =>
  tool("tool.denied", { _tag: "denied", callId, approver: "me", reason: "no" } as never)
const ran = (callId: string) => tool("tool.started", { _tag: "no_approval_needed", callId })
const result = (callId: string, status = "success") =>
  tool("tool.result", { _tag: "success", callId, output: null } as never, { status })

const worker = (event: Tagged, kind = "worker.moved") => rune("worker/builder", kind, event)
const prompt = (runId: string) => worker({ _tag: "PromptReady", prompt: "", runId, messageIds: [], at: 0 } as Tagged)
const up = (runId: string) => worker({ _tag: "SessionStarted", runId, seq: 1 } as Tagged)
const exited = (runId: string) => worker({ _tag: "SessionExited", runId, outcome: { _tag: "Success" } } as Tagged)

const seat = (agent: string, to: string, channel = "reviews") =>
  rune(`seat/${channel}/${agent}`, "seat.moved", { _tag: "Assigned" }, { agentId: agent, channel }, to)

const plan = (kind: string, event: Tagged, fields: Payload) => rune("plan/p1", kind, event, fields)
const assigned = (taskId: string, agentId: string) =>
  plan("plan.task_assigned", { _tag: "task_assigned", taskId, agentId } as Tagged, {
    task_id: taskId,
    agent_id: agentId
  })
const started = (taskId: string) =>
  plan("plan.task_started", { _tag: "task_started", taskId } as Tagged, { task_id: taskId })
const completed = (taskId: string) =>
  plan("plan.task_completed", { _tag: "task_completed", taskId, result: null, evidence: null } as Tagged, {
    task_id: taskId
  })

const failedTask = (taskId: string) =>
  plan("plan.task_failed", { _tag: "task_failed", taskId, error: "no" } as Tagged, { task_id: taskId })
const retried = (taskId: string) =>
  plan("plan.task_retried", { _tag: "task_retried", taskId, error: "no", counts: true, until: 0 } as Tagged, {
    task_id: taskId
  })
const unblocked = (...tasks: ReadonlyArray<string>) =>
  plan("plan.unblocked", { _tag: "dependency_resolved", reason: "go on", tasks } as Tagged, {})

/** Runes that are fine, and the one behind them that breaks the rule. */
const broken: ReadonlyArray<readonly [title: string, before: ReadonlyArray<RuneDraft>, breaks: RuneDraft]> = [
  ["INV-TURN-SEQUENTIAL: a second turn of an agent", [turn.started("t1")], turn.started("t2")],
  [
    "INV-TURN-SEQUENTIAL: a second turn of an agent by another actor",
    [turn.started("t1")],
    turn.started("t2", "builder", "turn/impostor")
  ],
  ["INV-TURN-ORDER: a turn that is started twice", [turn.started("t1"), turn.completed("t1")], turn.started("t1")],
  [
    "INV-TURN-ORDER: an older turn that speaks after a newer one began",
    [turn.started("t1"), turn.completed("t1"), turn.started("t2")],
    turn.completed("t1")
  ],
  ["INV-TOOL-CALL-BEFORE-RESULT: a result without a call", [], result("c1")],
  ["INV-TOOL-TERMINAL: a second result", [call("c1"), ran("c1"), result("c1")], result("c1")],
  ["INV-TOOL-TERMINAL: a call made twice", [call("c1"), ran("c1"), result("c1")], call("c1")],
  ["INV-TOOL-APPROVAL-BEFORE-EXEC: runs before the answer", [call("c1"), asked("c1")], ran("c1")],
  ["INV-TOOL-APPROVAL-BEFORE-EXEC: succeeds before the answer", [call("c1"), asked("c1")], result("c1")],
  ["INV-TOOL-APPROVAL-BEFORE-EXEC: runs though denied", [call("c1"), asked("c1"), denied("c1")], result("c1")],
  ["INV-RUN-FENCED: an older run ends a newer one", [prompt("r1"), up("r1"), exited("r1"), prompt("r2")], exited("r1")],
  ["INV-RUN-FENCED: a run that nobody started", [], up("r1")],
  ["INV-FLOOR-SINGLE: a second ACTIVE seat", [seat("pm", "ACTIVE")], seat("qa", "ACTIVE")],
  ["INV-TASK-SINGLE: a second owner", [assigned("k1", "builder")], assigned("k1", "critic")],
  [
    "INV-TASK-SINGLE: work redone: a task that has ended",
    [assigned("k1", "b"), started("k1"), completed("k1")],
    assigned("k1", "b")
  ],
  ["INV-TASK-SINGLE: a task that ends twice", [assigned("k1", "b"), completed("k1")], completed("k1")],
  ["INV-TASK-SINGLE: a task without an owner", [], started("k1")],
  [
    "INV-TASK-SINGLE: a try that is over goes on, though another may begin with another owner",
    [assigned("k1", "b"), retried("k1"), assigned("k1", "c"), retried("k1")],
    completed("k1")
  ],
  [
    "INV-TASK-SINGLE: work redone: what is completed is opened again, though what failed may be",
    [assigned("k1", "b"), failedTask("k1"), unblocked("k1"), assigned("k1", "c"), completed("k1")],
    unblocked("k1")
  ],
  [
    "INV-TASK-SINGLE: a task that failed, and that nobody opened again",
    [assigned("k1", "b"), failedTask("k1")],
    assigned("k1", "b")
  ]
]

describe("Guard", () => {
  for (const [title, before, breaks] of broken) {
    const rule = title.slice(0, title.indexOf(":"))
    it.effect(title, () =>
      Effect.gen(function* () {
        const log = yield* EventLog
        if (before.length > 0) yield* log.append(before)
        // The whole append is refused, and with it a rune that nothing stands against.
        const refused = yield* Effect.flip(log.append([note("a", 1), breaks]))
        expect(refused).toMatchObject({ _tag: "RuneRefused", rule, kind: breaks.kind })
        const after = yield* Stream.runCollect(log.read({}))
        expect(after.slice(before.length)).toMatchObject([
          {
            kind: "invariant.violated",
            stream: "a",
            payload: { rule, severity: "ERROR", kind: breaks.kind, actor: breaks.actor, message: refused.message }
          }
        ])
        expect((yield* log.verify).problems).toEqual([])
      }).pipe(Effect.provide(layerMemory))
    )
  }

  it.effect("what one append holds may depend on what it holds before", () =>
    Effect.gen(function* () {
      const log = yield* EventLog
      yield* log.append([call("c1"), asked("c1"), approved("c1"), result("c1")])
      yield* log.append([turn.started("t1"), turn.completed("t1"), turn.started("t2")])
      yield* log.append([call("c2"), asked("c2"), denied("c2"), result("c2", "denied")])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("a refused append leaves no trace in the guard", () =>
    Effect.gen(function* () {
      const log = yield* EventLog
      yield* Effect.flip(log.append([call("c1"), result("c2")]))
      expect(yield* Effect.flip(log.append([result("c1")]))).toMatchObject({ rule: "INV-TOOL-CALL-BEFORE-RESULT" })
      yield* log.append([call("c1")])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("streams are apart: the same names in another conversation are other things", () =>
    Effect.gen(function* () {
      const log = yield* EventLog
      for (const draft of [turn.started("t1"), call("c1"), seat("pm", "ACTIVE"), assigned("k1", "b")]) {
        yield* log.append([draft, { ...draft, stream: "b" }])
      }
    }).pipe(Effect.provide(layerMemory))
  )

  it.live("whoever has read much of a stream keeps the guard's state: the next start does not read it again", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      const turns = Array.from({ length: 100 }, (_, n) => [turn.started(`t${n}`), turn.completed(`t${n}`)])
      yield* withLog({ file }, (log) => Effect.forEach(turns, log.append))
      // as after an upgrade to another guard
      meddle(sideFileOf(file), "DELETE FROM snapshots")
      const reads = yield* StoreReads.count
      const opened = withLog({ file }, (log) => Effect.flip(log.append([turn.completed("t7")])))
      for (const runes of [200, 1]) {
        reads.runes.length = 0
        expect(yield* opened).toMatchObject({ rule: "INV-TURN-ORDER" })
        expect(reads.runes.length).toBeLessThanOrEqual(runes + 2)
      }
    })
  )

  it.live("an opening reads no stream: one is read when what an invariant looks at is to be appended to it", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withLog({ file }, (log) =>
        Effect.andThen(log.append([turn.started("t1"), note("a", 1)]), log.append([note("b", 2)]))
      )
      meddle(sideFileOf(file), "DELETE FROM snapshots")
      const reads = yield* StoreReads.count
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          yield* log.append([note("a", 3), note("b", 4)])
          expect(reads.runes).toEqual([])
          expect(yield* Effect.flip(log.append([note("b", 5), turn.started("t2")]))).toMatchObject({
            rule: "INV-TURN-SEQUENTIAL"
          })
          yield* log.append([turn.completed("t1")])
          expect(reads.runes).toEqual([1, 2, 4])
        })
      )
    })
  )

  it.live("a stream that is halted says so, though it cannot be read", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withLog({ file }, (log) => log.append([turn.started("t1"), note("a", 1)]))
      meddle(sideFileOf(file), "DELETE FROM snapshots")
      force(file, "UPDATE runes SET payload = '{', at = at + 1 WHERE event_id = 1")
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          expect(yield* Effect.flip(log.append([turn.completed("t1")]))).toMatchObject({ rule: "INV-HASH-VALID" })
        })
      )
    })
  )

  it.live("a feature that reads its stream has the guard read in the same pass", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withLog({ file }, (log) => log.append([turn.started("t1"), note("a", 1)]))
      meddle(sideFileOf(file), "DELETE FROM snapshots")
      const reads = yield* StoreReads.count
      const count: StreamFold<number> = { name: "count", version: 1, initial: 0, apply: (runes) => runes + 1 }
      yield* withLog({ file, folds: [count] }, (log) =>
        Effect.gen(function* () {
          const read = yield* log.recover("a", { count })
          expect(read.count.state).toBe(2)
          expect(yield* Effect.flip(log.append([turn.started("t2")]))).toMatchObject({ rule: "INV-TURN-SEQUENTIAL" })
          expect(reads.runes).toEqual([1, 2])
        })
      )
    })
  )

  it.effect("what was open when the store was closed is open when it is opened", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withLog({ file }, (log) => log.append([call("c1"), asked("c1"), turn.started("t1"), prompt("r1")]))
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          expect(yield* Effect.flip(log.append([ran("c1")]))).toMatchObject({ rule: "INV-TOOL-APPROVAL-BEFORE-EXEC" })
          expect(yield* Effect.flip(log.append([turn.started("t2")]))).toMatchObject({ rule: "INV-TURN-SEQUENTIAL" })
          expect(yield* Effect.flip(log.append([up("r0")]))).toMatchObject({ rule: "INV-RUN-FENCED" })
          yield* log.append([up("r1"), approved("c1"), turn.completed("t1")])
        })
      )
    })
  )

  it.effect("verify holds the same rules against what is in the store", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withLog({ file }, (log) => log.append([call("c1"), ran("c1"), result("c1"), call("c2")]))
      force(file, "UPDATE runes SET kind = 'tool.result' WHERE event_id = 4")
      const verdict = yield* withLog({ file }, (log) => log.verify)
      expect(verdict.problems.map(({ eventId, rule }) => [eventId, rule])).toContainEqual([
        4,
        "INV-TOOL-CALL-BEFORE-RESULT"
      ])
    })
  )
})

/** Walks a machine along its own table, and appends every move. */
const walk = <E extends Tagged, D>(
  machine: AnyMachine,
  initial: D,
  actor: (data: D) => string,
  event: (tag: E["_tag"], data: D, n: number) => E,
  choices: ReadonlyArray<number>
) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    let state: string = machine.initial
    let data = initial
    for (const [n, choice] of choices.entries()) {
      const open = Object.entries(machine.table[state] as object).filter(([, cell]) => typeof cell !== "string")
      if (open.length === 0) break
      const chosen = event(open[choice % open.length]![0] as E["_tag"], data, n)
      const moved = step<string, E, D, Tagged>(machine as never, state, data, chosen)
      if (moved._tag === "Refused") continue
      data = moved.data
      yield* log.append([
        { stream: "a", kind: moved.kind, actor: actor(data), from: state, to: moved.state, payload: moved.payload }
      ])
      state = moved.state
    }
    expect((yield* log.verify).problems).toEqual([])
  }).pipe(Effect.provide(layerMemory, { local: true }))

const choices = Arbitrary.array(Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1000 }))), {
  minLength: 1,
  maxLength: 60
})

/** Any event of a machine, of a given tag, with the ids that belong to the moment. */
const sample =
  <E extends Tagged>(all: { readonly [tag in E["_tag"]]: object }) =>
  (tag: E["_tag"], ids: object): E =>
    ({ _tag: tag, ...all[tag], ...ids }) as E

describe("no machine that follows its own table is refused", () => {
  it.effect.prop("Turn", { choices }, ({ choices }) => {
    const make = sample<TurnMachine.Event>({
      start_turn: { agentId: "builder", input: "", source: "queue", messageIds: [], at: 0 },
      assistant_delta: { content: "" },
      tool_calls_received: { callIds: ["c"] },
      response_done: { finalOutput: "", usage: null },
      stream_error: { errorType: "", message: "" },
      tools_finished: { results: [], continue: true },
      tool_crash: { callId: null, message: "" },
      interrupt: { by: "", reason: "" },
      steer: { agentId: "builder", input: "", messageIds: [], at: 0 },
      turn_finalized: {}
    })
    return walk<TurnMachine.Event, TurnMachine.Data>(
      TurnMachine.Turn,
      TurnMachine.initial(),
      () => "turn/builder",
      (tag, data, n) => make(tag, { turnId: tag === "start_turn" || tag === "steer" ? `t${n}` : data.turnId }),
      choices
    )
  })

  it.effect.prop("Tool", { choices }, ({ choices }) => {
    const make = sample<ToolMachine.Event>({
      call_requested: { turnId: "t", toolName: "sh", arguments: {} },
      requires_approval: { policyReason: "" },
      auto_approved: { policyReason: "" },
      no_approval_needed: {},
      approved: { approver: "" },
      denied: { approver: "", reason: "" },
      denial_reported: {},
      approval_timeout: {},
      withdrawn: {},
      progress_update: { stream: "stdout", chunk: "" },
      success: { output: null },
      execution_error: { status: "error", error: "" },
      execution_timeout: {},
      cancelled: { reason: "" }
    })
    return walk<ToolMachine.Event, ToolMachine.Data>(
      ToolMachine.Tool,
      ToolMachine.initial(),
      () => "tool/c1",
      (tag) => make(tag, { callId: "c1" }),
      choices
    )
  })

  it.effect.prop("Worker", { choices }, ({ choices }) => {
    const outcomes: ReadonlyArray<object> = [{ _tag: "Success" }, { _tag: "Timeout" }, { _tag: "Error", detail: "x" }]
    const make = sample<WorkerMachine.Event>({
      WorktreeReady: { cwd: "/w" },
      PortsGiven: { ports: { first: 20_000, count: 1 } },
      PromptReady: { prompt: "", messageIds: [], at: 0 },
      SessionStarted: { seq: 1 },
      SessionExited: {},
      UrgentMessage: { messageId: "m" },
      GraceExceeded: {},
      BackoffElapsed: {},
      WorkArrived: {},
      OperatorStop: { by: "me" },
      FatalError: { message: "x" }
    })
    return walk<WorkerMachine.Event, WorkerMachine.Data>(
      WorkerMachine.Worker,
      WorkerMachine.initial({ limits: { maxConsecutiveErrors: 50, maxTotalErrors: 50 } }),
      () => "worker/builder",
      (tag, data, n) =>
        make(tag, {
          runId: tag === "PromptReady" ? `r${n}` : data.runId,
          ...(tag === "SessionExited" ? { outcome: outcomes[n % 3] } : {})
        }),
      // Ends it seldom: operators and fatal errors are the last two of every row.
      choices.map((choice) => (choice % 20 === 0 ? choice : choice - (choice % 7)))
    )
  })
})
