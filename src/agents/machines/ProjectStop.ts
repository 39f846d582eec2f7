/** ProjectStop: whether a person has stopped a whole project, according to its log. Pure. */
import { type CommandRefused, refuse } from "../../domain/Messages.ts"
import type { projectKinds } from "../../domain/ProjectKinds.ts"
import type { RuneOf } from "../../core/event-log/EventKinds.ts"

/** Since when a project is stopped, and by whom. */
export interface Stopped {
  readonly by: string
  /** ms since the epoch */
  readonly since: number
  readonly eventId: number
}

interface Record {
  stopped: Stopped | null
}

export const apply = (record: Record, { at, eventId, kind, payload }: RuneOf<typeof projectKinds>): void => {
  if (kind === "project.stopped") record.stopped = { by: payload.by, since: at, eventId }
  if (kind === "project.started") record.stopped = null
}

const WITH = ", with its project"

/** The author of an agent's stop that came with its project: a name that no login can have. */
export const authorOf = (by: string): string => `${by}${WITH}`

/** Whether an agent was stopped with its project. */
export const isWith = (stoppedBy: string | null | undefined): boolean => stoppedBy?.endsWith(WITH) === true

/** The command that starts a stopped agent. `name`: `<project>/<agent>`. */
export const startOf = (name: string, stoppedBy: string | null | undefined): string =>
  isWith(stoppedBy) ? `agentd project start ${name.split("/")[0]!}` : `agentd start ${name}`

/** Why an agent of a stopped project is not started; undefined if the project is not stopped. */
export const refusalOf = (name: string, { stopped }: Record): CommandRefused | undefined =>
  stopped === null
    ? undefined
    : refuse(
        "paused",
        `The project ${name} is stopped, by ${stopped.by}: none of its agents starts.`,
        `Start it with all of them: agentd project start ${name}`
      )
