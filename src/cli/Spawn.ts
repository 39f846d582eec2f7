/** `agentd spawn PARENT NAME TASK`: a sub-agent of a running agent, with its first task. */
import { Effect } from "effect"
import { call } from "../rpc/ControlClient.ts"
import { Invocation, print } from "./Invocation.ts"
import { plain } from "./Output.ts"

export const run = Effect.fnUntraced(function* (input: {
  readonly parent: string
  readonly name: string
  readonly task: string
  readonly role: string | undefined
  readonly instructions: string | undefined
}) {
  const { caller, paths } = yield* Invocation
  const { instructions, name, parent, role, task } = input
  const request = {
    name,
    task,
    ...(role === undefined ? {} : { role }),
    ...(instructions === undefined ? {} : { instructions })
  }
  const done = yield* call(paths.socket, (client) => client.Spawn({ name: parent, request, caller }))
  yield* print(done, () => [plain(done.message)])
})
