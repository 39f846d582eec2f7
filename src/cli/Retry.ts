/** `agentd retry|dismiss AGENT…`: what came to no answer is asked again, or let go. */
import { declare, off, oneOf, option, said, send } from "./DeclaredVerb.ts"
import { ExitCode } from "./ExitCode.ts"
import { agents, labels, nobody, yes } from "./Names.ts"

const message = option("ID", "Only the message of this id, as agentd waiting --json has it; none: all of them")

const both = {
  message: "--held lets all go that the agent holds: it takes no message.",
  remedy: "Leave one of the two out; see what there is: agentd waiting",
  exitCode: ExitCode.usage
}

export const retry = declare({
  path: ["retry"],
  description: "Ask an agent again what came to no answer: a refusal, a limit, an error",
  examples: [
    { command: "agentd retry shop/builder", description: "All that agentd waiting shows of it" },
    { command: "agentd retry 'shop/*'", description: "Of all agents of a project" }
  ],
  args: { names: agents, labels, message },
  several: { kind: "agent" },
  wrong: (input) => nobody(input, "retry"),
  rpc: ({ message, names }, caller) =>
    send("Retry", { name: oneOf(names), ...(message === undefined ? {} : { message }), caller }),
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
  args: {
    names: agents,
    labels,
    message,
    held: off("The messages that it holds, instead: they are never told it"),
    yes
  },
  several: { kind: "agent", ends: () => "lets go what is open of" },
  wrong: (input) => nobody(input, "dismiss") ?? (input.held && input.message !== undefined ? both : undefined),
  rpc: ({ held, message, names }, caller) =>
    send("Dismiss", { name: oneOf(names), held, ...(message === undefined ? {} : { message }), caller }),
  view: said,
  quick: true
})
