/**
 * Notice: the shape of what a person is told on a lock screen, in a chat, by a program: a title, a few sentences, one
 * command. Pure.
 *
 * Guarantees: a title has at most 60 characters and is one line; no text can move a cursor or write from right to
 * left; many notices are one, counted, with the first five named.
 */
import { Schema } from "effect"
import { stripVTControlCharacters } from "node:util"
import { NOTICE_KINDS, type NoticeKind } from "../config/NotifyConfig.ts"
import type { Word } from "../domain/Words.ts"

/** Characters of a title: a lock screen and a list of mails show them whole. */
export const TITLE = 60
const MAX_BODY = 2_000
/** Notices of a digest that are named. */
const NAMED = 5

export const URGENCIES = ["now", "soon", "digest"] as const
export type Urgency = (typeof URGENCIES)[number]

export const Notice = Schema.Struct({
  kind: Schema.Literals(NOTICE_KINDS),
  title: Schema.String,
  body: Schema.String,
  /** Works as it stands, from any folder. */
  command: Schema.String,
  urgency: Schema.Literals(URGENCIES),
  /** The thing that it is about: `call:…`, `agent:shop/builder`. An answer names the same. */
  about: Schema.String,
  /** How commands name its project; null: it is of none. */
  project: Schema.NullOr(Schema.String),
  /** The name of a fact that is told once, whatever rune says it again; not there: each rune of it is news. */
  once: Schema.optionalKey(Schema.String)
})
export type Notice = typeof Notice.Type

export const wordOf: { readonly [kind in NoticeKind]: Word } = {
  needsYou: "needs you",
  question: "needs you",
  failed: "failed",
  goalMet: "done",
  goalBlocked: "needs you",
  goalStopped: "failed",
  planReady: "needs you",
  budget: "needs you",
  budgetNear: "working",
  limit: "waiting",
  outage: "waiting",
  recovered: "done",
  daemonBack: "done",
  configHeld: "needs you",
  configBroken: "needs you",
  invariant: "failed",
  unsent: "failed",
  done: "done"
}

/** The thing that notices of an agent are about. */
export const agentOf = (stream: string, name: string): string => `agent:${stream}/${name}`

/** The thing that notices of a whole project are about. */
export const projectOf = (stream: string): string => `project:${stream}`

/**
 * Asked once, and then over: an answer elsewhere withdraws it, and nobody's answer is told on. A project that is
 * suspended waits for a person; a budget of a day that is spent does not.
 */
export const asks = ({ about, kind }: Pick<Notice, "about" | "kind">): boolean =>
  wordOf[kind] === "needs you" && (kind !== "budget" || about.startsWith(projectOf("")))

// oxlint-disable-next-line no-control-regex
const HARMFUL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/gu

/** Lines without control characters. */
export const clean = (text: string): string =>
  stripVTControlCharacters(text).replaceAll("\t", " ").replaceAll(HARMFUL, " ").toWellFormed()

/** A line without control characters. */
export const line = (text: string): string => clean(text).replaceAll(/\s+/gu, " ").trim()

/** The name and the verb stand in front, so the end may go. */
export const fit = (text: string, most: number = TITLE): string =>
  text.length <= most
    ? text
    : `${text
        .slice(0, most - 1)
        .toWellFormed()
        .replace(/\uFFFD$/u, "")
        .trimEnd()}…`

/** A notice of texts that may be anybody's. */
export const of = (raw: Notice): Notice => ({
  ...raw,
  title: fit(line(raw.title)),
  body: fit(clean(raw.body).trim(), MAX_BODY),
  command: line(raw.command)
})

type Told = Pick<Notice, "body" | "command" | "title" | "urgency">

/** Many at once are one: the pressing ones first, the first five named, one command. */
export const digest = (all: ReadonlyArray<Told>, more = 0): Told => {
  const pressing = all.filter(({ urgency }) => urgency === "now")
  const rest = all.filter(({ urgency }) => urgency !== "now")
  const count = all.length + more
  const named = [...pressing, ...rest].slice(0, NAMED).map(({ title }) => `  - ${title}`)
  const left = count - named.length
  return {
    title: fit(
      `agentd: ${count} notices${pressing.length > 0 ? `, ${pressing.length} ${pressing.length === 1 ? "needs" : "need"} you` : ""}`
    ),
    urgency: pressing.length > 0 ? "now" : all.some(({ urgency }) => urgency === "soon") ? "soon" : "digest",
    body: [...named, ...(left > 0 ? [`  and ${left} more`] : [])].join("\n"),
    command: pressing.length > 0 ? "agentd waiting" : "agentd alert ls"
  }
}
