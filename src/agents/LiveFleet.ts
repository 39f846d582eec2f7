/**
 * LiveFleet: the Fleet over the log: recovers every project at the start, keeps
 * them by conversation, and finds agents for those who ask.
 *
 * Each project is recovered by its own stream, and lives as soon as that is read: one
 * whose config is gone or broken is named with its problems, and neither that nor a
 * stream that cannot be read holds up another. A
 * project has one open conversation at a time; those that are closed are known.
 */
import { Clock, Context, Deferred, Effect, Exit, FileSystem, Layer, Schedule, Scope, Semaphore } from "effect"
import { isAbsolute } from "node:path"
import { ActorSystem } from "../event-actor/ActorSystem.ts"
import type * as DynamicSupervisor from "../supervision/DynamicSupervisor.ts"
import { Backends } from "../backends/Backends.ts"
import type { ProcessTree } from "../backends/process/ProcessTree.ts"
import * as ConfigFile from "../config/ConfigFile.ts"
import { type Address, AgentPort } from "../domain/AgentPort.ts"
import { Conversations } from "../domain/Conversations.ts"
import * as ProjectName from "../config/ProjectName.ts"
import {
  type AgentInfo,
  type Caller,
  CommandRefused,
  type ConversationInfo,
  type ProjectInfo
} from "../domain/Messages.ts"
import * as TurnMachine from "./TurnMachine.ts"
import { Redact } from "../event-log/Redact.ts"
import { EventLog, StorageError } from "../event-log/EventLog.ts"
import * as AgentView from "./AgentView.ts"
import * as Bus from "./Bus.ts"
import * as ConversationRow from "./ConversationRow.ts"
import * as Finder from "./Finder.ts"
import { Fleet } from "./Fleet.ts"
import * as FleetCommands from "./FleetCommands.ts"
import type { ProjectServices } from "./AgentRegistry.ts"
import * as LiveAgentPort from "./LiveAgentPort.ts"
import * as LiveConversations from "./LiveConversations.ts"
import { LostProject } from "./LostProject.ts"
import { Project } from "./Project.ts"
import { freshProject, type ProjectRecord, recoverEach } from "./Recovery.ts"
import * as Secrets from "./Secrets.ts"
import * as Backoff from "../supervision/Backoff.ts"

/** How often the file of a project that cannot be read is tried. */
const READ_AGAIN = Backoff.constant("5 seconds")

export class LiveFleet {
  readonly projects: Map<string, Project> = new Map()
  /** Projects whose config cannot be read now: known, not running. */
  readonly lost: Map<string, LostProject> = new Map()
  /** Conversations that are over. */
  readonly closed: Map<string, ProjectRecord> = new Map()
  private readonly lock = Semaphore.makeUnsafe(1)
  readonly services: ProjectServices
  readonly scope: Scope.Scope

  /** All conversations in the supervision tree. */
  readonly nest: DynamicSupervisor.DynamicSupervisor

  constructor(services: ProjectServices, nest: DynamicSupervisor.DynamicSupervisor, scope: Scope.Scope) {
    this.nest = nest
    this.services = services
    this.scope = scope
  }

  /** Every conversation there is. */
  get entries(): ReadonlyArray<Finder.Entry> {
    return [
      ...[...this.projects.values()].map((project) => ({ _tag: "Open", project, record: project.record }) as const),
      ...[...this.lost.values()].map((lost) => ({ _tag: "Lost", lost, record: lost.record }) as const),
      ...[...this.closed.values()].map((record) => ({ _tag: "Closed", record }) as const)
    ]
  }

  /** Every agent that is alive. */
  get found(): ReadonlyArray<Finder.Found> {
    return [...this.projects.values()].flatMap((project) =>
      [...project.members.values()].map(({ tree }) => ({ project, tree }))
    )
  }

  /** Where the machine of a conversation stands. */
  stateOf(conversation: string) {
    const known = this.lost.get(conversation)?.record ?? this.closed.get(conversation)
    return (this.projects.get(conversation)?.life ?? known?.life)?.snapshot.state
  }

  tree({ agent, conversation }: Address) {
    return this.projects.get(conversation)?.members.get(agent)?.tree
  }

  /** A project with its conversation and its agents alive, watched from now on. */
  private readonly open = Effect.fnUntraced(
    { self: this },
    function* (this: LiveFleet, record: ProjectRecord, config: ConfigFile.Project) {
      const scope = yield* Scope.fork(this.scope)
      const project = new Project(this.services, record, config, scope)
      yield* this.nest.add(project.nest.child)
      yield* project.begin
      this.projects.set(record.conversation, project)
      this.lost.delete(record.conversation)
      yield* Effect.forkIn(Effect.andThen(Deferred.await(project.life.closed), this.retire(project)), this.scope)
      yield* Effect.forkIn(project.watch, scope)
      // what cannot be settled now is tried again by whoever reloads it
      yield* Effect.ensuring(project.settle, project.mend)
      return project
    }
  )

  /** It is closed: nothing of it lives any more, and only its record is kept. */
  private readonly retire = (project: Project) =>
    Effect.gen({ self: this }, function* () {
      const { conversation, life, record, scope } = project
      record.life.snapshot = life.snapshot
      this.closed.set(conversation, record)
      this.projects.delete(conversation)
      yield* this.nest.remove(conversation)
      yield* Scope.close(scope, Exit.void)
      yield* Deferred.succeed(project.retired, undefined)
    }).pipe(Effect.uninterruptible, this.lock.withPermit)

  private load(path: string) {
    return ConfigFile.load(path).pipe(
      Effect.tap((project) => Secrets.register(project, this.services)),
      Effect.provideService(FileSystem.FileSystem, this.services.fileSystem),
      Effect.mapError(({ message, remedy }) => new CommandRefused({ message, remedy }))
    )
  }

  /** A project's file enters the log with the conversation that it now has, and comes to life. */
  private readonly enter = Effect.fnUntraced(
    { self: this },
    function* (this: LiveFleet, path: string, conversation: string, caller: Caller) {
      const config = yield* this.load(path)
      const { name } = config
      const { unreadable } = yield* this.services.log.reading
      const unread = unreadable.find(({ stream }) => stream === conversation)
      if (unread !== undefined) {
        return yield* new CommandRefused({
          message: `What the log has of ${conversation} cannot be read: ${unread.message}`,
          remedy: "See what is wrong with the log: agentd verify"
        })
      }
      yield* this.services.log
        .append([
          {
            stream: conversation,
            kind: "project.registered",
            actor: "project",
            trigger: "register",
            payload: { config: path, name, by: caller.by, agents: Object.keys(config.agents) }
          }
        ])
        .pipe(Effect.catchTag("RuneRefused", (error) => Effect.die(error)))
      return yield* this.open(this.lost.get(conversation)?.record ?? freshProject(conversation, path, name), config)
    }
  )

  /** One after the other; what the log says has to come to be, even if the caller goes away meanwhile. */
  private alone<A, E>(path: string, command: Effect.Effect<A, E>): Effect.Effect<A, E | CommandRefused> {
    return isAbsolute(path)
      ? this.lock.withPermit(Effect.uninterruptible(command))
      : Effect.fail(new CommandRefused({ message: `config: ${path} is not absolute.`, remedy: "Give the whole path." }))
  }

  readonly register = (path: string, caller: Caller): Effect.Effect<ProjectInfo, CommandRefused | StorageError> =>
    this.alone(
      path,
      Effect.gen({ self: this }, function* () {
        const known = Finder.ofConfig(this.entries, path)
        if (known?._tag === "Open") {
          yield* known.project.reload().pipe(Effect.catchTag("RuneRefused", (error) => Effect.die(error)))
          return known.project.info
        }
        if (known?._tag === "Closed") return overInfo(known.record)
        const conversation = known?.record.conversation ?? ProjectName.conversationId(path)
        return (yield* this.enter(path, conversation, caller)).info
      })
    )

  readonly newConversation = (
    path: string,
    caller: Caller
  ): Effect.Effect<ConversationInfo, CommandRefused | StorageError> =>
    this.alone(
      path,
      Effect.gen({ self: this }, function* () {
        const known = Finder.ofConfig(this.entries, path)
        if (known !== undefined && known._tag !== "Closed") {
          const { conversation, name } = known.record
          return yield* new CommandRefused({
            message: `The conversation ${conversation} is open: a project has one at a time.`,
            remedy: `Close it first: agentd close ${name}`
          })
        }
        const conversation = known === undefined ? ProjectName.conversationId(path) : Finder.successor(known.record)
        return (yield* this.enter(path, conversation, caller)).row
      })
    )

  /** A project whose file could not be read comes to life as soon as it can, unless somebody was first. */
  private readonly await = (lost: LostProject) => {
    const { conversation, config, name } = lost.record
    const isWaiting = () => this.lost.get(conversation) === lost && !lost.isEnding
    return this.load(config).pipe(
      Effect.retry({ schedule: Backoff.waits(READ_AGAIN), while: isWaiting }),
      Effect.flatMap((file) =>
        this.lock.withPermit(
          Effect.suspend(() => (isWaiting() ? Effect.asVoid(this.open(lost.record, file)) : Effect.void))
        )
      ),
      Effect.tapCause((cause) => Effect.logWarning(`${name} could not be opened`, cause))
    )
  }

  /** One project of the log. Its trouble is its own. */
  readonly revive = Effect.fnUntraced({ self: this }, function* (this: LiveFleet, record: ProjectRecord) {
    const { conversation, life } = record
    const { state } = life.snapshot
    if (state === "closed" || state === "archived") return void this.closed.set(conversation, record)
    const loaded = yield* Effect.result(this.load(record.config))
    if (loaded._tag === "Success") return yield* Effect.asVoid(this.open(record, loaded.success))
    const lost = new LostProject(record, loaded.failure)
    this.lost.set(conversation, lost)
    yield* Effect.forkIn(state === "closing" ? this.closeLost(lost) : this.await(lost), this.scope)
  })

  readonly closeLost = (lost: LostProject, why?: { readonly by: string; readonly reason: string }) =>
    Effect.andThen(
      lost.close(this, why),
      Effect.sync(() => {
        const { conversation } = lost.record
        this.lost.delete(conversation)
        this.closed.set(conversation, lost.record)
      })
    )

  readonly agentInfo = ({ project, tree }: Finder.Found, now: number): AgentInfo =>
    AgentView.row({
      conversation: project.conversation,
      project: project.name,
      agent: tree.name,
      config: tree.config(),
      worker: tree.worker(),
      turn: tree.turn(),
      calls: tree.calls(),
      inbox: tree.inbox().data,
      queued: project.household.family.isQueued(tree.name),
      broken: project.recordOf(tree.name)?.broken,
      now
    })

  /** The config that counts for a conversation, also for one that its project has left behind. */
  configOf(conversation: string) {
    const open = this.projects.get(conversation)
    if (open !== undefined) return open.config
    const config = this.closed.get(conversation)?.config
    const next = config === undefined ? undefined : Finder.ofConfig(this.entries, config)
    return next?._tag === "Open" ? next.project.config : undefined
  }
}

/** A file whose last conversation is closed says nothing more: a new one has to be asked for. */
const overInfo = ({ config, conversation, name }: ProjectRecord): ProjectInfo => {
  const { message, remedy } = ConversationRow.over({ conversation, project: name })
  return { conversation, name, config, agents: [], problems: [`${message} ${remedy}`] }
}

export interface Options {
  /** Where worktrees are made. */
  readonly worktrees: string
  /** Where the conversations belong in the supervision tree. */
  readonly nest: DynamicSupervisor.DynamicSupervisor
  /** Before any agent comes to life: what an earlier daemon left running is ended. */
  readonly sweep: Effect.Effect<void, never, ProcessTree>
  /** Servers of agentd's own that a run is given: its voice. */
  readonly mcp: ProjectServices["mcp"]
  /** The file of a project to take up at once: whoever finds the daemon up finds its agents. What is wrong with it, `register` says. */
  readonly project?: string | undefined
}

const takeUp = (fleet: LiveFleet, project: string): Effect.Effect<void, StorageError> =>
  fleet.register(project, { by: "agentd up", config: project }).pipe(
    Effect.asVoid,
    Effect.catchTag("CommandRefused", () => Effect.void)
  )

/** Answers at once; what the log holds comes to life beside it, and `ready` says when it has. */
export const layer = (options: Options) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const log = yield* EventLog
      const bus = yield* Bus.make
      const scope = yield* Effect.scope
      const services: ProjectServices = {
        log,
        redact: yield* Redact,
        backends: yield* Backends,
        fileSystem: yield* FileSystem.FileSystem,
        worktrees: options.worktrees,
        recoveredTo: yield* log.head,
        system: yield* ActorSystem,
        bus,
        mcp: options.mcp
      }
      const fleet = new LiveFleet(services, options.nest, scope)
      const ready = yield* Deferred.make<void, StorageError>()
      const revive = (record: ProjectRecord) =>
        Effect.catchTag(fleet.revive(record), "CommandRefused", (error) =>
          Effect.logWarning(`${record.name}: ${error.message}`)
        )
      yield* Effect.andThen(options.sweep, recoverEach(revive)).pipe(
        Effect.provideService(EventLog, log),
        Effect.andThen(options.project === undefined ? Effect.void : takeUp(fleet, options.project)),
        Effect.onExit((exit) => Deferred.done(ready, exit)),
        Effect.tapCause((cause) => Effect.logError("the log could not be recovered", cause)),
        Effect.forkIn(scope)
      )
      yield* Clock.currentTimeMillis.pipe(
        Effect.flatMap((now) => Effect.forEach(fleet.found, ({ tree }) => tree.sweep(now), { discard: true })),
        Effect.schedule(Schedule.spaced(TurnMachine.SWEEP_INTERVAL)),
        Effect.forkIn(scope)
      )
      const crew = LiveAgentPort.make({
        find: (of) => fleet.tree(of),
        of: (conversation) => [...(fleet.projects.get(conversation)?.members.values() ?? [])].map(({ tree }) => tree),
        reports: bus.reports,
        // a log that cannot be folded ends the daemon: nobody waits for it
        recovered: Effect.catch(Deferred.await(ready), () => Effect.never)
      })
      const conversations = LiveConversations.make({
        log,
        known: Effect.map(crew.recovered, () => fleet.entries.map(({ record }) => record.conversation)),
        stateOf: (conversation) => fleet.stateOf(conversation)
      })
      return Context.make(Fleet, FleetCommands.make(fleet, ready, bus)).pipe(
        Context.add(AgentPort, crew),
        Context.add(Conversations, conversations)
      )
    })
  )
