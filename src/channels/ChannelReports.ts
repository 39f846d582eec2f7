/**
 * ChannelReports: decides how a channel changes when an agent reports something, when an agent posts or signals, or
 * when a deadline passes. Pure.
 *
 * Guarantees: an answer is posted once, and only while its agent has the floor. Results of earlier turns have no
 * effect.
 */
import type { Signal as SaidSignal } from "../domain/ChannelMessages.ts"
import * as TruncatedAnswer from "../domain/TruncatedAnswer.ts"
import { refuse } from "../domain/Messages.ts"
import { isFromOutside, isOfChannel, isOfTurn, isResting, propertiesOf, type Seated, seqOf } from "./ChannelState.ts"
import * as Deadlines from "./Deadlines.ts"
import type { Ended, Fact, FloorInput } from "./FloorInput.ts"
import * as AnswerSignal from "./AnswerSignal.ts"
import { bounded, type ChannelTransaction } from "./ChannelTransaction.ts"
import { isSolo } from "./TurnQueue.ts"

export const told = (transaction: ChannelTransaction, input: Fact): void => {
  switch (input._tag) {
    case "Came":
      return came(transaction, input.agent)
    case "Left":
      return left(transaction, input)
    case "Carried":
      stirred(transaction, input.agent, input.messageIds)
      return carried(transaction, input.agent, input.messageIds)
    case "Ended":
      return ended(transaction, input)
    case "Unreachable":
      return unreachable(transaction, input)
    case "Due":
      // if the agents' state is not known yet, the `Look` that follows handles the deadline
      if (transaction.view.open) due(transaction, input.key)
      return
    case "Resumed":
      return resumed(transaction)
    case "Recalled":
      return recalled(transaction, input)
    case "Look":
      return look(transaction)
  }
}

export const say = (
  transaction: ChannelTransaction,
  { agent, messageId, utterance }: Extract<FloorInput, { _tag: "Say" }>
) => {
  const { name, posts } = transaction.channel
  const seated = transaction.seat(agent)
  if (seated === undefined || !propertiesOf(seated).responds) {
    return refuse(
      "not_now",
      `You do not have the floor of #${name}.`,
      "End your turn: you are called when the floor is yours."
    )
  }
  if (utterance._tag !== "Post") {
    transaction.record("channel.signalled", { agent, signal: utterance }, utterance._tag)
    return `Noted: end your turn now; its last text is posted in #${name}.`
  }
  if (posts.some((other) => other.messageId === messageId)) return `It is already in #${name}.`
  if (isResting(transaction.channel)) {
    return refuse(
      "paused",
      `#${name} rests: its agents have posted for long without a person.`,
      "End your turn: a person must post next."
    )
  }
  transaction.record("channel.posted", { messageId, by: "agent", from: agent, text: bounded(utterance.text) }, "post")
  transaction.news(agent, "agent", messageId)
  return `Posted in #${name}.`
}

export const came = (transaction: ChannelTransaction, agent: string): void => {
  transaction.move(agent, { _tag: "AgentStarted" })
  const stand = transaction.seat(agent)?.stand
  // a resting agent is a member already
  if (stand?.state === "IDLE" && !stand.data.member && transaction.channel.assigned.includes(agent)) {
    transaction.move(agent, { _tag: "Assigned" })
  }
}

const left = (
  transaction: ChannelTransaction,
  { agent, how, isBetween }: Extract<FloorInput, { _tag: "Left" }>
): void => {
  // an agent without work in this channel answers its next message as soon as its next run can start
  if (isBetween === true && transaction.seat(agent)?.stand.state === "IDLE") return
  if (!transaction.move(agent, { _tag: "AgentLeft", how })) return
  const { registered, settings } = transaction.channel
  const isEmpty = registered.length === 0
  transaction.notice("⚠ No agents available in this channel", isEmpty && settings.turnConfig.announceDisconnects)
}

/** The agent's seat, if the agent may respond and one of these messages belongs to its current turn. */
const turnOf = (
  transaction: ChannelTransaction,
  agent: string,
  messageIds: ReadonlyArray<string>
): Seated | undefined => {
  const seated = transaction.seat(agent)
  if (seated === undefined || !propertiesOf(seated).responds) return undefined
  return messageIds.some((id) => isOfTurn(seated.prompt ?? "", id)) ? seated : undefined
}

/** Restarts the count of posts among agents when an agent in the queue has received a task or message from outside. */
const stirred = (transaction: ChannelTransaction, agent: string, messageIds: ReadonlyArray<string>): void => {
  const seated = transaction.seat(agent)
  const messageId = messageIds.find(isFromOutside)
  if (messageId === undefined || seated === undefined || propertiesOf(seated).inQueue === "no") return
  const { channel } = transaction
  if (channel.amongAgents > 0 && !isResting(channel))
    transaction.record("channel.stirred", { agent, messageId }, "carried")
}

/** Records that the agent has received posts that a user made during the turn. */
const carried = (transaction: ChannelTransaction, agent: string, messageIds: ReadonlyArray<string>): void => {
  const injected = transaction.channel.floor?.injected ?? []
  const upTo = Math.max(0, ...injected.filter(({ messageId }) => messageIds.includes(messageId)).map(({ seq }) => seq))
  if (upTo > 0 && transaction.holder?.agent === agent) transaction.record("channel.read", { agent, upTo }, "carried")
}

/** Records that posts made during the turn are unread again, because it is unknown whether the agent read them. */
const offered = (transaction: ChannelTransaction, agent: string, messageIds: ReadonlyArray<string>): void => {
  const { channel, holder } = transaction
  if (holder?.agent !== agent || channel.floor === null) return
  const { injected, sent } = channel.floor
  const again = sent
    .filter((id) => messageIds.includes(id) && !injected.some(({ messageId }) => messageId === id))
    .map((messageId) => ({ messageId, seq: seqOf(messageId) }))
  const seqs = again.map(({ seq }) => seq)
  // if the agent has been sent later posts as well, it continues after those
  if (again.length === 0 || Math.max(...seqs) !== holder.told) return
  transaction.record("channel.read", { agent, upTo: Math.min(...seqs) - 1, again }, "offered")
}

/** The text and the signal in a turn's output. The signal is not part of the text, even if the answer is incomplete. */
const answerIn = (output: string, now: number): AnswerSignal.Answer => {
  const { signal, text } = AnswerSignal.read(TruncatedAnswer.partOf(output), now)
  return { signal, text: TruncatedAnswer.isMarked(output) ? TruncatedAnswer.marked(text) : text }
}

const ended = (transaction: ChannelTransaction, input: Ended): void => {
  const { agent, outcome, output, turnId } = input
  if (!input.messageIds.some((id) => isOfChannel(transaction.channel.name, id))) return
  const seated = turnOf(transaction, agent, input.messageIds)
  const answer = answerIn(output, transaction.view.now)
  if (seated === undefined) return withhold(transaction, input, answer.text, "the floor had gone")
  if (transaction.channel.floor?.answered.includes(turnId) === true) return
  carried(transaction, agent, input.messageIds)
  if (outcome === "completed") return complete(transaction, seated, turnId, answer)
  if (outcome === "error" && TruncatedAnswer.isMarked(answer.text)) half(transaction, seated, turnId, answer)
  else withhold(transaction, input, answer.text, `the turn ended: ${outcome}`)
  const floor = transaction.channel.floor!
  // If the message is queued again, or the turn continues with a user's post, the agent keeps the floor.
  if (input.again) offered(transaction, agent, input.messageIds)
  if (input.again || (outcome === "interrupted" && floor.injected.length > 0)) return
  const reason = input.reason ?? outcome
  const isError = outcome === "error"
  fail(transaction, seated, reason)
  transaction.notice(
    `⚠ ${agent} could not end its turn: ${reason.slice(0, 500)}`,
    isError && transaction.channel.settings.turnConfig.announceDisconnects
  )
}

const fail = (transaction: ChannelTransaction, seated: Seated, reason: string, untold = false): void => {
  const turnId = seated.stand.data.turnId ?? ""
  transaction.move(seated.agent, {
    _tag: "TurnFailed",
    turnId,
    reason: reason.slice(0, 1000),
    ...(untold ? { untold } : {})
  })
}

const withhold = (transaction: ChannelTransaction, { agent, turnId }: Ended, text: string, why: string): void => {
  if (text !== "") transaction.record("channel.withheld", { agent, turnId, text: bounded(text), why }, "ended")
}

const post = (
  transaction: ChannelTransaction,
  { agent, prompt }: Seated,
  turnId: string,
  answer: AnswerSignal.Answer
): void => {
  if (answer.text === "") return
  const messageId = `${prompt}~${turnId}`
  transaction.record(
    "channel.posted",
    { messageId, by: "agent", from: agent, text: bounded(answer.text), turnId },
    "ended"
  )
}

/** Posts an incomplete answer. The post wakes other agents as a complete answer does, but the turn has failed. */
const half = (transaction: ChannelTransaction, seated: Seated, turnId: string, answer: AnswerSignal.Answer): void => {
  if (answer.text === "") return
  post(transaction, seated, turnId, answer)
  transaction.news(seated.agent, "agent", turnId)
}

const complete = (
  transaction: ChannelTransaction,
  seated: Seated,
  turnId: string,
  answer: AnswerSignal.Answer
): void => {
  const { agent } = seated
  const signal = transaction.channel.floor?.signal ?? answer.signal
  post(transaction, seated, turnId, answer)
  if (signal === null) {
    transaction.record("channel.unsignalled", { agent, turnId }, "ended")
    transaction.acts.push({ _tag: "Warn", agent, text: "Agent completed response without TURN_COMPLETE" })
  }
  if (answer.text !== "") transaction.news(agent, "agent", turnId)
  if (signal !== null) finish(transaction, seated, signal)
}

/**
 * Handles the signal at the end of a turn. A post that a user made during the turn can already be in the agent's next
 * turn, which also has this floor. Otherwise the post is withdrawn first.
 */
const finish = (transaction: ChannelTransaction, seated: Seated, signal: SaidSignal): void => {
  const { agent, prompt } = seated
  const injected = (transaction.channel.floor?.injected ?? []).map(({ messageId }) => messageId)
  if (injected.length === 0) return signalled(transaction, seated, signal)
  if (transaction.channel.floor?.signal === null) transaction.record("channel.signalled", { agent, signal }, "ended")
  transaction.acts.push({ _tag: "Recall", agent, messageIds: injected, end: null, finish: prompt })
}

/** Ends the turn after its messages were withdrawn, because then no further message can belong to it. */
const recalled = (transaction: ChannelTransaction, input: Extract<FloorInput, { _tag: "Recalled" }>): void => {
  const { agent, messageIds, prompt } = input
  const { holder } = transaction
  if (holder?.agent !== agent || holder.prompt !== prompt) return
  // a turn with these messages may have started and failed before they were withdrawn
  offered(transaction, agent, messageIds)
  const signal = transaction.channel.floor?.signal ?? null
  if (signal !== null) signalled(transaction, holder, signal)
}

const signalled = (transaction: ChannelTransaction, seated: Seated, signal: SaidSignal): void => {
  const { agent } = seated
  const turnId = seated.stand.data.turnId ?? ""
  if (signal._tag === "TurnComplete") {
    transaction.move(agent, { _tag: "TURN_COMPLETE", turnId, solo: isSolo(transaction.channel.queue, agent) })
    return rest(transaction, agent)
  }
  const { reason, until } = signal
  const { waitTimeout } = seated.stand.data.limits
  transaction.move(agent, {
    _tag: "WaitRequested",
    turnId,
    reason,
    ...(typeof until === "number"
      ? { until: { _tag: "Time", at: transaction.view.now + 1000 * until }, timeout: 1000 * until + waitTimeout }
      : { until: until === "person" ? { _tag: "Person" } : { _tag: "Message" } })
  })
}

/** Wakes an agent that rests alone in the channel, if someone posted before its turn had ended. */
const rest = (transaction: ChannelTransaction, agent: string): void => {
  if (transaction.seat(agent)?.stand.state === "IDLE") transaction.news(null, "agent", "unread")
}

/** Sends all messages of the current turn once more. A message that has already arrived has no effect. */
const resumed = (transaction: ChannelTransaction): void => {
  const { holder } = transaction
  if (holder === undefined) return
  const { agent } = holder
  // the time in which no daemon was running does not count against the agent
  live(transaction, holder, transaction.view.now, true)
  transaction.acts.push({ _tag: "Prompt", agent })
  for (const { messageId, seq } of transaction.channel.floor?.injected ?? []) {
    const post = transaction.channel.posts.find((one) => one.seq === seq)
    if (post !== undefined) {
      transaction.acts.push({ _tag: "Steer", agent, messageId, from: post.from, text: post.text, floor: true })
    }
  }
}

/** Handles an agent that could not be sent its prompt: all posts are still unread. */
const unreachable = (
  transaction: ChannelTransaction,
  { agent, prompt, reason }: Extract<FloorInput, { _tag: "Unreachable" }>
): void => {
  const { holder } = transaction
  if (holder?.agent === agent && holder.prompt === prompt) fail(transaction, holder, reason, true)
}

/** Handles all deadlines that have passed, even if their timers fired before the agents' state was known. */
const look = (transaction: ChannelTransaction): void => {
  if (!transaction.view.open) return
  for (const { key } of Deadlines.of(transaction.channel).filter(transaction.view.isOver)) due(transaction, key)
}

const due = (transaction: ChannelTransaction, key: string): void => {
  const { agent, what } = Deadlines.read(key)
  const seated = transaction.seat(agent)
  if (seated === undefined) return
  const { data, state } = seated.stand
  const turnId = data.turnId ?? ""
  const alive = transaction.view.aliveAt(agent)
  if (what === "turn" && state === "ACTIVE") {
    const isAlive = alive > (data.aliveAt ?? 0) && alive + data.limits.turnTimeout > transaction.view.now
    if (isAlive) live(transaction, seated, alive)
    else if (isTold(transaction, seated)) transaction.move(agent, { _tag: "TurnTimedOut", turnId })
    else untold(transaction, agent, turnId)
  } else if (what === "cap" && state === "ACTIVE") {
    const { now, waits } = transaction.view
    if (waits?.(agent) === true) transaction.move(agent, { _tag: "SignOfLife", turnId, at: now, beganAt: now })
    else transaction.move(agent, { _tag: "TurnTimedOut", turnId })
  } else if (what === "wait" && state === "WAITING") transaction.move(agent, { _tag: "WaitTimedOut", turnId })
  else if (what === "time") transaction.resolve(agent)
  else if (what === "silence" && transaction.channel.floor?.answeredAt != null) silent(transaction, seated)
}

/** Extends the turn. Time in which the agent waits for a user does not count against it. */
const live = (transaction: ChannelTransaction, { agent, stand }: Seated, at: number, isOthers = false): void => {
  const { aliveAt, beganAt = stand.at, turnId } = stand.data
  const isWait = isOthers || transaction.view.waits?.(agent) === true
  const waited = isWait ? { beganAt: beganAt + Math.max(0, at - (aliveAt ?? at)) } : {}
  transaction.move(agent, { _tag: "SignOfLife", turnId: turnId ?? "", at, ...waited })
}

/** Whether a turn with this floor is running or has ended, so that the agent has received the prompt. */
const isTold = ({ channel: { floor }, view }: ChannelTransaction, { agent, prompt }: Seated): boolean =>
  view.carries(agent, prompt ?? "") ||
  (floor !== null && (floor.answered.length > 0 || floor.sent.length > floor.injected.length))

/** Handles an agent that cannot start now. The agent gets the same posts again, after a while. */
const untold = (transaction: ChannelTransaction, agent: string, turnId: string): void => {
  transaction.leaveAlone(agent)
  transaction.move(agent, { _tag: "TurnTimedOut", turnId, untold: true })
}

/**
 * Ends the turn of an agent that has answered and then been silent. If the agent is working again, the turn is
 * extended.
 */
const silent = (transaction: ChannelTransaction, { agent, stand }: Seated): void => {
  const { channel, view } = transaction
  const turnId = stand.data.turnId ?? ""
  if (!Deadlines.isSilent(channel, view)) {
    const at = view.busy(agent) ? view.now : view.aliveAt(agent)
    transaction.move(agent, { _tag: "SignOfLife", turnId, at })
    return
  }
  transaction.move(agent, { _tag: "TURN_COMPLETE", turnId, solo: isSolo(channel.queue, agent), detected: true })
  rest(transaction, agent)
}
