/**
 * Decision: what everything that can happen in a channel leads to. Pure.
 *
 * Guarantees: every input is decided; what is refused changes nothing; after it
 * the floor is with somebody, or there is nobody for it.
 */
import { CommandRefused } from "../domain/Messages.ts"
import type { Channel } from "./ChannelState.ts"
import * as Commands from "./Commands.ts"
import { say, told } from "./Facts.ts"
import type { Input } from "./Input.ts"
import { ChannelTransaction, type View } from "./ChannelTransaction.ts"

export interface Decision extends Pick<ChannelTransaction, "drafts" | "acts"> {
  /** In plain words what was done; or why nothing was. */
  readonly reply: string | CommandRefused
}

export const decide = (channel: Channel, view: View, input: Input): Decision => {
  const sitting = new ChannelTransaction(channel, view)
  const reply = channel.closed
    ? new CommandRefused({
        message: `#${channel.name} is closed.`,
        remedy: "Make a new one: agentd channel new NAME"
      })
    : run(sitting, input)
  if (!(reply instanceof CommandRefused)) {
    sitting.settleRest(channel)
    sitting.advance()
  }
  return { drafts: sitting.drafts, acts: sitting.acts, reply }
}

const run = (sitting: ChannelTransaction, input: Input): string | CommandRefused => {
  switch (input._tag) {
    case "Create":
      return Commands.create(sitting, input)
    case "Configure":
      return Commands.configure(sitting, input)
    case "Assign":
      return Commands.assign(sitting, input.agent, input.by)
    case "Remove":
      return Commands.remove(sitting, input.agent, input.by)
    case "Post":
      return Commands.post(sitting, input)
    case "Arrange":
      return Commands.arrange(sitting, input)
    case "Grant":
      return Commands.grant(sitting, input.agent, input.by)
    case "Skip":
      return Commands.skip(sitting, input.by)
    case "Requeue":
      return Commands.requeue(sitting, input.agent, input.by)
    case "Pause":
      return Commands.pause(sitting, input)
    case "Close":
      return Commands.close(sitting, input.by)
    case "Say":
      return say(sitting, input)
    default:
      told(sitting, input)
      return ""
  }
}
