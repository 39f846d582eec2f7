/**
 * Facts: what agents do, what becomes of them, and what time does to a channel, and
 * what that leads to. Pure.
 *
 * Guarantees: an answer is posted once, and only while its agent has the floor;
 * what comes of an earlier turn moves nothing.
 */
import { CommandRefused } from "../domain/Messages.ts"
import { isFromOutside, isOfChannel, isOfTurn, isResting, propertiesOf, type Seated } from "./ChannelState.ts"
import * as Deadlines from "./Deadlines.ts"
import type { Ended, Fact, Input } from "./Input.ts"
import * as Signal from "./Signal.ts"
import { bounded, type ChannelTransaction } from "./ChannelTransaction.ts"
import { isSolo } from "./TurnQueue.ts"

const no = (message: string, remedy: string) => new CommandRefused({ message, remedy })

export const told = (sitting: ChannelTransaction, input: Fact): void => {
  switch (input._tag) {
    case "Came":
      return came(sitting, input.agent)
    case "Left":
      return left(sitting, input)
    case "Carried":
      stirred(sitting, input.agent, input.messageIds)
      return carried(sitting, input.agent, input.messageIds)
    case "Ended":
      return ended(sitting, input)
    case "Unreachable":
      return unreachable(sitting, input)
    case "Due":
      for (const key of input.keys) due(sitting, key)
      return
    case "Resumed":
      return resumed(sitting)
    case "Recalled":
      return recalled(sitting, input)
    case "Look":
      return
  }
}

export const say = (sitting: ChannelTransaction, { agent, messageId, utterance }: Extract<Input, { _tag: "Say" }>) => {
  const { name, posts } = sitting.channel
  const seated = sitting.seat(agent)
  if (seated === undefined || !propertiesOf(seated).responds) {
    return no(`You do not have the floor of #${name}.`, "End your turn: you are called when the floor is yours.")
  }
  if (utterance._tag !== "Post") {
    sitting.record("channel.signalled", { agent, signal: utterance }, utterance._tag)
    return `Noted: end your turn now; its last text is posted in #${name}.`
  }
  if (posts.some((other) => other.messageId === messageId)) return `It stands in #${name} already.`
  if (isResting(sitting.channel)) {
    return no(
      `#${name} rests: its agents have talked for long among themselves.`,
      "End your turn: a person has the word."
    )
  }
  sitting.record("channel.posted", { messageId, by: "agent", from: agent, text: bounded(utterance.text) }, "post")
  sitting.news(agent, "agent", messageId)
  return `Posted in #${name}.`
}

export const came = (sitting: ChannelTransaction, agent: string): void => {
  sitting.move(agent, { _tag: "AgentStarted" })
  const stand = sitting.seat(agent)?.stand
  // One that rests is a member already.
  if (stand?.state === "IDLE" && !stand.data.member && sitting.channel.assigned.includes(agent)) {
    sitting.move(agent, { _tag: "Assigned" })
  }
}

const left = (sitting: ChannelTransaction, { agent, how }: Extract<Input, { _tag: "Left" }>): void => {
  if (!sitting.move(agent, { _tag: "AgentLeft", how })) return
  const { registered, settings } = sitting.channel
  const isEmpty = registered.length === 0
  sitting.notice("⚠ No agents available in this channel", isEmpty && settings.turnConfig.announceDisconnects)
}

/** The seat, where it may respond and these messages are of the turn that it has now. */
const turnOf = (sitting: ChannelTransaction, agent: string, messageIds: ReadonlyArray<string>): Seated | undefined => {
  const seated = sitting.seat(agent)
  if (seated === undefined || !propertiesOf(seated).responds) return undefined
  return messageIds.some((id) => isOfTurn(seated.prompt ?? "", id)) ? seated : undefined
}

/** A task or a message from outside has reached an agent of the cycle: what is said from here on is not among agents only. */
const stirred = (sitting: ChannelTransaction, agent: string, messageIds: ReadonlyArray<string>): void => {
  const seated = sitting.seat(agent)
  const messageId = messageIds.find(isFromOutside)
  if (messageId === undefined || seated === undefined || propertiesOf(seated).inQueue === "no") return
  const { channel } = sitting
  if (channel.amongAgents > 0 && !isResting(channel)) sitting.record("channel.stirred", { agent, messageId }, "carried")
}

/** What a person said meanwhile has reached it. */
const carried = (sitting: ChannelTransaction, agent: string, messageIds: ReadonlyArray<string>): void => {
  const injected = sitting.channel.floor?.injected ?? []
  const upTo = Math.max(0, ...injected.filter(({ messageId }) => messageIds.includes(messageId)).map(({ seq }) => seq))
  if (upTo > 0 && sitting.holder?.agent === agent) sitting.record("channel.read", { agent, upTo }, "carried")
}

const ended = (sitting: ChannelTransaction, input: Ended): void => {
  const { agent, outcome, output, turnId } = input
  if (!input.messageIds.some((id) => isOfChannel(sitting.channel.name, id))) return
  const seated = turnOf(sitting, agent, input.messageIds)
  const answer = Signal.read(output, sitting.view.now)
  if (seated === undefined) return withhold(sitting, input, answer.text, "the floor had gone")
  if (sitting.channel.floor?.answered.includes(turnId) === true) return
  carried(sitting, agent, input.messageIds)
  if (outcome === "completed") return complete(sitting, seated, turnId, answer)
  withhold(sitting, input, answer.text, `the turn ended: ${outcome}`)
  const floor = sitting.channel.floor!
  // It is offered again, or goes on with what a person said meanwhile: it is still its turn.
  if (input.again || (outcome === "interrupted" && floor.injected.length > 0)) return
  const reason = input.reason ?? outcome
  const isError = outcome === "error"
  fail(sitting, seated, reason)
  sitting.notice(
    `⚠ ${agent} could not end its turn: ${reason.slice(0, 500)}`,
    isError && sitting.channel.settings.turnConfig.announceDisconnects
  )
}

const fail = (sitting: ChannelTransaction, seated: Seated, reason: string, untold = false): void => {
  const turnId = seated.stand.data.turnId ?? ""
  sitting.move(seated.agent, {
    _tag: "TurnFailed",
    turnId,
    reason: reason.slice(0, 1000),
    ...(untold ? { untold } : {})
  })
}

/** Kept, and not posted. */
const withhold = (sitting: ChannelTransaction, { agent, turnId }: Ended, text: string, why: string): void => {
  if (text !== "") sitting.record("channel.withheld", { agent, turnId, text: bounded(text), why }, "ended")
}

const complete = (sitting: ChannelTransaction, seated: Seated, turnId: string, answer: Signal.Answer): void => {
  const { agent } = seated
  const signal = sitting.channel.floor?.signal ?? answer.signal
  if (answer.text !== "") {
    const messageId = `${seated.prompt}~${turnId}`
    sitting.record(
      "channel.posted",
      { messageId, by: "agent", from: agent, text: bounded(answer.text), turnId },
      "ended"
    )
  }
  if (signal === null) {
    sitting.record("channel.unsignalled", { agent, turnId }, "ended")
    sitting.acts.push({ _tag: "Warn", agent, text: "Agent completed response without TURN_COMPLETE" })
  }
  if (answer.text !== "") sitting.news(agent, "agent", turnId)
  if (signal !== null) finish(sitting, seated, signal)
}

/** What a person said meanwhile may be its next turn already: that one is still of this floor. Else it is taken back first. */
const finish = (sitting: ChannelTransaction, seated: Seated, signal: Signal.Signal): void => {
  const { agent, prompt } = seated
  const injected = (sitting.channel.floor?.injected ?? []).map(({ messageId }) => messageId)
  if (injected.length === 0) return signalled(sitting, seated, signal)
  if (sitting.channel.floor?.signal === null) sitting.record("channel.signalled", { agent, signal }, "ended")
  sitting.acts.push({ _tag: "Recall", agent, messageIds: injected, end: null, finish: prompt })
}

/** Nothing more comes within its turn. */
const recalled = (sitting: ChannelTransaction, { agent, prompt }: Extract<Input, { _tag: "Recalled" }>): void => {
  const { holder } = sitting
  const signal = sitting.channel.floor?.signal ?? null
  if (holder?.agent === agent && holder.prompt === prompt && signal !== null) signalled(sitting, holder, signal)
}

const signalled = (sitting: ChannelTransaction, seated: Seated, signal: Signal.Signal): void => {
  const { agent } = seated
  const turnId = seated.stand.data.turnId ?? ""
  if (signal._tag === "TurnComplete") {
    sitting.move(agent, { _tag: "TURN_COMPLETE", turnId, solo: isSolo(sitting.channel.queue, agent) })
    return rest(sitting, agent)
  }
  const { reason, until } = signal
  const { waitTimeout } = seated.stand.data.limits
  sitting.move(agent, {
    _tag: "WaitRequested",
    turnId,
    reason,
    ...(typeof until === "number"
      ? { until: { _tag: "Time", at: sitting.view.now + 1000 * until }, timeout: 1000 * until + waitTimeout }
      : { until: until === "person" ? { _tag: "Person" } : { _tag: "Message" } })
  })
}

/** One that rests alone, and was spoken to before it had ended. */
const rest = (sitting: ChannelTransaction, agent: string): void => {
  if (sitting.seat(agent)?.stand.state === "IDLE") sitting.news(null, "agent", "unread")
}

/** All that belongs to its turn is sent once more: what has arrived already changes nothing. */
const resumed = (sitting: ChannelTransaction): void => {
  const { holder } = sitting
  if (holder === undefined) return
  const { agent } = holder
  sitting.move(agent, { _tag: "SignOfLife", turnId: holder.stand.data.turnId ?? "", at: sitting.view.now })
  sitting.acts.push({ _tag: "Prompt", agent })
  for (const { messageId, seq } of sitting.channel.floor?.injected ?? []) {
    const post = sitting.channel.posts.find((one) => one.seq === seq)
    if (post !== undefined) {
      sitting.acts.push({ _tag: "Steer", agent, messageId, from: post.from, text: post.text, floor: true })
    }
  }
}

/** It was told nothing: all is new to it still. */
const unreachable = (
  sitting: ChannelTransaction,
  { agent, prompt, reason }: Extract<Input, { _tag: "Unreachable" }>
): void => {
  const { holder } = sitting
  if (holder?.agent === agent && holder.prompt === prompt) fail(sitting, holder, reason, true)
}

// --- what time does

const due = (sitting: ChannelTransaction, key: string): void => {
  const { agent, what } = Deadlines.read(key)
  const seated = sitting.seat(agent)
  if (seated === undefined) return
  const { data, state } = seated.stand
  const turnId = data.turnId ?? ""
  const alive = sitting.view.aliveAt(agent)
  if (what === "turn" && state === "ACTIVE") {
    const isAlive = alive > (data.aliveAt ?? 0) && alive + data.limits.turnTimeout > sitting.view.now
    sitting.move(agent, isAlive ? { _tag: "SignOfLife", turnId, at: alive } : { _tag: "TurnTimedOut", turnId })
  } else if (what === "wait" && state === "WAITING") sitting.move(agent, { _tag: "WaitTimedOut", turnId })
  else if (what === "time") sitting.resolve(agent)
  else if (what === "silence" && Deadlines.isSilent(sitting.channel, sitting.view)) {
    const solo = isSolo(sitting.channel.queue, agent)
    sitting.move(agent, { _tag: "TURN_COMPLETE", turnId, solo, detected: true })
    rest(sitting, agent)
  }
}
