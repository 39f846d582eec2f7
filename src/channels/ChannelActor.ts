/**
 * ChannelActor: one channel with all its seats, animated.
 *
 *     mailbox → decide (pure) → append all its runes together → fold them → answer → act
 *
 * Its seats have no mailboxes of their own: a hand-over moves two of them, and is
 * one append. So nothing that crashes finds the floor with two, or with nobody.
 *
 * Guarantees: the committed channel is the fold of its runes at all times; nothing
 * acts on a rune that is not durable, and what a crash left undone is done again
 * under the same ids; without mail, and with nobody in turn, it holds no fiber.
 */
import { Cause, type Context, Effect, Exit, type Fiber, type Scope } from "effect"
import { Actor, type ActorOptions, Kind as ActorKind, makeKind } from "../event-actor/Actor.ts"
import { Ask, type Envelope } from "../event-actor/Mailbox.ts"
import type { AgentPort } from "../domain/AgentPort.ts"
import { CommandRefused, type Done } from "../domain/Messages.ts"
import type { Rune } from "../event-log/Rune.ts"
import type { EventLog, RuneRefused, StorageError } from "../event-log/EventLog.ts"
import { apply, type Channel, channelActor, holder, seatOf } from "./ChannelState.ts"
import type { Presence, Place } from "./Presence.ts"
import * as Deadlines from "./Deadlines.ts"
import { decide, type Decision } from "./Decision.ts"
import type { Input } from "./Input.ts"
import * as Floor from "./Floor.ts"
import type { Act, View } from "./ChannelTransaction.ts"
import * as Backoff from "../supervision/Backoff.ts"

export type AskError = CommandRefused | RuneRefused | StorageError

export interface Options extends ActorOptions {
  readonly log: EventLog["Service"]
  readonly crew: AgentPort["Service"]
  readonly crowd: Presence
}

class ChannelKind extends ActorKind {
  readonly options: Options

  constructor(options: Options, context: Context.Context<never>) {
    super(options, context)
    this.options = options
  }

  /** ms that no change of the wall clock touches. */
  get monotonic(): number {
    return Number(this.clock.monotonicTimeNanosUnsafe()) / 1e6
  }

  get now(): number {
    return this.clock.currentTimeMillisUnsafe()
  }
}

/** To one that took no message. */
const TRY_AGAIN = Backoff.constant("60 seconds")

/** No shorter: what is due at once comes after the mail that is there. */
const LEAST_WAIT = 1

export class ChannelActor extends Actor<Input, Done, AskError> implements Place {
  declare protected readonly kind: ChannelKind
  /** Committed. */
  channel: Channel
  /** Who is alive is settled. */
  private live = false
  /** In force, by key: what it was set for, and when it is due on the monotonic clock. */
  private due: Map<string, { readonly at: number; readonly due: number }> | undefined = undefined
  private timer: Fiber.Fiber<void> | undefined = undefined
  private timerAt = 0

  constructor(kind: ChannelKind, channel: Channel) {
    super(`${channel.conversation}/${channelActor(channel.name)}`, kind)
    this.channel = channel
  }

  /** Liveness is settled: from here on the floor is given. */
  settled(): void {
    this.live = true
    this.tellNow({ _tag: "Look" })
  }

  look(): void {
    // One that nobody listens in has nothing to look for.
    if (this.channel.queue.line.length > 0) this.tellNow({ _tag: "Look" })
  }

  /** When the turn or the wait of a seat ends by itself. */
  endOf(agent: string): number | null {
    const seated = seatOf(this.channel, agent)
    return seated === undefined ? null : Deadlines.endOf(seated, this.view.aliveAt(agent))
  }

  get view(): View {
    const { crowd } = this.kind.options
    const { conversation } = this.channel
    return {
      now: this.kind.now,
      open: this.live,
      online: (agent) => crowd.online(conversation, agent),
      busy: (agent) => crowd.busy(conversation, agent),
      idle: (agent) => crowd.idle(conversation, agent, this),
      aliveAt: (agent) => crowd.aliveAt(conversation, agent)
    }
  }

  /** What the incarnation before left undone is begun again. */
  protected override begin(): Effect.Effect<void, unknown> | undefined {
    this.due = undefined
    this.timer = undefined
    if (this.live && holder(this.channel) !== undefined) this.tellNow({ _tag: "Resumed" })
    this.arm()
    return undefined
  }

  protected batch(_limit: number): Effect.Effect<void, unknown> | undefined {
    const envelope = this.mailbox.at(0)
    if (envelope.isVoid) {
      this.mailbox.settle(1)
      return undefined
    }
    let decision: Decision
    try {
      decision = decide(this.channel, this.view, envelope.message)
    } catch (defect) {
      this.poisoned(defect)
      return undefined
    }
    if (decision.drafts.length === 0) {
      this.commit(envelope, decision, [])
      return decision.acts.length === 0 ? undefined : this.act(decision.acts)
    }
    const reserved = this.reserve(decision)
    // Not interruptible: what may be durable must be committed.
    const written = Effect.matchCauseEffect(this.kind.options.log.append(decision.drafts), {
      onSuccess: (runes) =>
        Effect.sync(() => {
          this.commit(envelope, decision, runes)
          return decision.acts
        }),
      onFailure: (cause) => {
        if (reserved !== undefined) this.hold(reserved, this, undefined)
        return this.unwritten(envelope, cause)
      }
    })
    return Effect.flatMap(Effect.uninterruptible(written), (acts) => this.act(acts))
  }

  private hold(agent: string, from: Place | undefined, to: Place | undefined): void {
    this.kind.options.crowd.floor(this.channel.conversation, agent, from, to)
  }

  /** Who is about to get the floor gets no other meanwhile. */
  private reserve({ drafts }: Decision): string | undefined {
    const granted = drafts.findLast(({ to }) => to === "ACTIVE")
    const agent = granted === undefined ? undefined : String(granted.payload["agentId"])
    if (agent === undefined || agent === this.channel.queue.current) return undefined
    this.hold(agent, undefined, this)
    return agent
  }

  private commit(envelope: Envelope<Input>, { reply }: Decision, runes: ReadonlyArray<Rune>): void {
    const before = this.channel.queue.current
    let channel = this.channel
    for (const rune of runes) channel = apply(channel, rune)
    this.channel = channel
    this.mailbox.settle(1)
    const after = channel.queue.current
    if (before !== after) {
      if (before !== null) this.hold(before, this, undefined)
      if (after !== null) this.hold(after, undefined, this)
    }
    for (const rune of runes) {
      if (rune.kind === "channel.assigned") {
        this.kind.options.crowd.seat(channel.conversation, String(rune.payload["agent"]), this)
      }
    }
    if (envelope.message._tag === "Due") for (const key of envelope.message.keys) this.due?.delete(key)
    this.arm()
    if (!(envelope instanceof Ask)) return
    if (reply instanceof CommandRefused) envelope.settle(Exit.fail(reply))
    else envelope.settle(Exit.succeed({ eventId: runes[0]?.eventId ?? channel.restsOn, message: reply }))
  }

  /** Nothing was written. A refused rune fails its own message only; anything else ends the actor. */
  private unwritten(
    envelope: Envelope<Input>,
    cause: Cause.Cause<StorageError | RuneRefused>
  ): Effect.Effect<ReadonlyArray<Act>, unknown> {
    const error = Cause.squash(cause)
    const isRefused = Cause.hasFails(cause) && (error as { _tag?: string })._tag === "RuneRefused"
    if (envelope instanceof Ask) envelope.settle(Exit.failCause(cause))
    if (!isRefused) return Effect.failCause(cause)
    this.mailbox.settle(1)
    if (!(envelope instanceof Ask)) this.bury(envelope, "refused", error)
    return Effect.succeed([])
  }

  // --- acting

  private act(acts: ReadonlyArray<Act>): Effect.Effect<void> {
    return Effect.forEach(acts, (act) => this.perform(act), { discard: true })
  }

  private perform(act: Act): Effect.Effect<void> {
    switch (act._tag) {
      case "Prompt":
        return this.prompt(act.agent)
      case "Steer":
        return this.steer(act)
      case "Recall":
        return this.recall(act)
      case "Warn":
        return Effect.logWarning(`${this.address}: ${act.agent}: ${act.text}`)
    }
  }

  private to(agent: string) {
    return { conversation: this.channel.conversation, agent }
  }

  private prompt(agent: string): Effect.Effect<void> {
    const seated = seatOf(this.channel, agent)
    if (seated === undefined || seated.prompt === null || seated.stand.state !== "ACTIVE") return Effect.void
    const { prompt } = seated
    const from = `channel:${this.channel.name}`
    const text = Floor.prompt(this.channel, seated)
    return this.kind.options.crew.post(this.to(agent), { messageId: prompt, from, text, alone: true }).pipe(
      Effect.catch((error) =>
        Effect.sync(() => {
          this.leaveAlone(agent)
          this.tellNow({ _tag: "Unreachable", agent, prompt, reason: error.message })
        })
      ),
      Effect.asVoid
    )
  }

  /** It takes no message now: it is tried again after a while, or when it, or a person, is heard of. */
  private leaveAlone(agent: string): void {
    const { crowd } = this.kind.options
    const { conversation } = this.channel
    crowd.shut(conversation, agent, true)
    this.fork(Effect.sleep(Backoff.wait(TRY_AGAIN, 1)), () => {
      crowd.shut(conversation, agent, false)
      this.look()
    })
  }

  private steer({ agent, floor, from, messageId, text }: Extract<Act, { _tag: "Steer" }>): Effect.Effect<void> {
    const { name } = this.channel
    const message = { messageId, from, text: Floor.aside(name, from, text, floor), alone: false }
    // It stands in the channel, and is unread until a turn has carried it.
    return Effect.catch(this.kind.options.crew.steer(this.to(agent), message), (error) =>
      Effect.logDebug(`${this.address}: ${agent} hears of it later: ${error.message}`)
    )
  }

  private recall({ agent, end, finish, messageIds }: Extract<Act, { _tag: "Recall" }>): Effect.Effect<void> {
    const { crew } = this.kind.options
    const one = (messageId: string) =>
      Effect.gen({ self: this }, function* () {
        const isBack = yield* crew.withdraw(this.to(agent), messageId)
        if (isBack || end === null) return isBack
        // Ending a turn takes its grace: the channel does not wait for it.
        const ending = crew
          .interrupt(this.to(agent), messageId, end)
          .pipe(Effect.catch((error) => Effect.logDebug(`${this.address}: ${agent}: ${error.message}`)))
        yield* Effect.sync(() => this.fork(ending, () => {}))
        return false
      })
    return Effect.forEach(messageIds, one).pipe(
      Effect.map((back) => {
        if (typeof finish === "string" && back.every(Boolean)) this.tellNow({ _tag: "Recalled", agent, prompt: finish })
      }),
      Effect.catch((error) => Effect.logDebug(`${this.address}: ${agent}: ${error.message}`))
    )
  }

  // --- time

  /** Sets the timer for the earliest deadline; one that is as before keeps its moment. */
  private arm(): void {
    const deadlines = this.live && !this.channel.closed ? Deadlines.of(this.channel, this.view) : []
    if (deadlines.length === 0) {
      this.due = undefined
      return this.disarm()
    }
    const [now, monotonic] = [this.kind.now, this.kind.monotonic]
    const before = this.due
    this.due = new Map()
    let earliest = Number.POSITIVE_INFINITY
    for (const { at, key, within } of deadlines) {
      const known = before?.get(key)
      const due = known?.at === at ? known.due : monotonic + Math.min(Math.max(at - now, LEAST_WAIT), within)
      this.due.set(key, { at, due })
      earliest = Math.min(earliest, due)
    }
    if (this.timer !== undefined && this.timerAt === earliest) return
    this.disarm()
    if (!this.running) return
    this.timerAt = earliest
    const wait = Math.max(LEAST_WAIT, earliest - monotonic)
    const fiber = this.fork(Effect.sleep(wait), (exit) => {
      if (this.timer !== fiber) return
      this.timer = undefined
      if (Exit.isSuccess(exit)) this.fire()
    })
    this.timer = fiber
  }

  private disarm(): void {
    const { timer } = this
    this.timer = undefined
    timer?.interruptUnsafe()
  }

  private fire(): void {
    const monotonic = this.kind.monotonic
    const keys = [...(this.due ?? [])].filter(([, { due }]) => due <= monotonic + LEAST_WAIT).map(([key]) => key)
    if (keys.length > 0) this.tellNow({ _tag: "Due", keys })
    else this.arm()
  }
}

export interface Kind {
  /** A new actor; give it to a supervisor as child. */
  readonly make: (channel: Channel) => ChannelActor
}

/** Its actors are closed with the scope. */
export const kind = (options: Options): Effect.Effect<Kind, never, Scope.Scope> =>
  Effect.map(
    makeKind<ChannelKind, never>((context) => new ChannelKind(options, context)),
    (shared) => ({ make: (channel) => new ChannelActor(shared, channel) })
  )
