/**
 * AgentWorld: an agent over the log in memory, on backends that play turns. `open` begins a
 * daemon's life on that log: its end is a loss, as by kill -9.
 */
import type { Rule, RuleEffect } from "../../../src/approvals/Rule.ts"
import * as Prices from "../../../src/domain/Prices.ts"
import { Context, Effect, Exit, Layer, Schema, Scope } from "effect"
import { ActorSystem } from "../../../src/core/event-actor/ActorSystem.ts"
import * as Supervisor from "../../../src/core/supervision/Supervisor.ts"
import { freshAgent } from "../../../src/agents/actors/AgentRecovery.ts"
import { AgentScope } from "../../../src/agents/actors/AgentScope.ts"
import * as AgentAllowance from "../../../src/agents/actors/AgentAllowance.ts"
import * as AgentProviders from "../../../src/agents/actors/AgentProviders.ts"
import { AgentEnvironment } from "../../../src/agents/actors/AgentEnvironment.ts"
import * as MessageFiles from "../../../src/agents/prompt/MessageFiles.ts"
import * as WaitingInputs from "../../../src/agents/run/WaitingInputs.ts"
import type { ConversationPort } from "../../../src/agents/actors/ConversationPort.ts"
import * as Recovery from "../../../src/projects/Recovery.ts"
import * as ScriptedBackend from "../../../src/runs/ScriptedBackend.ts"
import type { TurnScript } from "../../../src/runs/ScriptedTurns.ts"
import type { Backend } from "../../../src/runs/Backend.ts"
import { AgentConfig } from "../../../src/config/AgentConfig.ts"
import type { AgentReport } from "../../../src/domain/AgentPort.ts"
import type { PortBlock } from "../../../src/agents/machines/WorkerMachine.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import { Redact } from "../../../src/core/event-log/Redact.ts"
import { memoryLog, type TestLog } from "./TestLog.ts"
import { actorSystem, until } from "./World.ts"

export { memoryLog } from "./TestLog.ts"

export const caller = { by: "ada", config: null }
export const STREAM = "shop-1"

const settings = Schema.decodeUnknownSync(AgentConfig)

const OVER = ["turn.completed", "turn.error", "turn.finalized"]

export class AgentWorld {
  readonly log: TestLog
  readonly reports: Array<AgentReport> = []
  readonly failed: Array<string> = []
  readonly turns: Array<string> = []
  config: AgentConfig
  backend: ScriptedBackend.ScriptedBackend
  /** In the place of the one that plays. */
  puppet: Backend | undefined = undefined
  barred: string | undefined = undefined
  /** Where the agent works, each time when its worker asks. */
  waiting = WaitingInputs.memory()
  files = MessageFiles.memory()
  /** The rules in the configs that are in force. */
  rules: ReadonlyArray<Rule> = []
  ports: PortBlock | undefined = undefined
  place: AgentEnvironment["Service"]["place"] = Effect.succeed({ cwd: "/tmp", branch: undefined })
  private live: AgentScope | undefined = undefined
  private scope: Scope.Closeable | undefined = undefined

  constructor(log: TestLog, turns: ReadonlyArray<TurnScript>, config: object) {
    this.log = log
    this.config = settings({ backend: { type: "command", argv: ["x"] }, minRunInterval: "0ms", ...config })
    this.backend = ScriptedBackend.make([{ turns }])
  }

  /** The agent of the daemon that is open. */
  get tree(): AgentScope {
    return this.live!
  }

  private readonly home: ConversationPort = {
    barred: () => this.barred,
    isOver: () => false,
    newTurn: (_, turnId) =>
      Effect.sync(() => {
        if (this.barred !== undefined) return false
        this.turns.push(`+${turnId}`)
        return true
      }),
    turnEnded: (_, turnId, outcome) => Effect.sync(() => void this.turns.push(`${outcome} ${turnId}`)),
    firstMessage: () => Effect.void,
    agentReady: () => Effect.void,
    agentEnded: () => Effect.void,
    agentFailed: (agent) => Effect.sync(() => void this.failed.push(agent)),
    used: () => Effect.void
  }

  /** The rules of the agent's own config. */
  private get ownRules(): ReadonlyArray<Rule> {
    const { always, never } = this.config.approvals
    const place = { scope: "agent", at: "agentd.jsonc:1" } as const
    const rule = (effect: RuleEffect) => (tool: string) => ({ effect, subject: { tool }, place })
    return [...always.map(rule("ask")), ...never.map(rule("allow"))]
  }

  /** A daemon takes the log over. */
  readonly open = Effect.gen({ self: this }, function* () {
    const scope = yield* Scope.make()
    this.scope = scope
    const records = yield* Effect.provideService(Recovery.recover, EventLog, this.log)
    const record = records.get(STREAM)?.agents.get("builder") ?? freshAgent("builder")
    const context = yield* Layer.build(Layer.fresh(actorSystem(this.log))).pipe(Scope.provide(scope))
    const setting = AgentEnvironment.of({
      weather: AgentProviders.fair,
      allowance: AgentAllowance.free,
      agent: "builder",
      conversation: STREAM,
      project: () => "shop",
      parent: null,
      rest: () => ({ relays: 20, messages: 200 }),
      queued: () => false,
      priceOf: (model) => Prices.priceOf(model),
      config: () => this.config,
      rules: () => [...this.ownRules, ...this.rules],
      backend: () => Effect.sync(() => this.puppet ?? this.backend),
      furnish: () => Effect.sync(() => ({ mounts: [], ports: this.ports })),
      place: Effect.suspend(() => this.place),
      recoveredTo: yield* this.log.head,
      waiting: this.waiting,
      files: this.files,
      home: this.home,
      hearer: () => undefined,
      answered: () => Effect.void,
      report: (report) => Effect.sync(() => void this.reports.push(report)),
      mcp: () => ({})
    })
    const agent = yield* AgentScope.make(record).pipe(
      Effect.provideService(AgentEnvironment, setting),
      Effect.provideService(ActorSystem, Context.get(context, ActorSystem)),
      Effect.provideService(EventLog, this.log),
      Effect.provide(Redact.layer, { local: true }),
      Scope.provide(scope)
    )
    this.live = agent
    yield* Effect.orDie(Supervisor.make({ name: "root", children: [agent.child] })).pipe(Scope.provide(scope))
  })

  /** The daemon is gone: what it knew is lost, the log is not. */
  readonly lose = Effect.suspend(() => Scope.close(this.scope!, Exit.void))

  /** Another backend for the next daemon. */
  play(turns: ReadonlyArray<TurnScript>): void {
    this.backend = ScriptedBackend.make([{ turns }])
  }

  readonly runes = Effect.suspend(() => this.log.tail({ stream: STREAM }, 10_000))

  /** The kinds of the runes so far, in order, of an actor. */
  kinds(prefix: string): Effect.Effect<ReadonlyArray<string>> {
    return Effect.map(Effect.orDie(this.runes), (runes) =>
      runes.filter(({ actor }) => actor.startsWith(prefix)).map(({ kind }) => kind)
    )
  }

  /** Waits for a rune that holds, and answers with it. */
  rune(holds: (rune: Rune) => boolean): Effect.Effect<Rune> {
    return Effect.map(
      until(Effect.orDie(this.runes), (runes) => runes.some(holds)),
      (runes) => runes.find(holds)!
    )
  }

  kind(kind: string, count = 1): Effect.Effect<ReadonlyArray<Rune>> {
    const found = Effect.map(Effect.orDie(this.runes), (runes) => runes.filter((rune) => rune.kind === kind))
    return until(found, (runes) => runes.length >= count)
  }

  /** Waits until so many turns are over: a turn that was interrupted is when its work has stopped. */
  over(count = 1): Effect.Effect<ReadonlyArray<Rune>> {
    const found = Effect.map(Effect.orDie(this.runes), (runes) => runes.filter(({ kind }) => OVER.includes(kind)))
    return until(found, (runes) => runes.length >= count)
  }

  get inputs(): ReadonlyArray<string> {
    return this.backend.played().flatMap(({ turns }) => turns?.inputs ?? [])
  }
}

export interface Instead {
  readonly log?: TestLog
  readonly puppet?: Backend
  readonly place?: AgentWorld["place"]
}

/** A project's agent that plays these turns, started; gone with the scope. */
export const make = Effect.fnUntraced(function* (
  turns: ReadonlyArray<TurnScript>,
  config: object = {},
  instead: Instead = {}
) {
  const log = instead.log ?? (yield* memoryLog)
  yield* Effect.orDie(
    log.append([
      {
        stream: STREAM,
        kind: "project.registered",
        actor: "project",
        payload: { config: "/shop/agentd.jsonc", name: "shop" }
      }
    ])
  )
  const world = new AgentWorld(log, turns, config)
  world.puppet = instead.puppet
  if (instead.place !== undefined) world.place = instead.place
  yield* world.open
  yield* Effect.addFinalizer(() => world.lose)
  yield* Effect.orDie(world.tree.start(caller))
  return world
})
