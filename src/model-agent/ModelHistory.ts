/**
 * ModelHistory: repairs a conversation's history so that providers accept it. Pure.
 *
 * Guarantees: after `repair`, every call is followed by exactly one result, every result belongs to a call, and no
 * answer consists only of thinking. An unanswered input at the end is removed, because it will be sent again.
 */
import type { CallPart, CallResult, Message, Part } from "./Provider.ts"

export const LOST =
  "The outcome of this call is unknown: the agent's process ended while it ran. Look before you repeat it."

/** Text that replaces an empty answer. */
export const SILENT: Message = { role: "user", text: "(You answered this with nothing.)", note: true }

/**
 * True if an answer contains text or a call. No API accepts a history with an answer that consists only of thinking.
 */
export const speaks = (parts: ReadonlyArray<Part>): boolean =>
  parts.some((part) => part.type === "call" || (part.type === "text" && part.text.trim() !== ""))

export const callsIn = (message: Message | undefined): ReadonlyArray<CallPart> =>
  message?.role === "assistant" ? message.parts.flatMap((part) => (part.type === "call" ? [part] : [])) : []

/** Creates one result for each call, in the order of the calls. */
const resultsFor = (
  calls: ReadonlyArray<CallPart>,
  found: ReadonlyArray<CallResult>
): Extract<Message, { role: "tool" }> => ({
  role: "tool",
  results: calls.map(({ id }) => found.find(({ callId }) => callId === id) ?? { callId: id, output: LOST, error: true })
})

export const repair = (history: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const sound: Array<Message> = []
  let open: ReadonlyArray<CallPart> = []
  for (const message of history) {
    if (message.role === "tool") {
      if (open.length > 0) sound.push(resultsFor(open, message.results))
    } else {
      if (open.length > 0) sound.push(resultsFor(open, []))
      if (message.role === "user" || speaks(message.parts)) sound.push(message)
      else if (unanswered(sound)) sound.push(SILENT)
    }
    open = callsIn(message)
  }
  if (open.length > 0) sound.push(resultsFor(open, []))
  while (unanswered(sound)) sound.pop()
  return sound
}

/** True if the last entry is an input that has not been answered. */
export const unanswered = (history: ReadonlyArray<Message>): boolean => {
  const last = history.at(-1)
  return last?.role === "user" && last.note !== true
}
