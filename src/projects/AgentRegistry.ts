/**
 * AgentRegistry: adds, removes and lists the live agents of one conversation: the agents in its config and their
 * sub-agents.
 *
 * Guarantees: Agents are added and removed one after another, and an error with one agent does not affect the others. A
 * sub-agent above the limit waits for a free slot, and gets none after its parent has ended. While the conversation
 * closes, no agent is added.
 */
import { Clock, Context, Deferred, Duration, Effect, Exit, FileSystem, Result, Scope, Semaphore } from "effect"
import type * as DynamicSupervisor from "../core/supervision/DynamicSupervisor.ts"
import { Backends } from "../runs/Backends.ts"
import { type AgentConfig, backendAt, worktreeConfigOf } from "../config/AgentConfig.ts"
import type * as ConfigFile from "../config/ConfigFile.ts"
import type { Rule } from "../approvals/Rule.ts"
import { type KeptRule, rulesOf } from "../config/RulesInForce.ts"
import type { AgentReport } from "../domain/AgentPort.ts"
import { UserApprovals } from "../domain/UserApprovals.ts"
import * as Prices from "../domain/Prices.ts"
import * as Ids from "../domain/Ids.ts"
import { type Caller, type CommandRefused, type Done, refuse, type SpawnRequest } from "../domain/Messages.ts"
import { EventLog, type StorageError } from "../core/event-log/EventLog.ts"
import { type AgentRecord, freshAgent } from "../agents/actors/AgentRecovery.ts"
import { AgentScope } from "../agents/actors/AgentScope.ts"
import { AgentEnvironment } from "../agents/actors/AgentEnvironment.ts"
import * as AgentAllowance from "../agents/actors/AgentAllowance.ts"
import { SpendingLimits, type Spender } from "../domain/SpendingLimits.ts"
import { isActive, workerName } from "../agents/machines/AgentStates.ts"
import * as Budget from "../agents/machines/Budget.ts"
import { chosenIn } from "../agents/actors/ModelChoice.ts"
import * as AgentProviders from "../agents/actors/AgentProviders.ts"
import { ProviderStatus } from "../domain/ProviderStatus.ts"
import { AgentsEnvironment, type Services } from "./AgentsEnvironment.ts"
import { Bus } from "./service/Bus.ts"
import type { ConversationActor, LivingAgent } from "./ConversationActor.ts"
import { SubAgentTree } from "./SubAgentTree.ts"
import { apply, type ProjectRecord, recoverAgent } from "./Recovery.ts"
import * as Calendar from "../domain/Calendar.ts"
import { begunOn } from "./ConversationRecovery.ts"
import { Bounds } from "../runs/git/Git.ts"
import * as Inbox from "../agents/machines/Inbox.ts"
import * as ProjectStop from "../agents/machines/ProjectStop.ts"
import * as SubAgents from "./SubAgents.ts"
import * as WorkingFolder from "../agents/workplace/WorkingFolder.ts"

/** The conversation of a registry, and the services that its agents need. */
export interface Belongs {
  readonly services: Context.Context<Services>
  readonly record: ProjectRecord
  readonly file: () => ConfigFile.Project
  /** The rules of the file. */
  readonly rules: () => ReadonlyArray<KeptRule>
  readonly life: ConversationActor
  /** Why the conversation accepts no new agents; undefined if it accepts them. */
  readonly refusal: () => CommandRefused | undefined
  readonly supervisor: DynamicSupervisor.DynamicSupervisor
  readonly scope: Scope.Scope
}

/** Number of ended sub-agents that are kept, so that users can still look them up. */
const MAX_ENDED = 20

/**
 * Author of actions that no user requested. No login has this name. A stop by this author is temporary; a stop by a
 * user is permanent.
 */
const THE_FILE = "the project's file"

interface Member {
  readonly agentScope: AgentScope
  readonly scope: Scope.Closeable
  /** The rules for its calls that are in force. */
  readonly rules: () => ReadonlyArray<Rule>
}

type Moved = Effect.Effect<void, CommandRefused | StorageError>

/** The functions with which budget limits read and interrupt an agent's turn. */
const turnOf = (agentScope: AgentScope): Pick<Spender, "interrupt" | "turn"> => ({
  turn: () => (isActive(agentScope.turn()) ? (agentScope.turn().data.turnId ?? undefined) : undefined),
  interrupt: (reason, keep, turnId) =>
    turnId === undefined
      ? agentScope.control.interruptTurn("agentd", reason, keep)
      : Effect.ignore(agentScope.tellInbox({ _tag: "Bound", text: reason, turnId }))
})

export class AgentRegistry {
  /** Agents in the order in which they started. */
  readonly members: Map<string, Member> = new Map()
  readonly subAgentTree: SubAgentTree
  private readonly of: Belongs
  private readonly conversation: string
  private readonly permits = new Map<string, Semaphore.Semaphore>()
  /** The files that were trusted when the agent's work tree was last used. */
  private readonly trusted = new Map<string, ConfigFile.Project["files"]>()
  private readonly lock = Semaphore.makeUnsafe(1)
  private readonly arrived = Deferred.makeUnsafe<void>()

  constructor(of: Belongs) {
    this.of = of
    this.conversation = of.record.conversation
    const { file, life, record, scope } = of
    this.subAgentTree = new SubAgentTree({
      log: this.log,
      record,
      file,
      life,
      agentScope: (agent) => this.members.get(agent)?.agentScope,
      livingAgents: () => this.livingAgents,
      quiet: this.lock.withPermit(Effect.void),
      scope
    })
  }

  private get log(): EventLog["Service"] {
    return Context.get(this.of.services, EventLog)
  }

  private get theFile(): Caller {
    return { by: THE_FILE, config: this.of.record.config }
  }

  private spawnedAs(agent: string): AgentConfig | undefined {
    const spawned = this.of.record.life.spawned.get(agent)
    if (spawned === undefined) return undefined
    const parent = this.subAgentTree.named(spawned.parent) ?? this.members.get(spawned.parent)?.agentScope.config()
    return SubAgents.settled(spawned.config, spawned.parent, parent)
  }

  /** The config of an agent; its last known config if no config contains the agent now. */
  private settings(agent: string, first: AgentConfig): () => AgentConfig {
    let last = first
    return () => (last = this.subAgentTree.named(agent) ?? this.spawnedAs(agent) ?? last)
  }

  /** The project with the files that were trusted for the agent, also if the config no longer contains the agent. */
  private fileOf(agent: string): ConfigFile.Project {
    const file = this.of.file()
    const files = this.trusted.get(agent)
    if (file.agents[agent] === undefined) return files === undefined ? file : { ...file, files }
    this.trusted.set(agent, file.files)
    return file
  }

  private workplace(agent: string, config: AgentConfig): WorkingFolder.WorkingFolder {
    const { commands, ports, stores, worktrees } = Context.get(this.of.services, AgentsEnvironment)
    const showing = this.showing(agent)
    return {
      agent,
      config,
      project: this.fileOf(agent),
      stores,
      tell: this.tells(agent),
      worktrees,
      commands,
      ports,
      showing
    }
  }

  /**
   * Informs the user. If the user must act, the message waits in the user's list; otherwise it is only a notice in the
   * log.
   */
  private tells(agent: string): WorkingFolder.WorkingFolder["tell"] {
    return (text, needs) => {
      const agentScope = this.members.get(agent)?.agentScope
      if (needs && agentScope !== undefined) return Effect.ignore(agentScope.tellInbox({ _tag: "Bound", text }))
      const payload = { runId: agentScope?.worker()?.data.runId ?? "", text }
      return this.log.appendLazy([{ stream: this.conversation, kind: "run.notice", actor: workerName(agent), payload }])
    }
  }

  /** Shows in the agent's row what is done in its worktree. */
  private showing(agent: string): WorkingFolder.WorkingFolder["showing"] {
    return (text, effect) => {
      const live = this.members.get(agent)?.agentScope.live
      if (live === undefined) return effect
      const begin = Effect.map(Clock.currentTimeMillis, (since) => void (live.preparing = { text, since }))
      return Effect.ensuring(
        Effect.andThen(begin, effect),
        Effect.sync(() => void (live.preparing = undefined))
      )
    }
  }

  /** Only one fiber changes an agent's worktree at a time: a removal waits until a set-up's processes have ended. */
  private alone<A, E>(agent: string, effect: Effect.Effect<A, E, FileSystem.FileSystem>): Effect.Effect<A, E> {
    const permit = this.permits.get(agent) ?? Semaphore.makeUnsafe(1)
    this.permits.set(agent, permit)
    return permit.withPermit(this.filing(effect))
  }

  private placesOf(agent: string, settings: () => AgentConfig): Pick<AgentEnvironment["Service"], "furnish" | "place"> {
    const of = Effect.sync(() => this.workplace(agent, settings()))
    return {
      place: this.alone(agent, Effect.flatMap(of, WorkingFolder.prepare)),
      furnish: (given) =>
        this.alone(
          agent,
          Effect.flatMap(of, (place) => WorkingFolder.furnish(place, given))
        )
    }
  }

  diff(agent: string, config: AgentConfig) {
    // the diff process reads git objects, and must not use more memory than the agent may
    const { memory } = config.limits
    const within = (most: Bounds): Bounds => ({ ...most, memory: Math.min(most.memory, memory) })
    return this.filing(Effect.updateService(WorkingFolder.diff(this.workplace(agent, config)), Bounds, within))
  }

  /** Provides what worktrees need: the file system, and a sandbox for git. */
  private filing<A, E>(effect: Effect.Effect<A, E, FileSystem.FileSystem>): Effect.Effect<A, E> {
    return Effect.provide(effect, this.of.services)
  }

  private clear(agent: string, config: AgentConfig): Effect.Effect<void, StorageError> {
    return this.alone(
      agent,
      Effect.suspend(() => WorkingFolder.clear(this.workplace(agent, config), this.conversation, this.log))
    )
  }

  get livingAgents(): ReadonlyArray<LivingAgent> {
    return [...this.members].map(([name, { agentScope }]) => ({
      name,
      control: agentScope.control,
      grace: agentScope.config().interruptGrace,
      clear:
        agentScope.worker() === undefined
          ? Effect.void
          : Effect.catch(this.clear(name, agentScope.config()), (error) => Effect.logError(`${name}: ${error.message}`))
    }))
  }

  /**
   * Agents in the order in which they must end. First waits until the agents in the log are added and all changes in
   * progress are done.
   */
  readonly leaving: Effect.Effect<ReadonlyArray<LivingAgent>> = Effect.suspend(() =>
    Effect.andThen(Deferred.await(this.arrived), this.lock.withPermit(Effect.sync(() => this.subAgentTree.inOrder)))
  )

  private portsOf(agent: string): string {
    return WorkingFolder.portsOf({ agent, project: this.of.file() })
  }

  /**
   * After a turn: notes the services that it has started, and copies its commits to the user's repository, in the
   * background.
   */
  private handedOver(agent: string, settings: () => AgentConfig, scope: Scope.Scope, { _tag }: AgentReport) {
    if (_tag !== "TurnEnded") return Effect.void
    const handOver = Effect.suspend(() => WorkingFolder.handOver(this.workplace(agent, settings())))
    const { ports } = Context.get(this.of.services, AgentsEnvironment)
    return Effect.andThen(ports.note(this.portsOf(agent)), Effect.forkIn(this.filing(handOver), scope))
  }

  /** Restores an agent from its record, and starts it if it was never started. */
  private readonly adopt = Effect.fnUntraced(
    { self: this },
    function* (this: AgentRegistry, agent: string, config: AgentConfig) {
      const backends = yield* Backends
      const bus = yield* Bus
      const weather = yield* ProviderStatus
      const prices = yield* Prices.UserPrices
      const allowances = yield* SpendingLimits
      const who = { conversation: this.conversation, agent }
      const { files, mcp, ports, recoveredTo, waiting } = yield* AgentsEnvironment
      const named = this.settings(agent, config)
      const living: { agentScope?: AgentScope } = {}
      const settings = () => chosenIn(named(), living.agentScope?.life().chosen)
      const record = this.of.record.agents.get(agent) ?? freshAgent(agent)
      this.of.record.agents.set(agent, record)
      ports.recall(this.portsOf(agent), record.worker.now?.data.ports)
      yield* ports.note(this.portsOf(agent))
      const scope = yield* Scope.fork(this.of.scope)
      const project = () => this.of.file().name
      const setting = AgentEnvironment.of({
        agent,
        conversation: this.conversation,
        project,
        parent: this.subAgentTree.parentOf(agent) ?? null,
        rest: () => {
          const { restAfterMessages, restAfterRelays } = this.of.file().conversation
          return { relays: restAfterRelays, messages: restAfterMessages }
        },
        queued: () => this.subAgentTree.isQueued(agent),
        home: this.of.life.home,
        allowance: AgentAllowance.make(allowances, who),
        weather: AgentProviders.make(weather, `${this.conversation}/${agent}`, settings, () => {
          const { mail } = this.of.file()
          return mail === undefined ? undefined : Duration.toMillis(mail.outageAfter)
        }),
        config: settings,
        rules: this.rulesOf(agent, yield* UserApprovals),
        backend: (index) => Effect.suspend(() => backends.make(backendAt(settings(), index))),
        priceOf: (model) => Prices.priceOf(model, this.of.file().prices, prices),
        ...this.placesOf(agent, settings),
        recoveredTo,
        waiting,
        files,
        hearer: (turnId, asked) => this.subAgentTree.hearer(agent, turnId, asked),
        answered: (eventId) => this.subAgentTree.answered(agent, eventId),
        report: (report) => Effect.andThen(this.handedOver(agent, settings, scope, report), bus.report(report)),
        mcp: (runId) => mcp(runId, settings())
      })
      const agentScope = yield* AgentScope.make(record).pipe(
        Effect.provideService(AgentEnvironment, setting),
        Scope.provide(scope)
      )
      living.agentScope = agentScope
      const spender: Spender = {
        ...who,
        limits: () => ({ agent: Budget.of(settings()), project: this.of.file().conversation.budget }),
        ...turnOf(agentScope),
        exhaust: ({ limit, resource, spent }) =>
          agentScope.actors.life.tell({ _tag: "budget_exhausted", resource, spent, limit })
      }
      yield* Scope.provide(allowances.join(spender), scope)
      yield* this.of.supervisor.add(agentScope.child)
      this.members.set(agent, { agentScope, scope, rules: setting.rules })
      yield* this.startDue(agent, config, agentScope, record)
    },
    (adopted) => Effect.provide(adopted, this.of.services)
  )

  /** Starts a newly added agent if it should run. In a stopped project, no agent starts. */
  private startDue(agent: string, config: AgentConfig, agentScope: AgentScope, record: AgentRecord): Moved {
    const { stopped } = this.of.record
    if (stopped !== null) return this.keepStopped(agentScope, stopped.by)
    // never started, or stopped only because the file temporarily did not contain the agent
    const due = record.worker.now === undefined || record.worker.now.data.stoppedBy === THE_FILE
    if (this.subAgentTree.isClosing || !due || record.broken !== undefined || !config.autostart) return Effect.void
    return this.subAgentTree.named(agent) === undefined ? Effect.void : Effect.asVoid(agentScope.start(this.theFile))
  }

  /** Stops an agent of a stopped project. Needed if the previous daemon died before it could stop the agent. */
  private keepStopped(agentScope: AgentScope, by: string): Moved {
    const worker = agentScope.worker()
    return worker === undefined || worker.state === "Stopped"
      ? Effect.void
      : Effect.asVoid(agentScope.stop({ by: ProjectStop.authorOf(by), config: null }))
  }

  /** The agent, and the agents above a sub-agent up to the one in the file, whose settings it has. */
  private lineOf(agent: string): ReadonlyArray<string> {
    const parent = Object.hasOwn(this.of.file().agents, agent) ? undefined : this.subAgentTree.parentOf(agent)
    return parent === undefined ? [agent] : [agent, ...this.lineOf(parent)]
  }

  /** The rules for an agent's calls. Those for the agents above a sub-agent hold for it, too. */
  private rulesOf(agent: string, user: (typeof UserApprovals)["Service"]): () => ReadonlyArray<Rule> {
    let known: { readonly of: ReadonlyArray<unknown>; readonly rules: ReadonlyArray<Rule> } | undefined
    return () => {
      const of = [this.of.rules(), user.rules()] as const
      if (known === undefined || known.of.some((one, index) => one !== of[index])) {
        known = { of, rules: rulesOf({ agent: this.lineOf(agent), root: this.of.file().root }, of.flat()) }
      }
      return known.rules
    }
  }

  /** Runs the waiting calls of all agents that rules allow now. */
  readonly weigh = Effect.suspend(() =>
    Effect.forEach([...this.members.values()], ({ agentScope }) => agentScope.weigh, { discard: true })
  )

  /** Stops all running agents, including an agent that is being added. Returns their names. */
  halt(caller: Caller): Effect.Effect<ReadonlyArray<string>, CommandRefused | StorageError> {
    const runs = ([name, { agentScope }]: readonly [string, Member]) =>
      this.subAgentTree.parentOf(name) === undefined &&
      agentScope.worker() !== undefined &&
      agentScope.worker()?.state !== "Stopped"
    return Effect.andThen(
      this.lock.withPermit(Effect.void),
      Effect.suspend(() =>
        Effect.forEach(
          [...this.members].filter(runs),
          ([name, { agentScope }]) => Effect.as(this.subAgentTree.stop(agentScope, caller), name),
          { concurrency: "unbounded" }
        )
      )
    )
  }

  /** Starts the agents that were stopped with the project, and agents that were added since. Returns their names. */
  wake(caller: Caller): Effect.Effect<ReadonlyArray<string>, CommandRefused | StorageError> {
    return Effect.suspend(() =>
      Effect.forEach(
        [...this.members].filter(([name, { agentScope }]) => this.isDue(name, agentScope)),
        ([name, { agentScope }]) => Effect.as(agentScope.start(caller), name),
        { concurrency: "unbounded" }
      )
    )
  }

  private isDue(name: string, agentScope: AgentScope): boolean {
    const config = this.subAgentTree.named(name)
    const worker = agentScope.worker()
    return config !== undefined && (worker === undefined ? config.autostart : ProjectStop.isWith(worker.data.stoppedBy))
  }

  /** Names of the stopped agents that are in the config. */
  get still(): ReadonlyArray<string> {
    return [...this.members].flatMap(([name, { agentScope }]) =>
      this.subAgentTree.named(name) !== undefined && agentScope.worker()?.state === "Stopped" ? [name] : []
    )
  }

  private readonly dismiss = Effect.fnUntraced({ self: this }, function* (this: AgentRegistry, agent: string) {
    const member = this.members.get(agent)
    if (member === undefined) return
    yield* this.subAgentTree.endChildren(agent, Infinity)
    yield* member.agentScope.stop(this.theFile, "no longer in the config")
    // the sender gives these messages to another agent, so this agent must not process them if it is added again
    for (const { alone, messageId } of Inbox.known(member.agentScope.inbox().data))
      if (alone === true) yield* member.agentScope.withdraw([messageId])
    yield* this.release(agent, member)
    const config = member.agentScope.config()
    const place = this.workplace(agent, config)
    this.trusted.delete(agent)
    const clear = this.alone(agent, WorkingFolder.clear(place, this.conversation, this.log))
    if (worktreeConfigOf(config)?.teardown === undefined) return yield* clear
    // a tear-down can take minutes, in which other agents must be added and removed
    yield* Effect.forkIn(
      Effect.catch(clear, (error) => Effect.logError(`${agent}: ${error.message}`)),
      this.of.scope,
      { startImmediately: true }
    )
  })

  /** Removes an agent from the live agents, and rebuilds its record from the log. */
  private readonly release = Effect.fnUntraced(
    { self: this },
    function* (this: AgentRegistry, agent: string, { scope }: Member) {
      yield* this.of.supervisor.remove(agent)
      yield* Scope.close(scope, Exit.void)
      this.members.delete(agent)
      const record = yield* recoverAgent(this.log, this.conversation, agent)
      this.of.record.agents.set(agent, record)
    }
  )

  /** Agents that should exist: those in the config, and sub-agents that have not ended. */
  private get wanted(): ReadonlyArray<readonly [string, AgentConfig]> {
    const { ended, spawned } = this.of.record.life
    const sub = [...spawned.keys()].flatMap((agent) => {
      const config =
        this.subAgentTree.named(agent) === undefined && !ended.has(agent) ? this.spawnedAs(agent) : undefined
      return config === undefined ? [] : [[agent, config] as const]
    })
    return [...Object.entries(this.of.file().agents), ...sub]
  }

  /**
   * Adds and removes agents until the live agents are exactly those in the config and their sub-agents. Completes even
   * if the caller disconnects.
   */
  readonly settle: Moved = Effect.suspend(() => {
    const { spawned } = this.of.record.life
    const gone = [...this.members.keys()].filter(
      (agent) => this.subAgentTree.named(agent) === undefined && !spawned.has(agent)
    )
    // a closing conversation adds its agents only once, so that they can end in an orderly way
    const isOver = this.subAgentTree.isClosing && this.members.size > 0
    const fresh = isOver ? [] : this.wanted.filter(([agent]) => !this.members.has(agent))
    const moves: ReadonlyArray<Moved> = [
      ...(this.subAgentTree.isClosing ? [] : gone.map((agent) => this.dismiss(agent))),
      ...fresh.map(([agent, config]) => this.adopt(agent, config)),
      this.fillPlaces
    ]
    // an error with one agent must not prevent the other changes
    return Effect.flatMap(Effect.forEach(moves, Effect.result), (results) =>
      Effect.fromResult(results.find(Result.isFailure) ?? Result.succeed(undefined))
    )
  }).pipe(
    Effect.ensuring(Effect.suspend(() => Deferred.succeed(this.arrived, undefined))),
    Effect.uninterruptible,
    this.lock.withPermit
  )

  /** Tells the agents that the config has changed. */
  get look(): Effect.Effect<void> {
    return Effect.suspend(() =>
      Effect.andThen(
        Effect.forEach(this.members.values(), ({ agentScope }) => agentScope.look, { discard: true }),
        Context.get(this.of.services as Context.Context<never>, SpendingLimits).wake
      )
    )
  }

  private get fillPlaces(): Moved {
    return Effect.suspend(() =>
      Effect.forEach(
        this.subAgentTree.isClosing
          ? []
          : SubAgents.admitted(this.subAgentTree.subAgents, (parent) => this.subAgentTree.isRunning(parent)),
        (agent) =>
          this.members
            .get(agent)!
            .agentScope.admit({ by: `agent:${this.subAgentTree.parentOf(agent)}`, config: this.theFile.config }),
        { discard: true }
      )
    )
  }

  /**
   * Handles the end of an agent: informs its parent and sub-agents, and starts a waiting sub-agent if a slot is free.
   */
  afterEnd(agent: string): Effect.Effect<void> {
    return this.subAgentTree.afterEnd(agent).pipe(
      Effect.andThen(this.lock.withPermit(Effect.uninterruptible(Effect.andThen(this.tidy, this.fillPlaces)))),
      Effect.catch((error) => Effect.logWarning(`after the end of ${agent}: ${error.message}`))
    )
  }

  /** Removes ended sub-agents. The most recent ones are kept for queries. */
  private get tidy(): Moved {
    const over = this.subAgentTree.subAgents.filter(({ stands }) => stands === "ended").slice(0, -MAX_ENDED)
    const forget = (name: string) => Effect.sync(() => void this.of.record.life.spawned.delete(name))
    return Effect.forEach(
      this.subAgentTree.isClosing ? [] : over,
      ({ name }) => Effect.andThen(this.dismiss(name), forget(name)),
      {
        discard: true
      }
    )
  }

  /**
   * Completes work of the previous daemon: ends sub-agents of ended parents, and sends parents their pending messages.
   */
  readonly mend: Effect.Effect<void> = Effect.suspend(() => {
    const moves = [
      this.subAgentTree.tellParents,
      ...this.subAgentTree.unfinishedEnds.map((parent) => this.afterEnd(parent))
    ]
    return Effect.forEach(moves, (move) => Effect.forkIn(move, this.of.scope), { discard: true })
  })

  /** Adds a sub-agent with its first message. Either both become durable or neither does. */
  readonly spawn = (
    parent: string,
    request: SpawnRequest,
    caller: Caller
  ): Effect.Effect<Done, CommandRefused | StorageError> =>
    Effect.gen({ self: this }, function* () {
      const closed = this.of.refusal()
      if (closed !== undefined) return yield* closed
      const project = this.of.file().name
      const agentScope = this.members.get(parent)?.agentScope
      if (agentScope === undefined || !this.subAgentTree.isRunning(parent)) {
        return yield* refuse(
          "conflict",
          `${project}/${parent} is not running: only a running agent can have sub-agents.`,
          `Start it first: agentd start ${project}/${parent}`
        )
      }
      const { name } = request
      const inFile = this.subAgentTree.named(name) !== undefined
      const depth = Inbox.isPerson(caller.by)
        ? undefined
        : { of: this.subAgentTree.depthOf(parent) + 1, most: this.of.file().conversation.maxDepth }
      const day = Calendar.dayOf(yield* Clock.currentTimeMillis)
      const count = begunOn(this.of.record.life, day)
      const today = { day, count, most: this.of.file().conversation.maxSubAgentsPerDay }
      const asked = { request, parent: `${project}/${parent}`, inFile, all: this.subAgentTree.subAgents, depth, today }
      const refused = SubAgents.refusal(asked)
      const bound = SubAgents.boundOf(asked)
      if (bound !== undefined) yield* agentScope.tellInbox({ _tag: "Bound", text: bound })
      if (refused !== undefined) return yield* refused
      const eventId = yield* this.bring(
        parent,
        SubAgents.configOf(parent, agentScope.config(), request),
        request,
        caller.by
      )
      const waits = this.subAgentTree.stands(name) === "queued"
      const message = waits
        ? `${project}/${name} waits for a free slot: it starts when another sub-agent has ended.`
        : `${project}/${name} is started as a sub-agent of ${project}/${parent}.`
      return { eventId, message }
    }).pipe(Effect.uninterruptible, this.lock.withPermit)

  private readonly bring = Effect.fnUntraced(
    { self: this },
    function* (this: AgentRegistry, parent: string, config: AgentConfig, { name, task }: SpawnRequest, by: string) {
      // an ended agent with the same name is released first
      const before = this.members.get(name)
      if (before !== undefined) yield* this.release(name, before)
      const at = yield* Clock.currentTimeMillis
      const message = { messageId: yield* Ids.messageId, from: by, text: task, urgent: false, at }
      const runes = yield* this.log
        .append(SubAgents.drafts({ conversation: this.conversation, name, parent, config, by, task: message }))
        .pipe(
          Effect.catchTag("RuneRefused", ({ message }) =>
            Effect.fail(refuse("too_large", message, "Shorten the instructions or the task."))
          )
        )
      const records = new Map([[this.conversation, this.of.record]])
      for (const rune of runes) apply(records, rune)
      yield* this.adopt(name, config)
      yield* this.fillPlaces
      return runes[0]!.eventId
    }
  )
}
