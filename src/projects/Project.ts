/**
 * Project: one `agentd.jsonc`, its open conversation, and the agents in it.
 *
 * Guarantees: the last config that a person has agreed to is in force. The problems of a newer file, or the fact that
 * it waits for a person, can be queried and are in the log. A reload affects only what changed: a new agent is started,
 * and a removed one is stopped (its inbox and log stay). A changed agent gets its new settings with its next run, and
 * its limits with its next start.
 */
import { putRight } from "../domain/ErrorLimit.ts"
import { Context, Deferred, Effect, FileSystem, Scope, Semaphore, Stream } from "effect"
import { basename, dirname } from "node:path"
import { ActorSystem } from "../core/event-actor/ActorSystem.ts"
import * as DynamicSupervisor from "../core/supervision/DynamicSupervisor.ts"
import * as ConfigFile from "../config/ConfigFile.ts"
import type { CommandRefused, ConfigChangeInfo, ConversationInfo, ProjectInfo } from "../domain/Messages.ts"
import { Allowance } from "../domain/Allowance.ts"
import * as Budget from "../agents/machines/Budget.ts"
import type { AgentConfig } from "../config/AgentConfig.ts"
import * as Prices from "../domain/Prices.ts"
import * as Fallback from "../config/Fallback.ts"
import * as Metering from "../agents/run/Metering.ts"
import * as ProjectStop from "../agents/machines/ProjectStop.ts"
import { projectKinds } from "../domain/ProjectKinds.ts"
import { reader } from "../core/event-log/EventKinds.ts"
import { ConversationActor, type Failure } from "./ConversationActor.ts"
import * as ConfigNotice from "./ConfigNotice.ts"
import * as ConfigTrust from "./ConfigTrust.ts"
import * as ConversationRow from "./ConversationRow.ts"
import { Bus, type ConfigNews } from "./service/Bus.ts"
import * as Secrets from "./Secrets.ts"
import { AgentRegistry } from "./AgentRegistry.ts"
import { AgentsPlace, type Services } from "./AgentsPlace.ts"
import type { ProjectRecord } from "./Recovery.ts"
import * as Backoff from "../core/supervision/Backoff.ts"

const readProject = reader(projectKinds)

const SUPERVISION = { intensity: 10, period: "30 seconds" } as const

export class Project {
  readonly conversation: string
  readonly path: string
  name: string
  config: ConfigFile.Project
  problems: ReadonlyArray<string> = []
  /** The live agents of the conversation. */
  readonly registry: AgentRegistry
  readonly record: ProjectRecord
  readonly scope: Scope.Closeable
  readonly life: ConversationActor
  /** The conversation in the supervision tree: its actor, then its agents. */
  readonly supervisor: DynamicSupervisor.DynamicSupervisor
  private readonly agents: DynamicSupervisor.DynamicSupervisor
  private readonly services: Context.Context<Services>
  /** Completed when the conversation is closed and nothing of it is alive. */
  readonly retired = Deferred.makeUnsafe<void>()
  private readonly reading = Semaphore.makeUnsafe(1)
  private readonly notices: ConfigNotice.ConfigNotice
  /** Refuses a name that another project has; undefined if the name is free. */
  private readonly taken: (name: string, before: string) => CommandRefused | undefined

  private constructor(
    services: Context.Context<Services>,
    record: ProjectRecord,
    config: ConfigFile.Project,
    scope: Scope.Closeable,
    taken: Project["taken"]
  ) {
    this.taken = taken
    this.services = services
    this.record = record
    this.conversation = record.conversation
    this.path = record.config
    this.name = config.name
    this.config = config
    this.scope = scope
    this.supervisor = DynamicSupervisor.make({ name: record.conversation, strategy: "rest_for_one", ...SUPERVISION })
    this.agents = DynamicSupervisor.make({ name: "agents", strategy: "one_for_one", ...SUPERVISION })
    this.life = new ConversationActor(
      {
        conversation: record.conversation,
        system: Context.get(services, ActorSystem),
        config: () => this.config.conversation,
        livingAgents: () => this.registry.livingAgents,
        leaving: Effect.suspend(() => this.registry.leaving),
        ended: (agent) => Effect.asVoid(Effect.forkIn(this.registry.afterEnd(agent), this.scope)),
        renewed: (ref) => Context.get(services as Context.Context<never>, Allowance).renewed(record.conversation, ref),
        recoveredTo: Context.get(services, AgentsPlace).recoveredTo
      },
      record.life,
      scope
    )
    this.notices = new ConfigNotice.ConfigNotice(services, record, scope)
    this.registry = new AgentRegistry({
      services,
      record,
      file: () => this.config,
      life: this.life,
      refusal: () => this.refusal,
      supervisor: this.agents,
      scope
    })
  }

  /** Restores the project from its record. `begin` brings it to life. All of it ends with the scope. */
  static readonly make = (
    record: ProjectRecord,
    config: ConfigFile.Project,
    scope: Scope.Closeable,
    taken: Project["taken"]
  ) => Effect.map(Effect.context<Services>(), (services) => new Project(services, record, config, scope, taken))

  get members(): AgentRegistry["members"] {
    return this.registry.members
  }

  get info(): ProjectInfo {
    return {
      conversation: this.conversation,
      name: this.name,
      config: this.path,
      agents: [...this.members.keys()],
      problems: this.problems,
      ...(this.record.stopped === null ? {} : { stopped: this.record.stopped }),
      ...this.unmetered,
      ...ConfigTrust.waiting(this.record.trust)
    }
  }

  /**
   * Why an agent's limits do not hold for each request; undefined if they do. `place`: 0 is its own backend, then
   * fallbacks.
   */
  gapOf(agent: string, config: AgentConfig, place: number): Metering.Gap | undefined {
    const user = Context.get(this.services as Context.Context<never>, Prices.UserPrices)
    const { conversation, prices } = this.config
    const { machine } = Context.get(this.services as Context.Context<never>, Allowance)
    const backend = [config.backend, ...config.fallback][place]
    if (backend === undefined) return undefined
    const budgets = [config.budget, conversation.budget, machine]
    return Metering.gapOf(Fallback.labelOf(agent, place), { backend }, budgets, (model) =>
      Prices.priceOf(model, prices, user)
    )
  }

  /** The gaps of the agent's own backend and of each fallback, in words. */
  gapsOf(agent: string, config: AgentConfig): ReadonlyArray<string> {
    return [config.backend, ...config.fallback].flatMap((_, place) => this.gapOf(agent, config, place)?.text ?? [])
  }

  private get unmetered(): { readonly unmetered?: ReadonlyArray<string> } {
    const all = [...this.members].flatMap(([agent, { agentScope }]) => this.gapsOf(agent, agentScope.config()))
    return all.length === 0 ? {} : { unmetered: all }
  }

  get state() {
    return this.life.snapshot.state
  }

  /** When that state was entered, ms since the epoch. */
  get since() {
    return this.life.snapshot.at
  }

  get row(): ConversationInfo {
    const { subAgents } = this.registry.subAgentTree
    return ConversationRow.row({
      conversation: this.conversation,
      project: this.name,
      config: this.path,
      snapshot: this.life.snapshot,
      agents: [...this.members.keys()],
      queued: subAgents.filter(({ stands }) => stands === "queued").map(({ name }) => name),
      spent: this.life.spent,
      limits: Budget.limitsShown(this.config.conversation.budget)
    })
  }

  /** Why the project takes no input now; undefined if it does. */
  get refusal(): CommandRefused | undefined {
    const called = { conversation: this.conversation, project: this.name }
    return ConversationRow.closedToInput(called, this.life.snapshot)
  }

  /** Why no agent can start any more; undefined if one can. A paused project still starts agents, but no turns. */
  get isOver(): CommandRefused | undefined {
    return this.registry.subAgentTree.isClosing ? this.refusal : undefined
  }

  /** Why none of its agents can start: the project is over, or stopped as a whole; undefined if they can. */
  get isStill(): CommandRefused | undefined {
    return this.isOver ?? ProjectStop.refusalOf(this.name, this.record)
  }

  /** Appends a person's decision about the whole project, and applies it. Returns the rune. */
  readonly say = Effect.fnUntraced(
    { self: this },
    function* (this: Project, kind: "project.stopped" | "project.started", by: string) {
      const { conversation: stream, name } = this
      const [rune] = yield* this.notices
        .append([{ stream, kind, actor: "project", trigger: "person", payload: { name, by } }])
        .pipe(Effect.catchTag("RuneRefused", (error) => Effect.die(error)))
      const said = readProject(rune!)
      if (said !== undefined) ProjectStop.apply(this.record, said)
      return rune!.eventId
    },
    Effect.uninterruptible
  )

  recordOf(agent: string) {
    return this.record.agents.get(agent)
  }

  /** Brings the conversation to life from its record, without its agents. */
  readonly begin = Effect.gen({ self: this }, function* () {
    const { agents, name } = this.config
    yield* this.supervisor.add(this.life.child)
    yield* this.life.create({ name, agents: Object.keys(agents) })
    yield* this.supervisor.add(this.agents.child)
    yield* Context.get(this.services, Bus).configured(this.news)
  })

  /** Agents that stopped permanently, according to the log, except those that had ended before. */
  private get failures(): ReadonlyArray<Failure> {
    const stream = this.conversation
    return [...this.record.agents].flatMap(
      ([
        agent,
        {
          life,
          worker: { now }
        }
      ]) => {
        if (now?.state !== "Stopped" || now.data.fatal === null) return []
        const isOver = (life.state === "terminated" || life.state === "failed") && life.entered < now.entered
        return isOver
          ? []
          : [{ agent, error: putRight(now.data.fatal.message), cause: { stream, seq: now.seq, eventId: now.entered } }]
      }
    )
  }

  /** The config, for services outside that follow a part of it. */
  get news(): ConfigNews {
    return { conversation: this.conversation, config: this.config }
  }

  /** Adds and removes agents until exactly those of the config and their sub-agents live. */
  get settle() {
    return this.registry.settle
  }

  /** Completes the previous daemon's unfinished work, when the agents are alive. */
  readonly mend: Effect.Effect<void> = Effect.suspend(() =>
    Effect.andThen(this.life.tellAgain(this.failures), this.registry.mend)
  )

  /**
   * Reads the file again, one reader at a time. A text that nobody has agreed to changes only `waits`, and an invalid
   * one only `problems`. Fails if the caller agreed to a text that the file no longer has.
   */
  readonly reload = Effect.fnUntraced(
    { self: this },
    function* (this: Project, agreed: ConfigTrust.Agreed, by: string) {
      if (this.registry.subAgentTree.isClosing) return
      const read = yield* Effect.result(Effect.provide(ConfigTrust.look(this.path), this.services))
      const isHeld = typeof agreed === "object" && !(read._tag === "Success" && read.success.hash === agreed.hash)
      if (read._tag === "Failure") {
        this.problems = read.failure.message.split("\n")
        yield* Effect.logWarning(`not taken over: ${read.failure.message}`)
        yield* this.notices.notice(ConfigNotice.troubleOf(read.failure))
      } else {
        this.problems = []
        yield* this.weigh(read.success, agreed, by)
      }
      // even for an unchanged file: an earlier settling may have failed half-way
      yield* this.settle
      if (isHeld) return yield* ConfigTrust.changedSince(this.record)
    },
    (effect) => this.reading.withPermit(effect)
  )

  private readonly weigh = Effect.fnUntraced(
    { self: this },
    function* (this: Project, seen: ConfigTrust.Seen, agreed: ConfigTrust.Agreed, by: string) {
      const isTrusted = seen.hash === this.record.trust.hash
      if (!isTrusted && ConfigTrust.agrees(agreed, seen.hash)) {
        const taken = this.taken(seen.config.name, this.name)
        return yield* taken ?? this.agree(seen, agreed, by)
      }
      const isInForce = isTrusted || this.says(seen.config)
      yield* this.notices.notice(isInForce ? null : { state: "untrusted", hash: seen.hash, problem: null })
    }
  )

  /** Whether a config equals the one in force. */
  private says(config: ConfigFile.Project): boolean {
    return JSON.stringify(config) === JSON.stringify(this.config)
  }

  private readonly agree = Effect.fnUntraced(
    { self: this },
    function* (this: Project, seen: ConfigTrust.Seen, agreed: ConfigTrust.Agreed, by: string) {
      const { config } = seen
      const { hash: before } = this.record.trust
      const isNew = !this.says(config)
      yield* Effect.provide(Effect.andThen(Secrets.register(config), ConfigTrust.keep(seen)), this.services)
      yield* this.notices.append([
        ConfigTrust.trusted(this.conversation, seen, by, typeof agreed === "object" ? "trust" : "start"),
        ...(isNew
          ? [
              {
                stream: this.conversation,
                kind: "project.config_changed",
                actor: "project",
                trigger: "reload",
                payload: { config: this.path, name: config.name, agents: Object.keys(config.agents) }
              }
            ]
          : [])
      ])
      yield* Effect.provide(ConfigTrust.drop(before), this.services)
      if (!isNew) return
      this.config = config
      this.name = config.name
      this.record.name = config.name
      yield* this.registry.look
      yield* this.life.enforce
      yield* Context.get(this.services, Bus).configured(this.news)
    },
    Effect.uninterruptible
  )

  /** Puts the file's change aside: the config in force stays. `hash`: the text that the person was shown. */
  readonly keepInForce = (hash: string | undefined, by: string) =>
    Effect.gen({ self: this }, function* () {
      const refused = ConfigTrust.unkept(this.record, hash)
      if (refused !== undefined) return yield* refused
      if (this.record.trust.noticed?.kept !== undefined) return 0
      const [rune] = yield* this.notices.append([ConfigTrust.keptOf(this.record, by)])
      return rune!.eventId
    }).pipe(this.reading.withPermit)

  get change(): Effect.Effect<ConfigChangeInfo> {
    return Effect.provide(ConfigTrust.changeOf(this.record, this.config), this.services)
  }

  /** Reloads now, because the file may have changed unseen, and then after each change, until the scope closes. */
  readonly watch = Effect.suspend(() =>
    Stream.merge(Stream.succeed(undefined), this.changes).pipe(
      // editors write a file in several steps
      Stream.debounce("200 millis"),
      Stream.runForEach(() => this.reload("nothing", "agentd"))
    )
  ).pipe(
    Effect.catchDefect((defect) => Effect.fail(defect)),
    Effect.tapCause((cause) => Effect.logWarning(`${this.path} is not watched for a moment`, cause)),
    Effect.retry(Backoff.waits(Backoff.constant("30 seconds")))
  )

  private get changes() {
    return Context.get(this.services, FileSystem.FileSystem)
      .watch(dirname(this.path))
      .pipe(Stream.filter((event) => basename(event.path) === basename(this.path)))
  }
}
