/**
 * The seat's table against the channels that run: real channels under random agents, people
 * and time, until each cell of the table has been a rune in the log. Each action that a
 * rune's cell names is then looked for where it is to be seen.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { apply, type Channel, seatOf, seatsOf, unborn } from "../../../src/channels/ChannelState.ts"
import { type Action, type Event, Seat, type State } from "../../../src/channels/SeatMachine.ts"
import { decodeChannel } from "../../../src/config/ChannelConfig.ts"
import { edges } from "../../../src/core/event-actor/StateMachine.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import { nameOf } from "../../support/Cells.ts"
import { dice } from "../../support/Dice.ts"
import { unreached } from "../../support/Unreached.ts"
import { ada, CONVERSATION, run, type World } from "./World.ts"

const AGENTS = ["pm", "dev"]
const MAX_STEPS = 3_000

interface Edge {
  readonly from: string
  readonly event: string
  readonly to: string
  readonly when?: string
  readonly act?: ReadonlyArray<Action["_tag"]>
}
const table = edges(Seat) as ReadonlyArray<Edge>

/** The cell by which a rune moved its seat. */
const edgeOf = (rune: Rune): Edge => {
  const event = rune.payload["event"] as Event
  return table.find(
    (edge) =>
      edge.from === rune.from &&
      edge.event === event._tag &&
      (edge.when === undefined || Seat.guards[edge.when as keyof typeof Seat.guards]({} as never, event))
  )!
}

/** Words of an agent at the end of its turn. */
const ANSWERS = [
  "Hello",
  "Hello\nTURN_COMPLETE",
  "TURN_COMPLETE",
  "WAIT: for dev",
  "WAIT: for ada, until person",
  "WAIT: for the build, until 30s"
]

type Dice = ReturnType<typeof dice>

const agentStep = Effect.fnUntraced(function* (world: World, die: Dice, agent: string) {
  const { crew } = world
  const { online, turn } = crew.of(agent)
  if (!online) return yield* crew.come(agent)
  if (turn === undefined)
    return yield* die(6) === 0 ? crew.leave(agent, die(2) === 0 ? "crashed" : "stopped") : Effect.void
  switch (die(9)) {
    case 0:
      return yield* crew.die(agent)
    case 1:
      return yield* crew.leave(agent, die(2) === 0 ? "crashed" : "stopped")
    case 2:
      return yield* crew.error(agent, "it failed", false)
    case 3:
      yield* TestClock.adjust("20 seconds")
      yield* crew.active(agent)
      yield* world.quiet
      return yield* TestClock.adjust("45 seconds")
    default:
      return yield* crew.answer(agent, ANSWERS[die(ANSWERS.length)]!)
  }
})

const personStep = (world: World, die: Dice, agent: string) => {
  const { channels } = world
  switch (die(8)) {
    case 0:
      return channels.remove("reviews", agent, ada)
    case 1:
      return channels.grant("reviews", agent, ada)
    case 2:
      return channels.skip("reviews", ada)
    case 3:
      return channels.requeue("reviews", agent, ada)
    case 4:
    case 5:
      return channels.assign("reviews", agent, ada)
    default:
      return channels.post("reviews", "What now?", ada)
  }
}

const step = (world: World, die: Dice): Effect.Effect<unknown, unknown> => {
  const agent = AGENTS[die(AGENTS.length)]!
  switch (die(5)) {
    case 0:
    case 1:
      return Effect.ignore(personStep(world, die, agent))
    case 2:
      return TestClock.adjust(["20 seconds", "61 seconds", "301 seconds"][die(3)] as "1 second")
    default:
      return agentStep(world, die, agent)
  }
}

/** A move, with the channel on either side of it. */
interface Move {
  readonly rune: Rune
  readonly next: Rune | undefined
  readonly agent: string
  readonly before: Channel
  readonly after: Channel
  readonly world: World
}

const called = ({ world }: Move, call: string, messageId: string | null | undefined): boolean =>
  world.crew.calls.some((one) => one.call === call && one.messageId === messageId)

const isTold = (move: Move): void => {
  assert.strictEqual(move.after.queue.current, move.agent)
  assert.isTrue(called(move, "post", seatOf(move.after, move.agent)?.prompt), "its agent is told")
}

/** Where each action is to be seen once its rune is durable. */
const effects: { readonly [a in Action["_tag"]]: (move: Move) => void } = {
  RegisterSeat: ({ after, agent }) => assert.isTrue(after.registered.includes(agent)),
  DeregisterSeat: ({ after, agent, rune }) => {
    assert.isFalse(after.registered.includes(agent))
    const event = rune.payload["event"] as Extract<Event, { _tag: "AgentLeft" }>
    if (event.how !== "stopped") assert.isFalse(after.assigned.includes(agent))
  },
  JoinQueue: ({ after, agent, before }) => {
    assert.notInclude(before.queue.line, agent)
    assert.strictEqual(after.queue.line.at(-1), agent)
  },
  LeaveQueue: ({ after, agent, before }) => {
    assert.include(before.queue.line, agent)
    assert.notInclude(after.queue.line, agent)
  },
  NotifyAgent: isTold,
  ResumeTurn: isTold,
  AdvanceQueue: ({ after, agent }) => {
    assert.isNull(after.queue.current)
    assert.notInclude(after.queue.paused, agent)
    if (after.queue.line.includes(agent)) assert.strictEqual(after.queue.line.at(-1), agent)
  },
  PauseTurn: ({ after, agent, before }) => {
    assert.isNull(after.queue.current)
    assert.include(after.queue.paused, agent)
    assert.deepStrictEqual(after.queue.line, before.queue.line)
  },
  ClaimFloor: ({ after, agent }) => assert.include(after.queue.claims, agent),
  InterruptTurn: (move) => {
    const { prompt } = seatOf(move.before, move.agent)!
    assert.isTrue(called(move, "withdraw", prompt), "what it was told is taken back")
  },
  PostNotice: ({ next }) => assert.strictEqual(next?.kind, "channel.notice")
}

/** All moves of the log, by the fold. */
const movesIn = (world: World, runes: ReadonlyArray<Rune>): ReadonlyArray<Move> => {
  let channel = unborn(CONVERSATION, "reviews", decodeChannel({}))
  return runes.flatMap((rune, index) => {
    if (!/^(?:channel\/reviews$|seat\/reviews\/)/.test(rune.actor)) return []
    const before = channel
    channel = apply(channel, rune)
    const agent = String(rune.payload["agentId"])
    return rune.kind === "seat.moved" ? [{ rune, next: runes[index + 1], agent, before, after: channel, world }] : []
  })
}

describe("the seat's table in channels that run", () => {
  it.effect("each cell is a rune that was reached, each action of it is carried out", () =>
    run((world) =>
      Effect.gen(function* () {
        const die = dice(7)
        const missing = new Set(table.map(nameOf))
        yield* world.configure({ reviews: { agents: AGENTS } })
        let runes: ReadonlyArray<Rune> = []
        for (let count = 0; missing.size > 0 && count < MAX_STEPS; count++) {
          yield* step(world, die)
          yield* world.quiet
          if (count % 50 > 0) continue
          runes = yield* world.runes()
          for (const rune of runes) if (rune.kind === "seat.moved") missing.delete(nameOf(edgeOf(rune)))
        }
        assert.sameMembers([...missing], Object.keys(unreached.seat), "cells that no run of a channel reached")
        const moves = movesIn(world, runes)
        const [events, acted] = [new Set<string>(), new Set<string>()]
        for (const move of moves) {
          const edge = edgeOf(move.rune)
          assert.strictEqual(move.rune.to, edge.to, nameOf(edge))
          events.add(edge.event)
          for (const action of edge.act ?? []) {
            effects[action](move)
            acted.add(action)
          }
        }
        assert.sameMembers([...events], Object.keys(Seat.table.OFFLINE), "each event has a sender")
        assert.sameMembers([...acted], Object.keys(Seat.actions), "each action is carried out")
        const ways = moves.map(({ rune }) => (rune.payload["event"] as { how?: string }).how)
        assert.includeMembers(ways, ["stopped", "disconnected", "crashed"])
        const states = new Set(moves.flatMap(({ after }) => seatsOf(after).map(({ stand }) => stand.state)))
        assert.sameMembers([...states], Object.keys(Seat.states) as Array<State>)
      })
    )
  )
})
