/**
 * Household: the agents that live in one conversation: those that its file names,
 * and their sub-agents.
 *
 * Guarantees: agents come and go one after the other, and one's trouble keeps no
 * other from it; a sub-agent ends when its parent does, and one beyond the limit
 * waits for a place; once the conversation is being closed nobody comes.
 */
import { Clock, Deferred, Effect, Exit, type FileSystem, Result, Scope, Semaphore } from "effect"
import type { DeadLetters } from "../actors/DeadLetters.ts"
import type * as Nest from "../actors/Nest.ts"
import type { Backends } from "../backends/Backends.ts"
import type { AgentConfig } from "../domain/AgentConfig.ts"
import type * as ConfigFile from "../domain/ConfigFile.ts"
import * as Ids from "../domain/Ids.ts"
import { type Caller, CommandRefused, type Done, type SpawnRequest } from "../domain/Messages.ts"
import type { Redact } from "../runes/Redact.ts"
import type { RuneLog, StorageError } from "../runes/RuneLog.ts"
import { freshAgent } from "./AgentRecovery.ts"
import * as AgentTree from "./AgentTree.ts"
import type { ConversationActor, Resident } from "./ConversationActor.ts"
import type { Outside } from "./LiveAgent.ts"
import { apply, type ProjectRecord, recoverAgent } from "./Recovery.ts"
import * as SubAgents from "./SubAgents.ts"
import * as Workplace from "./Workplace.ts"

export interface ProjectServices {
  readonly log: RuneLog["Service"]
  readonly deadLetters: DeadLetters["Service"]
  readonly backends: Backends["Service"]
  readonly redact: Redact["Service"]
  readonly fileSystem: FileSystem.FileSystem
  /** Where worktrees are made: `<state>/worktrees`. */
  readonly worktrees: string
  readonly recoveredTo: number
  readonly outside: Outside
}

/** The project that they belong to. */
export interface Belongs {
  readonly services: ProjectServices
  readonly record: ProjectRecord
  /** As the last good file says. */
  readonly file: () => ConfigFile.Project
  readonly life: () => ConversationActor
  /** Why the conversation takes nothing new. */
  readonly refusal: () => CommandRefused | undefined
  /** Where they are in the supervision tree. */
  readonly nest: Nest.Nest
  readonly scope: Scope.Scope
}

/** Sub-agents that have ended and can still be asked about. */
const MAX_ENDED = 20

/** Who acts where nobody asked: a name that no login has, since what a person stopped stays stopped. */
const THE_FILE = "the project's file"

interface Member {
  readonly tree: AgentTree.AgentTree
  readonly scope: Scope.Closeable
}

type Moved = Effect.Effect<void, CommandRefused | StorageError>

export class Household {
  /** In the order in which they began. */
  readonly members: Map<string, Member> = new Map()
  private readonly of: Belongs
  private readonly conversation: string
  private readonly lock = Semaphore.makeUnsafe(1)
  private readonly arrived = Deferred.makeUnsafe<void>()

  constructor(of: Belongs) {
    this.of = of
    this.conversation = of.record.conversation
  }

  private get theFile(): Caller {
    return { by: THE_FILE, config: this.of.record.config }
  }

  get isClosing(): boolean {
    const { state } = this.of.life().snapshot
    return state === "closing" || state === "closed"
  }

  /** What the file says of an agent now. Its names are a person's: "constructor" is one like any other. */
  private named(agent: string): AgentConfig | undefined {
    const { agents } = this.of.file()
    return Object.hasOwn(agents, agent) ? agents[agent] : undefined
  }

  private spawnedAs(agent: string): AgentConfig | undefined {
    const spawned = this.of.record.life.spawned.get(agent)
    if (spawned === undefined) return undefined
    const parent = this.named(spawned.parent) ?? this.members.get(spawned.parent)?.tree.config()
    return SubAgents.settled(spawned.config, spawned.parent, parent)
  }

  /** The settings of an agent; those it had last where nothing names it any more. */
  private settings(agent: string, first: AgentConfig): () => AgentConfig {
    let last = first
    return () => (last = this.named(agent) ?? this.spawnedAs(agent) ?? last)
  }

  private parentOf(agent: string): string | undefined {
    return this.named(agent)?.parent ?? this.of.record.life.spawned.get(agent)?.parent
  }

  private stands(agent: string): SubAgents.SubAgent["stands"] {
    const worker = this.members.get(agent)?.tree.worker()
    const { ended, spawned } = this.of.record.life
    // what an earlier one of its name has left is not this one's
    if (worker === undefined || worker.entered < (spawned.get(agent)?.eventId ?? 0)) return "queued"
    // it has ended before its worker has
    const ending = (ended.get(agent) ?? 0) > worker.entered
    return ending || worker.state === "Stopped" ? "ended" : "running"
  }

  /** Those that were asked for, oldest first. */
  get subAgents(): ReadonlyArray<SubAgents.SubAgent> {
    const { spawned } = this.of.record.life
    return [...this.members.keys()]
      .filter((name) => this.named(name) === undefined && spawned.has(name))
      .map((name) => ({ name, stands: this.stands(name) }))
  }

  private isRunning(agent: string): boolean {
    return this.members.has(agent) && this.stands(agent) === "running"
  }

  private workplace(agent: string, config: AgentConfig): Workplace.Workplace {
    return { agent, config, project: this.of.file(), worktrees: this.of.services.worktrees }
  }

  private clear(agent: string, config: AgentConfig): Effect.Effect<void, StorageError> {
    return Effect.suspend(() => Workplace.clear(this.workplace(agent, config), this.conversation, this.of.services.log))
  }

  /** All of them, as the conversation sees them. */
  get residents(): ReadonlyArray<Resident> {
    return [...this.members].map(([name, { tree }]) => ({
      name,
      tenant: tree.tenant,
      grace: tree.config().interruptGrace,
      clear: Effect.catch(this.clear(name, tree.config()), (error) => Effect.logError(`${name}: ${error.message}`))
    }))
  }

  private get inOrder(): ReadonlyArray<Resident> {
    const all = new Map(this.residents.map((resident) => [resident.name, resident]))
    return SubAgents.leaving([...all.keys()], (name) => this.parentOf(name)).map((name) => all.get(name)!)
  }

  /** In the order in which they are to end; waits until those of the log are there, and for whoever comes or goes just now. */
  readonly leaving: Effect.Effect<ReadonlyArray<Resident>> = Effect.suspend(() =>
    Effect.andThen(Deferred.await(this.arrived), this.lock.withPermit(Effect.sync(() => this.inOrder)))
  )

  /** Brings an agent to life as its record says it stands, and starts it if it never was. */
  private readonly adopt = Effect.fnUntraced(
    { self: this },
    function* (this: Household, agent: string, config: AgentConfig) {
      const { backends, deadLetters, log, outside, recoveredTo } = this.of.services
      const { agents } = this.of.record
      const settings = this.settings(agent, config)
      const record = agents.get(agent) ?? freshAgent(agent)
      agents.set(agent, record)
      const scope = yield* Scope.fork(this.of.scope)
      const around = {
        conversation: this.conversation,
        project: () => this.of.file().name,
        parent: this.parentOf(agent) ?? null,
        log,
        deadLetters,
        home: this.of.life().home,
        config: settings,
        backend: Effect.suspend(() => backends.make(settings().backend)),
        place: Effect.suspend(() => Workplace.prepare(this.workplace(agent, settings()))),
        recoveredTo,
        outside
      }
      const tree = yield* AgentTree.make(around, record).pipe(Scope.provide(scope))
      yield* this.of.nest.add(tree.child)
      this.members.set(agent, { tree, scope })
      // never started, or stopped only because the file did not name it for a while
      const due = record.worker === undefined || record.worker.data.stoppedBy === THE_FILE
      if (this.isClosing || !due || record.broken !== undefined || !config.autostart) return
      if (this.named(agent) !== undefined) yield* tree.start(this.theFile)
    }
  )

  private readonly dismiss = Effect.fnUntraced({ self: this }, function* (this: Household, agent: string) {
    const member = this.members.get(agent)
    if (member === undefined) return
    yield* this.endChildren(agent)
    yield* member.tree.stop(this.theFile, "no longer in the config")
    yield* this.release(agent, member)
    yield* this.clear(agent, member.tree.config())
  })

  /** It lives here no more; its record says how the log left it. */
  private readonly release = Effect.fnUntraced(
    { self: this },
    function* (this: Household, agent: string, { scope }: Member) {
      yield* this.of.nest.remove(agent)
      yield* Scope.close(scope, Exit.void)
      this.members.delete(agent)
      const record = yield* recoverAgent(this.of.services.log, this.conversation, agent)
      this.of.record.agents.set(agent, record)
    }
  )

  /** Who has to come: named by the file, or a sub-agent that has not ended. */
  private get wanted(): ReadonlyArray<readonly [string, AgentConfig]> {
    const { ended, spawned } = this.of.record.life
    const sub = [...spawned.keys()].flatMap((agent) => {
      const config = this.named(agent) === undefined && !ended.has(agent) ? this.spawnedAs(agent) : undefined
      return config === undefined ? [] : [[agent, config] as const]
    })
    return [...Object.entries(this.of.file().agents), ...sub]
  }

  /** All agents of the config that is in force, their sub-agents, and no others. Whoever asked for it may go away meanwhile. */
  readonly settle: Moved = Effect.suspend(() => {
    const { spawned } = this.of.record.life
    const gone = [...this.members.keys()].filter((agent) => this.named(agent) === undefined && !spawned.has(agent))
    // those of a conversation that was being closed come once, to be ended in order
    const isOver = this.isClosing && this.members.size > 0
    const fresh = isOver ? [] : this.wanted.filter(([agent]) => !this.members.has(agent))
    const moves: ReadonlyArray<Moved> = [
      ...(this.isClosing ? [] : gone.map((agent) => this.dismiss(agent))),
      ...fresh.map(([agent, config]) => this.adopt(agent, config)),
      this.fillPlaces
    ]
    // one agent's trouble keeps no other from coming or going
    return Effect.flatMap(Effect.forEach(moves, Effect.result), (results) =>
      Effect.fromResult(results.find(Result.isFailure) ?? Result.succeed(undefined))
    )
  }).pipe(
    Effect.ensuring(Effect.suspend(() => Deferred.succeed(this.arrived, undefined))),
    Effect.uninterruptible,
    this.lock.withPermit
  )

  /** Starts the sub-agents that have a place now. */
  private get fillPlaces(): Moved {
    return Effect.suspend(() =>
      Effect.forEach(
        this.isClosing ? [] : SubAgents.admitted(this.subAgents),
        (agent) =>
          this.members.get(agent)!.tree.start({ by: `agent:${this.parentOf(agent)}`, config: this.theFile.config }),
        { discard: true }
      )
    )
  }

  /** Ends the sub-agents of one that ends. */
  private endChildren(agent: string): Effect.Effect<void, StorageError> {
    return Effect.suspend(() => {
      const children = this.inOrder.filter(({ name }) => this.parentOf(name) === agent && this.isRunning(name))
      const end = (child: Resident) => this.of.life().end(child, `agent:${agent}`, `its parent ${agent} has ended`)
      return Effect.forEach(
        this.isClosing ? [] : children,
        (child) => Effect.andThen(this.endChildren(child.name), end(child)),
        { discard: true }
      )
    })
  }

  /** An agent has ended: its sub-agents follow, and one that waits may have its place. */
  bereave(agent: string): Effect.Effect<void> {
    return this.endChildren(agent).pipe(
      Effect.andThen(this.lock.withPermit(Effect.uninterruptible(Effect.andThen(this.tidy, this.fillPlaces)))),
      Effect.catch((error) => Effect.logWarning(`after the end of ${agent}: ${error.message}`))
    )
  }

  /** Of sub-agents that have ended the newest few are kept for whoever asks. */
  private get tidy(): Moved {
    const over = this.subAgents.filter(({ stands }) => stands === "ended").slice(0, -MAX_ENDED)
    const forget = (name: string) => Effect.sync(() => void this.of.record.life.spawned.delete(name))
    return Effect.forEach(this.isClosing ? [] : over, ({ name }) => Effect.andThen(this.dismiss(name), forget(name)), {
      discard: true
    })
  }

  /** What the last daemon left half done: a parent had ended, and its sub-agents not yet. */
  readonly mend: Effect.Effect<void> = Effect.suspend(() => {
    const { begun, ended } = this.of.record.life
    const names = [...this.members.keys()]
    const parents = [...ended].filter(([parent, at]) =>
      names.some((name) => this.parentOf(name) === parent && (begun.get(name) ?? at) < at)
    )
    return Effect.forEach(parents, ([parent]) => Effect.forkIn(this.bereave(parent), this.of.scope), { discard: true })
  })

  /** A sub-agent with its first message: both are durable, or neither is. */
  readonly spawn = (
    parent: string,
    request: SpawnRequest,
    caller: Caller
  ): Effect.Effect<Done, CommandRefused | StorageError> =>
    Effect.gen({ self: this }, function* () {
      const closed = this.of.refusal()
      if (closed !== undefined) return yield* closed
      const project = this.of.file().name
      const tree = this.members.get(parent)?.tree
      if (tree === undefined || !this.isRunning(parent)) {
        return yield* new CommandRefused({
          message: `${project}/${parent} does not run: only a running agent has sub-agents.`,
          remedy: `Start it first: agentd start ${project}/${parent}`
        })
      }
      const { name } = request
      const inFile = this.named(name) !== undefined
      const asked = { request, parent: `${project}/${parent}`, inFile, all: this.subAgents }
      const refused = SubAgents.refusal(asked)
      if (refused !== undefined) return yield* refused
      const eventId = yield* this.bring(parent, SubAgents.configOf(parent, tree.config(), request), request, caller.by)
      const waits = this.stands(name) === "queued"
      const message = waits
        ? `${project}/${name} waits for a place: it starts when another sub-agent has ended.`
        : `${project}/${name} is started as a sub-agent of ${project}/${parent}.`
      return { eventId, message }
    }).pipe(Effect.uninterruptible, this.lock.withPermit)

  private readonly bring = Effect.fnUntraced(
    { self: this },
    function* (this: Household, parent: string, config: AgentConfig, { name, task }: SpawnRequest, by: string) {
      // one of that name that has ended makes room
      const before = this.members.get(name)
      if (before !== undefined) yield* this.release(name, before)
      const at = yield* Clock.currentTimeMillis
      const message = { messageId: yield* Ids.messageId, from: by, text: task, urgent: false, at }
      const runes = yield* this.of.services.log
        .append(SubAgents.drafts({ conversation: this.conversation, name, parent, config, by, task: message }))
        .pipe(
          Effect.catchTag("RuneRefused", ({ message }) =>
            Effect.fail(new CommandRefused({ message, remedy: "Shorten the instructions or the task." }))
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
