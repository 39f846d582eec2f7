/** `agentd forget PLATE…`: removes sessions from the board. */
import { act, oneOf, send, words } from "../parse/DeclaredVerb.ts"
import { ExitCode } from "../parse/ExitCode.ts"

const nothing = {
  message: "Missing required argument: plate",
  remedy: "Specify the session: agentd forget PLATE. List all sessions: agentd ps --plates",
  exitCode: ExitCode.usage
}

export const forget = act({
  path: ["forget"],
  description: "Remove a session from the board; a later hook of the session opens a new plate",
  examples: [
    { command: "agentd forget 01k9", description: "Remove the session from the board; its runes stay in the log" }
  ],
  args: { names: words("Ids of plates (or their beginnings), ids of sessions, or patterns", "plate") },
  several: { kind: "session" },
  wrong: ({ names }) => (names.length === 0 ? nothing : undefined),
  rpc: ({ names }, caller) => send("ForgetPlate", { name: oneOf(names), caller })
})
