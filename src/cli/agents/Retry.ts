/** `agentd retry|dismiss AGENT… [MESSAGE]`: asks unanswered messages again, or discards them. */
import { act, off, oneOf, option, send } from "../parse/DeclaredVerb.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { agents, labels, nobody, yes } from "../parse/Names.ts"

const message = option("ID", "Only the message with this id (see agentd waiting --json); none: all of them")

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
        remedy: "Name one, or none for all of them. See them: agentd waiting",
        exitCode: ExitCode.usage
      }
    : undefined

const both = {
  message: "--held discards all queued messages: it takes no message id.",
  remedy: "Leave one of the two out. See the messages: agentd waiting",
  exitCode: ExitCode.usage
}

export const retry = act({
  path: ["retry"],
  description: "Retry messages that got no answer: refused, over a limit, or failed",
  examples: [
    { command: "agentd retry shop/builder", description: "All of its messages in agentd waiting" },
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

const LETS_GO = "discards messages of"

export const dismiss = act({
  path: ["dismiss"],
  description: "Discard unanswered messages, or those queued for a stopped agent",
  examples: [
    { command: "agentd dismiss shop/builder", description: "agentd waiting no longer lists them; the log keeps them" },
    { command: "agentd dismiss shop/builder --held", description: "Messages queued for a stopped agent" }
  ],
  args: {
    names: agents,
    labels,
    message,
    held: off("Discard queued messages instead; the agent never sees them"),
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
