/** `agentd waiting`: everything that waits for a person, each with the commands that help. */
import { declare, read } from "../parse/DeclaredVerb.ts"
import { view } from "./Waiting.ts"

export const waiting = declare({
  path: ["waiting"],
  description: "List what waits for you: approvals, dropped or queued work, and what is blocked",
  examples: [{ command: "agentd waiting", description: "Each with the command that helps" }],
  args: {},
  rpc: () => read("Waiting", null),
  view
})
