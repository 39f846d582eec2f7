/**
 * Floor: a channel in which agents take turns, answer, wait, leave and come back, with a
 * person, with time and with a daemon that dies: one has the floor at most, who has it or
 * waits for it is a member that the channel counts on, an answer stands once, nobody waits
 * while the floor is free, and every state leads by itself to one in which all is done.
 *
 * `ALL=1` takes larger bounds.
 */
import { assert, describe, it } from "@effect/vitest"
import { explore, say } from "./Explore.ts"
import { type Definition, floorModel, type Options } from "./FloorModel.ts"
import { all, long } from "../../support/Long.ts"

const two: Options = {
  agents: ["pm", "dev"],
  ends: ["done"],
  leaves: [],
  person: ["post"],
  tools: false,
  crash: false,
  refuses: false,
  unread: 1,
  acts: 1,
  reports: 1,
  most: 1_000_000
}

const sizes = (options: Partial<Options>) => {
  const found = explore(floorModel({ ...two, ...options }))
  assert.strictEqual(say(found), "")
  return [found.states, found.transitions]
}

const three = ["pm", "dev", "qa"]

describe("the floor of a channel", () => {
  long.it("three agents", () => {
    assert.deepStrictEqual(sizes({ agents: three, ends: ["done", "fails"] }), [106_811, 270_312])
  })

  long.it("an agent is stopped and comes back, and the daemon dies", () => {
    assert.deepStrictEqual(sizes({ leaves: ["stopped"], crash: true }), [18_829, 52_011])
  })

  it("agents wait, and a person gives and takes the floor", () => {
    assert.deepStrictEqual(sizes({ ends: ["done", "waits"], person: ["post", "grant"] }), [9801, 32_941])
  })

  it("answers without a signal, signals by tools, agents that take no message", () => {
    const options = { ends: ["done", "silent"], tools: true, refuses: true } as const
    assert.deepStrictEqual(sizes(options), [3750, 11_173])
  })

  all.it("a person gives the floor to three agents, and puts them back", () => {
    const options = { agents: three, person: ["post", "grant", "requeue"] } as const
    assert.deepStrictEqual(sizes(options), [483_953, 2_724_898])
  })
})

describe("planted mistakes are found", () => {
  const found = (plant: (definition: Definition) => Partial<Definition>, options: Partial<Options> = {}) => {
    const planted = (definition: Definition): Definition => ({ ...definition, ...plant(definition) })
    return explore(floorModel({ ...two, leaves: ["stopped"], ...options, plant: planted })).problem?.what ?? "nothing"
  }
  type Apply = Definition["apply"]
  /** Of a rune with that trigger this is forgotten. */
  const forgets = (trigger: string, forget: (...of: [...Parameters<Apply>, Apply]) => ReturnType<Apply>) =>
    found(({ apply }) => ({
      apply: (channel, rune, isJoined) =>
        rune.trigger === trigger ? forget(channel, rune, isJoined, apply) : apply(channel, rune, isJoined)
    }))

  it("a turn's end does not clear the floor", () => {
    const what = forgets("TURN_COMPLETE", (before, rune, isJoined, apply) => ({
      ...apply(before, rune, isJoined),
      floor: before.floor
    }))
    assert.match(what, /the floor is \w+'s, and the queue says/)
  })

  it("the queue keeps who has had its turn as its current one", () => {
    const what = forgets("TURN_COMPLETE", (before, rune, isJoined, apply) => {
      const after = apply(before, rune, isJoined)
      return { ...after, queue: { ...after.queue, current: before.queue.current } }
    })
    assert.match(what, /and the queue says/)
  })

  it("one that has left stays in the queue", () => {
    const what = forgets("AgentLeft", (before, rune, isJoined, apply) => ({
      ...apply(before, rune, isJoined),
      queue: { ...before.queue, current: null }
    }))
    assert.match(what, /the queue is/)
  })

  it("the floor is not given on", () => {
    const what = found(({ decide }) => ({
      decide: (channel, input, context) => {
        const decided = decide(channel, input, context)
        if (input._tag !== "Ended" || typeof decided === "string" || !("runes" in decided)) return decided
        return { ...decided, runes: decided.runes.filter(({ trigger }) => trigger !== "TurnGranted") }
      }
    }))
    assert.match(what, /waits though the floor is free/)
  })

  it("nobody looks after the time of a wait", () => {
    const what = found(
      ({ timers }) => ({
        timers: (channel, began) => timers!(channel, began).filter(({ key }) => !key.endsWith(" wait"))
      }),
      { ends: ["done", "waits"], leaves: [] }
    )
    assert.match(what, /no goal is reached/)
  })
})
