/**
 * `agentd project close|archive [PROJECT…]`: ends conversations permanently. The whole program asks the user first.
 */
import { names } from "./Conversation.ts"
import { act, off, oneOf, option, send } from "../parse/DeclaredVerb.ts"
import { yes } from "../parse/Names.ts"

export const isSure = ({ yes }: { readonly yes: boolean }): boolean => yes

export const close = act({
  path: ["project", "close"],
  description: "End a project's conversation permanently; its agents stop gracefully, and its log is sealed",
  examples: [
    {
      command: "agentd project close web",
      description:
        "Close the conversation of web after confirmation; without a terminal, --yes is required (otherwise exit code 2)"
    }
  ],
  args: {
    names,
    reason: option("TEXT", "Reason for the end, which is written to the log"),
    yes,
    force: off("Do not wait for turns in progress")
  },
  several: { kind: "conversation", ends: () => "closes", always: true },
  rpc: ({ force, names, reason }, caller) => send("Close", { name: oneOf(names), reason: reason ?? "", force, caller }),
  quick: isSure
})

export const archive = act({
  path: ["project", "archive"],
  description:
    "Archive a closed conversation; its runes stay in the log, but the daemon no longer reads them at its start",
  examples: [
    {
      command: "agentd project archive web --yes",
      description: "Archive without confirmation; agentd log still shows the runes, and agentd verify checks them"
    }
  ],
  args: { names, yes },
  several: { kind: "conversation", ends: () => "archives", always: true, closed: true },
  rpc: ({ names }, caller) => send("Archive", { name: oneOf(names), caller }),
  quick: isSure
})
