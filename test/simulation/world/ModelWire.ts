/**
 * ModelWire: the two wire formats of model APIs, from the API's side: what a request says, what is
 * wrong with it as the real ones find it, and the events of an answer. Pure.
 */
import type { Chance } from "../Chance.ts"

export type Dialect = "anthropic" | "openai"

export interface Call {
  readonly id: string
  readonly name: string
  /** The arguments as they are written. */
  readonly json: string
}

/** An entry of a conversation, the same in both formats. */
export type Entry =
  | { readonly role: "user"; readonly text: string }
  | { readonly role: "assistant"; readonly text: string; readonly calls: ReadonlyArray<Call> }
  | { readonly role: "result"; readonly id: string; readonly text: string }

export type StopWord = "end" | "calls" | "length" | "refusal" | "filter" | "pause"

export interface Answer {
  readonly text: string
  readonly calls: ReadonlyArray<Call>
  readonly stop: StopWord
}

/** The spending up to an event, in all. */
export interface Spent {
  readonly input: number
  readonly output: number
}

export interface Frame {
  readonly text: string
  readonly spent?: Spent
  /** Why the answer ends, or that it has ended. */
  readonly says?: "why" | "end"
}

export interface Asked {
  /** The agent that the request names. */
  readonly agent: string
  readonly dialect: Dialect
  readonly entries: ReadonlyArray<Entry>
  /** Why a real API would refuse it. */
  readonly wrong: string | undefined
}

type Json = { readonly [field: string]: any }

const NAME = /^[a-zA-Z0-9_-]{1,64}$/

const entriesOfAnthropic = ({ messages }: Json): Asked["entries"] =>
  (messages as ReadonlyArray<Json>).flatMap(({ content, role }): ReadonlyArray<Entry> => {
    const blocks = content as ReadonlyArray<Json>
    if (role === "assistant") {
      const text = blocks.flatMap((block) => (block["type"] === "text" ? [block["text"]] : [])).join("")
      const calls = blocks.flatMap((block) =>
        block["type"] === "tool_use"
          ? [{ id: block["id"], name: block["name"], json: JSON.stringify(block["input"]) }]
          : []
      )
      return [{ role: "assistant", text, calls }]
    }
    return blocks.map((block): Entry =>
      block["type"] === "text"
        ? { role: "user", text: block["text"] }
        : { role: "result", id: block["tool_use_id"], text: block["content"] }
    )
  })

const entriesOfOpenAi = ({ messages }: Json): Asked["entries"] =>
  (messages as ReadonlyArray<Json>).slice(1).map((message): Entry => {
    if (message["role"] === "user") return { role: "user", text: message["content"] }
    if (message["role"] === "tool")
      return { role: "result", id: message["tool_call_id"], text: String(message["content"]).replace(/^ERROR: /, "") }
    const calls = ((message["tool_calls"] ?? []) as ReadonlyArray<Json>).map((call) => ({
      id: call["id"],
      name: call["function"].name,
      json: call["function"].arguments
    }))
    return { role: "assistant", text: message["content"] ?? "", calls }
  })

/** Checks the demands of both formats: each call has its one result, directly after it; ids are unique; names are plain. */
const wrongIn = (entries: Asked["entries"]): string | undefined => {
  const ids = new Set<string>()
  let open: Array<string> = []
  if (entries[0]?.role !== "user") return "the first message is not the user's"
  for (const entry of entries) {
    if (entry.role === "result") {
      if (!open.includes(entry.id)) return `a result of ${entry.id}, which was not called`
      open = open.filter((id) => id !== entry.id)
      continue
    }
    if (open.length > 0) return `a call without a result: ${open.join()}`
    if (entry.role !== "assistant") continue
    for (const { id, name } of entry.calls) {
      if (!NAME.test(name)) return `a call of "${name.slice(0, 80)}", which is no name`
      if (!NAME.test(id) || ids.has(id)) return `the id ${id} is no id, or twice`
      ids.add(id)
      open.push(id)
    }
  }
  return open.length > 0 ? `a call without a result: ${open.join()}` : undefined
}

const wrongInBlocks = ({ messages }: Json): string | undefined => {
  let last = "assistant"
  for (const { content, role } of messages as ReadonlyArray<Json>) {
    if (role === last) return "roles do not alternate"
    last = role
    const blocks = content as ReadonlyArray<Json>
    if (blocks.length === 0) return "a message without content"
    const texts = blocks.findIndex((block) => block["type"] === "text")
    if (role === "user" && texts !== -1 && blocks.slice(texts).some((block) => block["type"] !== "text"))
      return "a result after a text"
    if (blocks.some((block) => block["type"] === "text" && String(block["text"]).trim() === "")) return "an empty text"
  }
  return undefined
}

/** Reads a request; `text` is its body. */
export const read = (dialect: Dialect, text: string): Asked => {
  const body = JSON.parse(text) as Json
  const entries = dialect === "anthropic" ? entriesOfAnthropic(body) : entriesOfOpenAi(body)
  const surrogate = /\\ud[89a-f][0-9a-f]{2}/i.test(text) ? "half a character" : undefined
  const blocks = dialect === "anthropic" ? wrongInBlocks(body) : undefined
  const agent = /You are (\S+), an AI agent/.exec(text)?.[1] ?? "?"
  return { agent, dialect, entries, wrong: surrogate ?? blocks ?? wrongIn(entries) }
}

/** A text in pieces, by code units: servers cut between the halves of a character, too. */
const pieces = (text: string, chance: Chance): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (let from = 0; from < text.length;) {
    const size = 1 + chance.below(chance.is(0.2) ? 200 : 12)
    found.push(text.slice(from, from + size))
    from += size
  }
  return found
}

const REASONS: { readonly [dialect in Dialect]: { readonly [stop in StopWord]: string } } = {
  anthropic: {
    end: "end_turn",
    calls: "tool_use",
    length: "max_tokens",
    refusal: "refusal",
    filter: "refusal",
    pause: "pause_turn"
  },
  openai: {
    end: "stop",
    calls: "tool_calls",
    length: "length",
    refusal: "stop",
    filter: "content_filter",
    pause: "stop"
  }
}

const ofAnthropic = ({ calls, stop, text }: Answer, chance: Chance): ReadonlyArray<Frame> => {
  const frames: Array<Frame> = []
  const read = chance.is(0.3) ? chance.below(500) : 0
  const written = chance.is(0.3) ? chance.below(500) : 0
  const input = 1 + chance.below(40)
  const output = 1 + chance.below(60)
  const add = (data: Json, spent?: Spent, says?: Frame["says"]) =>
    frames.push({
      text: `event: ${data["type"]}\ndata: ${JSON.stringify(data)}\n\n`,
      ...(spent === undefined ? {} : { spent }),
      ...(says === undefined ? {} : { says })
    })
  const usage = { input_tokens: input, cache_read_input_tokens: read, cache_creation_input_tokens: written }
  add(
    { type: "message_start", message: { id: "msg", role: "assistant", usage: { ...usage, output_tokens: 1 } } },
    { input: input + read + written, output: 1 }
  )
  let index = 0
  const block = (content_block: Json, deltas: ReadonlyArray<Json>) => {
    add({ type: "content_block_start", index, content_block })
    for (const delta of deltas) {
      add({ type: "content_block_delta", index, delta })
      if (chance.is(0.1)) add({ type: chance.pick(["ping", "weather_report"]), note: "…" })
    }
    add({ type: "content_block_stop", index: index++ })
  }
  if (chance.is(0.2))
    block({ type: "thinking", thinking: "", signature: "" }, [
      { type: "thinking_delta", thinking: "so …" },
      { type: "signature_delta", signature: "c2ln" }
    ])
  if (text !== "")
    block(
      { type: "text", text: "" },
      pieces(text, chance).map((piece) => ({ type: "text_delta", text: piece }))
    )
  for (const { id, json, name } of calls)
    block(
      { type: "tool_use", id, name, input: {} },
      pieces(json, chance).map((partial_json) => ({ type: "input_json_delta", partial_json }))
    )
  const spent = { input: input + read + written, output }
  const end = {
    type: "message_delta",
    delta: { stop_reason: REASONS.anthropic[stop] },
    // some tell all sums again
    usage: chance.is(0.5) ? { output_tokens: output } : { ...usage, output_tokens: output }
  }
  add(end, spent, "why")
  if (chance.is(0.1)) add(end, spent)
  add({ type: "message_stop" }, spent, "end")
  return frames
}

const ofOpenAi = ({ calls, stop, text }: Answer, chance: Chance): ReadonlyArray<Frame> => {
  const frames: Array<Frame> = []
  const input = 1 + chance.below(400)
  const output = 1 + chance.below(60)
  let spent: Spent = { input: 0, output: 0 }
  /** How it tells of usage: at the end, with each chunk, or not at all. */
  const tells = chance.pick(["end", "end", "each", "never"])
  const usageOf = (now: Spent): Json => {
    spent = now
    return { prompt_tokens: now.input, completion_tokens: now.output }
  }
  const add = (delta: Json, finish_reason: string | null = null) => {
    const usage =
      tells === "each" ? { usage: usageOf({ input, output: Math.min(output, frames.length) }) } : { usage: null }
    const chunk = { object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }], ...usage }
    frames.push({
      text: `data: ${JSON.stringify(chunk)}\n\n`,
      spent,
      ...(finish_reason === null ? {} : { says: "why" as const })
    })
    if (chance.is(0.05)) frames.push({ text: ": keep-alive\n\n", spent })
  }
  add({ role: "assistant", content: "" })
  for (const piece of pieces(text, chance)) add(stop === "refusal" ? { refusal: piece } : { content: piece })
  // without an index a call is known by its id
  const isWhole =
    chance.is(0.3) && new Set(calls.map(({ id }) => id)).size === calls.length && calls.every(({ id }) => id)
  for (const [index, { id, json, name }] of calls.entries()) {
    if (isWhole) add({ tool_calls: [{ id, type: "function", function: { name, arguments: json } }] })
    else {
      add({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] })
      for (const piece of pieces(json, chance)) add({ tool_calls: [{ index, function: { arguments: piece } }] })
    }
  }
  add({}, REASONS.openai[stop])
  if (tells === "end") {
    const usage = usageOf({ input, output })
    frames.push({ text: `data: ${JSON.stringify({ choices: [], usage })}\n\n`, spent })
  }
  frames.push({ text: "data: [DONE]\n\n", spent, says: "end" })
  return frames
}

/** The events of an answer; lines end as a server of this kind ends them. */
export const framesOf = (dialect: Dialect, answer: Answer, chance: Chance): ReadonlyArray<Frame> => {
  const frames = dialect === "anthropic" ? ofAnthropic(answer, chance) : ofOpenAi(answer, chance)
  if (!chance.is(0.2)) return frames
  return frames.map((frame) => ({ ...frame, text: frame.text.replaceAll("\n", "\r\n") }))
}
