/**
 * Commands: decides how a user's command changes a channel. Pure.
 *
 * Guarantees: a command that cannot be carried out is rejected with a remedy, and changes nothing.
 */
import { Equal } from "effect"
import { refuse } from "../domain/Messages.ts"
import { isFor, isResting, MAX_INJECTED, propertiesOf, type Seated, seatOf } from "./ChannelState.ts"
import { came } from "./ChannelReports.ts"
import type { FloorInput } from "./FloorInput.ts"
import { bounded, type ChannelTransaction } from "./ChannelTransaction.ts"

export const create = (
  transaction: ChannelTransaction,
  { by, origin, settings }: Extract<FloorInput, { _tag: "Create" }>
) => {
  const { channel } = transaction
  if (channel.epoch > 0)
    return refuse("conflict", `The channel #${channel.name} already exists.`, "Choose another name.")
  transaction.record("channel.created", { name: channel.name, origin, by, settings }, "create")
  for (const agent of settings.agents) assign(transaction, agent, by)
  return `#${channel.name} is made.`
}

export const configure = (
  transaction: ChannelTransaction,
  { by, settings }: Extract<FloorInput, { _tag: "Configure" }>
) => {
  const before = transaction.channel.settings
  if (Equal.equals(before, settings)) return `#${transaction.channel.name} is unchanged.`
  transaction.record("channel.configured", { settings, by }, "configure")
  for (const agent of before.agents) if (!settings.agents.includes(agent)) remove(transaction, agent, by)
  for (const agent of settings.agents) if (!before.agents.includes(agent)) assign(transaction, agent, by)
  return `#${transaction.channel.name} is changed.`
}

export const assign = (transaction: ChannelTransaction, agent: string, by: string) => {
  const { name } = transaction.channel
  const seated = transaction.seat(agent)
  if (seated?.stand.data.member === true)
    return refuse("conflict", `${agent} is in #${name} already.`, "Nothing needs to be done.")
  if (!transaction.channel.assigned.includes(agent)) transaction.record("channel.assigned", { agent, by }, "assign")
  if (transaction.view.online(agent)) came(transaction, agent)
  const offline = transaction.seat(agent)?.stand.state === "OFFLINE"
  return offline
    ? `${agent} is assigned to #${name}; it is offline, and gets its seat when it starts.`
    : `${agent} is in #${name}.`
}

export const remove = (transaction: ChannelTransaction, agent: string, by: string) => {
  const { name } = transaction.channel
  const seated = transaction.seat(agent)
  const isAssigned = transaction.channel.assigned.includes(agent)
  if (!isAssigned && seated?.stand.data.member !== true) {
    return refuse("not_found", `${agent} is not in #${name}.`, `List its agents: agentd channel show ${name}`)
  }
  if (isAssigned) transaction.record("channel.unassigned", { agent, by }, "remove")
  transaction.move(agent, { _tag: "Removed", by })
  return `${agent} has left #${name}.`
}

export const post = (transaction: ChannelTransaction, input: Extract<FloorInput, { _tag: "Post" }>) => {
  const { from, messageId } = input
  const { name, posts, settings } = transaction.channel
  if (posts.some((other) => other.messageId === messageId)) return `It is already in #${name}.`
  const text = bounded(input.text)
  const mode = settings.turnConfig.humanInterruptMode
  const { holder } = transaction
  const isSent = mode === "inject" || mode === "parallel"
  const room = (transaction.channel.floor?.sent.length ?? 0) < MAX_INJECTED
  const isHeard = holder !== undefined && propertiesOf(holder).receives === "yes" && mayHear(transaction, holder)
  const injected = isSent && room && isHeard ? `${holder.prompt}/${transaction.channel.head + 1}` : undefined
  transaction.record(
    "channel.posted",
    { messageId, by: "person", from, text, ...(injected === undefined ? {} : { injected }) },
    "post"
  )
  if (injected !== undefined) {
    transaction.acts.push({ _tag: "Steer", agent: holder!.agent, messageId: injected, from, text, floor: true })
  }
  if (mode === "parallel") tellOthers(transaction, from, text)
  if (mode === "interrupt" && holder !== undefined) {
    transaction.move(holder.agent, { _tag: "HumanOverride", by: from, to: "QUEUED", at: transaction.view.now })
    transaction.give(holder.agent)
  }
  transaction.news(null, "person", messageId)
  return `Posted in #${name}.`
}

/**
 * Whether a post may be added to the turn of the agent with the floor. The post must not overtake the prompt, so a turn
 * must have begun with the prompt. It must not interrupt an agent that works on something else. It must not overtake an
 * earlier unread post, because the channel stores only the newest post that an agent has read.
 */
const mayHear = ({ channel, view }: ChannelTransaction, { agent, prompt, told }: Seated): boolean => {
  const { answered = [], injected = [], sent = [] } = channel.floor ?? {}
  const isBetween = !view.busy(agent) && answered.length + sent.length > 0
  if (!isBetween && !view.carries(agent, prompt ?? "")) return false
  return channel.posts.every(
    (post) => post.seq <= told || !isFor(post, agent) || injected.some(({ seq }) => seq === post.seq)
  )
}

/**
 * Sends the post to the busy agents without the floor. They get it with their next turn, and can answer when they have
 * the floor.
 */
const tellOthers = (transaction: ChannelTransaction, from: string, text: string): void => {
  const { head, name, queue } = transaction.channel
  for (const agent of queue.line) {
    const seated = transaction.seat(agent)
    if (seated === undefined || propertiesOf(seated).receives !== "observes" || !transaction.view.busy(agent)) continue
    const messageId = `note:${name}:${head}`
    transaction.acts.push({ _tag: "Steer", agent, messageId, from, text, floor: false })
  }
}

export const arrange = (
  transaction: ChannelTransaction,
  { agents, by, order }: Extract<FloorInput, { _tag: "Arrange" }>
) => {
  const { name } = transaction.channel
  const unknown = agents.find((agent) => seatOf(transaction.channel, agent) === undefined)
  if (unknown !== undefined)
    return refuse("not_found", `${unknown} is not in #${name}.`, `List its agents: agentd channel show ${name}`)
  transaction.record("channel.ordered", { order, agents, by }, "order")
  return `#${name} goes by ${order}${agents.length === 0 ? "" : `, ${agents.join(", ")} first`}.`
}

/** Gives the floor to an agent. The agent that has the floor loses it. */
export const grant = (transaction: ChannelTransaction, agent: string, by: string) => {
  const { name } = transaction.channel
  const { holder, view } = transaction
  const override = (to: "ACTIVE" | "QUEUED") => ({ _tag: "HumanOverride", by, to, at: view.now }) as const
  if (holder?.agent === agent) {
    transaction.move(agent, override("ACTIVE"))
    return `${agent} has the floor of #${name} already; its timeout restarts.`
  }
  const seated = transaction.seat(agent)
  if (seated?.stand.data.member !== true) {
    return refuse(
      "conflict",
      `${agent} is not in the cycle of #${name}.`,
      `Assign it: agentd channel assign ${name} ${agent}`
    )
  }
  if (!view.open) return refuse("not_now", "It is not known yet which agents are running.", "Try again in a moment.")
  if (!view.idle(agent)) {
    return refuse(
      "not_now",
      `${agent} is at work on something else.`,
      `Wait until it is idle, or interrupt it: agentd interrupt ${agent}`
    )
  }
  if (holder !== undefined) transaction.move(holder.agent, override("QUEUED"))
  if (seated.stand.state === "WAITING") transaction.move(agent, override("ACTIVE"))
  else {
    transaction.move(agent, { _tag: "MessageArrived", messageId: "grant" })
    transaction.give(agent)
  }
  return `${agent} has the floor of #${name}.`
}

export const skip = (transaction: ChannelTransaction, by: string) => {
  const { holder } = transaction
  const { name } = transaction.channel
  if (holder === undefined)
    return refuse("conflict", `Nobody has the floor of #${name}.`, `See who waits: agentd channel show ${name}`)
  transaction.move(holder.agent, { _tag: "HumanOverride", by, to: "QUEUED", at: transaction.view.now })
  return `${holder.agent} has lost the floor of #${name}.`
}

/** Ends the agent's turn, whether the agent has the floor or is paused, and moves it to the end of the queue. */
export const requeue = (transaction: ChannelTransaction, agent: string, by: string) => {
  const { name } = transaction.channel
  const state = transaction.seat(agent)?.stand.state
  if (state !== "WAITING" && state !== "ACTIVE") {
    return refuse(
      "conflict",
      `${agent} neither waits in #${name} nor has its floor.`,
      `List its agents: agentd channel show ${name}; give it a seat: agentd channel assign ${name} ${agent}`
    )
  }
  transaction.move(agent, { _tag: "HumanOverride", by, to: "QUEUED", at: transaction.view.now })
  return state === "WAITING"
    ? `${agent} no longer waits: it is in the queue of #${name} again.`
    : `${agent} has lost the floor of #${name}.`
}

export const pause = (transaction: ChannelTransaction, { by, paused }: Extract<FloorInput, { _tag: "Pause" }>) => {
  const { channel, holder } = transaction
  const isHeld = channel.paused || isResting(channel)
  if (paused ? !channel.paused : isHeld)
    transaction.record(paused ? "channel.paused" : "channel.resumed", { by }, paused ? "pause" : "resume")
  if (!paused) return isHeld ? `#${channel.name} continues.` : `#${channel.name} is not paused.`
  return holder === undefined
    ? `#${channel.name} is paused.`
    : `#${channel.name} is paused; ${holder.agent} finishes its turn first.`
}

export const close = (transaction: ChannelTransaction, by: string) => {
  for (const agent of Object.keys(transaction.channel.seats)) transaction.move(agent, { _tag: "Removed", by })
  transaction.record("channel.closed", { by }, "close")
  return `#${transaction.channel.name} is closed.`
}
