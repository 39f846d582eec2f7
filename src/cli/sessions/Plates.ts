/** `agentd ps --plates`: lists coding sessions with all known details. */
import { declare, off, read } from "../parse/DeclaredVerb.ts"
import * as SessionTable from "./SessionTable.ts"

export const plates = declare({
  path: ["ps", "--plates"],
  description: "List the sessions with all known details",
  examples: [
    {
      command: "agentd ps --plates --all",
      description: "Also list sessions that closed more than a day ago, which ps no longer lists"
    }
  ],
  args: { all: off("Also list sessions that closed more than a day ago") },
  rpc: ({ all }) => read("Plates", { all }),
  view: (plates, { colour, columns, now }) =>
    plates.length === 0
      ? ["There are no sessions. To let Claude Code report its sessions: agentd hooks install"]
      : SessionTable.full(plates, now, { colour, columns })
})
