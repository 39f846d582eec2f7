/**
 * Waiting: what waits for a person's yes, no or choice, each with what it would do. Pure;
 * `approve`, `deny` and `answer` show it when no call is named.
 *
 * Guarantees: arguments are shown as they are, made harmless and bounded, and a
 * cut says how much it left out: nobody approves what they were not shown.
 */
import type { CallInfo, PlateInfo } from "../domain/Messages.ts"
import type { Question } from "../domain/Question.ts"
import { age, paint, plain } from "./Output.ts"

export interface Waiting {
  readonly calls: ReadonlyArray<CallInfo>
  readonly sessions: ReadonlyArray<PlateInfo>
}

export const waitingOf = (calls: ReadonlyArray<CallInfo>, plates: ReadonlyArray<PlateInfo>): Waiting => ({
  calls: calls.filter(({ state }) => state === "awaiting_approval"),
  sessions: plates.filter(({ approval }) => approval !== null)
})

/** So much of a call's arguments is shown: all that the daemon gives, which says itself what it left out. */
const ARGUMENTS = 2400
/** Shorter beginnings of ids are hardly ever unique. */
const SHORTEST = 12

/** The least beginning that tells them all apart. */
export const shorten = (ids: ReadonlyArray<string>): ((id: string) => string) => {
  const longest = Math.max(0, ...ids.map((id) => id.length))
  let length = SHORTEST
  while (length < longest && new Set(ids.map((id) => id.slice(0, length))).size < new Set(ids).size) length++
  return (id) => id.slice(0, length)
}

export const argumentsOf = (text: string): string => {
  const shown = plain(text.slice(0, ARGUMENTS))
  return text.length <= ARGUMENTS
    ? shown
    : `${shown} … and ${text.length - ARGUMENTS} more characters, which are in the log`
}

/** Each question with its options, as they are answered by number. */
export const choices = (questions: ReadonlyArray<Question>): ReadonlyArray<string> =>
  questions.flatMap(({ options, question, several }) => [
    `${plain(question)}${several ? " (one or more)" : ""}`,
    ...options.map(
      ({ description, label }, at) =>
        `  ${at + 1}  ${plain(label)}${description === "" ? "" : `: ${plain(description)}`}`
    )
  ])

const until = (call: CallInfo, now: number): string =>
  call.until === null ? "" : call.until > now ? `, ${age(call.until - now)} are left` : ", its time is over"

const shortener = ({ calls, sessions }: Waiting) =>
  shorten([...calls.map(({ callId }) => callId), ...sessions.map(({ plateId }) => plateId)])

export const render = (waiting: Waiting, now: number, colour: boolean): ReadonlyArray<string> => {
  const { calls, sessions } = waiting
  if (calls.length + sessions.length === 0) return ["Nothing waits for an answer."]
  const short = shortener(waiting)
  return [
    ...calls.flatMap((call) => {
      const head = `${paint(colour, "bold", plain(short(call.callId)))}  ${call.project}/${call.agent}`
      const since = `(asks for ${age(now - call.since)}${until(call, now)})`
      if (call.questions !== undefined)
        return [
          `${head} ${paint(colour, "yellow", "asks you to choose")} ${since}`,
          ...choices(call.questions).map((line) => `    ${line}`)
        ]
      return [
        `${head} wants to use ${paint(colour, "yellow", plain(call.tool))} ${since}`,
        `    ${argumentsOf(call.arguments)}`,
        ...(call.reason === null ? [] : [paint(colour, "dim", `    ${plain(call.reason)}`)])
      ]
    }),
    ...sessions.flatMap((plate) => [
      `${paint(colour, "bold", short(plate.plateId))}  the session in ${plain(plate.cwd ?? "an unknown folder")}: ${plain(plate.detail)} (asks for ${age(now - plate.since)})`,
      ...choices(plate.questions ?? []).map((line) => `    ${line}`)
    ])
  ]
}

/** How to answer; empty where nothing waits. */
export const adviceOf = (waiting: Waiting): string => {
  const first = waiting.calls[0]?.callId ?? waiting.sessions[0]?.plateId
  if (first === undefined) return ""
  const id = plain(shortener(waiting)(first))
  const asked = (waiting.calls[0] ?? waiting.sessions[0])?.questions
  if (asked !== undefined)
    return `agentd answer ${id} ${asked.map(() => "1").join(" ")}   or   agentd answer ${id} "a text"`
  return `agentd approve ${id}   or   agentd deny ${id} --reason "…"`
}
