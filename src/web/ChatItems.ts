/**
 * ChatItems: builds an agent's conversation (messages, answers, tool calls, errors) and the list of its runs from
 * runes. Pure.
 *
 * Guarantees: a streamed answer is not shown twice. A changed item becomes a new object; unchanged items stay the same
 * objects. The number of items is bounded; the oldest are dropped first.
 */
import { ConversationView, KINDS as ALL, type Item as Told } from "../board/ConversationView.ts"
import type { Rune } from "../core/event-log/Rune.ts"

export interface Said {
  readonly is: "said"
  readonly key: string
  readonly at: number
  /** Name of the author; empty if the agent itself is the author. */
  readonly by: string
  readonly text: string
  readonly how: "" | "steered" | "urgent"
  /** True for a message that has not been passed to the agent in a turn yet. */
  readonly isWaiting: boolean
  /** True while more text of the item is arriving. */
  readonly isOpen: boolean
}
export interface ToolUse {
  readonly is: "tool"
  readonly key: string
  readonly at: number
  readonly id: string
  readonly tool: string
  readonly input: unknown
  readonly status: "running" | "asks" | "done" | "failed" | "denied" | "stopped"
  readonly output: string
  /** Duration of the call in ms; undefined until the call has ended. */
  readonly took?: number
  /** Name of the user who approved or denied the call; empty if no approval was needed. */
  readonly by: string
}
export interface Note {
  readonly is: "note"
  readonly key: string
  readonly at: number
  readonly text: string
  readonly isBad: boolean
}
export interface Printed {
  readonly is: "printed"
  readonly key: string
  readonly at: number
  readonly text: string
  readonly isError: boolean
}
export interface Thought {
  readonly is: "thought"
  readonly key: string
  readonly at: number
  readonly text: string
  /** True while more text of the item is arriving. */
  readonly isOpen: boolean
  /** Time in ms between the arrival of the thought's first and last text. */
  readonly took: number
}
export type Item = Said | ToolUse | Note | Printed | Thought

export interface RunOf {
  readonly id: string
  readonly began: number
  readonly ended?: number
  readonly end: string
  readonly isBad: boolean
  readonly turns: number
  readonly usd: number
  readonly tokens: number
}

/** Kinds of runes about the agent's state, which other parts of the page show. */
const LIFE: ReadonlySet<string> = new Set([
  ...["ready", "terminated", "failed", "budget_exhausted", "spawned"].map((name) => `agent.${name}`),
  "run.started",
  "worker.started",
  "inbox.dismissed"
])
/** Kinds of runes that the conversation shows. */
export const KINDS: ReadonlyArray<string> = ALL.filter((kind) => !LIFE.has(kind))

const MAX_ITEMS = 2_000
const MAX_RUNS = 50
/** Maximum length of an item's text, in characters. Longer text is cut. */
const MAX_TEXT = 100_000
const cut = (text: string): string => (text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}\n…` : text)

const STATUS: { readonly [status: string]: ToolUse["status"] } = {
  success: "done",
  denied: "denied",
  cancelled: "stopped"
}

export class ChatItems {
  private readonly view = new ConversationView()
  private readonly byKey = new Map<string, Item>()
  private readonly runsById = new Map<string, RunOf>()
  /** Key of the item that is still receiving text; undefined if there is none. */
  private open: string | undefined
  private run = ""

  /** The items of the conversation, oldest first. */
  get items(): ReadonlyArray<Item> {
    return [...this.byKey.values()]
  }

  /** The agent's runs, newest first. */
  get runs(): ReadonlyArray<RunOf> {
    return [...this.runsById.values()].toReversed()
  }

  feed(rune: Rune): void {
    for (const [at, item] of this.view.feed(rune).entries())
      this.take(item, `${item.eventId}${at === 0 ? "" : `/${at}`}`)
    for (const key of this.byKey.keys()) {
      if (this.byKey.size <= MAX_ITEMS) break
      this.byKey.delete(key)
    }
  }

  private put(item: Item): void {
    this.byKey.set(item.key, item)
  }

  /** Marks the item that was receiving text as complete. */
  private close(): void {
    const open = this.opened
    if (open !== undefined) this.put({ ...open, isOpen: false })
    this.open = undefined
  }

  private get opened(): Said | Thought | undefined {
    const open = this.byKey.get(this.open ?? "")
    return open?.is === "said" || open?.is === "thought" ? open : undefined
  }

  private take(item: Told, key: string): void {
    const { at, level, text } = item
    if (item.is === "piece") return this.piece(item, key)
    if (item.is === "call" || item.is === "begin" || item.is === "over" || item.is === "answer") this.close()
    switch (item.is) {
      case "begin":
        return this.begins(item)
      case "answer":
        // skip the output of a run without turns, because it was already shown as it arrived
        if (item.runId !== undefined) return
        return this.put({ is: "said", key, at, by: "", text: cut(text), how: "", isWaiting: false, isOpen: false })
      case "printed":
        return this.printed(item, key)
      case "message": {
        const { by, how, id } = item
        const said = { is: "said", key: id, at, text: cut(text), how, isWaiting: true, isOpen: false } as const
        return this.put({ ...said, by: by.replace(/^agent:/, "") })
      }
      case "inbox":
        return this.inbox(item, key)
      case "over":
        return item.how === "completed" ? undefined : this.note(key, at, text, level === "error")
      case "call":
      case "asks":
      case "answered":
      case "withdrawn":
      case "progress":
      case "result":
        return this.tool(item)
      case "run":
        if (item.how === "badly" || item.how === "stopped") this.note(key, at, text, item.how === "badly")
        return this.ends(item.runId, at, item.end, item.how === "badly" || item.how === "cut short")
      case "usage": {
        const run = this.runsById.get(this.run)
        if (run === undefined) return
        return void this.runsById.set(run.id, { ...run, usd: run.usd + item.usd, tokens: run.tokens + item.tokens })
      }
      case "note":
        return this.note(key, at, text, item.isSerious)
    }
  }

  private note(key: string, at: number, text: string, isBad: boolean): void {
    this.put({ is: "note", key, at, text, isBad })
  }

  private inbox({ at, did, messages, text }: Extract<Told, { readonly is: "inbox" }>, key: string): void {
    if (did === "withdrawn") for (const { from } of messages) this.byKey.delete(from)
    if (did === "dropped") for (const { from } of messages) this.heard(from)
    if (did === "dropped" || did === "asked again") this.note(key, at, text, did === "dropped")
  }

  private heard(id: string): void {
    const item = this.byKey.get(id)
    if (item?.is === "said") this.put({ ...item, isWaiting: false })
  }

  private begins({ at, isRun, messageIds, turnId }: Extract<Told, { readonly is: "begin" }>): void {
    if (isRun) {
      this.run = turnId
      this.runsById.set(turnId, { id: turnId, began: at, end: "", isBad: false, turns: 0, usd: 0, tokens: 0 })
      const [oldest] = this.runsById.keys()
      if (this.runsById.size > MAX_RUNS && oldest !== undefined) this.runsById.delete(oldest)
      return
    }
    const run = this.runsById.get(this.run)
    if (run !== undefined) this.runsById.set(run.id, { ...run, turns: run.turns + 1 })
    for (const id of messageIds) this.heard(id)
  }

  private piece({ at, of, text }: Extract<Told, { readonly is: "piece" }>, key: string): void {
    const open = this.opened
    if (open?.is === "said" && of === "answer") return this.put({ ...open, text: cut(open.text + text) })
    if (open?.is === "thought" && of === "thought")
      return this.put({ ...open, text: cut(open.text + text), took: at - open.at })
    this.close()
    this.open = key
    if (of === "thought") return this.put({ is: "thought", key, at, text, isOpen: true, took: 0 })
    this.put({ is: "said", key, at, by: "", text, how: "", isWaiting: false, isOpen: true })
  }

  private printed({ at, isError, text }: Extract<Told, { readonly is: "printed" }>, key: string): void {
    const last = this.items.at(-1)
    if (last?.is === "printed" && last.isError === isError)
      return this.put({ ...last, text: cut(`${last.text}\n${text}`) })
    this.put({ is: "printed", key, at, text: cut(text), isError })
  }

  private tool(
    told: Extract<Told, { readonly is: "answered" | "asks" | "call" | "progress" | "result" | "withdrawn" }>
  ): void {
    const { at, id } = told
    const key = `call ${id}`
    if (told.is === "call") {
      const { input, tool } = told
      return this.put({ is: "tool", key, at, id, tool, input, status: "running", output: "", by: "" })
    }
    const item = this.byKey.get(key)
    if (item?.is !== "tool") return
    switch (told.is) {
      case "asks":
        return this.put({ ...item, status: "asks" })
      case "answered":
        return this.put(
          told.isAllowed
            ? { ...item, status: "running", by: told.by }
            : { ...item, status: "denied", output: told.reason, by: told.by }
        )
      case "withdrawn":
        return this.put({ ...item, status: "running" })
      case "progress":
        return item.took === undefined ? this.put({ ...item, output: cut(item.output + told.text) }) : undefined
      case "result": {
        const is = STATUS[told.status] ?? "failed"
        const said = told.output === "" ? item.output : cut(told.output)
        // if a failed call has no output, show its status
        const output = said === "" && is === "failed" ? `[${told.status}]` : said
        return this.put({ ...item, status: is, output, took: at - item.at })
      }
    }
  }

  private ends(id: string, at: number, end: string, isBad: boolean): void {
    const run = this.runsById.get(id)
    if (run !== undefined && run.ended === undefined) this.runsById.set(run.id, { ...run, ended: at, end, isBad })
  }
}
