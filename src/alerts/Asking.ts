/**
 * Asking: writes the notices that ask the user for an answer: about a call of an agent, or a session that the user runs
 * by hand. Pure.
 */
import { attempt } from "../config/Attempt.ts"
import type { CallInfo, PlateInfo } from "../domain/Messages.ts"
import { span } from "../domain/StatusWords.ts"
import * as Notice from "./Notice.ts"

/** Maximum length of a call's input in a notice, in characters. */
const MAX_INPUT = 200

/** Shortens an id so that it can be typed. The result is long enough to be unique. */
export const shortId = (id: string): string => id.slice(0, 12)

/** The value of `command` if the arguments begin with it; otherwise the arguments. */
const inputOf = (text: string): string => {
  const [, command] = /^\{"command":("(?:[^"\\]|\\.)*")/su.exec(text) ?? []
  const input = attempt(() => (command === undefined ? text : (JSON.parse(command) as string))) ?? text
  return Notice.fit(Notice.line(input), MAX_INPUT)
}

const left = (until: number | null, now: number): string =>
  until === null ? "" : ` It waits for another ${span(Math.max(0, until - now))}; then the call is denied.`

type Questions = NonNullable<CallInfo["questions"]>

const options = (questions: Questions): ReadonlyArray<string> =>
  questions.flatMap(({ options, question }) => [
    Notice.line(question),
    ...options.map(
      ({ description, label }, at) =>
        `  ${at + 1}  ${Notice.line(description === "" ? label : `${label}: ${description}`)}`
    )
  ])

/** A command that answers each question with its first option. */
const answerTo = (id: string, questions: Questions): string => `answer ${id} ${questions.map(() => "1").join(" ")}`

/** The notice of a call; undefined if the call no longer waits. */
export const ofCall = ({ call, now, project, waiting = 0 }: Notice.Facts): Notice.Words | undefined => {
  if (call === undefined || call.state !== "awaiting_approval") return undefined
  const who = `${project}/${call.agent}`
  const id = shortId(call.callId)
  const about = `call:${call.callId}`
  const others = waiting === 0 ? "" : `\n${waiting} more ${waiting === 1 ? "waits" : "wait"} for you.`
  const [first] = call.questions ?? []
  if (call.questions !== undefined && first !== undefined) {
    return {
      kind: "question",
      title: `${who} asks: ${first.question}`,
      body: `${options(call.questions).join("\n")}${others}`,
      command: first.options.length === 0 ? "agentd waiting" : `agentd ${answerTo(id, call.questions)}`,
      about
    }
  }
  const why = call.reason === null ? "" : `Why it asks: ${Notice.line(call.reason)}.`
  return {
    kind: "needsYou",
    title: `${who} asks to run ${call.tool}`,
    body: `${inputOf(call.arguments)}\n\n${why}${left(call.until, now)}${others}\nThe whole call is shown before you approve it.`,
    command: `agentd approve ${id}`,
    about
  }
}

const FOLDER = /([^/]+)\/*$/u

/** The session's title; if it has none, a name made from its folder. */
export const sessionName = ({ cwd, title }: PlateInfo): string =>
  title ?? `the session in ${FOLDER.exec(cwd ?? "")?.[1] ?? "an unknown folder"}`

/** The notice of a session that waits for the user. `asks` is true for a question, false for an approval. */
export const ofSession = (plate: PlateInfo, asks: boolean) => {
  const id = shortId(plate.plateId)
  const questions = plate.questions ?? []
  const answer = questions.length > 0 ? answerTo(id, questions) : `approve ${id}`
  return {
    kind: asks ? "question" : "needsYou",
    title: `${sessionName(plate)} ${asks ? "asks you" : "asks for approval"}`,
    body: [
      plate.detail,
      ...options(questions),
      ...(plate.arguments === undefined ? [] : [inputOf(plate.arguments)])
    ].join("\n"),
    command: `agentd ${plate.approval === null ? `focus ${id}` : answer}`
  } as const
}
