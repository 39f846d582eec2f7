/**
 * Tools: the calls of an agent whose run says anything in any order, with a person who
 * answers late or never, interrupts, and a daemon that dies: each call has one result at
 * most, from every state each open call gets one (though nobody answers), none is let or
 * executed without the leave that it asked for, and every state is the fold of its log.
 *
 * `ALL=1` lets other things come before what is on its way.
 */
import { assert, describe, it } from "@effect/vitest"
import type { AnyActor } from "../../../src/core/event-actor/Member.ts"
import type { EventSourcedActor } from "../../../src/core/event-actor/EventSourcedActor.ts"
import { explore, say } from "./Explore.ts"
import { type Options, toolsModel } from "./ToolsModel.ts"
import { all } from "../../support/Long.ts"

const none: Options = {
  calls: 1,
  runs: 1,
  deaths: 0,
  results: ["success", "denied"],
  ahead: 0,
  lies: false,
  interrupts: false,
  steers: false,
  most: 1_000_000
}

const sizes = (options: Partial<Options>) => {
  const found = explore(toolsModel({ ...none, ...options }))
  assert.strictEqual(say(found), "")
  return [found.states, found.transitions]
}

describe("one result for each call", () => {
  it("a run that lies, a person who interrupts, and a death", () => {
    assert.deepStrictEqual(sizes({ lies: true, interrupts: true, deaths: 1 }), [12_450, 18_856])
  })

  it("a person who steers", () => {
    assert.deepStrictEqual(sizes({ steers: true, results: ["success"] }), [13_687, 16_127])
  })
})

// what is on its way comes after anything else
all.describe("one result for each call, with all that comes between", () => {
  it("a run that lies, a person who interrupts, and a death", () => {
    assert.deepStrictEqual(sizes({ lies: true, interrupts: true, deaths: 1, ahead: 1 }), [19_752, 34_749])
  })

  it("two calls", () => {
    assert.deepStrictEqual(sizes({ calls: 2, results: ["success"] }), [52_165, 64_793])
  })

  it("two calls of a run that lies", () => {
    assert.deepStrictEqual(sizes({ calls: 2, lies: true, ahead: 1, results: ["success"] }), [90_869, 141_672])
  })

  it("a run that lies, interrupts and steers", () => {
    const options = { lies: true, interrupts: true, steers: true, ahead: 1, results: ["success"] } as const
    assert.deepStrictEqual(sizes(options), [85_764, 133_121])
  })

  it("a further run after a death", () => {
    assert.deepStrictEqual(sizes({ runs: 2, deaths: 1, ahead: 1 }), [36_272, 49_271])
  })
})

type Tools = EventSourcedActor<unknown, { readonly _tag: string; readonly callId?: string }, { readonly _tag: string }>

describe("planted mistakes are found", () => {
  const found = (plant: (tools: Tools) => Partial<Tools>, options: Partial<Options> = {}) => {
    const planted = (tools: AnyActor): AnyActor => ({ ...tools, ...(plant(tools as unknown as Tools) as object) })
    const of = { ...none, lies: true, interrupts: true, results: ["success"] as const, plant: planted }
    return explore(toolsModel({ ...of, ...options })).problem?.what ?? "nothing"
  }

  it("a run that is over leaves its calls open", () => {
    // a call's own time would end it all the same
    const timers = () => []
    const what = found(({ decide }) => ({
      timers,
      decide: (state, message, context) => {
        const decided = decide(state, message, context)
        const isExit = message._tag === "Exited" && typeof decided === "object" && "runes" in decided
        if (!isExit) return decided
        const { state: _, ...rest } = decided
        return { ...rest, runes: [], acts: [] }
      }
    }))
    assert.match(what, /no result, and its turn is over|the turn goes on|no goal is reached/)
    assert.strictEqual(
      found(() => ({ timers })),
      "nothing",
      "the time alone is not missed"
    )
  })

  it("a call that has its result stays open", () => {
    const what = found(({ apply, decide }) => ({
      apply: (state, rune, isJoined) => (rune.kind === "tool.result" ? state : apply(state, rune, isJoined)),
      decide: (state, message, context) => {
        const decided = decide(state, message, context)
        if (typeof decided !== "object" || !("runes" in decided)) return decided
        const { state: _, ...rest } = decided
        return rest
      }
    }))
    assert.match(what, /after its result|is open, or it has a result/)
  })

  it("a question is answered before a person is asked", () => {
    const what = found(({ decide }) => ({
      decide: (state, message, context) => {
        const decided = decide(state, message, context)
        if (message._tag !== "Asked" || typeof decided !== "object" || !("runes" in decided)) return decided
        const leave = { _tag: "Tell", callId: message.callId, decision: { behavior: "allow" } }
        return { ...decided, acts: [...(decided.acts ?? []), leave] }
      }
    }))
    assert.match(what, /was let without leave/)
  })

  it("a run is told of its leave twice", () => {
    const what = found(({ decide }) => ({
      decide: (state, message, context) => {
        const decided = decide(state, message, context)
        if (typeof decided !== "object" || !("runes" in decided)) return decided
        const acts = (decided.acts ?? []).flatMap((act) => (act._tag === "Tell" ? [act, act] : [act]))
        return { ...decided, acts }
      }
    }))
    assert.match(what, /was let twice/)
  })

  it("nobody looks after the time of a question", () => {
    assert.match(
      found(() => ({ timers: () => [] }), { deaths: 1, interrupts: false }),
      /no goal is reached/
    )
  })

  it("what an earlier daemon ran is left as it is", () => {
    assert.match(
      found(
        ({ decide }) => ({
          decide: (state, message, context) =>
            message._tag === "Lost" ? { runes: [] } : decide(state, message, context)
        }),
        { deaths: 1, interrupts: false, lies: false }
      ),
      /the turn waits for calls|no goal is reached|no result/
    )
  })
})
