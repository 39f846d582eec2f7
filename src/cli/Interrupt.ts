/** `agentd interrupt AGENT`: ends its turn, or its run where there are no turns. */
import { Effect } from "effect"
import { call } from "../rpc/ControlClient.ts"
import { Invocation, print } from "./Invocation.ts"
import { plain } from "./Output.ts"

export const run = Effect.fnUntraced(function* (input: { readonly agent: string }) {
  const { caller, paths } = yield* Invocation
  const done = yield* call(paths.socket, (client) => client.Interrupt({ name: input.agent, caller }))
  yield* print(done, () => [plain(done.message)])
})
