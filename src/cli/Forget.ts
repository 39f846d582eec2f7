/** `agentd forget PLATE`: takes a session off the board. */
import { Effect } from "effect"
import { call } from "../rpc/ControlClient.ts"
import { Invocation, print } from "./Invocation.ts"
import { plain } from "./Output.ts"

export const run = Effect.fnUntraced(function* (input: { readonly plate: string }) {
  const { caller, paths } = yield* Invocation
  const done = yield* call(paths.socket, (client) => client.ForgetPlate({ name: input.plate, caller }))
  yield* print(done, () => [plain(done.message)])
})
