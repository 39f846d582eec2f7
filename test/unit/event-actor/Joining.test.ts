/** Joining: one rune for one fact, which moves several machines of a scope; and the fold of it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ActorStopped } from "../../../src/core/event-actor/ActorError.ts"
import { actor, tell } from "../../../src/core/event-actor/EventSourcedActor.ts"
import type { Refused } from "../../../src/core/event-actor/Refused.ts"
import { fold, ScopeFold, unheard } from "../../../src/core/event-actor/ScopeFold.ts"
import { stateMachineActor } from "../../../src/core/event-actor/StateMachineActor.ts"
import { define, illegal, stale, to } from "../../../src/core/event-actor/StateMachine.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import { HeldLog, lab, memory, quiet, random, Restarter, scopeIn } from "../../world/event-actor/Lab.ts"

const run = Effect.runPromise

// --- three machines: a door, its light, and its counter of visitors

type DoorEvent = { readonly _tag: "Open" } | { readonly _tag: "Close" } | { readonly _tag: "Rattle" }
const Door = define<"Shut" | "Ajar", DoorEvent, null, never, "door.moved">()({
  name: "door",
  initial: "Shut",
  final: [],
  rune: "door.moved",
  guards: {},
  updates: {},
  actions: {},
  timers: {},
  fields: {},
  states: { Shut: {}, Ajar: {} },
  table: {
    Shut: { Open: to("Ajar"), ...illegal("Close"), Rattle: to("Shut") },
    Ajar: { Close: to("Shut"), ...illegal("Open"), Rattle: to("Ajar") }
  }
})

type LightEvent = { readonly _tag: "SwitchOn"; readonly by: string } | { readonly _tag: "SwitchOff" }
type LightAction = { readonly _tag: "Glow"; readonly by: string }
interface LightData {
  readonly by: string
}
const Light = define<"Dark" | "Lit", LightEvent, LightData, LightAction, "light.moved">()({
  name: "light",
  initial: "Dark",
  final: [],
  rune: "light.moved",
  guards: {},
  updates: { by: (data, event) => (event._tag === "SwitchOn" ? { by: event.by } : data) },
  actions: { Glow: ({ by }) => ({ _tag: "Glow", by }) },
  timers: { burn: { after: () => 60_000, fires: () => ({ _tag: "SwitchOff" }) } },
  fields: {},
  states: { Dark: {}, Lit: { timeout: "burn", enter: "glow" } },
  table: {
    Dark: { SwitchOn: to("Lit", { set: "by", act: ["Glow"] }), ...stale("SwitchOff") },
    Lit: { SwitchOn: to("Lit", { set: "by", reenter: true }), SwitchOff: to("Dark") }
  }
})

type CountEvent = { readonly _tag: "Visit" } | { readonly _tag: "Reset" }
const Count = define<"Counting", CountEvent, number, never, "count.moved">()({
  name: "count",
  initial: "Counting",
  final: [],
  rune: "count.moved",
  guards: {},
  updates: { more: (n) => n + 1, none: () => 0 },
  actions: {},
  timers: {},
  fields: {},
  states: { Counting: {} },
  table: { Counting: { Visit: to("Counting", { set: "more" }), Reset: to("Counting", { set: "none" }) } }
})

const house = (acted: Array<string> = []) => ({
  door: stateMachineActor<"Shut" | "Ajar", DoorEvent, null, never>({
    machine: Door,
    data: null,
    follow: () => ({ moves: ["light", "count"] })
  }),
  light: stateMachineActor<"Dark" | "Lit", LightEvent, LightData, LightAction>({
    machine: Light,
    data: { by: "" },
    joins: ({ actor, to, trigger }, { state }) =>
      trigger === "Rattle"
        ? undefined
        : to === "Ajar"
          ? { _tag: "SwitchOn", by: actor }
          : state === "Lit"
            ? { _tag: "SwitchOff" }
            : undefined,
    perform: ({ by }, { cause, state }) => void acted.push(`glow by ${by} ${cause?.seq} ${state.state}`),
    run: ({ key }) =>
      Effect.onInterrupt(
        Effect.andThen(
          Effect.sync(() => acted.push(`+${key}`)),
          Effect.never
        ),
        () => Effect.sync(() => acted.push(`-${key}`))
      )
  }),
  count: stateMachineActor<"Counting", CountEvent, number, never>({
    machine: Count,
    data: 0,
    joins: ({ trigger }) => (trigger === "Open" ? { _tag: "Visit" } : undefined)
  })
})

const livingHouse = (acted: Array<string> = []) => {
  const { letters, log, system } = memory()
  const scope = scopeIn(system, "house")
  const { count, door, light } = house(acted)
  const members = { door: scope.add("door", door), light: scope.add("light", light), count: scope.add("count", count) }
  const supervisor = new Restarter()
  supervisor.startChild(scope)
  return { ...members, letters, log, scope, supervisor }
}

const states = ({ count, door, light }: Pick<ReturnType<typeof livingHouse>, "count" | "door" | "light">) => ({
  door: door.state,
  light: light.state,
  count: count.state
})

describe("three machines", () => {
  it("one rune moves all three, names whom it moves, and is acted on by each", async () => {
    const acted: Array<string> = []
    const one = livingHouse(acted)
    await run(one.door.ask({ _tag: "Open" }))
    assert.strictEqual(one.log.kept.length, 1)
    assert.deepInclude(one.log.kept[0], { actor: "door", kind: "door.moved", moves: ["light", "count"] })
    assert.deepStrictEqual([one.light.state.state, one.light.state.entered, one.count.state.data], ["Lit", 1, 1])
    await run(one.door.ask({ _tag: "Rattle" }))
    await run(one.door.ask({ _tag: "Close" }))
    await quiet()
    assert.deepStrictEqual(
      one.log.kept.map(({ moves }) => moves),
      [["light", "count"], [], ["light"]],
      "only those that it concerns are named"
    )
    assert.deepStrictEqual(acted, ["glow by door 1 Lit", "+1", "-1"])
    assert.deepStrictEqual(fold(house(), one.log.kept), states(one))
  })

  it("a machine moves by runes of its own and by those that it joins, in the order of the log", async () => {
    const one = livingHouse()
    await run(one.light.ask({ _tag: "SwitchOn", by: "hand" }))
    await run(one.door.ask({ _tag: "Open" }))
    await run(one.light.ask({ _tag: "SwitchOff" }))
    await run(one.count.ask({ _tag: "Reset" }))
    await run(one.door.ask({ _tag: "Close" }))
    assert.deepStrictEqual(fold(house(), one.log.kept), states(one))
    assert.deepStrictEqual([one.light.state.seq, one.count.state.data], [3, 0])
  })

  it("the law: live is fold, after any events, also when the log is read in pieces", async () => {
    for (let seed = 1; seed <= 100; seed++) {
      const dice = random(seed)
      const one = livingHouse()
      for (let n = 0; n < 40; n++) {
        const roll = dice()
        if (roll < 0.3) one.door.tellNow({ _tag: "Open" })
        else if (roll < 0.6) one.door.tellNow({ _tag: "Close" })
        else if (roll < 0.7) one.door.tellNow({ _tag: "Rattle" })
        else if (roll < 0.8) one.light.tellNow({ _tag: "SwitchOn", by: "hand" })
        else if (roll < 0.9) one.light.tellNow({ _tag: "SwitchOff" })
        else one.count.tellNow({ _tag: "Reset" })
      }
      await quiet()
      const cut = Math.floor(dice() * one.log.kept.length)
      const definitions = house()
      const before = fold(definitions, one.log.kept.slice(0, cut))
      const after = new ScopeFold()
        .add("door", definitions.door, before.door)
        .add("light", definitions.light, before.light)
        .add("count", definitions.count, before.count)
      for (const rune of one.log.kept.slice(cut)) after.apply(rune)
      assert.deepStrictEqual(Object.fromEntries(after.states), states(one), `seed ${seed}`)
    }
  })

  it("runes of an older log, which name one machine each, fold beside those that are joined", () => {
    const old = (eventId: number, actor: string, event: { readonly _tag: string }): Rune => ({
      format: 1,
      eventId,
      seq: eventId,
      stream: "house",
      at: 5,
      kind: `${actor}.moved`,
      actor,
      from: null,
      to: null,
      trigger: event._tag,
      cause: null,
      moves: [],
      visibility: "internal",
      payload: { event }
    })
    const joined: Rune = { ...old(4, "door", { _tag: "Close" }), to: "Shut", moves: ["light"] }
    const runes = [
      old(1, "door", { _tag: "Open" }),
      old(2, "light", { _tag: "SwitchOn", by: "hand" } as { readonly _tag: string }),
      old(3, "stranger", { _tag: "Knock" }),
      joined
    ]
    const { count, door, light } = fold(house(), runes)
    assert.deepStrictEqual([door.state, light.state, light.seq, count.data], ["Shut", "Dark", 4, 0])
    assert.throws(() => fold(house(), [old(1, "door", { _tag: "Close" })]), /illegal in Shut: the log does not fold/)
  })

  it("an append that fails undoes it in all three, and it is stepped again", async () => {
    const { log, system } = lab(new HeldLog())
    const { count, door, light } = house()
    const scope = scopeIn(system, "house")
    const members = {
      door: scope.add("door", door),
      light: scope.add("light", light),
      count: scope.add("count", count)
    }
    new Restarter().startChild(scope)
    members.door.tellNow({ _tag: "Open" })
    await quiet()
    assert.deepStrictEqual([members.light.ahead.state, members.light.state.state], ["Lit", "Dark"])
    log.break()
    assert.deepStrictEqual([members.light.ahead.state, members.count.ahead.data], ["Dark", 0])
    await quiet()
    log.land()
    assert.deepStrictEqual(fold(house(), log.kept), states(members))
    assert.strictEqual(members.count.state.data, 1)
  })
})

// --- actors by hand: what the tables cannot show

type Message = "move" | "move self" | "move deaf" | "move nobody" | "tell and move"

const follower = (says: "joins" | "stale" | "illegal" | "postpone" | "passes on") =>
  actor<ReadonlyArray<string>, string>({
    initial: [],
    decide: (_, word) => ({ runes: [{ kind: "heard", payload: { word } }] }),
    join: () => (says === "joins" ? {} : says === "passes on" ? { moves: ["last"] } : says),
    apply: (heard, { kind }, isJoined) => [...heard, `${isJoined ? "joined" : "own"} ${kind}`]
  })

const group = (says: Parameters<typeof follower>[0]) => {
  const { letters, log, system } = memory()
  const scope = scopeIn(system, "group")
  const first = scope.add(
    "first",
    actor<number, Message>({
      initial: 0,
      decide: (_, message, { ref }) => ({
        runes: [
          {
            kind: "moved",
            payload: {},
            moves:
              message === "move self"
                ? ["first"]
                : message === "move deaf"
                  ? ["deaf"]
                  : message === "move nobody"
                    ? ["nobody"]
                    : ["second"]
          },
          { kind: "moved too", payload: {} }
        ],
        tells: message === "tell and move" ? [tell(ref<string>("second"), "hello")] : []
      }),
      apply: (n) => n + 1
    })
  )
  const second = scope.add("second", follower(says))
  const last = scope.add("last", follower("joins"))
  scope.add("deaf", actor<number, string>({ initial: 0, decide: () => "illegal", apply: (n) => n }))
  const supervisor = new Restarter()
  supervisor.startChild(scope)
  return { first, last, letters, log, second, supervisor }
}

describe("actors", () => {
  it("a fact may move a third by way of the second; the rune names both", async () => {
    const one = group("passes on")
    await run(one.first.ask("move"))
    assert.deepStrictEqual(
      one.log.kept.map(({ kind, moves }) => [kind, moves]),
      [
        ["moved", ["second", "last"]],
        ["moved too", []]
      ]
    )
    assert.deepStrictEqual([one.second.state, one.last.state], [["joined moved"], ["joined moved"]])
  })

  it("who joins has moved before any later rune and any message: the order of the log", async () => {
    const one = group("joins")
    await run(one.first.ask("tell and move"))
    assert.deepStrictEqual(one.second.state, ["joined moved", "own heard"])
  })

  it("stale: it does not join and is not named; illegal, or too early: the whole macrostep is refused", async () => {
    const late = group("stale")
    await run(late.first.ask("move"))
    assert.deepStrictEqual([late.log.kept[0]!.moves, late.second.state], [[], []])
    for (const says of ["illegal", "postpone"] as const) {
      const one = group(says)
      const error = (await run(Effect.flip(one.first.ask("move")))) as Refused
      assert.deepInclude({ ...error }, { _tag: "Refused", actor: "second", why: "illegal" })
      assert.deepStrictEqual([one.log.kept.length, one.first.state, one.supervisor.restarts], [0, 0, 0])
    }
  })

  it("to move oneself, one that joins nothing, or one that is not there, is the author's bug: a crash", async () => {
    for (const message of ["move self", "move deaf", "move nobody"] as const) {
      const one = group("joins")
      const error = (await run(Effect.flip(one.first.ask(message)))) as ActorStopped
      assert.strictEqual(error.reason, "crashed")
      assert.deepStrictEqual([one.log.kept.length, one.supervisor.restarts], [0, 1])
    }
  })
})

describe("what is told again", () => {
  const rune = (seq: number, actor: string, cause: Rune["cause"] = null, stream = "s"): Rune => ({
    format: 2,
    eventId: seq,
    seq,
    stream,
    at: 0,
    kind: "k",
    actor,
    from: null,
    to: null,
    trigger: null,
    cause,
    moves: [],
    visibility: "internal",
    payload: {}
  })
  const sent = [1, 3, 5].map((seq) => rune(seq, "turn/b"))
  const received = (...causes: ReadonlyArray<Rune["cause"]>) => causes.map((cause) => rune(9, "c", cause, "r"))

  it("the newest of the sender's runes that the receiver names is the acknowledgement", () => {
    const seqs = (...causes: ReadonlyArray<Rune["cause"]>) => unheard(sent, received(...causes)).map(({ seq }) => seq)
    assert.deepStrictEqual(seqs(), [1, 3, 5])
    assert.deepStrictEqual(seqs({ stream: "s", seq: 3 }, { stream: "s", seq: 1 }), [5])
    assert.deepStrictEqual(seqs({ stream: "s", seq: 4 }), [1, 3, 5], "a rune of another sender")
    assert.deepStrictEqual(seqs({ stream: "other", seq: 5 }), [1, 3, 5])
    assert.deepStrictEqual(seqs({ stream: "s", seq: 5 }), [])
  })
})
