/**
 * DynamicSupervisor: a supervisor to which children can be added, and from which they can be removed, at any time. When
 * its parent restarts it, all added children are started again, except those that were removed or that their owner
 * closed.
 *
 * OTP's supervisors forget added children when they are restarted. This supervisor keeps the list of added children, so
 * that a crash never leaves a project without its agents.
 */
import { Effect } from "effect"
import type { ChildSpec } from "./Child.ts"
import * as Supervisor from "./Supervisor.ts"
import type { Options } from "./SupervisorOptions.ts"
import type { TraceEvent } from "./SupervisorTrace.ts"

export interface DynamicSupervisor {
  /** The specification with which a parent supervisor can start this supervisor. */
  readonly child: ChildSpec
  /** Starts the child, if the supervisor is running. An existing child with the same id is stopped and replaced. */
  readonly add: (spec: ChildSpec) => Effect.Effect<void>
  /** Stops a child and deletes its specification. Returns when the child has ended. */
  readonly remove: (id: string) => Effect.Effect<void>
}

export const make = (options: Omit<Options, "children">): DynamicSupervisor => {
  const specs = new Map<string, ChildSpec>()
  let supervisor: Supervisor.Supervisor | undefined

  const stop = (alive: Supervisor.Supervisor, id: string): Effect.Effect<void> =>
    // ignore errors, because a supervisor that has just ended has already stopped the child
    Effect.ignore(Effect.andThen(alive.terminateChild(id), alive.deleteChild(id)))

  const startIn = (alive: Supervisor.Supervisor, spec: ChildSpec): Effect.Effect<void> =>
    alive.startChild(spec).pipe(
      // the supervisor has ended; its next start will start the child, which is in the list
      Effect.catchTag("SupervisorEnded", () => Effect.void),
      Effect.catch((error) => Effect.logError(`${options.name}: ${spec.id} could not be started`, error)),
      Effect.asVoid
    )

  const remove = (id: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      const known = specs.delete(id)
      return !known || supervisor === undefined ? Effect.void : stop(supervisor, id)
    })

  /** Applies the additions and removals of children that happened while the supervisor was starting. */
  const catchUp = (made: Supervisor.Supervisor, begun: ReadonlyArray<ChildSpec>): Effect.Effect<void> =>
    Effect.suspend(() => {
      supervisor = made
      const gone = begun.filter((spec) => specs.get(spec.id) !== spec)
      const late = [...specs.values()].filter((spec) => !begun.includes(spec))
      return Effect.andThen(
        Effect.forEach(gone, ({ id }) => stop(made, id), { discard: true }),
        Effect.forEach(late, (spec) => startIn(made, spec), { discard: true })
      )
    })

  const onTrace = (event: TraceEvent, name: string): void => {
    if (event._tag === "Exited" && event.ending === "closed") specs.delete(event.child)
    options.onTrace?.(event, name)
  }

  return {
    child: {
      id: options.name,
      type: "supervisor",
      start: Effect.suspend(() => {
        const begun = [...specs.values()]
        return Effect.tap(Supervisor.make({ ...options, onTrace, children: begun }), (made) => catchUp(made, begun))
      })
    },
    remove,
    add: (spec) =>
      Effect.andThen(
        remove(spec.id),
        Effect.suspend(() => {
          specs.set(spec.id, spec)
          return supervisor === undefined ? Effect.void : startIn(supervisor, spec)
        })
      )
  }
}
