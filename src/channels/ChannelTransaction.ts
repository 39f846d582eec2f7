/**
 * ChannelTransaction: one thing that happens in a channel, worked out: the runes that record
 * it, in the order in which they are appended together, and what is to be done
 * once they are durable. Pure: it acts on nothing and reads no clock.
 *
 * Guarantees: a move that the seat's machine refuses leaves no rune; after it the
 * floor is with somebody, or there is nobody for it.
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

/** The present knowledge of the agents: volatile, and true of the moment. */
export interface View {
  /** ms since the epoch */
  readonly now: number
  /** True once it is settled who is alive: the floor may be given. */
  readonly open: boolean
  readonly online: (agent: string) => boolean
  /** A turn of its own is under way, whatever it is about. */
  readonly busy: (agent: string) => boolean
  /** True where the agent's turn under way is of the floor that was given with that prompt. */
  readonly carries: (agent: string, prompt: string) => boolean
  /** True where the agent could take a turn here at once: online, not busy, and without the floor of another channel. */
  readonly idle: (agent: string) => boolean
  /** The agent's last sign of life, ms since the epoch; 0 when there was none. */
  readonly aliveAt: (agent: string) => number
  /** True where the agent can only be led on by a person. */
  readonly waits?: (agent: string) => boolean
  /** Whether its time has passed, whatever the wall clock was set to meanwhile. */
  readonly isOver: (deadline: Deadline) => boolean
}

/** Acts that follow once the runes are durable, in order. */
export type Act =
  /** The floor is its: tell it what is new, under the id that the turn has. */
  | { readonly _tag: "Prompt"; readonly agent: string }
  /** Put the post into its turn. */
  | {
      readonly _tag: "Steer"
      readonly agent: string
      readonly messageId: string
      readonly from: string
      readonly text: string
      /** True with the floor; false: the message only informs. */
      readonly floor: boolean
    }
  /** Take the messages back; where a turn carries them already and `end` is given, that turn is ended for this reason. */
  | {
      readonly _tag: "Recall"
      readonly agent: string
      readonly messageIds: ReadonlyArray<string>
      readonly end: string | null
      /** The turn that is over once all of them are back. */
      readonly finish?: string | null
    }
  /** Gives the agent no floor for a while. */
  | { readonly _tag: "LeaveAlone"; readonly agent: string }
  | { readonly _tag: "Warn"; readonly agent: string; readonly text: string }

export interface First {
  readonly eventId: number
  readonly seq: number
}

const CUT = "\n… (cut: the whole is in the agent's own log)"

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
  /** The agent that gets no floor now. */
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

  /** A fact about the channel itself. */
  record(kind: Kind, payload: Payload, trigger: string): void {
    this.append({ kind, actor: channelActor(this.channel.name), trigger, payload })
  }

  notice(text: string, isWanted: boolean): void {
    if (isWanted) this.record("channel.notice", { text }, "notice")
  }

  /** Agents that talk among themselves are bounded: it is said when the channel comes to rest. */
  settleRest(before: Channel): void {
    if (isResting(before) || !isResting(this.channel) || this.channel.closed) return
    const { amongAgents, name } = this.channel
    this.notice(
      `⏸ ${amongAgents} posts without a person: the channel rests. Post something, or: agentd channel resume ${name}`,
      true
    )
  }

  /** Moves a seat by an event; false where its machine refuses it. */
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
    // A turn that is cut may be one that carries what a person said meanwhile.
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

  /** Carries out what an action of a move says, or has the agent told; ChannelState folds its changes of the channel. */
  private follow(agent: string, action: SeatMachine.Action, event: SeatMachine.Event): void {
    const { announceDisconnects, announceTimeouts } = this.channel.settings.turnConfig
    if (action._tag === "NotifyAgent" || action._tag === "ResumeTurn") this.acts.push({ _tag: "Prompt", agent })
    else if (action._tag === "PostNotice") {
      // one that cannot start is called again and again
      const isSaid = this.alone === agent && this.channel.posts.at(-1)?.kind === "notice"
      this.notice(action.text, event._tag === "AgentLeft" ? announceDisconnects : announceTimeouts && !isSaid)
    }
  }

  /** To that one, whoever is next. */
  give(agent: string): boolean {
    const { epoch, grants } = this.channel
    return this.move(agent, { _tag: "TurnGranted", turnId: `${epoch}.${grants + 1}`, at: this.view.now })
  }

  /** Something was said: who rests alone wakes, whose wait was for it goes on. */
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

  /** Ends an agent's wait whose condition is met: it goes on at once where nobody has the floor. */
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

  /** The floor goes to the next, where there is one that is idle and has something to read. */
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
