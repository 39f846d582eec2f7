/** ScheduleTable: formats schedules as a table. Pure except for the machine's time zone. */
import { occasion } from "../../domain/ScheduleKey.ts"
import type { ScheduleInfo } from "../../domain/ScheduleMessages.ts"
import { age, type Cell, clock, type Colour, plain, table, type TableOptions } from "../render/Output.ts"

/** A time as text, such as `09:00 (in 3h)`, in local time. The date is added if it is not today. */
export const moment = (at: number, now: number): string => {
  const time = clock(at, now).replace(/:00$/u, "")
  return at > now ? `${time} (in ${age(at - now)})` : `${time} (${age(now - at)} ago)`
}

const colours: { readonly [state in ScheduleInfo["state"]]: Colour } = {
  waits: "green",
  paused: "yellow",
  held: "yellow",
  done: "dim"
}

const whatOf = ({ work: { goal, send } }: ScheduleInfo): string =>
  send === undefined ? `goal: ${plain(goal?.text ?? "")}` : `to ${send.agent}: ${plain(send.text)}`

const timesOf = ({ cron, timeZone }: ScheduleInfo): string => (cron === null ? "once" : `${cron} ${timeZone}`)

const ranOf = ({ last, skipped }: ScheduleInfo, now: number): string => {
  const ran =
    last === null
      ? []
      : [
          `${occasion(last.asked)} ${clock(last.due, now).replace(/:00$/u, "")}${last.goalId === null ? "" : ` → ${last.goalId}`}${last.underWay ? ", in progress" : ""}`
        ]
  const missed =
    skipped === null
      ? []
      : [
          `${skipped.count >= 100 ? "100 or more" : skipped.count} skipped, the last ${clock(skipped.due, now).replace(/:00$/u, "")}: ${plain(skipped.reason)}`
        ]
  return [...ran, ...missed].join("; ") || "-"
}

/** The status of a schedule, with the user who paused it, or the reason why it does not run. */
const stateOf = ({ next, pausedBy, state }: ScheduleInfo): string => {
  if (state === "paused") return pausedBy === null ? "paused" : `paused by ${plain(pausedBy)}`
  if (state === "held") return "held: its project accepts no work"
  return next === null && state === "waits" ? "never due" : state
}

const rowOf = (info: ScheduleInfo, now: number): ReadonlyArray<Cell> => [
  { text: `${info.project}/${info.name}`, colour: "bold" },
  { text: stateOf(info), colour: colours[info.state] },
  { text: info.next === null ? "-" : moment(info.next, now) },
  { text: timesOf(info) },
  { text: ranOf(info, now) },
  { text: whatOf(info) }
]

export const list = (
  schedules: ReadonlyArray<ScheduleInfo>,
  now: number,
  options: TableOptions
): ReadonlyArray<string> =>
  schedules.length === 0
    ? ['There are no schedules. Create one: agentd at 9:00 send AGENT "…", or add "schedules" to agentd.jsonc.']
    : table(
        ["SCHEDULE", "STATE", "NEXT", "TIMES", "LAST", "WHAT"],
        schedules.map((info) => rowOf(info, now)),
        { spare: ["TIMES"], ...options }
      )
