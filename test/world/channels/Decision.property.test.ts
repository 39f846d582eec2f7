/**
 * A channel under anything that can happen to it, in any order: its decisions are
 * appended to a real guard, folded as a log would be, and held against what must
 * be true of a channel at all times.
 */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import {
  apply,
  type Channel,
  hasUnread,
  isResting,
  kinds,
  seatOf,
  seatsOf,
  unborn
} from "../../../src/channels/ChannelState.ts"
import { decide } from "../../../src/channels/ChannelDecision.ts"
import type { FloorInput } from "../../../src/channels/FloorInput.ts"
import * as Deadlines from "../../../src/channels/Deadlines.ts"
import * as SeatMachine from "../../../src/channels/SeatMachine.ts"
import type { View } from "../../../src/channels/ChannelTransaction.ts"
import { decodeChannel, ORDERS } from "../../../src/config/ChannelConfig.ts"
import { CommandRefused } from "../../../src/domain/Messages.ts"
import { rules } from "../../../src/app/DaemonLog.ts"

const agents = ["a", "b", "c"]
const modes = ["queue", "interrupt", "inject", "parallel"]
const outputs = [
  "",
  "Hello",
  "Hello\nTURN_COMPLETE",
  "TURN_COMPLETE",
  "WAIT: for b",
  "Soon\nWAIT: for x, until 30s",
  "WAIT: for ada, until person"
]

/** Agents as they are, outside of the channel. */
interface Outside {
  readonly online: Set<string>
  readonly busy: Set<string>
  /** The agent that is left alone until something else happens. */
  alone: string | null
  now: number
}

const viewOf = (outside: Outside, open: boolean): View => ({
  now: outside.now,
  open,
  online: (agent) => outside.online.has(agent),
  busy: (agent) => outside.busy.has(agent),
  carries: (agent) => outside.busy.has(agent),
  idle: (agent) => outside.online.has(agent) && !outside.busy.has(agent) && agent !== outside.alone,
  aliveAt: () => 0,
  isOver: ({ after, since }) => since + after <= outside.now
})

/** The next input by the numbers, as far as it can be. */
const inputOf = (channel: Channel, outside: Outside, kind: number, pick: number): FloorInput => {
  const agent = agents[pick % agents.length]!
  const floor = channel.queue.current ?? agent
  const prompt = seatOf(channel, floor)?.prompt ?? "channel:room:0"
  const by = "ada"
  switch (kind % 16) {
    case 0:
      outside.online.add(agent)
      return { _tag: "Came", agent }
    case 1:
      outside.online.delete(agent)
      outside.busy.delete(agent)
      return { _tag: "Left", agent, how: (["stopped", "disconnected", "crashed"] as const)[pick % 3]! }
    case 2:
      return { _tag: "Assign", agent, by }
    case 3:
      return { _tag: "Remove", agent, by }
    case 4:
    case 5:
      return { _tag: "Post", messageId: `m${pick % 50}`, from: by, text: `post ${pick}` }
    case 6:
      return { _tag: "Grant", agent, by }
    case 7:
      return pick % 3 === 0 ? { _tag: "Skip", by } : { _tag: "Unreachable", agent: floor, prompt, reason: "gone" }
    case 8:
      return pick % 4 === 0 ? { _tag: "Pause", paused: pick % 8 === 0, by } : { _tag: "Pause", paused: false, by }
    case 9:
      return { _tag: "Arrange", order: ORDERS[pick % 3]!, agents: [], by }
    case 10: {
      const due = Deadlines.of(channel)
      if (due.length === 0) return { _tag: "Look" }
      const one = due[pick % due.length]!
      outside.now = Math.max(outside.now, one.since + one.after)
      return { _tag: "Due", key: one.key }
    }
    case 11:
      return {
        _tag: "Say",
        agent,
        messageId: `s${pick}`,
        utterance: pick % 2 === 0 ? { _tag: "TurnComplete" } : { _tag: "Post", text: "said" }
      }
    case 12:
      outside.busy.add(agent)
      return { _tag: "Carried", agent, messageIds: [`${prompt}/${channel.head}`] }
    default: {
      outside.busy.delete(floor)
      const outcome = (["completed", "completed", "completed", "interrupted", "error"] as const)[pick % 5]!
      return {
        _tag: "Ended",
        agent: floor,
        turnId: `t${pick % 40}`,
        messageIds: [pick % 7 === 0 ? "channel:room:1" : prompt],
        outcome,
        reason: null,
        output: outputs[pick % outputs.length]!,
        again: outcome === "error" && pick % 2 === 0
      }
    }
  }
}

const active = (channel: Channel) => seatsOf(channel).filter(({ stand }) => stand.state === "ACTIVE")

/** Checks the invariants of a channel between any two things that happen. */
const check = (channel: Channel, outside: Outside, open: boolean) => {
  const seats = seatsOf(channel)
  assert.isAtMost(active(channel).length, 1, "one floor")
  assert.strictEqual(
    active(channel)[0]?.agent ?? null,
    channel.queue.current,
    "the ACTIVE seat is the queue's current one"
  )
  assert.strictEqual(channel.floor?.agent ?? null, channel.queue.current)
  for (const { agent, stand } of seats) {
    const inLine = channel.queue.line.includes(agent)
    assert.strictEqual(inLine, SeatMachine.properties[stand.state].inQueue !== "no", `${agent} ${stand.state}`)
    assert.strictEqual(channel.registered.includes(agent), stand.state !== "OFFLINE")
    assert.strictEqual(channel.queue.claims.includes(agent), stand.data.wait?.resolved === true)
    assert.strictEqual(channel.queue.paused.includes(agent), stand.state === "WAITING")
  }
  const ids = channel.posts.filter(({ kind }) => kind !== "notice").map(({ messageId }) => messageId)
  assert.strictEqual(new Set(ids).size, ids.length, "nothing is posted twice")
  // Whoever could take the floor and has something to read is not kept waiting.
  if (
    open &&
    !channel.paused &&
    !isResting(channel) &&
    channel.queue.current === null &&
    channel.settings.order !== "manual"
  ) {
    for (const seated of seats) {
      const could = seated.stand.state === "QUEUED" && viewOf(outside, open).idle(seated.agent)
      assert.isFalse(could && hasUnread(channel, seated), `${seated.agent} could have the floor`)
    }
  }
}

const walk = (numbers: ReadonlyArray<readonly [number, number]>, mode: string, autoDetectTurnEnd: boolean) => {
  const outside: Outside = { online: new Set(), busy: new Set(), alone: null, now: 1_000 }
  const settings = decodeChannel({ agents, turnConfig: { humanInterruptMode: mode, autoDetectTurnEnd } })
  let channel = unborn("web", "room", settings)
  let guard = rules.guard.initial
  let eventId = 10
  const happen = (input: FloorInput, open: boolean) => {
    const before = channel
    const { alone } = outside
    outside.alone = null
    const decision = decide(channel, viewOf(outside, open), input, { eventId: eventId + 1, seq: eventId + 1 })
    for (const draft of decision.drafts) {
      const payload = JSON.parse(JSON.stringify(draft.payload))
      const rune = { from: null, to: null, trigger: null, moves: [], ...draft, actor: draft.actor!, payload }
      assert.isTrue(rules.kinds.accepts(draft.kind, rune.payload), `${draft.kind} ${JSON.stringify(rune.payload)}`)
      assert.include<string>(kinds, draft.kind)
      assert.isUndefined(rules.guard.check(guard, rune), `${draft.actor} ${draft.trigger}`)
      guard = rules.guard.apply(guard, rune)
      eventId += 1
      channel = apply(channel, { eventId, seq: eventId, at: outside.now, kind: draft.kind, payload: rune.payload })
    }
    eventId += 2
    assert.deepStrictEqual(decision.channel, channel, "the fold of its runes is what was decided")
    if (decision.reply instanceof CommandRefused) outside.alone = alone
    for (const act of decision.acts) if (act._tag === "LeaveAlone") outside.alone = act.agent
    if (decision.reply instanceof CommandRefused) assert.strictEqual(channel, before, "a refusal changes nothing")
    // The answer of one who does not have the floor is not posted.
    if (input._tag === "Ended" && before.queue.current !== input.agent) {
      assert.isFalse(decision.drafts.some(({ kind }) => kind === "channel.posted"))
    }
    outside.now += 1_000
    check(channel, outside, open)
  }
  happen({ _tag: "Create", settings, origin: "config", by: "config" }, false)
  // Liveness is settled after some of it.
  for (const [kind, pick] of numbers.slice(0, 5)) happen(inputOf(channel, outside, kind, pick), false)
  happen({ _tag: "Look" }, true)
  for (const [kind, pick] of numbers.slice(5)) happen(inputOf(channel, outside, kind, pick), true)
  return channel
}

const numbers = Arbitrary.array(
  Arbitrary.schema(
    Schema.Tuple([
      Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1 << 16 })),
      Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1 << 16 }))
    ])
  ),
  { minLength: 20, maxLength: 120 }
)

describe("INV-FLOOR-SINGLE: whatever happens in a channel", () => {
  for (const mode of modes) {
    it.prop(
      `one seat at most has the floor, nothing is posted twice or out of turn, and nobody is forgotten (${mode})`,
      [numbers],
      ([path]) => void walk(path, mode, path.length % 2 === 0),
      { arbitrary: { runs: 150, seed: 1 } }
    )
  }

  it("the walks get around: floors, waits, timeouts and late answers are all on them", () => {
    const seen = new Set<string>()
    const random = (seed: number) => {
      let state = seed
      return () => (state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 1) >>> 8
    }
    for (let seed = 1; seed < 40; seed++) {
      const next = random(seed)
      const path = Array.from({ length: 120 }, () => [next(), next()] as const)
      const channel = walk(path, modes[seed % 4]!, true)
      for (const { stand } of seatsOf(channel)) seen.add(stand.state)
      if (channel.grants > 3) seen.add("granted")
    }
    for (const state of ["OFFLINE", "QUEUED", "ACTIVE", "WAITING", "granted"]) assert.isTrue(seen.has(state), state)
  })
})
