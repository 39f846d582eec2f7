/** `agentd retry|dismiss AGENT… [MESSAGE]`: asks unanswered messages again, or discards them. */
import { act, off, oneOf, option, send } from "../parse/DeclaredVerb.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { agents, labels, nobody, yes } from "../parse/Names.ts"

const message = option("ID", "Only the message of this id, as agentd waiting --json has it; none: all of them")

/** The form of a message's id; no agent has such a name. */
const ID = /^0[0-9a-hjkmnp-tv-z]{25}$/

interface Meant {
  readonly names: ReadonlyArray<string>
  readonly message: string | undefined
}

/** A message's id can stand behind its agent, as well as after --message. */
const meant = <I extends Meant>(input: I): I => {
  const [id, ...more] = input.names.filter((name) => ID.test(name))
  if (id === undefined || more.length > 0 || input.message !== undefined) return input
  return { ...input, message: id, names: input.names.filter((name) => name !== id) }
}

/** The error if more than one message is named. */
const many = (input: Meant) =>
  meant(input).names.some((name) => ID.test(name))
    ? {
        message: "More than one message is named.",
        remedy: "Name one, or none for all of them; see what there is: agentd waiting",
        exitCode: ExitCode.usage
      }
    : undefined

const both = {
  message: "--held lets all go that the agent holds: it takes no message.",
  remedy: "Leave one of the two out; see what there is: agentd waiting",
  exitCode: ExitCode.usage
}

export const retry = act({
  path: ["retry"],
  description: "Ask an agent again what came to no answer: a refusal, a limit, an error",
  examples: [
    { command: "agentd retry shop/builder", description: "All that agentd waiting shows of it" },
    { command: "agentd retry 'shop/*'", description: "Of all agents of a project" },
    { command: "agentd retry shop/builder 01kb0c3x5r8y2w4v6t7s9q1p0n", description: "One message of it" }
  ],
  args: { names: agents, labels, message },
  several: { kind: "agent" },
  meant,
  wrong: (input) => many(input) ?? nobody(meant(input), "retry"),
  rpc: (input, caller) => {
    const { message, names } = meant(input)
    return send("Retry", { name: oneOf(names), ...(message === undefined ? {} : { message }), caller })
  }
})

const LETS_GO = "lets go what is open of"

export const dismiss = act({
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
  several: { kind: "agent", ends: () => LETS_GO, changes: () => LETS_GO },
  meant,
  wrong: (input) =>
    many(input) ??
    nobody(meant(input), "dismiss") ??
    (input.held && meant(input).message !== undefined ? both : undefined),
  rpc: (input, caller) => {
    const { held, message, names } = meant(input)
    return send("Dismiss", { name: oneOf(names), held, ...(message === undefined ? {} : { message }), caller })
  }
})
