/** The weather as agents see it, over a log in memory: who may ask, and when. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Effect, Fiber, Layer, type Scope } from "effect"
import { TestClock } from "effect/testing"
import * as DaemonLog from "../../../src/app/DaemonLog.ts"
import { type Account, type News, ProviderStatus } from "../../../src/domain/ProviderStatus.ts"
import * as ActorSystem from "../../../src/core/event-actor/ActorSystem.ts"
import * as DeadLetters from "../../../src/core/event-actor/DeadLetters.ts"
import * as EventLoop from "../../../src/core/event-actor/EventLoop.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import { Log } from "../../../src/core/event-log/Log.ts"
import * as Providers from "../../../src/providers/Providers.ts"
import * as DynamicSupervisor from "../../../src/core/supervision/DynamicSupervisor.ts"
import { Redact } from "../../../src/core/event-log/Redact.ts"
import * as Supervisor from "../../../src/core/supervision/Supervisor.ts"
import * as Scratch from "../../support/Scratch.ts"
import { until } from "../../world/channels/World.ts"

const T0 = Date.parse("2026-11-20T09:00:00Z")
const account: Account = { provider: "anthropic", account: "login" }

const begin = Effect.gen(function* () {
  const supervisor = DynamicSupervisor.make({ name: "providers", strategy: "one_for_one" })
  const writes = yield* Log
  const context = yield* Layer.build(
    Providers.layer({ supervisor }).pipe(
      Layer.provide(ActorSystem.layer({ log: writes, strict: true })),
      Layer.provide(
        Layer.mergeAll(DeadLetters.layerMemory(), EventLoop.layer, Layer.succeed(EventLog, yield* EventLog))
      )
    )
  )
  yield* Effect.orDie(Supervisor.make({ name: "root", children: [supervisor.child] }))
  const weather = Context.get(context, ProviderStatus)
  const woken: Array<string> = []
  const admits = (who: string) => weather.admits(account, who, () => void woken.push(who))
  // nobody may ask before the log is read
  yield* until(
    "the log is read",
    Effect.sync(() => admits("reader")),
    (isFair) => isFair
  )
  woken.length = 0
  const failed = (who: string, began: number) => {
    const news: News = { _tag: "failed", began, message: "529 overloaded" }
    return weather.tell(account, who, news)
  }
  const state = (wanted: string) =>
    until(
      wanted,
      Effect.sync(() => weather.standing(account)?.state),
      (now) => now === wanted
    )
  return { admits, failed, state, weather, woken }
})

const test = (
  name: string,
  body: () => Effect.Effect<void, unknown, Scope.Scope | EventLog | Log>,
  log: () => Layer.Layer<EventLog | Log, unknown> = () => DaemonLog.layerMemory
) => it.effect(name, () => Effect.andThen(TestClock.setTime(T0), Effect.scoped(body())).pipe(Effect.provide(log())))

/** In a file: what is appended is durable later. */
const onDisk = () =>
  Layer.unwrap(
    Effect.map(Scratch.folder("agentd-weather-"), (folder) => DaemonLog.layer({ file: `${folder}/runes.db` }))
  ).pipe(Layer.provide(Redact.layer))

describe("who may ask", () => {
  test("one alone once its time has come, however the wall clock was set meanwhile", () =>
    Effect.gen(function* () {
      const real = yield* Clock.Clock
      let back = 0
      const clock: Clock.Clock = { ...real, currentTimeMillisUnsafe: () => real.currentTimeMillisUnsafe() - back }
      const { admits, failed, state, woken } = yield* Effect.provideService(begin, Clock.Clock, clock)
      yield* failed("ann", T0)
      yield* state("Degraded")
      assert.deepStrictEqual([admits("bob"), admits("cy")], [false, false])
      back = 3_600_000
      yield* TestClock.adjust(2_000)
      yield* until(
        "both are woken",
        Effect.sync(() => woken.length),
        (count) => count === 2
      )
      assert.deepStrictEqual([admits("bob"), admits("cy")], [true, false])
      // bob tells nothing for a minute
      back = 2 * 3_600_000
      yield* TestClock.adjust(60_000)
      yield* until(
        "cy is woken",
        Effect.sync(() => woken.at(-1)),
        (last) => last === "cy"
      )
      assert.isTrue(admits("cy"))
    }))

  test("nobody, once a limit or an outage is told: it is in the log before anything that follows from it", () =>
    Effect.gen(function* () {
      const { admits, weather } = yield* begin
      const log = yield* EventLog
      const told: ReadonlyArray<readonly [News, string]> = [
        [{ _tag: "failed", began: T0, message: "529 overloaded" }, "Degraded"],
        [{ _tag: "limited", until: T0 + 120_000, message: "429 too many requests" }, "LimitedUntil"]
      ]
      for (const [news, state] of told) {
        yield* weather.tell(account, "ann", news)
        assert.deepStrictEqual([admits("bob"), weather.standing(account)?.state], [false, state])
        assert.strictEqual((yield* log.tail({ kinds: ["provider.moved"] }, 1))[0]?.to, state)
      }
    }))

  test(
    "nobody beside the one that finds out, until what it found is in the log",
    () =>
      Effect.gen(function* () {
        const { admits, failed, woken } = yield* begin
        yield* failed("ann", T0)
        assert.isFalse(admits("bob"))
        yield* TestClock.adjust(2_000)
        yield* until(
          "bob is woken",
          Effect.sync(() => woken.length),
          (count) => count === 1
        )
        assert.isTrue(admits("bob"))
        const telling = yield* Effect.forkChild(failed("bob", T0 + 2_000), { startImmediately: true })
        assert.isFalse(admits("cy"))
        yield* Fiber.join(telling)
        assert.isFalse(admits("cy"))
      }),
    onDisk
  )

  test("failures that are told at once are one provider's, in one stream", () =>
    Effect.gen(function* () {
      const { failed, state } = yield* begin
      yield* Effect.forEach(["a", "b", "c", "d"], (who) => failed(who, T0 - 5), { concurrency: "unbounded" })
      yield* state("Degraded")
      const log = yield* EventLog
      assert.lengthOf(yield* log.tail({ kinds: ["provider.moved"] }, 10), 1)
    }))

  test("fair weather leaves no trace", () =>
    Effect.gen(function* () {
      const { admits, weather } = yield* begin
      yield* weather.tell(account, "ann", { _tag: "answered", began: T0 })
      assert.isTrue(admits("bob"))
      assert.isUndefined(weather.standing(account))
    }))
})
