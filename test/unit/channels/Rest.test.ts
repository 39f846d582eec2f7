/** Agents among themselves are bounded: after so many posts their channel rests, until a person has a word. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { ada, run, until, type World } from "../../world/channels/World.ts"

/** Answers all that it is told: without a bound they would go on for ever. */
const chatter = (agent: string) => `${agent} has a word.\nTURN_COMPLETE`

const RESTS = /posts without a person: the channel rests\. Post something, or: agentd channel resume reviews/

const begun = Effect.fnUntraced(function* (world: World, more: object = { turnConfig: { restAfterPosts: 5 } }) {
  world.crew.auto = chatter
  yield* world.configure({ reviews: { agents: ["pm", "dev"], ...more } })
  yield* world.come("pm", "dev")
  yield* world.post("What do you think?")
})

const isResting = (world: World) =>
  until("it rests", world.show(), ({ channel }) => channel.waits?.startsWith("rests after") === true)

const posts = (world: World) =>
  Effect.map(world.texts(), (all) => all.filter((text) => text.includes("has a word.")).length)

const notices = (world: World) => Effect.map(world.texts(), (all) => all.filter((text) => RESTS.test(text)).length)

describe("agents among themselves", () => {
  it.effect("rest after 20 posts without a person, as the default says, and it is said once", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* begun(world, {})
        yield* isResting(world)
        yield* world.quiet
        assert.strictEqual(yield* posts(world), 20)
        assert.strictEqual(yield* notices(world), 1)
        const { channel } = yield* world.show()
        assert.isNull(channel.floor)
        assert.strictEqual(channel.detail, channel.waits)
      })
    )
  )

  it.effect("go on with the next post of a person, and after channel resume", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* begun(world)
        yield* isResting(world)
        yield* world.post("And now?")
        yield* until("they have talked again", posts(world), (count) => count === 10)
        yield* isResting(world)
        yield* world.channels.pause("reviews", false, ada)
        yield* until("they have talked again", posts(world), (count) => count === 15)
        yield* isResting(world)
        yield* world.quiet
        assert.strictEqual(yield* posts(world), 15)
        assert.strictEqual(yield* notices(world), 3)
      })
    )
  )

  it.effect("rest after a restart of the daemon, too", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* begun(world)
        yield* isResting(world)
        const next = yield* world.restart
        yield* until("it is settled", next.channels.ready, Boolean)
        yield* next.quiet
        yield* isResting(next)
        assert.strictEqual(yield* posts(next), 5)
        // A config that allows more lets them go on.
        yield* begun(next, { turnConfig: { restAfterPosts: 100 } })
        yield* until("they have talked again", posts(next), (count) => count > 5)
        next.crew.auto = () => "TURN_COMPLETE"
      })
    )
  )

  it.effect("count anew from a task or a message that reaches one of them from outside, but not while they rest", () =>
    run((world) =>
      Effect.gen(function* () {
        world.crew.auto = undefined
        yield* world.configure({ reviews: { agents: ["pm", "dev"], turnConfig: { restAfterPosts: 3 } } })
        yield* world.come("pm", "dev")
        yield* world.post("What do you think?")
        yield* world.turn("pm", "One.\nTURN_COMPLETE")
        yield* world.speaking("dev")
        yield* world.crew.send("pm", "a task")
        yield* world.quiet
        assert.lengthOf(yield* world.runes("channel.stirred"), 1)
        yield* world.crew.answer("pm", "Done.")
        for (const agent of ["dev", "pm", "dev"]) yield* world.turn(agent, "More.\nTURN_COMPLETE")
        yield* isResting(world)
        yield* world.crew.send("pm", "another task")
        yield* world.quiet
        assert.lengthOf(yield* world.runes("channel.stirred"), 1)
        yield* isResting(world)
      })
    )
  )

  it.effect("say no more through their tools, either; a person may still give one of them the floor", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure({ reviews: { agents: ["pm"], turnConfig: { restAfterPosts: 2 } } })
        yield* world.come("pm")
        yield* world.post("Report.")
        yield* world.speaking("pm")
        const say = (text: string) =>
          world.channels.voice({ conversation: "web-1a2b3c4d", agent: "pm" }, { _tag: "Post", text })
        yield* say("One.")
        yield* say("Two.")
        const refused = yield* Effect.flip(say("Three."))
        assert.match(refused.message, /#reviews rests/)
        yield* world.crew.answer("pm", "TURN_COMPLETE")
        yield* isResting(world)
        yield* world.channels.grant("reviews", "pm", ada)
        yield* world.speaking("pm")
      })
    )
  )
})

describe("a person ends a wait", () => {
  it.effect("requeue: who waits goes to the end of the queue, and forfeits its turn", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.configure({ reviews: { agents: ["pm", "dev"] } })
        yield* world.come("pm", "dev")
        yield* world.post("Look at #42")
        yield* world.turn("pm", "WAIT: for ada, until person")
        yield* world.speaking("dev")
        const done = yield* world.channels.requeue("reviews", "pm", ada)
        assert.match(done.message, /pm no longer waits/)
        const { channel } = yield* world.show()
        assert.deepStrictEqual(
          channel.seats.map(({ agent, position, state }) => [agent, state, position]),
          [
            ["dev", "ACTIVE", 1],
            ["pm", "QUEUED", 2]
          ]
        )
        // who has the floor loses it by the same word
        yield* world.channels.requeue("reviews", "dev", ada)
        yield* world.floor(null)
        assert.match((yield* Effect.flip(world.channels.requeue("reviews", "dev", ada))).message, /neither waits/)
      })
    )
  )
})
