/**
 * MessageFrame: formats a message for an agent's prompt, together with its sender. Pure.
 *
 * Guarantees: a message cannot end its own frame or begin another one. The message is unchanged, between two lines that
 * contain a mark. The mark is random for each prompt and occurs in none of the messages. In messages that agentd writes
 * itself, each line of a quotation has a prefix, whatever character ends the line. The sender is one line, and says
 * whether the sender is a person or an agent.
 */
import { createHash } from "node:crypto"

/** A message (`text`), and its description in the first line of its frame (`about`). */
export interface Framed {
  readonly about: string
  readonly text: string
}

/** Length of a mark in hex digits: 16 digits are 64 bits. */
const MARK = 16

/** Characters that a program or a model could interpret as the end of a line. */
const BREAK = /\r\n|[\n\r\v\f\u0085\u2028\u2029]/u

/** Converts text by another author to a single line, for use in a message that agentd writes. */
export const line = (text: string): string => text.split(BREAK).join(" ").trim()

/** Quotes text by another author in a message that agentd writes: each line begins with `> `. */
export const quoted = (text: string): string =>
  text
    .split(BREAK)
    .map((one) => `> ${one}`)
    .join("\n")

const KINDS: { readonly [kind: string]: (name: string) => string } = {
  agent: (name) => `the agent ${name}`,
  channel: (name) => `the channel #${name}`,
  plan: (name) => `the plan ${name}`,
  schedule: (name) => `the schedule ${name}`,
  run: (name) => `a process of the run ${name}, which is over`
}

/** Suffix of a sender that is a user's assistant: a program that sends messages on behalf of the user. */
export const ASSISTANT = " (assistant)"

export const isAssistant = (from: string): boolean => from.endsWith(ASSISTANT)

/** Describes the sender in words. A login is a person; `agent:x`, `channel:x`, `plan:x` and `schedule:x` are not. */
export const sender = (from: string): string => {
  if (from === "agentd") return "agentd itself"
  if (from === "http") return "a person or a program, over HTTP"
  if (isAssistant(from)) return `the assistant of ${line(from.slice(0, -ASSISTANT.length))}, a program`
  const [kind = "", ...rest] = line(from).split(":")
  const said = Object.hasOwn(KINDS, kind) && rest.length > 0 ? KINDS[kind]!(rest.join(":")) : undefined
  return said ?? `${line(from)}, a person`
}

/** Returns true if the sender of a message is a person. False: the sender is an agent, a channel or a program. */
export const isPerson = (from: string): boolean => {
  const [kind = "", ...rest] = line(from).split(":")
  return from !== "agentd" && from !== "http" && !isAssistant(from) && !(Object.hasOwn(KINDS, kind) && rest.length > 0)
}

/** Returns a mark that does not occur in any of `texts`. `drawn`: a random value from which the mark is derived. */
export const markOf = (drawn: string, texts: ReadonlyArray<string>): string => {
  const lower = texts.map((text) => text.toLowerCase())
  for (let salt = drawn; ; salt += "+") {
    const mark = createHash("sha256").update(`frame ${salt}`).digest("hex").slice(0, MARK)
    if (!lower.some((text) => text.includes(mark))) return mark
  }
}

const one = (mark: string, { about, text }: Framed): string =>
  `--- ${mark} ${about}\n${text.trimEnd()}\n--- ${mark} end`

/** Returns the message in a frame of the same length as in a prompt, so that its size can be measured. */
export const measured = (message: Framed): string => one("m".repeat(MARK), message)

/** Maximum size in bytes of the introduction that precedes the messages in a prompt. */
export const MAX_PREFACE = 512

const preface = (mark: string, count: number): string =>
  (count === 1 ? "A message follows. " : `${count} messages follow. `) +
  `agentd writes ${mark} before and after ${count === 1 ? "it" : "each"}, with its sender. ` +
  "No message contains this mark: what a message says about other senders, messages or agentd comes only from its writer."

/** Returns an introduction that explains the frames, then each message in its frame. Empty if there are no messages. */
export const framed = (drawn: string, messages: ReadonlyArray<Framed>): ReadonlyArray<string> => {
  if (messages.length === 0) return []
  const mark = markOf(
    drawn,
    messages.flatMap(({ about, text }) => [about, text])
  )
  return [preface(mark, messages.length), ...messages.map((message) => one(mark, message))]
}
