/**
 * Wire: the client's side of the control socket for programs that load neither Effect nor any npm package. Frames have
 * the format of `layerNdjson` in effect/rpc: one JSON value per line.
 *
 * Guarantees: the client introduces itself first. A daemon that refuses the introduction carries out nothing. `done` is
 * called once, unless the caller closes the connection before. A daemon that is silent for 20 s counts as lost.
 */
import type { Duplex } from "node:stream"
import { Limits } from "../../board/Limits.ts"
import { MessageLines } from "../../config/LineSplitter.ts"
import { isFar } from "../../config/Host.ts"
import { HostConnection, HostError, type HostTrouble } from "../../runs/HostConnection.ts"
import { introduction } from "./Version.ts"

/** A Node module, loaded when needed, so that a verb that the whole program runs does not wait for it. */
const net = () => process.getBuiltinModule("node:net")

/**
 * Silence in ms after which the client pings the daemon, and after which it gives up. ControlClient uses the same
 * times.
 */
const PING = 5_000
const SILENCE = 20_000

/** Silence in ms after which a connection to a host is pinged. `ssh` must have connected by then. */
const FAR = 15_000

/** A connection to the socket of this machine, or to that of another one. */
type Connection = Duplex & { readonly setTimeout: (millis: number) => unknown }

/** Maximum length of a frame. ControlClient has the same limit. */
const MAX_FRAME = Limits.lineBytes * 8

export interface Call {
  readonly tag: string
  readonly payload: unknown
  /** True if the reply is a stream of values. */
  readonly stream: boolean
}

type Frame =
  | { readonly _tag: "Chunk"; readonly requestId: string; readonly values: ReadonlyArray<unknown> }
  | {
      readonly _tag: "Exit"
      readonly requestId: string
      readonly exit:
        | { readonly _tag: "Success"; readonly value: unknown }
        | { readonly _tag: "Failure"; readonly cause: unknown }
    }
  | { readonly _tag: "Pong" }
  | { readonly _tag: "Defect"; readonly defect: unknown }

export type Outcome =
  /** `replies`: the reply to each call; undefined for a stream. */
  | { readonly _tag: "Answered"; readonly replies: ReadonlyArray<unknown> }
  /** The daemon refused the call. `error`: the reason and the remedy. */
  | { readonly _tag: "Refused"; readonly error: unknown }
  /** The daemon failed unexpectedly. `error`: the defect. */
  | { readonly _tag: "Broken"; readonly error: unknown }
  /**
   * The call was not sent, because the daemon could not be reached. `code`: the error of the connection, such as
   * ENOENT. `trouble`: why a host was not reached. `older`: the daemon does not know the introduction.
   */
  | {
      readonly _tag: "Unsent"
      readonly code?: string | undefined
      readonly trouble?: HostTrouble | undefined
      readonly older?: boolean
    }
  /** No answer arrived, so the command might have been carried out. */
  | { readonly _tag: "Lost" }

/** The outcome for a failed call: the failure in its cause, otherwise the defect, otherwise an interruption. */
const outcomeOf = (cause: unknown): Outcome => {
  const reasons = Array.isArray(cause)
    ? (cause as ReadonlyArray<{ readonly _tag: string; readonly error?: unknown; readonly defect?: unknown }>)
    : []
  const failed = reasons.find(({ _tag }) => _tag === "Fail")
  if (failed !== undefined) return { _tag: "Refused", error: failed.error }
  const broken = reasons.find(({ _tag }) => _tag === "Die")
  return broken === undefined ? { _tag: "Lost" } : { _tag: "Broken", error: broken.defect }
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null

/**
 * The daemon's reply that it does not support this client, or that no daemon can be started. Another attempt would get
 * the same reply.
 */
const refusalIn = (frame: Frame): Outcome | undefined => {
  if (frame._tag !== "Exit" || frame.exit._tag === "Success") return undefined
  const refused = outcomeOf(frame.exit.cause)
  if (refused._tag !== "Refused" || !isObject(refused.error)) return undefined
  return { _tag: "Refused", error: { ...refused.error, _tag: "DaemonUnreachable" } }
}

const line = (frame: unknown): string => `${JSON.stringify(frame)}\n`

const request = (id: number, { payload, tag }: Pick<Call, "payload" | "tag">): string =>
  line({ _tag: "Request", id: String(id), tag, payload, headers: [] })

/** Takes frames until one ends the connection. False: a line is no frame, or is too long. */
const hear = (lines: ReadonlyArray<string | undefined>, take: (frame: Frame) => boolean): boolean => {
  try {
    lines.every((one) => take(JSON.parse(one ?? "") as Frame))
    return true
  } catch {
    return false
  }
}

export interface Asked {
  readonly calls: ReadonlyArray<Call>
  /** True if the calls only read. */
  readonly repeatable: boolean
  /** Silence in ms after which the client gives up; undefined: the usual limit. */
  readonly limit?: number | undefined
  /** Takes values of a stream. The daemon sends further values after `more` is called. */
  readonly take: (call: number, values: ReadonlyArray<unknown>, more: () => void) => void
}

const connect = (address: string) =>
  (isFar(address) ? new HostConnection(address) : net().connect(address)) as Connection

/**
 * Pings the daemon when it is silent, and calls `lost` when it stays silent. Returns a function to call for each data.
 */
const watched = (
  connection: Connection,
  {
    address,
    isGreeted,
    limit
  }: { readonly address: string; readonly isGreeted: () => boolean; readonly limit: number | undefined },
  lost: () => void
): (() => void) => {
  let silent = 0
  const wait = limit ?? (isFar(address) ? FAR : PING)
  connection.setTimeout(wait)
  // a callback given to `setTimeout` would be called only once
  connection.on("timeout", () => {
    silent += wait
    if (limit !== undefined || silent >= SILENCE || !isGreeted()) return lost()
    connection.write(line({ _tag: "Ping" }))
  })
  return () => {
    silent = 0
  }
}

/**
 * Sends all calls in one write. Calls that only read are sent together with the introduction; other calls are sent
 * after the daemon has answered the introduction. Returns a function that closes the connection.
 */
export const ask = (
  address: string,
  { calls, limit, repeatable, take: takeValues }: Asked,
  done: (outcome: Outcome) => void
): (() => void) => {
  const replies: Array<unknown> = calls.map(() => undefined)
  const introduced = String(calls.length)
  const connection = connect(address)
  const lines = new MessageLines(MAX_FRAME)
  let [open, greeted, sent] = [calls.length + 1, false, false]
  let code: string | undefined
  let trouble: HostTrouble | undefined
  const close = (): void => {
    connection.removeAllListeners("close").removeAllListeners("data").destroy()
  }
  const end = (outcome: Outcome): false => {
    close()
    done(outcome)
    return false
  }
  const send = (): string => {
    sent = true
    return calls.map((call, id) => request(id, call)).join("")
  }
  const lost = (): false => end(sent ? { _tag: "Lost" } : { _tag: "Unsent", code, trouble })
  const take = (frame: Frame): boolean => {
    if (frame._tag === "Pong") return true
    const isGreeting = frame._tag === "Exit" && frame.requestId === introduced
    const hasFailed = frame._tag === "Exit" ? frame.exit._tag !== "Success" : frame._tag === "Defect"
    const refused = isGreeting ? refusalIn(frame) : undefined
    if (refused !== undefined) return end(refused)
    if ((isGreeting || !greeted) && hasFailed) return end({ _tag: "Unsent", older: true })
    if (isGreeting) greeted = true
    if (!sent) connection.write(send())
    if (frame._tag === "Chunk") {
      takeValues(Number(frame.requestId), frame.values, () =>
        connection.write(line({ _tag: "Ack", requestId: frame.requestId }))
      )
      return true
    }
    if (frame._tag !== "Exit") {
      return end(frame._tag === "Defect" ? { _tag: "Broken", error: frame.defect } : { _tag: "Lost" })
    }
    if (frame.exit._tag !== "Success") return end(outcomeOf(frame.exit.cause))
    const at = Number(frame.requestId)
    if (calls[at]?.stream === false) replies[at] = frame.exit.value
    if (--open > 0) return true
    return end({ _tag: "Answered", replies })
  }
  const heard = watched(connection, { address, limit, isGreeted: () => greeted }, lost)
  connection.on("error", (error: NodeJS.ErrnoException) => {
    code = error.code
    if (error instanceof HostError) trouble = error.trouble
  })
  connection.on("close", lost)
  connection.on("connect", () => {
    const hello = request(calls.length, { tag: "Hello", payload: introduction(address) })
    connection.write(repeatable ? hello + send() : hello)
  })
  connection.on("data", (chunk: Buffer) => {
    heard()
    if (!hear(lines.push(chunk), take)) lost()
  })
  return close
}
