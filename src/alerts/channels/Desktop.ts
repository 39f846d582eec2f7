/**
 * Desktop: shows a notification through the session's bus (org.freedesktop.Notifications). Its action Look opens the
 * page; its action Later sends the notification again after a while. Neither approves a call: the user must see the
 * whole call first.
 *
 * Guarantees: text is shown unchanged, never as markup. Each bus has one connection, which is replaced after it has
 * ended. A bus that does not answer does not delay another. A click applies to the notification that was shown on the
 * same bus.
 */
import { Effect, FiberMap, Queue, Semaphore } from "effect"
import type { AlertChannel, Message } from "../AlertChannel.ts"
import { variable } from "../ConfiguredSecret.ts"
import { setup } from "../SendError.ts"
import type { ChannelConfig, ChannelOf } from "../../config/NotifyConfig.ts"
import * as DBus from "./DBus.ts"
import type { Received, Value } from "./DBusMessage.ts"

const NAME = "org.freedesktop.Notifications"
const AT = { destination: NAME, path: "/org/freedesktop/Notifications", interface: NAME } as const

/** Maximum number of open connections; a config has fewer channels. */
const MAX_BUSES = 20

/** Maximum number of shown notifications whose buttons are handled. */
const MAX_SHOWN = 100

/** D-Bus urgencies: low, normal, critical. A critical notification stays until the user has seen it. */
const URGENCY = { digest: 0, soon: 1, now: 2 } as const

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

const addressOf = Effect.fnUntraced(function* (config: ChannelConfig) {
  const { bus } = config as ChannelOf<"desktop">
  if (bus !== undefined) return bus
  const address = yield* variable("DBUS_SESSION_BUS_ADDRESS")
  if (address !== "") return address
  const runtime = yield* variable("XDG_RUNTIME_DIR")
  if (runtime !== "") return `unix:path=${runtime}/bus`
  return yield* setup(
    "the daemon knows no desktop: neither DBUS_SESSION_BUS_ADDRESS nor XDG_RUNTIME_DIR is set for it",
    "Start the daemon in your session, or set the field bus of the channel."
  )
})

const bodyOf = ({ body, command }: Pick<Message, "body" | "command">): string => `${body}\n\n${command}`

interface Connection {
  readonly bus: DBus.DBus
  readonly isMarkup: boolean
}

interface Bus {
  readonly address: string
  /** Serializes attempts to connect. */
  readonly lock: Semaphore.Semaphore
  connection: Connection | undefined
}

/** The actions of a notification. A message without notices is a test, which cannot be sent again later. */
const actionsOf = ({ notices }: Message): ReadonlyArray<string> =>
  notices.length === 0 ? ["look", "Look"] : ["look", "Look", "later", "Later"]

const hintsOf = (message: Message, text: string): ReadonlyArray<Value> => [
  { type: "s", value: "agentd" },
  { type: "u", value: 0 },
  { type: "s", value: "" },
  { type: "s", value: message.title },
  { type: "s", value: text },
  { type: "as", value: actionsOf(message) },
  { type: "a{sv}", value: [["urgency", { type: "y", value: URGENCY[message.urgency] }]] },
  { type: "i", value: -1 }
]

/** Subscribes to the desktop's signals, reads its capabilities, and then stores the connection in `bus`. */
const prepared = (bus: Bus) =>
  Effect.fnUntraced(function* (line: DBus.DBus) {
    yield* DBus.listen(line, NAME)
    const { body } = yield* line.call({ ...AT, member: "GetCapabilities", body: [] })
    const able = Array.isArray(body[0]) ? (body[0] as ReadonlyArray<string>) : []
    const made = { bus: line, isMarkup: able.includes("body-markup") }
    bus.connection = made
    return made
  })

/** Connects to the bus of a config; each bus has one connection. `heard` gets each signal, and the bus's address. */
const connections = Effect.fnUntraced(function* (heard: (address: string, signal: Received) => void) {
  const buses = new Map<string, Bus>()
  const end = (why: string, ...all: ReadonlyArray<Bus>) => all.forEach(({ connection }) => connection?.bus.end(why))
  yield* Effect.addFinalizer(() => Effect.sync(() => end("the daemon ends", ...buses.values())))
  const busAt = (address: string): Bus => {
    const bus = buses.get(address) ?? { address, lock: Semaphore.makeUnsafe(1), connection: undefined }
    // moves the bus to the end, so that the least recently used one is first
    buses.delete(address)
    buses.set(address, bus)
    if (buses.size > MAX_BUSES) {
      const oldest = buses.values().next().value!
      buses.delete(oldest.address)
      end("too many other buses are in use", oldest)
    }
    return bus
  }
  return Effect.fnUntraced(function* (config: ChannelConfig) {
    const bus = busAt(yield* addressOf(config))
    const connect = DBus.connect(bus.address, (signal) => heard(bus.address, signal), prepared(bus))
    const { bus: line, isMarkup } = yield* bus.lock.withPermit(
      Effect.suspend(() => (bus.connection?.bus.isOpen === true ? Effect.succeed(bus.connection) : connect))
    )
    // if the bus was removed while it was connecting, its connection is closed, and the message is retried
    if (buses.get(bus.address) !== bus) end("too many other buses are in use", bus)
    return { line, isMarkup, address: bus.address }
  })
})

/** Makes the channel. `look` opens the page in the user's session. */
export const make = Effect.fnUntraced(function* (look: Effect.Effect<void>) {
  const shown = new Map<string, Message>()
  const put = yield* Queue.sliding<Message>(MAX_SHOWN)
  const tasks = yield* FiberMap.make<string>()
  const run = yield* FiberMap.runtime(tasks)<never>()
  const idAt = (address: string, id: unknown): string => `${address} ${String(id)}`

  const heard = (address: string, { body: [id, key], interface: from, member }: Received): void => {
    const message = from === NAME ? shown.get(idAt(address, id)) : undefined
    if (message === undefined || (member !== "NotificationClosed" && member !== "ActionInvoked")) return
    shown.delete(idAt(address, id))
    if (member === "NotificationClosed") return
    if (key === "look" || key === "default") run(idAt(address, id), look)
    if (key === "later") Queue.offerUnsafe(put, message)
  }
  const connection = yield* connections(heard)

  const channel: AlertChannel = {
    name: "desktop",
    send: Effect.fnUntraced(function* (config, message) {
      const { address, isMarkup, line } = yield* connection(config)
      const text = bodyOf(message)
      const body = hintsOf(message, isMarkup ? escaped(text) : text)
      const id = Number((yield* line.call({ ...AT, member: "Notify", body })).body[0] ?? 0)
      if (shown.size >= MAX_SHOWN) shown.delete(shown.keys().next().value!)
      shown.set(idAt(address, id), message)
      return { response: `shown as ${id}`, handle: String(id) }
    }),
    later: Queue.take(put),
    withdraw: Effect.fnUntraced(function* (config, { handle }) {
      const { address, line } = yield* connection(config)
      shown.delete(idAt(address, handle))
      yield* line.call({ ...AT, member: "CloseNotification", body: [{ type: "u", value: Number(handle) }] })
      return { response: "withdrawn" }
    }),
    check: (config) => Effect.as(connection(config), "the desktop answers; nothing was shown")
  }
  return channel
})
