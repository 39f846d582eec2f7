/**
 * OTP's own supervisor suite, case by case, under OTP's names. What is ported and
 * what has no meaning here is in Cases.ts; the last test holds the three lists together.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { type ChildSpec, type ExitObserver, ignore } from "../../../../src/core/supervision/Child.ts"
import { child as nested, type Supervisor } from "../../../../src/core/supervision/Supervisor.ts"
import type { Strategy } from "../../../../src/core/supervision/SupervisorOptions.ts"
import { leftOut, type Ported, ported, suite } from "./Cases.ts"
import { counts, die, type End, endOf, Lab, pass, settled, start, statuses, stop, tag } from "./Lab.ts"

const ran = new Set<string>()

const otp = (name: Ported, body: (lab: Lab) => Effect.Effect<void, unknown, Scope.Scope>) => {
  ran.add(name)
  // A TestClock that was never adjusted lets its first sleep be interrupted even where that is not allowed.
  it.effect(name, () =>
    Effect.andThen(
      TestClock.adjust(0),
      Effect.suspend(() => body(new Lab()))
    )
  )
}

const uninterruptibly = Effect.uninterruptible(Effect.sleep("200 seconds"))

describe("OTP supervisor suite: start", () => {
  otp("sup_start_normal", () =>
    Effect.gen(function* () {
      const sup = yield* start({ intensity: 2, period: "1 hour" })
      yield* stop(sup)
      expect(yield* endOf(sup)).toBe("stopped")
    })
  )

  otp("sup_start_ignore_init", () =>
    Effect.gen(function* () {
      const silent: ChildSpec = { id: "silent", type: "supervisor", start: Effect.succeed(ignore) }
      const sup = yield* start({ children: [silent] })
      expect(yield* statuses(sup)).toBe("silent:down")
      expect(yield* counts(sup)).toEqual([1, 0, 1, 0])
    })
  )

  otp("sup_start_ignore_child", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({})
      lab.plan("child1", "ignore")
      expect(yield* sup.startChild(lab.spec("child1"))).toBeUndefined()
      expect(yield* sup.startChild(lab.spec("child2"))).toBeDefined()
      expect(yield* statuses(sup)).toBe("child1:down child2:running")
      expect(yield* counts(sup)).toEqual([2, 1, 0, 2])
    })
  )

  otp("sup_start_ignore_temporary_child", (lab) =>
    Effect.gen(function* () {
      lab.plan("child1", "ignore")
      const sup = yield* start({ children: lab.specs("child1 child2", { restart: "temporary" }) })
      expect(yield* statuses(sup)).toBe("child2:running")
      expect(yield* counts(sup)).toEqual([1, 1, 0, 1])
    })
  )

  otp("sup_start_ignore_temporary_child_start_child", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({})
      lab.plan("child1", "ignore")
      expect(yield* sup.startChild(lab.spec("child1", { restart: "temporary" }))).toBeUndefined()
      yield* sup.startChild(lab.spec("child2", { restart: "temporary" }))
      expect(yield* statuses(sup)).toBe("child2:running")
      expect(yield* counts(sup)).toEqual([1, 1, 0, 1])
    })
  )

  const ignoredBySimple = (restart: "temporary" | "permanent") => (lab: Lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ strategy: "dynamic" })
      lab.plan("child1", "ignore")
      expect(yield* sup.startChild(lab.spec("child1", { restart }))).toBeUndefined()
      yield* sup.startChild(lab.spec("child2", { restart }))
      expect(yield* statuses(sup)).toBe("child2:running")
      expect(yield* counts(sup)).toEqual([1, 1, 0, 1])
      yield* stop(sup)
      expect(yield* endOf(sup)).toBe("stopped")
    })
  otp("sup_start_ignore_temporary_child_start_child_simple", ignoredBySimple("temporary"))
  otp("sup_start_ignore_permanent_child_start_child_simple", ignoredBySimple("permanent"))

  otp("sup_start_error_return", (lab) =>
    Effect.gen(function* () {
      const noChild = { id: "child1", start: Effect.succeed("no child") } as unknown as ChildSpec
      const failed = yield* Effect.flip(start({ children: [lab.spec("child0"), noChild] }))
      expect(failed).toMatchObject({ _tag: "StartFailed", child: "child1" })
      expect(lab.take()).toEqual(["start child0", "stop child0"])
    })
  )

  otp("sup_start_fail", (lab) =>
    Effect.gen(function* () {
      const crashing: ChildSpec = { id: "child2", start: Effect.die(new Error("badmatch")) }
      const failed = yield* Effect.flip(start({ children: [...lab.specs("child0 child1"), crashing] }))
      expect(failed).toMatchObject({ _tag: "StartFailed", supervisor: "sup", child: "child2" })
      expect(lab.take()).toEqual(["start child0", "start child1", "stop child1", "stop child0"])
    })
  )

  otp("sup_start_child_returns_error", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({})
      lab.plan("child1", "error")
      expect(yield* tag(sup.startChild(lab.spec("child1")))).toBe("StartFailed")
      expect(yield* counts(sup)).toEqual([0, 0, 0, 0])
      expect(yield* tag(sup.startChild(lab.spec("child1")))).toBe("ok")
    })
  )

  otp("sup_start_restart_child_returns_error", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ intensity: 0, children: lab.specs("child1") })
      yield* sup.terminateChild("child1")
      lab.plan("child1", "error", "error")
      expect(yield* tag(sup.restartChild("child1"))).toBe("StartFailed")
      expect(yield* tag(sup.restartChild("child1"))).toBe("StartFailed")
      yield* settled
      expect(yield* statuses(sup)).toBe("child1:down")
      expect(lab.take()).toEqual(["start child1", "stop child1", "error child1", "error child1"])
      expect(yield* tag(sup.restartChild("child1"))).toBe("ok")
    })
  )

  otp("sup_start_child_returns_error_simple", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ strategy: "dynamic" })
      lab.plan("child1", "error")
      expect(yield* tag(sup.startChild(lab.spec("child1")))).toBe("StartFailed")
      expect(yield* statuses(sup)).toBe("")
      expect(yield* tag(sup.startChild(lab.spec("child1")))).toBe("ok")
    })
  )

  otp("sup_start_map", (lab) =>
    Effect.gen(function* () {
      const brutal = lab.spec("child2", { shutdown: "brutal" })
      const sup = yield* start({ children: [lab.spec("child1"), brutal, lab.spec("child3", { type: "supervisor" })] })
      expect(yield* sup.childSpec("child2")).toBe(brutal)
      expect(yield* tag(sup.childSpec("child4"))).toBe("NotFound")
      expect((yield* sup.whichChildren).map(({ type }) => type)).toEqual(["worker", "worker", "supervisor"])
    })
  )

  otp("sup_start_map_faulty_specs", (lab) =>
    Effect.gen(function* () {
      const { start: begin } = lab.spec("child1")
      const faulty = [{ start: begin }, { id: "" }, { id: "child2" }, { id: "child2", start: "now" }] as unknown
      for (const spec of faulty as ReadonlyArray<ChildSpec>) {
        expect(yield* tag(start({ children: [spec] }))).toBe("InvalidSpec")
      }
      const silly = { ...lab.spec("child3"), silly_flag: true }
      expect(yield* tag(start({ children: [silly] }))).toBe("ok")
    })
  )
})

describe("OTP supervisor suite: stop", () => {
  otp("sup_stop_infinity", (lab) =>
    Effect.gen(function* () {
      const onStop = Effect.sleep("1 day")
      const children = [
        lab.spec("child1", { shutdown: "infinity", type: "supervisor", onStop }),
        lab.spec("child2", { shutdown: "infinity" })
      ]
      const sup = yield* start({ children })
      yield* Effect.forkChild(stop(sup))
      yield* pass(100)
      expect(yield* endOf(sup)).toBeUndefined()
      yield* TestClock.adjust("1 day")
      yield* settled
      expect(yield* endOf(sup)).toBe("stopped")
      expect(lab.take().slice(2)).toEqual(["stop child2", "stop child1"])
    })
  )

  otp("sup_stop_timeout", (lab) =>
    Effect.gen(function* () {
      const child2 = lab.spec("child2", { shutdown: "1 second", onStop: uninterruptibly })
      const sup = yield* start({ children: [lab.spec("child1", { shutdown: "1 second" }), child2] })
      yield* stop(sup, 2)
      expect(lab.take().slice(2)).toEqual(["stop child1"])
      const trace = (yield* sup.trace).slice(2).map((event) => `${event._tag} ${"child" in event ? event.child : ""}`)
      expect(trace).toEqual([
        "Ending undefined",
        "Stopping child2",
        "Stopping child2",
        "Abandoned child2",
        "Stopping child1",
        "Stopped child1",
        "Ended "
      ])
    })
  )

  otp("sup_stop_timeout_dynamic", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ strategy: "dynamic" })
      const onStop = uninterruptibly
      for (let n = 0; n < 5; n++) yield* sup.startChild(lab.spec(`slow${n}`, { shutdown: "1 second", onStop }))
      for (let n = 0; n < 5; n++) yield* sup.startChild(lab.spec(`quick${n}`, { shutdown: "1 second" }))
      // In parallel: the graces of the five run together.
      yield* stop(sup, 1)
      expect((yield* sup.trace).filter(({ _tag }) => _tag === "Abandoned").length).toBe(5)
      expect((yield* sup.trace).filter(({ _tag }) => _tag === "Stopped").length).toBe(5)
    })
  )

  otp("sup_stop_brutal_kill", (lab) =>
    Effect.gen(function* () {
      const child2 = lab.spec("child2", { shutdown: "brutal", onStop: uninterruptibly })
      const sup = yield* start({ children: [lab.spec("child1", { shutdown: "1 second" }), child2] })
      yield* stop(sup)
      const trace = (yield* sup.trace).filter(({ _tag }) => _tag === "Stopping" || _tag === "Abandoned")
      expect(trace).toMatchObject([
        { _tag: "Stopping", child: "child2", how: "kill" },
        { _tag: "Abandoned", child: "child2" },
        { _tag: "Stopping", child: "child1", how: "shutdown" }
      ])
    })
  )

  otp("sup_stop_brutal_kill_dynamic", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ strategy: "dynamic" })
      for (let n = 0; n < 5; n++) yield* sup.startChild(lab.spec(`child${n}`, { shutdown: "brutal" }))
      yield* stop(sup)
      const trace = yield* sup.trace
      expect(trace.filter((event) => event._tag === "Stopping" && event.how === "kill").length).toBe(5)
      expect(trace.filter(({ _tag }) => _tag === "Stopped").length).toBe(5)
    })
  )

  otp("sup_stop_race", (lab) =>
    Effect.gen(function* () {
      // The first to be stopped takes all others with it, each in another way.
      const ends: ReadonlyArray<End> = ["normal", "shutdown", "shutdown_term", "abnormal", "kill"]
      const others = ends.map((end) => lab.spec(end, { shutdown: "1 second" }))
      const onStop = Effect.forEach(ends, (end) => lab.end(end, end), { discard: true })
      const sup = yield* start({ intensity: 0, children: [...others, lab.spec("last", { onStop })] })
      yield* stop(sup)
      expect(yield* endOf(sup)).toBe("stopped")
      const trace = yield* sup.trace
      expect(trace.filter(({ _tag }) => _tag === "Stopped").length).toBe(6)
      expect(trace.some(({ _tag }) => _tag === "Restarting" || _tag === "Abandoned")).toBe(false)
    })
  )

  otp("sup_stop_non_shutdown_exit_dynamic", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ strategy: "dynamic" })
      const restarts = ["permanent", "transient", "temporary"] as const
      for (const restart of restarts) {
        yield* sup.startChild(lab.spec(restart, { restart, onStop: Effect.die("not by shutdown") }))
      }
      yield* stop(sup)
      expect(yield* endOf(sup)).toBe("stopped")
      const stopped = (yield* sup.trace).filter((event) => event._tag === "Stopped")
      expect(stopped.map(({ exit }) => Exit.hasDies(exit))).toEqual([true, true, true])
    })
  )
})

describe("OTP supervisor suite: administration", () => {
  otp("child_adm", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({})
      const spec = lab.spec("child1")
      expect(yield* counts(sup)).toEqual([0, 0, 0, 0])
      for (const missing of [sup.terminateChild("x"), sup.restartChild("x"), sup.deleteChild("x")]) {
        expect(yield* tag<unknown, { readonly _tag: string }, never>(missing)).toBe("NotFound")
      }
      const first = yield* sup.startChild(spec)
      expect((yield* sup.whichChildren)[0]!.handle).toBe(first)
      expect(yield* counts(sup)).toEqual([1, 1, 0, 1])
      expect(yield* tag(sup.startChild(spec))).toBe("AlreadyStarted")
      expect(yield* tag(sup.restartChild("child1"))).toBe("Running")
      expect(yield* tag(sup.deleteChild("child1"))).toBe("Running")

      yield* sup.terminateChild("child1")
      yield* sup.terminateChild("child1")
      expect(yield* counts(sup)).toEqual([1, 0, 0, 1])
      expect(yield* tag(sup.startChild(spec))).toBe("AlreadyPresent")
      const second = yield* sup.restartChild("child1")
      expect(second).not.toBe(first)

      yield* sup.terminateChild("child1")
      yield* sup.deleteChild("child1")
      expect(yield* tag(sup.restartChild("child1"))).toBe("NotFound")
      expect(yield* statuses(sup)).toBe("")
      expect(yield* tag(sup.startChild(spec))).toBe("ok")
      yield* stop(sup)
      expect(yield* tag(sup.whichChildren)).toBe("SupervisorEnded")
    })
  )

  otp("child_adm_simple", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ strategy: "dynamic" })
      yield* sup.startChild(lab.spec("child1"))
      expect(yield* counts(sup)).toEqual([1, 1, 0, 1])
      yield* sup.startChild(lab.spec("child2"))
      expect(yield* counts(sup)).toEqual([2, 2, 0, 2])
      expect(yield* tag(sup.startChild(lab.spec("child2")))).toBe("AlreadyStarted")
      expect(yield* tag(sup.restartChild("child1"))).toBe("SimpleOneForOne")
      expect(yield* tag(sup.deleteChild("child1"))).toBe("SimpleOneForOne")
      yield* sup.terminateChild("child1")
      expect(yield* statuses(sup)).toBe("child2:running")
      expect(yield* tag(sup.terminateChild("child1"))).toBe("NotFound")
    })
  )

  otp("child_specs", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({})
      const invalid: ReadonlyArray<unknown> = [
        { restart: "prmanent" },
        { shutdown: -10 },
        { shutdown: "soon" },
        { type: "wrker" },
        { initTimeout: "never" },
        { start: "mfa" }
      ]
      for (const part of invalid) {
        const spec = { ...lab.spec("child"), ...(part as Partial<ChildSpec>) }
        expect(yield* tag(sup.startChild(spec))).toBe("InvalidSpec")
        expect(yield* tag(start({ children: [spec] }))).toBe("InvalidSpec")
      }
      const valid: ReadonlyArray<Partial<ChildSpec>> = [
        { shutdown: "infinity", type: "supervisor" },
        { shutdown: 1000, type: "supervisor" },
        { restart: "temporary", shutdown: 1000 },
        { restart: "transient", shutdown: "1 second" },
        { shutdown: "infinity" },
        { shutdown: "brutal" }
      ]
      for (const [n, part] of valid.entries()) expect(yield* tag(sup.startChild(lab.spec(`c${n}`, part)))).toBe("ok")
      expect(yield* tag(start({ children: lab.specs("child child") }))).toBe("InvalidSpec")
      expect(lab.take().length).toBe(valid.length)
    })
  )

  otp("sup_flags", () =>
    Effect.gen(function* () {
      const invalid: ReadonlyArray<unknown> = [
        { strategy: "none_for_one" },
        { intensity: Number.POSITIVE_INFINITY },
        { intensity: -1 },
        { intensity: 1.5 },
        { period: 0 },
        { period: "Infinity" },
        { period: "a while" },
        { autoShutdown: "sometimes" }
      ]
      for (const flags of invalid) expect(yield* tag(start(flags as object))).toBe("InvalidSpec")
      expect(yield* tag(start({ silly_flag: true } as object))).toBe("ok")
    })
  )

  otp("extra_return", () =>
    Effect.gen(function* () {
      // A start that answers a handle of its own may put into it what it likes.
      const observers: Array<ExitObserver> = []
      const handle = {
        extra: "info",
        stop: () => observers.splice(0).forEach((observer) => observer.childExited(Exit.interrupt())),
        onExit: (observer: ExitObserver) => void observers.push(observer)
      }
      const sup = yield* start({})
      expect(yield* sup.startChild({ id: "child1", start: Effect.succeed(handle) })).toBe(handle)
      yield* sup.terminateChild("child1")
      expect(yield* sup.restartChild("child1")).toBe(handle)
      observers.splice(0).forEach((observer) => observer.childExited(Exit.die("crash")))
      yield* settled
      expect(yield* statuses(sup)).toBe("child1:running")
    })
  )
})

describe("OTP supervisor suite: policy", () => {
  const types = ["permanent", "transient", "temporary"] as const
  const endings = {
    normal: ["normal"],
    shutdown: ["shutdown", "shutdown_term"],
    abnormal: ["abnormal", "kill"]
  } as const
  for (const restart of types) {
    for (const [ending, ends] of Object.entries(endings)) {
      otp(`${restart}_${ending}` as Ported, (lab) =>
        Effect.forEach(
          ends,
          Effect.fnUntraced(function* (end) {
            const again = restart === "permanent" || (restart === "transient" && ending === "abnormal")
            const sup = yield* start({})
            yield* sup.startChild(lab.spec(end, { restart }))
            yield* die(lab, end, end)
            expect(lab.starts(end)).toBe(again ? 2 : 1)
            const kept = restart !== "temporary"
            expect(yield* counts(sup)).toEqual(again ? [1, 1, 0, 1] : kept ? [1, 0, 0, 1] : [0, 0, 0, 0])
          }),
          { discard: true }
        )
      )
    }
  }

  otp("faulty_application_shutdown", (lab) =>
    Effect.gen(function* () {
      // A worker deep in the tree whose init crashes: all above it fail to start, with the reason on top.
      const faulty: ChildSpec = { id: "app_faulty", start: Effect.die(new Error("undef")) }
      const inner = nested({ backoff: "none", name: "inner", children: [lab.spec("first"), faulty] })
      const failed = yield* Effect.flip(start({ name: "app", children: [lab.spec("zeroth"), inner] }))
      expect(failed).toMatchObject({ _tag: "StartFailed", supervisor: "app", child: "inner" })
      expect(failed.message).toContain("undef")
      expect(lab.take()).toEqual(["start zeroth", "start first", "stop first", "stop zeroth"])
    })
  )

  otp("temporary_bystander", (lab) =>
    Effect.gen(function* () {
      for (const strategy of ["one_for_all", "rest_for_one"] as const) {
        const sup = yield* start({ strategy, intensity: 2 })
        yield* sup.startChild(lab.spec("child1"))
        yield* sup.startChild(lab.spec("child2", { restart: "temporary" }))
        yield* die(lab, "child1", "normal")
        expect(yield* statuses(sup)).toBe("child1:running")
        expect(lab.take()).toEqual(["start child1", "start child2", "stop child1", "stop child2", "start child1"])
      }
    })
  )
})

describe("OTP supervisor suite: strategy", () => {
  otp("multiple_restarts", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ intensity: 1, period: "1 second", children: lab.specs("child1") })
      for (let n = 0; n < 100; n++) {
        yield* die(lab, "child1", "abnormal")
        yield* pass(2)
      }
      expect(lab.starts("child1")).toBe(101)
      yield* sup.terminateChild("child1")
      yield* sup.deleteChild("child1")
    })
  )

  otp("one_for_one", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ intensity: 2, children: lab.specs("child1 child2") })
      lab.take()
      yield* die(lab, "child1", "abnormal")
      expect(lab.take()).toEqual(["stop child1", "start child1"])
      expect(yield* counts(sup)).toEqual([2, 2, 0, 2])
      yield* die(lab, "child2", "abnormal")
      yield* die(lab, "child2", "abnormal")
      expect(yield* endOf(sup)).toBe("escalated")
    })
  )

  const escalation = (strategy: Strategy, victim: string, failing: string) => (lab: Lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ strategy, intensity: 4, children: lab.specs("child1 child2") })
      lab.take()
      lab.always(failing, "error")
      yield* die(lab, victim, "abnormal")
      expect(yield* endOf(sup)).toBe("escalated")
      const log = lab.take()
      // Restarts 1 to 4 are tried; the fifth is one too many.
      expect(log.filter((line) => line === `error ${failing}`).length).toBe(4)
      expect(log.filter((line) => line.startsWith("stop")).length).toBe(lab.starts("child1") + lab.starts("child2"))
    })
  otp("one_for_one_escalation", escalation("one_for_one", "child1", "child1"))
  otp("one_for_all_escalation", escalation("one_for_all", "child1", "child2"))
  otp("rest_for_one_escalation", escalation("rest_for_one", "child1", "child2"))
  otp("simple_one_for_one_escalation", escalation("dynamic", "child1", "child1"))

  otp("one_for_all", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ strategy: "one_for_all", intensity: 2, children: lab.specs("child1 child2") })
      lab.take()
      yield* die(lab, "child1", "abnormal")
      expect(lab.take()).toEqual(["stop child1", "stop child2", "start child1", "start child2"])
      expect(yield* counts(sup)).toEqual([2, 2, 0, 2])
      yield* die(lab, "child2", "abnormal")
      expect(lab.take()).toEqual(["stop child2", "stop child1", "start child1", "start child2"])
      yield* die(lab, "child2", "abnormal")
      expect(lab.take()).toEqual(["stop child2", "stop child1"])
      expect(yield* endOf(sup)).toBe("escalated")
    })
  )

  otp("one_for_all_other_child_fails_restart", (lab) =>
    Effect.gen(function* () {
      yield* start({ strategy: "one_for_all", intensity: 3, children: lab.specs("child1 child2") })
      lab.take()
      lab.plan("child2", "error")
      yield* die(lab, "child1", "abnormal")
      expect(lab.take()).toEqual([
        "stop child1",
        "stop child2",
        "start child1",
        "error child2",
        "stop child1",
        "start child1",
        "start child2"
      ])
    })
  )

  otp("rest_for_one", (lab) =>
    Effect.gen(function* () {
      const children = lab.specs("child1 child2 child3")
      const sup = yield* start({ strategy: "rest_for_one", intensity: 2, children })
      lab.take()
      yield* die(lab, "child2", "abnormal")
      expect(lab.take()).toEqual(["stop child2", "stop child3", "start child2", "start child3"])
      expect(yield* counts(sup)).toEqual([3, 3, 0, 3])
      yield* die(lab, "child3", "abnormal")
      expect(lab.take()).toEqual(["stop child3", "start child3"])
      yield* die(lab, "child2", "abnormal")
      expect(yield* endOf(sup)).toBe("escalated")
      expect(lab.take()).toEqual(["stop child2", "stop child3", "stop child1"])
    })
  )

  otp("rest_for_one_other_child_fails_restart", (lab) =>
    Effect.gen(function* () {
      yield* start({ strategy: "rest_for_one", intensity: 3, children: lab.specs("child1 child2") })
      lab.take()
      lab.plan("child2", "error")
      yield* die(lab, "child1", "abnormal")
      expect(lab.take()).toEqual(["stop child1", "stop child2", "start child1", "error child2", "start child2"])
    })
  )

  otp("simple_one_for_one", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ strategy: "dynamic", intensity: 2 })
      for (const spec of lab.specs("child1 child2")) yield* sup.startChild(spec)
      lab.take()
      yield* die(lab, "child1", "abnormal")
      expect(lab.take()).toEqual(["stop child1", "start child1"])
      expect(yield* counts(sup)).toEqual([2, 2, 0, 2])
      yield* die(lab, "child2", "abnormal")
      yield* die(lab, "child2", "abnormal")
      expect(yield* endOf(sup)).toBe("escalated")
    })
  )

  otp("simple_one_for_one_shutdown", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ strategy: "dynamic" })
      const slow = (id: string, seconds: number) =>
        sup.startChild(lab.spec(id, { shutdown: "2 seconds", onStop: Effect.sleep(seconds * 1000) }))
      yield* slow("child1", 1)
      yield* slow("child2", 1)
      yield* slow("child3", 5)
      lab.take()
      yield* Effect.forkChild(stop(sup))
      yield* pass(1)
      expect(lab.take()).toEqual(["stop child2", "stop child1"])
      expect(yield* endOf(sup)).toBeUndefined()
      yield* pass(1)
      expect(yield* endOf(sup)).toBe("stopped")
      yield* pass(3)
      expect((yield* sup.trace).slice(-2)).toEqual([
        { _tag: "Ended", reason: "stopped" },
        { _tag: "EndedLate", child: "child3" }
      ])
    })
  )

  otp("simple_one_for_one_extra", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ strategy: "dynamic", intensity: 2 })
      const first = yield* sup.startChild(lab.spec("child1"))
      yield* die(lab, "child1", "abnormal")
      const [row] = yield* sup.whichChildren
      expect(row!.handle).toBeDefined()
      expect(row!.handle).not.toBe(first)
    })
  )

  otp("simple_one_for_one_corruption", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ strategy: "dynamic" })
      const error = { id: "child1", start: "error" } as unknown as ChildSpec
      expect(yield* tag(sup.startChild(error))).toBe("InvalidSpec")
      expect(yield* tag(sup.startChild(lab.spec("child1")))).toBe("ok")
    })
  )
})

describe("OTP supervisor suite: robustness", () => {
  otp("child_unlink", () =>
    Effect.gen(function* () {
      // A handle that never says that it has ended.
      const naughty: ChildSpec = {
        id: "naughty",
        shutdown: "1 second",
        start: Effect.succeed({ stop: () => undefined, onExit: () => undefined })
      }
      const sup = yield* start({ children: [naughty] })
      const done = yield* Effect.forkChild(sup.terminateChild("naughty"))
      yield* pass(1)
      yield* Fiber.join(done)
      expect(yield* statuses(sup)).toBe("naughty:down")
    })
  )

  otp("tree", (lab) =>
    Effect.gen(function* () {
      const flags = { backoff: "none", intensity: 4, period: "1 hour" } as const
      const sup1 = nested({ ...flags, name: "sup1", children: lab.specs("child1 child2") })
      const sup2 = nested({ ...flags, name: "sup2" })
      const top = yield* start({ ...flags, strategy: "one_for_all" })
      yield* top.startChild(sup1)
      const second = (yield* top.startChild(sup2)) as Supervisor
      expect(yield* counts(top)).toEqual([2, 2, 2, 0])
      expect(yield* counts(second)).toEqual([0, 0, 0, 0])
      yield* second.startChild(lab.spec("child3"))
      yield* second.startChild(lab.spec("child4"))
      lab.take()
      // Only the one that dies is restarted.
      yield* die(lab, "child4", "abnormal")
      expect(lab.take()).toEqual(["stop child4", "start child4"])
      // The supervision tree is restarted, but not the children that were added to it.
      lab.always("child3", "error")
      yield* die(lab, "child3", "abnormal")
      expect(yield* counts(top)).toEqual([2, 2, 2, 0])
      expect(lab.take()).toEqual([
        "stop child3",
        "error child3",
        "error child3",
        "error child3",
        "stop child4",
        "stop child2",
        "stop child1",
        "start child1",
        "start child2"
      ])
      const [, row] = yield* top.whichChildren
      expect(row!.handle).not.toBe(second)
      expect(yield* counts(row!.handle as typeof second)).toEqual([0, 0, 0, 0])
    })
  )

  /** A supervisor whose child fails to start for as long as nobody stops it. */
  const hanging = Effect.fnUntraced(function* (lab: Lab, strategy: Strategy, ids: string) {
    const sup = yield* start({ strategy, intensity: 1_000_000, children: lab.specs(ids, { shutdown: "brutal" }) })
    lab.always("child1", "error")
    yield* die(lab, "child1", "abnormal")
    return sup
  })

  const hangingRestartLoop = (strategy: Strategy, ids: string, down: string) => (lab: Lab) =>
    Effect.gen(function* () {
      const sup = yield* hanging(lab, strategy, ids)
      expect(yield* tag(sup.startChild(lab.spec("child1")))).toBe("AlreadyPresent")
      expect(yield* tag(sup.restartChild("child1"))).toBe("Restarting")
      expect(yield* tag(sup.deleteChild("child1"))).toBe("Restarting")
      expect(yield* statuses(sup)).toBe(`child1:restarting${down}`)
      yield* sup.terminateChild("child1")
      expect(yield* statuses(sup)).toBe(`child1:down${down}`)
      lab.always("child1", "ok")
      yield* settled
      expect(yield* statuses(sup)).toBe(`child1:down${down}`)
      yield* sup.restartChild("child1")
      lab.always("child1", "error")
      yield* die(lab, "child1", "abnormal")
      yield* stop(sup)
      expect(yield* endOf(sup)).toBe("stopped")
    })
  otp("hanging_restart_loop", hangingRestartLoop("one_for_one", "child1", ""))
  otp(
    "hanging_restart_loop_rest_for_one",
    hangingRestartLoop("rest_for_one", "child1 child2 child3", " child2:down child3:down")
  )

  otp("hanging_restart_loop_simple", (lab) =>
    Effect.gen(function* () {
      const sup = yield* hanging(lab, "dynamic", "child1")
      expect(yield* tag(sup.restartChild("child1"))).toBe("SimpleOneForOne")
      expect(yield* tag(sup.deleteChild("child1"))).toBe("SimpleOneForOne")
      expect(yield* statuses(sup)).toBe("child1:restarting")
      expect(yield* counts(sup)).toEqual([1, 0, 0, 1])
      yield* sup.terminateChild("child1")
      expect(yield* statuses(sup)).toBe("")
      lab.always("child1", "ok")
      yield* sup.startChild(lab.spec("child1"))
      lab.always("child1", "error")
      yield* die(lab, "child1", "abnormal")
      yield* stop(sup)
      expect(yield* endOf(sup)).toBe("stopped")
    })
  )

  otp("count_children", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ strategy: "dynamic" })
      const ids = Array.from({ length: 2000 }, (_, n) => `child${n}`)
      for (const id of ids) yield* sup.startChild(lab.spec(id, { restart: "temporary" }))
      expect((yield* sup.whichChildren).length).toBe(2000)
      expect(yield* counts(sup)).toEqual([2000, 2000, 0, 2000])
      for (const id of ids) yield* lab.end(id, "kill")
      yield* settled
      expect(yield* counts(sup)).toEqual([0, 0, 0, 0])
    })
  )

  otp("count_restarting_children", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ strategy: "dynamic", intensity: 1_000_000 })
      for (const spec of lab.specs("a b c")) yield* sup.startChild(spec)
      for (const id of ["a", "b", "c"]) lab.always(id, "error")
      for (const [n, id] of ["a", "b", "c"].entries()) {
        expect(yield* counts(sup)).toEqual([3, 3 - n, 0, 3])
        yield* die(lab, id, "abnormal")
      }
      expect(yield* counts(sup)).toEqual([3, 0, 0, 3])
      lab.always("b", "ok")
      yield* settled
      expect(yield* counts(sup)).toEqual([3, 1, 0, 3])
    })
  )

  otp("order_of_children", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ strategy: "rest_for_one", intensity: 100, children: lab.specs("c1 c2 c3 c4 c5") })
      const order = "c1:running c2:running c3:running c4:running c5:running"
      for (const id of ["c3", "c1", "c5"]) {
        yield* die(lab, id, "kill")
        expect(yield* statuses(sup)).toBe(order)
      }
      // Several at the same moment.
      for (const id of ["c4", "c2", "c5"]) yield* lab.end(id, "kill")
      yield* settled
      expect(yield* statuses(sup)).toBe(order)
      yield* sup.terminateChild("c2")
      yield* sup.restartChild("c2")
      expect(yield* statuses(sup)).toBe(order)
      lab.take()
      yield* stop(sup)
      expect(lab.take()).toEqual(["stop c5", "stop c4", "stop c3", "stop c2", "stop c1"])
    })
  )

  const forgets = (lab: Lab, strategies: ReadonlyArray<Strategy>, ends: ReadonlyArray<End | "supervisor">) =>
    Effect.gen(function* () {
      for (const strategy of strategies) {
        const sup = yield* start({ strategy, intensity: 1000 })
        for (const end of ends) {
          const spec = lab.spec(end, { restart: "temporary" })
          for (let round = 0; round < 2; round++) {
            yield* sup.startChild(spec)
            yield* end === "supervisor" ? sup.terminateChild(end) : die(lab, end, end)
          }
        }
        expect(yield* counts(sup)).toEqual([0, 0, 0, 0])
      }
    })
  otp("do_not_save_start_parameters_for_temporary_children", (lab) =>
    forgets(lab, ["one_for_one", "one_for_all", "rest_for_one", "dynamic"], ["normal"])
  )
  otp("do_not_save_child_specs_for_temporary_children", (lab) =>
    Effect.gen(function* () {
      const strategies = ["one_for_one", "one_for_all", "rest_for_one"] as const
      yield* forgets(lab, strategies, ["kill", "normal", "abnormal", "supervisor"])
      for (const strategy of strategies) {
        const sup = yield* start({ strategy, intensity: 1000, children: lab.specs("p t") })
        yield* die(lab, "p", "normal")
        expect(yield* tag(sup.startChild(lab.spec("p")))).toBe("AlreadyStarted")
        yield* sup.terminateChild("p")
        expect(yield* tag(sup.startChild(lab.spec("p")))).toBe("AlreadyPresent")
      }
    })
  )

  // Linear or not shows in the work done, which is exact, and not in the time, which is not.
  const startAndStop = (strategy: Strategy, restart: "permanent" | "temporary") =>
    Effect.fnUntraced(function* (lab: Lab, size: number) {
      const sup = yield* start({ strategy })
      for (let n = 0; n < size; n++) yield* sup.startChild(lab.spec(`child${n}`, { restart }))
      expect((yield* sup.countChildren).active).toBe(size)
      for (let n = 0; n < size; n++) yield* sup.terminateChild(`child${n}`)
      expect((yield* sup.countChildren).active).toBe(0)
      return sup
    })

  otp("scale_many_temporary_children", (lab) =>
    Effect.gen(function* () {
      const sup = yield* startAndStop("dynamic", "temporary")(lab, 10_000)
      expect(yield* counts(sup)).toEqual([0, 0, 0, 0])
      yield* stop(sup)
    })
  )

  otp("scale_start_stop_many_children", (lab) =>
    Effect.gen(function* () {
      yield* startAndStop("one_for_one", "permanent")(lab, 10_000)
      const sup = yield* start({
        strategy: "one_for_one",
        children: lab.specs(Array.from({ length: 10_000 }, (_, n) => `c${n}`).join(" "))
      })
      yield* stop(sup)
      expect(lab.log.filter((line) => line.startsWith("stop c")).length).toBe(20_000)
    })
  )
})

describe("OTP supervisor suite: significant children", () => {
  const ends: ReadonlyArray<End> = ["normal", "shutdown", "shutdown_term", "abnormal", "kill"]

  const nonsignificant = (restart: "temporary" | "transient") => (lab: Lab) =>
    Effect.gen(function* () {
      for (const autoShutdown of ["never", "any_significant", "all_significant"] as const) {
        for (const end of ends) {
          const sup = yield* start({ autoShutdown })
          yield* sup.startChild(lab.spec("child1", { restart }))
          yield* die(lab, "child1", end)
          expect(yield* endOf(sup)).toBeUndefined()
          yield* stop(sup)
        }
      }
    })
  otp("nonsignificant_temporary", nonsignificant("temporary"))
  otp("nonsignificant_transient", nonsignificant("transient"))

  const significant = (restart: "temporary" | "transient", strategy: Strategy) => (lab: Lab) =>
    Effect.gen(function* () {
      const options = { restart, significant: true } as const
      const never = yield* start({ strategy })
      expect(yield* tag(never.startChild(lab.spec("child1", options)))).toBe("InvalidSpec")
      for (const end of ends) {
        const restarted = restart === "transient" && (end === "abnormal" || end === "kill")
        const any = yield* start({ strategy, autoShutdown: "any_significant", children: lab.specs("a b", options) })
        yield* die(lab, "a", end)
        expect(yield* endOf(any)).toBe(restarted ? undefined : "auto_shutdown")
        yield* stop(any)

        const all = yield* start({ strategy, autoShutdown: "all_significant", children: lab.specs("a b", options) })
        yield* die(lab, "a", end)
        expect(yield* endOf(all)).toBeUndefined()
        yield* die(lab, "b", "normal")
        expect(yield* endOf(all)).toBe(restarted ? undefined : "auto_shutdown")
        yield* stop(all)
      }
      // What the supervisor is told to stop is not the child's own end.
      const any = yield* start({ strategy, autoShutdown: "any_significant", children: lab.specs("a b", options) })
      yield* any.terminateChild("a")
      yield* settled
      expect(yield* endOf(any)).toBeUndefined()
      // A stopped significant child counts as ended.
      const all = yield* start({ strategy, autoShutdown: "all_significant", children: lab.specs("a b", options) })
      yield* all.terminateChild("a")
      yield* die(lab, "b", "normal")
      expect(yield* endOf(all)).toBe("auto_shutdown")
    })
  otp("significant_temporary", significant("temporary", "one_for_one"))
  otp("significant_transient", significant("transient", "one_for_one"))
  otp("significant_simple", (lab) =>
    Effect.andThen(significant("temporary", "dynamic")(lab), significant("transient", "dynamic")(lab))
  )

  otp("significant_bystander", (lab) =>
    Effect.gen(function* () {
      for (const strategy of ["one_for_all", "rest_for_one"] as const) {
        for (const autoShutdown of ["any_significant", "all_significant"] as const) {
          const victim = lab.spec("victim", { restart: "temporary", significant: true })
          const sup = yield* start({ strategy, autoShutdown, children: [lab.spec("child1"), victim] })
          yield* die(lab, "child1", "abnormal")
          expect(yield* endOf(sup)).toBeUndefined()
          expect(yield* statuses(sup)).toBe("child1:running")
          yield* stop(sup)
        }
      }
    })
  )

  otp("significant_escalation", (lab) =>
    Effect.gen(function* () {
      const options = { restart: "transient", significant: true } as const
      const inner = nested(
        { name: "inner", autoShutdown: "any_significant", children: lab.specs("worker", options) },
        options
      )
      const outer = yield* start({ autoShutdown: "any_significant", children: [inner, lab.spec("other")] })
      yield* die(lab, "worker", "normal")
      expect(yield* endOf(outer)).toBe("auto_shutdown")
      expect(lab.take()).toEqual(["start worker", "start other", "stop worker", "stop other"])
    })
  )
})

describe("OTP supervisor suite: completeness", () => {
  it("every case is ported or left out with a reason, and every ported one has a test", () => {
    expect([...ported, ...Object.keys(leftOut)].toSorted()).toEqual([...suite].toSorted())
    expect(new Set(suite).size).toBe(suite.length)
    expect([...ran].toSorted()).toEqual([...ported].toSorted())
  })
})
