/** `agentd channel …`: what is done to channels, and how they look. */
import { Clock, Console, Effect, Stream } from "effect"
import { call } from "../rpc/ControlClient.ts"
import type { Order } from "../config/ChannelConfig.ts"
import type { ChannelInfo, ChannelPost, ChannelView, SeatInfo } from "../domain/ChannelMessages.ts"
import { seatKinds } from "../channels/ChannelKinds.ts"
import { logLine } from "../channels/SeatMachine.ts"
import { reader } from "../event-log/EventKinds.ts"
import { Invocation, print } from "./Invocation.ts"
import { age, type Cell, clock, type Colour, paint, plain, plainLines, table, type TableOptions } from "./Output.ts"
import { textOf } from "./Send.ts"

export type Input =
  | { readonly action: "ls" }
  | {
      readonly action: "new"
      readonly name: string
      readonly agents: ReadonlyArray<string>
      readonly order: Order
      readonly topic: string | undefined
    }
  | { readonly action: "show"; readonly name: string }
  | { readonly action: "log"; readonly name: string; readonly lines: number }
  | { readonly action: "close" | "skip"; readonly name: string }
  | { readonly action: "assign" | "remove" | "grant" | "requeue"; readonly name: string; readonly agent: string }
  | { readonly action: "post"; readonly name: string; readonly text: string | undefined }
  | { readonly action: "order"; readonly name: string; readonly order: Order; readonly agents: ReadonlyArray<string> }
  | { readonly action: "pause"; readonly name: string; readonly paused: boolean }

/** Of what was said, with `show`. */
const SHOWN = 20

const colours: { readonly [s in SeatInfo["state"]]: Colour | undefined } = {
  OFFLINE: "red",
  IDLE: "dim",
  QUEUED: undefined,
  ACTIVE: "green",
  WAITING: "yellow"
}

/** `for 42s more`, where it ends by itself. */
const ends = (until: number | null, now: number): string =>
  until === null ? "" : until > now ? `, for ${age(until - now)} more` : ", until any moment"

const rowOf = (channel: ChannelInfo, now: number): ReadonlyArray<Cell> => {
  const floor = channel.seats.find(({ agent }) => agent === channel.floor)
  return [
    { text: `${channel.project}/${channel.name}`, colour: "bold" },
    { text: channel.floor ?? "-", colour: "green" },
    { text: channel.order },
    { text: String(channel.seats.length) },
    { text: String(channel.posts) },
    { text: plain(channel.detail) + (floor === undefined ? "" : ends(floor.until, now)) }
  ]
}

export const list = (channels: ReadonlyArray<ChannelInfo>, now: number, options: TableOptions): ReadonlyArray<string> =>
  channels.length === 0
    ? ["There are no channels. Make one: agentd channel new NAME AGENT…"]
    : table(
        ["CHANNEL", "FLOOR", "ORDER", "SEATS", "POSTS", "DETAIL"],
        channels.map((channel) => rowOf(channel, now)),
        options
      )

export const seats = (channel: ChannelInfo, now: number, options: TableOptions): ReadonlyArray<string> =>
  table(
    ["#", "AGENT", "STATE", "SINCE", "UNREAD", "DETAIL"],
    channel.seats.map((seat) => [
      { text: seat.position === null ? "-" : String(seat.position) },
      { text: seat.agent, colour: "bold" },
      { text: seat.state, colour: colours[seat.state] },
      { text: seat.since === 0 ? "-" : age(now - seat.since) },
      { text: String(seat.unread), colour: seat.unread > 0 ? "cyan" : undefined },
      { text: plain(seat.detail) + ends(seat.until, now) }
    ]),
    options
  )

const speakers: { readonly [k in ChannelPost["kind"]]: Colour } = { person: "cyan", agent: "bold", notice: "yellow" }

/** A post as lines: nothing in it speaks to the terminal. */
export const postLines = (
  post: ChannelPost,
  now: number
): ReadonlyArray<{ readonly text: string; readonly colour: Colour | undefined }> => {
  const at = clock(post.at, now)
  if (post.kind === "notice") return [{ text: `${at} ${plain(post.text)}`, colour: speakers.notice }]
  const lines = plainLines(post.text).map((line) => ({ text: `  ${line}`, colour: undefined }))
  return [{ text: `${at} ${plain(post.from)}`, colour: speakers[post.kind] }, ...lines]
}

const headOf = ({ channel }: ChannelView, now: number, options: TableOptions): ReadonlyArray<string> => [
  paint(options.colour, "bold", `#${channel.name} of ${channel.project}: ${plain(channel.detail)}`),
  ...(channel.topic === "" ? [] : [plain(channel.topic)]),
  `The floor goes by ${channel.order}.`,
  "",
  ...(channel.seats.length === 0 ? ["Nobody sits in it."] : seats(channel, now, options)),
  ""
]

/** What was said last, word for word. */
const saidIn = ({ posts }: ChannelView, now: number, options: TableOptions): ReadonlyArray<string> =>
  posts
    .slice(-SHOWN)
    .flatMap((post) => postLines(post, now))
    .map(({ colour, text }) => paint(options.colour, colour, text))

const doing = Effect.fnUntraced(function* (input: Exclude<Input, { action: "ls" | "show" | "log" }>) {
  const { caller, paths } = yield* Invocation
  const { name } = input
  const text = input.action === "post" ? yield* textOf(input.text) : ""
  return yield* call(paths.socket, (client) => {
    switch (input.action) {
      case "new":
        return client.NewChannel({ name, agents: input.agents, order: input.order, topic: input.topic ?? "", caller })
      case "close":
        return client.CloseChannel({ name, caller })
      case "assign":
        return client.AssignSeat({ name, agent: input.agent, caller })
      case "remove":
        return client.RemoveSeat({ name, agent: input.agent, caller })
      case "post":
        return client.PostToChannel({ name, text, caller })
      case "order":
        return client.OrderChannel({ name, order: input.order, agents: input.agents, caller })
      case "grant":
        return client.GrantFloor({ name, agent: input.agent, caller })
      case "skip":
        return client.SkipFloor({ name, caller })
      case "requeue":
        return client.RequeueSeat({ name, agent: input.agent, caller })
      case "pause":
        return client.PauseChannel({ name, paused: input.paused, caller })
    }
  })
})

const readSeat = reader(seatKinds)

/** Runes of a conversation that are looked through for those of one channel. */
const WINDOW = 10_000

const moves = Effect.fnUntraced(function* ({ lines, name }: Extract<Input, { action: "log" }>) {
  const { caller, json, paths } = yield* Invocation
  const runes = yield* call(paths.socket, (client) =>
    Effect.gen(function* () {
      const { channel } = yield* client.Channel({ name, caller })
      const selection = { stream: channel.conversation, kinds: ["seat.moved"], tail: WINDOW, follow: false, caller }
      const all = yield* Stream.runCollect(client.Log(selection))
      return all.flatMap((rune) => readSeat(rune) ?? []).filter(({ payload }) => payload.channel === channel.name)
    })
  )
  const told = (lines === 0 ? [] : runes.slice(-lines)).map((rune) => logLine(rune.payload, rune))
  yield* Effect.forEach(
    told,
    (move) =>
      Console.log(
        json ? JSON.stringify(move) : `${move.timestamp} ${move.agentId} ${move.from} → ${move.to}: ${move.trigger}`
      ),
    { discard: true }
  )
})

export const run = Effect.fnUntraced(function* (input: Input) {
  const { caller, colour, columns, json, paths } = yield* Invocation
  const now = yield* Clock.currentTimeMillis
  const options = { colour, columns }
  if (input.action === "ls") {
    const channels = yield* call(paths.socket, (client) => client.Channels())
    return yield* print(channels, () => list(channels, now, options))
  }
  if (input.action === "log") return yield* moves(input)
  if (input.action === "show") {
    const view = yield* call(paths.socket, (client) => client.Channel({ name: input.name, caller }))
    yield* print(view, () => headOf(view, now, options))
    return json
      ? undefined
      : yield* Effect.forEach(saidIn(view, now, options), (line) => Console.log(line), { discard: true })
  }
  const done = yield* doing(input)
  yield* print(done, () => [plain(done.message)])
})
