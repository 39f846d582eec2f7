/**
 * Tests of a supervisor's handles: one supervisor each, any number of observers,
 * an end by the owner that is no restart, and the leftovers of a kill that is ignored.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, type Scope } from "effect"
import { TestClock } from "effect/testing"
import type { ChildHandle, ChildSpec, ExitObserver, Hold, RestartType } from "../../../src/core/supervision/Child.ts"
import * as DynamicSupervisor from "../../../src/core/supervision/DynamicSupervisor.ts"
import { Closed } from "../../../src/core/supervision/Restart.ts"
import { child as nested } from "../../../src/core/supervision/Supervisor.ts"
import { counts, endOf, Lab, pass, settled, start, statuses, stop, tag } from "./otp/Lab.ts"

const fact = (name: string, body: (lab: Lab) => Effect.Effect<void, unknown, Scope.Scope>) =>
  it.effect(name, () =>
    Effect.andThen(
      TestClock.adjust(0),
      Effect.suspend(() => body(new Lab()))
    )
  )

/** An actor in small: its own specification and handle over all its incarnations, without a fiber. */
class Actor implements ChildHandle, ChildSpec {
  supervisedBy: Hold | undefined = undefined
  readonly shutdown = "1 second"
  /** The effect of a stop: the child ends, only a kill ends it, or nothing does. */
  heeds: "shutdown" | "kill" | "nothing" = "shutdown"
  starts = 0
  /** Incarnations that run now. */
  alive = 0
  private observers: ReadonlyArray<ExitObserver> = []
  readonly id: string
  readonly exclusive: boolean
  readonly restart: RestartType

  constructor(id: string, options: { readonly exclusive?: boolean; readonly restart?: RestartType } = {}) {
    this.id = id
    this.exclusive = options.exclusive ?? false
    this.restart = options.restart ?? "permanent"
  }

  start(): ChildHandle {
    this.starts += 1
    this.alive += 1
    return this
  }

  stop(how: "shutdown" | "kill"): void {
    if (this.heeds === how || this.heeds === "shutdown") this.end(Exit.interrupt())
  }

  onExit(observer: ExitObserver): void {
    this.observers = [...this.observers, observer]
  }

  end(exit: Exit.Exit<unknown, unknown>): void {
    this.alive -= 1
    const { observers } = this
    this.observers = []
    for (const observer of observers) observer.childExited(exit)
  }

  close(): void {
    this.end(Exit.fail(new Closed({ reason: "its owner needs it no more" })))
  }
}

const crash = Exit.die(new Error("crash"))

describe("ChildHandle: its supervisor", () => {
  fact("a second observer does not steal the crash from it", () =>
    Effect.gen(function* () {
      const actor = new Actor("a")
      const heard: Array<string> = []
      const sup = yield* start({ intensity: 2, children: [actor] })
      actor.onExit({ childExited: (exit) => void heard.push(exit._tag) })
      actor.end(crash)
      yield* settled
      expect(heard).toEqual(["Failure"])
      expect(actor.starts).toBe(2)
      expect(yield* statuses(sup)).toBe("a:running")
    })
  )

  fact("two observe a supervisor, and each hears of its end", (lab) =>
    Effect.gen(function* () {
      const inner = yield* start({ children: lab.specs("x") })
      const heard: Array<string> = []
      for (const observer of ["one", "two"]) inner.onExit({ childExited: () => void heard.push(observer) })
      yield* stop(inner)
      inner.onExit({ childExited: () => void heard.push("late") })
      expect(heard).toEqual(["one", "two", "late"])
    })
  )

  fact("a handle under two supervisors is refused, typed, and its start is not run", () =>
    Effect.gen(function* () {
      const actor = new Actor("a")
      const first = yield* start({ name: "first", children: [actor] })
      const second = yield* start({ name: "second" })
      const refused = yield* Effect.flip(second.startChild(actor))
      expect(refused).toMatchObject({ _tag: "AlreadySupervised", supervisor: "second", child: "a", by: "first" })
      expect(actor.starts).toBe(1)
      expect(yield* counts(second)).toEqual([0, 0, 0, 0])
      expect(yield* tag(start({ name: "third", children: [actor] }))).toBe("StartFailed")
      yield* first.terminateChild("a")
      expect(yield* tag(second.startChild(actor))).toBe("ok")
      expect(yield* tag(first.restartChild("a"))).toBe("StartFailed")
      actor.end(crash)
      yield* settled
      expect([yield* statuses(first), yield* statuses(second)]).toEqual(["a:down", "a:running"])
    })
  )

  fact("also when two starts answer the same handle, under two supervisors or two ids of one", () =>
    Effect.gen(function* () {
      const actor = new Actor("a")
      let closed = 0
      const spec = (id: string): ChildSpec => ({
        id,
        start: Effect.as(
          Effect.addFinalizer(() => Effect.sync(() => void (closed += 1))),
          actor
        )
      })
      const sup = yield* start({ children: [spec("one")] })
      expect(yield* tag(sup.startChild(spec("two")))).toBe("AlreadySupervised")
      const other = yield* start({})
      expect(yield* tag(other.startChild(spec("three")))).toBe("AlreadySupervised")
      // What the refused starts acquired is released; the one that runs is untouched.
      expect(closed).toBe(2)
      expect(yield* statuses(sup)).toBe("one:running")
    })
  )
})

describe("ChildHandle: closed by its owner", () => {
  fact("11 of 20 at once are no restarts: the supervisor lives, and forgets them", () =>
    Effect.gen(function* () {
      const actors = Array.from({ length: 20 }, (_, n) => new Actor(`a${n}`))
      const sup = yield* start({ intensity: 0, children: actors })
      for (const actor of actors.slice(0, 11)) actor.close()
      yield* settled
      expect(yield* endOf(sup)).toBeUndefined()
      expect(yield* counts(sup)).toEqual([9, 9, 0, 9])
      expect((yield* sup.trace).filter(({ _tag }) => _tag === "Restarting")).toEqual([])
    })
  )

  fact("is no end of its own for autoShutdown, whatever its restart type", () =>
    Effect.gen(function* () {
      for (const restart of ["transient", "temporary"] as const) {
        const actor = Object.assign(new Actor("a", { restart }), { significant: true })
        const sup = yield* start({ autoShutdown: "any_significant", children: [actor, new Actor("b")] })
        actor.close()
        yield* settled
        expect(yield* statuses(sup)).toBe("b:running")
      }
    })
  )

  fact("a dynamic supervisor that is restarted comes back without what was closed", () =>
    Effect.gen(function* () {
      const dynamic = DynamicSupervisor.make({ name: "dynamic", intensity: 0 })
      yield* start({ intensity: 5, children: [dynamic.child] })
      const [stays, goes, bomb] = [new Actor("stays"), new Actor("goes"), new Actor("bomb")]
      for (const actor of [stays, goes, bomb]) yield* dynamic.add(actor)
      goes.close()
      yield* settled
      bomb.end(crash)
      yield* settled
      expect([stays.alive, goes.alive, bomb.alive]).toEqual([1, 0, 1])
      expect([stays.starts, goes.starts, bomb.starts]).toEqual([2, 1, 2])
    })
  )
})

describe("ChildHandle: a kill that is ignored", () => {
  const deaf = (exclusive: boolean) =>
    Object.assign(new Actor("deaf", { exclusive }), { heeds: "nothing" as Actor["heeds"] })

  fact("is reported, and the next incarnation of an exclusive child waits for the end of the old one", () =>
    Effect.gen(function* () {
      const [a, b, c] = [new Actor("a"), deaf(true), new Actor("c")]
      const sup = yield* start({ strategy: "one_for_all", intensity: 5, children: [a, b, c] })
      a.end(crash)
      yield* pass(1)
      expect((yield* sup.trace).filter(({ _tag }) => _tag === "Abandoned" || _tag === "AwaitsEnd")).toEqual([
        { _tag: "Abandoned", child: "deaf" },
        { _tag: "AwaitsEnd", child: "deaf" }
      ])
      expect(yield* statuses(sup)).toBe("a:running deaf:restarting c:down")
      expect(b.alive).toBe(1)
      yield* pass(100)
      expect(b.starts).toBe(1)
      b.end(Exit.interrupt())
      yield* settled
      expect([b.starts, b.alive]).toEqual([2, 1])
      expect(yield* statuses(sup)).toBe("a:running deaf:running c:running")
      expect((yield* sup.trace).some(({ _tag }) => _tag === "EndedLate")).toBe(true)
      b.heeds = "shutdown"
    })
  )

  fact("a child that is not exclusive starts beside what was left behind", () =>
    Effect.gen(function* () {
      const [a, b] = [new Actor("a"), deaf(false)]
      const sup = yield* start({ strategy: "one_for_all", intensity: 5, children: [a, b] })
      a.end(crash)
      yield* pass(1)
      expect([b.starts, b.alive]).toEqual([2, 2])
      expect(yield* statuses(sup)).toBe("a:running deaf:running")
      b.heeds = "shutdown"
    })
  )

  fact("while it is awaited its supervisor serves, stops and terminates", () =>
    Effect.gen(function* () {
      const [a, b] = [new Actor("a"), deaf(true)]
      const sup = yield* start({ strategy: "rest_for_one", intensity: 5, children: [a, b] })
      a.end(crash)
      yield* pass(1)
      yield* sup.terminateChild("deaf")
      expect(yield* statuses(sup)).toBe("a:running deaf:down")
      b.end(Exit.interrupt())
      yield* settled
      expect(b.starts).toBe(1)
      expect(yield* tag(sup.restartChild("deaf"))).toBe("ok")
      yield* stop(sup, 1)
      expect(yield* endOf(sup)).toBe("stopped")
    })
  )

  fact("a restart by hand waits for it, no longer than a start may take", () =>
    Effect.gen(function* () {
      const b = Object.assign(deaf(true), { initTimeout: "3 seconds" as const })
      const sup = yield* start({ children: [b] })
      const terminated = yield* Effect.forkChild(sup.terminateChild("deaf"))
      yield* pass(1)
      yield* Fiber.join(terminated)
      const tooLong = yield* Effect.forkChild(tag(sup.restartChild("deaf")))
      yield* pass(3)
      expect(yield* Fiber.join(tooLong)).toBe("StartFailed")
      const inTime = yield* Effect.forkChild(tag(sup.restartChild("deaf")))
      yield* pass(1)
      expect([yield* statuses(sup), b.starts]).toEqual(["deaf:down", 1])
      b.end(Exit.interrupt())
      yield* settled
      expect(yield* Fiber.join(inTime)).toBe("ok")
      expect([b.starts, b.alive]).toEqual([2, 1])
      b.heeds = "shutdown"
    })
  )

  fact("a supervisor that is restarted waits for what the one before it left behind", () =>
    Effect.gen(function* () {
      const [a, b] = [new Actor("a"), deaf(true)]
      const inner = nested({ name: "inner", intensity: 0, children: [a, b] })
      const outer = yield* start({ intensity: 5, children: [inner] })
      a.end(crash)
      yield* pass(2)
      expect([b.starts, b.alive]).toEqual([1, 1])
      b.end(Exit.interrupt())
      yield* settled
      expect([b.starts, b.alive]).toEqual([2, 1])
      expect(yield* statuses(outer)).toBe("inner:running")
      b.heeds = "shutdown"
    })
  )

  fact("and a stop of that supervisor meanwhile is not held up by it", () =>
    Effect.gen(function* () {
      const [a, b] = [new Actor("a"), deaf(true)]
      const inner = nested({ name: "inner", intensity: 0, children: [a, b] })
      const outer = yield* start({ intensity: 5, children: [inner] })
      a.end(crash)
      yield* pass(2)
      yield* stop(outer, 2)
      expect(yield* endOf(outer)).toBe("stopped")
      expect(b.starts).toBe(1)
    })
  )
})

describe("ChildHandle: a start that is a function", () => {
  fact("starts, restarts after a crash and fails as an Effect does", () =>
    Effect.gen(function* () {
      const actor = new Actor("a")
      const sup = yield* start({ intensity: 3 })
      yield* settled
      expect(yield* sup.startChild(actor)).toBe(actor)
      expect(yield* tag(sup.startChild(actor))).toBe("AlreadyStarted")
      actor.end(crash)
      // No fiber stands between the crash and the restart.
      expect(actor.starts).toBe(2)
      const broken: ChildSpec = {
        id: "b",
        start: () => {
          throw new Error("no")
        }
      }
      expect(yield* tag(sup.startChild(broken))).toBe("StartFailed")
      expect(yield* tag(sup.startChild({ id: "c", start: () => "no child" as never }))).toBe("StartFailed")
      expect(yield* statuses(sup)).toBe("a:running")
    })
  )

  fact("one that crashes in its start is restarted through the mailbox, and trips the window", () =>
    Effect.gen(function* () {
      let starts = 0
      const dead: ChildSpec = {
        id: "dead",
        start: () => {
          starts += 1
          return { stop: () => undefined, onExit: (observer) => observer.childExited(crash) }
        }
      }
      const sup = yield* start({ intensity: 1_000, children: [dead] })
      yield* pass(1)
      expect(yield* endOf(sup)).toBe("escalated")
      expect(starts).toBe(1_001)
    })
  )

  fact("mail that waits goes first", () =>
    Effect.gen(function* () {
      const actor = new Actor("a", { restart: "temporary" })
      const sup = yield* start({})
      yield* sup.startChild(actor)
      const calls = yield* Effect.forkChild(
        Effect.all([tag(sup.terminateChild("a")), tag(sup.startChild(actor))], { concurrency: "unbounded" })
      )
      expect(yield* Fiber.join(calls)).toEqual(["ok", "ok"])
      expect(actor.starts).toBe(2)
    })
  )
})
