/**
 * ControlClient: calls the daemon over its control socket.
 *
 * Guarantees: each way in which the daemon can be unreachable becomes one typed error, with the reason and a remedy. If
 * a daemon accepts the connection but never answers, the call fails after a limited time.
 */
import type { Duplex } from "node:stream"
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import { Cause, Effect, Layer, Schedule, Schema, type Scope } from "effect"
import { RpcClient, RpcClientError, type RpcGroup, RpcSerialization } from "effect/rpc"
import { Socket } from "effect/socket"
import * as StoreOwner from "../../core/event-log/StoreOwner.ts"
import { Exported } from "../../telemetry/Collector.ts"
import { codeOf } from "./Endpoint.ts"
import { Limits } from "../../board/Limits.ts"
import { lostAnswer, olderDaemon, unanswered } from "./ConnectionLost.ts"
import { Control } from "./Protocol.ts"
import { isFar } from "../../config/Host.ts"
import { HostConnection, HostError } from "../../runs/HostConnection.ts"
import { introduction } from "./Version.ts"

export class DaemonUnreachable extends Schema.TaggedError<DaemonUnreachable>()("DaemonUnreachable", {
  message: Schema.String,
  remedy: Schema.String,
  /** The reason why the daemon cannot be reached: "not-running", "forbidden", "lost", "older" or "protocol". */
  reason: Schema.String,
  /** Process id of a daemon that runs but does not answer, read from the store's lock. */
  pid: Schema.optionalKey(Schema.Int)
}) {}

export type Client = RpcClient.RpcClient<RpcGroup.Rpcs<typeof Control>, RpcClientError.RpcClientError>

/** Time without data after which a connection counts as broken. A ping is sent every 5 s. */
const PING_TIMEOUT = "20 seconds"

/**
 * The error for a daemon that runs without its socket, because it is starting or ending, or because the socket was
 * deleted.
 */
export const cutOff = (socket: string, pid: number) =>
  new DaemonUnreachable({
    reason: "not-running",
    pid,
    message: `The daemon runs (pid ${pid}), but nobody answers at ${socket}: it is starting or ending, or its socket was deleted.`,
    remedy: `It creates its socket again within 10 s: try again then. If it still does not answer, end it: kill ${pid}. Then: agentd start`
  })

const unreachable = (
  socket: string,
  error: RpcClientError.RpcClientError,
  holder: () => number | undefined
): DaemonUnreachable => {
  const { reason } = error
  const cause = "cause" in reason ? reason.cause : undefined
  if (cause instanceof HostError) return new DaemonUnreachable(cause.trouble)
  const isOpen = reason._tag !== "SocketOpenError" || reason.kind === "Timeout"
  const told = unanswered(socket, isOpen ? undefined : (codeOf(reason) ?? "unknown"), reason.message)
  if (reason._tag === "SocketCloseError") {
    return new DaemonUnreachable({ ...told, message: `The daemon at ${socket} went away.` })
  }
  const pid = told.reason === "not-running" ? holder() : undefined
  return pid === undefined ? new DaemonUnreachable(told) : cutOff(socket, pid)
}

/** True if the daemon is too old to have the procedure; the RPC library then reports this text. */
const isUnknown = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some((reason) => Cause.isDieReason(reason) && String(reason.defect).startsWith("Unknown request tag"))

/** True if the daemon closed the connection during a write; the RPC library then reports a socket error as a defect. */
const isUnwritten = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some((reason) => Cause.isDieReason(reason) && Socket.isSocketError(reason.defect))

/**
 * A client that has negotiated the protocol version in the first frame. If the daemon does not support the version, no
 * call is sent.
 */
const greeted = (address: string) =>
  Effect.tap(
    Effect.flatMap(Exported, (isTraced) =>
      RpcClient.make(Control, { disableTracing: !isTraced, spanPrefix: "agentd" })
    ),
    (client) =>
      Effect.catchTag(
        client.Hello(introduction(address)),
        "CommandRefused",
        ({ message, remedy }) => new DaemonUnreachable({ reason: "protocol", message, remedy })
      )
  )

const isRpcClientError = Schema.is(RpcClientError.RpcClientError)

/** Connects to the daemon of another machine. */
const far = (address: string) =>
  NodeSocket.fromDuplex(
    Effect.acquireRelease(
      Effect.callback<Duplex, Socket.SocketError>((resume) => {
        const connection = new HostConnection(address)
        connection.once("connect", () => resume(Effect.succeed(connection as unknown as Duplex)))
        connection.on("error", (cause) => {
          const reason = new Socket.SocketOpenError({ kind: "Unknown", cause })
          resume(Effect.fail(new Socket.SocketError({ reason })))
        })
        return Effect.sync(() => void connection.destroy())
      }),
      (connection) => Effect.sync(() => void connection.destroy()),
      { interruptible: true }
    ),
    { openTimeout: "15 seconds" }
  )

const transport = (address: string) =>
  RpcClient.layerProtocolSocket({ pingTimeout: PING_TIMEOUT, retryPolicy: Schedule.recurs(0) }).pipe(
    Layer.provide(
      Layer.effect(Socket.Socket)(
        isFar(address) ? far(address) : NodeSocket.makeNet({ path: address, openTimeout: "5 seconds" })
      )
    ),
    Layer.provide(RpcSerialization.layerNdjsonWith({ maxBufferSize: Limits.lineBytes * 8 }))
  )

/** Makes each way in which the connection of some calls fails the error of an unreachable daemon. */
export const explained = <A, E, R>(
  socket: string,
  calls: Effect.Effect<A, E, R>
): Effect.Effect<A, Exclude<E, RpcClientError.RpcClientError> | DaemonUnreachable, R> =>
  calls.pipe(
    // a daemon that stops interrupts its calls; an interrupt of this client itself does not get here
    Effect.catchCauseIf(
      (cause) => Cause.hasInterruptsOnly(cause) || isUnwritten(cause),
      () => Effect.fail(new DaemonUnreachable(lostAnswer(socket)))
    ),
    Effect.catchCauseIf(isUnknown, () => Effect.fail(new DaemonUnreachable(olderDaemon(socket)))),
    (called) =>
      Effect.flatMap(StoreOwner.Here, (here) =>
        Effect.mapError(called, (error) =>
          isRpcClientError(error)
            ? unreachable(socket, error, here)
            : (error as Exclude<E, RpcClientError.RpcClientError>)
        )
      )
  )

/** Connects to the daemon, runs the calls, and closes the connection. */
export const call = <A, E, R>(
  socket: string,
  use: (client: Client) => Effect.Effect<A, E, R>
): Effect.Effect<A, Exclude<E, RpcClientError.RpcClientError> | DaemonUnreachable, Exclude<R, Scope.Scope>> =>
  explained(socket, Effect.scoped(Effect.flatMap(greeted(socket), use))).pipe(
    Effect.provide(transport(socket))
  ) as Effect.Effect<A, Exclude<E, RpcClientError.RpcClientError> | DaemonUnreachable, Exclude<R, Scope.Scope>>
