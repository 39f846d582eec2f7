/** ChannelTable: formats channels, their seats and their posts. Pure. */
import type { ChannelInfo, ChannelPost, ChannelView, SeatInfo } from "../../domain/ChannelMessages.ts"
import { LOOKS } from "../../domain/StatusWords.ts"
import {
  age,
  type Cell,
  clock,
  type Colour,
  lookColour,
  paint,
  plain,
  plainLines,
  table,
  type TableOptions
} from "../render/Output.ts"

/** Number of posts that `agentd channel show` prints. */
const SHOWN = 20

const wordOf = ({ word }: Pick<SeatInfo, "word">): Cell => ({ text: word, colour: lookColour[LOOKS[word].colour] })

/** Remaining time of a state that ends by itself, as text such as `, for 42s more`; empty for other states. */
const ends = (until: number | null, now: number): string =>
  until === null ? "" : until > now ? `, for ${age(until - now)} more` : ", about to end"

const rowOf = (channel: ChannelInfo, now: number): ReadonlyArray<Cell> => {
  const floor = channel.seats.find(({ agent }) => agent === channel.floor)
  return [
    { text: `${channel.project}/${channel.name}`, colour: "bold" },
    wordOf(channel),
    { text: channel.floor ?? "-" },
    { text: channel.order },
    { text: String(channel.seats.length) },
    { text: String(channel.posts) },
    { text: plain(channel.detail) + (floor === undefined ? "" : ends(floor.until, now)) }
  ]
}

export const list = (channels: ReadonlyArray<ChannelInfo>, now: number, options: TableOptions): ReadonlyArray<string> =>
  channels.length === 0
    ? ["There are no channels. Create one: agentd channel new NAME AGENT…"]
    : table(
        ["CHANNEL", "STATE", "FLOOR", "ORDER", "SEATS", "POSTS", "DETAIL"],
        channels.map((channel) => rowOf(channel, now)),
        options
      )

export const seats = (channel: ChannelInfo, now: number, options: TableOptions): ReadonlyArray<string> =>
  table(
    ["#", "AGENT", "STATE", "SINCE", "UNREAD", "DETAIL"],
    channel.seats.map((seat) => [
      { text: seat.position === null ? "-" : String(seat.position) },
      { text: seat.agent, colour: "bold" },
      wordOf(seat),
      { text: seat.since === 0 ? "-" : age(now - seat.since) },
      { text: String(seat.unread), colour: seat.unread > 0 ? "cyan" : undefined },
      { text: plain(seat.detail) + ends(seat.until, now) }
    ]),
    options
  )

const speakers: { readonly [k in ChannelPost["kind"]]: Colour } = { person: "cyan", agent: "bold", notice: "yellow" }

/** A post as lines. Its control characters are removed, so that it cannot control the terminal. */
export const postLines = (
  post: ChannelPost,
  now: number
): ReadonlyArray<{ readonly text: string; readonly colour: Colour | undefined }> => {
  const at = clock(post.at, now)
  if (post.kind === "notice") return [{ text: `${at} ${plain(post.text)}`, colour: speakers.notice }]
  const lines = plainLines(post.text).map((line) => ({ text: `  ${line}`, colour: undefined }))
  return [{ text: `${at} ${plain(post.from)}`, colour: speakers[post.kind] }, ...lines]
}

export const headOf = ({ channel }: ChannelView, now: number, options: TableOptions): ReadonlyArray<string> => [
  paint(options.colour, "bold", `#${channel.name} of ${channel.project}: ${plain(channel.detail)}`),
  ...(channel.topic === "" ? [] : [plain(channel.topic)]),
  `Order of turns: ${channel.order}.`,
  "",
  ...(channel.seats.length === 0 ? ["No agent has a seat in this channel."] : seats(channel, now, options)),
  ""
]

export const saidIn = ({ posts }: ChannelView, now: number, options: TableOptions): ReadonlyArray<string> =>
  posts
    .slice(-SHOWN)
    .flatMap((post) => postLines(post, now))
    .map(({ colour, text }) => paint(options.colour, colour, text))
