/**
 * The wait of a supervisor between the restarts of a child that fails again: the
 * times are its Schedule's, the clock is the test's.
 */
import { describe, expect, it } from "@effect/vitest"
import { Clock, Effect, type Scope } from "effect"
import { TestClock } from "effect/testing"
import type { Options } from "../../../src/core/supervision/SupervisorOptions.ts"
import { defaultBackoff } from "../../../src/core/supervision/SupervisorOptions.ts"
import {
  die,
  endOf,
  Lab,
  pass,
  settled,
  start as startAtOnce,
  statuses,
  stop,
  tag
} from "../../world/supervision/otp/Lab.ts"

const fact = (name: string, body: (lab: Lab) => Effect.Effect<void, unknown, Scope.Scope>) =>
  it.effect(name, () =>
    Effect.andThen(
      TestClock.adjust(0),
      Effect.suspend(() => body(new Lab()))
    )
  )

/** As the daemon's supervisors: 10 restarts in 30 s, and the default backoff. */
const start = (options: Partial<Options>) =>
  startAtOnce({ intensity: 10, period: "30 seconds", backoff: defaultBackoff, ...options })

const millis = (wait: number) => Effect.andThen(TestClock.adjust(wait), settled)

describe("Supervisor: its backoff", () => {
  fact("the first restart is at once, the next wait 20 ms doubling to 2 s, and the window still trips", (lab) =>
    Effect.gen(function* () {
      const restarted: Array<number> = []
      const sup = yield* start({ children: lab.specs("a") })
      for (let crash = 0; crash < 10; crash++) {
        const before = yield* Clock.currentTimeMillis
        yield* die(lab, "a", "abnormal")
        while (!lab.alive("a")) yield* millis(10)
        restarted.push((yield* Clock.currentTimeMillis) - before)
      }
      expect(restarted).toEqual([0, 20, 40, 80, 160, 320, 640, 1_280, 2_000, 2_000])
      yield* die(lab, "a", "abnormal")
      expect(yield* endOf(sup)).toBe("escalated")
    })
  )

  fact("a child that fails at once trips any window: its waits fit into the period", (lab) =>
    Effect.gen(function* () {
      for (const [intensity, seconds] of [
        [1, 5],
        [100, 30],
        [10, 1],
        [50, 600]
      ] as const) {
        const sup = yield* start({ intensity, period: `${seconds} seconds`, children: lab.specs("a") })
        lab.always("a", "error")
        yield* die(lab, "a", "abnormal")
        yield* pass(seconds)
        expect(yield* endOf(sup), `${intensity} in ${seconds} s`).toBe("escalated")
        lab.always("a", "ok")
      }
    })
  )

  fact("a start that fails waits like a crash", (lab) =>
    Effect.gen(function* () {
      yield* start({ children: lab.specs("a") })
      lab.plan("a", "error", "error")
      yield* die(lab, "a", "abnormal")
      expect(lab.take()).toEqual(["start a", "stop a", "error a"])
      yield* millis(19)
      expect(lab.take()).toEqual([])
      yield* millis(1)
      expect(lab.take()).toEqual(["error a"])
      yield* millis(39)
      expect(lab.take()).toEqual([])
      yield* millis(1)
      expect(lab.take()).toEqual(["start a"])
    })
  )

  fact("is each child's own: a sibling that crashes meanwhile restarts at once", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ children: lab.specs("a b") })
      for (let crash = 0; crash < 5; crash++) {
        yield* die(lab, "a", "abnormal")
        if (crash < 4) yield* millis(1_000)
      }
      expect(yield* statuses(sup)).toBe("a:restarting b:running")
      yield* die(lab, "b", "abnormal")
      expect(yield* statuses(sup)).toBe("a:restarting b:running")
      yield* millis(160)
      expect(yield* statuses(sup)).toBe("a:running b:running")
      expect(lab.starts("b")).toBe(2)
    })
  )

  fact("begins anew when the window has passed", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ children: lab.specs("a") })
      for (let crash = 0; crash < 5; crash++) {
        yield* die(lab, "a", "abnormal")
        yield* millis(1_000)
      }
      yield* pass(30)
      yield* die(lab, "a", "abnormal")
      expect(yield* statuses(sup)).toBe("a:running")
      yield* die(lab, "a", "abnormal")
      expect(yield* statuses(sup)).toBe("a:restarting")
      yield* millis(20)
      expect(yield* statuses(sup)).toBe("a:running")
    })
  )

  fact("the siblings that the strategy takes down wait with it, and come up behind it", (lab) =>
    Effect.gen(function* () {
      for (const strategy of ["one_for_all", "rest_for_one"] as const) {
        const sup = yield* start({ strategy, children: lab.specs("a b c") })
        yield* die(lab, "b", "abnormal")
        lab.take()
        yield* die(lab, "b", "abnormal")
        const others = strategy === "one_for_all" ? ["stop c", "stop a"] : ["stop c"]
        expect(lab.take()).toEqual(["stop b", ...others])
        expect(yield* statuses(sup)).toBe(
          strategy === "one_for_all" ? "a:down b:restarting c:down" : "a:running b:restarting c:down"
        )
        yield* millis(20)
        expect(lab.take()).toEqual(
          strategy === "one_for_all" ? ["start a", "start b", "start c"] : ["start b", "start c"]
        )
        yield* stop(sup)
        lab.take()
      }
    })
  )

  fact("a sibling's crash that restarts the waiting child ends its wait", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ strategy: "rest_for_one", children: lab.specs("a b") })
      yield* die(lab, "b", "abnormal")
      yield* die(lab, "b", "abnormal")
      expect(yield* statuses(sup)).toBe("a:running b:restarting")
      lab.take()
      yield* die(lab, "a", "abnormal")
      expect(lab.take()).toEqual(["stop a", "start a", "start b"])
      yield* pass(3)
      expect(lab.take()).toEqual([])
    })
  )

  fact("a stop in the wait works at once, and nothing is started behind it", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ children: lab.specs("a b") })
      yield* die(lab, "a", "abnormal")
      yield* die(lab, "a", "abnormal")
      expect(yield* statuses(sup)).toBe("a:restarting b:running")
      lab.take()
      yield* stop(sup)
      expect(yield* endOf(sup)).toBe("stopped")
      yield* pass(3)
      expect(lab.take()).toEqual(["stop b"])
    })
  )

  fact("terminateChild in the wait works at once; the other refusals are a restarting child's", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ children: lab.specs("a") })
      yield* die(lab, "a", "abnormal")
      yield* die(lab, "a", "abnormal")
      expect(yield* tag(sup.startChild(lab.spec("a")))).toBe("AlreadyPresent")
      expect(yield* tag(sup.restartChild("a"))).toBe("Restarting")
      expect(yield* tag(sup.deleteChild("a"))).toBe("Restarting")
      yield* sup.terminateChild("a")
      expect(yield* statuses(sup)).toBe("a:down")
      yield* pass(3)
      expect(yield* statuses(sup)).toBe("a:down")
      expect(yield* tag(sup.restartChild("a"))).toBe("ok")
      expect(lab.starts("a")).toBe(3)
    })
  )

  fact("a dynamic child waits, too, and is forgotten when it is terminated meanwhile", (lab) =>
    Effect.gen(function* () {
      const sup = yield* start({ strategy: "dynamic" })
      for (const spec of lab.specs("a b")) yield* sup.startChild(spec)
      for (const id of ["a", "b"]) {
        yield* die(lab, id, "abnormal")
        yield* die(lab, id, "abnormal")
      }
      expect(yield* statuses(sup)).toBe("a:restarting b:restarting")
      yield* sup.terminateChild("a")
      yield* millis(20)
      expect(yield* statuses(sup)).toBe("b:running")
    })
  )

  fact("is refused where it makes no sense", () =>
    Effect.gen(function* () {
      for (const backoff of [
        { ...defaultBackoff, base: -1 },
        { ...defaultBackoff, factor: 0 },
        { ...defaultBackoff, cap: NaN }
      ]) {
        expect(yield* tag(start({ backoff }))).toBe("InvalidSpec")
      }
    })
  )
})
