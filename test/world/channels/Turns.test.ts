import { MARK, marked } from "../../../src/domain/TruncatedAnswer.ts"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { logLine } from "../../../src/channels/SeatMachine.ts"
import { initial } from "../../../src/channels/SeatMachine.ts"
import { decodeChannel } from "../../../src/config/ChannelConfig.ts"
import { ada, CONVERSATION, run, T0 } from "./World.ts"

const reviews = (more: object = {}) => ({ reviews: { agents: ["pm", "dev", "qa"], ...more } })
const nowhere = { by: "ada", config: null }

describe("turns", () => {
  it("the settings have the source's defaults", () =>
    assert.deepStrictEqual(decodeChannel({}).turnConfig, {
      defaultTimeoutSeconds: 60,
      humanInterruptMode: "inject",
      announceTimeouts: true,
      announceDisconnects: true,
      autoDetectTurnEnd: false,
      autoDetectSilenceSeconds: 10,
      waitTimeoutSeconds: 300,
      restAfterPosts: 20
    }))

  it.effect("go round with what is new to each, until nobody has anything new to read; then all is silent", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure(reviews({ topic: "the review of #42" }))
        yield* world.come("pm", "dev", "qa")
        yield* world.quiet
        yield* world.floor(null)
        yield* world.post("Look at #42")
        yield* world.speaking("pm")
        assert.include(world.heard("pm"), "You have the floor in the channel #reviews.")
        assert.include(world.heard("pm"), "It is about: the review of #42")
        assert.include(world.heard("pm"), "Also here: dev (listening), qa (listening).")
        assert.include(world.heard("pm"), "ada (a person), 09:00 UTC:\n> Look at #42")
        yield* world.crew.answer("pm", "It is fine.\nTURN_COMPLETE")
        yield* world.turn("dev", "TURN_COMPLETE")
        yield* world.speaking("qa")
        assert.include(world.heard("qa"), "> It is fine.")
        yield* world.crew.answer("qa", "Tests are missing.\nTURN_COMPLETE")
        yield* world.turn("pm", "TURN_COMPLETE")
        yield* world.turn("dev", "TURN_COMPLETE")
        yield* world.quiet
        yield* world.floor(null)
        const { channel } = yield* world.show()
        assert.strictEqual(channel.detail, "nobody has anything new to read")
        const head = yield* world.log.head
        yield* world.after(100_000)
        assert.strictEqual(yield* world.log.head, head)
      })
    )
  )

  it.effect("an agent that has the floor and waits for a person keeps it: the room needs you, and says for what", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure(reviews())
        yield* world.come("pm", "dev")
        yield* world.post("Look at #42")
        yield* world.speaking("pm")
        world.crew.of("pm").needs = { text: "pm asks for shell: agentd approve c1", since: T0 }
        yield* world.after(3_600)
        yield* world.floor("pm")
        const { channel } = yield* world.show()
        assert.deepInclude(channel, {
          word: "needs you",
          waits: null,
          detail: "has the floor with pm asks for shell: agentd approve c1"
        })
        assert.deepInclude(channel.seats[0], { agent: "pm", word: "needs you" })
        world.crew.of("pm").needs = undefined
        yield* world.after(70)
        yield* world.speaking("dev")
      })
    )
  )

  it.effect("every move reads as a line of the log, with all of its fields", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure(reviews())
        yield* world.come("pm", "dev", "qa")
        yield* world.post("Look at #42")
        yield* world.turn("pm", "TURN_COMPLETE")
        const moves = yield* world.runes("seat.moved")
        const data = initial("pm", "reviews")
        const lines = moves.filter(({ actor }) => actor === "seat/reviews/pm").map((rune) => logLine(data, rune))
        assert.deepStrictEqual(
          lines.map(({ from, to, trigger }) => `${from} ${to} ${trigger}`),
          [
            "OFFLINE IDLE AgentStarted",
            "IDLE QUEUED Assigned",
            "QUEUED ACTIVE TurnGranted",
            "ACTIVE QUEUED TURN_COMPLETE"
          ]
        )
        for (const line of lines) {
          assert.deepInclude(line, {
            timestamp: new Date(T0).toISOString(),
            event: "state_transition",
            agentId: "pm",
            channel: "reviews"
          })
        }
      })
    )
  )

  it.effect("by priority: the highest first", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure(reviews({ order: "priority", priorities: { qa: 5, dev: 1 } }))
        yield* world.come("pm", "dev", "qa")
        yield* world.post("Look at #42")
        for (const agent of ["qa", "dev", "pm"]) yield* world.turn(agent, "TURN_COMPLETE")
      })
    )
  )

  it.effect("by hand: nobody has the floor but whom a person gives it; skip takes it; the order can be changed", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure(reviews({ order: "manual" }))
        yield* world.come("pm", "dev", "qa")
        yield* world.post("Look at #42")
        yield* world.quiet
        yield* world.floor(null)
        const refused = yield* Effect.flip(world.channels.skip("reviews", ada))
        assert.strictEqual(refused.message, "Nobody has the floor of #reviews.")
        yield* world.channels.grant("reviews", "qa", ada)
        yield* world.speaking("qa")
        // Whoever has it gives it up.
        yield* world.channels.grant("reviews", "dev", ada)
        yield* world.speaking("dev")
        assert.isUndefined(world.crew.of("qa").turn)
        yield* world.channels.skip("reviews", ada)
        yield* world.floor(null)
        yield* world.quiet
        yield* world.channels.order("reviews", "round-robin", ["qa", "pm"], ada)
        yield* world.turn("pm", "TURN_COMPLETE")
        const { channel } = yield* world.show()
        assert.strictEqual(channel.order, "round-robin")
      })
    )
  )

  it.effect("a paused channel gives no floor; the turn in progress goes on to its end", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure(reviews())
        yield* world.come("pm", "dev", "qa")
        yield* world.post("Look at #42")
        yield* world.speaking("pm")
        yield* world.channels.pause("reviews", true, ada)
        yield* world.crew.answer("pm", "Looked.\nTURN_COMPLETE")
        yield* world.quiet
        yield* world.floor(null)
        assert.include(yield* world.texts(), "pm: Looked.")
        yield* world.channels.pause("reviews", false, ada)
        yield* world.speaking("dev")
      })
    )
  )

  it.effect("a solo agent rests after its turn, and wakes by the next message", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure({ reviews: { agents: ["pm"] } })
        yield* world.come("pm")
        yield* world.post("Look at #42")
        yield* world.turn("pm", "Looked.\nTURN_COMPLETE")
        assert.deepStrictEqual(yield* world.states(), { pm: "IDLE" })
        yield* world.come("pm")
        yield* world.after(10_000)
        assert.deepStrictEqual(yield* world.states(), { pm: "IDLE" })
        yield* world.post("And at #43")
        yield* world.speaking("pm")
        assert.notInclude(world.heard("pm"), "> Look at #42")
      })
    )
  )

  it.effect("the floor goes only to one that is idle; who is at work elsewhere gets it afterwards", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure(reviews())
        yield* world.come("pm", "dev", "qa")
        yield* world.crew.send("pm", "something else")
        yield* world.quiet
        yield* world.post("Look at #42")
        yield* world.turn("dev", "TURN_COMPLETE")
        yield* world.turn("qa", "TURN_COMPLETE")
        yield* world.floor(null)
        const refused = yield* Effect.flip(world.channels.grant("reviews", "pm", ada))
        assert.include(refused.message, "at work on something else")
        yield* world.crew.answer("pm", "Not for the channel.")
        yield* world.speaking("pm")
        assert.notInclude((yield* world.texts()).join(), "Not for the channel.")
      })
    )
  )

  it.effect("an agent in two channels has one turn at a time", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure({ reviews: { agents: ["pm"] }, plans: { agents: ["pm"] } })
        yield* world.come("pm")
        yield* world.quiet
        yield* Effect.all([world.post("Here"), world.post("There", "plans")], { concurrency: "unbounded" })
        yield* world.speaking("pm")
        yield* world.quiet
        yield* world.floor(null, "plans")
        yield* world.crew.answer("pm", "Yes, here.\nTURN_COMPLETE")
        yield* world.speaking("pm", "plans")
        yield* world.floor(null)
        yield* world.crew.answer("pm", "Yes, there.\nTURN_COMPLETE")
        yield* world.quiet
        assert.deepStrictEqual(yield* world.texts(), ["ada: Here", "pm: Yes, here."])
        assert.deepStrictEqual(yield* world.texts("plans"), ["ada: There", "pm: Yes, there."])
      })
    )
  )

  it.effect("half an answer is posted as half, and the floor goes on", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure(reviews())
        yield* world.come("pm", "dev", "qa")
        yield* world.post("Look at #42")
        yield* world.speaking("pm")
        yield* world.crew.error("pm", "the answer was cut off", false, marked("It seems to me that"))
        yield* world.speaking("dev")
        assert.include(yield* world.texts(), `pm: It seems to me that\n${MARK}`)
        assert.include(yield* world.texts(), "⚠ pm could not end its turn: the answer was cut off")
        assert.include(world.heard("dev"), "half an answer")
      })
    )
  )

  it.effect("half an answer that was cut after its signal is posted without it", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure(reviews())
        yield* world.come("pm", "dev", "qa")
        yield* world.post("Look at #42")
        yield* world.speaking("pm")
        yield* world.crew.error("pm", "the answer was cut off", false, marked("It is done.\n\nTURN_COMPLETE"))
        yield* world.speaking("dev")
        assert.include(yield* world.texts(), `pm: It is done.\n${MARK}`)
      })
    )
  )

  it.effect("an error that may pass leaves it the floor; one that does not passes it on, and is said", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure(reviews())
        yield* world.come("pm", "dev", "qa")
        yield* world.post("Look at #42")
        yield* world.speaking("pm")
        yield* world.crew.error("pm", "overloaded", true)
        yield* world.quiet
        yield* world.floor("pm")
        yield* world.come("pm")
        yield* world.speaking("pm")
        yield* world.crew.error("pm", "refused", false)
        yield* world.speaking("dev")
        assert.include(yield* world.texts(), "⚠ pm could not end its turn: refused")
        // Its notice is no news to anybody.
        yield* world.turn("dev", "TURN_COMPLETE")
        yield* world.turn("qa", "TURN_COMPLETE")
        yield* world.quiet
        yield* world.floor(null)
      })
    )
  )

  it.effect(
    "one that cannot be told loses the floor, is tried again after a minute or a person's word, and loses no message",
    () =>
      run((world) =>
        Effect.gen(function* () {
          yield* world.configure(reviews())
          yield* world.come("pm", "dev", "qa")
          world.crew.unreachable.add("pm")
          yield* world.post("Look at #42")
          yield* world.turn("dev", "TURN_COMPLETE")
          yield* world.turn("qa", "TURN_COMPLETE")
          yield* world.quiet
          yield* world.floor(null)
          assert.lengthOf(
            world.crew.calls.filter(({ agent, call }) => agent === "pm" && call === "post"),
            1
          )
          yield* world.after(60)
          yield* world.floor(null)
          assert.lengthOf(
            world.crew.calls.filter(({ agent, call }) => agent === "pm" && call === "post"),
            2
          )
          world.crew.unreachable.clear()
          yield* world.post("And at #43")
          yield* world.turn("dev", "TURN_COMPLETE")
          yield* world.turn("qa", "TURN_COMPLETE")
          yield* world.speaking("pm")
          assert.include(world.heard("pm"), "> Look at #42")
        })
      )
  )

  it.effect("text that arrives after the floor has gone is kept as a rune, and not posted", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure(reviews())
        yield* world.come("pm", "dev", "qa")
        yield* world.post("Look at #42")
        yield* world.speaking("pm")
        yield* world.channels.remove("reviews", "pm", ada)
        yield* world.speaking("dev")
        yield* world.quiet
        assert.deepStrictEqual(yield* world.texts(), ["ada: Look at #42"])
        const [withheld] = yield* world.runes("channel.withheld")
        assert.deepInclude(withheld?.payload, { agent: "pm", text: "half", why: "the floor had gone" })
      })
    )
  )

  it.effect("in a conversation that takes no work nobody has the floor; afterwards the same are in the cycle", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure(reviews())
        yield* world.come("pm", "dev", "qa")
        yield* world.post("Look at #42")
        yield* world.speaking("pm")
        yield* world.crew.leaveAll
        yield* world.quiet
        assert.lengthOf(
          world.crew.calls.filter(({ call }) => call === "post"),
          1
        )
        yield* world.post("Hello?")
        yield* world.quiet
        yield* world.floor(null)
        yield* world.come("pm", "dev", "qa")
        yield* world.speaking("pm")
        yield* world.quiet
        assert.include(world.heard("pm"), "> Look at #42")
        assert.include(world.heard("pm"), "> Hello?")
        assert.deepStrictEqual(Object.values(yield* world.states()), ["ACTIVE", "QUEUED", "QUEUED"])
      })
    )
  )
})

describe("waits", () => {
  it.effect("who waits keeps its place and passes the floor on; a message ends the wait, and it goes on next", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure(reviews())
        yield* world.come("pm", "dev", "qa")
        yield* world.post("Look at #42")
        yield* world.turn("pm", "I need dev's view.\nWAIT: for dev, until message")
        assert.deepInclude(yield* world.states(), { pm: "WAITING", dev: "ACTIVE" })
        assert.include(yield* world.texts(), "pm: I need dev's view.")
        yield* world.turn("dev", "My view.\nTURN_COMPLETE")
        // Before qa, whose turn it would be.
        yield* world.speaking("pm")
        assert.include(world.heard("pm"), "> My view.")
        yield* world.turn("pm", "Thanks.\nTURN_COMPLETE")
        yield* world.speaking("qa")
      })
    )
  )

  it.effect("for a person: agents' words do not end it, a person's do, at once where the floor is free", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure(reviews())
        yield* world.come("pm", "dev", "qa")
        yield* world.post("Look at #42")
        yield* world.turn("pm", "WAIT: for your decision, until person")
        yield* world.turn("dev", "Mine is yes.\nTURN_COMPLETE")
        yield* world.turn("qa", "TURN_COMPLETE")
        assert.deepInclude(yield* world.states(), { pm: "WAITING" })
        yield* world.post("Do it")
        yield* world.speaking("pm")
        assert.include(world.heard("pm"), "> Mine is yes.")
        assert.include(world.heard("pm"), "> Do it")
      })
    )
  )

  it.effect("for a time: it goes on when it has passed", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure({ reviews: { agents: ["pm"] } })
        yield* world.come("pm")
        yield* world.post("Look at #42")
        yield* world.turn("pm", "WAIT: for the build, until 400s")
        yield* world.after(399)
        assert.deepStrictEqual(yield* world.states(), { pm: "WAITING" })
        yield* world.after(1)
        yield* world.speaking("pm")
        assert.include(world.heard("pm"), "Nothing new has been said since you last spoke.")
      })
    )
  )

  it.effect("without an end of its own it forfeits the turn after 300 s", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure({ reviews: { agents: ["pm"] } })
        yield* world.come("pm")
        yield* world.post("Look at #42")
        yield* world.turn("pm", "WAIT: for dev")
        yield* world.after(300)
        assert.deepStrictEqual(yield* world.states(), { pm: "QUEUED" })
        yield* world.floor(null)
      })
    )
  )

  it.effect("a person ends it: with the floor, or without", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure({ reviews: { agents: ["pm"] } })
        yield* world.come("pm")
        yield* world.post("Look at #42")
        yield* world.turn("pm", "WAIT: for dev")
        yield* world.channels.grant("reviews", "pm", ada)
        yield* world.speaking("pm")
      })
    )
  )
})

describe("an agent that speaks through its tools", () => {
  const pm = { conversation: CONVERSATION, agent: "pm" }

  it.effect("post, wait and turn_complete lead to what plain text leads to", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure(reviews())
        yield* world.come("pm", "dev", "qa")
        yield* world.post("Look at #42")
        yield* world.speaking("pm")
        const say = { _tag: "Post", text: "Looking." } as const
        yield* world.channels.voice(pm, say, { messageId: "call1" })
        yield* world.channels.voice(pm, say, { messageId: "call1", channel: "#reviews" })
        yield* world.channels.voice(pm, { _tag: "Wait", reason: "dev", until: "message" })
        yield* world.turn("pm", "I wait for dev.")
        assert.deepStrictEqual(yield* world.texts(), ["ada: Look at #42", "pm: Looking.", "pm: I wait for dev."])
        assert.deepInclude(yield* world.states(), { pm: "WAITING", dev: "ACTIVE" })
        yield* world.turn("dev", "Done.\nTURN_COMPLETE")
        yield* world.speaking("pm")
        yield* world.channels.voice(pm, { _tag: "TurnComplete" })
        yield* world.turn("pm", "")
        yield* world.speaking("qa")
      })
    )
  )

  it.effect("who does not have the floor is refused", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure(reviews())
        yield* world.come("pm", "dev", "qa")
        yield* world.post("Look at #42")
        yield* world.speaking("pm")
        const dev = { conversation: CONVERSATION, agent: "dev" }
        for (const options of [{}, { channel: "reviews" }]) {
          const refused = yield* Effect.flip(world.channels.voice(dev, { _tag: "Post", text: "Me, too" }, options))
          assert.include(refused.message, "You ")
        }
        assert.deepStrictEqual(yield* world.texts(), ["ada: Look at #42"])
      })
    )
  )
})

describe("channels of a project", () => {
  it.effect("follow its config: made, changed and closed with it; those that people make stay", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.come("pm", "dev", "qa")
        yield* world.configure({ reviews: { agents: ["pm", "dev"] }, plans: { agents: ["pm"] } })
        yield* world.channels.create("lounge", decodeChannel({ agents: ["qa"] }), ada)
        const names = Effect.map(world.channels.list, (all) => all.map(({ name }) => name))
        assert.deepStrictEqual(yield* names, ["reviews", "plans", "lounge"])
        yield* world.configure({ reviews: { agents: ["dev", "qa"], topic: "new" } })
        assert.deepStrictEqual(yield* names, ["reviews", "lounge"])
        const { channel } = yield* world.show()
        assert.strictEqual(channel.topic, "new")
        assert.deepStrictEqual(yield* world.states(), { dev: "QUEUED", qa: "QUEUED", pm: "IDLE" })
        const kept = yield* Effect.flip(world.channels.close("reviews", ada))
        assert.include(kept.remedy, "Remove it from that file")
        yield* world.channels.close("lounge", ada)
        yield* world.channels.create("lounge", decodeChannel({}), ada)
        assert.deepStrictEqual(yield* names, ["reviews", "lounge"])
        const head = yield* world.log.head
        yield* world.configure({ reviews: { agents: ["dev", "qa"], topic: "new" } })
        assert.strictEqual(yield* world.log.head, head)
      })
    )
  )

  it.effect(
    "are named from within the project, with it, or alone where only one has the name; else it is said what there is",
    () =>
      run((world) =>
        Effect.gen(function* () {
          yield* world.configure(reviews())
          for (const [name, caller] of [
            ["reviews", ada],
            ["#reviews", ada],
            ["web/reviews", nowhere],
            ["reviews", nowhere]
          ] as const) {
            assert.strictEqual((yield* world.channels.show(name, caller)).channel.project, "web")
          }
          const refused = yield* Effect.flip(world.channels.show("review", ada))
          assert.deepStrictEqual(
            [refused.message, refused.remedy],
            ['There is no channel "review".', "There are: reviews"]
          )
          const homeless = yield* Effect.flip(world.channels.create("x", decodeChannel({}), nowhere))
          assert.strictEqual(homeless.message, "There is no project here.")
          const twice = yield* Effect.flip(world.channels.create("reviews", decodeChannel({}), ada))
          assert.include(twice.message, "already")
          const misnamed = yield* Effect.flip(world.channels.create("My Room", decodeChannel({}), ada))
          assert.include(misnamed.message, "cannot be a channel's name")
        })
      )
  )

  it.effect("a long answer is cut, and said so; what an agent is told is bounded", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure({ reviews: { agents: ["pm", "dev"] } })
        yield* world.come("pm", "dev")
        for (let n = 0; n < 30; n++) yield* world.post(`${n} ${"x".repeat(6_000)}`)
        yield* world.quiet
        yield* world.crew.answer("pm", `${"y".repeat(100_000)}\nTURN_COMPLETE`)
        yield* world.speaking("dev")
        const { posts } = yield* world.show()
        assert.include(posts.at(-1)!.text, "cut")
        assert.isBelow(Buffer.byteLength(posts.at(-1)!.text), 70_000)
        assert.isBelow(world.heard("dev").length, 50_000)
        assert.match(world.heard("dev"), /\(\d+ earlier ones are left out\)/)
        assert.include(world.heard("dev"), "> y")
        yield* TestClock.adjust(1)
      })
    )
  )
})
