/** `agentd retry|dismiss AGENT`: what came to no answer is asked again, or let go. */
import { declare, maybeWord, off, said, send, word } from "./DeclaredVerb.ts"
import { ExitCode } from "./ExitCode.ts"

const agent = word("Its name in this project, or project/agent")
const message = maybeWord("The message's id, as agentd waiting shows it; none: all of them", "message")

const both = {
  message: "--held lets all go that the agent holds: it takes no message.",
  remedy: "Leave one of the two out; see what there is: agentd waiting",
  exitCode: ExitCode.usage
}

export const retry = declare({
  path: ["retry"],
  description: "Ask an agent again what came to no answer: a refusal, a limit, an error",
  examples: [{ command: "agentd retry shop/builder", description: "All that agentd waiting shows of it" }],
  args: { agent, message },
  rpc: ({ agent, message }, caller) =>
    send("Retry", { name: agent, ...(message === undefined ? {} : { message }), caller }),
  view: said,
  quick: true
})

export const dismiss = declare({
  path: ["dismiss"],
  description: "Let go what came to no answer, or what a stopped agent holds",
  examples: [
    { command: "agentd dismiss shop/builder", description: "It is in agentd waiting no more; the log keeps it" },
    { command: "agentd dismiss shop/builder --held", description: "Messages that wait for an agent that is stopped" }
  ],
  args: { agent, message, held: off("The messages that it holds, instead: they are never told it") },
  wrong: ({ held, message }) => (held && message !== undefined ? both : undefined),
  rpc: ({ agent, held, message }, caller) =>
    send("Dismiss", { name: agent, held, ...(message === undefined ? {} : { message }), caller }),
  view: said,
  quick: true
})
