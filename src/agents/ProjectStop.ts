/**
 * ProjectStop: a project that a person has stopped as a whole, and its start.
 *
 * Guarantees: the log says it before the first agent is ended, so that a daemon that dies meanwhile goes on with it,
 * and the next one keeps them stopped; what has stopped before, by itself or by a person, is not started with it.
 */
import { Effect } from "effect"
import { type Caller, CommandRefused, type Done } from "../domain/Messages.ts"
import type { projectKinds } from "../domain/ProjectKinds.ts"
import type { StorageError } from "../event-log/EventLog.ts"
import type { RuneOf } from "../event-log/EventKinds.ts"
import type { Project } from "./Project.ts"

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

/** Folds a rune in. */
export const apply = (record: Record, { at, eventId, kind, payload }: RuneOf<typeof projectKinds>): void => {
  if (kind === "project.stopped") record.stopped = { by: payload.by, since: at, eventId }
  if (kind === "project.started") record.stopped = null
}

const WITH = ", with its project"

/** The author of the stop of an agent whose project is stopped: a name that no login has. */
export const authorOf = (by: string): string => `${by}${WITH}`

/** Whether an agent was stopped with its project. */
export const isWith = (stoppedBy: string | null | undefined): boolean => stoppedBy?.endsWith(WITH) === true

/** Why an agent of it is not started. */
export const refusalOf = (name: string, { stopped }: Record): CommandRefused | undefined =>
  stopped === null
    ? undefined
    : new CommandRefused({
        message: `The project ${name} is stopped, by ${stopped.by}: none of its agents starts.`,
        remedy: `Start it with all of them: agentd project start ${name}`
      })

const listed = (names: ReadonlyArray<string>): string => (names.length === 0 ? "none" : names.join(", "))

type Answer = Effect.Effect<Done, CommandRefused | StorageError>

/** Answers when its agents are ended. */
export const stop = (project: Project, caller: Caller): Answer =>
  Effect.gen(function* () {
    const { household, name, record } = project
    if (project.isOver !== undefined) return yield* project.isOver
    if (record.stopped === null) yield* project.say("project.stopped", caller.by)
    const { by = caller.by, eventId = 0 } = record.stopped ?? {}
    const ended = yield* household.halt({ ...caller, by: authorOf(by) })
    return {
      eventId,
      message: `${name} is stopped; ended: ${listed(ended)}. It stays so until: agentd project start ${name}`
    }
  }).pipe(Effect.uninterruptible)

/** Answers when those have begun that were stopped with it. */
export const start = (project: Project, caller: Caller): Answer =>
  Effect.gen(function* () {
    const { household, name, record } = project
    if (project.isOver !== undefined) return yield* project.isOver
    const eventId =
      record.stopped === null ? project.life.snapshot.entered : yield* project.say("project.started", caller.by)
    const begun = yield* household.wake(caller)
    const left = household.still
    const rest =
      left.length === 0 ? "" : ` Stopped before, and left so: ${listed(left)}; agentd start ${name}/${left[0]!}`
    return { eventId, message: `${name} is started; begun: ${listed(begun)}.${rest}` }
  }).pipe(Effect.uninterruptible)
