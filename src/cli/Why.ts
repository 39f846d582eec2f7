/** `agentd why AGENT`: what led it to where it stands, in plain sentences. */
import { Clock, Effect } from "effect"
import { call } from "../rpc/ControlClient.ts"
import { Invocation, print } from "./Invocation.ts"
import { age, clock, paint, plain, stateColour } from "./Output.ts"

export const run = Effect.fnUntraced(function* (input: { readonly agent: string }) {
  const { caller, colour, paths } = yield* Invocation
  const reply = yield* call(paths.socket, (client) => client.Why({ name: input.agent, caller }))
  const now = yield* Clock.currentTimeMillis
  yield* print(reply, () => {
    const { advice, agent, lines } = reply
    const name = paint(colour, "bold", `${agent.project}/${agent.agent}`)
    const state = paint(colour, stateColour(agent.state), agent.state)
    const since = agent.since === 0 ? "" : ` for ${age(now - agent.since)}`
    return [
      `${name} is ${state}${since} (rune ${agent.restsOn}).`,
      ...(lines.length === 0 ? ["It has not moved yet."] : []),
      ...lines.map(({ at, eventId, text }) => {
        const restsOn = eventId === 0 ? "" : ` ${paint(colour, "dim", `(rune ${eventId})`)}`
        return `${paint(colour, "dim", clock(at, now))} ${plain(text)}${restsOn}`
      }),
      ...(advice === null ? [] : [plain(advice)])
    ]
  })
})
