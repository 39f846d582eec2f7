/**
 * LiveFleet: the Fleet over the log: recovers every project at the start, keeps
 * them by name, and finds agents for those who ask.
 *
 * Recovery is one pass over the log, then each project on its own: one whose
 * config is gone or broken is named with its problems and holds up no other.
 */
import { Clock, Deferred, Effect, FileSystem, Layer, Schedule, Scope, Semaphore } from "effect"
import { isAbsolute } from "node:path"
import { DeadLetters } from "../actors/DeadLetters.ts"
import type * as Nest from "../actors/Nest.ts"
import { Backends } from "../backends/Backends.ts"
import type { ProcessTree } from "../backends/ProcessTree.ts"
import * as ConfigFile from "../domain/ConfigFile.ts"
import * as Ids from "../domain/Ids.ts"
import { type AgentInfo, type Caller, CommandRefused, type ProjectInfo } from "../domain/Messages.ts"
import { Redact, secretsIn } from "../runes/Redact.ts"
import { RuneLog, StorageError } from "../runes/RuneLog.ts"
import type { AgentTree } from "./AgentTree.ts"
import * as Board from "./Board.ts"
import { Fleet } from "./Fleet.ts"
import { Project, type ProjectServices } from "./Project.ts"
import { type ProjectRecord, recover } from "./Recovery.ts"

/** A project that cannot be opened, and what the log says of its agents. */
interface Lost {
  readonly record: ProjectRecord
  readonly info: ProjectInfo
}

interface Found {
  readonly project: Project
  readonly tree: AgentTree
}

/** How often the file of such a project is tried. */
const READ_AGAIN = "5 seconds"

class LiveFleet {
  readonly projects: Map<string, Project> = new Map()
  /** Projects whose config cannot be read now: known, not running. */
  readonly lost: Map<string, Lost> = new Map()
  private readonly lock = Semaphore.makeUnsafe(1)
  readonly services: ProjectServices
  readonly scope: Scope.Scope

  /** All conversations in the supervision tree. */
  readonly nest: Nest.Nest

  constructor(services: ProjectServices, nest: Nest.Nest, scope: Scope.Scope) {
    this.nest = nest
    this.services = services
    this.scope = scope
  }

  /** A project with its agents alive, watched from now on. */
  private readonly open = Effect.fnUntraced(
    { self: this },
    function* (this: LiveFleet, record: ProjectRecord, config: ConfigFile.Project) {
      const scope = yield* Scope.fork(this.scope)
      const project = new Project(this.services, record, config, scope)
      this.projects.set(record.conversation, project)
      this.lost.delete(record.conversation)
      yield* this.nest.add(project.nest.child)
      yield* Effect.forkIn(project.watch, scope)
      // what cannot be settled now is tried again by whoever reloads it
      yield* project.settle
      return project
    }
  )

  private load(path: string) {
    return ConfigFile.load(path).pipe(
      Effect.tap(({ agents }) =>
        this.services.redact.register(Object.values(agents).flatMap(({ backend }) => secretsIn(backend.env)))
      ),
      Effect.provideService(FileSystem.FileSystem, this.services.fileSystem),
      Effect.mapError(
        (error) =>
          new CommandRefused({
            message: error.message,
            remedy: error.remedy
          })
      )
    )
  }

  readonly register = Effect.fnUntraced(
    { self: this },
    function* (this: LiveFleet, path: string, caller: Caller) {
      if (!isAbsolute(path)) {
        return yield* new CommandRefused({
          message: `config: ${path} is not absolute.`,
          remedy: "Give the whole path."
        })
      }
      const conversation = Ids.conversationId(path)
      const known = this.projects.get(conversation)
      if (known !== undefined) {
        yield* known.reload().pipe(Effect.catchTag("RuneRefused", (error) => Effect.die(error)))
        return known.info
      }
      const config = yield* this.load(path)
      const { name } = config
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
      const record = this.lost.get(conversation)?.record ?? { conversation, config: path, name, agents: new Map() }
      return (yield* this.open(record, config)).info
    },
    // what the log says of it has to come to be, even if the caller goes away meanwhile
    (effect) => this.lock.withPermit(Effect.uninterruptible(effect))
  )

  /** A project whose file could not be read comes to life as soon as it can, unless somebody registers it first. */
  private readonly await = (record: ProjectRecord) =>
    this.load(record.config).pipe(
      Effect.retry(Schedule.spaced(READ_AGAIN)),
      Effect.flatMap((config) =>
        this.lock.withPermit(
          Effect.suspend(() => (this.lost.has(record.conversation) ? this.open(record, config) : Effect.void))
        )
      ),
      Effect.tapCause((cause) => Effect.logWarning(`${record.name} could not be opened`, cause))
    )

  /** One project of the log. Its trouble is its own. */
  readonly revive = Effect.fnUntraced({ self: this }, function* (this: LiveFleet, record: ProjectRecord) {
    const loaded = yield* Effect.result(this.load(record.config))
    if (loaded._tag === "Success") yield* this.open(record, loaded.success)
    else {
      const { conversation, config, name } = record
      const agents = [...record.agents.keys()]
      const problems = loaded.failure.message.split("\n")
      this.lost.set(conversation, { record, info: { conversation, name, config, agents, problems } })
      yield* Effect.forkIn(this.await(record), this.scope)
    }
  })

  /** From within a project its own agents come first; else `project/agent`, or a name that only one project has. */
  find(name: string, caller: Caller): Found | CommandRefused {
    const here = caller.config === null ? undefined : this.projects.get(Ids.conversationId(caller.config))
    const own = here?.members.get(name)
    if (here !== undefined && own !== undefined) return { project: here, tree: own.tree }
    const matches = [...this.projects.values()].flatMap((project) =>
      [...project.members.values()]
        .filter(
          ({ tree }) =>
            name === tree.name ||
            name === `${project.name}/${tree.name}` ||
            name === `${project.conversation}/${tree.name}`
        )
        .map(({ tree }) => ({ project, tree }))
    )
    if (matches.length === 1) return matches[0]!
    const all = [...this.projects.values()].flatMap((project) =>
      [...project.members.keys()].map((agent) => `${project.name}/${agent}`)
    )
    return matches.length === 0
      ? new CommandRefused({
          message: `There is no agent "${name}".`,
          remedy:
            all.length === 0
              ? "Register a project first: agentd start, in its folder."
              : `There are: ${all.slice(0, 20).join(", ")}${all.length > 20 ? " …" : ""}`
        })
      : new CommandRefused({
          message: `"${name}" names ${matches.length} agents.`,
          remedy: `Say which: ${matches.map((found) => `${found.project.conversation}/${found.tree.name}`).join(", ")}`
        })
  }

  info({ project, tree }: Found, now: number): AgentInfo {
    return Board.row({
      conversation: project.conversation,
      project: project.name,
      agent: tree.name,
      config: tree.config(),
      worker: tree.worker(),
      inbox: tree.inbox().data,
      broken: project.recordOf(tree.name)?.broken,
      now
    })
  }
}

export interface Options {
  /** Where worktrees are made. */
  readonly worktrees: string
  /** Where the conversations belong in the supervision tree. */
  readonly nest: Nest.Nest
  /** Before any agent comes to life: what an earlier daemon left running is ended. */
  readonly sweep: Effect.Effect<void, never, ProcessTree>
}

/** The commands; those on agents wait until the log is folded. */
const service = (fleet: LiveFleet, ready: Deferred.Deferred<void, StorageError>): Fleet["Service"] => {
  const onAgent = <A, E>(name: string, caller: Caller, act: (found: Found) => Effect.Effect<A, E>) =>
    Effect.andThen(
      Deferred.await(ready),
      Effect.suspend((): Effect.Effect<A, E | CommandRefused> => {
        const found = fleet.find(name, caller)
        return found instanceof CommandRefused ? Effect.fail(found) : act(found)
      })
    )
  const rows = (now: number): ReadonlyArray<AgentInfo> =>
    [...fleet.projects.values()].flatMap((project) =>
      [...project.members.values()].map(({ tree }) => fleet.info({ project, tree }, now))
    )
  return Fleet.of({
    register: (config, caller) => Effect.andThen(Deferred.await(ready), fleet.register(config, caller)),
    projects: Effect.sync(() => [
      ...[...fleet.projects.values()].map((project) => project.info),
      ...[...fleet.lost.values()].map(({ info }) => info)
    ]),
    agents: Effect.map(Clock.currentTimeMillis, rows),
    agent: (name, caller) =>
      onAgent(name, caller, (found) => Effect.map(Clock.currentTimeMillis, (now) => fleet.info(found, now))).pipe(
        Effect.catchTag("StorageError", ({ message, remedy }) => new CommandRefused({ message, remedy }))
      ),
    start: (name, caller) => onAgent(name, caller, ({ tree }) => tree.start(caller)),
    stop: (name, caller) => onAgent(name, caller, ({ tree }) => tree.stop(caller)),
    restart: (name, caller) => onAgent(name, caller, ({ tree }) => tree.restart(caller)),
    send: (name, { text, urgent }, caller) => onAgent(name, caller, ({ tree }) => tree.send(text, urgent, caller)),
    interrupt: (name, caller) => onAgent(name, caller, ({ tree }) => tree.interrupt(caller)),
    mailOf: (conversation) => Effect.sync(() => fleet.projects.get(conversation)?.config.mail),
    recovered: Deferred.await(ready),
    ready: Effect.andThen(Deferred.isDone(ready), (isDone) =>
      isDone ? Effect.isSuccess(Deferred.await(ready)) : Effect.succeed(false)
    )
  })
}

/** Answers at once; what the log holds comes to life beside it, and `ready` says when it has. */
export const layer = (options: Options) =>
  Layer.effect(
    Fleet,
    Effect.gen(function* () {
      const log = yield* RuneLog
      const scope = yield* Effect.scope
      const services: ProjectServices = {
        log,
        deadLetters: yield* DeadLetters,
        redact: yield* Redact,
        backends: yield* Backends,
        fileSystem: yield* FileSystem.FileSystem,
        worktrees: options.worktrees,
        recoveredTo: yield* log.head
      }
      const fleet = new LiveFleet(services, options.nest, scope)
      const ready = yield* Deferred.make<void, StorageError>()
      const revive = (record: ProjectRecord) =>
        Effect.catchTag(fleet.revive(record), "CommandRefused", (error) =>
          Effect.logWarning(`${record.name}: ${error.message}`)
        )
      yield* Effect.andThen(options.sweep, recover).pipe(
        Effect.provideService(RuneLog, log),
        Effect.flatMap((records) => Effect.forEach(records.values(), revive, { discard: true })),
        Effect.onExit((exit) => Deferred.done(ready, exit)),
        Effect.tapCause((cause) => Effect.logError("the log could not be recovered", cause)),
        Effect.forkIn(scope)
      )
      return service(fleet, ready)
    })
  )
