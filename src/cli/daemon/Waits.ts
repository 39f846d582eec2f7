/** `agentd waiting`: everything that waits for a person, each with the commands that help. */
import { declare, read } from "../parse/DeclaredVerb.ts"
import { view } from "./Waiting.ts"

export const waiting = declare({
  path: ["waiting"],
  description:
    "List what waits for you: what asks, work that was dropped or is held, what is suspended, blocked or at rest",
  examples: [{ command: "agentd waiting", description: "Each with the command that helps, as it stands" }],
  args: {},
  rpc: () => read("Waiting", null),
  view
})
