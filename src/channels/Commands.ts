/**
 * Commands: what people do to a channel, and what it leads to. Pure.
 *
 * Guarantees: a command that cannot be carried out is refused with a remedy, and
 * changes nothing.
 */
import { Equal } from "effect"
import { CommandRefused } from "../domain/Messages.ts"
import { isResting, MAX_INJECTED, propertiesOf, seatOf } from "./ChannelState.ts"
import { came } from "./Facts.ts"
import type { Input } from "./Input.ts"
import { bounded, type ChannelTransaction } from "./ChannelTransaction.ts"

const no = (message: string, remedy: string) => new CommandRefused({ message, remedy })

export const create = (sitting: ChannelTransaction, { by, origin, settings }: Extract<Input, { _tag: "Create" }>) => {
  const { channel } = sitting
  if (channel.epoch > 0) return no(`There is a channel #${channel.name} already.`, "Choose another name.")
  sitting.record("channel.created", { name: channel.name, origin, by, settings }, "create")
  for (const agent of settings.agents) assign(sitting, agent, by)
  return `#${channel.name} is made.`
}

export const configure = (sitting: ChannelTransaction, { by, settings }: Extract<Input, { _tag: "Configure" }>) => {
  const before = sitting.channel.settings
  if (Equal.equals(before, settings)) return `#${sitting.channel.name} is as it was.`
  sitting.record("channel.configured", { settings, by }, "configure")
  for (const agent of before.agents) if (!settings.agents.includes(agent)) remove(sitting, agent, by)
  for (const agent of settings.agents) if (!before.agents.includes(agent)) assign(sitting, agent, by)
  return `#${sitting.channel.name} is changed.`
}

export const assign = (sitting: ChannelTransaction, agent: string, by: string) => {
  const { name } = sitting.channel
  const seated = sitting.seat(agent)
  if (seated?.stand.data.member === true) return no(`${agent} is in #${name} already.`, "Nothing is to be done.")
  if (!sitting.channel.assigned.includes(agent)) sitting.record("channel.assigned", { agent, by }, "assign")
  if (sitting.view.online(agent)) came(sitting, agent)
  const offline = sitting.seat(agent)?.stand.state === "OFFLINE"
  return offline
    ? `${agent} is assigned to #${name}; it is offline, and takes its place once it is started.`
    : `${agent} is in #${name}.`
}

export const remove = (sitting: ChannelTransaction, agent: string, by: string) => {
  const { name } = sitting.channel
  const seated = sitting.seat(agent)
  const isAssigned = sitting.channel.assigned.includes(agent)
  if (!isAssigned && seated?.stand.data.member !== true) {
    return no(`${agent} is not in #${name}.`, `See who is: agentd channel show ${name}`)
  }
  if (isAssigned) sitting.record("channel.unassigned", { agent, by }, "remove")
  sitting.move(agent, { _tag: "Removed", by })
  return `${agent} has left #${name}.`
}

export const post = (sitting: ChannelTransaction, input: Extract<Input, { _tag: "Post" }>) => {
  const { from, messageId } = input
  const { name, posts, settings } = sitting.channel
  if (posts.some((other) => other.messageId === messageId)) return `It stands in #${name} already.`
  const text = bounded(input.text)
  const mode = settings.turnConfig.humanInterruptMode
  const { holder } = sitting
  const isSent = mode === "inject" || mode === "parallel"
  const room = (sitting.channel.floor?.sent.length ?? 0) < MAX_INJECTED
  const isHeard = holder !== undefined && propertiesOf(holder).receives === "yes"
  const injected = isSent && room && isHeard ? `${holder.prompt}/${sitting.channel.head + 1}` : undefined
  sitting.record(
    "channel.posted",
    { messageId, by: "person", from, text, ...(injected === undefined ? {} : { injected }) },
    "post"
  )
  if (injected !== undefined) {
    sitting.acts.push({ _tag: "Steer", agent: holder!.agent, messageId: injected, from, text, floor: true })
  }
  if (mode === "parallel") tellOthers(sitting, from, text)
  if (mode === "interrupt" && holder !== undefined) {
    sitting.move(holder.agent, { _tag: "HumanOverride", by: from, to: "QUEUED", at: sitting.view.now })
    sitting.give(holder.agent)
  }
  sitting.news(null, "person", messageId)
  return `Posted in #${name}.`
}

/** They are at work: they hear of it now, and can answer when the floor is theirs. */
const tellOthers = (sitting: ChannelTransaction, from: string, text: string): void => {
  const { head, name, queue } = sitting.channel
  for (const agent of queue.line) {
    const seated = sitting.seat(agent)
    if (seated === undefined || propertiesOf(seated).receives !== "observes" || !sitting.view.busy(agent)) continue
    const messageId = `note:${name}:${head}`
    sitting.acts.push({ _tag: "Steer", agent, messageId, from, text, floor: false })
  }
}

export const arrange = (sitting: ChannelTransaction, { agents, by, order }: Extract<Input, { _tag: "Arrange" }>) => {
  const { name } = sitting.channel
  const unknown = agents.find((agent) => seatOf(sitting.channel, agent) === undefined)
  if (unknown !== undefined) return no(`${unknown} is not in #${name}.`, `See who is: agentd channel show ${name}`)
  sitting.record("channel.ordered", { order, agents, by }, "order")
  return `#${name} goes by ${order}${agents.length === 0 ? "" : `, ${agents.join(", ")} first`}.`
}

/** The floor by hand: whoever has it gives it up. */
export const grant = (sitting: ChannelTransaction, agent: string, by: string) => {
  const { name } = sitting.channel
  const { holder, view } = sitting
  const override = (to: "ACTIVE" | "QUEUED") => ({ _tag: "HumanOverride", by, to, at: view.now }) as const
  if (holder?.agent === agent) {
    sitting.move(agent, override("ACTIVE"))
    return `${agent} has the floor of #${name} already; its time begins anew.`
  }
  const seated = sitting.seat(agent)
  if (seated?.stand.data.member !== true) {
    return no(`${agent} is not in the cycle of #${name}.`, `Assign it: agentd channel assign ${name} ${agent}`)
  }
  if (!view.open) return no("Who is alive is not settled yet.", "Try again in a moment.")
  if (!view.idle(agent)) {
    return no(`${agent} is at work on something else.`, `Wait until it is idle, or end that: agentd interrupt ${agent}`)
  }
  if (holder !== undefined) sitting.move(holder.agent, override("QUEUED"))
  if (seated.stand.state === "WAITING") sitting.move(agent, override("ACTIVE"))
  else {
    sitting.move(agent, { _tag: "MessageArrived", messageId: "grant" })
    sitting.give(agent)
  }
  return `${agent} has the floor of #${name}.`
}

export const skip = (sitting: ChannelTransaction, by: string) => {
  const { holder } = sitting
  const { name } = sitting.channel
  if (holder === undefined) return no(`Nobody has the floor of #${name}.`, `See who waits: agentd channel show ${name}`)
  sitting.move(holder.agent, { _tag: "HumanOverride", by, to: "QUEUED", at: sitting.view.now })
  return `${holder.agent} has lost the floor of #${name}.`
}

/** Its turn, under way or paused, is forfeited: it has the last place of the queue. */
export const requeue = (sitting: ChannelTransaction, agent: string, by: string) => {
  const { name } = sitting.channel
  const state = sitting.seat(agent)?.stand.state
  if (state !== "WAITING" && state !== "ACTIVE") {
    return no(
      `${agent} neither waits in #${name} nor has its floor.`,
      `See who does: agentd channel show ${name}; give it a seat: agentd channel assign ${name} ${agent}`
    )
  }
  sitting.move(agent, { _tag: "HumanOverride", by, to: "QUEUED", at: sitting.view.now })
  return state === "WAITING"
    ? `${agent} waits no longer: it is in the queue of #${name} again.`
    : `${agent} has lost the floor of #${name}.`
}

export const pause = (sitting: ChannelTransaction, { by, paused }: Extract<Input, { _tag: "Pause" }>) => {
  const { channel, holder } = sitting
  const isHeld = channel.paused || isResting(channel)
  if (paused ? !channel.paused : isHeld)
    sitting.record(paused ? "channel.paused" : "channel.resumed", { by }, paused ? "pause" : "resume")
  if (!paused) return isHeld ? `#${channel.name} goes on.` : `#${channel.name} is not paused.`
  return holder === undefined
    ? `#${channel.name} is paused.`
    : `#${channel.name} is paused; ${holder.agent} ends its turn.`
}

export const close = (sitting: ChannelTransaction, by: string) => {
  for (const agent of Object.keys(sitting.channel.seats)) sitting.move(agent, { _tag: "Removed", by })
  sitting.record("channel.closed", { by }, "close")
  return `#${sitting.channel.name} is closed.`
}
