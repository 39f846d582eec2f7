/** `agentd forget PLATE…`: removes sessions from the board. */
import { act, oneOf, send, words } from "../parse/DeclaredVerb.ts"
import { ExitCode } from "../parse/ExitCode.ts"

const nothing = {
  message: "Missing required argument: plate",
  remedy: "Say which: agentd forget PLATE. See them: agentd ps --plates",
  exitCode: ExitCode.usage
}

export const forget = act({
  path: ["forget"],
  description: "Take a session off the board; a later hook of it opens a new plate",
  examples: [{ command: "agentd forget 01k9", description: "Its runes stay in the log" }],
  args: { names: words("Ids or their beginnings, the session's own id, or patterns", "plate") },
  several: { kind: "session" },
  wrong: ({ names }) => (names.length === 0 ? nothing : undefined),
  rpc: ({ names }, caller) => send("ForgetPlate", { name: oneOf(names), caller })
})
