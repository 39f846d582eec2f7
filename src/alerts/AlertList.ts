/**
 * AlertList: the list of alerts, newest first, with the state of each: sent, waiting, failed or given up. Pure:
 * computed from the outbox's state, the runes that queued alerts, and the runes of sent messages and of answers.
 *
 * Guarantees: equal alerts in one message are one row. Every alert in the outbox is in the list, however old. An alert
 * that has left the outbox is listed as sent, unless the outbox says that it was given up.
 */
import type { AlertRow } from "../domain/AlertMessages.ts"
import { troubles } from "../domain/ProviderStatus.ts"
import type { Rune } from "../core/event-log/Rune.ts"
import * as AlertKinds from "./AlertKinds.ts"
import { type Alert, together } from "./Alert.ts"
import * as AnsweredNotices from "./AnsweredNotices.ts"
import { departures, type Way } from "./SendTimes.ts"
import * as Notice from "./Notice.ts"
import * as Outbox from "./Outbox.ts"

export interface Given {
  readonly state: Outbox.State
  /** The newest runes of the kinds `alert.queued`, `alert.sent` and `alert.answered`, oldest first. */
  readonly runes: ReadonlyArray<Pick<Rune, "at" | "eventId" | "kind" | "payload">>
  /** Names of projects by their streams. */
  readonly projects: ReadonlyMap<string, string>
  /** Addresses to which the current config mails the alerts of each stream. */
  readonly mailed: ReadonlyMap<string, ReadonlyArray<string>>
  /** The way in which a message would be sent now; undefined if nothing is configured for it. */
  readonly wayOf: (batch: Outbox.Batch) => Way | undefined
  readonly now: number
}

interface Sent {
  readonly at: number
  readonly to: ReadonlyArray<string>
  readonly rejected: ReadonlyArray<string>
}

const FAILED = new Set(["agent.stopped", "plan.stopped", "invariant.violated"])

const wordOf = ({ headline, kind }: Alert): AlertRow["word"] => {
  if (kind === "provider.recovered") return "done"
  if (kind === "provider.lasting" && !headline.endsWith(troubles.LoginNeeded)) return "waiting"
  return FAILED.has(kind) ? "failed" : "needs you"
}

export const streamOf = (alert: Alert): string => alert.of ?? alert.stream

const whose = (alert: Alert, machine: string, project: string | undefined): string | null =>
  alert.actor.startsWith(`${machine}/`) ? `${project ?? alert.stream}/${alert.name}` : null

type Standing = Pick<AlertRow, "attempts" | "error" | "nextAt" | "rejected" | "sentAt" | "state" | "to">

const NOT_YET = { rejected: [], sentAt: null, attempts: 0, error: null, nextAt: null }

const standingOf = (
  { mailed, state, wayOf }: Given,
  batch: Outbox.Batch,
  alert: Alert,
  leaves: ReadonlyMap<string, number>
): Standing => {
  const { channel, failure } = batch
  const to = channel === undefined ? (batch.to ?? mailed.get(streamOf(alert))) : [channel]
  const failed = failure === null ? {} : { attempts: failure.attempt, error: failure.error }
  if (state.givenUp.includes(batch)) return { ...NOT_YET, ...failed, state: "given up", to: to ?? [] }
  if (to === undefined || wayOf(batch) === undefined) return { ...NOT_YET, ...failed, state: "nobody", to: [] }
  const nextAt = leaves.get(batch.id) ?? null
  return { ...NOT_YET, ...failed, state: failure === null ? "waiting" : "failed", to, nextAt }
}

/** A sentence about who answered the notice's question; undefined while it is unanswered. */
const overSince = ({ runes }: Given, { at, notice }: Alert): string | undefined => {
  if (notice === undefined || !Notice.asks(notice)) return undefined
  for (const any of runes) {
    const rune = AlertKinds.readAlert(any)
    if (rune?.kind === "alert.answered" && rune.payload.about === notice.about && rune.payload.at >= at)
      return AnsweredNotices.words(rune.payload)
  }
  return undefined
}

const rowOf = (given: Given, alert: Alert, standing: Standing): AlertRow => {
  const project = given.projects.get(streamOf(alert))
  const over = overSince(given, alert)
  return {
    at: alert.at,
    word: wordOf(alert),
    kind: alert.kind,
    project: project ?? null,
    agent: whose(alert, "worker", project),
    goal: whose(alert, "plan", project),
    subject: alert.headline,
    reason: alert.reason,
    // commands use the project's name, not its stream; after an answer, the remedy's commands are not needed
    remedy:
      over !== undefined
        ? over
        : project === undefined
          ? alert.remedy
          : (alert.remedy?.replaceAll(`${alert.stream}/`, `${project}/`) ?? null),
    count: alert.count,
    restsOn: alert.cause,
    ...standing
  }
}

/** Alerts that are no longer in the outbox: one row for each combination of batch and key. */
const gone = (given: Given, kept: ReadonlySet<string>): ReadonlyArray<AlertRow> => {
  const alerts = new Map<string, { readonly batch: string; readonly alert: Alert }>()
  const sent = new Map<string, Sent>()
  for (const any of given.runes) {
    const rune = AlertKinds.readAlert(any)
    if (rune?.kind === "alert.sent") {
      const { batch, rejected, to } = rune.payload
      // a retry for some recipients counts as part of its original message
      const whole = Outbox.wholeOf(batch)
      const { to: had = [], rejected: not = [] } = sent.get(whole) ?? {}
      sent.set(whole, { at: rune.at, to: [...new Set([...had, ...to])], rejected: [...new Set([...not, ...rejected])] })
    }
    if (rune?.kind === "alert.answered" || rune?.kind === "alert.overtaken") {
      // alerts that were dropped before they were sent reached nobody
      const { about, drops } = rune.payload
      const kind = rune.kind === "alert.overtaken" ? rune.payload.kind : undefined
      for (const [id, { alert, batch }] of alerts) {
        const isMeant = alert.notice?.about === about && (kind === undefined || alert.notice.kind === kind)
        if (isMeant && drops.includes(batch) && !sent.has(batch)) alerts.delete(id)
      }
    }
    if (rune?.kind !== "alert.queued" || kept.has(rune.payload.batch)) continue
    const { alert, batch } = rune.payload
    const id = JSON.stringify([batch, alert.key])
    const before = alerts.get(id)
    alerts.set(id, { batch, alert: before === undefined ? alert : together(before.alert, alert) })
  }
  return [...alerts.values()].map(({ alert, batch }) => {
    const { at = null, rejected = [], to = [] } = sent.get(batch) ?? {}
    return rowOf(given, alert, { ...NOT_YET, state: "sent", sentAt: at, to, rejected })
  })
}

/** Merges the rows of an alert that several channels send, if these rows have the same state and error. */
const merged = (rows: ReadonlyArray<AlertRow>): ReadonlyArray<AlertRow> => {
  const byMatter = new Map<string, AlertRow>()
  for (const row of rows) {
    const { error, restsOn, state, subject } = row
    const matter = JSON.stringify([restsOn, subject, state, error])
    const before = byMatter.get(matter)
    byMatter.set(
      matter,
      before === undefined
        ? row
        : {
            ...before,
            to: [...new Set([...before.to, ...row.to])],
            rejected: [...new Set([...before.rejected, ...row.rejected])],
            attempts: Math.max(before.attempts, row.attempts),
            sentAt: before.sentAt === null ? row.sentAt : Math.max(before.sentAt, row.sentAt ?? 0),
            nextAt: before.nextAt === null ? row.nextAt : Math.min(before.nextAt, row.nextAt ?? before.nextAt)
          }
    )
  }
  return [...byMatter.values()]
}

const isOpen = ({ state }: AlertRow): boolean => state === "failed" || state === "given up"

/** The list of alerts. `failed`: lists only alerts that could not be sent or were given up. */
export const listOf = (given: Given, options: { readonly count: number; readonly failed: boolean }) => {
  const { batches, givenUp } = given.state
  const all = [...batches, ...givenUp]
  const leaves = departures(given.state, given.wayOf, given.now)
  const there = all.flatMap((batch) =>
    [...batch.alerts.values()].map(({ alert }) => rowOf(given, alert, standingOf(given, batch, alert, leaves)))
  )
  const rows = [...there, ...gone(given, new Set(all.map(({ id }) => id)))]
  return merged(rows)
    .filter((row) => !options.failed || isOpen(row))
    .toSorted((a, b) => b.at - a.at || b.restsOn - a.restsOn)
    .slice(0, options.count)
}
