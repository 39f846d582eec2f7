/** ConversationLife: asks for confirmation before a conversation is ended permanently. */
import { Effect } from "effect"
import { call } from "../../api/rpc/ControlClient.ts"
import type { ConversationInfo } from "../../domain/Messages.ts"
import { confirm } from "../parse/Confirm.ts"
import { Invocation } from "../parse/Invocation.ts"
import { plain } from "../render/Output.ts"

const factOf = (action: "close" | "archive", found: ConversationInfo): string => {
  const { agents, conversation, project, turnsActive } = found
  const turns = turnsActive === 0 ? "" : ` ${turnsActive} ${turnsActive === 1 ? "turn is" : "turns are"} in progress.`
  return action === "close"
    ? `${conversation} (project ${project}) will end permanently: ${agents.length === 0 ? "it has no agents" : `its agents stop (${agents.join(", ")})`}, and its log is sealed.${turns}`
    : `${conversation} (project ${project}) will be archived permanently. Its runes stay in the log, and agentd log shows them.`
}

/** Asks the user. Returns if the user confirms; otherwise fails. */
export const ask = Effect.fnUntraced(function* (action: "close" | "archive", name: string) {
  const { caller, paths } = yield* Invocation
  const found = yield* call(paths.socket, (client) => client.Conversation({ name, caller }))
  yield* confirm(false, plain(factOf(action, found)), `${action === "close" ? "Close" : "Archive"} this conversation?`)
})
