/** ChannelView: builds the view of a channel for users. Pure. */
import type { ChannelInfo, ChannelView, SeatInfo } from "../domain/ChannelMessages.ts"
import type { Member } from "../domain/AgentPort.ts"
import * as StatusWords from "../domain/StatusWords.ts"
import {
  type Channel,
  hasUnread,
  isFor,
  isResting,
  propertiesOf,
  type Seated,
  seatsOf,
  strandedIn
} from "./ChannelState.ts"
import type { View } from "./ChannelTransaction.ts"
import * as TurnQueue from "./TurnQueue.ts"

/** Returns when a seat's turn or wait ends by itself, ms since the epoch; null if there is no limit. */
type EndOf = (agent: string) => number | null

const unreadOf = (channel: Channel, seated: Seated): number =>
  channel.posts.filter((post) => post.seq > seated.told && isFor(post, seated.agent)).length

const untilWords = { Message: "until somebody says something", Person: "until a person says something", Time: "" }

const seatDetail = (channel: Channel, seated: Seated, view: View): string => {
  const { agent, stand } = seated
  switch (stand.state) {
    case "OFFLINE":
      return "not there"
    case "IDLE":
      return stand.data.member ? "rests until somebody says something" : `not assigned`
    case "ACTIVE":
      return channel.floor?.answeredAt === null
        ? view.busy(agent)
          ? "has the floor"
          : "is given the floor"
        : "has answered, and not said that its turn is over"
    case "WAITING": {
      const { wait } = stand.data
      if (wait?.resolved === true) return "goes on as soon as the floor is free"
      return `waits for ${wait?.reason ?? "news"} ${untilWords[wait?.until._tag ?? "Message"]}`.trim()
    }
    case "QUEUED":
      if (!hasUnread(channel, seated)) return "has read all"
      return view.idle(agent) || view.busy(agent) === false
        ? "is called when its turn comes"
        : "is at work on something else"
  }
}

const seatInfo = (channel: Channel, seated: Seated, view: View, endOf: EndOf): SeatInfo => ({
  agent: seated.agent,
  word: StatusWords.wordOf(StatusWords.seat, seated.stand.state, {
    hasRead: !hasUnread(channel, seated),
    forPerson: seated.stand.data.wait?.until._tag === "Person"
  }),
  state: seated.stand.state,
  since: seated.stand.at,
  restsOn: seated.stand.entered,
  position: propertiesOf(seated).inQueue === "no" ? null : TurnQueue.positionOf(channel.queue, seated.agent),
  unread: unreadOf(channel, seated),
  until: endOf(seated.agent),
  detail: seatDetail(channel, seated, view)
})

/** The reason why the channel waits for a user, with the remedy; null if it does not wait. */
const waitsOf = (channel: Channel, project: string): string | null => {
  const { closed, paused } = channel
  const name = `${project}/${channel.name}`
  if (closed || paused) return null
  if (isResting(channel)) {
    return `rests after ${channel.amongAgents} posts without a person: agentd channel post ${name} "…", or agentd channel resume ${name}`
  }
  const stranded = strandedIn(channel)
  return stranded === undefined
    ? null
    : `what was said waits, and no agent is in the turn queue: agentd channel assign ${name} ${stranded}`
}

const detail = (channel: Channel, project: string, seats: ReadonlyArray<SeatInfo>, view: View): string => {
  const { current, line } = channel.queue
  if (channel.closed) return "closed"
  if (current !== null) return `${current} has the floor${channel.paused ? "; paused after that" : ""}`
  if (channel.paused) return "paused: nobody gets the floor"
  if (!view.open) return "who is alive is being settled"
  const waits = waitsOf(channel, project)
  if (waits !== null) return waits
  if (seats.length === 0) return "nobody is assigned"
  if (channel.registered.length === 0) return "nobody is there; what is said is kept"
  if (channel.settings.order === "manual") return "waits for a person to give the floor"
  const waiting = line.filter((agent) => seats.some((seat) => seat.agent === agent && seat.unread > 0))
  return waiting.length === 0 ? "nobody has anything new to read" : `waits for ${waiting[0]} to be idle`
}

/** The channel as users see it. `needs`: why the agent with the floor waits for a user, and since when. */
export const info = (
  channel: Channel,
  project: string,
  view: View,
  endOf: EndOf,
  needs?: Member["needs"]
): ChannelInfo => {
  const { closed, paused } = channel
  const waits = waitsOf(channel, project)
  const floor = channel.queue.current
  const place = ({ position }: SeatInfo) => position ?? Number.MAX_SAFE_INTEGER
  const seats = seatsOf(channel)
    .map((seated) => seatInfo(channel, seated, view, endOf))
    .map((seat) =>
      needs === undefined || seat.agent !== floor
        ? seat
        : { ...seat, word: "needs you" as const, detail: needs.text, since: needs.since }
    )
    .toSorted((a, b) => place(a) - place(b) || a.agent.localeCompare(b.agent))
  const asking = seats.filter(({ word }) => word === "needs you").map((seat) => seat.since)
  const since = waits !== null ? channel.posts.at(-1)?.at : asking.length === 0 ? channel.pausedAt : Math.min(...asking)
  return {
    conversation: channel.conversation,
    project,
    name: channel.name,
    word: StatusWords.channelWord({ closed, paused, floor, waits, seats: seats.map(({ word }) => word) }),
    topic: channel.settings.topic ?? "",
    order: channel.settings.order,
    paused,
    closed,
    floor,
    seats,
    posts: channel.head,
    detail: needs === undefined ? detail(channel, project, seats, view) : `has the floor with ${needs.text}`,
    ...(since === undefined ? {} : { since }),
    waits,
    restsOn: channel.restsOn
  }
}

export const view = (channel: Channel, shown: ChannelInfo): ChannelView => ({
  channel: shown,
  turnConfig: channel.settings.turnConfig,
  posts: channel.posts.map(({ at, eventId, from, kind, seq, text }) => ({ seq, eventId, at, kind, from, text }))
})
