import { describe, expect, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import type { ChildHandle, ChildSpec, ExitObserver } from "../../../src/core/supervision/Child.ts"
import { child as nested, make, type Supervisor } from "../../../src/core/supervision/Supervisor.ts"
import type { TraceEvent } from "../../../src/core/supervision/SupervisorTrace.ts"
import { counts, die, endOf, Lab, pass, settled, start, statuses, stop, tag } from "./otp/Lab.ts"

const fact = (name: string, body: (lab: Lab) => Effect.Effect<void, unknown, Scope.Scope>) =>
  // A TestClock that was never adjusted lets its first sleep be interrupted even where that is not allowed.
  it.effect(name, () =>
    Effect.andThen(
      TestClock.adjust(0),
      Effect.suspend(() => body(new Lab()))
    )
  )

/** A child without a fiber: it exists, is asked to stop, and ends when told. */
class Idle implements ChildHandle {
  observer: ExitObserver | undefined = undefined
  stop(_how: "shutdown" | "kill"): void {
    this.end(Exit.interrupt())
  }
  onExit(observer: ExitObserver): void {
    this.observer = observer
  }
  end(exit: Exit.Exit<unknown, unknown>): void {
    this.observer?.childExited(exit)
    this.observer = undefined
  }
}

const tags = (trace: ReadonlyArray<TraceEvent>) =>
  trace.map((event) => ("child" in event && event.child !== undefined ? `${event._tag} ${event.child}` : event._tag))

describe("Supervisor: restarting", () => {
  fact("a start that fails during a restart counts as one more restart and is tried again", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ intensity: 3, children: lab.specs("a") })
      lab.plan("a", "error", "error")
      yield* die(lab, "a", "abnormal")
      expect(lab.take()).toEqual(["start a", "stop a", "error a", "error a", "start a"])
      expect(tags(yield* sup.trace).slice(1)).toEqual([
        "Exited a",
        "Restarting a",
        "StartFailed a",
        "Restarting a",
        "StartFailed a",
        "Restarting a",
        "Started a"
      ])
      yield* die(lab, "a", "abnormal")
      expect(yield* endOf(sup)).toBe("escalated")
    })
  )

  fact("two restart loops take turns, and a call gets in between", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ intensity: 1_000_000, children: lab.specs("a b") })
      lab.take()
      lab.always("a", "error")
      lab.always("b", "error")
      yield* lab.end("a", "abnormal")
      yield* lab.end("b", "abnormal")
      yield* settled
      const errors = lab.take().filter((line) => line.startsWith("error"))
      expect(errors.length).toBeGreaterThan(10)
      expect(errors.every((line, n) => line === (n % 2 === 0 ? "error a" : "error b"))).toBe(true)
      yield* sup.terminateChild("a")
      yield* settled
      lab.take()
      yield* settled
      expect(new Set(lab.take())).toEqual(new Set(["error b"]))
    })
  )

  fact("one_for_all and rest_for_one start every affected child that is down", (lab) =>
    Effect.gen(function* () {
      for (const strategy of ["one_for_all", "rest_for_one"] as const) {
        const children = [lab.spec("a"), lab.spec("gone", { restart: "transient" }), lab.spec("halted")]
        const sup = yield* start({ strategy, children })
        yield* die(lab, "gone", "normal")
        yield* sup.terminateChild("halted")
        expect(yield* statuses(sup)).toBe("a:running gone:down halted:down")
        yield* die(lab, "a", "abnormal")
        expect(yield* statuses(sup)).toBe("a:running gone:running halted:running")
        yield* stop(sup)
      }
    })
  )

  fact("siblings are stopped newest first and started oldest first", (lab) =>
    Effect.gen(function* () {
      const orders = {
        one_for_all: ["stop b", "stop d", "stop c", "stop a", "start a", "start b", "start c", "start d"],
        rest_for_one: ["stop b", "stop d", "stop c", "start b", "start c", "start d"]
      } as const
      for (const strategy of ["one_for_all", "rest_for_one"] as const) {
        const sup = yield* start({ strategy, children: lab.specs("a b c d") })
        lab.take()
        yield* die(lab, "b", "abnormal")
        expect(lab.take()).toEqual(orders[strategy])
        yield* stop(sup)
      }
    })
  )

  fact("when a sibling's start fails, the retry is its own; those behind it are down", (lab) =>
    Effect.gen(function* () {
      for (const strategy of ["one_for_all", "rest_for_one"] as const) {
        const sup = yield* start({ strategy, intensity: 1_000_000, children: lab.specs("a b c") })
        lab.always("b", "error")
        yield* die(lab, "a", "abnormal")
        lab.take()
        expect(yield* statuses(sup)).toBe("a:running b:restarting c:down")
        yield* settled
        // one_for_all stops those already restarted at each attempt, rest_for_one goes on from the failed one.
        const again = strategy === "one_for_all" ? ["stop a", "start a", "error b"] : ["error b"]
        expect(lab.take().slice(0, 3 * again.length)).toEqual([...again, ...again, ...again])
        yield* sup.terminateChild("b")
        lab.always("b", "ok")
        yield* settled
        expect(yield* statuses(sup)).toBe("a:running b:down c:down")
        yield* stop(sup)
      }
    })
  )

  fact("the simultaneous death of a child that is being stopped is not counted", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ strategy: "one_for_all", intensity: 1, children: lab.specs("a b c") })
      lab.take()
      for (const id of ["a", "b", "c"]) yield* lab.end(id, "abnormal")
      yield* settled
      expect(lab.take()).toEqual(["stop a", "stop b", "stop c", "start a", "start b", "start c"])
      expect((yield* sup.trace).filter(({ _tag }) => _tag === "Restarting").length).toBe(1)
    })
  )

  fact("a restart that answers ignore counts once, and the child stays down", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ intensity: 1, children: lab.specs("a b") })
      lab.plan("a", "ignore")
      yield* die(lab, "a", "abnormal")
      expect(yield* statuses(sup)).toBe("a:down b:running")
      yield* die(lab, "b", "abnormal")
      expect(yield* endOf(sup)).toBe("escalated")
    })
  )

  fact("a restarted supervisor has a window of its own again", (lab) =>
    Effect.gen(function* () {
      const inner = nested({ backoff: "none", name: "inner", intensity: 1, children: lab.specs("a") })
      const outer = yield* start({ intensity: 10, children: [inner] })
      for (let crash = 0; crash < 6; crash++) yield* die(lab, "a", "abnormal")
      expect(lab.starts("a")).toBe(7)
      expect((yield* outer.trace).filter(({ _tag }) => _tag === "Restarting").length).toBe(3)
    })
  )

  fact("the window is monotonic: the wall clock may jump in both directions", (lab) =>
    Effect.gen(function* () {
      let jump = 0
      const clock = yield* Clock.clockWith(Effect.succeed)
      const jumping: Clock.Clock = {
        ...clock,
        currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + jump,
        currentTimeMillis: Effect.sync(() => clock.currentTimeMillisUnsafe() + jump),
        currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe() + BigInt(jump) * 1_000_000n,
        currentTimeNanos: Effect.sync(() => clock.currentTimeNanosUnsafe() + BigInt(jump) * 1_000_000n)
      }
      const day = 86_400_000
      const options = { name: "sup", intensity: 1, period: "5 seconds", children: lab.specs("a") } as const
      const jumpy = yield* Effect.provideService(make(options), Clock.Clock, jumping)
      yield* die(lab, "a", "abnormal")
      jump = day
      yield* die(lab, "a", "abnormal")
      expect(yield* endOf(jumpy)).toBe("escalated")

      const patient = yield* Effect.provideService(make(options), Clock.Clock, jumping)
      yield* die(lab, "a", "abnormal")
      jump = -day
      yield* TestClock.adjust("5001 millis")
      yield* die(lab, "a", "abnormal")
      expect(yield* endOf(patient)).toBeUndefined()
    })
  )

  fact("the edge of the window is inclusive", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ intensity: 1, period: "5 seconds", children: lab.specs("a") })
      yield* die(lab, "a", "abnormal")
      yield* TestClock.adjust("5001 millis")
      yield* die(lab, "a", "abnormal")
      expect(yield* endOf(sup)).toBeUndefined()
      yield* TestClock.adjust("5 seconds")
      yield* die(lab, "a", "abnormal")
      expect(yield* endOf(sup)).toBe("escalated")
    })
  )
})

describe("Supervisor: escalation", () => {
  fact("climbs three levels and ends every child on the way, newest first", (lab) =>
    Effect.gen(function* () {
      const three = nested({ backoff: "none", name: "three", intensity: 1, children: lab.specs("a b") })
      const two = nested({ backoff: "none", name: "two", intensity: 1, children: [three, lab.spec("c")] })
      const one = yield* start({ intensity: 1, children: [two, lab.spec("d")] })
      lab.take()
      // 2 crashes end `three`, 2 of its ends end `two`, 2 of those end `one`: the eighth is one too many.
      for (let crash = 1; crash <= 7; crash++) yield* die(lab, "a", "abnormal")
      expect(yield* endOf(one)).toBeUndefined()
      lab.take()
      yield* die(lab, "a", "abnormal")
      expect(lab.take()).toEqual(["stop a", "stop b", "stop c", "stop d"])
      expect(yield* one.ended).toEqual({ reason: "escalated", child: "two" })
    })
  )

  fact("is a shutdown: a permanent child supervisor is restarted, a transient one is not", (lab) =>
    Effect.gen(function* () {
      const failing = (name: string, restart: "permanent" | "transient") =>
        nested({ backoff: "none", name, intensity: 0, children: lab.specs(`in-${name}`) }, { restart })
      const sup = yield* start({ children: [failing("p", "permanent"), failing("t", "transient")] })
      yield* die(lab, "in-p", "abnormal")
      yield* die(lab, "in-t", "abnormal")
      expect(yield* statuses(sup)).toBe("p:running t:down")
    })
  )

  fact("join ends by interruption, and ended says why", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ intensity: 0, children: lab.specs("a") })
      const joined = yield* Effect.forkChild(sup.join)
      yield* die(lab, "a", "abnormal")
      expect(Exit.hasInterrupts(yield* Fiber.await(joined))).toBe(true)
      expect(yield* sup.ended).toEqual({ reason: "escalated", child: "a" })
    })
  )

  fact("calls that wait when the supervisor ends, and those that come later, fail typed", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ intensity: 0, children: lab.specs("a") })
      yield* lab.end("a", "abnormal")
      const waiting = yield* Effect.forkChild(tag(sup.countChildren))
      expect(yield* Fiber.join(waiting)).toBe("SupervisorEnded")
      expect(yield* tag(sup.startChild(lab.spec("b")))).toBe("SupervisorEnded")
    })
  )

  fact("a restarting significant child counts as active", (lab) =>
    Effect.gen(function* () {
      const children = lab.specs("a b", { restart: "transient", significant: true })
      const sup = yield* start({ autoShutdown: "all_significant", intensity: 1_000_000, children })
      lab.always("a", "error")
      yield* die(lab, "a", "abnormal")
      yield* die(lab, "b", "normal")
      expect(yield* endOf(sup)).toBeUndefined()
      expect(yield* statuses(sup)).toBe("a:restarting b:down")
    })
  )
})

describe("Supervisor: starting", () => {
  fact("a start that hangs fails after its initTimeout", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({})
      lab.plan("a", "hang")
      const failed = yield* Effect.forkChild(Effect.flip(sup.startChild(lab.spec("a", { initTimeout: "3 seconds" }))))
      yield* pass(3)
      expect(yield* Fiber.join(failed)).toMatchObject({ _tag: "StartFailed", cause: { _tag: "StartTimeout" } })
      expect(yield* tag(sup.startChild(lab.spec("a")))).toBe("ok")
    })
  )

  fact("a restart that hangs counts as a failed one", (lab) =>
    Effect.gen(function* () {
      yield* start({ intensity: 2, children: lab.specs("a", { initTimeout: "1 second" }) })
      lab.plan("a", "hang")
      yield* die(lab, "a", "abnormal")
      yield* pass(1)
      expect(lab.take()).toEqual(["start a", "stop a", "start a"])
    })
  )

  fact("a start that hangs and ignores its interruption is abandoned, and said so", () =>
    Effect.gen(function* () {
      const deaf: ChildSpec = {
        id: "deaf",
        initTimeout: "1 second",
        shutdown: "1 second",
        start: Effect.as(Effect.uninterruptible(Effect.sleep("1 minute")), Effect.never)
      }
      const sup = yield* start({})
      const failed = yield* Effect.forkChild(tag(sup.startChild(deaf)))
      yield* pass(2)
      expect(yield* Fiber.join(failed)).toBe("StartFailed")
      expect(tags(yield* sup.trace)).toEqual(["Abandoned deaf", "StartFailed deaf"])
      yield* pass(60)
      expect(tags(yield* sup.trace)).toEqual(["Abandoned deaf", "StartFailed deaf", "EndedLate deaf"])
    })
  )

  fact("a stop cancels a start that hangs", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ children: lab.specs("a") })
      lab.plan("b", "hang")
      const refused = yield* Effect.forkChild(tag(sup.startChild(lab.spec("b"))))
      yield* settled
      yield* stop(sup)
      expect(yield* Fiber.join(refused)).toBe("StartFailed")
      expect(lab.take()).toEqual(["start a", "stop a"])
    })
  )

  fact("interrupting make stops what was started", (lab) =>
    Effect.gen(function* () {
      lab.plan("b", "hang")
      const making = yield* Effect.forkChild(Effect.scoped(start({ children: lab.specs("a b c") })))
      yield* settled
      yield* Fiber.interrupt(making)
      expect(lab.take()).toEqual(["start a", "stop a"])
    })
  )

  fact("closing the Scope of make stops the children and waits for them", (lab) =>
    Effect.gen(function* () {
      const slow = lab.spec("a", { onStop: Effect.yieldNow })
      yield* Effect.scoped(start({ children: [slow, lab.spec("b")] }))
      expect(lab.take()).toEqual(["start a", "start b", "stop b", "stop a"])
    })
  )

  fact("a loop that ends at once is a child that ended, not one that failed to start", () =>
    Effect.gen(function* () {
      const brief: ChildSpec = { id: "brief", restart: "temporary", start: Effect.succeed(Effect.void) }
      const sup = yield* start({ children: [brief] })
      yield* settled
      expect(tags(yield* sup.trace)).toEqual(["Started brief", "Exited brief"])
    })
  )

  fact("no more than maxChildren", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ strategy: "dynamic", maxChildren: 2 })
      for (const spec of lab.specs("a b")) yield* sup.startChild(spec)
      expect(yield* tag(sup.startChild(lab.spec("c")))).toBe("TooManyChildren")
      yield* die(lab, "a", "normal")
      yield* sup.terminateChild("b")
      expect(yield* tag(sup.startChild(lab.spec("c")))).toBe("ok")
    })
  )
})

describe("Supervisor: children without a fiber", () => {
  fact("are restarted and stopped like any other, and their Scope is closed before the restart", (lab) =>
    Effect.gen(function* () {
      const made: Array<Idle> = []
      const spec: ChildSpec = {
        id: "idle",
        start: Effect.gen(function* () {
          const idle = new Idle()
          const number = made.push(idle)
          lab.log.push(`open ${number}`)
          yield* Effect.addFinalizer(() =>
            Effect.andThen(
              Effect.yieldNow,
              Effect.sync(() => lab.log.push(`close ${number}`))
            )
          )
          return idle
        })
      }
      const sup = yield* start({ children: [spec] })
      made[0]!.end(Exit.die("crash"))
      yield* settled
      expect((yield* sup.whichChildren)[0]!.handle).toBe(made[1])
      yield* stop(sup)
      expect(lab.take()).toEqual(["open 1", "close 1", "open 2", "close 2"])
      expect(tags(yield* sup.trace)).toEqual([
        "Started idle",
        "Exited idle",
        "Restarting idle",
        "Started idle",
        "Ending",
        "Stopping idle",
        "Stopped idle",
        "Ended"
      ])
    })
  )

  fact("may use their Scope after their start", (lab) =>
    Effect.gen(function* () {
      const spec: ChildSpec = {
        id: "idle",
        start: Effect.gen(function* () {
          const scope = yield* Effect.scope
          const idle = new Idle()
          yield* Effect.forkIn(
            Effect.andThen(
              Effect.yieldNow,
              Effect.onInterrupt(Effect.never, () => Effect.sync(() => lab.log.push("activity interrupted")))
            ),
            scope
          )
          return idle
        })
      }
      const sup = yield* start({ children: [spec] })
      yield* settled
      expect(lab.take()).toEqual([])
      yield* stop(sup)
      expect(lab.take()).toEqual(["activity interrupted"])
    })
  )

  fact("a handle that throws takes nobody with it", () =>
    Effect.gen(function* () {
      const thrower: ChildHandle = {
        stop: () => {
          throw new Error("stop")
        },
        onExit: () => undefined
      }
      const sup = yield* start({ children: [{ id: "thrower", start: Effect.succeed(thrower) }] })
      yield* sup.terminateChild("thrower")
      expect(tags(yield* sup.trace).at(-1)).toBe("Stopped thrower")
      expect(yield* statuses(sup)).toBe("thrower:down")
    })
  )
})

describe("Supervisor: scale", () => {
  fact("10,000 dynamic children stop in parallel, within one grace", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ strategy: "dynamic", traceCapacity: 100_000 })
      for (let n = 0; n < 10_000; n++) {
        const onStop = n % 2 === 0 ? Effect.void : Effect.sleep("1 second")
        yield* sup.startChild(lab.spec(`c${n}`, { restart: "temporary", onStop }))
      }
      yield* stop(sup, 1)
      expect(yield* endOf(sup)).toBe("stopped")
      expect((yield* sup.trace).filter(({ _tag }) => _tag === "Stopped").length).toBe(10_000)
    })
  )

  fact("an ended temporary child leaves nothing behind", () =>
    Effect.gen(function* () {
      setFlagsFromString("--expose-gc")
      const gc: () => void = runInNewContext("gc")
      const sup = yield* start({ strategy: "dynamic", traceCapacity: 0 })
      const handles: Array<WeakRef<Idle>> = []
      for (let n = 0; n < 1000; n++) {
        const answer = Effect.sync(() => new Idle())
        const handle = yield* sup.startChild({ id: `c${n}`, restart: "temporary", start: answer })
        handles.push(new WeakRef(handle as Idle))
      }
      for (const handle of handles) handle.deref()!.end(Exit.void)
      yield* settled
      expect(yield* counts(sup)).toEqual([0, 0, 0, 0])
      // A WeakRef keeps its target until the current job has ended.
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      gc()
      // The last ones may still lie on the stack.
      expect(handles.filter((handle) => handle.deref() !== undefined).length).toBeLessThan(10)
    })
  )
})

describe("Supervisor: the trace", () => {
  fact("keeps the newest events only", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ traceCapacity: 3, children: lab.specs("a b c d e") })
      expect(tags(yield* sup.trace)).toEqual(["Started c", "Started d", "Started e"])
    })
  )

  fact("onTrace hears all of it, and may throw", (lab) =>
    Effect.gen(function* () {
      const heard: Array<string> = []
      const onTrace = (event: TraceEvent, supervisor: string) => {
        heard.push(`${supervisor} ${event._tag}`)
        throw new Error("onTrace")
      }
      const sup = yield* start({ onTrace, traceCapacity: 0, children: lab.specs("a") })
      yield* stop(sup)
      expect(heard).toEqual(["Started", "Ending", "Stopping", "Stopped", "Ended"].map((event) => `sup ${event}`))
      expect(yield* sup.trace).toEqual([])
    })
  )
})

describe("Supervisor: its own end", () => {
  /** A clock that breaks: the only thing of the supervisor's that a test can break. */
  const broken = Effect.map(Clock.clockWith(Effect.succeed), (clock): Clock.Clock => ({
    ...clock,
    monotonicTimeNanosUnsafe: () => {
      throw new Error("no time")
    }
  }))

  fact("a crash ends its children, is its exit, and its parent restarts it", (lab) =>
    Effect.gen(function* () {
      const started: Array<Supervisor> = []
      const clock = yield* broken
      const inner: ChildSpec = {
        id: "inner",
        type: "supervisor",
        restart: "transient",
        start: make({ name: "inner", backoff: "none", children: lab.specs("a b") }).pipe(
          Effect.provideService(Clock.Clock, clock),
          Effect.tap((sup) => Effect.sync(() => started.push(sup)))
        )
      }
      const outer = yield* start({ children: [inner] })
      lab.take()
      yield* die(lab, "a", "abnormal")
      expect(lab.take()).toEqual(["stop a", "stop b", "start a", "start b"])
      expect(Exit.hasDies(yield* Effect.exit(started[0]!.join))).toBe(true)
      expect(yield* statuses(outer)).toBe("inner:running")
      expect(yield* endOf(started[0]!)).toBe("crashed")
    })
  )

  fact("a kill gives nobody a grace", (lab) =>
    Effect.gen(function* () {
      const deaf = lab.spec("deaf", { shutdown: "infinity", onStop: Effect.never })
      const inner = nested(
        { backoff: "none", name: "inner", children: [lab.spec("a"), deaf] },
        { shutdown: "1 second" }
      )
      const outer = yield* start({ children: [inner] })
      lab.take()
      yield* stop(outer, 1)
      expect(lab.take()).toEqual(["stop a"])
      expect(yield* endOf(outer)).toBe("stopped")
    })
  )

  fact("a child's run loop may be a supervisor's join", (lab) =>
    Effect.gen(function* () {
      const start_ = Effect.map(
        make({ name: "inner", backoff: "none", children: lab.specs("a") }),
        (inner) => inner.join
      )
      const outer = yield* start({ children: [{ id: "inner", type: "supervisor", start: start_ }] })
      yield* die(lab, "a", "abnormal")
      yield* die(lab, "a", "abnormal")
      expect(lab.starts("a")).toBe(3)
      expect(yield* statuses(outer)).toBe("inner:running")
      yield* stop(outer)
      expect(lab.log.at(-1)).toBe("stop a")
    })
  )
})
