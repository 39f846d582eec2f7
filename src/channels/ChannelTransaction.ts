/**
 * ChannelTransaction: works out what one input changes in a channel: the runes, which are appended together in order,
 * and the acts to do when they are durable. Pure: it performs no act and reads no clock.
 *
 * Guarantees: an event that the seat's state machine rejects leaves no rune. Afterwards an agent has the floor, or no
 * agent can take it.
 */
import { MAX_POST_BYTES } from "../domain/ChannelMessages.ts"
import type { Payload } from "../core/event-log/Rune.ts"
import type { Draft } from "../core/event-actor/EventSourcedActor.ts"
import { step } from "../core/event-actor/StateMachine.ts"
import * as SeatMachine from "./SeatMachine.ts"
import {
  apply,
  type Channel,
  channelActor,
  type Deadline,
  hasUnread,
  isResting,
  type Kind,
  seatActor,
  type Seated,
  seatOf,
  seatsOf
} from "./ChannelState.ts"
import * as TurnQueue from "./TurnQueue.ts"

/** The current state of the agents, which can change at any moment. */
export interface View {
  /** The current time, ms since the epoch. */
  readonly now: number
  /** True when the agents' state is known after a start, so that floors can be given. */
  readonly open: boolean
  readonly online: (agent: string) => boolean
  /** True if the agent has a turn in progress, in a channel or elsewhere. */
  readonly busy: (agent: string) => boolean
  /** True if the agent's current turn was begun by the message with this prompt, or by one sent along with it. */
  readonly carries: (agent: string, prompt: string) => boolean
  /**
   * True if the agent could take a turn here at once: it is online and not busy, and does not have the floor of another
   * channel.
   */
  readonly idle: (agent: string) => boolean
  /** The agent's last sign of life, ms since the epoch; 0 if there was none. */
  readonly aliveAt: (agent: string) => number
  /** True if the agent waits for a user. */
  readonly waits?: (agent: string) => boolean
  /** Whether the deadline has passed. A change of the wall clock has no effect on this. */
  readonly isOver: (deadline: Deadline) => boolean
}

/** Actions outside the channel's state, which are done in order when the runes are durable. */
export type Act =
  /** Send the agent the prompt with the new posts, under the turn's message id: it has the floor. */
  | { readonly _tag: "Prompt"; readonly agent: string }
  /** Add a post to the agent's turn. */
  | {
      readonly _tag: "Steer"
      readonly agent: string
      readonly messageId: string
      readonly from: string
      readonly text: string
      /** True if the agent has the floor. If it does not, the message is only for its information. */
      readonly floor: boolean
    }
  /** Withdraw the messages. If a turn is already processing them and `end` is not null, end it for this reason. */
  | {
      readonly _tag: "Recall"
      readonly agent: string
      readonly messageIds: ReadonlyArray<string>
      readonly end: string | null
      /** The prompt of the turn that is over once all messages have been withdrawn. */
      readonly finish?: string | null
    }
  /** Give the agent no floor for a while. */
  | { readonly _tag: "LeaveAlone"; readonly agent: string }
  | { readonly _tag: "Warn"; readonly agent: string; readonly text: string }

export interface First {
  readonly eventId: number
  readonly seq: number
}

const CUT = "\n… (cut: the full text is in the agent's own log)"

export const bounded = (text: string): string => {
  if (Buffer.byteLength(text) <= MAX_POST_BYTES) return text
  return (
    Buffer.from(text)
      .subarray(0, MAX_POST_BYTES)
      .toString("utf8")
      .replace(/(?<!\uFFFD)\uFFFD+$/, "") + CUT
  )
}

export class ChannelTransaction {
  channel: Channel
  readonly view: View
  readonly drafts: Array<Draft> = []
  readonly acts: Array<Act> = []
  private readonly first: First
  /** The agent that must not get the floor as a result of this input; null if there is none. */
  private alone: string | null = null

  constructor(channel: Channel, view: View, first: First) {
    this.channel = channel
    this.view = view
    this.first = first
  }

  seat(agent: string): Seated | undefined {
    return seatOf(this.channel, agent)
  }

  get holder(): Seated | undefined {
    const { current } = this.channel.queue
    return current === null ? undefined : this.seat(current)
  }

  private append(draft: Draft): void {
    const { length } = this.drafts
    const { eventId, seq } = this.first
    this.drafts.push(draft)
    this.channel = apply(this.channel, {
      eventId: eventId + length,
      seq: seq + length,
      at: this.view.now,
      kind: draft.kind,
      payload: draft.payload
    })
  }

  /** Appends a rune of the channel itself. */
  record(kind: Kind, payload: Payload, trigger: string): void {
    this.append({ kind, actor: channelActor(this.channel.name), trigger, payload })
  }

  notice(text: string, isWanted: boolean): void {
    if (isWanted) this.record("channel.notice", { text }, "notice")
  }

  /**
   * Posts a notice when the channel starts to rest, because the number of posts that agents make without a person is
   * limited.
   */
  settleRest(before: Channel): void {
    if (isResting(before) || !isResting(this.channel) || this.channel.closed) return
    const { amongAgents, name } = this.channel
    this.notice(
      `⏸ ${amongAgents} posts without a person: the channel rests. Post something, or: agentd channel resume ${name}`,
      true
    )
  }

  /** Changes a seat's state. False if the seat's state machine rejects the event. */
  move(agent: string, event: SeatMachine.Event): boolean {
    const before = this.seat(agent)
    if (before === undefined) return false
    const { data, state } = before.stand
    const result = step(SeatMachine.Seat, state, data, event)
    if (result._tag === "Refused") return false
    const floor = this.channel.floor?.agent === agent ? this.channel.floor : null
    this.append({
      kind: result.kind,
      actor: seatActor(this.channel.name, agent),
      from: state,
      to: result.state,
      trigger: event._tag,
      payload: result.payload
    })
    const ends = state === "ACTIVE" && result.state !== "ACTIVE"
    const cut = result.actions.some(({ _tag }) => _tag === "InterruptTurn") || (ends && event._tag === "AgentLeft")
    const late = ends ? (floor?.injected ?? []).map(({ messageId }) => messageId) : []
    // The turn that is ended may contain posts that a user made during it.
    if (cut && before.prompt !== null) this.recall(agent, [before.prompt, ...(floor?.sent ?? [])], reasonOf(event))
    else if (late.length > 0) this.recall(agent, late, null)
    for (const action of result.actions) this.follow(agent, action, event)
    return true
  }

  leaveAlone(agent: string): void {
    this.alone = agent
    this.acts.push({ _tag: "LeaveAlone", agent })
  }

  private recall(agent: string, messageIds: ReadonlyArray<string>, end: string | null): void {
    this.acts.push({ _tag: "Recall", agent, messageIds, end })
  }

  /** Adds the acts and notices for an action. ChannelState applies the action to the channel's state. */
  private follow(agent: string, action: SeatMachine.Action, event: SeatMachine.Event): void {
    const { announceDisconnects, announceTimeouts } = this.channel.settings.turnConfig
    if (action._tag === "NotifyAgent" || action._tag === "ResumeTurn") this.acts.push({ _tag: "Prompt", agent })
    else if (action._tag === "PostNotice") {
      // an agent that cannot start is tried repeatedly, but its timeout is announced only once
      const isSaid = this.alone === agent && this.channel.posts.at(-1)?.kind === "notice"
      this.notice(action.text, event._tag === "AgentLeft" ? announceDisconnects : announceTimeouts && !isSaid)
    }
  }

  /** Gives the floor to this agent, regardless of the queue's order. */
  give(agent: string): boolean {
    const { epoch, grants } = this.channel
    return this.move(agent, { _tag: "TurnGranted", turnId: `${epoch}.${grants + 1}`, at: this.view.now })
  }

  /** Handles a new post: wakes an agent that rests alone, and ends the waits for such a post. */
  news(from: string | null, by: "person" | "agent", messageId: string): void {
    for (const seated of seatsOf(this.channel)) {
      const { agent } = seated
      if (seated.stand.state === "IDLE" && seated.stand.data.member && hasUnread(this.channel, seated)) {
        this.move(agent, { _tag: "MessageArrived", messageId })
      }
    }
    for (const agent of this.channel.queue.paused) {
      const until = this.seat(agent)?.stand.data.wait?.until._tag
      if (agent !== from && (until === "Message" || (until === "Person" && by === "person"))) this.resolve(agent)
    }
  }

  /** Ends an agent's wait, because its condition is met. The agent continues at once if the floor is free. */
  resolve(agent: string): boolean {
    const seated = this.seat(agent)
    if (seated === undefined || seated.stand.data.wait?.resolved !== false) return false
    const free = this.channel.queue.current === null && this.isGiving && this.view.idle(agent)
    const turnId = seated.stand.data.turnId ?? ""
    return this.move(agent, { _tag: "WaitResolved", turnId, floorFree: free, at: this.view.now })
  }

  private get isGiving(): boolean {
    return this.view.open && !this.channel.paused && !this.channel.closed && !isResting(this.channel)
  }

  /** Gives the floor to the next idle agent with unread posts, if there is one. */
  advance(): void {
    if (!this.isGiving || this.channel.queue.current !== null) return
    const { settings } = this.channel
    const agent = TurnQueue.next(this.channel.queue, {
      order: settings.order,
      priority: (one) => settings.priorities[one] ?? 0,
      idle: this.view.idle,
      ready: (one) => {
        const seated = this.seat(one)
        if (seated?.stand.state !== "QUEUED" || one === this.alone) return false
        return this.view.idle(one) && hasUnread(this.channel, seated)
      }
    })
    if (agent !== null) this.give(agent)
  }
}

const reasonOf = (event: SeatMachine.Event): string => {
  switch (event._tag) {
    case "TurnTimedOut":
      return "its turn in the channel timed out"
    case "HumanOverride":
      return `${event.by} gave the floor away`
    case "Removed":
      return `${event.by} removed it from the channel`
    case "WaitTimedOut":
      return "it waited for too long"
    default:
      return "it has left the channel"
  }
}
