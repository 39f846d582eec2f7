/** `agentd forget PLATE`: takes a session off the board. */
import { declare, said, send, word } from "./DeclaredVerb.ts"

export const forget = declare({
  path: ["forget"],
  description: "Take a session off the board; a later hook of it opens a new plate",
  examples: [{ command: "agentd forget 01k9", description: "Its runes stay in the log" }],
  args: { plate: word("Its id or the beginning of it, or the session's own id") },
  rpc: ({ plate }, caller) => send("ForgetPlate", { name: plate, caller }),
  view: said,
  quick: true
})
