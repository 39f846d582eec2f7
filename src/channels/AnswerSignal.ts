/**
 * AnswerSignal: separates the signal in an agent's answer from its text. The signal says that the turn is over, or that
 * the agent waits. Pure. The prompt (Floor) teaches agents these forms.
 *
 *     TURN_COMPLETE
 *     WAIT: for the build, until 120s
 *     WAIT: for your decision, until person
 *
 * Guarantees: a signal counts only as the last line, on its own. It is not part of the text.
 */
import { readAnswer } from "./SeatMachine.ts"
import type { Signal } from "../domain/ChannelMessages.ts"

export interface Answer {
  readonly signal: Signal | null
  readonly text: string
}

const MAX_REASON = 500
const MAX_WAIT_SECONDS = 86_400

/** Maximum length of a line that is read as a signal, in characters. */
const MAX_LINE = 1_000
const WAIT = /^\s*WAIT:(.*)$/
const UNTIL = /(?<![\s,;])[\s,;]*\buntil\s+(message|person|(?:in\s+)?\d{1,6}\s*s(?:econds)?|(?=\S*\d)\S+)\s*\.?$/

const untilOf = (word: string, now: number): "message" | "person" | number | undefined => {
  if (word === "message" || word === "person") return word
  const seconds = /^(?:in\s+)?(\d{1,6})\s*s(?:econds)?$/.exec(word)
  if (seconds !== null) return bound(Number(seconds[1]))
  const at = /^\d{4}-\d\d-\d\dT/.test(word) ? Date.parse(word) : Number.NaN
  return Number.isNaN(at) ? undefined : bound((at - now) / 1000)
}

const bound = (seconds: number): number => Math.min(MAX_WAIT_SECONDS, Math.max(1, Math.ceil(seconds)))

/** If a wait names no end, the agent waits for a message in the channel. */
export const readWait = (words: string, now: number): Signal => {
  const named = UNTIL.exec(words)
  const until = named === null ? undefined : untilOf(named[1]!, now)
  const about = until === undefined ? words : words.slice(0, named!.index)
  return {
    _tag: "Wait",
    reason:
      about
        .replace(/^for\s+/i, "")
        .trim()
        .slice(0, MAX_REASON) || "news",
    until: until ?? "message"
  }
}

/**
 * Splits an answer into its text and its signal. `now`: when the answer was given, ms since the epoch. A time of day is
 * converted into a number of seconds from then.
 */
export const read = (output: string, now: number): Answer => {
  const { complete, text } = readAnswer(output)
  if (complete) return { signal: { _tag: "TurnComplete" }, text: text.trim() }
  const body = output.trimEnd()
  const start = body.lastIndexOf("\n") + 1
  const wait = body.length - start > MAX_LINE ? null : WAIT.exec(body.slice(start))
  if (wait === null) return { signal: null, text: body.trim() }
  return { signal: readWait(wait[1]!.trim(), now), text: body.slice(0, start).trim() }
}
