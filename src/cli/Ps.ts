/** `agentd ps`: the coding sessions and the agents, one a row; with -w as they change. */
import { boardOf, render } from "./Board.ts"
import { all, declare, map, off, read } from "./DeclaredVerb.ts"

/** All that the board shows. */
export const boardAsk = map(
  all({
    plates: read("Plates", { all: false }),
    agents: read("Agents", null),
    calls: read("Calls", null),
    conversations: read("Conversations", null),
    projects: read("Projects", null),
    waiting: read("Waiting", null)
  }),
  boardOf
)

export const ps = declare({
  path: ["ps"],
  description: "List the coding sessions and the agents, and what each waits for",
  examples: [
    { command: "agentd ps", description: "ERRORS 2/5 · 7/20: in a row, and in all, of the limits" },
    { command: "agentd ps -w", description: "Stay, and show what changes" }
  ],
  args: { watch: off("Like agentd watch", "w") },
  rpc: () => boardAsk,
  view: (board, world) => render(board, world.now, world),
  quick: ({ watch }) => !watch
})
