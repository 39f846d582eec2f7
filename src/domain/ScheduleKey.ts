/**
 * ScheduleKey: the key of one time of a schedule. It is the id of the message, or the key of the goal, that is sent
 * then. Pure except for the machine's time zone in `said`.
 */
export interface Key {
  readonly name: string
  /** ms since the epoch */
  readonly due: number
  /** True: a person requested the run; it is not one of the schedule's times. */
  readonly asked: boolean
}

/** The sender's name for agents and people. */
export const senderOf = (name: string): string => `schedule:${name}`

export const keyOf = ({ asked, due, name }: Key): string =>
  `schedule/${name}@${new Date(due).toISOString()}${asked ? "/asked" : ""}`

const KEY = /^schedule\/([^@/]+)@(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)(\/asked)?$/u

/** Undefined if the text is not a schedule's key. */
export const keyIn = (text: string): Key | undefined => {
  const [, name, due, asked] = KEY.exec(text) ?? []
  return name === undefined || due === undefined
    ? undefined
    : { name, due: Date.parse(due), asked: asked !== undefined }
}

const two = (value: number): string => String(value).padStart(2, "0")

/** `the schedule nightly, due 2026-11-26 02:30`, in local time. */
export const said = ({ asked, due, name }: Key): string => {
  const date = new Date(due)
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  return `the schedule ${name}, ${asked ? "asked for" : "due"} ${day} ${two(date.getHours())}:${two(date.getMinutes())}`
}
