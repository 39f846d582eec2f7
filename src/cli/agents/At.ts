/** `agentd at TIME send AGENT TEXT`, `agentd at TIME goal TEXT`: sends one message or goal at a later time. */
import type { Work } from "../../domain/ScheduleMessages.ts"
import * as FutureTime from "../parse/FutureTime.ts"
import { choice, declare, map, option, send, words, type Wrong } from "../parse/DeclaredVerb.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import * as GoalFlags from "../goals/GoalFlags.ts"
import { plain } from "../render/Output.ts"
import { troubleIn } from "../render/PlainText.ts"
import { moment } from "./ScheduleTable.ts"

const VERBS: ReadonlyArray<string> = ["send", "goal"]

interface Parts {
  readonly coming: FutureTime.FutureTime
  readonly verb: string
  readonly rest: ReadonlyArray<string>
}

const USAGE = 'agentd at 9:00 send AGENT "…", or agentd at 9:00 goal "…"'

const usage = (message: string, remedy: string): Wrong => ({ message, remedy, exitCode: ExitCode.usage })

const partsOf = (all: ReadonlyArray<string>, span: string | undefined): Parts | Wrong => {
  const place = all.findIndex((one) => VERBS.includes(one))
  if (place === -1) return usage("The action is missing.", `Add send or goal: ${USAGE}`)
  const time = all.slice(0, place).join(" ")
  if (time !== "" && span !== undefined)
    return usage("A time and --in cannot be used together.", "Use only one of them.")
  const given = span === undefined ? time : `in ${span}`
  const coming = FutureTime.parse(given)
  if (coming === undefined) {
    return usage(
      given === "" ? "The time is missing." : `Cannot read "${plain(given)}" as a future time.`,
      `Use a form such as ${FutureTime.FORM}.`
    )
  }
  return { coming, verb: all[place]!, rest: all.slice(place + 1) }
}

const textOf = ({ rest, verb }: Parts): string => (verb === "send" ? rest.slice(1) : rest).join(" ")

interface Given {
  readonly words: ReadonlyArray<string>
  readonly in: string | undefined
}

const wrongOf = (given: Given & GoalFlags.Given): Wrong | undefined => {
  const parts = partsOf(given.words, given.in)
  if (!("coming" in parts)) return parts
  if (textOf(parts).trim() === "") return usage("The text is missing.", `Add the text: ${USAGE}`)
  if (parts.verb === "send" && Object.keys(GoalFlags.given(given)).length > 0)
    return usage("Options of goals cannot be used with send.", `Remove them, or submit a goal: ${USAGE}`)
  const trouble = troubleIn(textOf(parts))
  return trouble === undefined ? undefined : { ...trouble, exitCode: ExitCode.usage }
}

export const at = declare({
  path: ["at"],
  description: "Send a message or submit a goal once, at a later time",
  examples: [
    {
      command: 'agentd at 9:00 send builder "Look at the night\'s errors"',
      description: "Send the message at the next 9:00"
    },
    {
      command: 'agentd at fri 17:30 goal "Release 2.0" --auto-start',
      description: "Submit a goal next Friday at 17:30, with an option for agentd goal"
    },
    { command: 'agentd at --in 20m send builder "Is it done?"', description: "Send the message in twenty minutes" },
    { command: "agentd schedule rm at-1", description: "Cancel the schedule at-1, which agentd at made" }
  ],
  args: {
    words: words(`The time (${FutureTime.FORM}), then send AGENT TEXT, or goal TEXT`, "time-and-what"),
    in: option("TIME", "Time from now, such as 20m or 1h30m"),
    catchUp: {
      ...choice(
        ["once", "none"],
        "once",
        "If the time is missed (daemon down, machine asleep, project paused): once = run as soon as possible, none = skip"
      ),
      name: "catch-up"
    },
    ...GoalFlags.flags
  },
  wrong: wrongOf,
  rpc: (given, caller, { now }) => {
    const parts = partsOf(given.words, given.in)
    if (!("coming" in parts)) throw new Error(parts.message)
    const due = FutureTime.atOf(parts.coming, now)
    const text = textOf(parts)
    const work: Work =
      parts.verb === "send" ? { send: { agent: parts.rest[0]!, text } } : { goal: { text, ...GoalFlags.given(given) } }
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions()
    return map(send("ScheduleAdd", { due, timeZone, work, catchUp: given.catchUp, caller }), (done) => ({
      ...done,
      due
    }))
  },
  view: ({ due, message, name }, { now }) => [
    `${plain(message)} Due at ${moment(due, now)}. To cancel: agentd schedule rm ${plain(name)}`
  ]
})
