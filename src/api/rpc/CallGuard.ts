/**
 * CallGuard: checks every call before its procedure runs. It validates the payload, refuses calls beyond the limit, and
 * adds the suggestion of a similar name to a refusal for an unknown name.
 *
 * Guarantees: if the store can no longer be written, every call in progress fails with the reason, whatever the call is
 * waiting for.
 */
import { Context, Effect, Layer, Result, Schema, type Scope } from "effect"
import { type Rpc, RpcSchema } from "effect/rpc"
import { isReadonlyObject as isObject } from "effect/Predicate"
import { Agents } from "../../projects/service/Agents.ts"
import { type Caller, CommandRefused, refuse } from "../../domain/Messages.ts"
import { EventLog } from "../../core/event-log/EventLog.ts"
import { Traces, type Tracing } from "../../telemetry/Tracing.ts"
import * as Admission from "./Admission.ts"
import { refusalOf } from "../../board/Bounds.ts"
import { About, AtOnce, Gate, type Input } from "./Procedure.ts"
import * as Suggestion from "./Suggestion.ts"

type Check = (payload: unknown) => CommandRefused | undefined

const tooDeep = refuse(
  "invalid",
  "The payload is nested too deeply.",
  "Give plain values: no command takes more than a few levels."
)

const isNothing = (payload: unknown): boolean =>
  payload === undefined || payload === null || (isObject(payload) && Object.keys(payload).length === 0)

const nothingOf = (tag: string) => refuse("invalid", `${tag} takes no payload.`, "Leave the payload out.")

const checkOf = ({ _tag, payloadSchema }: Rpc.AnyWithProps): Check => {
  const { bounds } = payloadSchema as Partial<Input>
  if (bounds === undefined) return (payload) => (isNothing(payload) ? undefined : nothingOf(_tag))
  const read = Schema.decodeUnknownResult(bounds, { reportInput: true })
  return (payload) => {
    try {
      const result = read(payload)
      return Result.isFailure(result) ? refusalOf(result.failure.issue) : undefined
    } catch (error) {
      // the validation calls itself once per level of nesting, and the stack is too small for very deep payloads
      if (error instanceof RangeError) return tooDeep
      throw error
    }
  }
}

/**
 * Links a command's span to the rune in its reply, so that work that the command causes later belongs to the same
 * trace.
 */
const followed =
  ({ answered }: Tracing) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.tap(effect, (reply) => {
      const { eventId } = Object(reply) as { readonly eventId?: unknown }
      return typeof eventId === "number"
        ? Effect.ignore(Effect.map(Effect.currentSpan, (span) => answered(eventId, span)))
        : Effect.void
    })

interface Named {
  readonly name: string
  readonly caller: Caller
}

/** The middleware with these checks. `admit`: limits the number of calls in progress. */
export const layer = (admit: Effect.Effect<Admission.Admission, never, Scope.Scope> = Admission.make) =>
  Layer.effect(Gate)(
    Effect.gen(function* () {
      const agents = yield* Agents
      const { failed } = yield* EventLog
      const lost = Effect.flatMap(failed, Effect.fail)
      const admission = yield* admit
      const tracing = yield* Traces
      const checks = new Map<string, Check>()

      const check = (rpc: Rpc.AnyWithProps, payload: unknown): CommandRefused | undefined => {
        const known = checks.get(rpc._tag) ?? checkOf(rpc)
        checks.set(rpc._tag, known)
        return known(payload)
      }

      const meant = <A, E, R>(
        effect: Effect.Effect<A, E, R>,
        about: "agent" | "conversation" | "nothing",
        payload: unknown
      ): Effect.Effect<A, E, R> => {
        if (about === "nothing") return effect
        const { caller, name } = payload as Named
        const suggest = about === "agent" ? Suggestion.ofAgent : Suggestion.ofConversation
        return Effect.catch(effect, (error) =>
          error instanceof CommandRefused
            ? Effect.flatMap(suggest(agents, name, caller, error), (said) => Effect.fail(said as E))
            : Effect.fail(error)
        )
      }

      return (effect, { payload, rpc }) => {
        const checked = Effect.suspend(() => {
          const refused = check(rpc, payload)
          return refused === undefined
            ? meant(
                tracing === undefined ? effect : followed(tracing)(effect),
                Context.get(rpc.annotations, About),
                payload
              )
            : Effect.fail(refused)
        })
        if (Context.get(rpc.annotations, AtOnce)) return checked
        const admitted = RpcSchema.isStreamSchema(rpc.successSchema) ? admission.held(checked) : admission.call(checked)
        return Effect.raceFirst(admitted, lost)
      }
    })
  )
