/**
 * HistoryView: collects users' requests and their outcomes from runes: messages to agents, posts in channels, goals,
 * and answers to calls and plans. Pure except for its memory of open items.
 *
 * Guarantees: messages from agents and from agentd itself are left out. Each request is one row, with a status word.
 * The length of the text and the number of stored items are limited.
 */
import { OWN } from "../../agents/machines/ToolResult.ts"
import { agentOf, ConversationView, type Item, textOf } from "../../board/ConversationView.ts"
import { channelKinds } from "../../channels/ChannelKinds.ts"
import { isAssistant, isPerson } from "../../domain/MessageFrame.ts"
import { LOOKS, type Word } from "../../domain/StatusWords.ts"
import { reader } from "../../core/event-log/EventKinds.ts"
import type { Rune } from "../../core/event-log/Rune.ts"
import { goalKinds } from "../../goals/GoalKinds.ts"
import { type Field, moment } from "../render/Csv.ts"
import { type Cell, clock, cut, lookColour, plain, table } from "../render/Output.ts"

export interface AskedRow {
  /** Time of the request, in ms since the epoch. */
  readonly at: number
  readonly by: string
  readonly what: "message" | "post" | "goal" | "answer"
  readonly conversation: string
  /** Recipient of the request: the agent, the goal, or the channel with its `#`. */
  readonly to: string
  readonly text: string
  /** Status of the request. A post in a channel is "done" immediately. */
  readonly word: Word
  readonly detail: string
  readonly eventId: number
}

const MOVES = ["goal_received", "approved", "rejected", "blocked", "unblocked", "goal_met", "stopped"]

export const KINDS: ReadonlyArray<string> = [
  ...["received", "withdrawn", "dropped", "asked_again", "dismissed", "rested"].map((name) => `inbox.${name}`),
  ...["started", "completed", "interrupted", "error"].map((name) => `turn.${name}`),
  ...["call", "approved", "denied", "result"].map((name) => `tool.${name}`),
  ...MOVES.map((name) => `plan.${name}`),
  "channel.posted"
]

const kinds = { ...goalKinds, ...channelKinds }
const read = reader(kinds)

/** Maximum length of the text in a row, and of a shortened text, both in characters. */
const LONG = 2_000
const SHORT = 200
/** Maximum number of open items. If there are more, the oldest is discarded. */
const MAX_OPEN = 10_000

const asksAsPerson = (from: string): boolean => from === "http" || isAssistant(from) || isPerson(from)

const brief = (text: string): string => cut(plain(text.slice(0, LONG)), SHORT)

/** A map that discards its oldest entry when it has more than MAX_OPEN. */
class Recent<V> {
  private readonly all = new Map<string, V>()

  get(key: string): V | undefined {
    return this.all.get(key)
  }

  set(key: string, value: V): void {
    this.all.set(key, value)
    const [oldest] = this.all.keys()
    if (this.all.size > MAX_OPEN && oldest !== undefined) this.all.delete(oldest)
  }

  delete(key: string): void {
    this.all.delete(key)
  }
}

type Mutable = { -readonly [F in keyof AskedRow]: AskedRow[F] }

export class HistoryView {
  private readonly rowsByKey = new Map<string, Mutable>()
  private readonly most: number
  private readonly views = new Recent<ConversationView>()
  /** For each turn: ids of the messages that the turn answers. */
  private readonly carried = new Recent<ReadonlyArray<string>>()
  private readonly calls = new Recent<{ readonly text: string; readonly turn: string }>()
  /**
   * For each turn that has a call result: the number of expired calls, and whether any other call was answered or ran.
   */
  private readonly turns = new Recent<{ expired: number; ran: boolean }>()

  /** `most`: maximum number of rows. If there are more, the oldest rows are discarded. */
  constructor(most: number) {
    this.most = most
  }

  /** The rows, oldest first. */
  get rows(): ReadonlyArray<AskedRow> {
    return [...this.rowsByKey.values()]
  }

  feed(any: Rune): void {
    for (const item of this.viewOf(any).feed(any)) this.take(any, item)
    const rune = read(any)
    if (rune?.kind === "channel.posted") {
      const { by, from, text } = rune.payload
      const to = `#${agentOf(any)}`
      if (by === "person")
        this.add(`${any.eventId}`, any, { by: from, what: "post", to, text, word: "done", detail: "posted" })
    } else if (rune?.kind.startsWith("plan.") === true) this.goal(any)
  }

  private viewOf(any: Rune): ConversationView {
    const key = `${any.stream}/${agentOf(any)}`
    const view = this.views.get(key) ?? new ConversationView()
    this.views.set(key, view)
    return view
  }

  private take(any: Rune, item: Item): void {
    const { stream } = any
    switch (item.is) {
      case "begin":
        if (item.isRun) return
        this.carried.set(`${stream}/${item.turnId}`, item.messageIds)
        return this.settle(stream, item.messageIds, "working", "its turn is in progress")
      case "over":
        return this.over(any, item)
      case "message": {
        if (!asksAsPerson(item.by)) return
        const row = { by: item.by, what: "message", to: agentOf(any), text: item.text, word: "waiting" } as const
        return this.add(`${stream}/${item.id}`, any, { ...row, detail: "" })
      }
      case "inbox":
        return this.inbox(stream, item)
      case "call":
      case "answered":
      case "result":
        return this.call(any, item)
    }
  }

  private over(any: Rune, { how, isAgain, output, turnId }: Extract<Item, { readonly is: "over" }>): void {
    switch (how) {
      case "completed": {
        const { expired, ran } = this.turns.get(`${any.stream}/${turnId}`) ?? { expired: 0, ran: true }
        const without = expired === 0 ? "" : `${expired === 1 ? "a call" : `${expired} calls`} expired; `
        return this.ended(any, turnId, ran ? "done" : "failed", without + brief(output))
      }
      case "interrupted": {
        const [word, more] = isAgain ? (["waiting", "; queued again"] as const) : (["done", ""] as const)
        return this.ended(any, turnId, word, `interrupted: ${brief(output)}${more}`)
      }
      case "failed":
        return this.ended(any, turnId, isAgain ? "retrying" : "failed", brief(output))
    }
  }

  private add(
    key: string,
    { at, eventId, stream }: Rune,
    row: Omit<AskedRow, "at" | "conversation" | "eventId">
  ): void {
    this.rowsByKey.set(key, { ...row, text: row.text.slice(0, LONG).toWellFormed(), at, conversation: stream, eventId })
    const [oldest] = this.rowsByKey.keys()
    if (this.rowsByKey.size > this.most && oldest !== undefined) this.rowsByKey.delete(oldest)
  }

  private settle(stream: string, ids: ReadonlyArray<string>, word: Word, detail: string): void {
    for (const id of ids) {
      const row = this.rowsByKey.get(`${stream}/${id}`)
      if (row !== undefined) Object.assign(row, { word, detail })
    }
  }

  private ended({ stream }: Rune, turn: string, word: Word, detail: string): void {
    const key = `${stream}/${turn}`
    this.settle(stream, this.carried.get(key) ?? [], word, detail)
    this.carried.delete(key)
  }

  private inbox(stream: string, { did, messages, text }: Extract<Item, { readonly is: "inbox" }>): void {
    for (const { from, to } of messages) {
      const row = this.rowsByKey.get(`${stream}/${from}`)
      if (did === "asked again" && row !== undefined && to !== undefined) {
        this.rowsByKey.delete(`${stream}/${from}`)
        this.rowsByKey.set(`${stream}/${to}`, Object.assign(row, { word: "waiting", detail: text }))
      } else this.settle(stream, [from], did === "dropped" ? "failed" : "done", brief(text))
    }
  }

  private call(any: Rune, item: Extract<Item, { readonly is: "answered" | "call" | "result" }>): void {
    const key = `${any.stream}/${agentOf(any)}/${item.id}`
    if (item.is === "call") {
      const turn = item.turnId === "" ? "" : `${any.stream}/${item.turnId}`
      return this.calls.set(key, { turn, text: `${brief(item.tool)} ${brief(textOf(item.input))}` })
    }
    if (item.is === "answered") {
      const { answers, by, isAllowed, reason } = item
      if (by === OWN || !asksAsPerson(by)) return
      const said = answers === undefined ? "allowed" : `answered: ${answers.map(brief).join("; ")}`
      return this.answered(any, key, by, isAllowed ? "working" : "done", isAllowed ? said : `denied: ${brief(reason)}`)
    }
    const row = this.rowsByKey.get(key)
    this.resulted(any, key, item.isExpired)
    if (row?.word === "working")
      Object.assign(row, {
        word: item.status === "success" || item.status === "cancelled" ? "done" : "failed",
        detail: `${row.detail}; result of the call: ${item.status}`
      })
    this.calls.delete(key)
  }

  private resulted(any: Rune, key: string, isExpired: boolean): void {
    const turn = this.calls.get(key)?.turn ?? ""
    const { expired, ran } = this.turns.get(turn) ?? { expired: 0, ran: false }
    this.turns.set(turn, { expired: expired + (isExpired ? 1 : 0), ran: ran || !isExpired })
    if (isExpired)
      this.answered(any, key, "nobody", "failed", "expired: nobody answered in time, so the call was denied")
  }

  private answered(any: Rune, key: string, by: string, word: Word, detail: string): void {
    const text = this.calls.get(key)?.text ?? "a call"
    this.add(key, any, { by, what: "answer", to: agentOf(any), text, word, detail })
  }

  private goal(any: Rune): void {
    const rune = read(any)
    if (rune === undefined || !("event" in rune.payload)) return
    const { event } = rune.payload
    const to = agentOf(any)
    const key = `${rune.stream}/plan/${to}`
    const decided = (by: string, detail: string) =>
      this.add(`${any.eventId}`, any, { by, what: "answer", to, text: "its plan", word: "done", detail })
    const stands = (word: Word, detail: string) => {
      const row = this.rowsByKey.get(key)
      if (row !== undefined) Object.assign(row, { word, detail })
    }
    switch (event._tag) {
      case "goal_submitted":
        if (asksAsPerson(event.by))
          this.add(key, any, { by: event.by, what: "goal", to, text: event.goal, word: "working", detail: "" })
        return
      case "plan_approved":
        return decided(event.by, "allowed")
      case "plan_rejected":
        return decided(event.by, `rejected: ${brief(event.reason)}`)
      case "user_cancel":
        return stands("stopped", `cancelled by ${event.by}: ${brief(event.reason)}`)
      case "critique_passed":
        return stands("done", brief(event.summary))
      case "dependency_resolved":
        return stands("working", `continues: ${brief(event.reason)}`)
    }
    if (rune.to === "blocked") return stands("needs you", "reason" in event ? brief(event.reason ?? "") : "")
    if (rune.to === "stopped") stands("failed", "reason" in event ? brief(event.reason ?? "") : "")
  }
}

export type Named = AskedRow & { readonly name: string }

export const FIELDS: ReadonlyArray<Field<Named>> = [
  { name: "at", of: ({ at }) => moment(at) },
  { name: "by", of: ({ by }) => plain(by) },
  { name: "what", of: ({ what }) => what },
  { name: "to", of: ({ name }) => plain(name) },
  { name: "text", of: ({ text }) => plain(text) },
  { name: "outcome", of: ({ word }) => word },
  { name: "detail", of: ({ detail }) => plain(detail) }
]

const HEAD = ["AT", "BY", "WHAT", "TO", "OUTCOME", "MESSAGE AND ANSWER"]

/** The rows as lines. `columns`: width of the terminal; null: lines are not cut. */
export const linesOf = (
  rows: ReadonlyArray<Named>,
  { colour, columns, now }: { readonly colour: boolean; readonly columns: number | null; readonly now: number }
): ReadonlyArray<string> => {
  if (rows.length === 0) return ["No messages found."]
  const cells = rows.map(({ at, by, detail, name, text, what, word }): ReadonlyArray<Cell> => [
    { text: clock(at, now), colour: "dim" },
    { text: plain(by) },
    { text: what },
    { text: plain(name) },
    { text: word, colour: lookColour[LOOKS[word].colour] },
    { text: [brief(text), ...(detail === "" ? [] : [plain(detail)])].join(" → ") }
  ])
  return table(HEAD, cells, { colour, columns, spare: ["BY", "WHAT"] })
}
