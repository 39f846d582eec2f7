/**
 * LiveChannels: Channels over the log: every channel an actor, told of its agents
 * by the AgentPort.
 *
 *     config ──┐                      ┌ runes
 *     people ──┼─► ChannelActor ──────┤
 *     AgentPort ────┘   (with its seats)   └ prompts, steers, interrupts ──► AgentPort
 *
 * Guarantees: after a start it is settled who is alive, and what became of the
 * turns that were under way, before any floor is given; the layer is there at once.
 * A channel that fails touches no other.
 */
import { Deferred, Effect, Fiber, Layer, Stream } from "effect"
import { ActorStopped } from "../event-actor/ActorRef.ts"
import { DeadLetters } from "../event-actor/DeadLetters.ts"
import type * as DynamicSupervisor from "../supervision/DynamicSupervisor.ts"
import { type ChannelConfig, type ChannelsConfig, MAX_CHANNELS } from "../config/ChannelConfig.ts"
import { AgentPort, type AgentReport } from "../domain/AgentPort.ts"
import { NAME, NAME_FORM } from "../config/Fields.ts"
import * as Ids from "../domain/Ids.ts"
import { type Caller, CommandRefused, type Done } from "../domain/Messages.ts"
import { EventLog, StorageError } from "../event-log/EventLog.ts"
import { unborn } from "./ChannelState.ts"
import * as ChannelActor from "./ChannelActor.ts"
import { Channels, type Home } from "./Channels.ts"
import { Presence } from "./Presence.ts"
import type { Input } from "./Input.ts"
import { ChannelRegistry } from "./ChannelRegistry.ts"
import { recover } from "./Recovery.ts"
import * as ChannelView from "./ChannelView.ts"
import { settle } from "./TurnRecovery.ts"
import * as Backoff from "../supervision/Backoff.ts"

export interface Options {
  /** Where the channels belong in the supervision tree. */
  readonly nest: DynamicSupervisor.DynamicSupervisor
}

/** A channel that was only just made, or that crashed, answers within moments. */
const SETTLES = { schedule: Backoff.waits(Backoff.constant("20 millis")), times: 250 }

type Command = Effect.Effect<Done, CommandRefused | StorageError>

class LiveChannels {
  readonly hall: ChannelRegistry
  private readonly kind: ChannelActor.Kind
  private readonly nest: DynamicSupervisor.DynamicSupervisor
  private readonly crew: AgentPort["Service"]
  /** The log is folded. */
  readonly folded: Deferred.Deferred<void, StorageError>
  /** Conversations whose file was heard of. */
  private readonly configured = new Set<string>()

  constructor(parts: {
    readonly hall: ChannelRegistry
    readonly kind: ChannelActor.Kind
    readonly nest: DynamicSupervisor.DynamicSupervisor
    readonly crew: AgentPort["Service"]
    readonly folded: Deferred.Deferred<void, StorageError>
  }) {
    this.hall = parts.hall
    this.kind = parts.kind
    this.nest = parts.nest
    this.crew = parts.crew
    this.folded = parts.folded
  }

  /** It lives from here on. */
  readonly enter = Effect.fnUntraced(
    { self: this },
    function* (this: LiveChannels, channel: ChannelActor.ChannelActor["channel"]) {
      const actor = this.kind.make(channel)
      this.hall.enter(actor)
      yield* this.nest.add(actor)
      return actor
    }
  )

  /** Of a command: refusals in a person's words. */
  private asked(actor: ChannelActor.ChannelActor, input: Input): Command {
    return actor.ask(input).pipe(
      Effect.retry({
        ...SETTLES,
        while: (error) =>
          error instanceof ActorStopped && (error.reason === "unstarted" || error.reason === "restarting")
      }),
      Effect.catchIf(
        (error) => !(error instanceof StorageError) && !(error instanceof CommandRefused),
        (error) =>
          Effect.fail(
            new CommandRefused({
              message: error.message,
              remedy: "remedy" in error ? error.remedy : "See `agentd log` for what led to it."
            })
          )
      )
    )
  }

  private on(name: string, caller: Caller, input: Input): Command {
    return Effect.andThen(
      Deferred.await(this.folded),
      Effect.suspend(() => {
        const actor = this.hall.find(name, caller)
        if (actor instanceof CommandRefused) return Effect.fail(actor)
        return this.asked(actor, input)
      })
    )
  }

  /** A new one; where there is one of that name, it says so. */
  private readonly make = Effect.fnUntraced(
    { self: this },
    function* (this: LiveChannels, conversation: string, name: string, input: Extract<Input, { _tag: "Create" }>) {
      const known = this.hall.named(conversation, name)
      if (known !== undefined) return yield* this.asked(known, input)
      if (this.hall.of(conversation).length >= MAX_CHANNELS) {
        return yield* new CommandRefused({
          message: `There are ${MAX_CHANNELS} channels already.`,
          remedy: "Close one: agentd channel close NAME"
        })
      }
      const actor = yield* this.enter(unborn(conversation, name, input.settings))
      if (this.hall.isSettled) actor.settled()
      return yield* Effect.onError(this.asked(actor, input), () =>
        Effect.suspend(() => {
          // One that never came to be leaves no name.
          if (actor.channel.epoch > 0) return Effect.void
          return this.forget(actor)
        })
      )
    }
  )

  readonly configure = Effect.fnUntraced(
    { self: this },
    function* (this: LiveChannels, home: Home, config: ChannelsConfig) {
      yield* Deferred.await(this.folded)
      this.hall.home(home)
      // Before that it is settled for all of them at once.
      if (this.hall.isSettled) {
        for (const member of yield* this.crew.members(home.conversation)) this.hall.crowd.settle(member)
      }
      const by = "config"
      const applied = (name: string, command: Command) =>
        Effect.catchTag(command, "CommandRefused", (error) => Effect.logWarning(`#${name}: ${error.message}`))
      for (const [name, settings] of Object.entries(config)) {
        const known = this.hall.named(home.conversation, name)
        if (known === undefined) {
          yield* applied(name, this.make(home.conversation, name, { _tag: "Create", settings, origin: "config", by }))
        } else yield* applied(name, this.asked(known, { _tag: "Configure", settings, by }))
      }
      for (const actor of this.hall.of(home.conversation)) {
        const { name, origin } = actor.channel
        if (origin === "config" && config[name] === undefined) yield* applied(name, this.closed(actor, by))
      }
      this.configured.add(home.conversation)
    }
  )

  readonly create = (name: string, settings: ChannelConfig, caller: Caller): Command =>
    Effect.gen({ self: this }, function* () {
      yield* Deferred.await(this.folded)
      if (!NAME.test(name)) {
        return yield* new CommandRefused({
          message: `"${name}" cannot be a channel's name.`,
          remedy: `Use ${NAME_FORM}.`
        })
      }
      const home = this.hall.homeOf(caller)
      if (home instanceof CommandRefused) return yield* home
      return yield* this.make(home.conversation, name, { _tag: "Create", settings, origin: "person", by: caller.by })
    })

  readonly close = (name: string, caller: Caller): Command =>
    Effect.gen({ self: this }, function* () {
      yield* Deferred.await(this.folded)
      const actor = this.hall.find(name, caller)
      if (actor instanceof CommandRefused) return yield* actor
      if (actor.channel.origin === "config") {
        return yield* new CommandRefused({
          message: `#${actor.channel.name} is in the project's agentd.jsonc.`,
          remedy: "Take it out there: then it is closed."
        })
      }
      return yield* this.closed(actor, caller.by)
    })

  private readonly closed = Effect.fnUntraced(
    { self: this },
    function* (this: LiveChannels, actor: ChannelActor.ChannelActor, by: string) {
      const done = yield* this.asked(actor, { _tag: "Close", by })
      // Answered when what the close led to has been done.
      yield* Effect.ignore(this.asked(actor, { _tag: "Look" }))
      yield* this.forget(actor)
      return done
    }
  )

  private forget(actor: ChannelActor.ChannelActor): Effect.Effect<void> {
    this.hall.leave(actor)
    return this.nest.remove(actor.id)
  }

  readonly post = (name: string, text: string, caller: Caller): Command =>
    Effect.flatMap(Ids.messageId, (messageId) => {
      // Who took no message a moment ago is tried again: somebody waits now.
      const found = this.hall.find(name, caller)
      if (found instanceof ChannelActor.ChannelActor) this.hall.forgive(found)
      return this.on(name, caller, { _tag: "Post", messageId, from: caller.by, text })
    })

  readonly voice: Channels["Service"]["voice"] = (address, utterance, options = {}) =>
    Effect.gen({ self: this }, function* () {
      yield* Deferred.await(this.folded)
      const { agent, conversation } = address
      const actor = this.hall.floorOf(conversation, agent, options.channel)
      if (actor instanceof CommandRefused) return yield* actor
      const messageId = options.messageId ?? (yield* Ids.messageId)
      return yield* this.asked(actor, { _tag: "Say", agent, messageId, utterance })
    })

  readonly service = (): Channels["Service"] =>
    Channels.of({
      configure: this.configure,
      isConfigured: (conversation) => Effect.sync(() => this.configured.has(conversation)),
      list: Effect.sync(() => this.hall.all.map((actor) => this.hall.info(actor))),
      show: (name, caller) =>
        Effect.suspend(() => {
          const actor = this.hall.find(name, caller)
          if (actor instanceof CommandRefused) return Effect.fail(actor)
          return Effect.succeed(ChannelView.view(actor.channel, this.hall.info(actor)))
        }),
      create: this.create,
      close: this.close,
      assign: (name, agent, caller) => this.on(name, caller, { _tag: "Assign", agent, by: caller.by }),
      remove: (name, agent, caller) => this.on(name, caller, { _tag: "Remove", agent, by: caller.by }),
      post: this.post,
      order: (name, order, agents, caller) => this.on(name, caller, { _tag: "Arrange", order, agents, by: caller.by }),
      grant: (name, agent, caller) => this.on(name, caller, { _tag: "Grant", agent, by: caller.by }),
      skip: (name, caller) => this.on(name, caller, { _tag: "Skip", by: caller.by }),
      requeue: (name, agent, caller) => this.on(name, caller, { _tag: "Requeue", agent, by: caller.by }),
      pause: (name, paused, caller) => this.on(name, caller, { _tag: "Pause", paused, by: caller.by }),
      voice: this.voice,
      ready: Effect.sync(() => this.hall.isSettled)
    })
}

/** What an agent's channels are told of it. */
const hear = Effect.fnUntraced(function* (crew: AgentPort["Service"], hall: ChannelRegistry, report: AgentReport) {
  const { agent, at, conversation } = report
  const tell = (input: Input) =>
    Effect.forEach(hall.placesOf(conversation, agent), (actor) => actor.tell(input, report.cause ?? undefined), {
      discard: true
    })
  switch (report._tag) {
    case "TurnStarted":
      hall.crowd.set(conversation, agent, { busy: true, aliveAt: at })
      return yield* tell({ _tag: "Carried", agent, messageIds: report.messageIds })
    case "Active":
      return hall.crowd.set(conversation, agent, { aliveAt: at })
    case "TurnEnded": {
      hall.crowd.set(conversation, agent, { busy: false, aliveAt: at })
      const { again, messageIds, outcome, output, reason, turnId } = report
      return yield* tell({ _tag: "Ended", agent, turnId, messageIds, outcome, reason, output, again })
    }
    case "Idle":
      hall.crowd.set(conversation, agent, { busy: false })
      return yield* tell({ _tag: "Look" })
    case "Online":
      hall.crowd.set(conversation, agent, { online: true, busy: false })
      return yield* tell({ _tag: "Came", agent })
    case "Offline":
      hall.crowd.set(conversation, agent, { online: false, busy: false })
      // A whole conversation goes offline one after the other: none of the others is given the floor meanwhile.
      for (const other of yield* crew.members(conversation)) {
        if (!other.online) hall.crowd.set(conversation, other.agent, { online: false })
      }
      return yield* tell({ _tag: "Left", agent, how: report.how })
    case "Reported":
      return
  }
})

/** Reports wait until it is settled who is alive: what they tell comes after it. */
const listen = (crew: AgentPort["Service"], hall: ChannelRegistry) =>
  Effect.scoped(
    Effect.gen(function* () {
      const settled = yield* Deferred.make<void>()
      const hearing = yield* Effect.forkScoped(
        Stream.runForEach(crew.reports, (report) => Effect.andThen(Deferred.await(settled), hear(crew, hall, report))),
        { startImmediately: true }
      )
      yield* crew.recovered
      yield* settle(crew, hall)
      yield* Deferred.succeed(settled, undefined)
      yield* Fiber.join(hearing)
    })
  )

const make = Effect.fnUntraced(function* (options: Options) {
  const log = yield* EventLog
  const crew = yield* AgentPort
  const scope = yield* Effect.scope
  const hall = new ChannelRegistry(new Presence())
  const kind = yield* ChannelActor.kind({ log, crew, crowd: hall.crowd, deadLetters: yield* DeadLetters })
  const folded = yield* Deferred.make<void, StorageError>()
  const live = new LiveChannels({ hall, kind, crew, nest: options.nest, folded })
  yield* recover.pipe(
    Effect.provideService(EventLog, log),
    Effect.flatMap(
      Effect.fnUntraced(function* (records) {
        for (const home of records.homes.values()) hall.home(home)
        for (const own of records.channels.values()) {
          for (const channel of own.values()) if (!channel.closed) yield* live.enter(channel)
        }
        for (const [name, reason] of records.broken)
          yield* Effect.logError(`the channel ${name} does not fold: ${reason}`)
      })
    ),
    Effect.onExit((exit) => Deferred.done(folded, exit)),
    Effect.andThen(options.nest.add({ id: "reports", start: Effect.succeed(listen(crew, hall)) })),
    Effect.tapCause((cause) => Effect.logError("the channels could not be recovered", cause)),
    Effect.forkIn(scope)
  )
  return live.service()
})

/** Channels, kept going. The nest belongs under a supervisor, below the agents'. */
export const layer = (options: Options) => Layer.effect(Channels, make(options))
