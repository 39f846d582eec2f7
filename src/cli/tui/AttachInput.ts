/** AttachInput: parses what a person types while attached into a command. Pure. */

export type Asked =
  | { readonly _tag: "Send"; readonly how: "queue" | "steer" | "urgent"; readonly text: string }
  | { readonly _tag: "Interrupt" }
  /** `rest`: a call's id, a reason, or both; can be empty. */
  | { readonly _tag: "Answer"; readonly decision: "allow" | "deny"; readonly rest: string }
  /** Answers for a call with questions. `bare`: only numbers were typed; sent as a message if no call has questions. */
  | { readonly _tag: "Choose"; readonly rest: string; readonly bare: boolean }
  | { readonly _tag: "Help" }
  | { readonly _tag: "Quit" }
  | { readonly _tag: "Nothing" }
  | { readonly _tag: "Wrong"; readonly message: string }

export const HELP: ReadonlyArray<string> = [
  "text               send it; the agent reads it when it is free",
  "/steer text        end its turn at a boundary, then this",
  "/urgent text       end its run; the next one carries this",
  "/interrupt         end its turn",
  "/approve [id]      approve the call that asks (the oldest)",
  "/deny [id] reason  deny it",
  "/answer [id] text  answer what it asks you to choose; the number of an option alone does it, too",
  "//text             send a text that begins with /",
  "/quit              leave; the agent goes on"
]

const send = (how: "steer" | "urgent", text: string): Asked =>
  text === "" ? { _tag: "Wrong", message: `/${how} needs a text.` } : { _tag: "Send", how, text }

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
      return { _tag: "Wrong", message: `There is no /${verb}. /help lists the commands; //… sends such a text.` }
  }
}

/** Finds the call that an answer refers to (by default the oldest), and the reason. */
export const answered = (
  rest: string,
  asking: ReadonlyArray<string>
): { readonly callId: string; readonly reason: string } | { readonly message: string } => {
  const [, first = "", others = ""] = /^(\S*)\s*([^]*)$/.exec(rest) ?? []
  const named = first === "" ? [] : asking.filter((id) => id.startsWith(first))
  // unchanged, as typed: the daemon recognizes the full id of a call that is over
  if (named.length === 1 || named.includes(first)) return { callId: first, reason: others }
  if (named.length > 1) return { message: `${first} fits ${named.length} calls that ask: ${named.join(", ")}` }
  const oldest = asking[0]
  return oldest === undefined ? { message: "Nothing asks now." } : { callId: oldest, reason: rest }
}

/** Like `answered`, for a choice. Only a full id names a call: a number is an option, not the beginning of an id. */
export const chosen: typeof answered = (rest, asking) => {
  const [oldest] = asking
  if (oldest === undefined) return { message: "Nothing asks you to choose now." }
  const named = asking.find((id) => rest === id || rest.startsWith(`${id} `))
  return named === undefined ? { callId: oldest, reason: rest } : { callId: named, reason: rest.slice(named.length) }
}
