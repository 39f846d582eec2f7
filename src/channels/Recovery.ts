/**
 * Recovery: rebuilds the channels of a conversation from the log. The fold is pure.
 *
 * Guarantees: a channel that cannot be rebuilt from its runes (a log of a newer agentd, or a damaged one) is left out
 * and affects no other. A closed conversation has no channels.
 */
import { Effect } from "effect"
import { decodeChannel } from "../config/ChannelConfig.ts"
import * as ConversationId from "../domain/ConversationId.ts"
import { projectKinds } from "../domain/ProjectKinds.ts"
import { reader, type RuneOf } from "../core/event-log/EventKinds.ts"
import { EventLog } from "../core/event-log/EventLog.ts"
import type { StreamFold } from "../core/event-log/StreamFold.ts"
import type { Rune } from "../core/event-log/Rune.ts"
import { channelKinds } from "./ChannelKinds.ts"
import type { Home } from "./ChannelRegistry.ts"
import { apply as applyTo, type Channel, unborn } from "./ChannelState.ts"

/** The channels of a conversation, from its stream. Plain data. */
export interface Records {
  /** The project of the channels: its conversation, name and file. Null if unknown. */
  readonly home: Home | null
  readonly channels: { readonly [name: string]: Channel }
  /** Channels that cannot be rebuilt from their runes, by name, with the reason. */
  readonly broken: { readonly [name: string]: string }
}

export const empty: Records = { home: null, channels: {}, broken: {} }

const CLOSES = "session.closed"

/** Kinds of runes that name the project to which the channels belong. */
const homeKinds = {
  "project.registered": projectKinds["project.registered"],
  "project.config_changed": projectKinds["project.config_changed"]
}

const read = reader({ ...channelKinds, ...homeKinds })

type Known = RuneOf<typeof channelKinds & typeof homeKinds>

const nameOf = (rune: Known): string =>
  rune.kind === "seat.moved" ? rune.payload.channel : rune.actor.slice(rune.actor.indexOf("/") + 1)

const named = (records: Records, { payload, stream }: RuneOf<typeof homeKinds>): Records => {
  const project = payload.name ?? records.home?.project
  return project === undefined
    ? records
    : { ...records, home: { conversation: stream, project, config: payload.config } }
}

const without = <A>(from: { readonly [name: string]: A }, name: string): { readonly [name: string]: A } => {
  if (!Object.hasOwn(from, name)) return from
  const { [name]: _, ...rest } = from
  return rest
}

export const apply = (records: Records, any: Rune): Records => {
  if (any.kind === CLOSES) return empty
  const rune = read(any)
  // the rune has no payload, because an older agentd moved payloads into archives
  if (rune === undefined) return records
  if (rune.kind === "project.registered" || rune.kind === "project.config_changed") return named(records, rune)
  const name = nameOf(rune)
  const { broken, channels } = records
  const known = Object.hasOwn(channels, name) ? channels[name] : undefined
  const before = known ?? unborn(rune.stream, name, decodeChannel({}))
  if (rune.kind !== "channel.created" && (Object.hasOwn(broken, name) || before.epoch === 0)) return records
  try {
    const after = applyTo(before, any)
    return { ...records, channels: { ...channels, [name]: after }, broken: without(broken, name) }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    return { ...records, channels: without(channels, name), broken: { ...broken, [name]: reason } }
  }
}

export const fold: StreamFold<Records> = {
  name: "channels",
  version: 1,
  initial: empty,
  of: ConversationId.mayBe,
  apply
}

/**
 * Recovers the channels of every conversation from its own stream. A conversation that cannot be read, or is halted,
 * does not affect the others.
 */
export const recover = Effect.gen(function* () {
  const log = yield* EventLog
  const halted = new Set((yield* log.damaged).map(({ stream }) => stream))
  const found: Array<Records> = []
  for (const { stream } of yield* log.streams) {
    if (!ConversationId.mayBe(stream) || halted.has(stream)) continue
    yield* log.recover(stream, { channels: fold }).pipe(
      Effect.flatMap(({ channels: { state } }) => {
        found.push(state)
        const broken = Object.entries(state.broken)
        return Effect.forEach(
          broken,
          ([name, message]) => log.setAside({ stream, part: `the channel ${name}`, message }),
          { discard: true }
        )
      }),
      Effect.catch(({ message }) => log.setAside({ stream, part: "all channels", message }))
    )
  }
  return found
})
