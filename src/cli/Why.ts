/** `agentd why AGENT`: what led it to where it stands, in plain sentences. */
import { Clock, Effect } from "effect"
import { call } from "../control/ControlClient.ts"
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
      ...lines.map((line) => `${paint(colour, "dim", clock(line.at, now))} ${plain(line.text)}`),
      ...(advice === null ? [] : [plain(advice)])
    ]
  })
})
