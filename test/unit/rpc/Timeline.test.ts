/** The log as a timeline: runes by place, counts of spans of time, and what led to a rune. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import type { Agents } from "../../../src/projects/service/Agents.ts"
import { layerMemory } from "../../../src/app/DaemonLog.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import type { RuneDraft } from "../../../src/core/event-log/Rune.ts"
import * as Timeline from "../../../src/board/Timeline.ts"
import { output } from "../../world/event-log/Disk.ts"
import { agentInfo } from "../../world/rpc/World.ts"

const HOUR = 3_600_000
const caller = { by: "ada", config: null }
const agents = {
  agent: (name: string) => Effect.succeed(agentInfo({ agent: name, conversation: "web" }))
} as unknown as Agents["Service"]

const draft = (actor: string, more: Partial<RuneDraft> = {}): RuneDraft => ({
  ...output("web", `words of ${actor}`),
  actor,
  ...more
})

/** A timeline over a log with these runes, one a minute, the last of them now. */
const over = <A, E>(
  drafts: ReadonlyArray<RuneDraft>,
  test: (timeline: ReturnType<typeof Timeline.make>, log: EventLog["Service"]) => Effect.Effect<A, E>
) =>
  Effect.gen(function* () {
    yield* TestClock.setTime(10 * HOUR)
    const log = yield* EventLog
    for (const one of drafts) {
      yield* TestClock.adjust("1 minute")
      yield* log.append([one])
    }
    return yield* test(Timeline.make(log, agents, ["run.output", "tool.call", "tool.result", "turn.started"]), log)
  }).pipe(Effect.provide(layerMemory))

const note = (n: number): RuneDraft => draft(n % 2 === 0 ? "turn/ann" : "turn/bob")
const notes = (count: number) => Array.from({ length: count }, (_, n) => note(n))

describe("timeline", () => {
  it("a span of an open time is of a round length, no shorter", () => {
    for (const n of [1, 7, 30_000, 30_001, 123_456, 999_999]) {
      const round = Timeline.roundUp(n)
      assert.isAtLeast(round, n)
      assert.isAtMost(round, Math.max(n + 1, n * 1.25))
    }
    assert.strictEqual(Timeline.roundUp(30_000), 30_000)
  })

  it.effect("of a time tells what was then, with and without a filter; its places begin with it", () =>
    over(notes(30), (timeline) =>
      Effect.gen(function* () {
        // the rune n is of n minutes past ten
        const minute = (n: number) => 10 * HOUR + n * 60_000
        const part = yield* timeline.page({ n: 2, since: minute(10), until: minute(20), caller })
        assert.deepInclude(part, { total: 10, from: 8, more: false })
        assert.deepStrictEqual(
          part.rows.map(({ eventId, place }) => [place, eventId]),
          [
            [8, 18],
            [9, 19]
          ]
        )
        assert.strictEqual(
          part.density.counts.reduce((sum, count) => sum + count, 0),
          10
        )
        const ann = yield* timeline.page({ agent: "ann", n: 2, from: 0, since: minute(10), caller })
        assert.strictEqual(ann.total, 10)
        assert.deepStrictEqual(
          ann.rows.map(({ eventId, place }) => [place, eventId]),
          [
            [0, 11],
            [1, 13]
          ]
        )
        const before = yield* timeline.page({ n: 500, until: minute(3), caller })
        assert.deepStrictEqual(
          before.rows.map(({ eventId }) => eventId),
          [1, 2]
        )
        const none = yield* timeline.page({ n: 5, since: minute(200), caller })
        assert.deepInclude(none, { total: 0, from: 0, rows: [] })
        const turned = yield* timeline.page({ n: 5, since: minute(20), until: minute(10), caller })
        assert.deepInclude(turned, { total: 0, rows: [] })
      })
    )
  )

  it.effect("without a filter each rune has the place of its position; without a place the newest are told", () =>
    over(notes(30), (timeline) =>
      Effect.gen(function* () {
        const newest = yield* timeline.page({ n: 3, caller })
        assert.deepInclude(newest, { total: 30, from: 27, head: 30, more: false })
        assert.deepStrictEqual(
          newest.rows.map(({ eventId, place }) => [place, eventId]),
          [
            [27, 28],
            [28, 29],
            [29, 30]
          ]
        )
        const first = yield* timeline.page({ n: 2, from: 0, caller })
        assert.deepStrictEqual(
          first.rows.map(({ eventId }) => eventId),
          [1, 2]
        )
        const beyond = yield* timeline.page({ n: 2, from: 99, caller })
        assert.deepStrictEqual([beyond.from, beyond.rows], [30, []])
      })
    )
  )

  it.effect("spans of the hour say how many there were, and where the first of each is", () =>
    over(notes(90), (timeline) =>
      Effect.gen(function* () {
        const { density, total } = yield* timeline.page({ n: 0, caller })
        assert.lengthOf(density.counts, 120)
        assert.strictEqual(density.width, HOUR / 120)
        // one a minute: every second span has one; the last hour of 90 minutes
        const sum = density.counts.reduce((a, b) => a + b, 0)
        assert.isTrue(sum >= 59 && sum <= 61, String(sum))
        assert.isTrue(density.counts.every((count) => count <= 1))
        assert.strictEqual(density.places[0], total - sum)
        const old = yield* timeline.page({ n: 0, since: 0, until: HOUR, caller })
        assert.strictEqual(
          old.density.counts.reduce((a, b) => a + b, 0),
          0
        )
      })
    )
  )

  it.effect("an agent's runes have places of their own, and new ones are found behind those that were", () =>
    over(notes(20), (timeline, log) =>
      Effect.gen(function* () {
        const one = yield* timeline.page({ agent: "ann", n: 100, caller })
        assert.strictEqual(one.total, 10)
        assert.isTrue(one.rows.every(({ actor }) => actor === "turn/ann"))
        yield* log.append([note(0), draft("tool/ann/7"), note(1)])
        const two = yield* timeline.page({ agent: "ann", n: 100, caller })
        assert.deepStrictEqual(
          two.rows.map(({ place }) => place),
          Array.from({ length: 12 }, (_, n) => n)
        )
        assert.deepStrictEqual(
          two.rows.slice(-2).map(({ eventId }) => eventId),
          [21, 22]
        )
        assert.deepStrictEqual((yield* timeline.page({ kinds: ["tool."], n: 5, caller })).rows, [])
      })
    )
  )

  it.effect("a secret rune has a place and no row", () =>
    over([note(0), { ...note(1), visibility: "secret" }, note(2)], (timeline) =>
      Effect.gen(function* () {
        const page = yield* timeline.page({ n: 10, caller })
        assert.deepStrictEqual(
          page.rows.map(({ place }) => place),
          [0, 2]
        )
        assert.isNull((yield* timeline.causes(2)).rune)
        assert.isNull((yield* timeline.causes(99)).rune)
      })
    )
  )

  it.effect("an internal rune, and one of a kind that this program does not know, is a row where it is asked for", () =>
    over(
      [
        note(0),
        { ...note(1), visibility: "internal" },
        { ...note(2), kind: "worktree.removed", payload: { path: "/w" } }
      ],
      (timeline) =>
        Effect.gen(function* () {
          const places = (question: object) =>
            Effect.map(timeline.page({ n: 10, caller, ...question }), ({ rows }) => rows.map(({ place }) => place))
          assert.deepStrictEqual(yield* places({}), [0])
          assert.deepStrictEqual(yield* places({ internal: true }), [0, 1, 2])
          assert.isNull((yield* timeline.causes(2)).rune)
          assert.strictEqual((yield* timeline.causes(2, true)).rune?.eventId, 2)
        })
    )
  )

  it.effect("what led to a rune, oldest first, over streams", () =>
    over(
      [
        draft("project", { stream: "daemon" }),
        draft("turn/ann", { cause: { stream: "daemon", seq: 1 } }),
        note(0),
        draft("turn/bob", { cause: { stream: "web", seq: 1 } })
      ],
      (timeline) =>
        Effect.gen(function* () {
          const { chain, more, rune } = yield* timeline.causes(4)
          assert.deepStrictEqual(
            chain.map(({ eventId }) => eventId),
            [1, 2, 4]
          )
          assert.isFalse(more)
          assert.include(rune!.payload, "words of turn/bob")
          assert.strictEqual(rune!.says, "words of turn/bob")
        })
    )
  )

  it("the text of a payload is one short line; beginnings of kinds are written out", () => {
    assert.strictEqual(Timeline.saysOf({ n: 1, event: { _tag: "x", message: "it\n broke" } }), "it broke")
    assert.strictEqual(Timeline.saysOf({ text: "y".repeat(5_000) }).length, 160)
    assert.strictEqual(Timeline.saysOf({ n: 1 }), "")
    assert.deepStrictEqual(Timeline.kindsOf(["tool.", "a"], ["tool.call", "b"]), ["tool.call", "a"])
    assert.deepStrictEqual(
      [0, 3, 4, 9].map((n) => Timeline.below([3, 5, 8], n)),
      [0, 0, 1, 3]
    )
  })
})
