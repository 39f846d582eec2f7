/** `agentd waiting`: lists everything that waits for the user, each item with the commands that help. */
import { declare, read } from "../parse/DeclaredVerb.ts"
import { view } from "./Waiting.ts"

export const waiting = declare({
  path: ["waiting"],
  description: "List what waits for you: approvals, questions, discarded or queued work, and problems",
  examples: [{ command: "agentd waiting", description: "List each item with the commands that help" }],
  args: {},
  rpc: () => read("Waiting", null),
  view
})
