/**
 * Prompt: what an agent is told at the start of a run. Pure: the same parts give
 * the same text.
 *
 * Order: who it is, its standing task, what became of the last run, then the
 * messages, oldest first. A prompt never exceeds `MAX_PROMPT_BYTES`: messages that
 * do not fit wait for the next run.
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
  const text = [...head]
  const messageIds: Array<string> = []
  let size = bytes(text.join("\n\n"))
  for (const message of [...parts.unfinished, ...parts.waiting]) {
    const part = said(message)
    size += bytes(part) + 2
    // one message always fits: its size is bounded where it is received
    if (size > MAX_PROMPT_BYTES && messageIds.length > 0) break
    text.push(part)
    messageIds.push(message.messageId)
  }
  return { text: text.join("\n\n") + "\n", messageIds }
}
