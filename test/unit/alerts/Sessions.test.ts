/** A session that a person runs by hand is told to be done once it rests, and not where its next turn begins before. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import type { Rune, RuneDraft } from "../../../src/core/event-log/Rune.ts"
import { append, config, living, passing, type Played, played, withLog } from "../../world/alerts/PlayedChannels.ts"

const moved = (id: string, from: string, to: string): RuneDraft => ({
  stream: `plate:${id}`,
  kind: "plate.moved",
  actor: `plate/${id}`,
  from,
  to,
  trigger: "PromptSubmit",
  payload: { event: { _tag: "PromptSubmit", at: 0 } }
})

/** As it stands when it is told of: where its rune left it. */
const facts = ({ actor, kind, to }: Rune) =>
  kind === "plate.moved"
    ? {
        plate: {
          plateId: actor.split("/")[1]!,
          agent: null,
          status: to,
          title: null,
          cwd: "/w/shop",
          detail: ""
        } as never
      }
    : {}

const notify = config(["desk"], { tell: { done: ["desk"], others: ["desk"] }, digestWindow: "30 seconds" })
const toldBy = ({ told }: Played) => told.flatMap(({ notices }) => notices.map(({ about, kind }) => `${kind} ${about}`))

const world = Effect.gen(function* () {
  const play = played("desk")
  const alerter = yield* living(play, notify, { facts })
  return { play, alerter }
})

const done = (id: string) => append(moved(id, "Idle", "Running"), moved(id, "Running", "Idle"))

describe("a session that a person runs by hand", () => {
  it.effect("is told to be done", () =>
    Effect.gen(function* () {
      const { play } = yield* world
      yield* done("p1")
      yield* passing("1 minute")
      assert.deepStrictEqual(toldBy(play), ["done plate:p1"])
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("is not where its next turn begins before that is sent; of another's news nothing is dropped", () =>
    Effect.gen(function* () {
      const { play } = yield* world
      yield* done("p1")
      yield* done("p2")
      yield* passing("5 seconds")
      yield* append(moved("p1", "Idle", "Running"))
      yield* passing("1 minute")
      assert.deepStrictEqual(toldBy(play), ["done plate:p2"])
      yield* append(moved("p1", "Running", "Idle"))
      yield* passing("1 minute")
      assert.deepStrictEqual(toldBy(play), ["done plate:p2", "done plate:p1"])
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("is still where it is at work no turn anew", () =>
    Effect.gen(function* () {
      const { play } = yield* world
      yield* done("p1")
      yield* passing("5 seconds")
      yield* append(moved("p1", "Running", "Running"), moved("p1", "Idle", "Ended"))
      yield* passing("1 minute")
      assert.deepStrictEqual(toldBy(play), ["done plate:p1"])
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("is not over a restart between", () =>
    Effect.gen(function* () {
      const { alerter, play } = yield* world
      yield* done("p1")
      yield* passing("5 seconds")
      yield* Fiber.interrupt(alerter)
      yield* append(moved("p1", "Idle", "Running"))
      yield* living(play, notify, { facts })
      yield* passing("1 minute")
      assert.lengthOf(play.told, 0)
    }).pipe(Effect.scoped, withLog)
  )
})
