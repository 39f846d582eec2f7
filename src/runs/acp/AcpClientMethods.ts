/**
 * AcpClientMethods: actions that agentd performs when an agent requests them: reading and writing files, and running
 * commands.
 * Each action is a tool call of the agent, named after the protocol's method.
 *
 * Guarantees: nothing is done before the call, with all its arguments, has been emitted and allowed. Outside a turn
 * nothing is done, because nobody can be asked then. Each call has one result in every case. Nothing that the
 * agent sends can change a call after it was emitted.
 */
import { Cause, Effect, Exit } from "effect"
import type { Note } from "./AcpHistory.ts"
import type { AcpPermissions } from "./AcpPermissions.ts"
import type { AcpEvents } from "./AcpEvents.ts"
import type { AcpUpdates, Deed } from "./AcpUpdates.ts"
import { INTERNAL_ERROR, type Refusal } from "./AcpWire.ts"
import { denialOf, type RunEvent, type ToolStatus } from "../Backend.ts"

export interface Options {
  readonly updates: AcpUpdates
  readonly permissions: AcpPermissions
  /** Emits events after all earlier events. */
  readonly tell: (make: () => ReadonlyArray<RunEvent>) => Effect.Effect<void>
  /** Like `tell`, for events that a later daemon could not derive from the stream. Returns the emitted events. */
  readonly noted: AcpEvents["noted"]
  readonly notice: (text: string) => Effect.Effect<void>
}

export interface AcpClientMethods {
  /** Performs the work as soon as it is allowed. `told` converts the result to the call's output. */
  readonly perform: <A>(
    deed: Deed,
    work: Effect.Effect<A, Refusal>,
    told: (done: A) => string
  ) => Effect.Effect<A, Refusal>
  /**
   * Begins the work as soon as it is allowed. The result follows when `settle` is called. `note` is stored before the
   * work begins.
   */
  readonly begin: <A>(
    deed: Deed,
    work: (callId: string) => Effect.Effect<A, Refusal>,
    note?: Note
  ) => Effect.Effect<A, Refusal>
  /** Emits the result of a call that has no result yet. `note` is stored first. */
  readonly settle: (callId: string, status: ToolStatus, output: string, note?: Note) => Effect.Effect<void>
}

const refuse = (message: string) => Effect.fail<Refusal>({ code: INTERNAL_ERROR, message })

export const make = ({ notice, noted, permissions, tell, updates }: Options): AcpClientMethods => {
  const settle: AcpClientMethods["settle"] = (callId, status, output, note) => {
    const settled = () => updates.settled(callId, status, output)
    return note === undefined ? tell(settled) : Effect.asVoid(noted(note, settled))
  }

  const begin: AcpClientMethods["begin"] = Effect.fnUntraced(function* (deed, work, note) {
    const reply = yield* permissions.leave(() => updates.deed(deed))
    if (reply === undefined) {
      if (updates.active === undefined)
        yield* notice(`outside a turn the agent asked for ${deed.tool}; it was not done`)
      return yield* refuse(`${deed.tool} was not permitted: no turn is in progress that could ask for it`)
    }
    const { callId, decision } = reply
    if (decision === undefined) {
      yield* settle(callId, "cancelled", "its turn was to end")
      return yield* refuse(`${deed.tool} was not permitted: its turn is to end`)
    }
    if (decision.behavior === "deny") {
      yield* settle(callId, "denied", decision.message)
      return yield* refuse(denialOf(decision.message))
    }
    let begun: ReadonlyArray<RunEvent> = []
    if (note === undefined) yield* tell(() => (begun = updates.begun(callId)))
    else begun = yield* noted(note, () => updates.begun(callId))
    if (begun.length === 0) return yield* refuse(`${deed.tool} was not done: its turn has ended`)
    return yield* Effect.onExit(work(callId), (exit) => {
      if (Exit.isSuccess(exit)) return Effect.void
      const [reason] = exit.cause.reasons
      if (reason !== undefined && Cause.isFailReason(reason)) return settle(callId, "error", reason.error.message)
      return settle(callId, "unknown", "it was broken off")
    })
  })

  return {
    begin,
    settle,
    perform: (deed, work, told) =>
      begin(deed, (callId) => Effect.tap(work, (done) => settle(callId, "success", told(done))))
  }
}
