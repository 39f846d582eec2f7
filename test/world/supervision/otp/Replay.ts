/**
 * Replay: a scenario lived through by our supervisor, and its lines as the Erlang
 * script prints them: result | what the children lived through | the tree.
 */
import { Deferred, Effect, Exit, Scope } from "effect"
import type {
  ChildHandle,
  ChildSpec,
  ExitObserver,
  Hold,
  Ignore,
  Started
} from "../../../../src/core/supervision/Child.ts"
import { ignore } from "../../../../src/core/supervision/Child.ts"
import { Shutdown } from "../../../../src/core/supervision/Restart.ts"
import { make, type Supervisor } from "../../../../src/core/supervision/Supervisor.ts"
import type { End, Node, Scenario, Start, Step, Team, Worker } from "./Scenario.ts"
import { VirtualTime } from "./VirtualTime.ts"

const exits: { readonly [end in End]: Exit.Exit<unknown, unknown> } = {
  normal: Exit.void,
  shutdown: Exit.interrupt(),
  shutdown_term: Exit.fail(new Shutdown({ reason: "some_info" })),
  abnormal: Exit.fail("abnormal"),
  kill: Exit.die("killed")
}

const results: { readonly [tag: string]: string } = {
  AlreadyStarted: "already_started",
  AlreadyPresent: "already_present",
  Running: "running",
  Restarting: "restarting",
  NotFound: "not_found",
  SimpleOneForOne: "simple_one_for_one",
  StartFailed: "failed",
  InvalidSpec: "invalid",
  SupervisorEnded: "ended"
}

/** How an incarnation of a worker ends by itself. */
interface Life {
  die(end: End): void
}

/** A worker that has no fiber, and knows a kill from a request. */
class Handle implements ChildHandle, Life {
  supervisedBy: Hold | undefined = undefined
  private observers: ReadonlyArray<ExitObserver> = []
  private exit: Exit.Exit<unknown, unknown> | undefined = undefined
  private readonly world: World
  private readonly worker: Worker
  constructor(world: World, worker: Worker) {
    this.world = world
    this.worker = worker
  }
  onExit(observer: ExitObserver): void {
    if (this.exit === undefined) this.observers = [...this.observers, observer]
    else observer.childExited(this.exit)
  }
  stop(how: "shutdown" | "kill"): void {
    if (how === "kill") return this.die("kill")
    if (this.worker.stops === "obeys") return this.die("shutdown")
    if (this.worker.stops === "never") return
    const ends = Effect.sync(() => this.die("shutdown"))
    this.world.time.fork(Effect.andThen(Effect.sleep(2), ends))
  }
  die(end: End): void {
    if (this.exit !== undefined) return
    this.exit = exits[end]
    this.world.ended(this.worker.id, this, end)
    for (const observer of this.observers) observer.childExited(this.exit)
  }
}

class World {
  readonly time = new VirtualTime()
  readonly supervisors = new Map<string, Supervisor>()
  private readonly plans = new Map<string, Array<Start>>()
  private readonly lives = new Map<string, Life>()
  private log: Array<string> = []

  ended(id: string, life: Life, end: End): void {
    if (this.lives.get(id) === life) this.lives.delete(id)
    // What is killed has no last word.
    if (end !== "kill") this.log.push(`stop ${id}`)
  }

  /** The log so far, emptied. */
  take(): ReadonlyArray<string> {
    const { log } = this
    this.log = []
    return log
  }

  // Children.

  supervisor(node: Team): Effect.Effect<Supervisor, unknown, Scope.Scope> {
    const { children, flags, id } = node
    return Effect.tap(
      make({
        ...flags,
        name: id,
        period: `${flags.period} seconds`,
        backoff: "none",
        children: children.map((child) => this.spec(child))
      }),
      (made) => Effect.sync(() => this.supervisors.set(id, made))
    )
  }

  spec(node: Node): ChildSpec {
    const { id, restart, significant } = node
    const common = { id, restart, significant }
    if (node.type === "supervisor") {
      return { ...common, type: "supervisor", start: Effect.suspend(() => this.supervisor(node)) }
    }
    const shutdown = node.shutdown === "default" ? {} : { shutdown: node.shutdown }
    return { ...common, ...shutdown, start: this.start(node) }
  }

  private start(node: Worker): ChildSpec["start"] {
    const handle = (): ChildHandle | Ignore => {
      const how = this.plans.get(node.id)?.shift() ?? "ok"
      if (how !== "ok") this.log.push(`${how} ${node.id}`)
      if (how === "error") throw new Error("planned")
      if (how === "ignore") return ignore
      const life = new Handle(this, node)
      this.begins(node.id, life)
      return life
    }
    if (node.made === "directly") return handle
    return node.made === "handle" ? Effect.sync(handle) : this.loop(node.id)
  }

  private begins(id: string, life: Life): void {
    this.lives.set(id, life)
    this.log.push(`start ${id}`)
  }

  private loop(id: string): Effect.Effect<Started, unknown, Scope.Scope> {
    return Effect.gen({ self: this }, function* () {
      const how = this.plans.get(id)?.shift() ?? "ok"
      if (how !== "ok") this.log.push(`${how} ${id}`)
      if (how === "error") return yield* Effect.fail("planned")
      if (how === "ignore") return ignore
      const end = yield* Deferred.make<unknown, unknown>()
      let last: End = "shutdown"
      const life: Life = {
        die: (how) => {
          last = how
          Deferred.doneUnsafe(end, exits[how])
        }
      }
      yield* Effect.addFinalizer(() => Effect.sync(() => this.ended(id, life, last)))
      this.begins(id, life)
      return Deferred.await(end)
    })
  }

  // Steps.

  perform(step: Step): string {
    if (step._tag === "plan") {
      this.plans.set(step.id, [...step.starts])
      return "ok"
    }
    if (step._tag === "pass") {
      this.time.seconds += step.seconds
      return "ok"
    }
    if (step._tag === "die") {
      this.die(step.supervisor, step.ends)
      return "ok"
    }
    const target = this.supervisors.get(step.supervisor)
    if (target === undefined) return "ended"
    const isStart = step._tag === "add" || step._tag === "restart"
    const action = (): Effect.Effect<unknown, { readonly _tag: string }> => {
      if (step._tag === "add") return target.startChild(this.spec(step.child))
      if (step._tag === "terminate") return target.terminateChild(step.id)
      return step._tag === "restart" ? target.restartChild(step.id) : target.deleteChild(step.id)
    }
    return this.time.run(
      Effect.match(action(), {
        onSuccess: (handle) => (handle === undefined && isStart ? "ignored" : "ok"),
        onFailure: (error) => results[error._tag] ?? error._tag
      })
    )
  }

  /** Ends children while their supervisor is kept busy with a start, so that it hears of all the ends before it acts on any. */
  private die(supervisor: string, ends: ReadonlyArray<readonly [string, End]>): void {
    const lives = ends.map(([id, end]) => ({ life: this.lives.get(id), end }))
    const gate = Deferred.makeUnsafe<Ignore>()
    const start = Deferred.await(gate)
    const busy = this.supervisors.get(supervisor)?.startChild({ id: "busy", restart: "temporary", start })
    if (busy !== undefined) this.time.fork(Effect.ignore(busy))
    this.time.turns()
    for (const { end, life } of lives) {
      life?.die(end)
      this.time.turns()
    }
    Deferred.doneUnsafe(gate, Effect.succeed(ignore))
    this.time.settle()
  }

  // What is seen.

  line(result: string): string {
    const tree = this.supervisors.has("top") ? this.time.run(this.tree("top")) : "ended"
    return `${result} | ${this.take().join(", ")} | ${tree}`
  }

  private tree(id: string): Effect.Effect<string> {
    const supervisor = this.supervisors.get(id)!
    return Effect.gen({ self: this }, function* () {
      const rows: Array<string> = []
      for (const child of yield* supervisor.whichChildren) {
        const isTeam = child.type === "supervisor" && child.status === "running"
        rows.push(`${child.id}:${isTeam ? yield* this.tree(child.id) : child.status}`)
      }
      return `${id}(${rows.join(" ")})`
    }).pipe(Effect.catchTag("SupervisorEnded", () => Effect.succeed("ended")))
  }
}

/** The instances of a dynamic supervisor in the order of their names, as the script shows them. */
const sorted = (line: string, { dynamic }: Scenario): string =>
  line.replaceAll(/\(([^()]*)\)/g, (whole, rows: string) => {
    const all = rows.split(" ")
    return all.length > 1 && all.every((row) => dynamic.has(row[0]!)) ? `(${all.toSorted().join(" ")})` : whole
  })

/** Runs a scenario on the stack and answers its lines. */
export const replay = (scenario: Scenario): ReadonlyArray<string> => {
  const world = new World()
  const scope = Scope.makeUnsafe()
  const lines: Array<string> = []
  const show = (result: string) => lines.push(sorted(world.line(result), scenario))
  const started = world.time.run(Effect.exit(Scope.provide(world.supervisor(scenario.top), scope)))
  show(started._tag === "Success" ? "ok" : "failed")
  for (const step of scenario.steps) show(world.perform(step))
  world.time.run(Scope.close(scope, Exit.void))
  show("stopped")
  return lines
}
