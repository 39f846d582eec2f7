/**
 * ChannelState: the state of a channel: its seats, turn queue, newest posts, and floor. A pure fold of the channel's
 * runes and of its seats' state changes.
 *
 * Guarantees: the state is bounded. The ACTIVE seat is the queue's current one.
 */
import { type ChannelConfig, completed } from "../config/ChannelConfig.ts"
import type { ChannelPost, Signal } from "../domain/ChannelMessages.ts"
import type { RuneOf } from "../core/event-log/EventKinds.ts"
import type { Payload } from "../core/event-log/Rune.ts"
import { evolve, type Snapshot, step } from "../core/event-actor/StateMachine.ts"
import { channelKinds, readChannel } from "./ChannelKinds.ts"
import * as SeatMachine from "./SeatMachine.ts"
import * as TurnQueue from "./TurnQueue.ts"

/** Maximum number of posts in memory, and maximum total length of their text. All posts are in the log. */
const MAX_POSTS = 100
const MAX_CHARS = 128 * 1024

export interface Post extends ChannelPost {
  /** Id of the post. A post with the same id is not added again. */
  readonly messageId: string
}

export interface Seated {
  readonly agent: string
  readonly stand: Snapshot<SeatMachine.State, SeatMachine.Data>
  /** Sequence number of the newest post that the agent has been sent. */
  readonly told: number
  /** Sequence number of the newest post in the last turn that the agent finished. Later posts are sent to it again. */
  readonly spoke: number
  /** Id of the message with the prompt of the agent's newest turn. If the message is repeated, the id is the same. */
  readonly prompt: string | null
}

/** The turn of the ACTIVE agent. */
export interface Floor {
  readonly agent: string
  /** Posts that a user made during the turn and that the agent was sent, but that no turn is known to process yet. */
  readonly injected: ReadonlyArray<{ readonly messageId: string; readonly seq: number }>
  /** All messages that the agent was sent during the turn. Each can begin another turn, which has the same floor. */
  readonly sent: ReadonlyArray<string>
  /** Ids of the agent's turns whose answers have been handled. */
  readonly answered: ReadonlyArray<string>
  /** When the agent answered without a signal, ms since the epoch; null if it did not. */
  readonly answeredAt: number | null
  /** The signal that the agent gave through its tools. It counts when the turn ends. */
  readonly signal: Signal | null
}

export interface Channel {
  readonly conversation: string
  readonly name: string
  /** `eventId` of the rune that created the channel; 0 before that rune. */
  readonly epoch: number
  readonly origin: "config" | "person"
  readonly settings: ChannelConfig
  readonly paused: boolean
  /** When the channel was paused, ms since the epoch; undefined if it is not paused. */
  readonly pausedAt?: number | undefined
  readonly closed: boolean
  /** Agents that are assigned to the channel, whether online or not. */
  readonly assigned: ReadonlyArray<string>
  readonly registered: ReadonlyArray<string>
  readonly seats: { readonly [agent: string]: Seated }
  readonly queue: TurnQueue.TurnQueue
  readonly posts: ReadonlyArray<Post>
  /** Sequence number of the newest post. */
  readonly head: number
  /** Number of posts by agents since the last post of a user, and the last task or message from outside. */
  readonly amongAgents: number
  /** Number of turns granted so far. */
  readonly grants: number
  readonly floor: Floor | null
  /** `eventId` of the newest rune. */
  readonly restsOn: number
}

/** The part of a rune that the channel's fold reads. */
export interface Recorded {
  readonly eventId: number
  readonly seq: number
  readonly at: number
  readonly kind: string
  readonly payload: Payload
}

export type Kind = keyof typeof channelKinds
export const kinds = Object.keys(channelKinds) as ReadonlyArray<Kind>

type ChannelRune = RuneOf<typeof channelKinds, Recorded>
type RuneOfKind<K extends Kind> = Extract<ChannelRune, { readonly kind: K }>

export const channelActor = (name: string): string => `channel/${name}`
export const seatActor = (name: string, agent: string): string => `seat/${name}/${agent}`
export const isSeatOf = (name: string, actor: string): boolean => actor.startsWith(`seat/${name}/`)

/** The state of a channel before its first rune. */
export const unborn = (conversation: string, name: string, settings: ChannelConfig): Channel => ({
  conversation,
  name,
  epoch: 0,
  origin: "person",
  settings,
  paused: false,
  closed: false,
  assigned: [],
  registered: [],
  seats: {},
  queue: TurnQueue.empty,
  posts: [],
  head: 0,
  amongAgents: 0,
  grants: 0,
  floor: null,
  restsOn: 0
})

export const seatOf = (channel: Channel, agent: string): Seated | undefined =>
  Object.hasOwn(channel.seats, agent) ? channel.seats[agent] : undefined

export const seatsOf = (channel: Channel): ReadonlyArray<Seated> => Object.values(channel.seats)

export const holder = (channel: Channel): Seated | undefined =>
  channel.queue.current === null ? undefined : seatOf(channel, channel.queue.current)

/** True if agents have made the maximum number of posts among themselves. Only a user can then restart the channel. */
export const isResting = ({ amongAgents, settings }: Channel): boolean =>
  amongAgents >= settings.turnConfig.restAfterPosts

/** An agent with unread posts in a channel whose queue is empty. Only a user can restart such a channel. */
export const strandedIn = (channel: Channel): string | undefined =>
  channel.queue.line.length === 0
    ? seatsOf(channel).find((seated) => seated.stand.state === "IDLE" && hasUnread(channel, seated))?.agent
    : undefined

export const propertiesOf = ({ stand }: Seated) => SeatMachine.properties[stand.state]

/** True for a user's message or a task; false for a message from a channel. */
export const isFromOutside = (messageId: string): boolean => !/^(?:channel|note):/.test(messageId)

/** True for every message that this channel sends to agents. */
export const isOfChannel = (name: string, messageId: string): boolean => messageId.startsWith(`channel:${name}:`)

/** True for the prompt of a turn, and for the messages that were sent during the turn. */
export const isOfTurn = (prompt: string, messageId: string): boolean =>
  messageId === prompt || messageId.startsWith(`${prompt}/`)

/** Sequence number of the post in a message. The message's id ends with this number. */
export const seqOf = (injected: string): number => Number(injected.slice(injected.lastIndexOf("/") + 1))

/** Whether others have made posts that the agent was not sent. Notices of the channel do not count. */
export const hasUnread = (channel: Channel, { agent, told }: Seated): boolean => {
  for (let index = channel.posts.length - 1; index >= 0; index--) {
    const post = channel.posts[index]!
    if (post.seq <= told) return false
    if (isFor(post, agent)) return true
  }
  // Posts that are no longer in memory count as unread.
  return (channel.posts[0]?.seq ?? 0) > told + 1
}

/** True for posts that are news to the agent: not for notices, and not for the agent's own posts. */
export const isFor = (post: Post, agent: string): boolean =>
  post.kind !== "notice" && !(post.kind === "agent" && post.from === agent)

export const limitsOf = (settings: ChannelConfig, agent: string): SeatMachine.Limits => ({
  turnTimeout: 1000 * (settings.timeouts[agent] ?? settings.turnConfig.defaultTimeoutSeconds),
  waitTimeout: 1000 * settings.turnConfig.waitTimeoutSeconds
})

const withMember = (agents: ReadonlyArray<string>, agent: string): ReadonlyArray<string> =>
  agents.includes(agent) ? agents : [...agents, agent]

const without = (agents: ReadonlyArray<string>, agent: string): ReadonlyArray<string> =>
  agents.includes(agent) ? agents.filter((other) => other !== agent) : agents

const withSeat = (channel: Channel, seated: Seated): Channel => ({
  ...channel,
  seats: { ...channel.seats, [seated.agent]: seated }
})

const withPost = (
  channel: Channel,
  rune: Pick<Recorded, "at" | "eventId">,
  post: Pick<Post, "kind" | "from" | "text" | "messageId">
): Channel => {
  const head = channel.head + 1
  const posts = [...channel.posts, { ...post, seq: head, eventId: rune.eventId, at: rune.at }]
  let chars = posts.reduce((sum, { text }) => sum + text.length, 0)
  while (posts.length > MAX_POSTS || (posts.length > 1 && chars > MAX_CHARS)) chars -= posts.shift()!.text.length
  return { ...channel, posts, head }
}

const withFloor = (channel: Channel, change: (floor: Floor) => Partial<Floor>): Channel =>
  channel.floor === null ? channel : { ...channel, floor: { ...channel.floor, ...change(channel.floor) } }

/** Maximum number of posts that are added to one turn. Further posts are sent with the next turn. */
export const MAX_INJECTED = 64
const MAX_ANSWERED = 64

const assign = (channel: Channel, agent: string): Channel => {
  const assigned = { ...channel, assigned: withMember(channel.assigned, agent) }
  if (seatOf(channel, agent) !== undefined) return assigned
  const data = SeatMachine.initial(agent, channel.name, limitsOf(channel.settings, agent))
  const stand = { state: SeatMachine.Seat.initial, data, entered: 0, seq: 0, at: 0 }
  return withSeat(assigned, { agent, stand, told: 0, spoke: 0, prompt: null })
}

const configure = (channel: Channel, settings: ChannelConfig): Channel => ({
  ...channel,
  settings,
  seats: Object.fromEntries(
    seatsOf(channel).map((seated) => {
      const data = { ...seated.stand.data, limits: limitsOf(settings, seated.agent) }
      return [seated.agent, { ...seated, stand: { ...seated.stand, data } }]
    })
  )
})

const posted = (channel: Channel, rune: RuneOfKind<"channel.posted">): Channel => {
  const { by: kind, from, injected, messageId, text, turnId } = rune.payload
  const amongAgents = kind === "agent" ? channel.amongAgents + 1 : 0
  const next = withPost({ ...channel, amongAgents }, rune, { kind, from, messageId, text })
  return withFloor(next, (floor) => ({
    injected:
      typeof injected === "string" ? [...floor.injected, { messageId: injected, seq: next.head }] : floor.injected,
    sent: typeof injected === "string" ? [...floor.sent, injected] : floor.sent,
    answered: typeof turnId === "string" ? [...floor.answered, turnId].slice(-MAX_ANSWERED) : floor.answered
  }))
}

const read = (channel: Channel, { again, agent, upTo }: RuneOfKind<"channel.read">["payload"]): Channel => {
  const seated = seatOf(channel, agent)
  if (seated === undefined) return channel
  if (again !== undefined) {
    const back = withSeat(channel, { ...seated, told: upTo })
    return withFloor(back, (floor) => ({ injected: [...again, ...floor.injected] }))
  }
  const next = withSeat(channel, { ...seated, told: Math.max(seated.told, upTo) })
  return withFloor(next, (floor) => ({ injected: floor.injected.filter(({ seq }) => seq > upTo) }))
}

const follow = (channel: Channel, agent: string, action: SeatMachine.Action): Channel => {
  const { assigned, queue, registered } = channel
  switch (action._tag) {
    case "RegisterSeat":
      return { ...channel, registered: withMember(registered, agent) }
    case "DeregisterSeat": {
      const isKept = action.how === "stopped" || channel.settings.rejoin
      return {
        ...channel,
        registered: without(registered, agent),
        assigned: isKept ? assigned : without(assigned, agent)
      }
    }
    case "JoinQueue":
      return { ...channel, queue: TurnQueue.join(queue, agent) }
    case "LeaveQueue":
      return { ...channel, queue: TurnQueue.leave(queue, agent) }
    case "NotifyAgent":
    case "ResumeTurn":
      return { ...channel, queue: TurnQueue.grant(queue, agent) }
    case "AdvanceQueue":
      return { ...channel, queue: TurnQueue.rotate(queue, agent) }
    case "PauseTurn":
      return { ...channel, queue: TurnQueue.pause(queue, agent) }
    case "ClaimFloor":
      return { ...channel, queue: TurnQueue.claim(queue, agent) }
    // ChannelTransaction, not this fold, handles notices and messages to the agent
    case "InterruptTurn":
    case "PostNotice":
      return channel
  }
}

const marked = (
  channel: Channel,
  seated: Seated,
  from: SeatMachine.State,
  event: SeatMachine.Event
): Partial<Seated> => {
  const { spoke, stand, told } = seated
  if (stand.state === "ACTIVE" && from !== "ACTIVE") {
    return { told: channel.head, prompt: `channel:${channel.name}:${stand.entered}` }
  }
  const answered = from === "ACTIVE" && (channel.floor?.answered.length ?? 0) > 0
  if (answered || event._tag === "TURN_COMPLETE" || event._tag === "WaitRequested") return { spoke: told }
  // the agent has not read these posts: they are sent again when it is back
  const untold = (event._tag === "TurnFailed" || event._tag === "TurnTimedOut") && event.untold === true
  return untold || event._tag === "AgentLeft" || event._tag === "Removed" ? { told: spoke } : {}
}

const moved = (channel: Channel, rune: RuneOfKind<"seat.moved">): Channel => {
  const { agentId, event } = rune.payload
  const before = seatOf(channel, agentId)
  if (before === undefined) throw new Error(`rune ${rune.eventId} moves a seat that ${channel.name} does not have`)
  const { data, state: from } = before.stand
  const after = { ...before, stand: evolve(SeatMachine.Seat, before.stand, rune) }
  const to = after.stand.state
  const stepped = step(SeatMachine.Seat, from, data, event)
  let next = withSeat(channel, { ...after, ...marked(channel, after, from, event) })
  if (stepped._tag === "Moved") for (const action of stepped.actions) next = follow(next, before.agent, action)
  const begins = to === "ACTIVE" && from !== "ACTIVE"
  const ends = from === "ACTIVE" && to !== "ACTIVE"
  return {
    ...next,
    grants: channel.grants + (event._tag === "TurnGranted" ? 1 : 0),
    floor: begins
      ? { agent: before.agent, injected: [], sent: [], answered: [], answeredAt: null, signal: null }
      : ends
        ? null
        : channel.floor
  }
}

const changed = (channel: Channel, rune: ChannelRune): Channel => {
  switch (rune.kind) {
    case "channel.created": {
      const { origin, settings } = rune.payload
      return {
        ...unborn(channel.conversation, channel.name, completed(settings)),
        epoch: rune.eventId,
        origin
      }
    }
    case "channel.configured":
      return configure(channel, completed(rune.payload.settings))
    case "channel.assigned":
      return assign(channel, rune.payload.agent)
    case "channel.unassigned":
      return { ...channel, assigned: without(channel.assigned, rune.payload.agent) }
    case "channel.posted":
      return posted(channel, rune)
    case "channel.notice":
      return withPost(channel, rune, { kind: "notice", from: "", messageId: "", text: rune.payload.text })
    case "channel.unsignalled":
      return withFloor(channel, (floor) => ({
        answeredAt: rune.at,
        answered: [...floor.answered, rune.payload.turnId].slice(-MAX_ANSWERED)
      }))
    case "channel.signalled":
      return withFloor(channel, () => ({ signal: rune.payload.signal }))
    case "channel.read":
      return read(channel, rune.payload)
    case "channel.ordered":
      return {
        ...configure(channel, { ...channel.settings, order: rune.payload.order }),
        queue: TurnQueue.arrange(channel.queue, rune.payload.agents)
      }
    case "channel.paused":
      return { ...channel, paused: true, pausedAt: rune.at }
    case "channel.resumed":
      return { ...channel, paused: false, pausedAt: undefined, amongAgents: 0 }
    case "channel.stirred":
      return { ...channel, amongAgents: 0 }
    case "channel.closed":
      return { ...channel, closed: true }
    case "channel.withheld":
      return channel
    case "seat.moved":
      return moved(channel, rune)
  }
}

/** Throws if the state change does not fit the machine's table, because the log is then damaged. */
export const apply = (channel: Channel, rune: Recorded): Channel => {
  const known = readChannel(rune)
  return known === undefined ? channel : { ...changed(channel, known), restsOn: rune.eventId }
}

export interface Deadline {
  /** Agent and kind of the time limit, separated by a space. Names contain no space. */
  readonly key: string
  /** Time from which the limit counts, ms since the epoch. */
  readonly since: number
  /** Length of the time limit, in ms. */
  readonly after: number
}
