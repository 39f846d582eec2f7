/**
 * AcpPermissions: the permission requests of an agent that wait for an answer.
 *
 * Guarantees: each request is answered once: with the decision, or with `cancelled` if its turn is about to end. An
 * option that applies permanently is chosen only if no other is offered. Before the first turn, and once the run ends,
 * nothing is permitted, because nobody can be asked. If the agent changes a call after it was shown, agentd asks again
 * with the new arguments.
 */
import type { RequestPermissionResponse } from "@agentclientprotocol/sdk"
import { Deferred, Effect } from "effect"
import * as Messages from "./AcpMessages.ts"
import * as AgentdMeta from "./AgentdMeta.ts"
import type { AcpUpdates, Asked } from "./AcpUpdates.ts"
import { CANCELLED_REQUEST, INVALID_PARAMS, type Refusal } from "./AcpWire.ts"
import type { Decision, RunEvent } from "../Backend.ts"

/** The decision about a request; undefined if the request is cancelled because its turn is about to end. */
type Reply = Decision | undefined

export interface Options {
  readonly updates: AcpUpdates
  /** True for agentd's own model agent, which gets the reason of a denial with the answer. */
  readonly isOwn?: boolean
  /** Emits events after all earlier events. */
  readonly tell: (make: () => ReadonlyArray<RunEvent>) => Effect.Effect<void>
  /** Like `tell`, for events of the line that is being handled. */
  readonly hear: (make: () => ReadonlyArray<RunEvent>) => Effect.Effect<void>
  /** Like `tell`, for events that the stream does not contain, because a request asks again. */
  readonly noted: (request: unknown, make: () => ReadonlyArray<RunEvent>) => Effect.Effect<unknown>
  readonly notice: (text: string) => Effect.Effect<void>
}

/** The option for the decision; undefined if the agent offers none. */
export const choose = (options: Messages.PermissionOptions, allowed: boolean): string | undefined => {
  const kinds = allowed ? ["allow_once", "allow_always"] : ["reject_once", "reject_always"]
  return kinds.flatMap((kind) => options.filter((option) => option.kind === kind)).at(0)?.optionId
}

const CANCELLED: RequestPermissionResponse = { outcome: { outcome: "cancelled" } }

export class AcpPermissions {
  private readonly options: Options
  private readonly open = new Map<string, Deferred.Deferred<Reply, Refusal>>()

  constructor(options: Options) {
    this.options = options
  }

  get size(): number {
    return this.open.size
  }

  /** Handles a `session/request_permission` until it has its answer. */
  readonly ask = Effect.fnUntraced(
    { self: this },
    function* (
      this: AcpPermissions,
      params: unknown,
      id?: unknown
    ): Effect.fn.Return<RequestPermissionResponse, Refusal> {
      const { hear, noted, notice, tell, updates } = this.options
      const request = Messages.read(Messages.PermissionRequest, params)
      if (request === undefined)
        return yield* Effect.fail({ code: INVALID_PARAMS, message: "toolCall or options are missing" })
      let reply = yield* this.leave(() => updates.ask(request.toolCall, id), hear)
      while (reply?.decision?.behavior === "allow") {
        const { callId } = reply
        const again = yield* this.leave(
          () => updates.askAgain(callId),
          (make) => noted(id, make)
        )
        if (again === undefined) break
        reply = again
      }
      if (reply === undefined) {
        const what = request.toolCall.title ?? "a tool"
        if (updates.active === undefined)
          yield* notice(`outside a turn the agent asked for: ${what}; it was not permitted`)
        return CANCELLED
      }
      const { callId, decision } = reply
      if (decision === undefined) return CANCELLED
      const allowed = decision.behavior === "allow"
      const optionId = choose(request.options, allowed)
      // a call that is cancelled because no suitable option is offered does not begin
      yield* tell(() => updates.answered(callId, allowed && optionId !== undefined))
      if (optionId === undefined) {
        yield* notice(`the agent offers no way to ${decision.behavior} this call: it is cancelled`)
        return CANCELLED
      }
      const chosen: RequestPermissionResponse = { outcome: { outcome: "selected", optionId } }
      if (decision.behavior === "allow" || this.options.isOwn !== true) return chosen
      const denial: AgentdMeta.Denial = { message: decision.message, interrupt: decision.interrupt === true }
      return { ...chosen, _meta: { [AgentdMeta.KEY]: denial } }
    }
  )

  /** Asks for an approval of a call and waits for the decision; undefined if it could not ask. */
  readonly leave = Effect.fnUntraced(
    { self: this },
    function* (
      this: AcpPermissions,
      ask: () => Asked | undefined,
      tell: (make: () => ReadonlyArray<RunEvent>) => Effect.Effect<unknown> = this.options.hear
    ) {
      const reply = Deferred.makeUnsafe<Reply, Refusal>()
      let asked: Asked | undefined
      yield* tell(() => {
        asked = ask()
        if (asked === undefined) return []
        this.open.set(asked.callId, reply)
        return asked.events
      })
      if (asked === undefined) return undefined
      return { callId: (asked as Asked).callId, decision: yield* Deferred.await(reply) }
    }
  )

  /** Passes a decision to the waiting request. Returns false if no such request is waiting. */
  answer(callId: string, decision: Decision): boolean {
    const reply = this.open.get(callId)
    if (reply === undefined) return false
    this.open.delete(callId)
    Deferred.doneUnsafe(reply, Effect.succeed(decision))
    return true
  }

  /** Withdraws a waiting request. Returns false if no such request is waiting. */
  withdraw(callId: string): boolean {
    const reply = this.open.get(callId)
    this.open.delete(callId)
    const refusal = { code: CANCELLED_REQUEST, message: "the agent has taken its request back" }
    return reply !== undefined && Deferred.doneUnsafe(reply, Effect.fail(refusal))
  }

  /** Handles a request that the agent has withdrawn. `recall` knows the requests that an earlier daemon received. */
  takenBack(
    params: unknown,
    recall: { readonly isAsked: (callId: string) => boolean } | undefined
  ): Effect.Effect<void> {
    const { requestId } = Messages.read(Messages.CancelRequest, params) ?? {}
    const waits = (callId: string) => this.withdraw(callId) || recall?.isAsked(callId) === true
    return this.options.hear(() => this.options.updates.withdrawn(requestId, waits))
  }

  /** Answers every waiting request with `cancelled`. */
  dismiss(): void {
    for (const reply of this.open.values()) Deferred.doneUnsafe(reply, Effect.succeed(undefined))
    this.open.clear()
  }
}
