/**
 * Clock steps: waits and limits whose wall clock is set a day ahead or back in their midst. docs/clocks.md lists all
 * timers of the daemon.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { createHash } from "node:crypto"
import { Duration, Effect, Fiber, FileSystem, Queue } from "effect"
import { SocketServer } from "effect/socket"
import { TestClock } from "effect/testing"
import { MessageFiles } from "../../../src/agents/prompt/MessageFiles.ts"
import * as Outbox from "../../../src/alerts/Outbox.ts"
import type { AgentPort } from "../../../src/domain/AgentPort.ts"
import { StorageError } from "../../../src/core/event-log/EventLog.ts"
import { untilItPasses } from "../../../src/core/event-log/StorageFailure.ts"
import { ask } from "../../../src/goals/AgentQuery.ts"
import { limited, type ConnectionLimits } from "../../../src/api/rpc/ConnectionLimits.ts"
import * as Supervisor from "../../../src/core/supervision/Supervisor.ts"
import { only, play } from "../backends/ClaudeWorld.ts"
import * as Channels from "../channels/World.ts"
import * as Plates from "../plates/World.ts"
import * as Support from "../../support/backend-run.ts"
import * as Scratch from "../../support/Scratch.ts"
import * as SteppedClock from "../../support/SteppedClock.ts"

const { DAY } = SteppedClock
const STEPS = [
  ["a day ahead", DAY],
  ["a day back", -DAY]
] as const
const HOUR = 3_600_000

describe.each(STEPS)("the wall clock is set %s:", (_, ms) => {
  it.effect("a store that is busy is tried for as long as before, no longer and no shorter", () =>
    Effect.gen(function* () {
      const clock = yield* SteppedClock.make
      const busy = new StorageError({ reason: "locked", message: "busy", remedy: "wait" })
      const trying = yield* Effect.forkChild(Effect.exit(clock.within(untilItPasses(Duration.seconds(10))(busy))))
      yield* TestClock.adjust("5 seconds")
      yield* clock.step(ms)
      yield* TestClock.adjust("4 seconds")
      assert.isUndefined(trying.pollUnsafe(), "after 9 of 10 seconds")
      yield* TestClock.adjust("2 seconds")
      assert.isDefined(trying.pollUnsafe(), "after 11 of 10 seconds")
      yield* Fiber.interrupt(trying)
    })
  )

  it.effect("no connection is hung up on before its time, nor kept beyond it", () =>
    Effect.gen(function* () {
      const clock = yield* SteppedClock.make
      const sweeps: Array<number> = []
      const rooms: ConnectionLimits = {
        enter: () => {},
        settle: () => {},
        take: () => {},
        leave: () => {},
        wait: () => 0,
        sweep: (now) => void sweeps.push(now),
        isWatching: () => true
      }
      const server = SocketServer.SocketServer.of({
        address: { _tag: "UnixPathAddress", path: "/none" } as never,
        run: () => Effect.never
      })
      yield* clock.within(limited(server, rooms))
      yield* TestClock.adjust("2 seconds")
      yield* clock.step(ms)
      yield* TestClock.adjust("2 seconds")
      const gaps = sweeps.slice(1).map((now, index) => now - sweeps[index]!)
      assert.deepStrictEqual(gaps, [1000, 1000, 1000])
    }).pipe(Effect.scoped)
  )

  it.effect("a content that waits for its message is kept for ten minutes, and no longer", () =>
    Effect.gen(function* () {
      const clock = yield* SteppedClock.make
      const folder = yield* Scratch.folder("agentd-files-")
      const files = new MessageFiles(yield* FileSystem.FileSystem, folder)
      const data = new TextEncoder().encode("content")
      const sha256 = createHash("sha256").update(data).digest("hex")
      const disk = yield* FileSystem.FileSystem
      const isKept = Effect.andThen(clock.within(files.sweep(new Set())), disk.exists(files.pathOf(sha256)))
      yield* clock.within(files.add({ sha256, size: data.length, at: 0, data }))
      yield* clock.step(ms)
      yield* TestClock.adjust("9 minutes")
      assert.isTrue(yield* isKept)
      yield* TestClock.adjust("2 minutes")
      assert.isFalse(yield* isKept)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("who has the floor of a channel keeps it while it is alive, and loses it when it is silent", () =>
    Effect.gen(function* () {
      const clock = yield* SteppedClock.make
      const story = Channels.run((world) =>
        Effect.gen(function* () {
          yield* world.configure({ reviews: { agents: ["pm", "dev"], turnConfig: { announceTimeouts: false } } })
          yield* world.come("pm", "dev")
          yield* world.post("Look at #42")
          yield* world.speaking("pm")
          for (const beat of [1, 2, 3, 4]) {
            if (beat === 2) yield* clock.step(ms)
            yield* world.after(40)
            yield* world.crew.active("pm")
            yield* world.quiet
          }
          assert.strictEqual((yield* world.show()).channel.floor, "pm")
          // a limit that is set anew after a step back may begin with the step
          yield* world.after(61)
          if ((yield* world.show()).channel.floor === "pm") yield* world.after(61)
          yield* world.speaking("dev")
        })
      )
      yield* clock.within(story)
    })
  )

  it.effect("restarts count within their period: those before the step, too, and no longer than the period", () =>
    Effect.gen(function* () {
      const clock = yield* SteppedClock.make
      const crashing = Effect.gen(function* () {
        const crash = yield* Queue.unbounded<void>()
        const child = { id: "a", start: Effect.succeed(Effect.andThen(Queue.take(crash), Effect.die("crash"))) }
        const root = yield* Supervisor.make({ name: "root", intensity: 2, period: "10 seconds", children: [child] })
        const ended = yield* Effect.forkChild(root.ended, { startImmediately: true })
        const crashes = Effect.andThen(Queue.offer(crash, undefined), TestClock.adjust("1 second"))
        yield* crashes
        yield* crashes
        yield* clock.step(ms)
        yield* TestClock.adjust("10 seconds")
        yield* crashes
        yield* crashes
        assert.isUndefined(ended.pollUnsafe(), "the first two are past their period")
        yield* clock.step(-ms)
        yield* crashes
        assert.isDefined(ended.pollUnsafe(), "three within it")
      })
      yield* clock.within(Effect.scoped(crashing))
    })
  )

  it.effect("a goal's question is waited for as long as before", () =>
    Effect.gen(function* () {
      const clock = yield* SteppedClock.make
      let isInterrupted = false
      const asked = ask({
        agents: {
          members: () => Effect.succeed([{ agent: "pm", online: true, busy: true, spent: false, can: [] }]),
          fate: () => Effect.succeed({ _tag: "Carried", turnId: "t1" }),
          interrupt: () => Effect.sync(() => (isInterrupted = true))
        } as unknown as AgentPort["Service"],
        to: { conversation: "c", agent: "pm" },
        from: "goal/g1",
        key: "k",
        text: "A plan?",
        tries: 1,
        timeout: 60_000,
        news: Effect.sleep("1 second"),
        waits: () => {},
        howEnded: () => Effect.succeed("it ended"),
        read: () => Effect.succeed(1)
      })
      const asking = yield* Effect.forkChild(clock.within(asked))
      yield* TestClock.adjust("30 seconds")
      yield* clock.step(ms)
      yield* TestClock.adjust("28 seconds")
      assert.isFalse(isInterrupted, "after 58 of 60 seconds")
      yield* TestClock.adjust("6 seconds")
      assert.isTrue(isInterrupted, "after 64 of 60 seconds")
      yield* Fiber.interrupt(asking)
    })
  )

  it.effect("sessions are checked on, and a hook is heard at once", () =>
    Effect.gen(function* () {
      const clock = yield* SteppedClock.make
      const story = Plates.run(({ board }) =>
        Effect.gen(function* () {
          yield* board.hook("UserPromptSubmit", "s1")
          yield* board.hook("UserPromptSubmit", "s2")
          yield* board.settled("s1")
          yield* board.check()
          yield* clock.step(ms)
          const before = (yield* board.plates.health).checkedAt
          // ahead, one round is passed over: the machine may have slept
          for (const _ of [1, 2]) {
            yield* TestClock.adjust("10 seconds")
            yield* board.settled("s1")
          }
          assert.notStrictEqual((yield* board.plates.health).checkedAt, before)
          yield* board.hook("Stop", "s2")
          assert.strictEqual((yield* board.settled("s2")).status, "Idle")
        })
      )
      yield* clock.within(story)
    })
  )

  it.live("a turn in which nothing is heard is ended for its silence all the same", () =>
    Effect.gen(function* () {
      const clock = yield* SteppedClock.make
      const played = play({
        processes: [{ turns: [[{ text: "Then" }, { hang: true }]] }],
        config: { silence: Duration.millis(400) },
        on: () => clock.step(ms)
      })
      const { events } = yield* clock.within(played)
      assert.strictEqual(only(events, "TurnError")[0]?.errorType, "silence")
    }).pipe(Effect.scoped, Effect.provide(Support.layer))
  )
})

describe("a mail that was sent with the clock a day ahead", () => {
  const alert = (cause: number, at: number) => ({
    kind: "agent.stopped" as const,
    key: `k${cause}`,
    stream: "demo",
    actor: "worker/a",
    name: "a",
    headline: "a stopped",
    reason: "r",
    remedy: null,
    errors: null,
    runId: null,
    cause,
    at,
    count: 1
  })
  const route: Outbox.Route = { destination: "d", digestWindow: 30_000, maxPerHour: 20 }

  it.each([
    ["one", 1, 60_000],
    ["an hour's worth", 20, HOUR]
  ])("(%s) delays the next fatal stop's by the bounds of one hour at most", (_what, count, most) => {
    let [state, events] = [Outbox.initial, 0]
    const now = 10 * DAY
    const append = (draft: ReturnType<typeof Outbox.queue>, at: number) =>
      (state = Outbox.evolve(state, { ...draft, eventId: ++events, at }))
    const queue = (at: number) =>
      append(Outbox.queue(state, { alert: alert(events + 1, at), hash: "abcdef0123", upTo: events + 1 }, route, at), at)
    for (let n = 0; n < count; n++) {
      const at = now + DAY + n * 60_000
      queue(at)
      const attempt = { batch: state.batches[0]!, destination: "d", messageId: "<m@x>" }
      append(Outbox.sent(attempt, { to: ["ada@example.org"], rejected: [], response: "250" }, at), at)
    }
    queue(now)
    assert.isAtMost(Outbox.readyAt(state, state.batches[0]!, now)! - now, most)
  })
})
