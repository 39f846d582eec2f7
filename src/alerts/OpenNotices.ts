/**
 * OpenNotices: the notices that nobody has answered, the messages that contained them, and the first message about each
 * subject. A pure fold of the outbox's runes.
 *
 * Guarantees: a notice is open from the time when it is queued until the log has an answer. If the answer comes while a
 * message is being sent, it is stored, so that the message can be withdrawn. The size is bounded.
 */
import { DAEMON_STREAM, type Rune } from "../core/event-log/Rune.ts"
import * as StateJson from "../core/event-log/StateJson.ts"
import type { StreamFold } from "../core/event-log/StreamFold.ts"
import * as AlertKinds from "./AlertKinds.ts"
import type { Alert } from "./Alert.ts"
import * as Notice from "./Notice.ts"

/** Maximum numbers of open notices, of answers and of threads. If there are more, the oldest are discarded. */
const MAX_OPEN = 500
const MAX_WAITING = 5_000

export interface Message {
  readonly channel: string
  readonly id: string
  readonly handle: string | null
  /** True if the message contained only this notice. */
  readonly isAlone: boolean
}

export interface Open {
  readonly alert: Alert
  /** Hash of the notice's rune, which is also a part of the alert's id. */
  readonly hash: string
  readonly told: ReadonlyArray<Message>
  /**
   * When the wait for the next escalation began, in ms since the epoch: when the notice was last sent or escalated, or
   * when it first could not be sent. Null before that, and while the user has postponed the notice.
   */
  readonly since: number | null
  /** Position of the last escalation channel that was used, from 1; 0 if none was. */
  readonly step: number
}

export interface Answer {
  /** Name of the user who answered; null if nobody answered and the question needs no answer any more. */
  readonly by: string | null
  /** Time of the answer, in ms since the epoch. */
  readonly at: number
}

export interface State {
  /** Open notices by subject, oldest first. */
  readonly open: ReadonlyMap<string, Open>
  /** Answers to notices that were open, by subject, newest last. */
  readonly answered: ReadonlyMap<string, Answer>
  /** Subjects of the alerts that are not sent yet, by alert id. */
  readonly waiting: ReadonlyMap<string, string>
  /** Id of the first message about each subject, by channel and subject. */
  readonly threads: ReadonlyMap<string, string>
  /** `once` keys of notices that were sent or are queued: no further notice with such a key is sent. */
  readonly once: ReadonlyMap<string, true>
}

export const initial: State = {
  open: new Map(),
  answered: new Map(),
  waiting: new Map(),
  threads: new Map(),
  once: new Map()
}

const kept = <K, V>(map: ReadonlyMap<K, V>, most: number, key: K, value: V): ReadonlyMap<K, V> => {
  const next = new Map(map).set(key, value)
  if (next.size > most) next.delete(next.keys().next().value!)
  return next
}

const without = <K, V>(map: ReadonlyMap<K, V>, keys: ReadonlyArray<K>): ReadonlyMap<K, V> => {
  const next = new Map(map)
  for (const key of keys) next.delete(key)
  return next
}

/** The subject of an alert. Messages about one subject form a thread: one for all mails, and one for each channel. */
export const subjectOf = ({ key, notice }: Alert): string => notice?.about ?? key

export const threadOf = (channel: string | undefined, subject: string): string => `${channel ?? "mail"} ${subject}`

const queued = (state: State, at: number, rune: typeof AlertKinds.Queued.Type): State => {
  const { alert, alertId, channel, putOff, step } = rune
  const subject = subjectOf(alert)
  const once = alert.notice?.once
  const next = {
    ...state,
    waiting: kept(state.waiting, MAX_WAITING, alertId, subject),
    once: once === undefined ? state.once : kept(state.once, MAX_OPEN, once, true as const)
  }
  if (channel === undefined || alert.notice === undefined || !Notice.asks(alert.notice)) return next
  const before = state.open.get(subject)
  const hash = alertId.split("@")[0]!.split("-")[1] ?? ""
  const open: Open =
    before === undefined
      ? { alert, hash, told: [], since: null, step: 0 }
      : step !== undefined
        ? { ...before, step, since: at }
        : putOff === true
          ? { ...before, since: null }
          : before
  return { ...next, open: kept(state.open, MAX_OPEN, subject, open), answered: without(state.answered, [subject]) }
}

const sent = (state: State, at: number, rune: typeof AlertKinds.Sent.Type): State => {
  const { alertIds, channel, handle = null, messageId } = rune
  let { open, threads } = state
  for (const alertId of alertIds) {
    const subject = state.waiting.get(alertId)
    if (subject === undefined) continue
    const thread = threadOf(channel, subject)
    if (!threads.has(thread)) threads = kept(threads, MAX_OPEN, thread, messageId)
    const before = open.get(subject)
    if (channel === undefined || before === undefined) continue
    const message: Message = { channel, id: messageId, handle, isAlone: alertIds.length === 1 }
    open = new Map(open).set(subject, { ...before, told: [...before.told, message], since: at })
  }
  return { ...state, open, threads, waiting: without(state.waiting, alertIds) }
}

/** Handles a notice that could not be sent. Nobody can answer it, so the wait for its escalation begins. */
const failed = (state: State, at: number, { alertIds, channel, nextAt }: typeof AlertKinds.Failed.Type): State => {
  let { open } = state
  for (const alertId of alertIds) {
    const subject = state.waiting.get(alertId)
    const before = subject === undefined ? undefined : open.get(subject)
    if (channel === undefined || subject === undefined || before === undefined || before.since !== null) continue
    open = new Map(open).set(subject, { ...before, since: at })
  }
  return { ...state, open, waiting: nextAt === null ? without(state.waiting, alertIds) : state.waiting }
}

const waitingFor = ({ waiting }: State, about: string): ReadonlyArray<string> =>
  [...waiting].flatMap(([id, subject]) => (subject === about ? [id] : []))

export const evolve = (state: State, any: Pick<Rune, "eventId" | "kind" | "at" | "payload">): State => {
  const rune = AlertKinds.readAlert(any)
  switch (rune?.kind) {
    case "alert.queued":
      return queued(state, rune.at, rune.payload)
    case "alert.sent":
      return sent(state, rune.at, rune.payload)
    case "alert.failed":
      return failed(state, rune.at, rune.payload)
    case "alert.overtaken":
      return {
        ...state,
        waiting: without(state.waiting, rune.payload.alertIds),
        once: without(state.once, rune.payload.once ?? [])
      }
    case "alert.answered": {
      const { about, at, by } = rune.payload
      return {
        ...state,
        open: without(state.open, [about]),
        waiting: without(state.waiting, waitingFor(state, about)),
        answered: kept(state.answered, MAX_OPEN, about, { by, at })
      }
    }
    default:
      return state
  }
}

export const fold: StreamFold<State> = {
  name: "open notices",
  version: 2,
  initial,
  of: (stream) => stream === DAEMON_STREAM,
  apply: evolve,
  fromOlder: (plain) => StateJson.decode(plain) as State
}

/** The next escalation channel and its position. Undefined if every channel has sent or queued the notice. */
const nextOf = ({ alert, step, told }: Open, to: ReadonlyArray<string>, state: State) => {
  const waiting = waitingFor(state, subjectOf(alert))
  const isLeft = (name: string) =>
    !told.some(({ channel }) => channel === name) && !waiting.some((id) => id.endsWith(`@${name}`))
  const at = to.findIndex((name, index) => index >= step && isLeft(name))
  return at < 0 ? undefined : { channel: to[at]!, step: at + 1 }
}

export interface Overdue {
  readonly open: Open
  readonly channel: string
  readonly step: number
}

/**
 * Notices that nobody has answered for `after` ms, and when the next one becomes overdue. A time in the future counts
 * as overdue, because the clock was set back.
 */
export const overdue = (state: State, after: number, to: ReadonlyArray<string>, now: number) => {
  const due: Array<Overdue> = []
  let next = Infinity
  for (const open of state.open.values()) {
    const further = open.since === null ? undefined : nextOf(open, to, state)
    if (open.since === null || further === undefined) continue
    const at = open.since > now ? now : open.since + after
    if (at <= now) due.push({ open, ...further })
    else next = Math.min(next, at)
  }
  return { due, next }
}
