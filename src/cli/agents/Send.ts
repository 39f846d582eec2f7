/** `agentd send AGENT TEXT`: puts a message into an agent's inbox. */
import { act, off, options, send as sent, text, word, type Wrong } from "../parse/DeclaredVerb.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { labels, yes } from "../parse/Names.ts"
import { quoted } from "../../config/ShellWord.ts"
import { troubleIn } from "../render/PlainText.ts"

const both = {
  message: "--urgent and --steer cannot be used together.",
  remedy: "Use only one: --steer ends the agent's turn, --urgent ends its run.",
  exitCode: ExitCode.usage
}

interface Manner {
  readonly steer: boolean
  readonly urgent: boolean
}

export const howOf = ({ steer, urgent }: Manner) => (urgent ? "urgent" : steer ? "steer" : "queue")

export const wrong = ({ steer, text = "", urgent }: Manner & { readonly text?: string }): Wrong | undefined => {
  if (steer && urgent) return both
  const trouble = troubleIn(text)
  return trouble === undefined ? undefined : { ...trouble, exitCode: ExitCode.usage }
}

/** The error for a name that cannot be an agent's; undefined if the name is possible. */
const addressed = (name: string): Wrong | undefined => {
  const wrong = (message: string, remedy: string): Wrong => ({ message, remedy, exitCode: ExitCode.usage })
  if (name.startsWith("#"))
    return wrong(`${name} is a channel.`, `Post to it: agentd channel post ${name.slice(1)} "TEXT"`)
  if (name.includes(",")) {
    const each = "Send to each agent by itself, or use a pattern or a label"
    return wrong(`"${name}" is not the name of one agent.`, `${each}: agentd send 'PROJECT/*' "TEXT"`)
  }
  const [first = "", ...rest] = name.trim().split(/\s+/)
  return rest.length === 0
    ? undefined
    : wrong(
        `"${name}" is not the name of an agent.`,
        `Quote only the text: agentd send ${first} ${quoted(rest.join(" "))}`
      )
}

/** If the message has files, the code in `SendFiles` runs instead, and uploads their contents first. */
export const send = act({
  path: ["send"],
  description: "Send a message to an agent's inbox, for its next turn or run",
  examples: [
    {
      command: 'agentd send builder "Fix the failing test"',
      description: "Send a message; the command returns when the message is stored on disk"
    },
    {
      command: 'agentd send builder --steer "Not that file"',
      description: "Correct an agent while it works; a running tool can finish first"
    },
    {
      command: 'agentd send builder "What is wrong here?" --file shot.png --file notes.md',
      description: "Send a message with files: images, PDFs or text files"
    },
    { command: "git diff | agentd send web/reviewer", description: "Send a text from a pipe" },
    {
      command: "agentd send 'web/*' \"Commit what you have\"",
      description: "Send the message to all agents of the project web"
    },
    {
      command: "agentd send '*' -l backend \"Commit what you have\"",
      description: "Send the message to all agents with the label backend"
    },
    { command: "agentd send builder -- --verbose breaks it", description: "Send a text that begins with a dash" }
  ],
  args: {
    name: word("The agent: its name in this project, project/agent, or a pattern such as 'shop/*'", { name: "agent" }),
    text: text("Text of the message; if it is - or missing, read from standard input"),
    urgent: off("End the agent's current run; its next run gets the message"),
    yes,
    labels,
    steer: off("End the agent's current turn as soon as it is safe; the message starts the next turn"),
    file: options("file", "PATH", "Send this file with the message: an image, a PDF or a text; repeatable")
  },
  wrong: (input) => addressed(input.name) ?? wrong(input),
  several: { kind: "agent", ends: ({ urgent }) => (urgent ? "ends the runs of" : undefined) },
  rpc: ({ name, text, ...manner }, caller) => sent("Send", { name, text, how: howOf(manner), caller }),
  quick: ({ file }) => file.length === 0
})
