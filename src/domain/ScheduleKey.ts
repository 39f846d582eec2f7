/**
 * ScheduleKey: the key that identifies one run of a schedule. The message that the run sends has this key as its id; a
 * goal that the run submits has it as its key. Pure, except that `said` uses the machine's time zone.
 */
export interface Key {
  readonly name: string
  /** When the run is due, in ms since the epoch. */
  readonly due: number
  /** True: a user requested the run. False: the run was due according to the schedule. */
  readonly asked: boolean
}

/** Sender name that agents and users see for messages of a schedule. */
export const senderOf = (name: string): string => `schedule:${name}`

export const keyOf = ({ asked, due, name }: Key): string =>
  `schedule/${name}@${new Date(due).toISOString()}${asked ? "/asked" : ""}`

const KEY = /^schedule\/([^@/]+)@(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)(\/asked)?$/u

/** Parses a schedule key; undefined: the text is not a schedule key. */
export const keyIn = (text: string): Key | undefined => {
  const [, name, due, asked] = KEY.exec(text) ?? []
  return name === undefined || due === undefined
    ? undefined
    : { name, due: Date.parse(due), asked: asked !== undefined }
}

const two = (value: number): string => String(value).padStart(2, "0")

/** Says whether a run of a schedule was requested or due; a time follows. */
export const occasion = (asked: boolean): string => (asked ? "run by hand" : "due")

/** Describes a run of a schedule: `the schedule nightly, due 2026-11-26 02:30`, in local time. */
export const said = ({ asked, due, name }: Key): string => {
  const date = new Date(due)
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  return `the schedule ${name}, ${occasion(asked)} ${day} ${two(date.getHours())}:${two(date.getMinutes())}`
}
