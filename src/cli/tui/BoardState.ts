/**
 * BoardState: the state of the board in the terminal, and how keys change it. Pure except for this state: all other
 * effects are returned as acts.
 *
 * Guarantees: a key acts on the row that is selected when the key is pressed. A key that ends work must be pressed
 * twice; after the first press, a message says what the second will do. A call is approved by the hash of the shown
 * call, and keys are ignored for a moment after it appears. Pasted text never acts as keys.
 */
import type { BoardHead, BoardNews, BoardRow } from "../../domain/BoardMessages.ts"
import { after, order } from "../../domain/BoardRow.ts"
import { type AnswerScope, type Lasting, scopeWords } from "../../approvals/AnswerScope.ts"
import type { AnswerPreview, AskedCall } from "../../domain/Messages.ts"
import { type Group, isOver, LOOKS } from "../../domain/StatusWords.ts"
import { nameOf } from "../sessions/Board.ts"
import type { ShownBatch } from "../agents/ApproveAll.ts"
import * as BoardItems from "./BoardItems.ts"
import * as BoardPalette from "./BoardPalette.ts"
import { type Pane, PANES, type Shown, STORIES } from "./BoardPane.ts"
import type { Input } from "./TerminalKeys.ts"

/** An effect outside of the board's state, which the caller must run. */
export type Act =
  | { readonly _tag: "Quit" }
  /** Attach to the row's agent, or jump to the terminal pane of its session. */
  | { readonly _tag: "Open"; readonly row: BoardRow }
  /** Load a pane for the selected row. */
  | { readonly _tag: "Look"; readonly row: BoardRow; readonly pane: Pane }
  /** Load the whole call with this id. */
  | { readonly _tag: "Ask"; readonly id: string }
  | {
      readonly _tag: "Answer"
      readonly id: string
      readonly hash: string
      readonly decision: "allow" | "deny"
      readonly reason: string
      readonly answers?: ReadonlyArray<string>
      readonly lasting?: Lasting
      /** Further calls that are approved with this one. */
      readonly also?: ReadonlyArray<{ readonly name: string; readonly hash: string }>
    }
  /** Load what an approval that keeps a rule would change. */
  | { readonly _tag: "Preview"; readonly id: string; readonly lasting: Lasting }
  | {
      readonly _tag: "Send"
      readonly name: string
      readonly text: string
      readonly how: "queue" | "steer" | "urgent"
    }
  | { readonly _tag: "Do"; readonly verb: "start" | "restart" | "stop" | "interrupt"; readonly name: string }

export type Mode = "list" | "filter" | "call" | "deny" | "words" | "send" | "help" | "go"

export interface Call {
  readonly id: string
  readonly asked: AskedCall | undefined
  /** The reason why the call cannot be shown. */
  readonly problem: string | undefined
  /** Time at which the call was shown in full, in ms since the epoch. */
  readonly shownAt: number
  readonly top: number
  /** Answers to those questions of the call that have already been answered. */
  readonly answers: ReadonlyArray<string>
  /** Number of the offered rule that an approval would keep, from 1. */
  readonly offer: number
  /** The change that the approval would make. While it is shown, an approval keeps this rule. */
  readonly preview: AnswerPreview | undefined
  /** The batch of several calls that the call belongs to. */
  readonly batch: ShownBatch | undefined
}

/** The scope for which each key keeps a rule. */
export const SCOPE_KEYS: { readonly [key: string]: AnswerScope } = {
  r: "run",
  n: "agent",
  p: "project",
  e: "everyone"
}

/**
 * Time in ms after a call appears during which keys are ignored. Otherwise a key that is pressed twice could answer the
 * next call, which appears at the same position.
 */
export const EARLY = 350
/** Maximum time in ms between the two presses of a key that ends work. */
export const TWICE = 3_000
/** Minimum time in ms between two loads of a pane, unless a key was pressed. */
export const REFRESH = 1_000
/** Like REFRESH, for the diff pane. It is longer, because loading the pane reads a whole tree of files. */
const REFRESH_DIFF = 10_000
/** Time in ms for which a message is shown. */
export const NOTE = 5_000
const MAX_INPUT = 4_000

const WORDS_OF: { readonly [key in "r" | "x" | "i"]: string } = {
  r: "restart",
  x: "stop",
  i: "interrupt"
}

/** Number of lines by which keys scroll a zoomed pane. */
const SCROLLS: { readonly [key: string]: number } = {
  j: 1,
  down: 1,
  k: -1,
  up: -1,
  "page-down": 20,
  " ": 20,
  "page-up": -20,
  "ctrl-u": -20,
  home: Number.NEGATIVE_INFINITY,
  G: Number.POSITIVE_INFINITY,
  end: Number.POSITIVE_INFINITY
}

/** The kind of rows that each key after `g` selects. */
const PLACES: { readonly [key: string]: BoardRow["kind"] } = { g: "goal", c: "channel", s: "session", p: "project" }

export class BoardState {
  rows: ReadonlyMap<string, BoardRow> = new Map()
  head: BoardHead | undefined = undefined
  /** Set while the daemon does not answer. `message`: the reason. `since`: when this began, in ms since the epoch. */
  gone: { readonly message: string; readonly remedy: string; readonly since: number } | undefined = undefined
  mode: Mode = "list"
  /** Id of the selected row; empty if no row is selected. */
  at = ""
  /** Index of the first visible line of the list. */
  top = 0
  filter = ""
  input = ""
  pane: Pane = "why"
  shown: Shown | undefined = undefined
  call: Call | undefined = undefined
  /** The batch whose end was on the screen. */
  seen: ShownBatch | undefined = undefined
  note: { readonly text: string; readonly at: number } | undefined = undefined
  isLight = false
  /** True if the pane covers the whole page. */
  isZoomed = false
  /**
   * Scroll position of the pane, in lines. For panes in STORIES it is counted from the end, for other panes from the
   * beginning.
   */
  paneTop = 0
  /** Index of the selected entry in the palette. */
  goAt = 0
  sort: BoardItems.Sort = "state"
  readonly folded = new Set<Group>()
  readonly foldedProjects = new Set<string>()
  private armed: { readonly key: string; readonly id: string; readonly at: number } | undefined = undefined
  private isPrefix = false
  /** True if the selected row has changed after its pane was loaded. */
  private isStale = false
  private lookedAt = 0
  private clicked: { readonly id: string; readonly at: number } | undefined = undefined
  private known: ReadonlyArray<BoardItems.Item> | undefined = undefined

  /** The visible lines of the list: groups with their rows. */
  get items(): ReadonlyArray<BoardItems.Item> {
    const { filter, folded, foldedProjects, sort } = this
    const shape = { filter, sort, foldedGroups: folded, foldedProjects }
    return (this.known ??= BoardItems.itemsOf(this.rows.values(), shape))
  }

  get row(): BoardRow | undefined {
    return this.rows.get(this.at)
  }

  /** Ids of the calls that wait for an answer, in the order of the rows. */
  get asks(): ReadonlyArray<string> {
    return [...this.rows.values()].toSorted(order).flatMap(({ asks }) => asks)
  }

  private changed(): void {
    this.known = undefined
  }

  /** If the selected row is not visible, selects the first visible row. */
  private settle(): void {
    const rows = this.items.flatMap((item) => (item._tag === "Row" ? [item.row.id] : []))
    if (!rows.includes(this.at)) this.at = rows[0] ?? ""
  }

  hear(news: BoardNews, now: number): ReadonlyArray<Act> {
    const before = this.row
    this.rows = after(this.rows, news)
    this.head = news.head
    this.gone = undefined
    this.changed()
    this.settle()
    if (this.call !== undefined && !this.asks.includes(this.call.id)) this.closeCall()
    if (before !== this.row) this.isStale = true
    return this.tick(now)
  }

  /** Loads the pane again if its row has changed, but not more often than every REFRESH ms. */
  tick(now: number): ReadonlyArray<Act> {
    if (!this.isStale || now - this.lookedAt < (this.pane === "diff" ? REFRESH_DIFF : REFRESH)) return []
    this.lookedAt = now
    const top = this.paneTop
    const acts = this.look()
    this.paneTop = top
    return acts
  }

  /**
   * Records that the daemon does not answer. The last known rows are kept. If it is called again, the first `since` is
   * kept.
   */
  lose(message: string, remedy: string, now: number): void {
    this.gone = { message, remedy, since: this.gone?.since ?? now }
  }

  say(text: string, now: number): void {
    this.note = { text, at: now }
  }

  show(shown: Shown): void {
    if (shown.id === this.at && shown.pane === this.pane) this.shown = shown
  }

  /** Records the call that was loaded, or the reason why it cannot be shown. */
  ask(id: string, asked: AskedCall | string, now: number, batch?: ShownBatch): void {
    if (this.call?.id !== id) return
    this.call =
      typeof asked === "string"
        ? { ...this.call, problem: asked }
        : { ...this.call, asked, batch, problem: undefined, shownAt: now }
  }

  /** Shows what an approval that keeps a rule would change. */
  preview(id: string, preview: AnswerPreview, now: number): void {
    if (this.call?.id === id) this.call = { ...this.call, preview, shownAt: now, top: 0 }
  }

  press(input: Input, now: number): ReadonlyArray<Act> {
    switch (input._tag) {
      case "Background":
        this.isLight = input.isLight
        return []
      case "Paste":
        return this.type(input.text.replaceAll(/\s+/g, " "))
      case "Wheel":
        if (this.call === undefined && !this.isZoomed) return this.move(input.lines)
        if (this.call === undefined) this.scrollPane(input.lines)
        else this.scroll(input.lines)
        return []
      case "Click":
        return []
      case "Key":
        return this.key(input.key, now)
    }
  }

  /** Scrolls the pane: down if `lines` is positive. */
  scrollPane(lines: number): void {
    this.paneTop = Math.max(0, this.paneTop + (STORIES.has(this.pane) ? -lines : lines))
  }

  click(item: BoardItems.Item, now: number): ReadonlyArray<Act> {
    if (this.mode !== "list") return []
    if (item._tag === "Group") return this.fold(item.group)
    if (item._tag === "Project") return this.foldProject(item.project)
    const isSecond = this.clicked?.id === item.row.id && now - this.clicked.at < 500
    this.at = item.row.id
    this.clicked = { id: item.row.id, at: now }
    if (!isSecond) return this.look()
    return item.row.asks.length > 0 ? this.openCall(now) : [{ _tag: "Open", row: item.row }]
  }

  private get isTyping(): boolean {
    return ["filter", "send", "deny", "words", "go"].includes(this.mode)
  }

  private type(text: string): ReadonlyArray<Act> {
    if (!this.isTyping) return []
    if (this.mode !== "filter") {
      this.input = (this.input + text).slice(0, MAX_INPUT)
      this.goAt = 0
      return []
    }
    this.filter = (this.filter + text).slice(0, 200)
    return this.renewed()
  }

  private key(key: string, now: number): ReadonlyArray<Act> {
    if (key === "ctrl-c") return [{ _tag: "Quit" }]
    if (this.isTyping) return this.typed(key, now)
    if (this.mode === "help") {
      this.mode = "list"
      return []
    }
    if (this.mode === "call") return this.answering(key, now)
    if (this.isPrefix) return this.going(key, now)
    return this.reading(key) ?? this.choosing(key, now)
  }

  private typed(key: string, now: number): ReadonlyArray<Act> {
    const isFilter = this.mode === "filter"
    switch (key) {
      case "esc":
        if (isFilter) this.clear()
        this.mode = this.call === undefined ? "list" : "call"
        return []
      case "enter":
        return this.mode === "go" ? this.went(now) : this.entered(now)
      case "up":
      case "down":
        this.goAt = Math.max(0, Math.min(this.entries.length - 1, this.goAt + (key === "down" ? 1 : -1)))
        return []
      case "ctrl-k":
        this.mode = this.mode === "go" ? "list" : this.mode
        return []
      case "backspace":
        if (isFilter) this.filter = [...this.filter].slice(0, -1).join("")
        else this.input = [...this.input].slice(0, -1).join("")
        this.goAt = 0
        break
      case "ctrl-u":
        if (isFilter) this.filter = ""
        else this.input = ""
        break
      default:
        return [...key].length === 1 ? this.type(key) : []
    }
    return this.renewed()
  }

  private entered(now: number): ReadonlyArray<Act> {
    const { input, mode, row } = this
    this.mode = this.call === undefined ? "list" : "call"
    if (mode === "filter") return []
    this.input = ""
    if (mode === "deny") return this.answer("deny", input, now)
    if (input.trim() === "") return []
    if (mode === "words") return this.chosen(input, now)
    if (row === undefined) return []
    const how = input.startsWith("!") ? "urgent" : input.startsWith(">") ? "steer" : "queue"
    return [{ _tag: "Send", name: row.called, text: input.replace(/^[!>]\s*/, ""), how }]
  }

  get entries(): ReadonlyArray<BoardPalette.Entry> {
    return BoardPalette.matching(BoardPalette.entries([...this.rows.values()].toSorted(order), this.row), this.input)
  }

  /** Goes to the entry that is selected in the palette. */
  private went(now: number): ReadonlyArray<Act> {
    const entry = this.entries[this.goAt]
    this.mode = "list"
    this.input = ""
    if (entry === undefined) return []
    const { to } = entry
    if (to._tag === "Pane") return this.turn(to.pane)
    if (to._tag === "Keys") return to.keys.flatMap((key) => this.key(key, now))
    this.clear()
    const row = this.rows.get(to.id)
    if (row !== undefined) this.folded.delete(LOOKS[row.word].group)
    this.changed()
    this.at = to.id
    this.settle()
    return this.look()
  }

  private renewed(): ReadonlyArray<Act> {
    this.changed()
    this.settle()
    return this.look()
  }

  private clear(): void {
    this.filter = ""
    this.changed()
    this.settle()
  }

  /** Handles the key that is pressed after `g`. */
  private going(key: string, now: number): ReadonlyArray<Act> {
    this.isPrefix = false
    if (key === "a") return this.openCall(now)
    if (key === "b") {
      this.clear()
      return this.look()
    }
    if (key === "t" || key === "m") return this.turn(key === "t" ? "timeline" : "cost")
    const kind = PLACES[key]
    if (kind === undefined) return []
    this.filter = kind
    return this.renewed()
  }

  /** Handles the keys of the pane. Undefined: the pane does not use the key. */
  private reading(key: string): ReadonlyArray<Act> | undefined {
    if (key === "z") {
      this.isZoomed = !this.isZoomed && this.row !== undefined
      return []
    }
    if (key === "J" || key === "K") {
      this.scrollPane(key === "J" ? 3 : -3)
      return []
    }
    if (!this.isZoomed) return undefined
    if (key === "esc" || key === "q") {
      this.isZoomed = false
      return []
    }
    const lines = SCROLLS[key]
    if (lines === undefined) return undefined
    this.scrollPane(lines)
    return []
  }

  private choosing(key: string, now: number): ReadonlyArray<Act> {
    const { row } = this
    switch (key) {
      case "ctrl-k":
        this.mode = "go"
        this.input = ""
        this.goAt = 0
        return []
      case "q":
        return [{ _tag: "Quit" }]
      case "j":
      case "down":
        return this.move(1)
      case "k":
      case "up":
        return this.move(-1)
      case "page-down":
        return this.move(10)
      case "page-up":
      case "ctrl-u":
        return this.move(-10)
      case "home":
        return this.move(Number.NEGATIVE_INFINITY)
      case "G":
      case "end":
        return this.move(Number.POSITIVE_INFINITY)
      case "/":
        this.mode = "filter"
        return []
      case "esc":
        this.clear()
        return this.look()
      case "tab":
      case "shift-tab": {
        const at = PANES.indexOf(this.pane) + (key === "tab" ? 1 : PANES.length - 1)
        return this.turn(PANES[at % PANES.length]!)
      }
      case "?":
        this.mode = "help"
        return []
      case "g":
        this.isPrefix = true
        return []
      case "f":
        return row === undefined ? [] : this.fold(LOOKS[row.word].group)
      case "p":
      case "P":
      case "o":
        return this.arranged(key, now)
      case "a":
      case "d":
        return this.openCall(now)
      case "enter":
        return row === undefined ? [] : [{ _tag: "Open", row }]
      case "s":
        if (row?.kind !== "agent") return this.refuse("Only agents can receive messages.", now)
        this.mode = "send"
        this.input = ""
        return []
      case "r":
      case "x":
      case "i":
        return this.twice(key, now)
      default:
        return []
    }
  }

  private refuse(text: string, now: number): ReadonlyArray<Act> {
    this.say(text, now)
    return []
  }

  private twice(key: "r" | "x" | "i", now: number): ReadonlyArray<Act> {
    const { armed, row } = this
    if (row?.kind !== "agent") return this.refuse("This key works only for agents.", now)
    const over = isOver(row.word)
    if (armed?.key === key && armed.id === row.id && now - armed.at < TWICE) {
      this.armed = undefined
      const verb = key === "x" ? "stop" : key === "i" ? "interrupt" : over ? "start" : "restart"
      return [{ _tag: "Do", verb, name: row.called }]
    }
    this.armed = { key, id: row.id, at: now }
    const what = key === "r" && over ? "start" : WORDS_OF[key]
    const cost = row.word === "working" && key !== "i" ? "; its run ends" : ""
    return this.refuse(`${key} again: ${what} ${nameOf(row)}${cost}`, now)
  }

  private move(by: number): ReadonlyArray<Act> {
    const rows = this.items.flatMap((item) => (item._tag === "Row" ? [item.row.id] : []))
    const to = Math.max(0, Math.min(rows.length - 1, Math.max(0, rows.indexOf(this.at)) + by))
    this.at = rows[to] ?? ""
    return this.look()
  }

  private fold(group: Group): ReadonlyArray<Act> {
    if (!this.folded.delete(group)) this.folded.add(group)
    return this.renewed()
  }

  private foldProject(project: string): ReadonlyArray<Act> {
    if (!this.foldedProjects.delete(project)) this.foldedProjects.add(project)
    return this.renewed()
  }

  private arranged(key: "p" | "P" | "o", now: number): ReadonlyArray<Act> {
    const project = this.row?.project ?? ""
    if (key === "p") return project === "" ? [] : this.foldProject(project)
    if (key === "P") {
      this.foldedProjects.clear()
      this.changed()
      return this.look()
    }
    const { SORTS } = BoardItems
    this.sort = SORTS[(SORTS.indexOf(this.sort) + 1) % SORTS.length]!
    this.changed()
    return this.refuse(`Each group is sorted by ${this.sort}.`, now)
  }

  private turn(pane: Pane): ReadonlyArray<Act> {
    this.pane = pane
    return this.look()
  }

  private look(): ReadonlyArray<Act> {
    const { pane, row } = this
    this.isStale = false
    this.paneTop = 0
    return row === undefined ? [] : [{ _tag: "Look", row, pane }]
  }

  private openCall(now: number): ReadonlyArray<Act> {
    const id = this.row?.asks[0] ?? this.asks[0]
    return id === undefined ? this.refuse("No call waits for your approval.", now) : this.turnTo(id)
  }

  private turnTo(id: string): ReadonlyArray<Act> {
    this.mode = "call"
    this.call = {
      id,
      asked: undefined,
      problem: undefined,
      shownAt: 0,
      top: 0,
      answers: [],
      offer: 1,
      preview: undefined,
      batch: undefined
    }
    return [{ _tag: "Ask", id }]
  }

  private closeCall(): void {
    this.call = undefined
    this.mode = this.mode === "send" || this.mode === "filter" ? this.mode : "list"
  }

  private scroll(by: number): void {
    if (this.call !== undefined) this.call = { ...this.call, top: Math.max(0, this.call.top + by) }
  }

  private answering(key: string, now: number): ReadonlyArray<Act> {
    const { asks, call } = this
    if (call === undefined) {
      this.mode = "list"
      return []
    }
    const isQuestion = call.asked?.questions !== undefined
    switch (key) {
      case "esc":
      case "q":
        if (call.preview === undefined) this.closeCall()
        else this.call = { ...call, preview: undefined, top: 0 }
        return []
      case "j":
      case "k": {
        const at = asks.indexOf(call.id) + (key === "j" ? 1 : asks.length - 1)
        return asks.length === 0 ? [] : this.turnTo(asks[at % asks.length]!)
      }
      case "down":
      case "page-down":
        this.scroll(key === "down" ? 1 : 10)
        return []
      case "up":
      case "page-up":
        this.scroll(key === "up" ? -1 : -10)
        return []
      case "a":
        return isQuestion
          ? this.refuse("This is a question with options: press 1 to 9, or d to type an answer.", now)
          : this.answer("allow", "", now)
      case "A":
        return this.answerBatch(call, now)
      case "d":
        this.mode = isQuestion ? "words" : "deny"
        this.input = ""
        return []
      default: {
        if (!isQuestion) return this.keeping(call, key, now)
        const option = /^[1-9]$/.test(key)
          ? call.asked?.questions?.[call.answers.length]?.options[Number(key) - 1]
          : undefined
        return option === undefined ? [] : this.chosen(key, now)
      }
    }
  }

  /** Selects the offered rule, or the scope for which it is kept. */
  private keeping(call: Call, key: string, now: number): ReadonlyArray<Act> {
    const { offers = [], onlyHere, scopes = [] } = call.asked ?? {}
    if (/^[1-9]$/.test(key) && Number(key) <= offers.length) {
      this.call = { ...call, offer: Number(key), preview: undefined }
      return []
    }
    const scope = Object.hasOwn(SCOPE_KEYS, key) ? SCOPE_KEYS[key] : undefined
    if (scope === undefined || call.asked === undefined) return []
    if (offers.length === 0) return this.refuse("This call can only be approved once: press a.", now)
    return scopes.includes(scope)
      ? [{ _tag: "Preview", id: call.id, lasting: { scope, offer: call.offer } }]
      : this.refuse(`It cannot be approved ${scopeWords[scope]} now. ${onlyHere ?? ""}`.trim(), now)
  }

  /** Answers the current question. With the last question, the call is answered. */
  private chosen(answer: string, now: number): ReadonlyArray<Act> {
    const { call } = this
    if (call?.asked?.questions === undefined || now - call.shownAt < EARLY) return []
    const answers = [...call.answers, answer]
    this.call = { ...call, answers, shownAt: now }
    if (answers.length < call.asked.questions.length) return []
    return this.answered(call.asked, { decision: "allow", reason: "", answers })
  }

  private answer(decision: "allow" | "deny", reason: string, now: number): ReadonlyArray<Act> {
    const { call } = this
    if (call?.asked === undefined || now - call.shownAt < EARLY) return []
    const { offer, preview } = call
    if (decision === "deny" || preview === undefined) return this.answered(call.asked, { decision, reason })
    const lasting = { scope: preview.scope, offer }
    return this.answered({ id: call.asked.id, hash: preview.hash }, { decision, reason, lasting })
  }

  /** Approves all calls that are shown. Then loads the call again: if one of them has changed, none was approved. */
  private answerBatch({ batch, id, preview, shownAt }: Call, now: number): ReadonlyArray<Act> {
    if (batch === undefined) return this.refuse("No other call of this kind waits: press a.", now)
    if (preview !== undefined || now - shownAt < EARLY) return []
    if (this.seen !== batch) return this.refuse("Read all of them first: ↓ scrolls.", now)
    const [{ hash, id: first }, ...others] = batch.calls
    const also = others.map((one) => ({ name: one.id, hash: one.hash }))
    return [{ _tag: "Answer", id: first, hash, decision: "allow", reason: "", also }, ...this.turnTo(id)]
  }

  /** Answers the call. If another call is waiting, it is then shown. */
  private answered(
    { hash, id }: Pick<AskedCall, "hash" | "id">,
    given: Pick<Extract<Act, { _tag: "Answer" }>, "decision" | "reason" | "answers" | "lasting">
  ): ReadonlyArray<Act> {
    const asked = this.call!.id
    const next = this.asks.filter((one) => one !== asked)[0]
    const act: Act = { _tag: "Answer", id, hash, ...given }
    if (next !== undefined) return [act, ...this.turnTo(next)]
    this.closeCall()
    return [act]
  }
}
