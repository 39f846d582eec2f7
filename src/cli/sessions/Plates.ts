/** `agentd ps --plates`: the sessions, with everything that is known about each. */
import { declare, off, read } from "../parse/DeclaredVerb.ts"
import * as SessionTable from "./SessionTable.ts"

export const plates = declare({
  path: ["ps", "--plates"],
  description: "List the sessions with all known details",
  examples: [
    { command: "agentd ps --plates --all", description: "Closed sessions are no longer listed by ps after a day" }
  ],
  args: { all: off("With those that closed more than a day ago") },
  rpc: ({ all }) => read("Plates", { all }),
  view: (plates, { colour, columns, now }) =>
    plates.length === 0
      ? ["No sessions are known. Let Claude Code report them: agentd hooks install"]
      : SessionTable.full(plates, now, { colour, columns })
})
