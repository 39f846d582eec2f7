/** OnChannels: what people ask of channels. */
import { Effect, Exit } from "effect"
import { ORDERS } from "../../../src/config/ChannelConfig.ts"
import { caller } from "../Daemon.ts"
import type { Order, Orders } from "./Order.ts"

/** Names of channels: one is in the project's file, the others are opened by people. */
const ROOMS = ["review", "review", "lobby"]
const roomOf = ({ people }: Order) => ({ name: people.pick(ROOMS), caller })

const some = ({ people, world }: Order) => world.names.filter(() => people.is(0.7))

/** Acknowledged by a rune: that one is durable. */
const acked =
  ({ world }: Order, what: string, text?: string) =>
  (exit: Exit.Exit<{ readonly eventId: number }, unknown>) => {
    if (Exit.isSuccess(exit)) world.checker.channels.acked(what, exit.value.eventId, text)
  }

export const onChannels = {
  channelNew: (order) => {
    const { client, people, run } = order
    const agents = some(order)
    run(
      client.NewChannel({ name: "lobby", agents, order: people.pick(ORDERS), topic: "", caller }),
      acked(order, "new")
    )
  },
  channelClose: (order) => order.run(order.client.CloseChannel({ name: "lobby", caller }), acked(order, "close")),
  channelPost: (order) => {
    const { client, run, world } = order
    const text = `[p${world.token()}] what do you say?`
    run(client.PostToChannel({ ...roomOf(order), text }), acked(order, "post", text))
  },
  channelAssign: (order) => {
    const { agent, client, run } = order
    run(client.AssignSeat({ ...roomOf(order), agent }), acked(order, "assign"))
  },
  channelRemove: (order) => {
    const { agent, client, run } = order
    run(client.RemoveSeat({ ...roomOf(order), agent }), acked(order, "remove"))
  },
  channelOrder: (order) => {
    const { client, people, run } = order
    const agents = people.is(0.5) ? some(order) : []
    run(client.OrderChannel({ ...roomOf(order), order: people.pick(ORDERS), agents }), acked(order, "order"))
  },
  channelGrant: (order) => {
    const { agent, client, run, world } = order
    const room = roomOf(order)
    world.checker.channels.granting(room.name, agent)
    run(client.GrantFloor({ ...room, agent }), acked(order, "grant"))
  },
  channelSkip: (order) => order.run(order.client.SkipFloor(roomOf(order)), acked(order, "skip")),
  channelRequeue: (order) => {
    const { agent, client, run } = order
    run(client.RequeueSeat({ ...roomOf(order), agent }), acked(order, "requeue"))
  },
  channelPause: (order) => {
    const { client, people, run } = order
    run(client.PauseChannel({ ...roomOf(order), paused: people.is(0.4) }), acked(order, "pause"))
  },
  channelShow: (order) => {
    const { client, run, world } = order
    run(client.Channel(roomOf(order)), (exit) => {
      if (Exit.isSuccess(exit)) world.checker.channels.shown(exit.value)
    })
  },
  /** After everybody: a channel that waits for a person goes on. */
  channelTend: ({ client, run }) =>
    run(
      Effect.flatMap(client.Channels(), (channels) =>
        Effect.forEach(channels, ({ name, order }) =>
          Effect.all([
            Effect.ignore(client.PauseChannel({ name, paused: false, caller })),
            order === "manual"
              ? Effect.ignore(client.OrderChannel({ name, order: "round-robin", agents: [], caller }))
              : Effect.void
          ])
        )
      )
    )
} satisfies Orders

export const CHANNEL_COMMANDS = Object.keys(onChannels) as ReadonlyArray<keyof typeof onChannels>
