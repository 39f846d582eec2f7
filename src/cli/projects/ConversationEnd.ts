/**
 * `agentd project close|archive [PROJECT…]`: ends conversations for good. The full command-line program asks a person
 * first.
 */
import { names } from "./Conversation.ts"
import { act, off, oneOf, option, send } from "../parse/DeclaredVerb.ts"
import { yes } from "../parse/Names.ts"

export const isSure = ({ yes }: { readonly yes: boolean }): boolean => yes

export const close = act({
  path: ["project", "close"],
  description: "End a project's conversation for good: its agents stop gracefully, its log is sealed",
  examples: [
    { command: "agentd project close web", description: "Asks first; without a terminal it needs --yes, or exits 2" }
  ],
  args: {
    names,
    reason: option("TEXT", "Why; it is kept in the log"),
    yes,
    force: off("Do not wait for turns in progress")
  },
  several: { kind: "conversation", ends: () => "closes", always: true },
  rpc: ({ force, names, reason }, caller) => send("Close", { name: oneOf(names), reason: reason ?? "", force, caller }),
  quick: isSure
})

export const archive = act({
  path: ["project", "archive"],
  description: "Archive a closed conversation: its runes stay in the log, and no start reads them any more",
  examples: [
    {
      command: "agentd project archive web --yes",
      description:
        "Asks for confirmation unless --yes is given; agentd log still shows its runes, and agentd verify checks them"
    }
  ],
  args: { names, yes },
  several: { kind: "conversation", ends: () => "archives", always: true, closed: true },
  rpc: ({ names }, caller) => send("Archive", { name: oneOf(names), caller }),
  quick: isSure
})
