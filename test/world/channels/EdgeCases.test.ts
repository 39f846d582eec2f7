/** The six edge cases of the channels' source document, each by its name. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { ada, run, T0, until, type World } from "./World.ts"

/** Until pm has been told a second time. */
const until2 = (world: World) =>
  until(
    "pm is told again",
    Effect.sync(() => world.crew.of("pm").heard.length),
    (n) => n === 2
  )

const reviews = (more: object = {}) => ({ reviews: { agents: ["pm", "dev", "qa"], ...more } })

describe("edge cases of a channel", () => {
  it.effect(
    "1. agent crashes mid-turn: it goes offline, it is said, the next has the floor, and it is not queued again by itself",
    () =>
      run((world) =>
        Effect.gen(function* () {
          yield* world.configure(reviews())
          yield* world.come("pm", "dev", "qa")
          yield* world.post("Look at #42")
          yield* world.speaking("pm")
          yield* world.crew.leave("pm", "crashed")
          yield* world.speaking("dev")
          assert.strictEqual((yield* world.states())["pm"], "OFFLINE")
          assert.include(yield* world.texts(), "⚠ pm disconnected, skipping turn")
          yield* world.come("pm")
          yield* world.state("pm", "IDLE")
          yield* world.quiet
          yield* world.crew.answer("dev", "Fine.\nTURN_COMPLETE")
          yield* world.turn("qa", "Yes.\nTURN_COMPLETE")
          yield* world.quiet
          assert.strictEqual((yield* world.states())["pm"], "IDLE")
          yield* world.channels.assign("reviews", "pm", ada)
          // What it had not dealt with when it crashed is still new to it.
          yield* world.turn("dev", "TURN_COMPLETE")
          yield* world.speaking("pm")
          assert.include(world.heard("pm"), "> Look at #42")
        })
      )
  )

  it.effect("1. its process dies in its turn: disconnected, skipped, and IDLE once it is back", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure(reviews())
        yield* world.come("pm", "dev", "qa")
        yield* world.post("Look at #42")
        yield* world.speaking("pm")
        yield* world.crew.die("pm")
        yield* world.speaking("dev")
        yield* world.quiet
        assert.strictEqual((yield* world.states())["pm"], "OFFLINE")
        assert.deepStrictEqual(yield* world.texts(), ["ada: Look at #42", "⚠ pm disconnected, skipping turn"])
        const left = (yield* world.runes("seat.moved")).find(({ to }) => to === "OFFLINE")
        assert.deepInclude(left?.payload["event"] as object, { _tag: "AgentLeft", how: "disconnected" })
        yield* world.come("pm")
        yield* world.state("pm", "IDLE")
        // what is said meanwhile is not for it, and it waits for a person
        yield* world.turn("dev", "Fine.\nTURN_COMPLETE")
        yield* world.turn("qa", "TURN_COMPLETE")
        yield* world.quiet
        assert.strictEqual((yield* world.states())["pm"], "IDLE")
      })
    )
  )

  it.effect(
    "1. with rejoin it takes its place again once it is back, and is told again what it had not dealt with",
    () =>
      run((world) =>
        Effect.gen(function* () {
          yield* world.configure(reviews({ rejoin: true }))
          yield* world.come("pm", "dev", "qa")
          yield* world.post("Look at #42")
          for (const gone of ["die", "crash"] as const) {
            yield* world.speaking("pm")
            yield* gone === "die" ? world.crew.die("pm") : world.crew.leave("pm", "crashed")
            yield* world.state("pm", "OFFLINE")
            yield* world.come("pm")
            yield* world.state("pm", "QUEUED")
            yield* world.turn("dev", "TURN_COMPLETE")
            yield* world.turn("qa", "TURN_COMPLETE")
            yield* world.speaking("pm")
            assert.include(world.heard("pm"), "> Look at #42")
            yield* world.post("More")
          }
        })
      )
  )

  it.effect("a paused channel says since when it is", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure(reviews())
        yield* world.come("pm", "dev")
        assert.isUndefined((yield* world.show()).channel.since)
        yield* world.channels.pause("reviews", true, ada)
        const [paused] = yield* world.runes("channel.paused")
        assert.strictEqual((yield* world.show()).channel.since, paused!.at)
        yield* world.channels.pause("reviews", false, ada)
        assert.isUndefined((yield* world.show()).channel.since)
      })
    )
  )

  it.effect("1. a channel whose agents all came back from a crash waits for a person, and says so", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure(reviews())
        yield* world.come("pm", "dev")
        yield* world.post("Look at #42")
        for (const agent of ["pm", "dev"]) {
          yield* world.speaking(agent)
          yield* world.crew.die(agent)
        }
        yield* world.state("dev", "OFFLINE")
        assert.isNull((yield* world.show()).channel.waits)
        yield* world.come("pm", "dev")
        yield* world.state("dev", "IDLE")
        assert.match(
          (yield* world.show()).channel.waits ?? "",
          /no agent is in the turn queue: agentd channel assign \S+ \w+$/
        )
        yield* world.channels.assign("reviews", "dev", ada)
        yield* world.speaking("dev")
        assert.isNull((yield* world.show()).channel.waits)
      })
    )
  )

  it.effect("1. a crash that is not to be announced is not", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure(reviews({ turnConfig: { announceDisconnects: false } }))
        yield* world.come("pm", "dev", "qa")
        yield* world.post("Look at #42")
        yield* world.speaking("pm")
        yield* world.crew.leave("pm", "crashed")
        yield* world.speaking("dev")
        assert.deepStrictEqual(yield* world.texts(), ["ada: Look at #42"])
      })
    )
  )

  it.effect(
    "2. timeout during ACTIVE: after 60 s of silence it is said, the turn is interrupted, and the next has the floor",
    () =>
      run((world) =>
        Effect.gen(function* () {
          yield* world.configure(reviews())
          yield* world.come("pm", "dev", "qa")
          yield* world.post("Look at #42")
          yield* world.speaking("pm")
          yield* world.after(59)
          yield* world.floor("pm")
          yield* world.after(1)
          yield* world.speaking("dev")
          assert.include(yield* world.texts(), "⏱ pm turn timed out")
          assert.isUndefined(world.crew.of("pm").turn)
          // It keeps its place: its turn comes again in the next cycle.
          yield* world.turn("dev", "Done.\nTURN_COMPLETE")
          yield* world.turn("qa", "TURN_COMPLETE")
          yield* world.speaking("pm")
          assert.include(world.heard("pm"), "> Look at #42")
          assert.include(world.heard("pm"), "> Done.")
        })
      )
  )

  for (const rest of [90, 200, 3600]) {
    it.effect(`2. one whose next run begins in ${rest} s, when it would be left alone, has the floor then`, () =>
      run((world) =>
        Effect.gen(function* () {
          yield* world.configure(reviews({ agents: ["pm"] }))
          yield* world.come("pm")
          yield* world.post("Look at #42")
          yield* world.speaking("pm")
          yield* world.crew.error("pm", "overloaded", true)
          world.crew.of("pm").restsUntil = (yield* Clock.currentTimeMillis) + rest * 1_000
          yield* world.after(rest - 1)
          yield* world.floor("pm")
          assert.lengthOf(world.crew.of("pm").heard, 2)
          // it is not called in vain each other minute until then
          assert.isAtMost(
            (yield* world.runes("seat.moved")).filter(({ trigger }) => trigger === "TurnGranted").length,
            3
          )
        })
      )
    )
  }

  it.effect("2. timeout before any turn has told it: it is called again for the same, after a while", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure(reviews({ agents: ["pm"] }))
        yield* world.come("pm")
        yield* world.post("Look at #42")
        yield* world.speaking("pm")
        // its prompt waits again, and no run can start
        yield* world.crew.error("pm", "overloaded", true)
        yield* world.after(60)
        yield* world.floor(null)
        assert.deepStrictEqual(world.crew.of("pm").inbox, [])
        const { channel } = yield* world.show()
        assert.strictEqual(channel.seats[0]?.unread, 1)
        yield* world.after(60)
        yield* world.speaking("pm")
        assert.include(world.heard("pm"), "> Look at #42")
        yield* world.crew.answer("pm", "TURN_COMPLETE")
        yield* world.floor(null)
        yield* world.after(600)
        assert.deepStrictEqual(yield* world.texts(), ["ada: Look at #42", "⏱ pm turn timed out"])
      })
    )
  )

  it.effect("2. each sign of life moves the end of the turn; the limit is each agent's own", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure(reviews({ timeouts: { pm: 90 }, turnConfig: { announceTimeouts: false } }))
        yield* world.come("pm", "dev", "qa")
        yield* world.post("Look at #42")
        yield* world.speaking("pm")
        for (const _ of [1, 2, 3, 4]) {
          yield* world.after(80)
          yield* world.crew.active("pm")
          yield* world.quiet
        }
        yield* world.floor("pm")
        const { channel } = yield* world.show()
        const seat = channel.seats.find(({ agent }) => agent === "pm")
        assert.strictEqual(seat?.until, T0 + 320_000 + 90_000)
        yield* world.after(91)
        yield* world.speaking("dev")
        assert.deepStrictEqual(yield* world.texts(), ["ada: Look at #42"])
      })
    )
  )

  it.effect("2. a talkative agent keeps the floor for ten of its limits at most; the turn ends as a timeout", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure(reviews({}))
        yield* world.come("pm", "dev", "qa")
        yield* world.post("Look at #42")
        yield* world.speaking("pm")
        for (let spoken = 0; spoken < 590; spoken += 10) {
          yield* world.after(10)
          yield* world.crew.active("pm")
        }
        yield* world.quiet
        yield* world.floor("pm")
        const { channel } = yield* world.show()
        assert.strictEqual(channel.seats.find(({ agent }) => agent === "pm")?.until, T0 + 600_000)
        yield* world.after(11)
        yield* world.speaking("dev")
        assert.include((yield* world.texts()).join(), "turn timed out")
      })
    )
  )

  it.effect("4. agent never signals done: its answer is posted, and the time limit passes the floor on", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure(reviews())
        yield* world.come("pm", "dev")
        yield* world.post("Look at #42")
        yield* world.speaking("pm")
        yield* world.crew.answer("pm", "I have looked.")
        yield* world.quiet
        yield* world.floor("pm")
        assert.deepStrictEqual(yield* world.texts(), ["ada: Look at #42", "pm: I have looked."])
        assert.lengthOf(yield* world.runes("channel.unsignalled"), 1)
        yield* world.after(60)
        yield* world.speaking("dev")
        yield* world.turn("dev", "Good.\nTURN_COMPLETE")
        yield* world.speaking("pm")
        // It has dealt with what it answered.
        assert.notInclude(world.heard("pm"), "> Look at #42")
      })
    )
  )

  it.effect("4. where the end is detected, some seconds of silence after an answer end the turn", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure(reviews({ turnConfig: { autoDetectTurnEnd: true } }))
        yield* world.come("pm", "dev")
        yield* world.post("Look at #42")
        yield* world.speaking("pm")
        yield* world.crew.answer("pm", "I have looked.")
        yield* world.quiet
        yield* world.after(9)
        yield* world.floor("pm")
        yield* world.after(1)
        yield* world.speaking("dev")
        assert.notInclude(yield* world.texts(), "⏱ pm turn timed out")
        const last = (yield* world.runes("seat.moved")).findLast(({ actor }) => actor === "seat/reviews/pm")!
        assert.strictEqual(last.trigger, "TURN_COMPLETE")
      })
    )
  )

  it.effect(
    "5. all agents go offline: messages are kept, it is said, and the first to be there is ACTIVE at once",
    () =>
      run((world) =>
        Effect.gen(function* () {
          yield* world.configure(reviews())
          yield* world.come("pm", "dev")
          yield* world.quiet
          yield* world.crew.leave("pm", "crashed")
          yield* world.crew.leave("dev", "crashed")
          yield* world.quiet
          yield* world.post("Is anybody there?")
          yield* world.quiet
          assert.deepStrictEqual(yield* world.texts(), [
            "⚠ No agents available in this channel",
            "ada: Is anybody there?"
          ])
          yield* world.come("dev")
          yield* world.state("dev", "IDLE")
          yield* world.channels.assign("reviews", "dev", ada)
          yield* world.speaking("dev")
          assert.include(world.heard("dev"), "> Is anybody there?")
        })
      )
  )

  it.effect("6. queue order changes mid-sprint: who is added stands at the end, who is removed loses the turn", () =>
    run((world) =>
      Effect.gen(function* () {
        const order = Effect.map(world.show(), ({ channel }) =>
          channel.seats.filter(({ position }) => position !== null).map(({ agent }) => agent)
        )
        yield* world.configure(reviews())
        yield* world.come("pm", "dev", "qa", "ux")
        yield* world.post("Look at #42")
        yield* world.turn("pm", "One.\nTURN_COMPLETE")
        yield* world.speaking("dev")
        assert.deepStrictEqual(yield* order, ["dev", "qa", "pm"])
        yield* world.channels.assign("reviews", "ux", ada)
        assert.deepStrictEqual(yield* order, ["dev", "qa", "pm", "ux"])
        yield* world.channels.remove("reviews", "qa", ada)
        assert.deepStrictEqual(yield* order, ["dev", "pm", "ux"])
        yield* world.channels.remove("reviews", "dev", ada)
        yield* world.quiet
        assert.isUndefined(world.crew.of("dev").turn)
        // pm has read all that was said since it spoke.
        yield* world.speaking("ux")
        assert.deepStrictEqual(yield* order, ["pm", "ux"])
        assert.deepInclude(yield* world.states(), { dev: "IDLE", qa: "IDLE" })
      })
    )
  )
})

describe("3. human interrupts mid-turn", () => {
  const begun = (mode: string) => ({
    reviews: { agents: ["pm", "dev"], turnConfig: { humanInterruptMode: mode } }
  })

  it.effect("queue: the message is delivered after the turn's end", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure(begun("queue"))
        yield* world.come("pm", "dev")
        yield* world.post("Look at #42")
        yield* world.speaking("pm")
        yield* world.post("And at #43")
        yield* world.quiet
        assert.lengthOf(world.crew.of("pm").heard, 1)
        yield* world.crew.answer("pm", "Looked.\nTURN_COMPLETE")
        yield* world.speaking("dev")
        assert.include(world.heard("dev"), "> And at #43")
        yield* world.turn("dev", "TURN_COMPLETE")
        yield* world.speaking("pm")
        assert.include(world.heard("pm"), "> And at #43")
        assert.notInclude(world.heard("pm"), "> Look at #42")
      })
    )
  )

  it.effect(
    "interrupt: the turn is ended, and begun again with the message; what it said till then is not posted",
    () =>
      run((world) =>
        Effect.gen(function* () {
          yield* world.configure(begun("interrupt"))
          yield* world.come("pm", "dev")
          yield* world.post("Look at #42")
          yield* world.speaking("pm")
          yield* world.post("No, at #43")
          yield* until2(world)
          assert.include(world.heard("pm"), "> No, at #43")
          assert.include(world.heard("pm"), "> Look at #42")
          yield* world.floor("pm")
          yield* world.crew.answer("pm", "Looked at 43.\nTURN_COMPLETE")
          yield* world.speaking("dev")
          assert.deepStrictEqual(yield* world.texts(), ["ada: Look at #42", "ada: No, at #43", "pm: Looked at 43."])
          const [withheld] = yield* world.runes("channel.withheld")
          assert.strictEqual(withheld?.payload["text"], "half")
        })
      )
  )

  it.effect("inject, the default: the agent that has the floor gets it at once, and once", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure({ reviews: { agents: ["pm", "dev"] } })
        yield* world.come("pm", "dev")
        yield* world.post("Look at #42")
        yield* world.speaking("pm")
        yield* world.post("And at #43")
        yield* world.quiet
        assert.include(world.heard("pm"), "> And at #43")
        yield* world.crew.answer("pm", "Looked at both.\nTURN_COMPLETE")
        yield* world.turn("dev", "TURN_COMPLETE")
        yield* world.quiet
        yield* world.floor(null)
        assert.lengthOf(world.crew.of("pm").heard, 2)
      })
    )
  )

  it.effect(
    "inject, where a word ends the turn: the floor stays with the agent, and its next turn's answer is posted",
    () =>
      run((world) =>
        Effect.gen(function* () {
          world.crew.steering = "turn"
          yield* world.configure({ reviews: { agents: ["pm", "dev"] } })
          yield* world.come("pm", "dev")
          yield* world.post("Look at #42")
          yield* world.speaking("pm")
          yield* world.post("And at #43")
          yield* world.quiet
          yield* world.floor("pm")
          yield* world.crew.answer("pm", "Looked at both.\nTURN_COMPLETE")
          yield* world.turn("dev", "TURN_COMPLETE")
          yield* world.quiet
          yield* world.floor(null)
          assert.deepStrictEqual(yield* world.texts(), ["ada: Look at #42", "ada: And at #43", "pm: Looked at both."])
        })
      )
  )

  it.effect("inject, where a backend cannot: the message is taken back, and told with the next floor", () =>
    run((world) =>
      Effect.gen(function* () {
        world.crew.steering = "queue"
        yield* world.configure({ reviews: { agents: ["pm"] } })
        yield* world.come("pm")
        yield* world.post("Look at #42")
        yield* world.speaking("pm")
        yield* world.post("And at #43")
        yield* world.quiet
        yield* world.channels.skip("reviews", ada)
        yield* world.quiet
        yield* world.speaking("pm")
        assert.include(world.heard("pm"), "> And at #43")
        // One that is its next turn already is still of the same floor.
        yield* world.post("And at #44")
        yield* world.quiet
        yield* world.crew.answer("pm", "Both.\nTURN_COMPLETE")
        yield* world.quiet
        yield* world.floor("pm")
        assert.include(world.heard("pm"), "> And at #44")
        yield* world.crew.answer("pm", "44, too.")
        yield* world.quiet
        assert.include(yield* world.texts(), "pm: 44, too.")
        yield* world.floor(null)
      })
    )
  )

  it.effect("inject, where the turn that carried it failed and it is taken back: it is new still, and told again", () =>
    run((world) =>
      Effect.gen(function* () {
        world.crew.steering = "queue"
        yield* world.configure(reviews())
        yield* world.come("pm", "dev")
        yield* world.post("Look at #42")
        yield* world.speaking("pm")
        yield* world.post("And at #43")
        yield* world.quiet
        // the post's own turn is over, and the post waits again, before the channel takes it back
        yield* world.crew.answer("pm", "Fine.\nTURN_COMPLETE")
        yield* world.crew.error("pm", "its process died", true)
        yield* world.turn("dev", "Fine, too.\nTURN_COMPLETE")
        yield* world.speaking("pm")
        assert.include(world.heard("pm"), "You have the floor")
        assert.include(world.heard("pm"), "> And at #43")
        assert.notInclude(world.heard("pm"), "> Look at #42")
      })
    )
  )

  it.effect("inject, while its agent is still at work on something else: it is told with the next floor", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure({ reviews: { agents: ["pm"] } })
        yield* world.come("pm")
        yield* world.post("Look at #42")
        yield* world.speaking("pm")
        // its prompt waits again, behind what else there is for it
        yield* world.crew.error("pm", "overloaded", true)
        yield* world.quiet
        // a word that is put in now would overtake it
        yield* world.post("And at #41")
        yield* world.quiet
        assert.deepStrictEqual(
          world.crew.calls.filter(({ call }) => call === "steer"),
          []
        )
        world.crew.of("pm").inbox.unshift({ messageId: "m1", from: "ada", text: "a task", alone: true })
        yield* world.crew.send("pm", "m2")
        yield* world.quiet
        yield* world.post("And at #43")
        yield* world.quiet
        assert.strictEqual(world.heard("pm"), "a task")
        yield* world.crew.answer("pm", "That is done.\nTURN_COMPLETE")
        yield* world.speaking("pm")
        assert.include(world.heard("pm"), "> Look at #42")
        assert.notInclude(yield* world.texts(), "pm: That is done.")
        yield* world.crew.answer("pm", "It is fine.\nTURN_COMPLETE")
        yield* world.crew.answer("pm", "m2 is done.")
        yield* until(
          "pm is told of #43",
          Effect.sync(() => world.heard("pm")),
          (text) => text.includes("> And at #43")
        )
        assert.notInclude(world.heard("pm"), "> Look at #42")
      })
    )
  )

  it.effect("parallel: one that has the floor is steered; one at work elsewhere hears of it with its next turn", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure({
          reviews: { agents: ["pm", "dev", "qa"], turnConfig: { humanInterruptMode: "parallel" } }
        })
        yield* world.come("pm", "dev", "qa")
        yield* world.crew.send("dev", "elsewhere")
        yield* world.post("Look at #42")
        yield* world.speaking("pm")
        yield* world.post("Stop, all of you")
        yield* world.quiet
        assert.include(world.heard("pm"), "> Stop, all of you")
        assert.notInclude(world.heard("dev"), "> Stop, all of you")
        const steered = world.crew.calls.filter(({ call }) => call === "steer").map(({ agent }) => agent)
        assert.deepStrictEqual([...new Set(steered)], ["pm"])
        assert.lengthOf(world.crew.of("qa").heard, 0)
        // it goes on with its task, and is told with the turn after it
        yield* world.crew.answer("dev", "Task done.")
        yield* world.quiet
        assert.include(world.heard("dev"), "> Look at #42")
        yield* world.crew.answer("dev", "Read.")
        yield* world.quiet
        assert.include(world.heard("dev"), "> Stop, all of you")
        // What dev makes of it belongs to its other work.
        yield* world.crew.answer("dev", "Stopped.")
        yield* world.quiet
        assert.notInclude((yield* world.texts()).join(), "Stopped.")
        assert.lengthOf(yield* world.runes("channel.withheld"), 0)
      })
    )
  )
})
