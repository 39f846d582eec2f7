/**
 * ProjectStop: whether a user has stopped a whole project, according to the project's log. Pure.
 */
import { type CommandRefused, refuse } from "../../domain/Messages.ts"
import type { projectKinds } from "../../domain/ProjectKinds.ts"
import type { RuneOf } from "../../core/event-log/EventKinds.ts"

export interface Stopped {
  readonly by: string
  /** When the project was stopped, ms since the epoch. */
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

/** Author of an agent's stop if the stop of the whole project caused it. No login can have this name. */
export const authorOf = (by: string): string => `${by}${WITH}`

/** Whether an agent is stopped because its whole project was stopped. */
export const isWith = (stoppedBy: string | null | undefined): boolean => stoppedBy?.endsWith(WITH) === true

/** The command with which the user starts a stopped agent. `name`: `<project>/<agent>`. */
export const startOf = (name: string, stoppedBy: string | null | undefined): string =>
  isWith(stoppedBy) ? `agentd project start ${name.split("/")[0]!}` : `agentd start ${name}`

/** The error when an agent is started in a stopped project; undefined if the project is not stopped. */
export const refusalOf = (name: string, { stopped }: Record): CommandRefused | undefined =>
  stopped === null
    ? undefined
    : refuse(
        "paused",
        `The project ${name} is stopped (by ${stopped.by}): none of its agents can start.`,
        `Start it with all its agents: agentd project start ${name}`
      )
