/** `agentd log --channel CHANNEL`: prints every state change of the seats in a channel, one per line. */
import { Console, Effect, Stream } from "effect"
import { call } from "../../api/rpc/ControlClient.ts"
import { seatKinds } from "../../channels/ChannelKinds.ts"
import { logLine } from "../../channels/SeatMachine.ts"
import { reader } from "../../core/event-log/EventKinds.ts"
import { Invocation } from "../parse/Invocation.ts"
import { json as jsonOf } from "../render/TerminalDoor.ts"

const readSeat = reader(seatKinds)

/** Number of the conversation's newest runes in which runes of the channel are searched for. */
const WINDOW = 10_000

export const run = Effect.fnUntraced(function* ({ lines, name }: { readonly name: string; readonly lines: number }) {
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
      Console.log(json ? jsonOf(move) : `${move.timestamp} ${move.agentId} ${move.from} → ${move.to}: ${move.trigger}`),
    { discard: true }
  )
})
