/**
 * AnsweredNotices: decides which runes mean that a notice was answered, needs no answer any more, or is outdated. Such
 * a notice is dropped if it has not been sent. If it has been sent and asks a question, it is withdrawn, provided that
 * its channel can withdraw messages. Pure.
 */
import { agentKinds, conversationKinds, inboxKinds, toolKinds } from "../agents/machines/AgentKinds.ts"
import { isPerson } from "../agents/machines/Inbox.ts"
import { configKinds } from "../domain/ConfigKinds.ts"
import { moment } from "../domain/StatusWords.ts"
import { reader, type RuneOf, type Table } from "../core/event-log/EventKinds.ts"
import { DAEMON_STREAM, type Rune, type RuneDraft } from "../core/event-log/Rune.ts"
import { moveKinds as goalKinds } from "../goals/GoalKinds.ts"
import { plateKinds } from "../plates/PlateKinds.ts"
import type { Answered, Overtaken } from "./AlertKinds.ts"
import type { Alert } from "./Alert.ts"
import * as Notice from "./Notice.ts"
import type * as OpenNotices from "./OpenNotices.ts"
import type * as Outbox from "./Outbox.ts"

const heard = {
  "tool.approved": toolKinds["tool.approved"],
  "tool.denied": toolKinds["tool.denied"],
  "tool.approval_withdrawn": toolKinds["tool.approval_withdrawn"],
  "tool.result": toolKinds["tool.result"],
  "plate.moved": plateKinds["plate.moved"],
  "plate.answered": plateKinds["plate.answered"],
  "plan.approved": goalKinds["plan.approved"],
  "plan.rejected": goalKinds["plan.rejected"],
  "plan.unblocked": goalKinds["plan.unblocked"],
  "plan.stopped": goalKinds["plan.stopped"],
  "plan.goal_met": goalKinds["plan.goal_met"],
  "config.trusted": configKinds["config.trusted"],
  "config.changed": configKinds["config.changed"],
  "session.unsuspended": conversationKinds["session.unsuspended"],
  "session.closed": conversationKinds["session.closed"],
  "inbox.received": inboxKinds["inbox.received"],
  "inbox.dismissed": inboxKinds["inbox.dismissed"],
  "agent.terminated": agentKinds["agent.terminated"]
} satisfies Table

/** Kinds of runes after which an agent or session works again, so that its "done" notice is outdated. */
const working = {
  "turn.started": agentKinds["turn.started"],
  "plate.moved": plateKinds["plate.moved"]
} satisfies Table

export const kinds: ReadonlyArray<string> = [...new Set([...Object.keys(heard), ...Object.keys(working)])]

const read = reader(heard)
const readWorking = reader(working)
type Heard = RuneOf<typeof heard>

export interface Answer {
  readonly about: string
  /** Name of the user who answered; null if nobody answered and the question needs no answer any more. */
  readonly by: string | null
}

const ASKING = new Set(["AwaitingInput", "AwaitingApproval"])

const byOf = (event: object): string | null => ("by" in event && typeof event.by === "string" ? event.by : null)

/** The answers when a project is closed: its open questions need no answer any more. */
const closed = (stream: string): ReadonlyArray<Answer> =>
  [Notice.projectOf(stream), `config:${stream}`].map((about) => ({ about, by: null }))

const answerOf = (rune: Exclude<Heard, { readonly kind: "session.closed" }>): Answer | undefined => {
  const [, name = "", ...rest] = rune.actor.split("/")
  const call = `call:${rest.join("/")}`
  switch (rune.kind) {
    case "tool.approved":
      return { about: call, by: rune.payload.approver ?? null }
    case "tool.denied": {
      const { event } = rune.payload
      return { about: call, by: event._tag === "denied" ? event.approver : null }
    }
    case "tool.approval_withdrawn":
    case "tool.result":
      return { about: call, by: null }
    case "plate.moved":
      return ASKING.has(rune.from ?? "") && rune.from !== rune.to ? { about: `plate:${name}`, by: null } : undefined
    case "plate.answered":
      return { about: `plate:${name}`, by: rune.payload.by }
    case "plan.approved":
    case "plan.rejected":
    case "plan.unblocked":
    case "plan.stopped":
    case "plan.goal_met":
      return { about: `goal:${rune.stream}/${name}`, by: byOf(rune.payload.event) }
    case "config.trusted":
      return { about: `config:${rune.stream}`, by: rune.payload.by }
    case "config.changed":
      return rune.payload.state === "in_force" ? { about: `config:${rune.stream}`, by: null } : undefined
    case "session.unsuspended":
      return { about: Notice.projectOf(rune.stream), by: byOf(rune.payload.event) }
    case "inbox.received": {
      const { event } = rune.payload
      return event._tag === "Received" && isPerson(event.message.from)
        ? { about: `asked:${rune.stream}/${name}`, by: event.message.from }
        : undefined
    }
    case "inbox.dismissed": {
      const { event } = rune.payload
      return event._tag === "Dismissed" && event.all
        ? { about: `asked:${rune.stream}/${name}`, by: event.by }
        : undefined
    }
    case "agent.terminated":
      return { about: `asked:${rune.stream}/${name}`, by: null }
  }
}

/** The answers in a rune to earlier notices, whether or not these notices have been sent. */
export const of = (any: Rune): ReadonlyArray<Answer> => {
  const rune = read(any)
  if (rune === undefined) return []
  if (rune.kind === "session.closed") return closed(rune.stream)
  const answer = answerOf(rune)
  return answer === undefined ? [] : [answer]
}

/** The subject of the agent or session that starts to work again with this rune; undefined if there is none. */
const atWork = (any: Rune): string | undefined => {
  const rune = readWorking(any)
  if (rune === undefined) return undefined
  const [, name = ""] = rune.actor.split("/")
  if (rune.kind === "turn.started") return Notice.agentOf(rune.stream, name)
  return rune.to === "Running" && rune.from !== "Running" ? `plate:${name}` : undefined
}

/** The rune that drops unsent "done" notices of an agent or session that works again; undefined if there are none. */
export const overtaken = (
  rune: Rune,
  upTo: number,
  { begun, outbox }: Pick<Given, "begun" | "outbox">
): RuneDraft | undefined => {
  const about = atWork(rune)
  if (about === undefined) return undefined
  const isIt = ({ notice }: Alert): boolean => notice?.about === about && notice.kind === "done"
  const drops = unsent(outbox, isIt, begun)
  if (drops.length === 0) return undefined
  const gone = drops.flatMap(({ alerts }) => [...alerts.values()].filter(({ alert }) => isIt(alert)))
  const payload: typeof Overtaken.Type = {
    about,
    kind: "done",
    upTo,
    drops: drops.map(({ id }) => id),
    alertIds: gone.map(({ alertId }) => alertId),
    once: gone.flatMap(({ alert }) => alert.notice?.once ?? [])
  }
  return { stream: DAEMON_STREAM, kind: "alert.overtaken", actor: "alerter", payload }
}

/** A sentence such as "Answered by dana at 15:31." */
export const words = ({ at, by }: OpenNotices.Answer): string =>
  by === null ? `Resolved at ${moment(at, at)}.` : `Answered by ${by} at ${moment(at, at)}.`

/** The messages that can be withdrawn: they contain only this notice, and their channel can withdraw messages. */
const withdrawals = (
  told: ReadonlyArray<OpenNotices.Message>,
  title: string,
  able: ReadonlySet<string>
): (typeof Answered.Type)["withdraws"] =>
  told.flatMap(({ channel, handle, id, isAlone }) =>
    isAlone && handle !== null && able.has(channel) ? [{ channel, of: id, handle, title }] : []
  )

/** Batches that contain an alert for which `isIt` is true, and whose first attempt has not started. */
const unsent = (
  { batches }: Outbox.State,
  isIt: (alert: Alert) => boolean,
  begun: ReadonlySet<string>
): ReadonlyArray<Outbox.Batch> =>
  batches.filter(
    ({ alerts, failure, id }) =>
      failure === null && !begun.has(id) && [...alerts.values()].some(({ alert }) => isIt(alert))
  )

export interface Given {
  readonly outbox: Outbox.State
  readonly notices: OpenNotices.State
  /** Channels that can withdraw a message. */
  readonly able: ReadonlySet<string>
  /** Ids of batches that are being sent. */
  readonly begun: ReadonlySet<string>
  readonly now: number
}

/** The rune that records an answer; undefined if no open notice has asked for the answer. */
export const draft = (
  { about, by }: Answer,
  upTo: number,
  { able, begun, notices, now, outbox }: Given
): RuneDraft | undefined => {
  const open = notices.open.get(about)
  if (open === undefined) return undefined
  const payload: typeof Answered.Type = {
    about,
    by,
    at: now,
    upTo,
    drops: unsent(outbox, ({ notice }) => notice?.about === about, begun).map(({ id }) => id),
    withdraws: withdrawals(open.told, open.alert.notice?.title ?? open.alert.headline, able)
  }
  return { stream: DAEMON_STREAM, kind: "alert.answered", actor: "alerter", payload }
}

/** The rune that withdraws a message if somebody answered while it was being sent; undefined if nobody did. */
export const late = (
  batch: Outbox.Batch,
  message: { readonly id: string; readonly handle: string | null },
  { able, notices }: Pick<Given, "able" | "notices">
): RuneDraft | undefined => {
  const [only] = batch.alerts.values()
  const notice = only?.alert.notice
  // a notice without a question is not withdrawn, even if a question about the same subject was answered
  if (only === undefined || notice === undefined || !Notice.asks(notice)) return undefined
  const { about } = notice
  const answer = notices.answered.get(about)
  const { channel } = batch
  if (answer === undefined || channel === undefined) return undefined
  const told = [
    { channel, id: message.id, handle: message.handle, isAlone: batch.alerts.size === 1 && batch.more === 0 }
  ]
  const payload: typeof Answered.Type = {
    about,
    by: answer.by,
    at: answer.at,
    upTo: 0,
    drops: [],
    withdraws: withdrawals(told, only.alert.headline, able)
  }
  if (payload.withdraws.length === 0) return undefined
  return { stream: DAEMON_STREAM, kind: "alert.answered", actor: "alerter", payload }
}
