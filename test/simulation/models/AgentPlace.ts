/**
 * AgentPlace: the actors of one agent, as the daemon makes them, over surroundings that do
 * nothing: a conversation that is open, a backend whose run is played by whoever steps.
 */
import * as Prices from "../../../src/domain/Prices.ts"
import { Clock, Effect, Schema } from "effect"
import * as AgentAllowance from "../../../src/agents/actors/AgentAllowance.ts"
import * as AgentProviders from "../../../src/agents/actors/AgentProviders.ts"
import type { Backend, Decision, RunSpec } from "../../../src/runs/Backend.ts"
import * as AgentActor from "../../../src/agents/actors/AgentActor.ts"
import { AgentEnvironment } from "../../../src/agents/actors/AgentEnvironment.ts"
import * as MessageFiles from "../../../src/agents/prompt/MessageFiles.ts"
import * as WaitingInputs from "../../../src/agents/run/WaitingInputs.ts"
import { inboxName, lifeName, toolsName, turnName, workerName } from "../../../src/agents/machines/AgentStates.ts"
import * as InboxActor from "../../../src/agents/actors/InboxActor.ts"
import { AgentLatch } from "../../../src/agents/actors/AgentLatch.ts"
import { LiveRun } from "../../../src/agents/run/LiveRun.ts"
import { CurrentRun } from "../../../src/agents/actors/CurrentRun.ts"
import * as ToolCalls from "../../../src/agents/actors/ToolCalls.ts"
import * as TurnActor from "../../../src/agents/actors/TurnActor.ts"
import * as WorkerActor from "../../../src/agents/actors/WorkerActor.ts"
import { AgentConfig } from "../../../src/config/AgentConfig.ts"
import type { AnyActor } from "../../../src/core/event-actor/Member.ts"

const KEPT: Omit<WaitingInputs.WaitingInput, "callId"> = {
  conversation: "c",
  agent: "a",
  run: "r",
  tool: "t",
  folder: "/",
  input: null,
  hash: "0"
}

export const AGENT = "dev"
export const CONVERSATION = "web-1a2b3c4d"
export const T0 = Date.parse("2026-11-20T09:00:00Z")

export const NAMES = {
  inbox: inboxName(AGENT),
  life: lifeName(AGENT),
  turn: turnName(AGENT),
  tools: toolsName(AGENT),
  worker: workerName(AGENT)
}
export const ALL = Object.values(NAMES)

/** The move that is being made. */
export interface Moving {
  /** ms since the epoch */
  readonly now: number
  readonly run: { readonly spec: RunSpec } | null
  readonly states: object
  begin(spec: RunSpec): void
  /** The run is told what became of the call of that name. */
  answered(id: string, decision: Decision): void
}

/** Nobody waits in real time. */
export const still = (at: number): Clock.Clock => ({
  ...Effect.runSync(Clock.Clock),
  currentTimeMillisUnsafe: () => at,
  currentTimeMillis: Effect.succeed(at),
  sleep: () => Effect.never
})

const config = Schema.decodeUnknownSync(AgentConfig)({
  backend: { type: "command", argv: ["true"] },
  minRunInterval: "1 millis",
  // nobody answers
  approvals: { timeout: "10 minutes" }
})

const idOf = (eventId: number): string => `n${String(eventId).padStart(7, "0")}`

/** The agent's actors over one place; a new one for each life of the daemon, since they know where theirs begins. */
export class AgentPlace {
  readonly live = new LiveRun()
  readonly setting: AgentEnvironment["Service"]
  readonly definitions: { readonly [name: string]: AnyActor }
  /** The move that is being made. */
  step: Moving | undefined = undefined

  constructor(recoveredTo: number, plant: ((tools: AnyActor) => AnyActor) | undefined) {
    const of = () => this.step!
    const nothing = () => Effect.void
    const backend: Backend = { name: "played", turns: true, runsTools: true, start: () => Effect.never }
    this.setting = {
      agent: AGENT,
      conversation: CONVERSATION,
      project: () => "web",
      parent: null,
      rest: () => ({ relays: 20, messages: 200 }),
      queued: () => false,
      priceOf: (model) => Prices.priceOf(model),
      weather: AgentProviders.fair,
      allowance: AgentAllowance.free,
      config: () => config,
      rules: () => [],
      backend: () => Effect.succeed(backend),
      furnish: () => Effect.succeed({ mounts: [] }),
      place: Effect.succeed({ cwd: "/web", branch: undefined }),
      recoveredTo,
      // what is kept beside the state would make one state two
      files: MessageFiles.memory(),
      // all that was asked is kept, over each death
      waiting: Object.assign(WaitingInputs.memory(), { keep: nothing, get: (callId: string) => ({ ...KEPT, callId }) }),
      home: {
        barred: () => undefined,
        isOver: () => false,
        newTurn: () => Effect.succeed(true),
        turnEnded: nothing,
        firstMessage: nothing,
        agentReady: nothing,
        agentFailed: nothing,
        agentEnded: nothing,
        used: nothing
      },
      hearer: () => undefined,
      answered: nothing,
      report: nothing,
      mcp: () => ({})
    }
    const place: CurrentRun["Service"] = {
      live: this.live,
      slot: {
        current: () => of().run?.spec.runId,
        ensure: ({ spec }) => Effect.sync(() => of().begin(spec)),
        expect: () => {},
        bury: (_, ending) => ending,
        stop: nothing,
        kill: nothing,
        end: nothing,
        gone: Effect.void
      },
      newId: (_, eventId) => idOf(eventId),
      look: () => {},
      interrupt: (run) => run.interruptTurn,
      over: new AgentLatch(true),
      idle: new AgentLatch(true),
      adopted: new AgentLatch(true),
      now: () => of().states as never
    }
    const made = Effect.all({
      inbox: InboxActor.make,
      life: Effect.map(AgentActor.make, ({ definition }) => definition),
      turn: TurnActor.make,
      tools: ToolCalls.make,
      worker: WorkerActor.make
    }).pipe(
      Effect.provideService(AgentEnvironment, this.setting),
      Effect.provideService(CurrentRun, place),
      // one place is that of many states: its time is that of the move
      Effect.provideService(Clock.Clock, {
        ...still(0),
        monotonicTimeNanosUnsafe: () => BigInt(of().now) * 1_000_000n
      }),
      Effect.runSync
    )
    const definitions: { readonly [name: string]: unknown } = {
      [NAMES.inbox]: made.inbox,
      [NAMES.life]: made.life,
      [NAMES.turn]: made.turn,
      [NAMES.tools]: plant?.(made.tools as unknown as AnyActor) ?? made.tools,
      [NAMES.worker]: made.worker
    }
    // what each of them is told and holds is its own
    this.definitions = definitions as AgentPlace["definitions"]
  }
}
