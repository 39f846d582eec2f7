/**
 * Notice: the shape of a notification for a lock screen, a chat or a program: a title, a few sentences and one command.
 * Pure.
 *
 * Guarantees: a title is one line of at most 60 characters; no text can move a cursor or write from right to left; a
 * digest of many notices has their number and the titles of the first five.
 */
import { Schema } from "effect"
import { stripVTControlCharacters } from "node:util"
import { NOTICE_KINDS, type NoticeKind } from "../config/NotifyConfig.ts"
import type { GoalInfo } from "../domain/GoalMessages.ts"
import type { AgentInfo, CallInfo, PlateInfo } from "../domain/Messages.ts"
import type { Word } from "../domain/StatusWords.ts"

/** Maximum length of a title, in characters: a lock screen or a list of mails shows no more. */
export const TITLE = 60
const MAX_BODY = 2_000
/** Number of notices that a digest names. */
const NAMED = 5

export const URGENCIES = ["now", "soon", "digest"] as const
export type Urgency = (typeof URGENCIES)[number]

export const Notice = Schema.Struct({
  kind: Schema.Literals(NOTICE_KINDS),
  title: Schema.String,
  body: Schema.String,
  /** A command that can be run unchanged, from any folder. */
  command: Schema.String,
  urgency: Schema.Literals(URGENCIES),
  /** The subject of the notice: `call:…`, `agent:shop/builder`. Notice and answer are matched by subject. */
  about: Schema.String,
  /** The project's name for use in commands; null if the notice belongs to no project. */
  project: Schema.NullOr(Schema.String),
  /** Key of a fact about which only one notice is sent, even if other runes repeat it. If absent, each rune has one. */
  once: Schema.optionalKey(Schema.String)
})
export type Notice = typeof Notice.Type

/** Current facts that the rune does not contain. An omitted fact is unknown, or no longer true. */
export interface Facts {
  /** The project's name for use in commands. */
  readonly project: string
  readonly now: number
  readonly host: string
  /** The call that the rune is about, while it waits for approval. */
  readonly call?: CallInfo | undefined
  /** Number of other calls that wait for the user. */
  readonly waiting?: number
  readonly goal?: GoalInfo | undefined
  readonly plate?: PlateInfo | undefined
  readonly agent?: AgentInfo | undefined
  /** Names of the agent's sub-agents, at any depth, that are working or have work to do. */
  readonly working?: ReadonlyArray<string>
  /** Id of the agent's newest completed turn. */
  readonly turn?: string | undefined
  /** Number of agents that wait for a usage limit or for the network. */
  readonly held?: number
  /** The agent's last line of output. */
  readonly last?: string | undefined
  /** Effects of a changed config, the most dangerous first. */
  readonly effects?: ReadonlyArray<string>
  /** Present if the previous daemon was killed. `at`: time of its last rune, in ms since the epoch. */
  readonly killed?: { readonly at: number } | undefined
}

/** Title, text and command of a notice. The kind sets the urgency. `isWhole`: the notice belongs to no project. */
export type Words = Omit<Notice, "project" | "urgency"> & { readonly isWhole?: boolean }

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

/** The subject of notices about an agent. */
export const agentOf = (stream: string, name: string): string => `agent:${stream}/${name}`

/** The subject of notices about a whole project. */
export const projectOf = (stream: string): string => `project:${stream}`

/**
 * Whether the notice needs an answer. If it is answered elsewhere, it is withdrawn; if nobody answers, further channels
 * send it. A suspended project needs an answer; an exceeded daily budget does not.
 */
export const asks = ({ about, kind }: Pick<Notice, "about" | "kind">): boolean =>
  kinds[kind].word === "needs you" && (kind !== "budget" || about.startsWith(projectOf("")))

// oxlint-disable-next-line no-control-regex
const HARMFUL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/gu

/** Removes control characters, but keeps line breaks. */
export const clean = (text: string): string =>
  stripVTControlCharacters(text).replaceAll("\t", " ").replaceAll(HARMFUL, " ").toWellFormed()

/** Makes text one line without control characters. */
export const line = (text: string): string => clean(text).replaceAll(/\s+/gu, " ").trim()

/** Cuts long text at its end, because the name and the verb are at its beginning. */
export const fit = (text: string, most: number = TITLE): string =>
  text.length <= most
    ? text
    : `${text
        .slice(0, most - 1)
        .toWellFormed()
        .replace(/\uFFFD$/u, "")
        .trimEnd()}…`

/** Makes a notice from untrusted text: removes control characters and cuts long text. */
export const of = (raw: Notice): Notice => ({
  ...raw,
  title: fit(line(raw.title)),
  body: fit(clean(raw.body).trim(), MAX_BODY),
  command: line(raw.command)
})

type Told = Pick<Notice, "body" | "command" | "title" | "urgency">

/** Combines many notices into one. It lists the urgent ones first, names the first five, and has one command. */
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
