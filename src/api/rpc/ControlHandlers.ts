/**
 * ControlHandlers: connects the protocol's procedures to the daemon's features. All calls first pass the gate. A
 * command that acts for its caller gets the caller's name from CallerIdentity, which finds it by the connection. A
 * run's own socket serves only the procedures by which an agent acts for itself.
 */
import { SpendingLimits } from "../../domain/SpendingLimits.ts"
import { Context, Effect, Layer } from "effect"
import type { Rpc, RpcGroup } from "effect/rpc"
import { Access } from "../../access/Access.ts"
import { Agents } from "../../projects/service/Agents.ts"
import { Channels } from "../../channels/Channels.ts"
import { EventLog } from "../../core/event-log/EventLog.ts"
import { Goals } from "../../goals/Goals.ts"
import { Plates } from "../../plates/Plates.ts"
import { Schedules } from "../../schedules/Schedules.ts"
import * as Admission from "./Admission.ts"
import * as CallerIdentity from "./CallerIdentity.ts"
import { DaemonControl } from "./DaemonControl.ts"
import * as LiveBoard from "../../board/LiveBoard.ts"
import * as DaemonQueries from "./DaemonQueries.ts"
import * as CallGuard from "./CallGuard.ts"
import type { Features } from "./Features.ts"
import { type AnyProcedure, Speaks } from "./Procedure.ts"
import { agentApi, AgentApi, Control, procedures } from "./Protocol.ts"

const features = Effect.gen(function* () {
  const agents = yield* Agents
  const context = yield* Effect.context<DaemonQueries.Needs>()
  const board = yield* LiveBoard.make({
    given: (all) => Effect.provideContext(DaemonQueries.gathered(all), context),
    parts: (parts) => Effect.provideContext(DaemonQueries.someOf(parts), context),
    addresses: agents.addresses,
    log: yield* EventLog,
    allowances: yield* SpendingLimits
  })
  const given: Features = {
    access: yield* Access,
    agents,
    board,
    channels: yield* Channels,
    goals: yield* Goals,
    plates: yield* Plates,
    schedules: yield* Schedules,
    daemon: yield* DaemonControl,
    inquiries: yield* DaemonQueries.make
  }
  return given
})

type Handlers<Group> = { readonly [R in RpcGroup.Rpcs<Group> as R["_tag"]]: Rpc.ToHandlerFn<R, never> }

type Signing = Effect.Success<ReturnType<typeof CallerIdentity.make>>
type Spoken = { readonly by: string } | { readonly caller: { readonly by: string } } | { readonly runId: string }
type Introduction = { readonly pid?: number }

/** The procedure's handler, which is called with the caller's verified name. */
const spoken = (given: Features, { introduce, sign }: Signing, { rpc, run }: AnyProcedure) => {
  const how = Context.get((rpc as Rpc.AnyWithProps).annotations, Speaks)
  if (how === undefined) return (payload: unknown) => run(given, payload as never)
  if (how === "introduces")
    return (payload: Introduction) =>
      Effect.andThen(
        payload.pid === undefined ? Effect.void : introduce(payload.pid),
        Effect.suspend(() => run(given, payload as never) as Effect.Effect<unknown>)
      )
  return (payload: Spoken) =>
    Effect.suspend(() => {
      if ("runId" in payload)
        return Effect.flatMap(
          sign(how, rpc._tag, payload.runId),
          () => run(given, payload as never) as Effect.Effect<unknown>
        )
      const said = "caller" in payload ? payload.caller.by : payload.by
      return Effect.flatMap(sign(how, rpc._tag, said), (by) => {
        const signed = "caller" in payload ? { ...payload, caller: { ...payload.caller, by } } : { ...payload, by }
        return run(given, signed as never) as Effect.Effect<unknown>
      })
    })
}

/**
 * The handlers of all procedures. Each declaration contains its own handler, `run`, with matching types, so the types
 * are not checked again here.
 */
const handlersOf = <Group>(all: ReadonlyArray<AnyProcedure>) =>
  Effect.gen(function* () {
    const given = yield* features
    const signing = yield* CallerIdentity.make(given.agents, yield* EventLog)
    return Object.fromEntries(
      all.map((procedure) => [procedure.rpc._tag, spoken(given, signing, procedure)])
    ) as unknown as Handlers<Group>
  })

export const layer = Control.toLayer(handlersOf<typeof Control>(procedures)).pipe(Layer.provideMerge(CallGuard.layer()))

/** Handlers for the runs' own sockets. `run`: the run whose socket received the call. */
export const ofRuns = (run: Effect.Effect<string>) =>
  AgentApi.toLayer(handlersOf<typeof AgentApi>(agentApi)).pipe(
    Layer.provideMerge(CallGuard.layer(Admission.ofRuns(run)))
  )
