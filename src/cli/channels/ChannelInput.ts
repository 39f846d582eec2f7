/** ChannelInput: parses a line that the user types while joined to a channel into a command. Pure. */

export type Asked =
  | { readonly _tag: "Post"; readonly text: string }
  | { readonly _tag: "Pause"; readonly paused: boolean }
  | { readonly _tag: "Skip" }
  | { readonly _tag: "Grant" | "Requeue"; readonly agent: string }
  | { readonly _tag: "Help" }
  | { readonly _tag: "Quit" }
  | { readonly _tag: "Nothing" }
  | { readonly _tag: "Wrong"; readonly message: string }

export const HELP: ReadonlyArray<string> = [
  "text           post the text to all",
  "/grant AGENT   give the agent the floor now",
  "/skip          take the floor from the agent that has it",
  "/requeue AGENT end the agent's wait or turn, and move it to the end of the queue",
  "/pause         start no turns until /resume",
  "/resume        continue after a pause or a rest",
  "//text         post a text that begins with /",
  "/quit          leave; the channel continues"
]

/** Parses the line. A mistyped command is an error, and is never posted. */
export const parse = (line: string): Asked => {
  const text = line.trim()
  if (text === "") return { _tag: "Nothing" }
  if (!text.startsWith("/")) return { _tag: "Post", text: line }
  if (text.startsWith("//")) return { _tag: "Post", text: text.slice(1) }
  const [verb = "", agent = ""] = text.slice(1).split(/\s+/)
  switch (verb) {
    case "grant":
      return agent === "" ? { _tag: "Wrong", message: "/grant needs an agent's name." } : { _tag: "Grant", agent }
    case "requeue":
      return agent === "" ? { _tag: "Wrong", message: "/requeue needs an agent's name." } : { _tag: "Requeue", agent }
    case "skip":
      return { _tag: "Skip" }
    case "pause":
      return { _tag: "Pause", paused: true }
    case "resume":
      return { _tag: "Pause", paused: false }
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
        message: `There is no command /${verb}. /help lists the commands. To post a text that begins with /, type //.`
      }
  }
}
