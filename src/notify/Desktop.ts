/**
 * Desktop: a notification by the session's bus (org.freedesktop.Notifications), with the actions Look, which opens the
 * page, and Later, which tells it again in a while. It approves nothing: an approval wants the whole call on screen.
 *
 * Guarantees: a text is shown as it is, never as markup; one connection is kept, and made anew once it has ended.
 */
import { Effect, FiberMap } from "effect"
import type { AlertChannel, Message, Receipt } from "../alerts/AlertChannel.ts"
import { variable } from "../alerts/Secret.ts"
import type { SendError } from "../alerts/SendError.ts"
import { setup } from "../alerts/SendError.ts"
import type { ChannelConfig, ChannelOf } from "../config/NotifyConfig.ts"
import * as DBus from "./DBus.ts"
import type { Received, Value } from "./DBusMessage.ts"

const NAME = "org.freedesktop.Notifications"
const AT = { destination: NAME, path: "/org/freedesktop/Notifications", interface: NAME } as const

/** So long after Later it is told again. */
const LATER = "15 minutes"

/** Shown notifications whose actions are heard. */
const MAX_SHOWN = 100

/** low, normal, critical: one that is critical stays until it is seen. */
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
    "the daemon knows of no desktop: neither DBUS_SESSION_BUS_ADDRESS nor XDG_RUNTIME_DIR is set for it",
    "Start it within your session, or name the bus in the channel: bus."
  )
})

const bodyOf = ({ body, command }: Pick<Message, "body" | "command">): string => `${body}\n\n${command}`

interface Connection {
  readonly bus: DBus.DBus
  readonly address: string
  /** Whether texts are markup to the desktop. */
  readonly isMarkup: boolean
}

interface Shown {
  readonly config: ChannelConfig
  readonly message: Message
}

const hintsOf = ({ title, urgency }: Message, text: string): ReadonlyArray<Value> => [
  { type: "s", value: "agentd" },
  { type: "u", value: 0 },
  { type: "s", value: "" },
  { type: "s", value: title },
  { type: "s", value: text },
  { type: "as", value: ["look", "Look", "later", "Later"] },
  { type: "a{sv}", value: [["urgency", { type: "y", value: URGENCY[urgency] }]] },
  { type: "i", value: -1 }
]

/** The bus that a config means, by a connection that is kept. */
const connections = Effect.gen(function* () {
  let current: Connection | undefined
  yield* Effect.addFinalizer(() => Effect.sync(() => current?.bus.end("the daemon ends")))
  return Effect.fnUntraced(function* (config: ChannelConfig, heard: (signal: Received) => void) {
    const address = yield* addressOf(config)
    if (current?.bus.isOpen === true && current.address === address) return current
    current?.bus.end("another bus is asked for")
    const bus = yield* DBus.connect(address, heard)
    yield* DBus.listen(bus, NAME)
    const { body } = yield* bus.call({ ...AT, member: "GetCapabilities", body: [] })
    const able = Array.isArray(body[0]) ? (body[0] as ReadonlyArray<string>) : []
    current = { bus, address, isMarkup: able.includes("body-markup") }
    return current
  })
})

/** `look`: opens the page, in a person's session. */
export const make = Effect.fnUntraced(function* (look: Effect.Effect<void>) {
  const shown = new Map<number, Shown>()
  const tasks = yield* FiberMap.make<string>()
  const run = yield* FiberMap.runtime(tasks)<never>()
  const connection = yield* connections

  const heard = ({ body: [id, key], interface: from, member }: Received): void => {
    const one = from === NAME && typeof id === "number" ? shown.get(id) : undefined
    if (one === undefined || (member !== "NotificationClosed" && member !== "ActionInvoked")) return
    shown.delete(id as number)
    if (member === "NotificationClosed") return
    if (key === "look" || key === "default") run(`look ${String(id)}`, look)
    const again = Effect.andThen(Effect.sleep(LATER), Effect.ignore(send(one.config, one.message)))
    if (key === "later") run(`later ${one.message.id}`, again)
  }

  const send = (config: ChannelConfig, message: Message): Effect.Effect<Required<Receipt>, SendError> =>
    Effect.gen(function* () {
      const { bus, isMarkup } = yield* connection(config, heard)
      const text = bodyOf(message)
      const body = hintsOf(message, isMarkup ? escaped(text) : text)
      const id = Number((yield* bus.call({ ...AT, member: "Notify", body })).body[0] ?? 0)
      if (shown.size >= MAX_SHOWN) shown.delete(shown.keys().next().value!)
      shown.set(id, { config, message })
      return { response: `shown as ${id}`, handle: String(id) }
    })

  const channel: AlertChannel = {
    name: "desktop",
    send,
    withdraw: Effect.fnUntraced(function* (config, { handle, of }) {
      const { bus } = yield* connection(config, heard)
      yield* FiberMap.remove(tasks, `later ${of}`)
      shown.delete(Number(handle))
      yield* bus.call({ ...AT, member: "CloseNotification", body: [{ type: "u", value: Number(handle) }] })
      return { response: "taken back" }
    }),
    check: (config) => Effect.as(connection(config, heard), "the desktop answers; nothing was shown")
  }
  return channel
})
