/**
 * Channels: the service for channels, in which agents and users take turns. It applies the channels of a project's
 * config, commands of users, and posts of agents.
 *
 *     config ────┐                         ┌ runes
 *     users  ────┼─► ChannelActor ─────────┤
 *     AgentPort ─┘   (with its seats)      └ prompts, steers, interrupts ──► AgentPort
 *
 * Guarantees: a change is durable before a reply reports it. At most one agent has the floor of a channel, and only
 * this agent and users can post there. Every agent with a seat reads the new posts when it gets the floor. After a
 * start the daemon first finds out which agents are alive and how their turns ended, before it gives any floor; the
 * layer is ready at once. A channel that fails affects no other.
 */
import { Context, Deferred, Effect, Fiber, Layer, Stream } from "effect"
import { ActorSystem } from "../core/event-actor/ActorSystem.ts"
import type * as DynamicSupervisor from "../core/supervision/DynamicSupervisor.ts"
import * as Monotonic from "../core/supervision/Monotonic.ts"
import { type ChannelConfig, type ChannelsConfig, MAX_CHANNELS, type Order } from "../config/ChannelConfig.ts"
import { type Address, AgentPort, type AgentReport } from "../domain/AgentPort.ts"
import type { ChannelInfo, ChannelView as Shown, Utterance } from "../domain/ChannelMessages.ts"
import { NAME, NAME_FORM } from "../config/Fields.ts"
import * as Ids from "../domain/Ids.ts"
import { type Caller, CommandRefused, type Done, refuse, refusedBy } from "../domain/Messages.ts"
import { EventLog, StorageError } from "../core/event-log/EventLog.ts"
import { type Channel, unborn } from "./ChannelState.ts"
import { ChannelActor, type Surroundings } from "./ChannelActor.ts"
import { ChannelRegistry, type Home } from "./ChannelRegistry.ts"
import * as ChannelView from "./ChannelView.ts"
import type { FloorInput } from "./FloorInput.ts"
import { Presence } from "./Presence.ts"
import { recover } from "./Recovery.ts"
import { settle } from "./TurnRecovery.ts"

type Command = Effect.Effect<Done, CommandRefused | StorageError>

/**
 * The channels in which agents and users take turns. A channel is named `channel` within its project, and
 * `project/channel` elsewhere.
 */
export class Channels extends Context.Service<
  Channels,
  {
    /** Applies the channels of a project's file. Called when the project is registered, and when its file changes. */
    readonly configure: (home: Home, channels: ChannelsConfig) => Effect.Effect<void, StorageError>
    readonly isConfigured: (conversation: string) => Effect.Effect<boolean>
    /** Waits until `configure` has been done for a conversation. */
    readonly configured: (conversation: string) => Effect.Effect<void>
    /** Lists the channels that are not closed. */
    readonly list: Effect.Effect<ReadonlyArray<ChannelInfo>>
    readonly show: (name: string, caller: Caller) => Effect.Effect<Shown, CommandRefused>
    /** Creates a channel in the caller's project. */
    readonly create: (name: string, config: ChannelConfig, caller: Caller) => Command
    readonly close: (name: string, caller: Caller) => Command
    readonly assign: (name: string, agent: string, caller: Caller) => Command
    readonly remove: (name: string, agent: string, caller: Caller) => Command
    readonly post: (name: string, text: string, caller: Caller) => Command
    /** Sets the order of turns. The named agents go first, in the given order. */
    readonly order: (name: string, order: Order, agents: ReadonlyArray<string>, caller: Caller) => Command
    readonly grant: (name: string, agent: string, caller: Caller) => Command
    readonly skip: (name: string, caller: Caller) => Command
    /** Makes an agent that waits or has the floor give up its turn and go to the end of the queue. */
    readonly requeue: (name: string, agent: string, caller: Caller) => Command
    readonly pause: (name: string, paused: boolean, caller: Caller) => Command
    /**
     * Posts a message, or gives a signal, in the name of an agent. `channel` can be omitted if the agent has only one
     * floor. `messageId` comes from the agent's tool call: a repetition with the same id changes nothing.
     */
    readonly voice: (
      agent: Address,
      utterance: Utterance,
      options?: { readonly channel?: string; readonly messageId?: string }
    ) => Command
    /** Whether the agents' state is known. After a start, no floor is given until then. */
    readonly ready: Effect.Effect<boolean>
  }
>()("agentd/channels/Channels") {}

export interface Options {
  readonly supervisor: DynamicSupervisor.DynamicSupervisor
}

class LiveChannels {
  readonly registry: ChannelRegistry
  private readonly around: Surroundings
  private readonly supervisor: DynamicSupervisor.DynamicSupervisor
  /** Completes when the log has been folded and the channels have been started. */
  readonly started: Deferred.Deferred<void, StorageError>
  /** Completes when a conversation's channels are configured, by conversation. */
  private readonly configured = new Map<string, Deferred.Deferred<void>>()

  constructor(
    around: Surroundings,
    supervisor: DynamicSupervisor.DynamicSupervisor,
    started: Deferred.Deferred<void, StorageError>
  ) {
    this.registry = new ChannelRegistry(around.presence)
    this.around = around
    this.supervisor = supervisor
    this.started = started
  }

  private configuredOf(conversation: string): Deferred.Deferred<void> {
    const known = this.configured.get(conversation)
    if (known !== undefined) return known
    const awaited = Deferred.makeUnsafe<void>()
    this.configured.set(conversation, awaited)
    return awaited
  }

  readonly enter = Effect.fnUntraced({ self: this }, function* (this: LiveChannels, channel: Channel) {
    const actor = new ChannelActor(this.around, channel)
    this.registry.enter(actor)
    yield* this.supervisor.add(actor.scope)
    return actor
  })

  /** Sends a command to a channel. Unexpected errors become refusals with a message for the user. */
  private asked(actor: ChannelActor, input: FloorInput): Command {
    return actor.ask(input).pipe(
      Effect.catchIf(
        (error) => !(error instanceof StorageError) && !(error instanceof CommandRefused),
        (error) => Effect.fail(refusedBy(error))
      )
    )
  }

  private on(name: string, caller: Caller, input: FloorInput): Command {
    return Effect.andThen(
      Deferred.await(this.started),
      Effect.suspend(() => {
        const actor = this.registry.find(name, caller)
        if (actor instanceof CommandRefused) return Effect.fail(actor)
        return this.asked(actor, input)
      })
    )
  }

  /** Creates a channel, or rejects the command if a channel with that name exists. */
  private readonly make = Effect.fnUntraced(
    { self: this },
    function* (this: LiveChannels, conversation: string, name: string, input: Extract<FloorInput, { _tag: "Create" }>) {
      const known = this.registry.named(conversation, name)
      if (known !== undefined) return yield* this.asked(known, input)
      if (this.registry.of(conversation).length >= MAX_CHANNELS) {
        return yield* refuse(
          "full",
          `There are ${MAX_CHANNELS} channels already.`,
          "Close one: agentd channel close NAME"
        )
      }
      const actor = yield* this.enter(unborn(conversation, name, input.settings))
      return yield* Effect.onError(this.asked(actor, input), () =>
        Effect.suspend(() => {
          // The name of a channel whose creation failed is free again.
          if (actor.channel.epoch > 0) return Effect.void
          return this.forget(actor)
        })
      )
    }
  )

  readonly configure = Effect.fnUntraced(
    { self: this },
    function* (this: LiveChannels, home: Home, config: ChannelsConfig) {
      yield* Deferred.await(this.started)
      this.registry.home(home)
      // until the agents' state is known, do nothing here: `settle` later handles all members at once
      if (this.around.presence.isSettled) {
        for (const member of yield* this.around.agents.members(home.conversation)) this.around.presence.settle(member)
      }
      const by = "config"
      const applied = (name: string, command: Command) =>
        Effect.catchTag(command, "CommandRefused", (error) => Effect.logWarning(`#${name}: ${error.message}`))
      for (const [name, settings] of Object.entries(config)) {
        const known = this.registry.named(home.conversation, name)
        if (known === undefined) {
          yield* applied(name, this.make(home.conversation, name, { _tag: "Create", settings, origin: "config", by }))
        } else yield* applied(name, this.asked(known, { _tag: "Configure", settings, by }))
      }
      for (const actor of this.registry.of(home.conversation)) {
        const { name, origin } = actor.channel
        if (origin === "config" && config[name] === undefined) yield* applied(name, this.closed(actor, by))
      }
      yield* Deferred.succeed(this.configuredOf(home.conversation), undefined)
    }
  )

  readonly create = (name: string, settings: ChannelConfig, caller: Caller): Command =>
    Effect.gen({ self: this }, function* () {
      yield* Deferred.await(this.started)
      if (!NAME.test(name)) {
        return yield* refuse("invalid", `"${name}" cannot be a channel's name.`, `Use ${NAME_FORM}.`)
      }
      const home = this.registry.homeOf(caller)
      if (home instanceof CommandRefused) return yield* home
      return yield* this.make(home.conversation, name, { _tag: "Create", settings, origin: "person", by: caller.by })
    })

  readonly close = (name: string, caller: Caller): Command =>
    Effect.gen({ self: this }, function* () {
      yield* Deferred.await(this.started)
      const actor = this.registry.find(name, caller)
      if (actor instanceof CommandRefused) return yield* actor
      if (actor.channel.origin === "config") {
        return yield* refuse(
          "conflict",
          `#${actor.channel.name} is in the project's agentd.jsonc.`,
          "Remove it from that file; it is then closed."
        )
      }
      return yield* this.closed(actor, caller.by)
    })

  private readonly closed = Effect.fnUntraced(
    { self: this },
    function* (this: LiveChannels, actor: ChannelActor, by: string) {
      const done = yield* this.asked(actor, { _tag: "Close", by })
      // returns only when all acts of the close are done
      yield* actor.ended
      yield* this.forget(actor)
      return done
    }
  )

  private forget(actor: ChannelActor): Effect.Effect<void> {
    this.registry.leave(actor)
    return this.supervisor.remove(actor.scope.id)
  }

  readonly post = (name: string, text: string, caller: Caller): Command =>
    Effect.flatMap(Ids.messageId, (messageId) => {
      // Agents that recently accepted no message are tried again, because a user waits for an answer now.
      const found = this.registry.find(name, caller)
      if (found instanceof ChannelActor) this.registry.forgive(found)
      return this.on(name, caller, { _tag: "Post", messageId, from: caller.by, text })
    })

  readonly voice: Channels["Service"]["voice"] = (address, utterance, options = {}) =>
    Effect.gen({ self: this }, function* () {
      yield* Deferred.await(this.started)
      const { agent, conversation } = address
      const actor = this.registry.floorOf(conversation, agent, options.channel)
      if (actor instanceof CommandRefused) return yield* actor
      const messageId = options.messageId ?? (yield* Ids.messageId)
      return yield* this.asked(actor, { _tag: "Say", agent, messageId, utterance })
    })

  private readonly info = Effect.fnUntraced({ self: this }, function* (this: LiveChannels, actor: ChannelActor) {
    const { conversation, queue } = actor.channel
    const members = queue.current === null ? [] : yield* this.around.agents.members(conversation)
    return this.registry.info(actor, members.find(({ agent }) => agent === queue.current)?.needs)
  })

  readonly service = (): Channels["Service"] =>
    Channels.of({
      configure: this.configure,
      isConfigured: (conversation) => Effect.suspend(() => Deferred.isDone(this.configuredOf(conversation))),
      configured: (conversation) => Effect.suspend(() => Deferred.await(this.configuredOf(conversation))),
      list: Effect.suspend(() => Effect.forEach(this.registry.all, (actor) => this.info(actor))),
      show: (name, caller) =>
        Effect.suspend(() => {
          const actor = this.registry.find(name, caller)
          if (actor instanceof CommandRefused) return Effect.fail(actor)
          return Effect.map(this.info(actor), (info) => ChannelView.view(actor.channel, info))
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
      ready: Effect.sync(() => this.around.presence.isSettled)
    })
}

const hear = Effect.fnUntraced(function* (
  agents: AgentPort["Service"],
  registry: ChannelRegistry,
  report: AgentReport
) {
  const { agent, conversation } = report
  const heard = yield* Monotonic.now
  const tell = (input: FloorInput) =>
    Effect.forEach(registry.placesOf(conversation, agent), (actor) => actor.tell(input, report.cause), {
      discard: true
    })
  switch (report._tag) {
    case "TurnStarted":
      registry.presence.set(conversation, agent, { busy: true, heardAt: heard, carries: report.messageIds })
      return yield* tell({ _tag: "Carried", agent, messageIds: report.messageIds })
    case "Active":
      return registry.presence.set(conversation, agent, { heardAt: heard })
    case "TurnEnded": {
      registry.presence.set(conversation, agent, { busy: false, heardAt: heard, carries: [] })
      const { again, messageIds, outcome, output, reason, turnId } = report
      return yield* tell({ _tag: "Ended", agent, turnId, messageIds, outcome, reason, output, again })
    }
    case "Idle":
      registry.presence.set(conversation, agent, { busy: false })
      return yield* tell({ _tag: "Look" })
    case "Online":
      registry.presence.set(conversation, agent, { online: true, busy: false, carries: [] })
      return yield* tell({ _tag: "Came", agent })
    case "Offline":
      registry.presence.set(conversation, agent, { online: false, busy: false, carries: [] })
      // The agents of a conversation go offline one by one. An agent that is about to go offline must not get the
      // floor.
      for (const other of yield* agents.members(conversation)) {
        if (!other.online) registry.presence.set(conversation, other.agent, { online: false })
      }
      return yield* tell({ _tag: "Left", agent, how: report.how, isBetween: report.isBetween })
    case "Reported":
      return
  }
})

/**
 * Follows the agents' reports. They are queued until the agents' state is known, because they describe later changes.
 */
const listen = (agents: AgentPort["Service"], registry: ChannelRegistry) =>
  Effect.scoped(
    Effect.gen(function* () {
      const settled = yield* Deferred.make<void>()
      const hearing = yield* Effect.forkScoped(
        Stream.runForEach(agents.reports, (report) =>
          Effect.andThen(Deferred.await(settled), hear(agents, registry, report))
        ),
        { startImmediately: true }
      )
      yield* agents.recovered
      yield* settle(agents, registry)
      yield* Deferred.succeed(settled, undefined)
      yield* Fiber.join(hearing)
    })
  )

const make = Effect.fnUntraced(function* ({ supervisor }: Options) {
  const agents = yield* AgentPort
  const scope = yield* Effect.scope
  const around = { system: yield* ActorSystem, agents, presence: new Presence(), scope }
  const live = new LiveChannels(around, supervisor, yield* Deferred.make<void, StorageError>())
  const { registry, started } = live
  // starts the channels before the reports, so that reports find them
  const reports = { id: "reports", start: Effect.as(Deferred.succeed(started, undefined), listen(agents, registry)) }
  yield* recover.pipe(
    Effect.flatMap(
      Effect.fnUntraced(function* (all) {
        for (const { channels, home } of all) {
          if (home !== null) registry.home(home)
          for (const channel of Object.values(channels)) if (!channel.closed) yield* live.enter(channel)
        }
      })
    ),
    Effect.andThen(supervisor.add(reports)),
    Effect.tapError((error) => Deferred.fail(started, error)),
    Effect.tapCause((cause) => Effect.logError("the channels could not be recovered", cause)),
    Effect.forkIn(scope)
  )
  return live.service()
})

/** Another supervisor must start `options.supervisor`, and must start it after the agents' supervisor. */
export const layer = (options: Options): Layer.Layer<Channels, never, ActorSystem | AgentPort | EventLog> =>
  Layer.effect(Channels, make(options))
