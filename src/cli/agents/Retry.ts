/** `agentd retry|dismiss AGENT… [MESSAGE]`: sends unanswered messages to the agent again, or discards them. */
import { act, off, oneOf, option, send } from "../parse/DeclaredVerb.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { agents, labels, nobody, yes } from "../parse/Names.ts"

const message = option("ID", "Only the message with this id (see agentd waiting --json); default: all messages")

/** Matches a message's id, which is never the name of an agent. */
const ID = /^0[0-9a-hjkmnp-tv-z]{25}$/

interface Meant {
  readonly names: ReadonlyArray<string>
  readonly message: string | undefined
}

/** Uses a message id that follows the agents' names as if it had been passed with --message. */
const meant = <I extends Meant>(input: I): I => {
  const [id, ...more] = input.names.filter((name) => ID.test(name))
  if (id === undefined || more.length > 0 || input.message !== undefined) return input
  return { ...input, message: id, names: input.names.filter((name) => name !== id) }
}

/** The error if the arguments name more than one message; otherwise undefined. */
const many = (input: Meant) =>
  meant(input).names.some((name) => ID.test(name))
    ? {
        message: "The command names more than one message.",
        remedy: "Name one message, or none to select all. List the messages: agentd waiting",
        exitCode: ExitCode.usage
      }
    : undefined

const both = {
  message: "--held discards all queued messages, so it cannot be used with a message id.",
  remedy: "Use only --held or only the message id. List the messages: agentd waiting",
  exitCode: ExitCode.usage
}

export const retry = act({
  path: ["retry"],
  description: "Retry messages that the agent did not answer, because of a rejection, a limit or a failure",
  examples: [
    { command: "agentd retry shop/builder", description: "Retry all messages of builder that agentd waiting lists" },
    { command: "agentd retry 'shop/*'", description: "Retry the messages of all agents of the project shop" },
    { command: "agentd retry shop/builder 01kb0c3x5r8y2w4v6t7s9q1p0n", description: "Retry only this message" }
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

const LETS_GO = "discards messages of"

export const dismiss = act({
  path: ["dismiss"],
  description: "Discard unanswered messages, or those queued for a stopped agent",
  examples: [
    {
      command: "agentd dismiss shop/builder",
      description: "Discard builder's unanswered messages; the log still contains them"
    },
    {
      command: "agentd dismiss shop/builder --held",
      description: "Discard the messages that are queued for the stopped agent"
    }
  ],
  args: {
    names: agents,
    labels,
    message,
    held: off("Discard queued messages instead, which the agent then never sees"),
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
