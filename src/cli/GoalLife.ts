/** `agentd goal approve|reject|plan|cancel|retry GOAL`: what a person decides about a goal. */
import { Effect } from "effect"
import * as NodePath from "node:path"
import { call, type Client } from "../rpc/ControlClient.ts"
import type { Caller } from "../domain/Messages.ts"
import { Invocation, print } from "./Invocation.ts"
import { plain } from "./Output.ts"

export type Input = { readonly name: string } & (
  | { readonly action: "approve" }
  | { readonly action: "cancel" | "reject"; readonly reason: string | undefined }
  | { readonly action: "plan"; readonly file: string }
  | { readonly action: "retry"; readonly task: string | undefined }
)

const asked = (client: Client, input: Input, caller: Caller) => {
  const { name } = input
  switch (input.action) {
    case "approve":
      return client.GoalApprove({ name, caller })
    case "cancel":
      return client.GoalCancel({ name, caller, reason: input.reason ?? "" })
    case "reject":
      return client.GoalReject({ name, caller, reason: input.reason ?? "" })
    case "plan":
      return client.GoalPlan({ name, caller, path: NodePath.resolve(input.file) })
    case "retry":
      return client.GoalRetry({ name, caller, task: input.task ?? null })
  }
}

export const run = Effect.fnUntraced(function* (input: Input) {
  const { caller, paths } = yield* Invocation
  const done = yield* call(paths.socket, (client) => asked(client, input, caller))
  yield* print(done, () => [plain(done.message)])
})
