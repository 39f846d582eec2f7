/**
 * ChannelDecision: decides how an input changes a channel. Pure.
 *
 * Guarantees: every input is handled; a rejected one changes nothing. After an input, an agent has the floor, or no
 * agent can take it.
 */
import { CommandRefused, refuse } from "../domain/Messages.ts"
import type { Channel } from "./ChannelState.ts"
import * as Commands from "./Commands.ts"
import { say, told } from "./ChannelReports.ts"
import { type FloorInput, isFact } from "./FloorInput.ts"
import { ChannelTransaction, type First, type View } from "./ChannelTransaction.ts"

export interface ChannelDecision extends Pick<ChannelTransaction, "drafts" | "acts" | "channel"> {
  /** The result of the input in plain words, or the reason why it was rejected. */
  readonly reply: string | CommandRefused
}

export const decide = (channel: Channel, view: View, input: FloorInput, first: First): ChannelDecision => {
  const transaction = new ChannelTransaction(channel, view, first)
  const reply = channel.closed ? over(channel, input) : run(transaction, input)
  if (!(reply instanceof CommandRefused)) {
    transaction.settleRest(channel)
    transaction.advance()
  }
  return { drafts: transaction.drafts, acts: transaction.acts, channel: transaction.channel, reply }
}

/** Handles an input of a closed channel: a command is rejected, a fact is ignored. */
const over = ({ name }: Channel, input: FloorInput): string | CommandRefused =>
  isFact(input) ? "" : refuse("closed", `#${name} is closed.`, "Create a new one: agentd channel new NAME")

const run = (transaction: ChannelTransaction, input: FloorInput): string | CommandRefused => {
  switch (input._tag) {
    case "Create":
      return Commands.create(transaction, input)
    case "Configure":
      return Commands.configure(transaction, input)
    case "Assign":
      return Commands.assign(transaction, input.agent, input.by)
    case "Remove":
      return Commands.remove(transaction, input.agent, input.by)
    case "Post":
      return Commands.post(transaction, input)
    case "Arrange":
      return Commands.arrange(transaction, input)
    case "Grant":
      return Commands.grant(transaction, input.agent, input.by)
    case "Skip":
      return Commands.skip(transaction, input.by)
    case "Requeue":
      return Commands.requeue(transaction, input.agent, input.by)
    case "Pause":
      return Commands.pause(transaction, input)
    case "Close":
      return Commands.close(transaction, input.by)
    case "Say":
      return say(transaction, input)
    default:
      told(transaction, input)
      return ""
  }
}
