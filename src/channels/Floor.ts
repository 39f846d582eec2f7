/**
 * Floor: builds the prompt for an agent that gets the floor: it contains the new posts since the agent's last turn, the
 * other agents, and instructions for the answer. Pure.
 *
 * Guarantees: the prompt is bounded; it includes the newest posts, and says how many are left out. The text of posts is
 * quoted (MessageFrame), so that it cannot be taken for the channel's own text.
 */
import * as MessageFrame from "../domain/MessageFrame.ts"
import { type Channel, type Post, type Seated, seatsOf } from "./ChannelState.ts"

/** Maximum length of all quoted posts together, and of one post, in characters. */
const MAX_QUOTED = 32 * 1024
const MAX_POST = 8 * 1024
const MAX_POSTS = 50
const MAX_NAMES = 50

const quote = (text: string): string =>
  MessageFrame.quoted(text.length <= MAX_POST ? text : `${text.slice(0, MAX_POST)}\n… (cut)`)

const clock = (at: number): string => new Date(at).toISOString().slice(11, 16)

/**
 * The author of a post that was made by a command. An agent can use the command, too: its name then contains a colon.
 */
const person = (from: string): string =>
  from.includes(":") ? MessageFrame.line(from) : `${MessageFrame.line(from)} (a person)`

const entry = (post: Post): string =>
  post.kind === "notice"
    ? `(${MessageFrame.line(post.text)})`
    : `${post.kind === "person" ? person(post.from) : MessageFrame.line(post.from)}, ${clock(post.at)} UTC:\n${quote(post.text)}`

/** The newest posts that fit into the prompt, oldest first. */
const fitting = (posts: ReadonlyArray<Post>): ReadonlyArray<string> => {
  const kept: Array<string> = []
  let size = 0
  for (const post of posts.toReversed()) {
    const text = entry(post)
    size += text.length
    if (kept.length >= MAX_POSTS || (kept.length > 0 && size > MAX_QUOTED)) break
    kept.push(text)
  }
  return kept.toReversed()
}

const words = { OFFLINE: "offline", IDLE: "resting", QUEUED: "listening", ACTIVE: "has the floor", WAITING: "waiting" }

const others = (channel: Channel, agent: string): string => {
  const seats = seatsOf(channel).filter((seated) => seated.agent !== agent)
  if (seats.length === 0) return "You are the only agent here."
  const named = seats
    .toSorted((a, b) => a.agent.localeCompare(b.agent))
    .slice(0, MAX_NAMES)
    .map((seated) => `${seated.agent} (${words[seated.stand.state]})`)
  const more = seats.length - named.length
  return `Also here: ${named.join(", ")}${more > 0 ? ` and ${more} more` : ""}.`
}

const PROTOCOL = `How to answer:
- What you answer is posted in the channel when your turn ends. Nobody else speaks until then.
- End your answer with this line, alone: it gives the floor to the next.
TURN_COMPLETE
- If you have nothing to add, answer with that line only: then nothing is posted.
- To go on later, end with a line such as one of these instead; the others speak meanwhile.
WAIT: for <what>, until message
WAIT: for <what>, until person
WAIT: for <what>, until 120s`

/**
 * The unread posts of others for the prompt: those after the agent's last turn, up to the newest post when the turn
 * began.
 */
const news = (channel: Channel, { agent, spoke, told }: Seated): ReadonlyArray<Post> =>
  channel.posts.filter(
    (post) => post.seq > spoke && post.seq <= told && !(post.kind === "agent" && post.from === agent)
  )

export const prompt = (channel: Channel, seated: Seated): string => {
  const fresh = news(channel, seated)
  const shown = fitting(fresh)
  const left = Math.max(0, (channel.posts[0]?.seq ?? 1) - 1 - seated.spoke) + fresh.length - shown.length
  const { topic } = channel.settings
  return [
    `You have the floor in the channel #${channel.name}.`,
    ...(topic === undefined || topic === "" ? [] : [`It is about: ${topic}`]),
    others(channel, seated.agent),
    "",
    ...(shown.length === 0
      ? ["Nothing new has been said since you last spoke."]
      : [`New since you last spoke${left > 0 ? ` (${left} earlier ones are left out)` : ""}:`, "", ...shown]),
    "",
    PROTOCOL
  ].join("\n")
}

/** Tells an agent about a user's post. An agent without the floor gets this message with its next turn. */
export const aside = (channel: string, from: string, text: string, hasFloor: boolean): string =>
  [
    hasFloor
      ? `In the channel #${channel}, where you have the floor, ${person(from)} writes:`
      : `In the channel #${channel} ${person(from)} writes. You do not have the floor there: go on with your work; you are asked later.`,
    quote(text)
  ].join("\n")
