/** `agentd alert test`: a test mail down the path that real alerts take. */
import { Effect } from "effect"
import { call } from "../rpc/ControlClient.ts"
import { Invocation, print } from "./Invocation.ts"
import { plain } from "./Output.ts"

export const run = Effect.fnUntraced(function* () {
  const { paths } = yield* Invocation
  const reply = yield* call(paths.socket, (client) => client.AlertTest())
  yield* print(reply, () => [plain(reply.message)])
})
