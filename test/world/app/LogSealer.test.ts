/** When the oldest runes leave the store: never while something in them is open. */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Agents } from "../../../src/projects/service/Agents.ts"
import { LiveOutbox } from "../../../src/alerts/LiveOutbox.ts"
import * as LogSealer from "../../../src/app/LogSealer.ts"
import { Channels } from "../../../src/channels/Channels.ts"
import type { Kept } from "../../../src/config/KeepLog.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import { Goals } from "../../../src/goals/Goals.ts"
import { Plates } from "../../../src/plates/Plates.ts"
import { note, storeFile, withInlineLog } from "../event-log/Disk.ts"

interface Open {
  readonly agents?: number
  readonly goals?: ReadonlyArray<object>
  readonly seats?: ReadonlyArray<object>
  readonly plates?: ReadonlyArray<object>
  readonly mails?: object | undefined
}

const services = ({ agents = Number.POSITIVE_INFINITY, goals = [], plates = [], seats = [], ...rest }: Open) =>
  Layer.mergeAll(
    Layer.succeed(Agents, { openSince: Effect.succeed(agents) } as never),
    Layer.succeed(Goals, { list: () => Effect.succeed(goals) } as never),
    Layer.succeed(Plates, { list: () => Effect.succeed(plates) } as never),
    Layer.succeed(Channels, { list: Effect.succeed([{ closed: false, seats }]) } as never),
    Layer.succeed(LiveOutbox, { seen: Effect.succeed("mails" in rest ? rest.mails : { batches: [] }) } as never)
  )

const limits = { keep: 100, least: 50, most: 200 }

/** 300 runes of the first hour, 300 of the second; up to which rune they are sealed. */
const sealedWith = (open: Open, kept?: Parameters<typeof LogSealer.once>[0]) =>
  Effect.gen(function* () {
    const file = yield* storeFile
    return yield* withInlineLog({ file }, (log) =>
      Effect.gen(function* () {
        yield* TestClock.setTime(HOUR)
        yield* log.append(Array.from({ length: 300 }, (_, n) => note("shop", n)))
        yield* TestClock.setTime(2 * HOUR)
        yield* log.append(Array.from({ length: 300 }, (_, n) => note("shop", n)))
        for (let n = 0; n < 10; n++) yield* LogSealer.once(kept, limits)
        return (yield* log.sealed).last
      }).pipe(Effect.provideService(EventLog, log), Effect.provide(services(open)))
    )
  })

const HOUR = 3_600_000

describe("the oldest runes leave the store", () => {
  const cases: ReadonlyArray<readonly [what: string, open: Open, last: number]> = [
    ["nothing is open: all but the newest", {}, 550],
    ["a message, a question or a call of an agent is open", { agents: 2 * HOUR }, 300],
    ["a goal is open", { goals: [{ state: "executing", submittedAt: 2 * HOUR }] }, 300],
    ["a goal is over", { goals: [{ state: "goal_met", submittedAt: HOUR }] }, 550],
    ["a seat has posts to read", { seats: [{ state: "IDLE", unread: 1, since: 2 * HOUR }] }, 300],
    ["a seat is offline", { seats: [{ state: "OFFLINE", unread: 1, since: 0 }] }, 550],
    ["a session asks", { plates: [{ approval: "x", since: 2 * HOUR }] }, 300],
    ["a mail waits", { mails: { batches: [{}] } }, 0],
    ["mails are not read yet", { mails: undefined }, 0]
  ]
  const keeping: ReadonlyArray<readonly [what: string, keep: Partial<Kept>, open: Open, deleted: number]> = [
    ["all of it is younger", { time: Duration.hours(5) }, {}, 0],
    ["the first hour is too old", { time: Duration.minutes(150) }, {}, 200],
    ["all of it is too old", { time: Duration.minutes(30) }, {}, 450],
    ["a message of the first hour is open", { time: Duration.minutes(30) }, { agents: HOUR }, 0],
    ["a message of the second hour is open", { time: Duration.minutes(30) }, { agents: 2 * HOUR }, 200],
    ["a mail waits", { time: Duration.minutes(30) }, { mails: { batches: [{}] } }, 0],
    ["it is larger than what is kept", { bytes: 1 }, {}, 450],
    ["it is smaller than what is kept", { bytes: 1e9 }, {}, 0],
    ["the store alone is larger than what is kept", { bytes: 1000 }, {}, 450]
  ]
  for (const [what, keep, open, wanted] of keeping) {
    it.effect(`keepLog: ${what}`, () =>
      Effect.gen(function* () {
        const file = yield* storeFile
        const deleted = yield* withInlineLog({ file }, (log) =>
          Effect.gen(function* () {
            for (const hour of [1, 2]) {
              yield* TestClock.setTime(hour * HOUR)
              yield* log.append(Array.from({ length: 300 }, (_, n) => note("shop", n)))
            }
            for (let n = 0; n < 10; n++) yield* Effect.provide(LogSealer.once(undefined, limits), services({}))
            yield* TestClock.setTime(4 * HOUR)
            const kept = { text: "so much", time: null, bytes: null, ...keep }
            yield* Effect.provide(LogSealer.forgetting(kept, 1000), services(open))
            const { deleted } = yield* log.sealed
            assert.strictEqual((yield* log.verify).begins?.eventId, deleted === 0 ? undefined : deleted + 1)
            return deleted
          }).pipe(Effect.provideService(EventLog, log))
        )
        assert.isTrue(deleted >= wanted && deleted < wanted + 101, String(deleted))
      })
    )
  }

  for (const [what, open, last] of cases) {
    it.effect(what, () =>
      Effect.gen(function* () {
        // what is beyond the newest 100 leaves in pieces of 50 to 200 runes; the runes that tell of it count, too
        const sealed = yield* sealedWith(open)
        if (last === 550) assert.isTrue(sealed >= 450 && sealed <= 550, String(sealed))
        else assert.strictEqual(sealed, last)
      })
    )
  }
})
