/**
 * The channel figures: what a hand-over of the floor costs with 2 and with 200
 * seats, beside the same number of bare appends to the same log; and what 1,000
 * channels cost that nobody speaks in, beside as many machine actors.
 *
 * The agents are stand-ins that answer at once; all else is as it ships, but for
 * the disk.
 */
import { Context, Deferred, Effect, Layer, PubSub, References, type Scope, Stream } from "effect"
import * as ActorSystem from "../../src/core/event-actor/ActorSystem.ts"
import * as EventLoop from "../../src/core/event-actor/EventLoop.ts"
import { Log } from "../../src/core/event-log/Log.ts"
import * as DeadLetters from "../../src/core/event-actor/DeadLetters.ts"
import { CommitScope } from "../../src/core/event-actor/CommitScope.ts"
import { stateMachineActor } from "../../src/core/event-actor/StateMachineActor.ts"
import * as DynamicSupervisor from "../../src/core/supervision/DynamicSupervisor.ts"
import * as Supervisor from "../../src/core/supervision/Supervisor.ts"
import * as Channels from "../../src/channels/Channels.ts"
import { decodeChannel } from "../../src/config/ChannelConfig.ts"
import { AgentPort, type AgentReport, type Member } from "../../src/domain/AgentPort.ts"
import * as SeatMachine from "../../src/channels/SeatMachine.ts"
import { layerMemory } from "../../src/app/DaemonLog.ts"
import { EventLog } from "../../src/core/event-log/EventLog.ts"
import { type Bench, heap, interleave, type Measure, type Subject } from "./Bench.ts"

const ROUNDS = 5
const HAND_OVERS = 2_000
const IDLE = 1_000
const IDLE_SEATS = 5

const measures: ReadonlyArray<Measure> = [
  { what: "hand-over", unit: "µs", better: "less" },
  { what: "idle, of 1,000", unit: "bytes", better: "less" },
  { what: "idle, of 1,000: runes in a second", unit: "runes", better: "less" }
]

const home = { conversation: "bench", project: "bench", config: "/bench/agentd.jsonc" }
const caller = { by: "bench", config: home.config }
const names = (seats: number) => Array.from({ length: seats }, (_, n) => `a${n}`)

/** Each answers with a line until so many have, then with the signal alone. */
const standIns = Effect.fnUntraced(function* (agents: ReadonlyArray<string>, answers: number) {
  const reports = yield* PubSub.unbounded<AgentReport>()
  const done = yield* Deferred.make<void>()
  let [given, turns] = [0, 0]
  const member = (agent: string): Member => ({
    conversation: home.conversation,
    agent,
    online: true,
    busy: false,
    spent: false,
    can: [],
    role: null,
    parent: null,
    cwd: null,
    branch: null
  })
  const crew = AgentPort.of({
    post: ({ agent }, { messageId }) =>
      Effect.gen(function* () {
        turns += 1
        const turnId = `t${turns}`
        const base = {
          conversation: home.conversation,
          agent,
          eventId: turns,
          cause: null,
          at: 0,
          turnId,
          messageIds: [messageId]
        }
        given += 1
        const output = given < answers ? `${given}\nTURN_COMPLETE` : "TURN_COMPLETE"
        yield* PubSub.publish(reports, { ...base, _tag: "TurnStarted" })
        yield* PubSub.publish(reports, {
          ...base,
          _tag: "TurnEnded",
          outcome: "completed",
          reason: null,
          output,
          again: false
        })
        if (given === answers) yield* Deferred.succeed(done, undefined)
        return { eventId: turns }
      }),
    withdraw: () => Effect.succeed(false),
    fate: () => Effect.succeed({ _tag: "Unknown" }),
    interrupt: () => Effect.void,
    steer: () => Effect.void,
    members: () => Effect.succeed(agents.map(member)),
    reports: Stream.fromPubSub(reports),
    recovered: Effect.void
  })
  return { crew, done: Deferred.await(done) }
})

const open = Effect.fnUntraced(function* (crew: AgentPort["Service"]) {
  const supervisor = DynamicSupervisor.make({
    name: "channels",
    strategy: "one_for_one",
    intensity: 10,
    period: "30 seconds"
  })
  const context = yield* Layer.build(Channels.layer({ supervisor }).pipe(Layer.provide(Layer.succeed(AgentPort, crew))))
  yield* Supervisor.make({ name: "root", children: [supervisor.child] })
  const channels = Context.get(context, Channels.Channels)
  while (!(yield* channels.ready)) yield* Effect.sleep("1 millis")
  return channels
})

const handOvers = (seats: number) =>
  Effect.gen(function* () {
    const agents = names(seats)
    const { crew, done } = yield* standIns(agents, HAND_OVERS)
    const channels = yield* open(crew)
    yield* channels.configure(home, { room: decodeChannel({ agents }) })
    const from = performance.now()
    yield* channels.post("room", "go", caller)
    yield* done
    return { "hand-over": ((performance.now() - from) * 1000) / HAND_OVERS }
  })

/** The runes of a hand-over, and nothing else. */
const appends = Effect.gen(function* () {
  const log = yield* EventLog
  const move = (agent: string, event: SeatMachine.Event) => ({
    stream: home.conversation,
    kind: "seat.moved",
    actor: `seat/room/${agent}`,
    payload: { agentId: agent, channel: "room", event }
  })
  const from = performance.now()
  for (let n = 0; n < HAND_OVERS; n++) {
    yield* log.append([
      {
        stream: home.conversation,
        kind: "channel.posted",
        actor: "channel/room",
        payload: { messageId: `m${n}`, by: "agent", from: "a0", text: String(n), turnId: `t${n}` }
      },
      move("a0", { _tag: "TURN_COMPLETE", turnId: String(n), solo: false }),
      move("a1", { _tag: "TurnGranted", turnId: String(n + 1), at: 0 })
    ])
  }
  return { "hand-over": ((performance.now() - from) * 1000) / HAND_OVERS }
})

const idle = Effect.gen(function* () {
  const log = yield* EventLog
  const agents = names(IDLE_SEATS)
  const { crew } = yield* standIns(agents, 1)
  const channels = yield* open(crew)
  const config = decodeChannel({ agents })
  const runesOf = yield* log.head
  const before = heap()
  yield* channels.configure(home, Object.fromEntries(Array.from({ length: IDLE }, (_, n) => [`room${n}`, config])))
  const after = heap()
  const head = yield* log.head
  yield* Effect.sleep("1 second")
  const runes = (yield* log.head) - head
  // The log lies in memory here: what its runes take is not the channels'.
  const logged = yield* bytesOfRunes(head - runesOf)
  return { "idle, of 1,000": (after - before - logged) / IDLE, "idle, of 1,000: runes in a second": runes }
})

const bytesOfRunes = Effect.fnUntraced(function* (count: number) {
  const log = yield* EventLog
  const before = heap()
  for (let n = 0; n < count; n++) {
    yield* log.append([
      {
        stream: "filler",
        kind: "seat.moved",
        actor: `seat/room${n}/a0`,
        to: "IDLE",
        payload: { agentId: "a0", channel: `room${n}`, event: { _tag: "AgentStarted" } }
      }
    ])
  }
  return heap() - before
})

const actors = Effect.gen(function* () {
  const system = yield* ActorSystem.ActorSystem
  const supervisor = yield* Supervisor.make({ name: "root", children: [] })
  const definition = (name: string) =>
    stateMachineActor<SeatMachine.State, SeatMachine.Event, SeatMachine.Data, SeatMachine.Action>({
      machine: SeatMachine.Seat,
      data: SeatMachine.initial(name, "room")
    })
  const before = heap()
  for (let n = 0; n < IDLE; n++) {
    const name = `seat/room/a${n}`
    const scope = new CommitScope(system, { id: name, stream: "bench" })
    scope.add(name, definition(`a${n}`))
    yield* supervisor.startChild(scope)
  }
  return { "idle, of 1,000": (heap() - before) / IDLE }
})

const quiet = Context.make(References.MinimumLogLevel, "None" as const)
const services = Layer.unwrap(Effect.map(Log, (log) => ActorSystem.layer({ log }))).pipe(
  Layer.provideMerge(Layer.mergeAll(DeadLetters.layerMemory(), EventLoop.layer, layerMemory))
)

type Part = Effect.Effect<
  { readonly [what: string]: number },
  unknown,
  ActorSystem.ActorSystem | DeadLetters.DeadLetters | EventLog | Scope.Scope
>

const subject = (name: string, ...parts: ReadonlyArray<Part>): Subject => ({
  subject: name,
  round: async () => {
    const figures: Array<{ readonly [what: string]: number }> = []
    for (const part of parts) {
      const provided = part.pipe(Effect.scoped, Effect.provide(services, { local: true }), Effect.provide(quiet))
      figures.push(await Effect.runPromise(provided))
    }
    return Object.assign({}, ...figures)
  }
})

export const bench: Bench = {
  name: "channels",
  run: () =>
    interleave(
      measures,
      [
        subject(`a channel of 2 seats (idle: of ${IDLE_SEATS})`, handOvers(2), idle),
        subject("a channel of 200 seats", handOvers(200)),
        subject("bare appends of its runes", appends),
        subject("a machine actor", actors)
      ],
      ROUNDS
    )
}
