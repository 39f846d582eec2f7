/** `agentd send AGENT TEXT`: puts a message into an agent's inbox. */
import { act, off, options, send as sent, text, word, type Wrong } from "../parse/DeclaredVerb.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { labels, yes } from "../parse/Names.ts"
import { troubleIn } from "../render/PlainText.ts"

const both = {
  message: "--urgent and --steer exclude each other.",
  remedy: "--steer ends the turn, --urgent the run: use only one of them.",
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

/** A message with files needs `SendFiles`, which uploads their contents first. */
export const send = act({
  path: ["send"],
  description: "Send a message to an agent's inbox; its next turn or run gets it",
  examples: [
    {
      command: 'agentd send builder "Fix the failing test"',
      description: "It answers when the message is safe on disk"
    },
    {
      command: 'agentd send builder --steer "Not that file"',
      description: "While it works: a running tool may finish"
    },
    {
      command: 'agentd send builder "What is wrong here?" --file shot.png --file notes.md',
      description: "Images, PDFs and text files"
    },
    { command: "git diff | agentd send web/reviewer", description: "From a pipe" },
    { command: "agentd send 'web/*' \"Commit what you have\"", description: "To all that match" },
    { command: "agentd send '*' -l backend \"Commit what you have\"", description: "To all with this label" },
    { command: "agentd send builder -- --verbose breaks it", description: "A text that begins with a dash" }
  ],
  args: {
    name: word("Its name in this project, project/agent, or a pattern: 'shop/*'", { name: "agent" }),
    text: text("The message; - or nothing: read standard input"),
    urgent: off("End the current run; the next one gets the message"),
    yes,
    labels,
    steer: off("End the current turn at a safe boundary; the message is the next turn"),
    file: options("file", "PATH", "Send this file with it: an image, a PDF or a text; repeatable")
  },
  wrong,
  several: { kind: "agent", ends: ({ urgent }) => (urgent ? "ends the runs of" : undefined) },
  rpc: ({ name, text, ...manner }, caller) => sent("Send", { name, text, how: howOf(manner), caller }),
  quick: ({ file }) => file.length === 0
})
