/**
 * Prompt: what an agent is told at the start of a run. Pure: the same parts give
 * the same text.
 *
 * Order: who it is, its standing task, what became of the last run, then the
 * messages, oldest first. Messages that would make it longer than `MAX_PROMPT_BYTES`
 * wait for the next run, urgent ones last of all; what a run has carried already is
 * carried again whatever else the prompt holds, since nobody else keeps it.
 */
import type { Message } from "./Inbox.ts"

/** Well under the size that a rune may have. */
export const MAX_PROMPT_BYTES = 512 * 1024

export interface Parts {
  readonly agent: string
  readonly role: string | undefined
  readonly instructions: string | undefined
  /** The standing task of an agent that loops. */
  readonly task: string | undefined
  /** What became of the last run, where it did not end well. */
  readonly lastRun: string | undefined
  /** What that run carried and did not finish, then what has come since; oldest first. */
  readonly unfinished: ReadonlyArray<Message>
  readonly waiting: ReadonlyArray<Message>
}

export interface Prompt {
  readonly text: string
  /** What the text carries: unfinished ones first. */
  readonly messageIds: ReadonlyArray<string>
}

const bytes = (text: string): number => Buffer.byteLength(text, "utf8")

const said = (message: Message): string =>
  `From ${message.from}${message.urgent ? " (urgent)" : ""}:\n${message.text.trimEnd()}`

export const assemble = (parts: Parts): Prompt => {
  const head = [
    parts.role === undefined ? undefined : `You are ${parts.agent}: ${parts.role.trim()}`,
    parts.instructions?.trim(),
    parts.task?.trim(),
    parts.lastRun === undefined
      ? undefined
      : `Your last run ended early: ${parts.lastRun.replace(/\.$/, "")}. Take up its work again.`
  ].filter((part) => part !== undefined && part !== "")
  const carried = new Set(parts.unfinished)
  let size = bytes([...head, ...parts.unfinished.map(said)].join("\n\n"))
  for (const message of parts.waiting.toSorted((a, b) => Number(b.urgent) - Number(a.urgent))) {
    size += bytes(said(message)) + 2
    // one message always fits: its size is bounded where it is received
    if (size > MAX_PROMPT_BYTES && carried.size > 0) break
    carried.add(message)
  }
  const messages = [...parts.unfinished, ...parts.waiting.filter((message) => carried.has(message))]
  return {
    text: [...head, ...messages.map(said)].join("\n\n") + "\n",
    messageIds: messages.map(({ messageId }) => messageId)
  }
}
