/**
 * A fleet over the log in memory and backends that play scripts; configs are real
 * files in a folder of their own. `open` is one daemon's life on that log.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Context, Effect, Layer, type Scope } from "effect"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as ActorSystem from "../../../src/core/event-actor/ActorSystem.ts"
import * as EventLoop from "../../../src/core/event-actor/EventLoop.ts"
import * as DeadLetters from "../../../src/core/event-actor/DeadLetters.ts"
import * as DynamicSupervisor from "../../../src/core/supervision/DynamicSupervisor.ts"
import * as Supervisor from "../../../src/core/supervision/Supervisor.ts"
import { Agents } from "../../../src/projects/service/Agents.ts"
import * as AgentCommands from "../../../src/projects/service/AgentCommands.ts"
import { Backends } from "../../../src/runs/Backends.ts"
import { ProcessTree } from "../../../src/runs/process/ProcessTree.ts"
import type { Backend } from "../../../src/runs/Backend.ts"
import { OwnFile, type Read, reading } from "../../../src/config/OwnFile.ts"
import { AgentPort } from "../../../src/domain/AgentPort.ts"
import type { AgentInfo, Caller } from "../../../src/domain/Messages.ts"
import { UserApprovals } from "../../../src/domain/UserApprovals.ts"
import { Redact } from "../../../src/core/event-log/Redact.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import { memoryLog, type TestLog } from "./TestLog.ts"
import { PATIENCE } from "../../support/Patience.ts"

export class World {
  readonly folder: string
  readonly config: string
  readonly caller: Caller
  readonly log: TestLog
  readonly backends: Backends["Service"]["make"]
  /** Where the projects' files are read. */
  ownFile: Read = reading()
  /** The user's own config, if rules can be kept there. */
  userApprovals: (typeof UserApprovals)["Service"] = UserApprovals.defaultValue()
  /** The project that the daemon is told to take up at once. */
  project: string | undefined = undefined
  /** Whether the supervisors of an open fleet have given up. */
  ended = false

  /** In a folder of its own, or in that of another world: the next daemon on another log's connection. */
  constructor(
    log: TestLog,
    backends: Backends["Service"]["make"],
    folder: string = mkdtempSync(join(tmpdir(), "agentd-fleet-"))
  ) {
    this.folder = folder
    this.log = log
    this.backends = backends
    this.config = join(this.folder, "shop", "agentd.jsonc")
    this.caller = { by: "ada", config: this.config }
    mkdirSync(join(this.folder, "shop"), { recursive: true })
  }

  /** Writes the project's file; a text is written as it is. */
  configure(config: object | string): void {
    writeFileSync(this.config, typeof config === "string" ? config : JSON.stringify(config))
  }

  /** A daemon's fleet on this log, recovered; it ends with the scope. */
  get open(): Effect.Effect<Agents["Service"], never, Scope.Scope> {
    return Effect.map(this.both, ({ fleet }) => fleet)
  }

  /** With what its channels and plans know of it. */
  readonly both = Effect.gen({ self: this }, function* () {
    const supervisor = DynamicSupervisor.make({
      name: "conversations",
      strategy: "one_for_one",
      intensity: 10,
      period: "30 seconds"
    })
    const backends = Layer.succeed(Backends, { make: this.backends })
    const layer = AgentCommands.layer({
      worktrees: join(this.folder, "worktrees"),
      stores: join(this.folder, "store"),
      commands: { environment: {}, run: () => Effect.undefined },
      waiting: join(this.folder, "waiting"),
      files: join(this.folder, "files"),
      configs: join(this.folder, "configs"),
      supervisor,
      sweep: Effect.void,
      mcp: () => ({}),
      project: this.project
    }).pipe(
      Layer.provide(
        Layer.mergeAll(
          Layer.succeed(EventLog, this.log),
          actorSystem(this.log),
          backends,
          Redact.layer,
          ProcessTree.layer,
          NodeFileSystem.layer,
          Layer.succeed(OwnFile, (path, most) => Effect.suspend(() => this.ownFile(path, most))),
          Layer.succeed(UserApprovals, this.userApprovals)
        )
      )
    )
    const context = yield* Layer.build(Layer.fresh(layer))
    const fleet = Context.get(context, Agents)
    const root = yield* Effect.orDie(Supervisor.make({ name: "agentd", children: [supervisor.child] }))
    yield* Effect.forkScoped(
      Effect.andThen(
        root.ended,
        Effect.sync(() => (this.ended = true))
      )
    )
    yield* until(fleet.ready, (ready) => ready)
    return { fleet, crew: Context.get(context, AgentPort) }
  })
}

/** The actors of a daemon on the log, and what becomes of their dead letters. */
export const actorSystem = (log: TestLog) =>
  ActorSystem.layer({ log: log.core }).pipe(
    Layer.provideMerge(Layer.merge(DeadLetters.layer(), EventLoop.layer)),
    Layer.provide(Layer.succeed(EventLog, log))
  )

export const command = (more: object = {}) => ({
  backend: { type: "command", argv: ["agent"] },
  minRunInterval: "0ms",
  ...more
})

/** On the given backend, with a log of its own; gone with the scope. */
export const make = Effect.fnUntraced(function* (backend: Backend, backends?: Backends["Service"]["make"]) {
  const log = yield* memoryLog
  return yield* Effect.acquireRelease(
    Effect.sync(() => new World(log, backends ?? (() => Effect.succeed(backend)))),
    ({ folder }) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )
})

/** Polls until it holds; says what was seen last. Real time: files are read meanwhile. */
export const until = <A, E, R>(read: Effect.Effect<A, E, R>, holds: (value: A) => boolean): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    const deadline = Date.now() + PATIENCE
    for (;;) {
      const value = yield* read
      if (holds(value)) return value
      if (Date.now() > deadline) throw new Error(`never; last seen: ${JSON.stringify(value)}`)
      yield* Effect.promise(() => new Promise<void>((resolve) => setTimeout(resolve, 2)))
    }
  })

export const untilAgent = (fleet: Agents["Service"], agent: string, holds: (row: AgentInfo) => boolean) =>
  Effect.map(
    until(fleet.all, (rows) => rows.some((row) => row.agent === agent && holds(row))),
    (rows) => rows.find((row) => row.agent === agent)!
  )
