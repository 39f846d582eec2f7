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
import type { GoalInfo } from "../domain/GoalMessages.ts"
import type { AgentInfo, CallInfo, PlateInfo } from "../domain/Messages.ts"
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

/** Facts of the moment that a rune does not say; what is left out is not known, or is over. */
export interface Facts {
  /** How commands name its project. */
  readonly project: string
  readonly now: number
  readonly host: string
  /** The call that it is about, while it waits. */
  readonly call?: CallInfo | undefined
  /** Number of other calls that wait for a person. */
  readonly waiting?: number
  readonly goal?: GoalInfo | undefined
  readonly plate?: PlateInfo | undefined
  readonly agent?: AgentInfo | undefined
  /** Of the agent, its sub-agents, and theirs: those that work or have work. */
  readonly working?: ReadonlyArray<string>
  /** The agent's newest turn that came to its end. */
  readonly turn?: string | undefined
  /** Agents that wait for the account. */
  readonly held?: number
  /** The last line that it has said. */
  readonly last?: string | undefined
  /** Effects of a changed config, the dangerous first. */
  readonly effects?: ReadonlyArray<string>
  /** The daemon before this one was killed then, ms since the epoch; left out: there was none, or it was asked to end. */
  readonly killed?: { readonly at: number } | undefined
}

/** The words of a notice; its urgency is that of its kind. `isWhole`: it is of no project. */
export type Words = Omit<Notice, "project" | "urgency"> & { readonly isWhole?: boolean }

/** Each kind: its word on the board, and its urgency. */
export const kinds: { readonly [kind in NoticeKind]: { readonly word: Word; readonly urgency: Urgency } } = {
  needsYou: { word: "needs you", urgency: "now" },
  question: { word: "needs you", urgency: "now" },
  failed: { word: "failed", urgency: "soon" },
  goalMet: { word: "done", urgency: "soon" },
  goalBlocked: { word: "needs you", urgency: "now" },
  goalStopped: { word: "failed", urgency: "soon" },
  planReady: { word: "needs you", urgency: "now" },
  budget: { word: "needs you", urgency: "now" },
  budgetNear: { word: "working", urgency: "digest" },
  limit: { word: "waiting", urgency: "digest" },
  outage: { word: "waiting", urgency: "digest" },
  recovered: { word: "done", urgency: "digest" },
  daemonBack: { word: "done", urgency: "soon" },
  configHeld: { word: "needs you", urgency: "soon" },
  configBroken: { word: "needs you", urgency: "soon" },
  invariant: { word: "failed", urgency: "now" },
  unsent: { word: "failed", urgency: "soon" },
  done: { word: "done", urgency: "soon" }
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
  kinds[kind].word === "needs you" && (kind !== "budget" || about.startsWith(projectOf("")))

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
