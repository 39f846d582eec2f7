import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Inbox from "../../../src/agents/machines/Inbox.ts"
import { apply, recover, type Records } from "../../../src/projects/Recovery.ts"
import * as ScriptedBackend from "../../../src/runs/ScriptedBackend.ts"
import * as ProjectName from "../../../src/config/ProjectName.ts"
import type { Rune, RuneDraft } from "../../../src/core/event-log/Rune.ts"
import type * as TurnMachine from "../../../src/agents/machines/TurnMachine.ts"
import * as WorkerMachine from "../../../src/agents/machines/WorkerMachine.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import * as World from "./World.ts"

const message = (messageId: string, text = messageId): Inbox.Message => ({
  messageId,
  from: "ada",
  text,
  urgent: false,
  at: 1
})

/** Drafts as an agent's actors write them. */
const writer = (stream: string, agent: string) => ({
  started: (options: WorkerMachine.Options = {}, incarnation = 1): RuneDraft => ({
    stream,
    kind: "worker.started",
    actor: `worker/${agent}`,
    payload: { by: "ada", incarnation, initial: WorkerMachine.initial(options) }
  }),
  moved: (event: WorkerMachine.Event): RuneDraft => ({
    stream,
    kind: "worker.moved",
    actor: `worker/${agent}`,
    trigger: event._tag,
    payload: { event }
  }),
  turned: (event: TurnMachine.Event): RuneDraft => ({
    stream,
    kind: { start_turn: "turn.started", response_done: "turn.completed" }[event._tag as string] ?? "turn.error",
    actor: `turn/${agent}`,
    trigger: event._tag,
    payload: { turn_id: "r1", agent_id: agent, error_type: "server", message: "no", event }
  }),
  inbox: (event: Inbox.Event): RuneDraft => ({
    stream,
    kind: event._tag === "Received" ? "inbox.received" : "inbox.delivered",
    actor: `inbox/${agent}`,
    trigger: event._tag,
    payload: { event }
  })
})

const registered = (stream: string, config: string): RuneDraft => ({
  stream,
  kind: "project.registered",
  actor: "project",
  payload: { config, name: "shop" }
})

const numbered = (drafts: ReadonlyArray<RuneDraft>): ReadonlyArray<Rune> =>
  drafts.map(
    (draft, index) =>
      ({
        from: null,
        to: null,
        trigger: null,
        cause: null,
        moves: [],
        ...draft,
        eventId: index + 1,
        seq: index + 1,
        at: 1000 + index
      }) as Rune
  )

const fold = (drafts: ReadonlyArray<RuneDraft>): Records => {
  const records: Records = new Map()
  for (const rune of numbered(drafts)) apply(records, rune)
  return records
}

const place: WorkerMachine.Event = { _tag: "WorktreeReady", cwd: "/" }
const prompt: WorkerMachine.Event = {
  _tag: "PromptReady",
  prompt: "old prompt",
  runId: "r1",
  messageIds: ["m1"],
  at: 1
}
const started: WorkerMachine.Event = { _tag: "SessionStarted", runId: "r1", seq: 1, pid: 7 }
const exited = (outcome: Extract<WorkerMachine.Event, { _tag: "SessionExited" }>["outcome"]): WorkerMachine.Event => ({
  _tag: "SessionExited",
  runId: "r1",
  outcome
})

describe("Recovery", () => {
  it("folds an agent whose name holds dots", () => {
    const { moved, started: begin } = writer("c", "v1.2")
    const records = fold([registered("c", "/p/agentd.jsonc"), begin(), moved(place)])
    const agent = records.get("c")!.agents.get("v1.2")!
    assert.strictEqual(agent.worker.now?.state, "BuildingPrompt")
    assert.strictEqual(agent.worker.now?.entered, 3)
  })

  it("a rune that does not fold sets its own agent aside with the reason, and no other", () => {
    const [a, b] = [writer("c", "a"), writer("c", "b")]
    const records = fold([
      registered("c", "/p/agentd.jsonc"),
      a.started(),
      b.started(),
      a.moved(started),
      b.moved(place),
      a.moved(place)
    ])
    const { agents } = records.get("c")!
    assert.match(agents.get("a")!.broken!, /SessionStarted.* in Initializing: the log does not fold/)
    assert.strictEqual(agents.get("a")!.worker.now?.state, "Initializing", "nothing after it is folded in")
    assert.strictEqual(agents.get("b")!.broken, undefined)
    assert.strictEqual(agents.get("b")!.worker.now?.state, "BuildingPrompt")
  })

  it("a new incarnation mends it", () => {
    const { moved, started: begin } = writer("c", "a")
    const records = fold([registered("c", "/p/agentd.jsonc"), begin(), moved(started), begin({}, 2), moved(place)])
    const agent = records.get("c")!.agents.get("a")!
    assert.deepStrictEqual(
      [agent.broken, agent.worker.incarnation, agent.worker.now?.state],
      [undefined, 2, "BuildingPrompt"]
    )
  })

  it("the newest name of a project counts, and runes of streams that no project has do not", () => {
    const { started: begin } = writer("nobody", "a")
    const records = fold([
      registered("c", "/p/agentd.jsonc"),
      {
        stream: "c",
        kind: "project.config_changed",
        actor: "project",
        payload: { config: "/p/agentd.jsonc", name: "new" }
      },
      begin()
    ])
    assert.deepStrictEqual([...records.keys()], ["c"])
    assert.strictEqual(records.get("c")!.name, "new")
  })
})

/** A worker's event with what its turn writes before it. */
const withTurn = (event: WorkerMachine.Event): ReadonlyArray<WorkerMachine.Event | TurnMachine.Event> => {
  switch (event._tag) {
    case "SessionStarted":
      return [
        {
          _tag: "start_turn",
          turnId: "r1",
          agentId: "a",
          input: "old prompt",
          source: "queue",
          messageIds: ["m1"],
          at: 1
        },
        event
      ]
    case "SessionExited":
      return [
        event.outcome._tag === "Success"
          ? { _tag: "response_done", turnId: "r1", finalOutput: "", usage: {} }
          : { _tag: "stream_error", turnId: "r1", errorType: "exit", message: "exit code 3", retry: true },
        event
      ]
    default:
      return [event]
  }
}

/** The log of a daemon that is killed in a state, and the next daemon's life on it. */
const killedIn: {
  readonly [s in WorkerMachine.State]: {
    readonly events: ReadonlyArray<WorkerMachine.Event>
    /** Where it stands when the next daemon has come to rest. */
    readonly then: WorkerMachine.State
    /** The words that the next run is told; none where there is no run. */
    readonly told: RegExp | undefined
    readonly totalErrors?: number
  }
} = {
  Initializing: { events: [], then: "Running", told: /from ada, a person\nm1/ },
  BuildingPrompt: { events: [place], then: "Running", told: /from ada, a person\nm1/ },
  Spawning: {
    events: [place, prompt],
    then: "Running",
    told: /agentd ended while it ran[^]*from ada, a person\nm1/
  },
  Running: {
    events: [place, prompt, started],
    then: "Running",
    told: /agentd ended while it ran[^]*from ada, a person\nm1/
  },
  Interrupting: {
    events: [place, prompt, started, { _tag: "UrgentMessage", messageId: "m2" }],
    then: "Running",
    told: /interrupted by an urgent message[^]*from ada, a person\nm1/
  },
  SessionComplete: {
    events: [place, prompt, started, exited({ _tag: "Success" })],
    then: "BuildingPrompt",
    told: undefined
  },
  CoolingDown: {
    events: [place, prompt, started, exited({ _tag: "Error", detail: "exit code 3" })],
    then: "Running",
    told: /exit code 3[^]*from ada, a person\nm1/,
    totalErrors: 1
  },
  Stopped: {
    events: [place, prompt, started, { _tag: "OperatorStop", by: "ada" }],
    then: "Stopped",
    told: undefined
  }
}

describe("a worker that was killed with its daemon in", () => {
  for (const [state, { events, told, then, totalErrors = 0 }] of Object.entries(killedIn)) {
    it.live(`${state}: ${told === undefined ? "runs nothing twice" : "takes its work up again, once"}`, () =>
      Effect.gen(function* () {
        const backend = ScriptedBackend.make([{ steps: [{ _tag: "Started", pid: 8 }], hang: true }])
        const world = yield* World.make(backend)
        world.configure({ agents: { a: World.command() } })
        const stream = ProjectName.conversationId(world.config)
        const { inbox, moved, started: begin, turned } = writer(stream, "a")
        const backoff = { base: 50, cap: 50, factor: 2, jitter: 0 }
        yield* world.log.append([
          registered(stream, world.config),
          begin({ backoff, graceMillis: 50 }),
          inbox({ _tag: "Received", message: message("m1") }),
          ...events
            .flatMap(withTurn)
            .map((event) => ("turnId" in event ? turned(event) : moved(event as WorkerMachine.Event)))
        ])
        const folded = yield* Effect.provideService(recover, EventLog, world.log)
        assert.strictEqual(folded.get(stream)!.agents.get("a")!.worker.now?.state, state)
        const fleet = yield* world.open
        const row = yield* World.untilAgent(fleet, "a", (found) => found.state === then)
        yield* Effect.sleep(100)
        const played = backend.played()
        assert.strictEqual(played.length, told === undefined ? 0 : 1)
        if (told !== undefined) assert.match(played[0]!.spec.prompt, told)
        assert.notStrictEqual(played[0]?.spec.runId, "r1", "a run id is never used twice")
        assert.strictEqual(row.totalErrors, totalErrors)
        yield* World.untilAgent(fleet, "a", (found) => found.inbox === 0)
        const again = yield* Effect.provideService(recover, EventLog, world.log)
        const live = (yield* fleet.all)[0]!
        const record = again.get(stream)!.agents.get("a")!
        assert.deepStrictEqual([record.worker.now?.state, record.worker.now?.entered], [live.state, live.restsOn])
        assert.strictEqual(record.inbox.data.waiting.length, live.inbox)
      })
    )
  }
})
