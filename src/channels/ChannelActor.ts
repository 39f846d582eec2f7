/**
 * ChannelActor: one channel with all its seats, as one event-sourced actor in its own commit scope. For each message, a
 * pure function makes a decision, all resulting runes are appended at once, the message is answered, and then the acts
 * are done.
 *
 * The seats are parts of the actor and have no mailboxes. Handing over the floor moves two seats in one append, so
 * after a crash exactly one of them has the floor.
 *
 * Guarantees: the channel that others read is the fold of its durable runes. All channels learn about a decision on the
 * floor immediately (Presence), before it is durable. If no message is queued and no agent has the floor, the actor
 * needs no fiber.
 */
import { Clock, Effect, type Scope } from "effect"
import type { System } from "../core/event-actor/ActorSystem.ts"
import { CommitScope } from "../core/event-actor/CommitScope.ts"
import { type Acting, actor, type EventSourcedActor, Refuse } from "../core/event-actor/EventSourcedActor.ts"
import type { Member } from "../core/event-actor/Member.ts"
import type { Cause } from "../core/event-log/Rune.ts"
import type { AgentPort } from "../domain/AgentPort.ts"
import { CommandRefused, type Done } from "../domain/Messages.ts"
import { apply, type Channel, type Deadline, channelActor, isOfTurn, isSeatOf, seatOf } from "./ChannelState.ts"
import type { Act, View } from "./ChannelTransaction.ts"
import * as Deadlines from "./Deadlines.ts"
import { decide } from "./ChannelDecision.ts"
import * as Floor from "./Floor.ts"
import type { FloorInput } from "./FloorInput.ts"
import type { Place, Presence } from "./Presence.ts"

export interface Surroundings {
  readonly system: System
  readonly agents: AgentPort["Service"]
  readonly presence: Presence
  /** Scope for work that a channel does not wait for. The scope outlives the channels. */
  readonly scope: Scope.Scope
}

type Actings = Acting<Channel, FloorInput, CommandRefused>

/** Time for which an agent that accepted no message gets none, in ms, if the time of its next run is unknown. */
const TRY_AGAIN = 60_000

export class ChannelActor implements Place {
  /** The commit scope of the channel's actor. The caller adds it to a supervisor. */
  readonly scope: CommitScope
  readonly conversation: string
  readonly name: string
  private readonly around: Surroundings
  private readonly actor: Member<Channel, FloorInput, CommandRefused>
  /** Start times of the deadlines, on the monotonic clock, by key. */
  private readonly beginnings = new Map<string, { readonly since: number; readonly at: number }>()

  constructor(around: Surroundings, channel: Channel) {
    const { conversation, name } = channel
    const self = channelActor(name)
    this.around = around
    this.conversation = conversation
    this.name = name
    this.scope = new CommitScope(around.system, {
      id: `${conversation}/${self}`,
      stream: conversation,
      // a closed channel ends its actor, which is not restarted
      restart: "transient"
    })
    this.actor = this.scope.add(self, this.definition(channel), channel)
  }

  private definition(initial: Channel): EventSourcedActor<Channel, FloorInput, Act, CommandRefused> {
    const { name } = this
    return actor({
      initial,
      decide: (channel, input, { nextId, nextSeq, now }) => {
        const decided = decide(channel, this.viewAt(now), input, { eventId: nextId, seq: nextSeq })
        const { acts, channel: state, drafts, reply } = decided
        if (reply instanceof CommandRefused) return new Refuse(reply)
        const done: Done = { eventId: drafts.length === 0 ? channel.restsOn : nextId, message: reply }
        return { runes: drafts, state, acts, reply: done }
      },
      apply,
      parts: (part) => isSeatOf(name, part),
      timers: (channel) =>
        Deadlines.of(channel).map(({ after, key, since }) => ({ key, since, after, message: { _tag: "Due", key } })),
      stepped: (before, after) => this.stepped(before, after),
      ends: ({ closed }) => closed,
      perform: (act, acting) => this.perform(act, acting)
    })
  }

  /** The channel's committed state. */
  get channel(): Channel {
    return this.actor.state
  }

  /** Sends an input. Returns when the input's runes are durable. */
  ask(input: FloorInput) {
    return this.actor.ask<Done>(input)
  }

  tell(input: FloorInput, cause: Cause | null = null): Effect.Effect<void> {
    return this.actor.tell(input, cause)
  }

  look(): void {
    // if no agent is in the queue, no agent can get the floor
    if (this.actor.ahead.queue.line.length > 0) this.actor.tellNow({ _tag: "Look" })
  }

  /** Waits until the actor has ended, and all its acts are done. */
  readonly ended: Effect.Effect<void> = Effect.callback((resume) => {
    const { incarnation } = this.scope
    if (incarnation === undefined) resume(Effect.void)
    else incarnation.onExit({ childExited: () => resume(Effect.void) })
  })

  /** When the seat's turn or wait ends by itself, ms since the epoch; null if there is no limit. */
  endOf(agent: string): number | null {
    const seated = seatOf(this.channel, agent)
    return seated === undefined ? null : Deadlines.endOf(seated, this.view.aliveAt(agent))
  }

  get view(): View {
    return this.viewAt(this.around.system.clock.currentTimeMillisUnsafe())
  }

  private viewAt(now: number): View {
    const { conversation } = this
    const { presence, system } = this.around
    return {
      now,
      open: presence.isSettled,
      online: (agent) => presence.online(conversation, agent),
      busy: (agent) => presence.busy(conversation, agent),
      carries: (agent, prompt) => presence.carried(conversation, agent).some((id) => isOfTurn(prompt, id)),
      idle: (agent) => presence.idle(conversation, agent, this),
      waits: (agent) => this.around.agents.waits?.({ conversation, agent }) === true,
      aliveAt: (agent) => {
        // time in which the agent waits for a user counts as a sign of life
        if (this.around.agents.waits?.({ conversation, agent }) === true) return now
        const heard = presence.heardAt(conversation, agent)
        return heard === undefined ? 0 : now - (system.monotonic() - heard)
      },
      isOver: (deadline) => this.began(deadline) + deadline.after <= system.monotonic()
    }
  }

  /** When a deadline began, on the monotonic clock, so that a change of the wall clock has no effect. */
  private began({ key, since }: Deadline): number {
    const known = this.beginnings.get(key)
    if (known?.since === since) return known.at
    const { clock, monotonic } = this.around.system
    const at = monotonic() - Math.max(0, clock.currentTimeMillisUnsafe() - since)
    this.beginnings.set(key, { since, at })
    return at
  }

  /** Updates presence before the runes are durable. Otherwise two channels could give the floor to the same agent. */
  private stepped(before: Channel, after: Channel): void {
    const { conversation } = this
    const { presence } = this.around
    const deadlines = Deadlines.of(after)
    for (const deadline of deadlines) this.began(deadline)
    for (const key of this.beginnings.keys()) {
      if (!deadlines.some((deadline) => deadline.key === key)) this.beginnings.delete(key)
    }
    if (after.assigned !== before.assigned) {
      for (const agent of after.assigned) presence.seat(conversation, agent, this)
    }
    const [from, to] = [before.queue.current, after.queue.current]
    if (from === to) return
    if (to !== null) presence.hold(conversation, to, this)
    if (from !== null) presence.release(conversation, from, this)
  }

  private perform(act: Act, acting: Actings): Effect.Effect<void> {
    switch (act._tag) {
      case "Prompt":
        return this.prompt(act.agent, acting)
      case "Steer":
        return this.steer(act)
      case "Recall":
        return this.recall(act, acting)
      case "LeaveAlone":
        return this.leaveAlone(act.agent)
      case "Warn":
        return Effect.logWarning(`${this.actor.address}: ${act.agent}: ${act.text}`)
    }
  }

  private to(agent: string) {
    return { conversation: this.conversation, agent }
  }

  private prompt(agent: string, { self }: Actings): Effect.Effect<void> {
    const seated = seatOf(self.state, agent)
    if (seated === undefined || seated.prompt === null || seated.stand.state !== "ACTIVE") return Effect.void
    const { prompt } = seated
    const from = `channel:${this.name}`
    const text = Floor.prompt(self.state, seated)
    return this.around.agents.post(this.to(agent), { messageId: prompt, from, text, alone: true }).pipe(
      Effect.catch((error) =>
        Effect.andThen(this.leaveAlone(agent), self.tell({ _tag: "Unreachable", agent, prompt, reason: error.message }))
      ),
      Effect.asVoid
    )
  }

  /**
   * Stops giving the floor to an agent that accepted no message. The agent is tried again after a while, when it
   * reports something, or when a user posts.
   */
  private leaveAlone(agent: string): Effect.Effect<void> {
    const { presence, scope } = this.around
    presence.shut(this.conversation, agent, true)
    const again = Effect.sync(() => {
      presence.shut(this.conversation, agent, false)
      this.look()
    })
    const waits = Effect.flatMap(this.restOf(agent), (rest) => Effect.delay(again, rest))
    return Effect.asVoid(Effect.forkIn(waits, scope))
  }

  /** Time until the agent is tried again, in ms: early enough for it to have the floor when its next run begins. */
  private readonly restOf = Effect.fnUntraced({ self: this }, function* (this: ChannelActor, agent: string) {
    const members = yield* this.around.agents.members(this.conversation)
    const until = members.find((member) => member.agent === agent)?.restsUntil
    const left = (until ?? 0) - (yield* Clock.currentTimeMillis)
    const limit = seatOf(this.channel, agent)?.stand.data.limits.turnTimeout ?? Infinity
    return left <= 0 || limit === Infinity ? TRY_AGAIN : Math.max(0, left - limit / 2)
  })

  private steer({ agent, floor, from, messageId, text }: Extract<Act, { _tag: "Steer" }>): Effect.Effect<void> {
    const message = { messageId, from, text: Floor.aside(this.name, from, text, floor), alone: false }
    const { agents } = this.around
    // an agent without the floor is not interrupted in its work: it gets the message with its next turn
    const told = floor ? agents.steer(this.to(agent), message) : agents.post(this.to(agent), message)
    // If this fails, the post is still in the channel, and unread until the agent gets it with a turn.
    return Effect.catch(Effect.asVoid(told), (error) =>
      Effect.logDebug(`${this.actor.address}: ${agent} gets the post later: ${error.message}`)
    )
  }

  private recall(
    { agent, end, finish, messageIds }: Extract<Act, { _tag: "Recall" }>,
    { self }: Actings
  ): Effect.Effect<void> {
    const { agents, scope } = this.around
    const quietly = Effect.catch((error: CommandRefused) =>
      Effect.logDebug(`${this.actor.address}: ${agent}: ${error.message}`)
    )
    const one = (messageId: string) =>
      Effect.gen({ self: this }, function* () {
        const isBack = yield* agents.withdraw(this.to(agent), [messageId])
        if (isBack || end === null) return isBack
        // Ending a turn can take its whole grace period, so the channel does not wait for it.
        yield* Effect.forkIn(quietly(agents.interrupt(this.to(agent), messageId, end)), scope)
        return false
      })
    if (typeof finish !== "string") return quietly(Effect.forEach(messageIds, one, { discard: true }))
    // if a turn has begun with one of the messages, that turn has this floor, and the later messages belong to it, too
    return agents.withdraw(this.to(agent), messageIds).pipe(
      Effect.flatMap((isBack) =>
        isBack ? self.tell({ _tag: "Recalled", agent, prompt: finish, messageIds }) : Effect.void
      ),
      quietly
    )
  }
}
