/**
 * Clock steps: waits and limits whose wall clock is set a day ahead or back in their midst. docs/clocks.md lists all
 * timers of the daemon.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { createHash } from "node:crypto"
import { Duration, Effect, Fiber, FileSystem } from "effect"
import { SocketServer } from "effect/socket"
import { TestClock } from "effect/testing"
import { MessageFiles } from "../../src/agents/MessageFiles.ts"
import * as Outbox from "../../src/alerts/Outbox.ts"
import { StorageError } from "../../src/event-log/EventLog.ts"
import { untilItPasses } from "../../src/event-log/StorageFailure.ts"
import { limited, type Rooms } from "../../src/rpc/Rooms.ts"
import { only, play } from "../backends/ClaudeWorld.ts"
import * as Support from "../support/backend-run.ts"
import * as Scratch from "../support/Scratch.ts"
import * as SteppedClock from "../support/SteppedClock.ts"

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
      const rooms: Rooms = {
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
      append(Outbox.sent(attempt, { to: ["ada@example.org"], rejected: [], response: "250" }), at)
    }
    queue(now)
    assert.isAtMost(Outbox.readyAt(state, state.batches[0]!, now)! - now, most)
  })
})
