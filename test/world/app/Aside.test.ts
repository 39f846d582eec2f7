/** Parts of streams that do not fold: each is left out by itself, named, told once, and mended by a repair. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { dirname } from "node:path"
import { folds } from "../../../src/app/FeatureFolds.ts"
import * as Channels from "../../../src/channels/Recovery.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import type { RuneDraft } from "../../../src/core/event-log/Rune.ts"
import * as Goals from "../../../src/goals/GoalRegistry.ts"
import { actorOf } from "../../../src/goals/GoalState.ts"
import * as Plates from "../../../src/plates/Recovery.ts"
import { names, open } from "../../support/Recording.ts"
import { agentd } from "../cli/Child.ts"
import { note, storeFile, withInlineLog } from "../event-log/Disk.ts"

const PREFIX = actorOf("")

const all = names().flatMap((name) => open(name).runes)

type Recorded = (typeof all)[number]

const draftOf = ({ actor, from, kind, payload, stream, to, trigger }: Recorded): RuneDraft => ({
  stream,
  kind,
  actor,
  from,
  to,
  trigger,
  payload: JSON.parse(payload) as RuneDraft["payload"]
})

/** Runes of one actor from where it has moved on: without their beginning they do not fold. */
const headless = (isOne: (rune: Recorded) => boolean): ReadonlyArray<RuneDraft> => {
  const runes = all.filter(isOne)
  const began = new Map<string, string | null>()
  for (const { actor, from, stream } of runes) {
    const key = `${stream} ${actor}`
    if (!began.has(key)) began.set(key, from)
    else if (began.get(key) !== from) {
      const own = runes.filter((rune) => rune.stream === stream && rune.actor === actor)
      return own.slice(own.findIndex((rune) => rune.from === from)).map(draftOf)
    }
  }
  return []
}

/** A session, and that a fold has found it broken. */
const PLATE = "01m84zsdgdzscn2nyfmpdhnx6s"
const found = { ...Plates.fold.initial, isBroken: true }
const goal = headless(({ actor, kind }) => actor.startsWith(PREFIX) && kind.startsWith("plan."))

describe("a part of a stream that does not fold", () => {
  it("the recordings have some to make these of", () => {
    assert.isAbove(goal.length, 0)
  })

  it.effect("is left out by itself, named, and told once, however often the daemon starts", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      const conversation = goal[0]!.stream
      yield* withInlineLog({ file }, (log) =>
        Effect.gen(function* () {
          const [rune] = yield* log.append([note(PLATE, 1), ...goal, note("other-1a2b3c4d", 1)])
          log.keep(PLATE, Plates.fold, found, rune!.eventId)
        })
      )
      const start = withInlineLog({ file, folds }, (log) =>
        Effect.gen(function* () {
          yield* Plates.recover
          yield* Goals.recover(log, [conversation, "other-1a2b3c4d"])
          yield* Channels.recover
          const told = yield* Stream.runCollect(log.read({ stream: "daemon", kinds: ["invariant.violated"] }))
          return { aside: (yield* log.reading).aside, told: Array.from(told) }
        }).pipe(Effect.provideService(EventLog, log))
      )
      const { aside, told } = yield* start
      assert.sameMembers(
        aside.map(({ part, stream }) => `${part} of ${stream}`),
        [`the session of ${PLATE}`, `the goal ${goal[0]!.actor.slice(PREFIX.length)} of ${conversation}`]
      )
      assert.strictEqual(told.length, 2)
      assert.strictEqual((yield* start).told.length, 2)
      const state = dirname(file)
      const dry = yield* agentd(["--state", state, "repair", conversation, "--dry-run"])
      assert.include(dry.out, "does not fold: the goal")
      assert.strictEqual((yield* agentd(["--state", state, "repair", conversation, "--yes"])).code, 0)
      const mended = yield* start
      assert.deepStrictEqual(mended.aside, [])
      yield* withInlineLog({ file }, (log) =>
        Effect.map(log.verify, ({ problems }) => assert.deepStrictEqual(problems, []))
      )
    })
  )
})
