/**
 * Project: one `agentd.jsonc` and the agents that it names, kept running.
 *
 * Guarantees: the last good file is in force; what is wrong with a newer one is
 * kept for whoever asks; a reload touches only what changed: a new agent is
 * started, one that is gone is stopped (its inbox and log stay), a changed one
 * takes its new settings with its next run, its limits with its next start.
 */
import { Effect, Exit, FileSystem, Result, Schedule, Scope, Semaphore, Stream } from "effect"
import { basename, dirname, join } from "node:path"
import type { DeadLetters } from "../actors/DeadLetters.ts"
import * as Nest from "../actors/Nest.ts"
import type { Backends } from "../backends/Backends.ts"
import type { AgentConfig } from "../domain/Config.ts"
import * as ConfigFile from "../domain/ConfigFile.ts"
import { type Caller, CommandRefused, type ProjectInfo } from "../domain/Messages.ts"
import { type Redact, secretsIn } from "../runes/Redact.ts"
import type { RuneLog, StorageError } from "../runes/RuneLog.ts"
import * as AgentTree from "./AgentTree.ts"
import { freshAgent, type ProjectRecord } from "./Recovery.ts"
import * as Worktree from "./Worktree.ts"

export interface ProjectServices {
  readonly log: RuneLog["Service"]
  readonly deadLetters: DeadLetters["Service"]
  readonly backends: Backends["Service"]
  readonly redact: Redact["Service"]
  readonly fileSystem: FileSystem.FileSystem
  /** Where worktrees are made: `<state>/worktrees`. */
  readonly worktrees: string
  readonly recoveredTo: number
}

/** Who acts where nobody asked: a name that no login has, since what a person stopped stays stopped. */
const THE_FILE = "the project's file"
const theFile = (config: string): Caller => ({ by: THE_FILE, config })

interface Member {
  readonly tree: AgentTree.AgentTree
  readonly scope: Scope.Closeable
}

export class Project {
  readonly conversation: string
  readonly path: string
  name: string
  config: ConfigFile.Project
  problems: ReadonlyArray<string> = []
  readonly members: Map<string, Member> = new Map()
  private readonly services: ProjectServices
  private readonly record: ProjectRecord
  private readonly scope: Scope.Scope
  /** The conversation in the supervision tree. */
  readonly nest: Nest.Nest
  private readonly lock = Semaphore.makeUnsafe(1)
  private readonly reading = Semaphore.makeUnsafe(1)

  constructor(services: ProjectServices, record: ProjectRecord, config: ConfigFile.Project, scope: Scope.Scope) {
    this.services = services
    this.record = record
    this.conversation = record.conversation
    this.path = record.config
    this.name = config.name
    this.config = config
    this.nest = Nest.make({
      name: record.conversation,
      strategy: "one_for_one",
      intensity: 10,
      period: "30 seconds"
    })
    this.scope = scope
  }

  get info(): ProjectInfo {
    return {
      conversation: this.conversation,
      name: this.name,
      config: this.path,
      agents: [...this.members.keys()],
      problems: this.problems
    }
  }

  recordOf(agent: string) {
    return this.record.agents.get(agent)
  }

  /** What the file says of an agent now. Its names are a person's: "constructor" is one like any other. */
  private named(agent: string): AgentConfig | undefined {
    return Object.hasOwn(this.config.agents, agent) ? this.config.agents[agent] : undefined
  }

  /** The settings of an agent; those it had last where the file names it no more. */
  private settings(agent: string, first: AgentConfig): () => AgentConfig {
    let last = first
    return () => (last = this.named(agent) ?? last)
  }

  /** Brings an agent to life as its record says it stands, and starts it if it never was. */
  private readonly adopt = Effect.fnUntraced(
    { self: this },
    function* (this: Project, agent: string, config: AgentConfig) {
      const { backends, deadLetters, log, recoveredTo } = this.services
      const settings = this.settings(agent, config)
      let record = this.record.agents.get(agent)
      if (record === undefined) this.record.agents.set(agent, (record = freshAgent(agent)))
      const scope = yield* Scope.fork(this.scope)
      const fullName = () => `${this.name}/${agent}`
      const tree = yield* AgentTree.make(
        {
          conversation: this.conversation,
          fullName,
          log,
          deadLetters,
          config: settings,
          backend: Effect.suspend(() => backends.make(settings().backend)),
          place: Effect.suspend(() => this.place(agent, settings())),
          recoveredTo
        },
        record
      ).pipe(Scope.provide(scope))
      yield* this.nest.add(tree.child)
      this.members.set(agent, { tree, scope })
      // never started, or stopped only because the file did not name it for a while
      const due = record.worker === undefined || record.worker.data.stoppedBy === THE_FILE
      if (due && record.broken === undefined && config.autostart) {
        yield* tree.start(theFile(this.path))
      }
    }
  )

  private worktree(agent: string, config: AgentConfig): Worktree.WorktreeSpec | undefined {
    if (config.worktree === false) return undefined
    return {
      repository: this.config.root,
      folder: join(this.services.worktrees, this.conversation, agent),
      agent,
      base: config.worktree === true ? undefined : config.worktree.base
    }
  }

  private place(agent: string, config: AgentConfig): AgentTree.Surroundings["place"] {
    const spec = this.worktree(agent, config)
    return spec === undefined ? Effect.succeed({ cwd: this.config.root, branch: undefined }) : Worktree.prepare(spec)
  }

  /** Its worktree goes with an agent only if no work goes with it; the log says what became of it. */
  private readonly clear = Effect.fnUntraced(
    { self: this },
    function* (this: Project, agent: string, config: AgentConfig) {
      const spec = this.worktree(agent, config)
      if (spec === undefined) return
      const removal = yield* Effect.catch(Worktree.remove(spec), ({ message, reason }) =>
        Effect.succeed({ _tag: "Kept", reason, detail: message } as const)
      )
      yield* this.services.log.append([
        {
          stream: this.conversation,
          kind: removal._tag === "Kept" ? "worktree.kept" : "worktree.removed",
          actor: `worker/${agent}`,
          trigger: "dismiss",
          payload: {
            path: spec.folder,
            ...(removal._tag === "Kept" ? { reason: removal.reason, detail: removal.detail } : {})
          }
        }
      ])
    }
  )

  private readonly dismiss = Effect.fnUntraced({ self: this }, function* (this: Project, agent: string) {
    const member = this.members.get(agent)
    if (member === undefined) return
    yield* member.tree.stop(theFile(this.path), "no longer in the config")
    yield* this.nest.remove(agent)
    const record = this.record.agents.get(agent)
    if (record !== undefined) Object.assign(record, { worker: member.tree.worker(), inbox: member.tree.inbox() })
    yield* Scope.close(member.scope, Exit.void)
    this.members.delete(agent)
    // a note that the log refuses is a bug of ours
    yield* Effect.catchTag(this.clear(agent, member.tree.config()), "RuneRefused", Effect.die)
  })

  /** All agents of the config that is in force, and no others. Whoever asked for it may go away meanwhile. */
  readonly settle: Effect.Effect<void, CommandRefused | StorageError> = Effect.suspend(() => {
    const gone = [...this.members.keys()].filter((agent) => this.named(agent) === undefined)
    const fresh = Object.entries(this.config.agents).filter(([agent]) => !this.members.has(agent))
    // one agent's trouble keeps no other from coming or going
    return Effect.flatMap(
      Effect.forEach(
        [...gone.map((agent) => this.dismiss(agent)), ...fresh.map(([agent, config]) => this.adopt(agent, config))],
        Effect.result
      ),
      (results) => Effect.fromResult(results.find(Result.isFailure) ?? Result.succeed(undefined))
    )
  }).pipe(Effect.uninterruptible, this.lock.withPermit)

  /** Reads the file again, one reader at a time. A bad one changes nothing but `problems`. */
  readonly reload = Effect.fnUntraced(
    { self: this },
    function* (this: Project) {
      const read = yield* Effect.result(
        ConfigFile.load(this.path).pipe(Effect.provideService(FileSystem.FileSystem, this.services.fileSystem))
      )
      if (read._tag === "Failure") {
        this.problems = read.failure.message.split("\n")
        yield* Effect.logWarning(`not taken over: ${read.failure.message}`)
        return
      }
      this.problems = []
      if (JSON.stringify(read.success) !== JSON.stringify(this.config)) yield* this.takeOver(read.success)
      // the same file, too: it may not have been settled to the end
      yield* this.settle
    },
    (effect) => this.reading.withPermit(effect)
  )

  private readonly takeOver = Effect.fnUntraced(
    { self: this },
    function* (this: Project, config: ConfigFile.Project) {
      yield* this.services.redact.register(
        Object.values(config.agents).flatMap(({ backend }) => secretsIn(backend.env))
      )
      yield* this.services.log.append([
        {
          stream: this.conversation,
          kind: "project.config_changed",
          actor: "project",
          trigger: "reload",
          payload: { config: this.path, name: config.name, agents: Object.keys(config.agents) }
        }
      ])
      this.config = config
      this.name = config.name
    },
    Effect.uninterruptible
  )

  /** Reloads now, since it may have changed unseen, and whenever the file changes, for as long as the scope is open. */
  readonly watch = Effect.suspend(() =>
    Stream.merge(Stream.succeed(undefined), this.changes).pipe(
      // editors write a file in several steps
      Stream.debounce("200 millis"),
      Stream.runForEach(() => this.reload())
    )
  ).pipe(
    Effect.catchDefect((defect) => Effect.fail(defect)),
    Effect.tapCause((cause) => Effect.logWarning(`${this.path} is not watched for a moment`, cause)),
    Effect.retry(Schedule.spaced("30 seconds"))
  )

  private get changes() {
    return this.services.fileSystem
      .watch(dirname(this.path))
      .pipe(Stream.filter((event) => basename(event.path) === basename(this.path)))
  }
}
