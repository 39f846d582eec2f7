/**
 * Project: one `agentd.jsonc` file, its open conversation, and the conversation's agents.
 *
 * Guarantees: The config that the user trusted last is in force. If a newer version of the file has problems or waits
 * for the user's trust, the project's row and the log say so. A reload affects only changed agents. A new agent is
 * started. A removed agent is stopped, but its inbox and log are kept. A changed agent uses its new settings from its
 * next run, and its new limits from its next start.
 */
import { putRight } from "../domain/ErrorLimit.ts"
import { Context, Deferred, Effect, FileSystem, Latch, Scope, Semaphore, Stream } from "effect"
import { basename, dirname, join } from "node:path"
import { ActorSystem } from "../core/event-actor/ActorSystem.ts"
import * as DynamicSupervisor from "../core/supervision/DynamicSupervisor.ts"
import * as ConfigFile from "../config/ConfigFile.ts"
import type { CommandRefused, ConfigChangeInfo, ConversationInfo, ProjectInfo } from "../domain/Messages.ts"
import { SpendingLimits } from "../domain/SpendingLimits.ts"
import * as Budget from "../agents/machines/Budget.ts"
import type { AgentConfig } from "../config/AgentConfig.ts"
import * as Prices from "../domain/Prices.ts"
import * as RulesInForce from "../config/RulesInForce.ts"
import * as Fallback from "../config/Fallback.ts"
import { unseenBy } from "../agents/run/Unseen.ts"
import * as UsageTiming from "../agents/run/UsageTiming.ts"
import * as ProjectStop from "../agents/machines/ProjectStop.ts"
import { projectKinds } from "../domain/ProjectKinds.ts"
import { reader } from "../core/event-log/EventKinds.ts"
import { ConversationActor, type Failure } from "./ConversationActor.ts"
import * as ConfigNotice from "./ConfigNotice.ts"
import * as ConfigTrust from "./ConfigTrust.ts"
import * as ConversationRow from "./ConversationRow.ts"
import { Bus, type ConfigNews } from "./service/Bus.ts"
import * as Secrets from "./Secrets.ts"
import * as TrustedFiles from "./TrustedFiles.ts"
import { AgentRegistry } from "./AgentRegistry.ts"
import { AgentsEnvironment, type Services } from "./AgentsEnvironment.ts"
import type { ProjectRecord } from "./Recovery.ts"
import * as Backoff from "../core/supervision/Backoff.ts"

const readProject = reader(projectKinds)

const SUPERVISION = { intensity: 10, period: "30 seconds" } as const

export class Project {
  readonly conversation: string
  readonly path: string
  name: string
  config: ConfigFile.Project
  /** The rules of the config in force. */
  private kept: ReadonlyArray<RulesInForce.KeptRule>
  problems: ReadonlyArray<string> = []
  readonly registry: AgentRegistry
  readonly record: ProjectRecord
  readonly scope: Scope.Closeable
  readonly life: ConversationActor
  /** Supervises the conversation: its actor, then its agents. */
  readonly supervisor: DynamicSupervisor.DynamicSupervisor
  private readonly agents: DynamicSupervisor.DynamicSupervisor
  private readonly services: Context.Context<Services>
  /** Completed when the conversation is closed and everything in it has ended. */
  readonly retired = Deferred.makeUnsafe<void>()
  private readonly reading = Semaphore.makeUnsafe(1)
  /** Opened when another config is in force: it may name other files to watch. */
  private readonly renewed = Latch.makeUnsafe(false)
  private readonly notices: ConfigNotice.ConfigNotice
  /** Checks a project name. Returns an error if another project has the name; undefined if the name is free. */
  private readonly taken: (name: string, before: string) => CommandRefused | undefined

  private constructor(
    services: Context.Context<Services>,
    record: ProjectRecord,
    seen: ConfigTrust.Seen,
    scope: Scope.Closeable,
    taken: Project["taken"]
  ) {
    const { config } = seen
    this.taken = taken
    this.services = services
    this.record = record
    this.conversation = record.conversation
    this.path = record.config
    this.name = config.name
    this.config = config
    this.kept = RulesInForce.ofProject(seen)
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
        renewed: (ref) =>
          Context.get(services as Context.Context<never>, SpendingLimits).renewed(record.conversation, ref),
        recoveredTo: Context.get(services, AgentsEnvironment).recoveredTo
      },
      record.life,
      scope
    )
    this.notices = new ConfigNotice.ConfigNotice(services, record, scope)
    this.registry = new AgentRegistry({
      services,
      record,
      file: () => this.config,
      rules: () => this.kept,
      life: this.life,
      refusal: () => this.refusal,
      supervisor: this.agents,
      scope
    })
  }

  /**
   * Restores a project from its record; `begin` then starts it. Everything in the project ends when the Effect scope
   * closes.
   */
  static readonly make = (
    record: ProjectRecord,
    seen: ConfigTrust.Seen,
    scope: Scope.Closeable,
    taken: Project["taken"]
  ) => Effect.map(Effect.context<Services>(), (services) => new Project(services, record, seen, scope, taken))

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
      ...this.unseen,
      ...ConfigTrust.waiting(this.record.trust)
    }
  }

  /**
   * Why an agent's limits cannot be enforced for each request; undefined if they can. `place`: 0 for the agent's own
   * backend, higher numbers for its fallbacks.
   */
  gapOf(agent: string, config: AgentConfig, place: number): UsageTiming.Gap | undefined {
    const user = Context.get(this.services as Context.Context<never>, Prices.UserPrices)
    const { conversation, prices } = this.config
    const { machine } = Context.get(this.services as Context.Context<never>, SpendingLimits)
    const backend = [config.backend, ...config.fallback][place]
    if (backend === undefined) return undefined
    const budgets = [config.budget, conversation.budget, machine]
    return UsageTiming.gapOf(Fallback.labelOf(agent, place), { backend }, budgets, (model) =>
      Prices.priceOf(model, prices, user)
    )
  }

  /** Describes the limits that cannot be enforced, for the agent's own backend and for each fallback. */
  gapsOf(agent: string, config: AgentConfig): ReadonlyArray<string> {
    return [config.backend, ...config.fallback].flatMap((_, place) => this.gapOf(agent, config, place)?.text ?? [])
  }

  private get unmetered(): { readonly unmetered?: ReadonlyArray<string> } {
    const all = [...this.members].flatMap(([agent, { agentScope }]) => this.gapsOf(agent, agentScope.config()))
    return all.length === 0 ? {} : { unmetered: all }
  }

  private get unseen(): { readonly unseen?: ReadonlyArray<string> } {
    const all = [...this.members].flatMap(([agent, { agentScope, rules }]) =>
      unseenBy(agentScope.config(), rules()).map((sentence) => `${agent}: ${sentence}`)
    )
    return all.length === 0 ? {} : { unseen: all }
  }

  get state() {
    return this.life.snapshot.state
  }

  /** Since when the conversation has its current state, ms since the epoch. */
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

  /** Why the project accepts no input now; undefined if it accepts input. */
  get refusal(): CommandRefused | undefined {
    const called = { conversation: this.conversation, project: this.name }
    return ConversationRow.closedToInput(called, this.life.snapshot)
  }

  /**
   * Why no agent can start again; undefined if agents can start. In a paused project, agents can start, but turns
   * cannot.
   */
  get isOver(): CommandRefused | undefined {
    return this.registry.subAgentTree.isClosing ? this.refusal : undefined
  }

  /** Why none of the project's agents can start: the project is closed or stopped. Undefined if they can start. */
  get isStill(): CommandRefused | undefined {
    return this.isOver ?? ProjectStop.refusalOf(this.name, this.record)
  }

  /** Records that a user stopped or started the whole project. Returns the event id of the rune. */
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

  /** Starts the conversation from its record, without its agents. */
  readonly begin = Effect.gen({ self: this }, function* () {
    const { agents, name } = this.config
    yield* this.supervisor.add(this.life.child)
    yield* this.life.create({ name, agents: Object.keys(agents) })
    yield* this.supervisor.add(this.agents.child)
    yield* Context.get(this.services, Bus).configured(this.news)
  })

  /**
   * Agents that stopped permanently, according to the log. Agents that had already ended before that stop are not
   * included.
   */
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

  /** The project's config. Other services read the parts that they need. */
  get news(): ConfigNews {
    return { conversation: this.conversation, config: this.config }
  }

  get settle() {
    return this.registry.settle
  }

  /** Completes unfinished work of the previous daemon. Called when the agents have been restored. */
  readonly mend: Effect.Effect<void> = Effect.suspend(() =>
    Effect.andThen(this.life.tellAgain(this.failures), this.registry.mend)
  )

  /**
   * Reads the config file again, one reader at a time. Untrusted text changes only `waits`, and invalid text only
   * `problems`. Fails if the caller trusts text that the file no longer contains.
   */
  readonly reload = (agreed: ConfigTrust.Agreed, by: string) => this.reading.withPermit(this.reread(agreed, by))

  private readonly reread = Effect.fnUntraced(
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
      // also if the file is unchanged, because an earlier attempt may have failed halfway
      yield* this.settle
      if (isHeld) return yield* ConfigTrust.changedSince(this.record)
    }
  )

  /**
   * Puts a text into force that a user has just agreed to. `write` writes it into the file; no other reader sees the
   * file before it is in force. The result is the one of `write`, and nothing is put into force if the file still has
   * another text.
   */
  readonly rewritten = <A, E, R>(text: string, by: string, write: Effect.Effect<A, E, R>) =>
    this.reading.withPermit(
      Effect.gen({ self: this }, function* () {
        const result = yield* Effect.result(write)
        const hash = ConfigTrust.hashOf(this.path, text, this.config.files)
        const seen = yield* Effect.result(Effect.provide(ConfigTrust.look(this.path), this.services))
        if (seen._tag === "Success" && seen.success.hash === hash)
          yield* this.reread({ hash }, by).pipe(Effect.catchTag("RuneRefused", (error) => Effect.die(error)))
        return yield* Effect.fromResult(result)
      })
    )

  /** True if exactly this text of the file is in force. */
  trusts(text: string): boolean {
    return ConfigTrust.hashOf(this.path, text, this.config.files) === this.record.trust.hash
  }

  /** Why the file is not the config in force; undefined if it is. */
  get unsettled(): Effect.Effect<string | undefined> {
    return Effect.provide(ConfigTrust.look(this.path), this.services).pipe(
      Effect.match({
        onFailure: () => `${this.path} has problems, and an older version of it is in force`,
        onSuccess: ({ config, hash }) =>
          hash === this.record.trust.hash || this.says(config)
            ? undefined
            : `${this.path} has a change that nobody has agreed to: agentd trust ${this.name}`
      })
    )
  }

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
      this.renewed.openUnsafe()
      this.kept = RulesInForce.ofProject(seen)
      this.name = config.name
      this.record.name = config.name
      yield* this.registry.look
      yield* this.registry.weigh
      yield* this.life.enforce
      yield* Context.get(this.services, Bus).configured(this.news)
    },
    Effect.uninterruptible
  )

  /**
   * Puts the change of the file aside: the version in force is kept. `hash`: hash of the text that was shown to
   * the user.
   */
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

  /**
   * Reloads the config file now, because it may have changed earlier, and then after each change until the scope
   * closes. Also reloads after a change of a file that is trusted with the config.
   */
  readonly watch = Effect.suspend(() => {
    this.renewed.closeUnsafe()
    return Stream.merge(Stream.succeed(undefined), this.changes).pipe(
      // editors write a file in several steps, so wait until the file has not changed for 200 ms
      Stream.debounce("200 millis"),
      Stream.interruptWhen(this.renewed.await),
      Stream.runForEach(() => this.reload("nothing", "agentd")),
      Effect.andThen(this.renewed.await)
    )
  }).pipe(
    Effect.catchDefect((defect) => Effect.fail(defect)),
    Effect.tapCause((cause) => Effect.logWarning(`${this.path} is not watched for a moment`, cause)),
    Effect.retry(Backoff.waits(Backoff.constant("30 seconds"))),
    Effect.forever
  )

  private get changes() {
    const { watch } = Context.get(this.services, FileSystem.FileSystem)
    const root = dirname(this.path)
    const names = [basename(this.path), ...TrustedFiles.namesOf(this.config)]
    const changesIn = (folder: string) =>
      Stream.filter(watch(join(root, folder)), ({ path }) => names.includes(join(folder, basename(path))))
    const folders = [...new Set(names.map(dirname))].filter((folder) => folder !== ".")
    // a folder of scripts may be missing: they are then read with the config
    const others = folders.map((folder) => Stream.catchCause(changesIn(folder), () => Stream.empty))
    return Stream.mergeAll([changesIn("."), ...others], { concurrency: "unbounded" })
  }
}
