/**
 * Goals in a world of their own: the real goals over a log in memory and agents that
 * follow a script; where a test wants it, a real git repository with a worktree each.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Schema, Scope, Stream } from "effect"
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as ActorSystem from "../../../src/core/event-actor/ActorSystem.ts"
import * as EventLoop from "../../../src/core/event-actor/EventLoop.ts"
import * as DeadLetters from "../../../src/core/event-actor/DeadLetters.ts"
import * as DynamicSupervisor from "../../../src/core/supervision/DynamicSupervisor.ts"
import * as Supervisor from "../../../src/core/supervision/Supervisor.ts"
import * as ToolSandbox from "../../../src/runs/ToolSandbox.ts"
import { ProcessTree } from "../../../src/runs/process/ProcessTree.ts"
import { Reaper } from "../../../src/runs/process/Reaper.ts"
import { AgentPort } from "../../../src/domain/AgentPort.ts"
import { Conversations } from "../../../src/domain/Conversations.ts"
import { GoalConfig } from "../../../src/config/GoalConfig.ts"
import type { GoalInfo, GoalRequest } from "../../../src/domain/GoalMessages.ts"
import type { Caller } from "../../../src/domain/Messages.ts"
import * as GitStore from "../../../src/runs/git/GitStore.ts"
import * as Goals from "../../../src/goals/Goals.ts"
import * as MemoryEventLog from "../../../src/app/DaemonLog.ts"
import { EventLog, StorageError } from "../../../src/core/event-log/EventLog.ts"
import { Log } from "../../../src/core/event-log/Log.ts"
import { CrewDouble } from "./CrewDouble.ts"
import { PATIENCE } from "../../support/Patience.ts"

/** ms between two looks */
const LOOK = 3

export const caller = { by: "ada", config: null }
export const CONVERSATION = "c"

export const git = (folder: string, ...args: ReadonlyArray<string>): string =>
  execFileSync("git", ["-C", folder, "-c", "user.name=t", "-c", "user.email=t@t", ...args], {
    encoding: "utf8",
    stdio: "pipe"
  }).trim()

/** A commit with these files. */
export const commit = (folder: string, message: string, files: { readonly [name: string]: string }): void => {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  git(folder, "add", "-A")
  git(folder, "commit", "--quiet", "-m", message)
}

export interface Setting {
  readonly goals?: typeof GoalConfig.Encoded
  /** Variables of the daemon's. */
  readonly environment?: Readonly<Record<string, string>>
  /** Whether checks are held by the machine's sandbox; by default there is none. */
  readonly isHeld?: boolean
}

const defaults: typeof GoalConfig.Encoded = { autoStart: true, maxTaskErrors: 3, backoff: { base: 5, cap: 20 } }

/** `breaks`: how an append fails; one that is untold is written, and its actor never hears of it. */
const frail = (store: Log, breaks: () => "lost" | "untold" | undefined): Log => ({
  get head() {
    return store.head
  },
  get durable() {
    return store.durable
  },
  flight: undefined,
  seqOf: (stream) => store.seqOf(stream),
  prepare: (draft) => store.prepare(draft),
  refuses: (unit) => store.refuses(unit),
  share: (ready) => store.share(ready),
  append: (unit) => {
    const how = breaks()
    if (how !== "lost") store.append(unit)
    if (how !== undefined) throw new StorageError({ message: "the disk is gone", remedy: "None.", reason: "io" })
    return true
  }
})

export class World {
  readonly crew = new CrewDouble()
  readonly log: EventLog["Service"]
  private readonly store: Log
  /** So many appends work; the next one is lost, or written and not told. Then none works until the restart. */
  appends = Number.POSITIVE_INFINITY
  lastWord: "lost" | "untold" = "lost"
  readonly folder: string
  readonly setting: Setting
  goals!: Goals.Goals["Service"]
  private running: Scope.Closeable | undefined

  constructor(log: EventLog["Service"], store: Log, folder: string, setting: Setting) {
    this.log = log
    this.store = store
    this.folder = folder
    this.setting = setting
  }

  get root(): string {
    return join(this.folder, "project")
  }

  /** A repository with a first commit. */
  repository(): void {
    git(this.folder, "init", "--quiet", "-b", "main", this.root)
    commit(this.root, "first", { "README.md": "hello\n" })
  }

  /** The daemon's own git folder beside the repository. */
  get gitStore() {
    return Effect.provide(GitStore.open(join(this.folder, "state/store"), this.root), NodeServices.layer)
  }

  /** A worktree as agents have them. */
  worktree(agent: string): { readonly cwd: string; readonly branch: string } {
    const cwd = join(this.folder, agent)
    git(this.root, "worktree", "add", "--quiet", "-b", `agentd/${agent}`, cwd)
    return { cwd, branch: `agentd/${agent}` }
  }

  readonly start = Effect.gen({ self: this }, function* () {
    const scope = yield* Scope.make()
    const supervisor = DynamicSupervisor.make({
      name: "plans",
      strategy: "one_for_one",
      intensity: 10,
      period: "30 seconds"
    })
    const goals = Schema.decodeUnknownSync(GoalConfig)({ ...defaults, ...this.setting.goals })
    const context = yield* Layer.build(
      Goals.layer({
        supervisor,
        scratch: join(this.folder, "scratch"),
        stores: join(this.folder, "state/store"),
        store: "test-plans",
        environment: { PATH: process.env["PATH"], HOME: this.folder, ...this.setting.environment },
        projects: {
          ofCaller: () => Effect.succeed(CONVERSATION),
          config: () => Effect.succeed({ name: "web", root: this.root, goals })
        }
      }).pipe(
        Layer.provide(ActorSystem.layer({ log: this.frail })),
        Layer.provide(EventLoop.layer),
        Layer.provide(DeadLetters.layerMemory()),
        Layer.provide(Layer.succeed(EventLog, this.log)),
        Layer.provide(Layer.succeed(AgentPort, this.crew.service)),
        Layer.provide(Layer.succeed(Conversations, this.crew.conversations)),
        Layer.provide(
          this.setting.isHeld === true
            ? ToolSandbox.layer({
                environment: { PATH: process.env["PATH"] },
                hidden: [join(this.folder, "state")]
              })
            : Layer.empty
        ),
        Layer.provide(Reaper.layer({ store: "test-plans", grace: "1 second" })),
        Layer.provide(ProcessTree.layer),
        Layer.provide(NodeServices.layer)
      )
    ).pipe(Scope.provide(scope))
    yield* Supervisor.make({ name: "root", children: [supervisor.child] }).pipe(Scope.provide(scope))
    this.goals = Context.get(context, Goals.Goals)
    this.running = scope
    yield* this.goals.recovered
  })

  /** The log as actors append to it. */
  private get frail(): Log {
    return frail(this.store, () => {
      this.appends--
      return this.appends >= 0 ? undefined : this.appends === -1 ? this.lastWord : "lost"
    })
  }

  readonly stop = Effect.suspend(() =>
    this.running === undefined ? Effect.void : Scope.close(this.running, Exit.void)
  )

  readonly restart = Effect.suspend(() => Effect.andThen(this.stop, this.start))

  /** A plan's file. */
  file(...tasks: ReadonlyArray<object>): string {
    const path = join(this.folder, "plan.json")
    writeFileSync(path, JSON.stringify({ tasks }))
    return path
  }

  /** As a person does: what was shown is what is approved. */
  approve(name: string, by: Caller) {
    return Effect.flatMap(this.goals.asked(name, 0, by), ({ hash }) => this.goals.approve(name, hash, by))
  }

  submit(request: Partial<GoalRequest>) {
    return this.goals.submit({ goal: "ship it", plan: null, ...request }, caller)
  }

  /** The goal, once that holds. */
  until(goalId: string, what: string, holds: (goal: GoalInfo) => boolean) {
    return Effect.gen({ self: this }, function* () {
      for (let look = 0; look < PATIENCE / LOOK; look++) {
        const { goal } = yield* this.goals.page(goalId, 0, caller)
        if (holds(goal)) return goal
        yield* Effect.sleep(LOOK)
      }
      const { goal, tasks } = yield* this.goals.page(goalId, 0, caller)
      return assert.fail(`never: ${what}; at last ${JSON.stringify({ goal, tasks }, null, 1)}`)
    })
  }

  /** Merges as `agentd goal merge` does: into a branch that is checked out, the person's git merges. */
  merge(goalId: string, how: Partial<Goals.MergeHow> = {}) {
    return Effect.gen({ self: this }, function* () {
      const asked = { into: null, unreviewed: false, all: false, ...how }
      const first = yield* this.goals.merge(goalId, asked, caller)
      if (first.toCheckout === undefined) return first
      const { commit, folder, from } = first.toCheckout
      git(folder, "merge", "--quiet", "--ff-only", commit)
      const second = yield* this.goals.merge(goalId, { ...asked, done: { from, commit } }, caller)
      assert.deepStrictEqual(second.results, first.results)
      return second
    })
  }

  state(goalId: string, state: string) {
    return this.until(goalId, state, (goal) => goal.state === state)
  }

  tasks(goalId: string) {
    return Effect.map(this.goals.page(goalId, 0, caller), ({ tasks }) =>
      Object.fromEntries(tasks.map(({ id, owner, state }) => [id, `${state}${owner === null ? "" : ` ${owner}`}`]))
    )
  }

  get runes() {
    return Effect.map(Stream.runCollect(this.log.read({})), (runes) => [...runes])
  }

  /** The kinds of all runes, without `plan.`. */
  get kinds() {
    return Effect.map(this.runes, (runes) => runes.map(({ kind }) => kind.replace("plan.", "")))
  }
}

export const run = <A, E>(body: (world: World) => Effect.Effect<A, E>, setting: Setting = {}) =>
  Effect.acquireUseRelease(
    Effect.gen(function* () {
      const log = yield* EventLog
      const world = new World(log, yield* Log, mkdtempSync(join(tmpdir(), "agentd-plans-")), setting)
      mkdirSync(world.root)
      yield* world.start
      return world
    }),
    body,
    (world) =>
      Effect.andThen(
        world.stop,
        Effect.sync(() => rmSync(world.folder, { recursive: true, force: true }))
      )
  ).pipe(Effect.provide(MemoryEventLog.layerMemory))
