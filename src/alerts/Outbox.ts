/**
 * Outbox: the alerts that wait to be sent, the batch of each, and the time when it is due. A pure fold of the runes
 * `alert.queued`, `alert.sent`, `alert.failed`, `alert.answered` and `alert.overtaken`.
 *
 * Guarantees: a queued alert stays until a rune says that it was sent, given up, answered or outdated. The content of a
 * batch is fixed before its first attempt, so that each attempt has the same Message-ID. Batches to one destination are
 * sent one after the other, but a refused batch does not delay others. No channel or address gets more messages in an
 * hour than its config allows, even if alerts made a batch due earlier. The size of the state is bounded, and alerts
 * beyond the bound are counted.
 */
import { createHash } from "node:crypto"
import { Effect } from "effect"
import type { RuneOf } from "../core/event-log/EventKinds.ts"
import { type Cause, DAEMON_STREAM, type Rune, type RuneDraft } from "../core/event-log/Rune.ts"
import { EventLog } from "../core/event-log/EventLog.ts"
import * as StateJson from "../core/event-log/StateJson.ts"
import type { StreamFold } from "../core/event-log/StreamFold.ts"
import * as AlertKinds from "./AlertKinds.ts"
import { type Alert, together } from "./Alert.ts"
import { delayAfter, type FailureClass, later, type Refused, SLOWEST } from "./Retry.ts"

const HOUR = 3_600_000

/** Time that the first alert of a batch waits for others, in ms, so that failures at one time become one message. */
const SETTLE = 2_000

/** Maximum number of keys in a batch. Further alerts are only counted. */
const MAX_KEYS = 200
const MAX_GIVEN_UP = 100

export type Queued = typeof AlertKinds.Queued.Type
type Failed = typeof AlertKinds.Failed.Type
type Answered = typeof AlertKinds.Answered.Type

/** The rune that caused the alert; null if an older agentd queued the alert without its sequence number. */
const causeOf = ({ seq, stream }: Alert): Cause | null => (seq === undefined ? null : { stream, seq })

export interface Failure {
  readonly attempt: number
  readonly class: FailureClass
  readonly error: string
  readonly destination: string
  readonly nextAt: number | null
}

export interface Batch {
  readonly id: string
  readonly destination: string
  readonly routed: boolean
  /** The channel that sends the batch; if omitted, the project's mail section sends it. */
  readonly channel?: string
  /** Mail addresses of the recipients; if omitted, those of the config. */
  readonly to?: ReadonlyArray<string>
  readonly dueAt: number
  /** The alert of each key, into which equal alerts are folded, with the id of the first of them. */
  readonly alerts: ReadonlyMap<string, { readonly alertId: string; readonly alert: Alert }>
  /** Number of alerts that were only counted, because the batch was full. */
  readonly more: number
  readonly failure: Failure | null
  /** Present if the batch contains no alerts, but withdraws a message whose notice was answered. */
  readonly back?: Back
}

/** A message to withdraw, and the answer to its notice. */
export interface Back {
  readonly of: string
  readonly handle: string
  readonly title: string
  readonly by: string | null
  readonly at: number
}

export interface State {
  /** Event id of the newest examined rune. All alerts up to this rune are queued. */
  readonly cursor: number
  /** Batches that are neither sent nor given up, oldest first. */
  readonly batches: ReadonlyArray<Batch>
  /** When messages were sent in the last hour: by channel, or for mails by destination. */
  readonly left: ReadonlyMap<string, ReadonlyArray<number>>
  readonly givenUp: ReadonlyArray<Batch>
  readonly lastSentAt: number | null
  readonly lastError: string | null
  /** When sending mail first failed after the last mail that was sent, in ms since the epoch. */
  readonly failsSince?: number | undefined
  /** Event id of the newest alert rune. */
  readonly restsOn: number
}

export const initial: State = {
  cursor: 0,
  batches: [],
  left: new Map(),
  givenUp: [],
  lastSentAt: null,
  lastError: null,
  restsOn: 0
}

const queued = (state: State, rune: Queued): State => {
  const known = state.batches.find((batch) => batch.id === rune.batch)
  const batch: Batch = known ?? {
    id: rune.batch,
    destination: rune.destination,
    routed: rune.routed,
    ...(rune.channel === undefined ? {} : { channel: rune.channel }),
    ...(rune.to === undefined ? {} : { to: rune.to }),
    dueAt: rune.dueAt,
    alerts: new Map(),
    more: 0,
    failure: null
  }
  const same = batch.alerts.get(rune.alert.key)
  const full = same === undefined && batch.alerts.size >= MAX_KEYS
  // an urgent alert makes the whole batch due earlier
  const dueAt = Math.min(batch.dueAt, rune.dueAt)
  const next: Batch = full
    ? { ...batch, dueAt, more: batch.more + rune.alert.count }
    : {
        ...batch,
        dueAt,
        alerts: new Map(batch.alerts).set(rune.alert.key, {
          alertId: same?.alertId ?? rune.alertId,
          alert: same === undefined ? rune.alert : together(same.alert, rune.alert)
        })
      }
  return {
    ...state,
    cursor: Math.max(state.cursor, rune.upTo),
    batches: known === undefined ? [...state.batches, next] : state.batches.map((one) => (one === known ? next : one))
  }
}

/** The name under which sent messages are counted. All destinations of one channel are counted together. */
export const countedAs = ({ channel, destination }: Pick<Batch, "channel" | "destination">): string =>
  channel ?? destination

/** The times within the last hour. A time in the future is ignored: it was recorded before the clock was set back. */
const recent = (times: ReadonlyArray<number> = [], now: number): ReadonlyArray<number> =>
  times.filter((at) => at > now - HOUR && at <= now)

/** The send times of the last hour. If `name` is defined, `at` is added to its times. */
export const departed = ({ left: before }: State, at: number, name: string | undefined): State["left"] => {
  const left = new Map([...before].map(([name, times]) => [name, recent(times, at)] as const))
  for (const [name, times] of left) if (times.length === 0) left.delete(name)
  return name === undefined ? left : left.set(name, [...(left.get(name) ?? []), at])
}

/** Suffix in the id of a retry batch: the same message, for recipients that have not received it yet. */
const LATER = "#later"

/** The id of the batch from which a retry batch was made. The id of any other batch is unchanged. */
export const wholeOf = (id: string): string => id.replace(LATER, "")

/** The retry batch for recipients that were refused temporarily. It does not delay other batches. */
const restOf = (batch: Batch, { destination, later }: typeof AlertKinds.Sent.Type): ReadonlyArray<Batch> => {
  if (later === undefined) return []
  const { to, ...failure } = later
  const id = `${wholeOf(batch.id)}${LATER}`
  return [
    { ...batch, id, destination: `${id} ${destination}`, to, failure: { ...failure, class: "transient", destination } }
  ]
}

const sentOff = (state: State, at: number, rune: typeof AlertKinds.Sent.Type): State => {
  const { batch: id, channel } = rune
  const known = state.batches.find((one) => one.id === id)
  const isNew = known !== undefined && known.back === undefined
  return {
    ...state,
    ...(channel === undefined ? { lastSentAt: at, lastError: null, failsSince: undefined } : {}),
    left: departed(state, at, isNew ? countedAs(rune) : undefined),
    batches: state.batches.flatMap((one) => (one === known ? restOf(one, rune) : [one]))
  }
}

const failed = (before: State, at: number, rune: Failed): State => {
  const isFirst = rune.channel === undefined && before.lastError === null
  const state = isFirst ? { ...before, failsSince: at } : before
  const known = state.batches.find((batch) => batch.id === rune.batch)
  if (known === undefined) return state
  const next: Batch = { ...known, failure: rune }
  // only for mail: the failure of a channel is reported by the other channels
  const lastError = rune.channel === undefined ? rune.error : state.lastError
  return rune.nextAt === null
    ? {
        ...state,
        lastError,
        batches: state.batches.filter((batch) => batch !== known),
        givenUp: known.back === undefined ? [...state.givenUp, next].slice(-MAX_GIVEN_UP) : state.givenUp
      }
    : { ...state, lastError, batches: state.batches.map((batch) => (batch === known ? next : batch)) }
}

/** Removes alerts from the batches in `drops`, and removes batches that become empty. */
const dropped = (
  { batches }: State,
  drops: ReadonlyArray<string>,
  isGone: (alert: Alert) => boolean
): ReadonlyArray<Batch> =>
  batches.flatMap((batch) => {
    if (!drops.includes(batch.id)) return [batch]
    const alerts = new Map([...batch.alerts].filter(([, { alert }]) => !isGone(alert)))
    return alerts.size + batch.more === 0 ? [] : [{ ...batch, alerts }]
  })

/**
 * Removes an answered notice from the messages that have not been sent. Queues a withdrawal of each message that has
 * been sent; withdrawals have a destination of their own.
 */
const answered = (state: State, { about, at, by, drops, upTo, withdraws }: Answered): State => {
  const left = dropped(state, drops, ({ notice }) => notice?.about === about)
  const back = withdraws.map(({ channel, handle, of, title }): Batch => ({
    id: `back ${of}`,
    destination: `${channel}/back`,
    routed: true,
    channel,
    dueAt: at,
    alerts: new Map(),
    more: 0,
    failure: null,
    back: { of, handle, title, by, at }
  }))
  const news = back.filter(({ id }) => !left.some((batch) => batch.id === id))
  return { ...state, cursor: Math.max(state.cursor, upTo), batches: [...left, ...news] }
}

/** Applies a rune to the state. A rune of another kind, or of a newer shape, changes nothing. */
export const evolve = (state: State, any: Pick<Rune, "eventId" | "kind" | "at" | "payload">): State => {
  const rune = AlertKinds.readAlert(any)
  return rune === undefined ? state : { ...changed(state, rune), restsOn: rune.eventId }
}

const changed = (state: State, rune: RuneOf<typeof AlertKinds.alertKinds, Pick<Rune, "at" | "kind" | "payload">>) => {
  switch (rune.kind) {
    case "alert.queued":
      return queued(state, rune.payload)
    case "alert.failed":
      return failed(state, rune.at, rune.payload)
    case "alert.sent":
      return sentOff(state, rune.at, rune.payload)
    case "alert.answered":
      return answered(state, rune.payload)
    case "alert.overtaken": {
      const { about, drops, kind, upTo } = rune.payload
      const batches = dropped(state, drops, ({ notice }) => notice?.about === about && notice.kind === kind)
      return { ...state, cursor: Math.max(state.cursor, upTo), batches }
    }
  }
}

const ACTOR = "alerter"
export const fold: StreamFold<State> = {
  name: "outbox",
  version: 4,
  initial,
  of: (stream) => stream === DAEMON_STREAM,
  apply: evolve,
  // states of versions without channels contain only mail; before version 4, `left` contained the due times of messages
  fromOlder: (plain) => ({ ...(StateJson.decode(plain) as State), left: new Map() })
}

export const load = Effect.gen(function* () {
  const log = yield* EventLog
  return (yield* log.recover(DAEMON_STREAM, { outbox: fold })).outbox.state
})

export interface Route {
  readonly destination: string
  /** Minimum time between two messages to the destination, ms. */
  readonly digestWindow: number
  readonly maxPerHour: number
  /** The channel in `notify` that sends the alert; if omitted, a mail section sends it. */
  readonly channel?: string
  /** Time that the first alert of a message waits for others, in ms. If omitted, the time is the same as for a mail. */
  readonly settle?: number
  /** True in quiet hours: a message that is due keeps waiting, and other alerts can join it. */
  readonly isHeld?: boolean
  /** Position of the channel in the list of escalation channels, from 1; omitted if the alert is not an escalation. */
  readonly step?: number
  /** Mail addresses of the channel's recipients; if omitted, those of its config. */
  readonly to?: ReadonlyArray<string>
  readonly isPutOff?: boolean
}

/** Number of attempts after which a message no longer delays others, because the server may reject only this one. */
const STUCK = 4
/** Number of such messages from which on all other messages wait, too, because the server itself must be failing. */
const MAX_STUCK = 3

/** Maximum number of attempts to withdraw a message. After that, the message is not withdrawn. */
const MAX_BACK = 3

const isRefused = ({ failure }: Batch): boolean => failure?.class === "permanent"
const isStuck = ({ failure }: Batch): boolean => failure !== null && failure.attempt >= STUCK

/** Whether an earlier batch to the same destination must be sent first. Batches that the server refuses are ignored. */
const behind = (state: State, batch: Batch): boolean => {
  const here = state.batches.filter(({ destination }) => destination === batch.destination)
  const before = here.slice(0, here.indexOf(batch)).filter((one) => !isRefused(one))
  return before.length >= MAX_STUCK || before.some((one) => !isStuck(one))
}

/** Whether the clock was set back since the batch was made, so that the batch's times cannot be used. */
const isFromLater = ({ alerts }: Batch, now: number): boolean =>
  [...alerts.values()].some(({ alert }) => alert.at > now)

/** The batch that an alert can still join, because no attempt to send the batch can have started. */
const open = (state: State, destination: string, route: Route | undefined, now: number): Batch | undefined => {
  const last = state.batches.findLast((batch) => batch.destination === destination)
  if (last === undefined || last.failure !== null) return undefined
  const routed = route !== undefined
  const isWaiting = route?.isHeld === true || (now < last.dueAt && !isFromLater(last, now))
  return !routed || isWaiting || behind(state, last) ? last : undefined
}

/** The earliest time at which the hourly limit allows another message. `before`: times of earlier messages. */
const limitOf = (before: ReadonlyArray<number>, maxPerHour: number): number =>
  (before.at(-maxPerHour) ?? -Infinity) + HOUR

/** Times of messages that were or will be sent before a new message, or before the existing message `joined`. */
const before = (state: State, route: Route, now: number, joined?: Batch): ReadonlyArray<number> => {
  const ahead = state.batches.filter((one) => one.destination === route.destination && one !== joined)
  return [...recent(state.left.get(countedAs(route)), now), ...ahead.map(({ dueAt }) => Math.min(dueAt, now))]
}

/** When a new batch is due: after a short wait and the previous message's digest window, within the hourly limit. */
const dueAt = (state: State, route: Route, now: number): number => {
  const earlier = before(state, route, now)
  const settled = now + (route.settle ?? Math.min(SETTLE, route.digestWindow))
  const spaced = Math.max(settled, (earlier.at(-1) ?? -Infinity) + route.digestWindow)
  return Math.max(spaced, limitOf(earlier, route.maxPerHour))
}

/**
 * When a batch is due after an alert has joined it. The due time of a mail does not change; a channel's message can
 * become due earlier, within the hourly limit.
 */
const dueOf = (state: State, joined: Batch | undefined, route: Route | undefined, now: number): number => {
  if (route === undefined) return joined?.dueAt ?? now
  if (joined === undefined) return dueAt(state, route, now)
  if (route.channel === undefined) return joined.dueAt
  const limit = limitOf(before(state, route, now, joined), route.maxPerHour)
  return Math.min(joined.dueAt, Math.max(now + (route.settle ?? SETTLE), limit))
}

/** The earliest time at which the hourly limit allows a batch to be sent. `begun`: ids of batches being sent. */
export const freeAt = (
  { batches, left }: State,
  batch: Pick<Batch, "back" | "channel" | "destination">,
  maxPerHour: number,
  begun: ReadonlySet<string>,
  now: number
): number => {
  if (batch.back !== undefined) return now
  const name = countedAs(batch)
  const going = batches.filter((one) => begun.has(one.id) && one.back === undefined && countedAs(one) === name)
  return Math.max(now, limitOf([...recent(left.get(name), now), ...going.map(() => now)], maxPerHour))
}

/** The rune that queues an alert. `upTo`: id of the newest examined rune; `begun`: ids of batches being sent. */
export const queue = (
  state: State,
  source: { readonly alert: Alert; readonly hash: string; readonly upTo: number },
  route: Route | undefined,
  now: number,
  begun: ReadonlySet<string> = new Set()
): RuneDraft => {
  const { alert, hash, upTo } = source
  const channel = route?.channel
  const alertId = `${alert.cause}-${hash.slice(0, 8)}${channel === undefined ? "" : `@${channel}`}`
  const routed = route !== undefined
  const destination = route?.destination ?? alert.of ?? alert.stream
  const last = open(state, destination, route, now)
  // a batch that is being sent never changes, whatever the clock says
  const joined = last === undefined || begun.has(last.id) ? undefined : last
  const payload: Queued = {
    alertId,
    batch: joined?.id ?? alertId,
    destination,
    routed,
    dueAt: dueOf(state, joined, route, now),
    upTo,
    ...(channel === undefined ? {} : { channel }),
    ...(route?.step === undefined ? {} : { step: route.step }),
    ...(route?.to === undefined ? {} : { to: route.to }),
    ...(route?.isPutOff === true ? { putOff: true } : {}),
    alert
  }
  return { stream: DAEMON_STREAM, kind: "alert.queued", actor: ACTOR, cause: causeOf(alert), payload }
}

/** When the batch can be sent; undefined if another batch must be sent first. */
export const readyAt = (state: State, batch: Batch, now: number): number | undefined => {
  if (behind(state, batch)) return undefined
  const { back, dueAt, failure } = batch
  if (back !== undefined && failure === null) return now
  if (failure !== null) {
    const at = failure.nextAt ?? dueAt
    return at > now + SLOWEST ? now : at
  }
  return isFromLater(batch, now) ? now : dueAt
}

export const alertIds = (batch: Batch): ReadonlyArray<string> =>
  [...batch.alerts.values()].map(({ alertId }) => alertId)

/** Id of the batch's message: unique to the batch, and the same for every attempt. */
export const idOf = (batch: Batch): string =>
  createHash("sha256")
    .update(batch.back === undefined ? alertIds(batch).join(",") : batch.id)
    .digest("hex")
    .slice(0, 32)

export const messageId = (batch: Batch, domain: string): string => `<agentd.${idOf(batch)}@${domain}>`

export interface Attempt {
  readonly batch: Batch
  readonly destination: string
  readonly messageId: string
}

const resolved = (
  kind: string,
  attempt: Attempt,
  payload: object,
  [first] = attempt.batch.alerts.values()
): RuneDraft => ({
  stream: DAEMON_STREAM,
  kind,
  actor: ACTOR,
  cause: first === undefined ? null : causeOf(first.alert),
  payload: {
    batch: attempt.batch.id,
    destination: attempt.destination,
    messageId: attempt.messageId,
    alertIds: alertIds(attempt.batch),
    ...(attempt.batch.channel === undefined ? {} : { channel: attempt.batch.channel }),
    ...payload
  }
})

/** The rune of a message that was sent. `later`: the recipients that were refused temporarily, and the next attempt. */
export const sent = (
  attempt: Attempt,
  receipt: Pick<typeof AlertKinds.Sent.Type, "handle" | "to" | "rejected" | "response"> & {
    readonly refused?: ReadonlyArray<Refused>
  },
  now: number
): RuneDraft => {
  const { refused = [], ...rest } = receipt
  const again = later(refused)
  const count = (attempt.batch.failure?.attempt ?? 0) + 1
  const delay = again.length === 0 ? undefined : delayAfter("transient", count)
  const codes = refused.filter(({ to }) => again.includes(to)).map(({ code, to }) => `${to}: ${code}`)
  return resolved("alert.sent", attempt, {
    ...rest,
    ...(refused.length === 0 ? {} : { refused }),
    ...(delay === undefined
      ? {}
      : { later: { to: again, attempt: count, error: `refused for now: ${codes.join(", ")}`, nextAt: now + delay } })
  })
}

/** The rune of a failed attempt. It contains the time of the next attempt, or null if the message is given up. */
export const failure = (
  attempt: Attempt,
  error: { readonly class: FailureClass; readonly message: string; readonly remedy: string },
  now: number
): RuneDraft => {
  const count = (attempt.batch.failure?.attempt ?? 0) + 1
  const isLast = attempt.batch.back !== undefined && count >= MAX_BACK
  const delay = isLast ? undefined : delayAfter(error.class, count)
  const isSilent = [...attempt.batch.alerts.values()].every(({ alert }) => alert.notice?.kind === "unsent")
  return resolved("alert.failed", attempt, {
    ...(isSilent ? { silent: true } : {}),
    attempt: count,
    class: error.class,
    permanent: error.class === "permanent",
    error: error.message,
    remedy: error.remedy,
    nextAt: delay === undefined ? null : now + delay
  })
}

/** The figures about alerts that `agentd status` prints. */
export const summary = (state: State) => ({
  waiting: state.batches.reduce((sum, batch) => sum + batch.alerts.size + batch.more, 0),
  /** Number of alerts that were given up. */
  failed: state.givenUp.reduce((sum, batch) => sum + batch.alerts.size + batch.more, 0),
  lastSentAt: state.lastSentAt,
  lastError: state.lastError,
  restsOn: state.restsOn
})
