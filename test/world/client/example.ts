/** The README's example. */
import { Effect, Option, Stream } from "effect"
import * as Client from "../../../src/client/Client.ts"
import { CommandRefused, connect } from "../../../src/client/Promises.ts"

/** With Effect: one connection for all of it. */
export const worked = (state: string) =>
  Client.use({ state })((client) =>
    Effect.gen(function* () {
      const caller = Client.caller("dashboard")
      const sent = yield* client.Send({ name: "shop/builder", text: "Make the tests pass.", how: "queue", caller })
      // the log from there on: what there is, and then what comes
      const runes = client.Log({ follow: true, after: sent.eventId, kinds: ["turn.completed", "turn.error"], caller })
      return Option.map(yield* Stream.runHead(runes), ({ actor, kind }) => `${actor}: ${kind}`)
    })
  )

/** With promises: nothing to close. */
export const said = async (state: string): Promise<ReadonlyArray<string>> => {
  const agentd = connect({ state, by: "dashboard" })
  const lines = (await agentd.call("Agents")).map(({ agent, project }) => `${project}/${agent}`)
  for await (const { kind } of agentd.stream("Log", { follow: true, after: 0 })) {
    lines.push(kind)
    break
  }
  try {
    await agentd.call("Send", { name: "shop/nobody", text: "Are you there?", how: "queue" })
  } catch (error) {
    if (error instanceof CommandRefused) lines.push(`${error.message} → ${error.remedy}`)
  }
  return lines
}
