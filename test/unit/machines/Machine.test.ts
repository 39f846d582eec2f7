import { assert, describe, it } from "@effect/vitest"
import {
  branchesOf,
  define,
  edges,
  evolve,
  fold,
  illegal,
  on,
  postpone,
  stale,
  step,
  to
} from "../../../src/core/event-actor/StateMachine.ts"

type Event =
  | { readonly _tag: "Add"; readonly by: number }
  | { readonly _tag: "Early" }
  | { readonly _tag: "Late" }
  | { readonly _tag: "Wrong" }
  | { readonly _tag: "Again" }
interface Data {
  readonly sum: number
}
type Action = { readonly _tag: "Say"; readonly sum: number }

const Counter = define<"Open" | "Full", Event, Data, Action, "counter.moved" | "counter.filled">()({
  name: "counter",
  initial: "Open",
  final: ["Full"],
  rune: "counter.moved",
  fenced: (_, event) => event._tag === "Add" && event.by < 0,
  guards: { many: (data) => data.sum >= 3, one: (data) => data.sum >= 1 },
  updates: { add: on<Event, Data>()("Add", (data, event) => ({ sum: data.sum + event.by })) },
  actions: { Say: (data) => ({ _tag: "Say", sum: data.sum }) },
  timers: {},
  fields: { "counter.filled": (data) => ({ sum: data.sum }) },
  states: { Open: { enter: "Watch" }, Full: {} },
  table: {
    Open: {
      Add: {
        set: "add",
        then: [
          { to: "Full", when: "many", rune: "counter.filled", act: ["Say"] },
          { to: "Open", when: "one", act: ["Say"] },
          { to: "Open" }
        ]
      },
      Again: to("Open", { reenter: true }),
      ...postpone("Early"),
      ...stale("Late"),
      ...illegal("Wrong")
    },
    Full: stale("Add", "Early", "Late", "Wrong", "Again")
  }
})

const add = (by: number): Event => ({ _tag: "Add", by })
const rune = (eventId: number, event: Event) => ({ eventId, seq: eventId, at: eventId * 10, payload: { event } })

describe("step", () => {
  it("runs the update first: guards, actions and fields see its result", () => {
    const result = step(Counter, "Open", { sum: 2 }, add(1))
    assert.deepStrictEqual(result, {
      _tag: "Moved",
      to: "Full",
      state: "Full",
      data: { sum: 3 },
      kind: "counter.filled",
      payload: { sum: 3, event: add(1) },
      actions: [{ _tag: "Say", sum: 3 }],
      reenter: false
    })
  })

  it("takes the first branch whose guard holds, the last where none does", () => {
    const acts = (sum: number, by: number) => {
      const result = step(Counter, "Open", { sum }, add(by))
      return result._tag === "Moved" && [result.state, result.actions.length]
    }
    assert.deepStrictEqual(acts(0, 0), ["Open", 0])
    assert.deepStrictEqual(acts(0, 1), ["Open", 1])
    assert.deepStrictEqual(acts(0, 9), ["Full", 1])
  })

  it("refuses as the cell says, a fenced event as stale, an event that it does not know as illegal", () => {
    const why = (event: Event | { readonly _tag: "Unheard" }) => {
      const result = step(Counter, "Open", { sum: 0 }, event as Event)
      return result._tag === "Refused" && result.why
    }
    assert.strictEqual(why({ _tag: "Early" }), "postpone")
    assert.strictEqual(why({ _tag: "Late" }), "stale")
    assert.strictEqual(why({ _tag: "Wrong" }), "illegal")
    assert.strictEqual(why(add(-1)), "stale")
    assert.strictEqual(why({ _tag: "Unheard" }), "illegal")
  })
})

describe("fold", () => {
  it("yields the state, its data, the rune that entered it and when", () =>
    assert.deepStrictEqual(fold(Counter, { sum: 0 }, [rune(4, add(1)), rune(7, add(5))]), {
      state: "Full",
      data: { sum: 6 },
      entered: 7,
      seq: 7,
      at: 70
    }))

  it("a move to the same state enters nothing; one that enters again does, and restarts no timeout", () => {
    const stood = { state: "Open", data: { sum: 0 }, entered: 2, seq: 2, at: 20 } as const
    assert.deepStrictEqual(evolve(Counter, stood, rune(3, add(1))), { ...stood, data: { sum: 1 } })
    assert.deepStrictEqual(evolve(Counter, stood, rune(3, { _tag: "Again" })), { ...stood, entered: 3, seq: 3 })
  })

  it("a rune that does not step is a broken log: it throws, and says which", () =>
    assert.throws(() => fold(Counter, { sum: 0 }, [rune(4, { _tag: "Wrong" })]), /rune 4 \(Wrong\) is illegal in Open/))
})

describe("edges", () => {
  it("are the branches of all cells, in order", () => {
    assert.deepStrictEqual(
      edges(Counter).map(({ event, from, to, when }) => [from, event, to, when]),
      [
        ["Open", "Add", "Full", "many"],
        ["Open", "Add", "Open", "one"],
        ["Open", "Add", "Open", undefined],
        ["Open", "Again", "Open", undefined]
      ]
    )
    assert.deepStrictEqual(branchesOf("stale"), [])
  })
})
