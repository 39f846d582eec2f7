/**
 * Projects: all projects in the log, by conversation. Restores projects from the log, registers new projects, and finds
 * projects by name.
 *
 * Each project is restored from its own stream, and is available as soon as its stream was read. It uses the config
 * that the user trusted last, even if its file has changed since. A project without its config is listed with its
 * problems.
 * Such a project, or an unreadable stream, does not delay other projects. A project has one open conversation at a
 * time. Its closed conversations remain known.
 */
import { Context, Deferred, Effect, Exit, Scope, Semaphore } from "effect"
import { isAbsolute } from "node:path"
import type * as DynamicSupervisor from "../core/supervision/DynamicSupervisor.ts"
import * as LogEvent from "../domain/LogEvent.ts"
import type { Address, AgentSession } from "../domain/AgentPort.ts"
import { subjectWords } from "../approvals/Rule.ts"
import { backendAt } from "../config/AgentConfig.ts"
import * as ProjectName from "../config/ProjectName.ts"
import * as ConversationId from "../domain/ConversationId.ts"
import {
  type AgentInfo,
  type Caller,
  CommandRefused,
  type ConfigChangeInfo,
  type ConversationInfo,
  type ProjectInfo,
  refuse,
  refusedBy
} from "../domain/Messages.ts"
import { EventLog, StorageError } from "../core/event-log/EventLog.ts"
import type { RuneDraft } from "../core/event-log/Rune.ts"
import type { Services } from "./AgentsEnvironment.ts"
import type { AgentFacts } from "./service/Agents.ts"
import { isActive } from "../agents/machines/AgentStates.ts"
import * as AgentView from "../agents/run/AgentView.ts"
import * as Backlog from "./service/Backlog.ts"
import { ConfigNotice, type Trouble, troubleOf } from "./ConfigNotice.ts"
import * as ConfigTrust from "./ConfigTrust.ts"
import * as ConversationRow from "./ConversationRow.ts"
import * as NameLookup from "./service/NameLookup.ts"
import * as NotLiving from "./NotLiving.ts"
import { Project } from "./Project.ts"
import { freshProject, type ProjectRecord } from "./Recovery.ts"
import * as Secrets from "./Secrets.ts"
import { repeated, rulesOf } from "../agents/machines/ToolsState.ts"
import * as Backoff from "../core/supervision/Backoff.ts"

/** How often agentd tries to read the config of a lost project again. */
const READ_AGAIN = Backoff.constant("5 seconds")

export class Projects {
  readonly living: Map<string, Project> = new Map()
  /** Conversations that are not running, by their id. */
  private readonly others: Map<string, NotLiving.NotLiving> = new Map()
  /** Lost conversations that are being closed, by their id. They are not restored, even if their file exists again. */
  private readonly endings = new Map<string, Deferred.Deferred<void, StorageError>>()
  private readonly lock = Semaphore.makeUnsafe(1)
  private readonly services: Context.Context<Services>
  readonly scope: Scope.Scope

  readonly supervisor: DynamicSupervisor.DynamicSupervisor

  private constructor(
    services: Context.Context<Services>,
    supervisor: DynamicSupervisor.DynamicSupervisor,
    scope: Scope.Scope
  ) {
    this.supervisor = supervisor
    this.services = services
    this.scope = scope
  }

  /** Creates the service. All projects end when the Effect scope closes. */
  static readonly make = (supervisor: DynamicSupervisor.DynamicSupervisor) =>
    Effect.map(
      Effect.all([Effect.context<Services>(), Effect.scope]),
      ([services, scope]) => new Projects(services, supervisor, scope)
    )

  private get log(): EventLog["Service"] {
    return Context.get(this.services, EventLog)
  }

  get entries(): ReadonlyArray<NameLookup.Entry> {
    return [
      ...[...this.living.values()].map((project) => ({ _tag: "Open", project, record: project.record }) as const),
      ...this.notLiving
    ]
  }

  get notLiving(): ReadonlyArray<NotLiving.NotLiving> {
    return NotLiving.inOrder(this.others.values())
  }

  /** The record of a conversation that is not running for this `reason`; undefined if there is none. */
  private recordOf(conversation: string, reason: NotLiving.Reason): ProjectRecord | undefined {
    const one = this.others.get(conversation)
    return one?.reason === reason ? one.record : undefined
  }

  private put(one: NotLiving.NotLiving): void {
    this.others.set(one.record.conversation, one)
  }

  /** All live agents. */
  get found(): ReadonlyArray<NameLookup.Found> {
    return [...this.living.values()].flatMap((project) =>
      [...project.members.values()].map(({ agentScope }) => ({ project, agentScope }))
    )
  }

  stateOf(conversation: string) {
    const known = this.recordOf(conversation, "lost") ?? this.recordOf(conversation, "closed")
    return (this.living.get(conversation)?.life ?? known?.life)?.snapshot.state
  }

  agentScope({ agent, conversation }: Address) {
    return this.living.get(conversation)?.members.get(agent)?.agentScope
  }

  /** Starts the project's conversation and agents, and watches its file. */
  private readonly open = Effect.fnUntraced(
    { self: this },
    function* (this: Projects, record: ProjectRecord, seen: ConfigTrust.Seen) {
      const scope = yield* Scope.fork(this.scope)
      const project = yield* Effect.provide(
        Project.make(record, seen, scope, (name, before) => this.taken(record.config, name, before)),
        this.services
      )
      yield* this.supervisor.add(project.supervisor.child)
      yield* project.begin
      this.living.set(record.conversation, project)
      this.others.delete(record.conversation)
      yield* Effect.forkIn(Effect.andThen(Deferred.await(project.life.closed), this.retire(project)), this.scope)
      yield* Effect.forkIn(project.watch, scope)
      // if this fails, the next reload tries again
      yield* Effect.ensuring(project.settle, project.mend)
      // the file may have changed in the meantime, and callers must see the newest state
      yield* project.reload("nothing", "agentd").pipe(Effect.catchTag("RuneRefused", (error) => Effect.die(error)))
      return project
    }
  )

  /** Called when everything in the project has stopped: keeps only its record. */
  private readonly retire = (project: Project) =>
    Effect.gen({ self: this }, function* () {
      const { conversation, life, record, scope } = project
      record.life.snapshot = life.snapshot
      this.put(NotLiving.closed(record))
      this.living.delete(conversation)
      yield* this.supervisor.remove(conversation)
      yield* Scope.close(scope, Exit.void)
      yield* Deferred.succeed(project.retired, undefined)
    }).pipe(Effect.uninterruptible, this.lock.withPermit)

  private look(path: string) {
    return Effect.mapError(Effect.provide(ConfigTrust.look(path), this.services), (error) => refusedBy(error))
  }

  /** The config that was trusted; fails if its text no longer exists. */
  private inForce(path: string, hash: string) {
    return Effect.mapError(Effect.provide(ConfigTrust.inForce(path, hash), this.services), (error) => refusedBy(error))
  }

  /**
   * Registers the secrets in the config and stores the config's text. Must be done before the log says that the text is
   * trusted.
   */
  private ready(seen: ConfigTrust.Seen) {
    return Effect.provide(Effect.andThen(Secrets.register(seen.config), ConfigTrust.keep(seen)), this.services)
  }

  private append(record: ProjectRecord, drafts: ReadonlyArray<RuneDraft>) {
    const { append } = new ConfigNotice(this.services, record, this.scope)
    return append(drafts).pipe(Effect.catchTag("RuneRefused", (error) => Effect.die(error)))
  }

  /**
   * Checks a project name. Returns an error if another project has the name; undefined if the name is free. `before`:
   * the current name of the project.
   */
  private taken(path: string, name: string, before: string | null): CommandRefused | undefined {
    const called = (name: string) =>
      this.entries.find(
        (entry) => !NameLookup.isClosed(entry) && entry.record.config !== path && NameLookup.nameOf(entry) === name
      )
    const other = called(name)
    if (other === undefined || name === before) return undefined
    const free = ProjectName.distinguished(path, name, (name) => called(name) !== undefined)
    return new CommandRefused({
      code: "conflict",
      message: `A project named ${name} already exists: ${other.record.config}.`,
      remedy:
        before === null
          ? `Give this project another name, in its folder: agentd start --name ${free}`
          : `Set another "name" in ${path}, such as ${free}; then: agentd trust ${before}`
    })
  }

  /** Registers a project's file and its conversation in the log, and opens the project with the trusted config. */
  private readonly enter = Effect.fnUntraced(
    { self: this },
    function* (
      this: Projects,
      path: string,
      conversation: string,
      caller: Caller,
      agreed: ConfigTrust.Agreed,
      before: string | null
    ) {
      const found = yield* this.look(path)
      const record = this.recordOf(conversation, "lost") ?? freshProject(conversation, path, found.config.name)
      if (typeof agreed === "object" && agreed.hash !== found.hash) return yield* ConfigTrust.changedSince(record)
      const isAgreed = before === null || before === found.hash || ConfigTrust.agrees(agreed, found.hash)
      const seen = isAgreed ? found : yield* this.inForce(path, before)
      if (seen === undefined) return yield* untrusted(record)
      const { name } = seen.config
      const taken = this.taken(path, name, this.recordOf(conversation, "lost")?.name ?? null)
      if (taken !== undefined) return yield* taken
      const { unreadable } = yield* this.log.reading
      const unread = unreadable.find(({ stream }) => stream === conversation)
      if (unread !== undefined) {
        return yield* refuse(
          "unavailable",
          `The log of ${conversation} cannot be read: ${unread.message}`,
          "See what is wrong with the log: agentd verify"
        )
      }
      yield* this.ready(seen)
      const how = before === null || !isAgreed ? "first" : typeof agreed === "object" ? "trust" : "start"
      yield* this.append(record, [
        {
          stream: conversation,
          kind: "project.registered",
          actor: "project",
          trigger: "register",
          payload: { config: path, name, by: caller.by, agents: Object.keys(seen.config.agents) }
        },
        ConfigTrust.trusted(conversation, seen, caller.by, how)
      ])
      return yield* this.open(record, seen)
    }
  )

  /** Runs commands on a file one after another. A command completes even if its caller disconnects. */
  private alone<A, E>(path: string, command: Effect.Effect<A, E>): Effect.Effect<A, E | CommandRefused> {
    return isAbsolute(path)
      ? this.lock.withPermit(Effect.uninterruptible(command))
      : Effect.fail(refuse("invalid", `config: ${path} is not absolute.`, "Use the absolute path."))
  }

  readonly register = (
    path: string,
    caller: Caller,
    agreed: ConfigTrust.Agreed
  ): Effect.Effect<ProjectInfo, CommandRefused | StorageError> =>
    this.alone(
      path,
      Effect.gen({ self: this }, function* () {
        const known = this.known(path)
        if (known?._tag === "Open") {
          yield* known.project
            .reload(agreed, caller.by)
            .pipe(Effect.catchTag("RuneRefused", (error) => Effect.die(error)))
          return known.project.info
        }
        if (known?.reason === "closed") return overInfo(known.record)
        if (known?.reason === "damaged") return yield* NotLiving.refusalOf(known)
        const conversation = known?.record.conversation ?? ProjectName.conversationId(path)
        return (yield* this.enter(path, conversation, caller, agreed, known?.record.trust.hash ?? null)).info
      })
    )

  readonly newConversation = (
    path: string,
    caller: Caller
  ): Effect.Effect<ConversationInfo, CommandRefused | StorageError> =>
    this.alone(
      path,
      Effect.gen({ self: this }, function* () {
        const known = this.known(path)
        if (known !== undefined && !NameLookup.isClosed(known)) {
          const { conversation, name } = known.record
          return yield* refuse(
            "conflict",
            `The conversation ${conversation} is open: a project has only one at a time.`,
            `Close it first: agentd project close ${name}`
          )
        }
        const conversation = known === undefined ? ProjectName.conversationId(path) : NameLookup.successor(known.record)
        // a change that waits for the user's trust keeps waiting
        return (yield* this.enter(path, conversation, caller, "nothing", known?.record.trust.hash ?? null)).row
      })
    )

  /**
   * The config with which a project is restored: the trusted text. Logs of older versions of agentd name no trusted
   * text: then the current file is used, and is trusted from now on.
   */
  private readonly recovered = Effect.fnUntraced({ self: this }, function* (this: Projects, record: ProjectRecord) {
    const { config: path, conversation, trust } = record
    if (trust.hash !== null) {
      const seen = yield* this.inForce(path, trust.hash)
      if (seen === undefined) return yield* untrusted(record)
      yield* Effect.provide(Secrets.register(seen.config), this.services)
      return seen
    }
    const seen = yield* this.look(path)
    yield* this.ready(seen)
    yield* this.append(record, [ConfigTrust.trusted(conversation, seen, "agentd", "first")])
    return seen
  })

  /** Opens a lost project as soon as its config exists again, unless another command has changed the project. */
  private readonly await = (lost: NotLiving.NotLiving) => {
    const { conversation, name } = lost.record
    const isWaiting = () => this.others.get(conversation) === lost && !this.endings.has(conversation)
    return this.recovered(lost.record).pipe(
      Effect.retry({ schedule: Backoff.waits(READ_AGAIN), while: isWaiting }),
      Effect.flatMap((seen) =>
        this.lock.withPermit(
          Effect.suspend(() => (isWaiting() ? Effect.asVoid(this.open(lost.record, seen)) : Effect.void))
        )
      ),
      Effect.tapCause((cause) => Effect.logWarning(`${name} could not be opened`, cause))
    )
  }

  /** Restores one project. If this fails, no other project is affected. */
  readonly revive = Effect.fnUntraced({ self: this }, function* (this: Projects, record: ProjectRecord) {
    const { config, life } = record
    const { state } = life.snapshot
    if (state === "closed" || state === "archived") return this.put(NotLiving.closed(record))
    const recovered = yield* Effect.result(this.recovered(record))
    if (recovered._tag === "Success") return yield* Effect.asVoid(this.open(record, recovered.success))
    if (recovered.failure._tag === "StorageError") return yield* recovered.failure
    const lost = NotLiving.lost(record, recovered.failure)
    this.put(lost)
    if (state === "closing") return yield* Effect.asVoid(Effect.forkIn(this.closeLost(record), this.scope))
    const file = yield* Effect.result(Effect.provide(ConfigTrust.look(config), this.services))
    const trouble: Trouble =
      file._tag === "Failure" ? troubleOf(file.failure) : { state: "untrusted", hash: file.success.hash, problem: null }
    yield* new ConfigNotice(this.services, record, this.scope)
      .notice(trouble)
      .pipe(Effect.catchTag("RuneRefused", (error) => Effect.die(error)))
    yield* Effect.forkIn(this.await(lost), this.scope)
  })

  readonly configChange = (entry: NameLookup.Entry): Effect.Effect<ConfigChangeInfo, CommandRefused> => {
    if (entry._tag === "Open") return entry.project.change
    return entry.reason === "lost"
      ? Effect.provide(ConfigTrust.changeOf(entry.record, undefined), this.services)
      : NotLiving.refusalOf(entry)
  }

  /**
   * Closes a lost conversation. Returns when it is closed, also to a second caller. Completes even if the caller
   * disconnects.
   */
  readonly closeLost = Effect.fnUntraced(
    { self: this },
    function* (this: Projects, record: ProjectRecord, why?: NotLiving.Closing) {
      const { conversation } = record
      const known = this.endings.get(conversation)
      const over = known ?? Deferred.makeUnsafe<void, StorageError>()
      if (known === undefined) {
        this.endings.set(conversation, over)
        const ending = Effect.provide(NotLiving.end(record, this.supervisor, why), this.services)
        yield* Effect.forkIn(
          Effect.onExit(ending, (exit) => Deferred.done(over, exit)),
          this.scope
        )
      }
      yield* Deferred.await(over)
      this.put(NotLiving.closed(record))
    }
  )

  /**
   * The newest conversation of a config file. A damaged stream may not contain the path of the file; its conversation
   * is then found by id.
   */
  private known(path: string): NameLookup.Entry | undefined {
    const id = ProjectName.conversationId(path)
    for (const { record } of this.entries) if (record.config === "" && record.conversation === id) record.config = path
    return NameLookup.ofConfig(this.entries, path)
  }

  /** Stops everything in a conversation whose stream is damaged. Nothing more is written to the stream. */
  readonly setApart = (conversation: string, message: string): Effect.Effect<void> =>
    Effect.gen({ self: this }, function* () {
      if (!ConversationId.mayBe(conversation) || this.recordOf(conversation, "damaged") !== undefined) return
      const project = this.living.get(conversation)
      const over = this.recordOf(conversation, "closed")
      const known = project?.record ?? this.others.get(conversation)?.record
      const record = known ?? (yield* Effect.provide(NotLiving.recordOf(conversation), this.services))
      yield* LogEvent.noted("conversation.apart", { conversation })(
        Effect.logError(`${conversation} is set apart: ${message}`)
      )
      // a closed conversation has nothing to stop, and remains closed
      if (over === undefined) this.put(NotLiving.damaged(record, message))
      this.living.delete(conversation)
      yield* Effect.provide(NotLiving.tell(conversation, message), this.services)
      if (project === undefined) return
      yield* this.supervisor.remove(conversation)
      yield* Scope.close(project.scope, Exit.void)
    }).pipe(Effect.uninterruptible, this.lock.withPermit)

  /** Gives up a damaged conversation at a user's request. Returns the event id of the rune that records this. */
  readonly giveUp = (record: ProjectRecord, why: NotLiving.Closing) =>
    Effect.gen({ self: this }, function* () {
      const over = yield* Effect.provide(NotLiving.giveUp(record, why), this.services)
      this.put(NotLiving.closed(over))
      return over.life.snapshot.entered
    }).pipe(Effect.uninterruptible, this.lock.withPermit)

  readonly agentInfo = ({ project, agentScope }: NameLookup.Found, now: number): AgentInfo => {
    const place = agentScope.worker()?.data.fallback ?? 0
    return AgentView.row({
      conversation: project.conversation,
      project: project.name,
      agent: agentScope.name,
      config: agentScope.config(),
      worker: agentScope.worker(),
      turn: agentScope.turn(),
      calls: agentScope.calls(),
      inbox: agentScope.inbox().data,
      inboxAt: agentScope.inbox().at,
      queued: project.registry.subAgentTree.isQueued(agentScope.name),
      parent: agentScope.setting.parent,
      heard: agentScope.live.heard,
      line: agentScope.live.line,
      retries: agentScope.live.retries,
      preparing: agentScope.live.preparing,
      answeredAt: agentScope.actors.tools.state.answeredAt,
      asked: agentScope.live.meter.newest,
      outlives: agentScope.live.run === undefined ? undefined : agentScope.live.run.outlives?.() === true,
      runRules: rulesOf(agentScope.actors.tools.state, agentScope.live.run?.runId).map(({ subject }) =>
        agentScope.setting.waiting.mask(subjectWords(subject))
      ),
      lacks: [...agentScope.live.lacks],
      mode: agentScope.live.run === undefined ? undefined : agentScope.live.offers.mode,
      background: agentScope.live.beside,
      trouble: agentScope.setting.weather.trouble(),
      windows: agentScope.setting.weather.near(agentScope.worker()?.data.fallback ?? 0),
      allowance: agentScope.setting.allowance.standing(),
      same: isActive(agentScope.turn())
        ? repeated(agentScope.actors.tools.state, agentScope.turn().data.turnId)
        : undefined,
      gap: project.gapOf(agentScope.name, agentScope.config(), place),
      broken: project.recordOf(agentScope.name)?.broken,
      home: { conversation: project.conversation, state: project.state, since: project.since },
      now
    })
  }

  /** The agent's session; undefined if the agent never had one. */
  readonly session = ({ project, agentScope }: NameLookup.Found): AgentSession | undefined => {
    const worker = agentScope.worker()
    if (worker === undefined) return undefined
    const { fallback = 0, pid, runId, sessionId } = worker.data
    const isAlive = ["Spawning", "Running", "Interrupting"].includes(worker.state)
    return {
      agent: `${project.name}/${agentScope.name}`,
      runId: isAlive ? runId : null,
      isUp: worker.state === "Running" || (worker.state === "Interrupting" && pid !== null),
      turns: backendAt(agentScope.config(), fallback).type !== "command",
      sessionId,
      pid
    }
  }

  readonly facts = ({ agent, conversation }: Address, now: number): AgentFacts => {
    const project = this.living.get(conversation)
    const agentScope = project?.members.get(agent)?.agentScope
    if (project === undefined || agentScope === undefined)
      return { conversation, agent, info: undefined, backlog: undefined, calls: [] }
    const info = this.agentInfo({ project, agentScope }, now)
    return { conversation, agent, info, backlog: Backlog.of(agentScope), calls: agentScope.calls() }
  }

  /**
   * The config that applies to a conversation. For a closed conversation, this is the config of the project's newer
   * conversation.
   */
  configOf(conversation: string) {
    const open = this.living.get(conversation)
    if (open !== undefined) return open.config
    const config = this.recordOf(conversation, "closed")?.config
    const next = config === undefined ? undefined : NameLookup.ofConfig(this.entries, config)
    return next?._tag === "Open" ? next.project.config : undefined
  }
}

const untrusted = ({ config, name }: ProjectRecord): CommandRefused =>
  refuse(
    "conflict",
    `${config} is not the trusted text, and the trusted text is no longer stored.`,
    `Check it, then trust it: agentd trust ${name}`
  )

/** The row of a config file whose newest conversation is closed. Only a user can start a new conversation. */
const overInfo = ({ config, conversation, name }: ProjectRecord): ProjectInfo => {
  const { message, remedy } = ConversationRow.over({ conversation, project: name })
  return { conversation, name, config, agents: [], problems: [`${message} ${remedy}`] }
}
