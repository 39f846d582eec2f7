/**
 * ControlHandlers: the procedures of the protocol, over the daemon's features, behind the gate.
 */
import { Effect, Layer } from "effect"
import type { Rpc, RpcGroup } from "effect/rpc"
import { Agents } from "../agents/Agents.ts"
import { Channels } from "../channels/Channels.ts"
import { EventLog } from "../event-log/EventLog.ts"
import { Goals } from "../goals/Goals.ts"
import { Plates } from "../plates/Plates.ts"
import { DaemonControl } from "./DaemonControl.ts"
import * as Inquiries from "./Inquiries.ts"
import * as LiveGate from "./LiveGate.ts"
import type { AnyProcedure, Features } from "./Procedure.ts"
import { Control, procedures } from "./Protocol.ts"

const features = Effect.gen(function* (): Effect.fn.Return<
  Features,
  never,
  Agents | Channels | DaemonControl | EventLog | Goals | Plates
> {
  const agents = yield* Agents
  const channels = yield* Channels
  const plates = yield* Plates
  const daemon = yield* DaemonControl
  const inquiries = Inquiries.make(agents, channels, plates, yield* EventLog, daemon)
  return { agents, channels, goals: yield* Goals, plates, daemon, inquiries }
})

type Procedures = RpcGroup.Rpcs<typeof Control>
type Handlers = { readonly [R in Procedures as R["_tag"]]: Rpc.ToHandlerFn<R, never> }

/** Each procedure's own `run`; a declaration holds the two together, so that the types of all need not be told again. */
const handlers = (given: Features) =>
  Object.fromEntries(
    procedures.map(({ rpc, run }: AnyProcedure) => [rpc._tag, (payload: unknown) => run(given, payload as never)])
  ) as unknown as Handlers

export const layer = Control.toLayer(Effect.map(features, handlers)).pipe(Layer.provideMerge(LiveGate.layer))
