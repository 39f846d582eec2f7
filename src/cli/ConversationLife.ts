/** `agentd close|archive [CONVERSATION]`: what ends a conversation for good, after a person has been asked. */
import { Effect } from "effect"
import { call } from "../rpc/ControlClient.ts"
import type { ConversationInfo } from "../domain/Messages.ts"
import { confirm } from "./Confirm.ts"
import { Invocation, print } from "./Invocation.ts"
import { plain } from "./Output.ts"

export type Input = { readonly name: string } & (
  | { readonly action: "close"; readonly force: boolean; readonly reason: string | undefined; readonly yes: boolean }
  | { readonly action: "archive"; readonly yes: boolean }
)

/** The consequence that a person should know before the answer. */
const factOf = (action: "close" | "archive", found: ConversationInfo): string => {
  const { agents, conversation, project, turnsActive } = found
  const turns = turnsActive === 0 ? "" : ` ${turnsActive} ${turnsActive === 1 ? "turn is" : "turns are"} under way.`
  return action === "close"
    ? `${conversation} (project ${project}) is ended for good: ${agents.length === 0 ? "it has no agents" : `its agents stop (${agents.join(", ")})`}, its log is sealed.${turns}`
    : `What ${conversation} (project ${project}) holds moves into a compressed file; agentd log shows it no more.`
}

export const run = Effect.fnUntraced(function* (input: Input) {
  const { caller, paths } = yield* Invocation
  const { name } = input
  const found = yield* call(paths.socket, (client) => client.Conversation({ name, caller }))
  yield* confirm(input.yes, plain(factOf(input.action, found)), `${input.action === "close" ? "Close" : "Archive"} it?`)
  const done = yield* call(paths.socket, (client) => {
    switch (input.action) {
      case "close":
        return client.Close({ name, reason: input.reason ?? "", force: input.force, caller })
      case "archive":
        return client.Archive({ name, caller })
    }
  })
  yield* print(done, () => [plain(done.message)])
})
