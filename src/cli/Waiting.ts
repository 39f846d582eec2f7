/**
 * Waiting: what waits for a person's yes, no or choice, each with what it would do, and the
 * channels that only a person sets going again. Pure; `waiting` shows it all, `approve`,
 * `deny` and `answer` what takes an answer, when no call is named.
 *
 * Guarantees: this is a glance: arguments are bounded, what does not show as itself is marked,
 * and a cut says how much it left out; a call is approved where all of it is shown. A session
 * that asks in its own terminal only is listed with where that is.
 */
import type { ChannelInfo } from "../domain/ChannelMessages.ts"
import type { CallInfo, PlateInfo, ProjectInfo } from "../domain/Messages.ts"
import type { Question } from "../backends/Question.ts"
import { visible } from "../domain/Visible.ts"
import type { World } from "./DeclaredVerb.ts"
import * as ConfigRows from "./ConfigRows.ts"
import { inWorld } from "./Hint.ts"
import { age, paint, plain } from "./Output.ts"
import { waits } from "./SessionTable.ts"

export interface Waiting {
  readonly calls: ReadonlyArray<CallInfo>
  readonly sessions: ReadonlyArray<PlateInfo>
  /** Sessions that wait, and take no answer from here. */
  readonly elsewhere: ReadonlyArray<PlateInfo>
  /** Channels that rest, or in which a post reaches no agent. */
  readonly channels: ReadonlyArray<ChannelInfo>
  /** Projects whose file is not the config in force. */
  readonly projects: ReadonlyArray<ProjectInfo>
}

export const waitingOf = (
  all: ReadonlyArray<CallInfo>,
  plates: ReadonlyArray<PlateInfo>,
  channels: ReadonlyArray<ChannelInfo> = [],
  projects: ReadonlyArray<ProjectInfo> = []
): Waiting => {
  const calls = all.filter(({ state }) => state === "awaiting_approval")
  const asking = new Set(calls.map(({ agent, project }) => `${project}/${agent}`))
  return {
    calls,
    projects: ConfigRows.troubled(projects),
    channels: channels.filter(({ waits }) => waits !== null),
    sessions: plates.filter(({ approval }) => approval !== null),
    // a run of ours waits for the call that is listed already
    elsewhere: plates.filter(
      (plate) => waits(plate) && plate.approval === null && (plate.agent === null || !asking.has(plate.agent))
    )
  }
}

/** So much of a call's arguments is shown at a glance: all that the daemon gives, which says itself what it left out. */
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
  const shown = visible(text.slice(0, ARGUMENTS)).replaceAll("\n", "\\u{a}")
  return text.length <= ARGUMENTS ? shown : `${shown} … and ${text.length - ARGUMENTS} more characters`
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

const shortener = ({ calls, elsewhere, sessions }: Waiting) =>
  shorten([...calls.map(({ callId }) => callId), ...[...sessions, ...elsewhere].map(({ plateId }) => plateId)])

const whereOf = ({ agent }: PlateInfo, id: string): string =>
  agent === null ? `in its terminal: agentd focus ${plain(id)}` : `see what it does: agentd attach ${plain(agent)}`

export const render = (waiting: Waiting, now: number, colour: boolean): ReadonlyArray<string> => {
  const { calls, channels, elsewhere, projects, sessions } = waiting
  if (calls.length + sessions.length + elsewhere.length + channels.length + projects.length === 0)
    return ["Nothing waits for an answer."]
  const short = shortener(waiting)
  const session = (plate: PlateInfo) =>
    `${paint(colour, "bold", short(plate.plateId))}  the session in ${plain(plate.cwd ?? "an unknown folder")}: ${plain(plate.detail)} (asks for ${age(now - plate.since)})`
  return [
    ...calls.flatMap((call) => {
      const head = `${paint(colour, "bold", plain(short(call.callId)))}  ${plain(`${call.project}/${call.agent}`)}`
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
      session(plate),
      ...choices(plate.questions ?? []).map((line) => `    ${line}`),
      ...(plate.arguments === undefined ? [] : [`    ${argumentsOf(plate.arguments)}`])
    ]),
    ...elsewhere.flatMap((plate) => [session(plate), `    ${whereOf(plate, short(plate.plateId))}`]),
    ...ConfigRows.rows(projects, now, colour),
    ...channels.map(
      ({ name, project, waits }) =>
        `${paint(colour, "bold", `#${plain(name)}`)} of ${plain(project)} ${plain(waits ?? "")}`
    )
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

/** All of it, and how to answer the first. */
export const view = (waiting: Waiting, { colour, now, world }: World): ReadonlyArray<string> => {
  const lines = render(waiting, now, colour)
  const advice = inWorld(adviceOf(waiting), world)
  return advice === "" ? lines : [...lines, "", paint(colour, "dim", advice)]
}
