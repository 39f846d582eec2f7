/** AttachInput: parses a line that the user types in `agentd attach` into a command. Pure. */

export type Asked =
  | { readonly _tag: "Send"; readonly how: "queue" | "steer" | "urgent"; readonly text: string }
  | { readonly _tag: "Interrupt" }
  /** An answer to a call. `rest`: a call's id, a reason, both or neither. */
  | { readonly _tag: "Answer"; readonly decision: "allow" | "deny"; readonly rest: string }
  /**
   * Answers to the questions of a call. `bare`: the line contains only numbers; if no call has questions, it is sent as
   * a message.
   */
  | { readonly _tag: "Choose"; readonly rest: string; readonly bare: boolean }
  | { readonly _tag: "Help" }
  | { readonly _tag: "Quit" }
  | { readonly _tag: "Nothing" }
  | { readonly _tag: "Wrong"; readonly message: string }

export const HELP: ReadonlyArray<string> = [
  "text               send the text; the agent reads it when it is free",
  "/steer text        end the agent's turn as soon as it is safe, then send the text",
  "/urgent text       end the agent's run; the next run gets the text",
  "/interrupt         end the agent's turn",
  "/approve [id]      approve a call (default: the oldest that waits)",
  "/deny [id] reason  deny a call",
  "/answer [id] text  answer a question with options; typing only the number of an option works, too",
  "//text             send a text that begins with /",
  "/quit              leave; the agent continues"
]

const send = (how: "steer" | "urgent", text: string): Asked =>
  text === "" ? { _tag: "Wrong", message: `/${how} needs a message.` } : { _tag: "Send", how, text }

export const parse = (line: string): Asked => {
  const text = line.trim()
  if (text === "") return { _tag: "Nothing" }
  if (/^\d[\d\s,;]*$/.test(text)) return { _tag: "Choose", rest: text, bare: true }
  if (!text.startsWith("/")) return { _tag: "Send", how: "queue", text }
  if (text.startsWith("//")) return { _tag: "Send", how: "queue", text: text.slice(1) }
  const [, verb = "", rest = ""] = /^\/(\S*)\s*([^]*)$/.exec(text) ?? []
  switch (verb) {
    case "steer":
    case "urgent":
      return send(verb, rest)
    case "interrupt":
      return { _tag: "Interrupt" }
    case "approve":
      return { _tag: "Answer", decision: "allow", rest }
    case "deny":
      return { _tag: "Answer", decision: "deny", rest }
    case "answer":
      return { _tag: "Choose", rest, bare: false }
    case "help":
    case "?":
      return { _tag: "Help" }
    case "quit":
    case "exit":
    case "q":
      return { _tag: "Quit" }
    default:
      return {
        _tag: "Wrong",
        message: `There is no command /${verb}. /help lists the commands. To send a text that begins with /, type //.`
      }
  }
}

/** Finds the call that an answer is for (default: the oldest), and the reason in the answer. */
export const answered = (
  rest: string,
  asking: ReadonlyArray<string>
): { readonly callId: string; readonly reason: string } | { readonly message: string } => {
  const [, first = "", others = ""] = /^(\S*)\s*([^]*)$/.exec(rest) ?? []
  const named = first === "" ? [] : asking.filter((id) => id.startsWith(first))
  // pass the id on as typed, because the daemon also recognizes the full ids of calls that have ended
  if (named.length === 1 || named.includes(first)) return { callId: first, reason: others }
  if (named.length > 1) return { message: `${first} matches ${named.length} waiting calls: ${named.join(", ")}` }
  const oldest = asking[0]
  return oldest === undefined ? { message: "No call is waiting for an answer." } : { callId: oldest, reason: rest }
}

/**
 * Like `answered`, for a call with questions. Only a full id selects a call, because a number is the number of an
 * option, and not the beginning of an id.
 */
export const chosen: typeof answered = (rest, asking) => {
  const [oldest] = asking
  if (oldest === undefined) return { message: "No question is waiting for an answer." }
  const named = asking.find((id) => rest === id || rest.startsWith(`${id} `))
  return named === undefined ? { callId: oldest, reason: rest } : { callId: named, reason: rest.slice(named.length) }
}
