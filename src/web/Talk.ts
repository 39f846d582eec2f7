/**
 * Talk: an agent's conversation, as its runes tell it: messages, answers, tools, what went wrong; and its runs. Pure.
 *
 * Guarantees: an answer that streamed is not shown twice; a thing that changes is a new value, and all others are the
 * same as before; what is held is bounded, the oldest goes first.
 */
import type { Rune } from "../core/event-log/Rune.ts"

export interface Said {
  readonly is: "said"
  readonly key: string
  readonly at: number
  /** Empty: the agent itself. */
  readonly by: string
  readonly text: string
  readonly how: "" | "steered" | "urgent"
  /** A message that no turn has carried yet. */
  readonly isWaiting: boolean
  /** Words of it still come. */
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
  /** ms; undefined: not over. */
  readonly took?: number
  /** Name of whoever let it run, or did not; empty: nobody was asked. */
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
  /** Words of it still come. */
  readonly isOpen: boolean
  /** ms from its first to its last words. */
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

/** Kinds that are shown. */
export const KINDS: ReadonlyArray<string> = [
  ...["received", "withdrawn", "dropped", "asked_again"].map((name) => `inbox.${name}`),
  ...["started", "assistant_delta", "completed", "interrupted", "error"].map((name) => `turn.${name}`),
  ...["call", "approval_requested", "approved", "denied", "progress", "result"].map((name) => `tool.${name}`),
  ...["asked", "reported", "bound_reached", "usage"].map((name) => `agent.${name}`),
  ...["output", "thought", "notice", "memory_lost"].map((name) => `run.${name}`),
  "worker.moved"
]

type Fields = { readonly [name: string]: unknown }
const fieldsOf = (value: unknown): Fields => (typeof value === "object" && value !== null ? (value as Fields) : {})
const textOf = (value: unknown): string =>
  typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value)
const numberOf = (value: unknown): number => (typeof value === "number" ? value : 0)

const MAX_ITEMS = 2_000
const MAX_RUNS = 50
/** Characters of one text. */
const MAX_TEXT = 100_000
const cut = (text: string): string => (text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}\n…` : text)

const STATUS: { readonly [status: string]: ToolUse["status"] } = {
  success: "done",
  denied: "denied",
  cancelled: "stopped"
}

export class Talk {
  private readonly byKey = new Map<string, Item>()
  private readonly runsById = new Map<string, RunOf>()
  /** The answer whose words come now, by its turn. */
  private open: string | undefined
  /** Turns whose words were seen as they came. */
  private readonly streamed = new Set<string>()
  private run: string | undefined

  /** Oldest first. */
  get items(): ReadonlyArray<Item> {
    return [...this.byKey.values()]
  }

  /** Newest first. */
  get runs(): ReadonlyArray<RunOf> {
    return [...this.runsById.values()].toReversed()
  }

  feed(rune: Rune): void {
    const [topic = "", name = ""] = rune.kind.split(".", 2)
    if (topic === "inbox") this.inbox(rune)
    else if (topic === "turn") this.turn(rune, name)
    else if (topic === "tool") this.tool(rune, name)
    else if (topic === "worker") this.worker(rune)
    else this.other(rune)
    for (const key of this.byKey.keys()) {
      if (this.byKey.size <= MAX_ITEMS) break
      this.byKey.delete(key)
    }
  }

  private put(item: Item): void {
    this.byKey.set(item.key, item)
  }

  private change<K extends Item["is"]>(key: string, is: K, change: Partial<Extract<Item, { readonly is: K }>>): void {
    const item = this.byKey.get(key)
    if (item?.is === is) this.put({ ...item, ...change } as Item)
  }

  /** Ends the words that came. */
  private close(): void {
    const open = this.open === undefined ? undefined : this.byKey.get(this.open)
    if (open?.is === "said" || open?.is === "thought") this.put({ ...open, isOpen: false })
    this.open = undefined
  }

  private note({ at, eventId }: Rune, text: string, isBad = false): void {
    this.put({ is: "note", key: `${eventId}`, at, text, isBad })
  }

  private inbox(rune: Rune): void {
    const event = fieldsOf(rune.payload["event"])
    if (event["_tag"] === "Received") {
      const { from, messageId, steer, text, urgent } = fieldsOf(event["message"])
      const how = steer === true ? "steered" : urgent === true ? "urgent" : ""
      const by = textOf(from).replace(/^agent:/, "")
      const said = {
        is: "said",
        at: rune.at,
        by,
        text: cut(textOf(text)),
        how,
        isWaiting: true,
        isOpen: false
      } as const
      return this.put({ ...said, key: textOf(messageId) })
    }
    if (event["_tag"] === "Withdrawn") this.byKey.delete(textOf(event["messageId"]))
    if (event["_tag"] === "Dropped") {
      for (const id of (event["messageIds"] ?? []) as ReadonlyArray<string>) this.heard(id)
      this.note(rune, `came to no answer: ${textOf(event["reason"])}`, true)
    }
    if (event["_tag"] === "AskedAgain") this.note(rune, `asked again by ${textOf(event["by"])}`)
  }

  private heard(id: string): void {
    this.change(id, "said", { isWaiting: false })
  }

  private turn(rune: Rune, name: string): void {
    const { at, eventId, payload } = rune
    const turn = textOf(payload["turn_id"])
    if (name === "assistant_delta") return this.delta(turn, rune)
    this.close()
    if (name === "started") {
      const run = this.runsById.get(this.run ?? "")
      if (run !== undefined) this.runsById.set(run.id, { ...run, turns: run.turns + 1 })
      for (const id of (fieldsOf(payload["event"])["messageIds"] ?? []) as ReadonlyArray<string>) this.heard(id)
    } else if (name === "completed") {
      const text = textOf(payload["final_output"])
      if (text !== "" && !this.streamed.has(turn)) this.answer(`${eventId}`, at, text)
      if (fieldsOf(payload["event"])["exit"] !== undefined) this.ends(this.run, at, "ended well", false)
    } else if (name === "interrupted") this.note(rune, `the turn was interrupted: ${textOf(payload["reason"])}`)
    else if (name === "error") {
      const half = textOf(payload["partial_output"])
      if (half !== "" && !this.streamed.has(turn)) this.answer(`${eventId} half`, at, half)
      this.note(rune, `the turn failed: ${textOf(payload["error_type"])}: ${textOf(payload["message"])}`, true)
    }
  }

  private answer(key: string, at: number, text: string): void {
    this.put({ is: "said", key, at, by: "", text: cut(text), how: "", isWaiting: false, isOpen: false })
  }

  private delta(turn: string, { at, eventId, payload }: Rune): void {
    this.streamed.add(turn)
    const text = textOf(payload["content"])
    const open = this.open === undefined ? undefined : this.byKey.get(this.open)
    if (open?.is === "said") return this.put({ ...open, text: cut(open.text + text) })
    this.close()
    this.open = `${eventId}`
    this.put({ is: "said", key: this.open, at, by: "", text, how: "", isWaiting: false, isOpen: true })
  }

  private thought({ at, eventId, payload }: Rune): void {
    const text = textOf(payload["text"])
    const open = this.open === undefined ? undefined : this.byKey.get(this.open)
    if (open?.is === "thought") return this.put({ ...open, text: cut(open.text + text), took: at - open.at })
    this.close()
    this.open = `${eventId}`
    this.put({ is: "thought", key: this.open, at, text, isOpen: true, took: 0 })
  }

  private tool({ at, payload }: Rune, name: string): void {
    this.close()
    const id = textOf(payload["call_id"])
    const key = `call ${id}`
    const item = this.byKey.get(key)
    if (name === "call") {
      const [tool, input] = [textOf(payload["tool_name"]), payload["arguments"]]
      return this.put({ is: "tool", key, at, id, tool, input, status: "running", output: "", by: "" })
    }
    if (item?.is !== "tool") return
    if (name === "approval_requested") this.put({ ...item, status: "asks" })
    else if (name === "approved") this.put({ ...item, status: "running", by: textOf(payload["approver"]) })
    else if (name === "denied") {
      const event = fieldsOf(payload["event"])
      this.put({ ...item, status: "denied", output: textOf(payload["reason"]), by: textOf(event["approver"]) })
    } else if (name === "progress") {
      if (item.took === undefined) this.put({ ...item, output: cut(item.output + textOf(payload["chunk"])) })
    } else if (name === "result") {
      const { error, output, reason, status } = payload
      const text = cut(textOf(output ?? error ?? reason ?? item.output))
      const is = STATUS[textOf(status)] ?? "failed"
      const said = text === "" ? item.output : text
      // a call that ends without a word says at least how
      const shown = said === "" && is === "failed" ? `[${textOf(status)}]` : said
      this.put({ ...item, status: is, output: shown, took: at - item.at })
    }
  }

  private ends(id: string | undefined, at: number, end: string, isBad: boolean): void {
    const run = this.runsById.get(id ?? "")
    if (run !== undefined && run.ended === undefined) this.runsById.set(run.id, { ...run, ended: at, end, isBad })
  }

  private worker(rune: Rune): void {
    const event = fieldsOf(rune.payload["event"])
    switch (event["_tag"]) {
      case "PromptReady": {
        this.run = textOf(event["runId"])
        const fresh = { id: this.run, began: rune.at, end: "", isBad: false, turns: 0, usd: 0, tokens: 0 }
        this.runsById.set(this.run, fresh)
        const [oldest] = this.runsById.keys()
        if (this.runsById.size > MAX_RUNS && oldest !== undefined) this.runsById.delete(oldest)
        return
      }
      case "SessionExited": {
        const { _tag: tag, message } = fieldsOf(event["outcome"])
        const isBad = tag !== "Success"
        const why = textOf(message)
        if (isBad) this.note(rune, `the run ended: ${why === "" ? textOf(tag) : why}`, true)
        return this.ends(
          textOf(event["runId"]),
          rune.at,
          isBad ? why.split("\n")[0]! || textOf(tag) : "ended well",
          isBad
        )
      }
      case "GraceExceeded":
        return this.ends(textOf(event["runId"]), rune.at, "cut short", true)
      case "OperatorStop":
        this.note(rune, `stopped by ${textOf(event["by"])}`)
        return this.ends(this.run, rune.at, `stopped by ${textOf(event["by"])}`, false)
    }
  }

  private other(rune: Rune): void {
    const { at, eventId, kind, payload } = rune
    if (kind === "agent.usage") {
      const run = this.runsById.get(this.run ?? "")
      if (run === undefined) return
      const [usd, tokens] = [run.usd + numberOf(payload["usd"]), run.tokens + numberOf(payload["tokens"])]
      this.runsById.set(run.id, { ...run, usd, tokens })
    } else if (kind === "run.output") {
      const source = textOf(payload["source"])
      if (source === "assistant") return
      const last = this.items.at(-1)
      const text = textOf(payload["text"])
      const isError = source === "stderr"
      if (last?.is === "printed" && last.isError === isError) this.put({ ...last, text: cut(`${last.text}\n${text}`) })
      else this.put({ is: "printed", key: `${eventId}`, at, text: cut(text), isError })
    } else if (kind === "run.thought") this.thought(rune)
    else if (kind === "agent.asked") this.note(rune, `asks you: ${textOf(payload["question"])}`)
    else if (kind === "agent.reported")
      this.note(rune, `reports ${textOf(payload["status"])}: ${textOf(payload["summary"])}`)
    else this.note(rune, textOf(payload["text"]), kind !== "run.notice")
  }
}
