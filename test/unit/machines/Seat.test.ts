import { assert, describe, it } from "@effect/vitest"
import {
  type Action,
  type Data,
  DEFAULT_INTERRUPT_MODE,
  type Event,
  initial,
  INTERRUPT_MODES,
  logLine,
  properties,
  readAnswer,
  Seat,
  type State
} from "../../../src/channels/SeatMachine.ts"
import { begin, drive, type Driven } from "../../world/machines/drive.ts"

const fresh = begin<State, Data, Action>(Seat, initial("pm", "reviews"))
const after = (events: ReadonlyArray<Event>, from: Driven<State, Data, Action> = fresh) => drive(Seat, from, events)
const acts = ({ actions }: Driven<State, Data, Action>) => actions.map(({ _tag }) => _tag)

const granted = (turnId: string): Event => ({ _tag: "TurnGranted", turnId, at: 1_000 })
const complete = (solo: boolean): Event => ({ _tag: "TURN_COMPLETE", turnId: "t1", solo })
const left = (how: "stopped" | "disconnected" | "crashed"): Event => ({ _tag: "AgentLeft", how })
const removed: Event = { _tag: "Removed", by: "me" }
const arrived: Event = { _tag: "MessageArrived", messageId: "m" }
const asksToWait: Event = { _tag: "WaitRequested", turnId: "t1", reason: "a build" }
const resolved = (floorFree: boolean): Event => ({ _tag: "WaitResolved", turnId: "t1", floorFree, at: 5_000 })
const override = (target: "QUEUED" | "ACTIVE"): Event => ({ _tag: "HumanOverride", by: "me", to: target, at: 5_000 })

const idle = after([{ _tag: "AgentStarted" }])
const queued = after([{ _tag: "Assigned" }], idle)
const active = after([granted("t1")], queued)
const waiting = after([asksToWait], active)

describe("Seat", () => {
  it("comes online, joins, gets the floor, and gives it back", () => {
    assert.deepStrictEqual([acts(idle), acts(queued), acts(active)], [["RegisterSeat"], ["JoinQueue"], ["NotifyAgent"]])
    const done = after([complete(false)], active)
    assert.strictEqual(done.state, "QUEUED")
    assert.deepStrictEqual(acts(done), ["AdvanceQueue"])
  })

  it("a solo agent rests after its turn until a message wakes it: it never spins", () => {
    const rests = after([complete(true)], active)
    assert.strictEqual(rests.state, "IDLE")
    assert.strictEqual(after([arrived], rests).state, "QUEUED")
    assert.strictEqual(after([arrived], idle).refused, "stale")
    assert.strictEqual(after([removed, arrived], rests).refused, "stale")
  })

  it("a turn ends after 60 s of silence; a sign of life moves the end", () => {
    const limit = (driven: Driven<State, Data, Action>) => Seat.timers.turn.after(driven.data, 1_000)
    assert.strictEqual(limit(active), 60_000)
    const alive = after([{ _tag: "SignOfLife", turnId: "t1", at: 41_000 }], active)
    assert.strictEqual(limit(alive), 100_000)
    const over = after([Seat.timers.turn.fires(alive.data)], alive)
    assert.strictEqual(over.state, "QUEUED")
    assert.deepStrictEqual(
      [...over.actions],
      [
        { _tag: "InterruptTurn", turnId: "t1" },
        { _tag: "PostNotice", text: "⏱ pm turn timed out" },
        { _tag: "AdvanceQueue" }
      ]
    )
  })

  it("who waits passes the floor on, has 300 s, and forfeits the turn after that", () => {
    assert.strictEqual(waiting.state, "WAITING")
    assert.deepStrictEqual(acts(waiting), ["PauseTurn"])
    assert.strictEqual(Seat.timers.wait.after(waiting.data, 0), 300_000)
    const over = after([Seat.timers.wait.fires(waiting.data)], waiting)
    assert.strictEqual(over.state, "QUEUED")
    assert.include(acts(over), "InterruptTurn")
  })

  it("a resolved wait resumes where the floor is free, else waits on without a deadline and is granted next", () => {
    assert.strictEqual(after([resolved(true)], waiting).state, "ACTIVE")
    const next = after([resolved(false)], waiting)
    assert.strictEqual(next.state, "WAITING")
    assert.strictEqual(Seat.timers.wait.after(next.data, 0), Infinity)
    const resumed = after([granted("t1")], next)
    assert.strictEqual(resumed.state, "ACTIVE")
    assert.deepStrictEqual(acts(resumed), ["ResumeTurn"])
    assert.strictEqual(after([granted("t1")], waiting).refused, "stale")
  })

  it("a person may end the wait either way", () => {
    assert.strictEqual(after([override("ACTIVE")], waiting).state, "ACTIVE")
    assert.strictEqual(after([override("QUEUED")], waiting).state, "QUEUED")
    assert.strictEqual(after([override("ACTIVE")], queued).refused, "illegal")
  })

  it("who is removed loses the turn; who crashes leaves the queue and is not queued again by itself", () => {
    for (const stand of [queued, active, waiting]) assert.strictEqual(after([removed], stand).state, "IDLE")
    assert.deepStrictEqual(acts(after([removed], active)), ["InterruptTurn", "AdvanceQueue", "LeaveQueue"])
    for (const stand of [idle, queued, active, waiting]) {
      const gone = after([left("crashed")], stand)
      assert.strictEqual(gone.state, "OFFLINE")
      const back = after([{ _tag: "AgentStarted" }, arrived], gone)
      assert.strictEqual(back.state, "IDLE")
    }
    assert.include(acts(after([left("disconnected")], active)), "PostNotice")
    assert.notInclude(acts(after([left("stopped")], active)), "PostNotice")
  })

  it("what an earlier turn says is stale", () => {
    const second = after([complete(false), granted("t2")], active)
    assert.strictEqual(after([complete(false)], second).refused, "stale")
    assert.strictEqual(after([Seat.timers.turn.fires(active.data)], second).refused, "stale")
  })

  it("TURN_COMPLETE is a last line of its own, case-sensitive, and is stripped", () => {
    assert.deepStrictEqual(readAnswer("done\nTURN_COMPLETE"), { complete: true, text: "done" })
    assert.deepStrictEqual(readAnswer("TURN_COMPLETE"), { complete: true, text: "" })
    assert.deepStrictEqual(readAnswer("done\n\n  TURN_COMPLETE \n"), { complete: true, text: "done" })
    for (const text of ["I say TURN_COMPLETE", "turn_complete", "TURN_COMPLETE\nand more", "done TURN_COMPLETE"]) {
      assert.deepStrictEqual(readAnswer(text), { complete: false, text })
    }
  })

  it("a move reads as a line of the log", () =>
    assert.deepStrictEqual(
      logLine(active.data, {
        at: Date.UTC(2026, 1, 4, 21),
        from: "ACTIVE",
        to: "QUEUED",
        trigger: "TURN_COMPLETE"
      }),
      {
        timestamp: "2026-02-04T21:00:00.000Z",
        event: "state_transition",
        agentId: "pm",
        from: "ACTIVE",
        to: "QUEUED",
        trigger: "TURN_COMPLETE",
        channel: "reviews"
      }
    ))

  it("only who has the floor may respond; who is queued or waits observes", () => {
    const states = Object.keys(properties) as ReadonlyArray<State>
    assert.deepStrictEqual(
      states.filter((state) => properties[state].responds),
      ["ACTIVE"]
    )
    assert.deepStrictEqual(
      states.filter((state) => properties[state].receives === "observes"),
      ["QUEUED", "WAITING"]
    )
    assert.strictEqual(DEFAULT_INTERRUPT_MODE, "inject")
    assert.deepStrictEqual([...INTERRUPT_MODES], ["queue", "interrupt", "inject", "parallel"])
  })
})
