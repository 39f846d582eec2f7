/**
 * AlertPolicy: which runes a person must hear of, and in which words.
 *
 * Pure and without any model: one table from a rune's kind to an alert or
 * nothing. Alerts with the same key are the same trouble and are told together.
 */
import { Option, Schema } from "effect"
import type { Rune } from "../event-log/Rune.ts"
import * as WorkerMachine from "../agents/WorkerMachine.ts"

/** Longest headline and reason, in characters: an alert is a rune and a subject line. */
const MAX_HEADLINE = 120
const MAX_REASON = 2000

export const Alert = Schema.Struct({
  /** What happened: `agent.stopped`, else the kind of the rune. */
  kind: Schema.String,
  /** Equal keys are one trouble. */
  key: Schema.String,
  /** Of the rune that caused it. */
  stream: Schema.String,
  actor: Schema.String,
  /** Of whom it tells, without its project: `builder`. */
  name: Schema.String,
  /** Fits a subject: `builder stopped: 5 errors in a row`. */
  headline: Schema.String,
  /** In plain words. */
  reason: Schema.String,
  /** What to do, where the rune says it. */
  remedy: Schema.NullOr(Schema.String),
  /** Counters, for those who have some. */
  errors: Schema.NullOr(Schema.Struct({ row: Schema.Int, all: Schema.Int })),
  runId: Schema.NullOr(Schema.String),
  /** The rune that caused it, the newest where it is there several times. */
  cause: Schema.Int,
  /** Its place in the stream; not there in alerts that an older agentd queued. */
  seq: Schema.optionalKey(Schema.Int),
  /** Of the cause, ms since the epoch. */
  at: Schema.Finite,
  /** So many equal ones. */
  count: Schema.Int
})
export type Alert = typeof Alert.Type

type Words = Pick<Alert, "headline" | "reason"> & Partial<Pick<Alert, "kind" | "key" | "remedy" | "errors" | "runId">>

const decodeEvent = Schema.decodeUnknownOption(WorkerMachine.Event)

const nameOf = (actor: string): string => actor.slice(actor.indexOf("/") + 1)

const text = (rune: Rune, field: string): string | undefined => {
  const value = rune.payload[field]
  return typeof value === "string" ? value : undefined
}

const count = (rune: Rune, field: string): number => {
  const value = rune.payload[field]
  return typeof value === "number" && Number.isInteger(value) ? value : 0
}

const Fatal = Schema.Struct({ message: Schema.String, remedy: Schema.NullOr(Schema.String) })
const decodeFatal = Schema.decodeUnknownOption(Fatal)

/** A worker that stopped for good; one that an operator stopped has no fatal reason. */
const stopped = (rune: Rune): Words | undefined => {
  if (rune.to !== "Stopped" || rune.from === "Stopped") return undefined
  const fatal = Option.getOrUndefined(decodeFatal(rune.payload["fatal"]))
  if (fatal === undefined) return undefined
  const event = Option.getOrUndefined(decodeEvent(rune.payload["event"]))
  return {
    kind: "agent.stopped",
    errors: { row: count(rune, "consecutiveErrors"), all: count(rune, "totalErrors") },
    // the reason's first clause; the rest is in the mail
    headline: `${nameOf(rune.actor)} stopped: ${fatal.message.split(";")[0]}`,
    reason: fatal.message,
    remedy: fatal.remedy,
    ...(event?._tag === "SessionExited" ? { runId: event.runId } : {})
  }
}

const violated = (rune: Rune): Words | undefined => {
  const severity = text(rune, "severity")
  if (severity === "WARN") return undefined
  const rule = text(rune, "rule") ?? "an invariant"
  return {
    key: `${rune.kind}:${rule}:${rune.stream}`,
    headline: `${rule} violated`,
    reason: text(rune, "message") ?? `${rule} does not hold`,
    remedy: "This is a fault in agentd or a damaged log: run agentd verify, and report it with its output."
  }
}

/** What the machines above the worker say in `event.reason` or not at all. */
const told =
  (what: string, who = "") =>
  (rune: Rune): Words => {
    const event = rune.payload["event"]
    const reason =
      text(rune, "reason") ??
      (typeof event === "object" && event !== null && "reason" in event && typeof event.reason === "string"
        ? event.reason
        : undefined)
    const name = `${who}${nameOf(rune.actor)}`
    return {
      headline: reason === undefined ? `${name} ${what}` : `${name} ${what}: ${reason}`,
      reason: reason ?? `${name} ${what}`
    }
  }

/** From wherever it is typed. */
const goalOf = (rune: Rune): string => `${rune.stream}/${nameOf(rune.actor)}`

const decodeCancel = Schema.decodeUnknownOption(Schema.TaggedStruct("user_cancel", { by: Schema.String }))

/** A goal that came to no good end; a person who cancels it knows. */
const planStopped = (rune: Rune): Words | undefined => {
  const by = Option.getOrUndefined(decodeCancel(rune.payload["event"]))?.by
  return by !== undefined && by !== "agentd"
    ? undefined
    : {
        ...told("stopped", "goal ")(rune),
        remedy: `See what was done: agentd goal show ${goalOf(rune)}\nTake it as it is: agentd goal merge ${goalOf(rune)} --unreviewed\nGive it anew: agentd goal "…"`
      }
}

/** An agent has a question; each is a trouble of its own. */
const asked = (rune: Rune): Words => {
  const name = nameOf(rune.actor)
  return {
    key: `${rune.kind}:${rune.stream}:${rune.eventId}`,
    headline: `${name} asks: ${text(rune, "question") ?? ""}`,
    reason: text(rune, "question") ?? "",
    remedy: `Answer it: agentd send ${rune.stream}/${name} "…"`
  }
}

const table: { readonly [kind: string]: (rune: Rune) => Words | undefined } = {
  "worker.moved": stopped,
  "invariant.violated": violated,
  "plan.stopped": planStopped,
  "plan.blocked": (rune) => ({
    ...told("is blocked", "goal ")(rune),
    remedy: `See what it needs: agentd goal show ${goalOf(rune)}\nLet it go on, with what failed tried again: agentd goal retry ${goalOf(rune)}\nGive it up: agentd goal cancel ${goalOf(rune)}`
  }),
  "session.suspended": (rune) => ({
    ...told("is suspended")(rune),
    remedy: `See its agents, and what their last turns came to: agentd ps\nOnce that is mended, or the budget raised, let it go on: agentd resume ${rune.stream}`
  }),
  // an agent that has spent its budget stops for good: its worker says so, with what helps
  "agent.asked": asked
}

/** The kinds that may be told. */
export const kinds: ReadonlyArray<string> = Object.keys(table)

const cut = (value: string, length: number): string =>
  value.length <= length ? value : `${value.slice(0, length - 1).toWellFormed()}…`

const line = (value: string): string => value.replaceAll(/\s+/g, " ").trim()

export const alertOf = (rune: Rune): Alert | undefined => {
  const words = table[rune.kind]?.(rune)
  if (words === undefined) return undefined
  const kind = words.kind ?? rune.kind
  return {
    kind,
    key: words.key ?? `${kind}:${rune.stream}/${rune.actor}`,
    stream: rune.stream,
    actor: rune.actor,
    name: nameOf(rune.actor),
    headline: cut(line(words.headline), MAX_HEADLINE),
    reason: cut(words.reason, MAX_REASON),
    remedy: words.remedy == null ? null : cut(words.remedy, MAX_REASON),
    errors: words.errors ?? null,
    runId: words.runId ?? null,
    cause: rune.eventId,
    seq: rune.seq,
    at: rune.at,
    count: 1
  }
}

/** Two of one key: the newer one's words, both counted. */
export const together = (older: Alert, newer: Alert): Alert => ({ ...newer, count: older.count + newer.count })
