/**
 * Route: decides where an alert is sent, and when, under the current config. Pure.
 *
 * Guarantees: the name of a destination changes when its config changes. In quiet hours a channel sends only notices of
 * the excepted kinds. These have their own destination, so that no waiting notice is sent with them.
 */
import { createHash } from "node:crypto"
import { Duration } from "effect"
import type { MailConfig } from "../config/Config.ts"
import { type ChannelConfig, channelsFor, type NotifyConfig, type QuietConfig } from "../config/NotifyConfig.ts"
import type { Way } from "./SendTimes.ts"
import * as Notice from "./Notice.ts"
import type * as Outbox from "./Outbox.ts"
import * as Smtp from "./Smtp.ts"

const named = (parts: unknown): string => createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 16)

/** A name for the recipients, sender and server in a mail section. It changes when any of these changes. */
export const destinationOf = (mail: MailConfig): string => named([Smtp.recipients(mail), mail.from, mail.smtp])

export const ofMail = (mail: MailConfig): Outbox.Route => ({
  destination: destinationOf(mail),
  digestWindow: Duration.toMillis(mail.digestWindow),
  maxPerHour: mail.maxPerHour
})

/** Suffix of destinations to which messages are sent even in quiet hours. */
const EXCEPTED = "/excepted"

/** Suffix of destinations for notices that the user postponed. Each such message has its own destination. */
const LATER = "/later-"

/** Matches the suffixes at the end of a destination. */
const OWN_WAY = new RegExp(`(${LATER}[^/]*)?(${EXCEPTED})?$`, "u")

/** The destination of a channel. `before`: the destination when the alert was queued, whose suffixes are preserved. */
export const destinationOfChannel = (name: string, config: ChannelConfig, before = ""): string =>
  `${name}/${named(config)}${OWN_WAY.exec(before)?.[0] ?? ""}`

const minutesOf = (time: string): number => Number(time.slice(0, 2)) * 60 + Number(time.slice(3))

const minuteOfDay = (now: number, timeZone: string | undefined): number => {
  const parts = new Intl.DateTimeFormat("en-GB", {
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
    ...(timeZone === undefined ? {} : { timeZone })
  }).formatToParts(now)
  const part = (type: string) => Number(parts.find((one) => one.type === type)?.value)
  return part("hour") * 60 + part("minute")
}

/** Whether a time is in quiet hours. If `from` and `to` are equal, no time is. */
export const isQuiet = ({ from, timeZone, to }: Omit<QuietConfig, "except">, now: number): boolean => {
  const [begin, end, at] = [minutesOf(from), minutesOf(to), minuteOfDay(now, timeZone)]
  return begin <= end ? begin <= at && at < end : begin <= at || at < end
}

const DAY = 24 * 60
const MINUTE = 60_000

/** If a time is in quiet hours, returns the end of these hours; otherwise returns the time unchanged. */
export const quietUntil = (quiet: Omit<QuietConfig, "except">, now: number): number => {
  if (!isQuiet(quiet, now)) return now
  const end = minutesOf(quiet.to)
  const minutes = (end - minuteOfDay(now, quiet.timeZone) + DAY) % DAY
  const at = Math.floor(now / MINUTE) * MINUTE + minutes * MINUTE
  // summer time can begin or end before the end of the quiet hours
  const off = ((end - minuteOfDay(at, quiet.timeZone) + DAY * 1.5) % DAY) - DAY / 2
  return at + off * MINUTE
}

/** Whether quiet hours hold back messages to the destination now. */
export const isHeld = ({ quietHours }: NotifyConfig, destination: string, now: number): boolean =>
  quietHours !== undefined && !destination.endsWith(EXCEPTED) && isQuiet(quietHours, now)

export const wayOfMail = (mail: MailConfig): Way => ({ destination: destinationOf(mail), maxPerHour: mail.maxPerHour })

/** How a channel sends a batch. A withdrawal, or a message of a removed channel, keeps its destination. */
export const wayOfChannel = (
  { back, destination: queued, to }: Outbox.Batch,
  name: string,
  notify: NotifyConfig
): Way & { readonly config: ChannelConfig | undefined } => {
  const { maxPerHour, quietHours } = notify
  const whole = notify.channels[name]
  const config = whole && mailingTo(whole, to)
  const isAsQueued = config === undefined || back !== undefined
  const way = { config, maxPerHour, destination: isAsQueued ? queued : destinationOfChannel(name, config, queued) }
  return quietHours === undefined || back !== undefined || queued.endsWith(EXCEPTED)
    ? way
    : { ...way, quietUntil: (at) => quietUntil(quietHours, at) }
}

/** Time that the first notice of a message waits for others, in ms. */
const settleOf = ({ digestEvery, digestWindow }: NotifyConfig, urgency: Notice.Urgency): number => {
  const window = Duration.toMillis(digestWindow)
  // urgent notices wait only a moment, so that notices at the same time become one message
  if (urgency === "now") return Math.min(SETTLE, window)
  return urgency === "soon" ? window : Math.max(window, Duration.toMillis(digestEvery))
}

const SETTLE = 2_000

export const ofChannel = (notify: NotifyConfig, name: string, notice: Notice.Notice, now: number): Outbox.Route => {
  const { maxPerHour, quietHours } = notify
  const quiet = quietHours !== undefined && isQuiet(quietHours, now)
  const isExcepted = quiet && quietHours.except.includes(notice.kind)
  return {
    destination: destinationOfChannel(name, notify.channels[name]!, isExcepted ? EXCEPTED : ""),
    channel: name,
    digestWindow: Duration.toMillis(notify.digestWindow),
    maxPerHour,
    settle: settleOf(notify, notice.urgency),
    isHeld: quiet && !isExcepted
  }
}

/** The channel's config. For a mail channel, the addresses in `to` replace those in the config, if `to` is defined. */
export const mailingTo = (config: ChannelConfig, to: ReadonlyArray<string> | undefined): ChannelConfig =>
  config.type === "mail" && to !== undefined ? { ...config, to } : config

export interface Mailed {
  readonly notice: Notice.Notice
  /** The mail section that mails the same alert, and the user's own mail section (`own`), which mail channels use. */
  readonly section: MailConfig
  readonly own: MailConfig | undefined
  readonly routes: ReadonlyArray<Outbox.Route>
}

/**
 * The routes of an alert that both a mail section and channels can send, and whether the section still mails it. No
 * address gets two mails about one alert. The section's mail is preferred, because it has the events that led to the
 * alert. If the notice asks for an answer, the channel's mail is preferred, because it can be withdrawn.
 */
export const mailedOnce = (notify: NotifyConfig, { notice, own, routes, section }: Mailed) => {
  const known = (address: string): string => address.toLowerCase()
  const bySection = new Set(Smtp.recipients(section).map(known))
  const ways = routes.map((route) => {
    const config = route.channel === undefined ? undefined : notify.channels[route.channel]
    const to = config?.type !== "mail" ? undefined : (config.to ?? (own === undefined ? [] : Smtp.recipients(own)))
    return { route, config, to }
  })
  if (Notice.asks(notice)) {
    const byChannel = ways.flatMap(({ route, to = [] }) => (route.isHeld === true ? [] : to.map(known)))
    return { routes, isMailed: !bySection.isSubsetOf(new Set(byChannel)) }
  }
  const left = ways.flatMap(({ config, route, to = [] }) => {
    const others = to.filter((address) => !bySection.has(known(address)))
    if (config?.type !== "mail" || others.length === to.length) return [route]
    if (others.length === 0) return []
    const destination = destinationOfChannel(route.channel!, mailingTo(config, others), route.destination)
    return [{ ...route, to: others, destination }]
  })
  return { routes: left, isMailed: true }
}

/** The route of a postponed notice, which is sent again after `after` ms, in a separate message. */
export const later = (
  notify: NotifyConfig,
  name: string,
  notice: Notice.Notice,
  { after, message, now }: { readonly after: number; readonly message: string; readonly now: number }
): Outbox.Route => {
  const route = ofChannel(notify, name, notice, now + after)
  const destination = destinationOfChannel(
    name,
    notify.channels[name]!,
    `${LATER}${message}${route.destination.endsWith(EXCEPTED) ? EXCEPTED : ""}`
  )
  return { ...route, destination, digestWindow: 0, settle: after, isHeld: false, isPutOff: true }
}

export const ofNotice = (notify: NotifyConfig, notice: Notice.Notice, now: number): ReadonlyArray<Outbox.Route> =>
  channelsFor(notify, notice.kind)
    // a channel cannot report its own failure
    .filter((name) => notice.about !== `channel:${name}`)
    .map((name) => ofChannel(notify, name, notice, now))
