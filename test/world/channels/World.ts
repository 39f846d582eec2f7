/**
 * Channels in a world of their own: the real ones over a log in memory, with a
 * scripted crew, and helpers that say what happens in them.
 */
import { assert } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import * as DaemonLog from "../../../src/app/DaemonLog.ts"
import * as DeadLetters from "../../../src/core/event-actor/DeadLetters.ts"
import * as DynamicSupervisor from "../../../src/core/supervision/DynamicSupervisor.ts"
import * as Supervisor from "../../../src/core/supervision/Supervisor.ts"
import * as Channels from "../../../src/channels/Channels.ts"
import { decodeChannel } from "../../../src/config/ChannelConfig.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import { Log } from "../../../src/core/event-log/Log.ts"
import * as ActorSystem from "../../../src/core/event-actor/ActorSystem.ts"
import * as EventLoop from "../../../src/core/event-actor/EventLoop.ts"
import * as Double from "./CrewDouble.ts"
import { PATIENCE } from "../../support/Patience.ts"

export const CONVERSATION = "web-1a2b3c4d"
export const T0 = Date.parse("2026-11-20T09:00:00Z")
export const ada = { by: "ada", config: "/web/agentd.jsonc" }
export const home = { conversation: CONVERSATION, project: "web", config: "/web/agentd.jsonc" }

/** Lets what was started go on, in real time: the clock of the test does not move. */
export const breathe = Effect.promise(() => new Promise<void>((resolve) => setTimeout(resolve, 1)))

/** Until it holds, or the test fails. */
export const until = <A, E, R>(what: string, read: Effect.Effect<A, E, R>, holds: (value: A) => boolean) =>
  Effect.gen(function* () {
    for (let look = 0; look < PATIENCE; look++) {
      const value = yield* read
      if (holds(value)) return value
      yield* breathe
    }
    return assert.fail(`never: ${what}; at last ${JSON.stringify(yield* read)}`)
  })

export class World {
  readonly log: EventLog["Service"]
  readonly writes: Log
  readonly crew: Double.CrewDouble
  readonly channels: Channels.Channels["Service"]
  readonly stop: Effect.Effect<void>

  constructor(parts: Pick<World, "log" | "writes" | "crew" | "channels" | "stop">) {
    this.log = parts.log
    this.writes = parts.writes
    this.crew = parts.crew
    this.channels = parts.channels
    this.stop = parts.stop
  }

  /** As a config says it. */
  configure(channels: { readonly [name: string]: object }) {
    const decoded = Object.fromEntries(Object.entries(channels).map(([name, config]) => [name, decodeChannel(config)]))
    return this.channels.configure(home, decoded)
  }

  /** Online, all of them. */
  come(...agents: ReadonlyArray<string>) {
    return Effect.forEach(agents, (agent) => this.crew.come(agent), { discard: true })
  }

  post(text: string, name = "reviews") {
    return this.channels.post(name, text, ada)
  }

  show(name = "reviews") {
    return this.channels.show(name, ada)
  }

  states(name = "reviews") {
    return Effect.map(this.show(name), ({ channel }) =>
      Object.fromEntries(channel.seats.map(({ agent, state }) => [agent, state]))
    )
  }

  state(agent: string, state: string, name = "reviews") {
    return until(`${agent} is ${state}`, this.states(name), (states) => states[agent] === state)
  }

  /** Waits until the agent has the floor, and has been told so. */
  floor(agent: string | null, name = "reviews") {
    return until(`the floor is ${agent}'s`, this.show(name), ({ channel }) => channel.floor === agent)
  }

  /** Waits until the agent has the floor, and its turn is under way. */
  readonly speaking = Effect.fnUntraced({ self: this }, function* (this: World, agent: string, name = "reviews") {
    yield* this.floor(agent, name)
    yield* until(
      `${agent} is at it`,
      Effect.sync(() => this.crew.of(agent).turn),
      (turn) => turn !== undefined
    )
  })

  /** Waits for the agent's floor, and answers. */
  readonly turn = Effect.fnUntraced({ self: this }, function* (this: World, agent: string, answer: string) {
    yield* this.speaking(agent)
    yield* this.crew.answer(agent, answer)
    yield* this.quiet
  })

  /** Posts, with their senders. */
  texts(name = "reviews") {
    return Effect.map(this.show(name), ({ posts }) =>
      posts.map(({ from, text }) => (from === "" ? text : `${from}: ${text}`))
    )
  }

  runes(...kinds: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<Rune>> {
    return Effect.orDie(Stream.runCollect(this.log.read(kinds.length === 0 ? {} : { kinds })))
  }

  /** The newest message that the agent was told. */
  heard(agent: string): string {
    return this.crew.of(agent).heard.at(-1)?.text ?? ""
  }

  /** Until nothing is appended any more. */
  readonly quiet = Effect.gen({ self: this }, function* () {
    let [head, still] = [-1, 0]
    while (still < 4) {
      yield* breathe
      const now = yield* this.log.head
      still = now === head ? still + 1 : 0
      head = now
    }
  })

  /** Time passes, and what it led to is done. */
  readonly after = Effect.fnUntraced({ self: this }, function* (this: World, seconds: number) {
    yield* TestClock.adjust(seconds * 1000)
    yield* this.quiet
  })

  /** Another daemon on the same log; its agents' part goes on. */
  get restart(): Effect.Effect<World, never, Scope.Scope> {
    return Effect.andThen(this.stop, start(this, this.crew))
  }
}

/** A log, as readers and as actors have it. */
export interface Logs {
  readonly log: EventLog["Service"]
  readonly writes: Log
}

export const logs = Effect.map(Effect.all([EventLog, Log]), ([log, writes]): Logs => ({ log, writes }))

export const start = Effect.fnUntraced(function* (
  { log, writes }: Logs,
  crew: Double.CrewDouble
): Effect.fn.Return<World, never, Scope.Scope> {
  const scope = yield* Scope.fork(yield* Effect.scope)
  const supervisor = DynamicSupervisor.make({
    name: "channels",
    strategy: "one_for_one",
    intensity: 10,
    period: "30 seconds"
  })
  const context = yield* Layer.build(
    Channels.layer({ supervisor }).pipe(
      Layer.provide(ActorSystem.layer({ log: writes, strict: true })),
      Layer.provide(Layer.mergeAll(DeadLetters.layerMemory(), EventLoop.layer, Layer.succeed(EventLog, log))),
      Layer.provide(crew.layer)
    )
  ).pipe(Scope.provide(scope))
  yield* Effect.orDie(Supervisor.make({ name: "root", children: [supervisor.child] })).pipe(Scope.provide(scope))
  return new World({
    log,
    writes,
    crew,
    channels: Context.get(context, Channels.Channels),
    stop: Scope.close(scope, Exit.void)
  })
})

/** Runs with fresh channels, in real time. */
export const runLive = <A, E>(body: (world: World) => Effect.Effect<A, E, Scope.Scope>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const both = yield* logs
      const { log } = both
      const crew = yield* Double.make(CONVERSATION)
      const payload = { config: home.config, name: home.project }
      yield* log.append([{ stream: CONVERSATION, kind: "project.registered", actor: "project", payload }])
      return yield* body(yield* start(both, crew))
    })
  ).pipe(Effect.provide(DaemonLog.layerMemory))

/** The same; the clock stands at a time of day. */
export const run = <A, E>(body: (world: World) => Effect.Effect<A, E, Scope.Scope>) =>
  Effect.andThen(TestClock.setTime(T0), runLive(body))
