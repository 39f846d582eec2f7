/** `agentd approve|deny REQUEST`: answers what a session asks leave for. */
import { Effect } from "effect"
import { call } from "../control/ControlClient.ts"
import { Invocation, print } from "./Invocation.ts"
import { plain } from "./Output.ts"

export const run = Effect.fnUntraced(function* (input: {
  readonly request: string
  readonly decision: "allow" | "deny"
  readonly reason: string | undefined
}) {
  const { caller, paths } = yield* Invocation
  const done = yield* call(paths.socket, (client) =>
    client.Answer({ name: input.request, decision: input.decision, reason: input.reason ?? "", caller })
  )
  yield* print(done, () => [plain(done.message)])
})
