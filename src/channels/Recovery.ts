/**
 * Recovery: what the log says of the channels of one conversation. Pure.
 *
 * Guarantees: a channel whose runes do not fold (a log of a newer agentd, a damaged one) is
 * set aside and touches no other; a conversation that is closed takes its channels with it.
 */
import { Effect } from "effect"
import { decodeChannel } from "../config/ChannelConfig.ts"
import * as ConversationId from "../domain/ConversationId.ts"
import { EventLog } from "../event-log/EventLog.ts"
import type { StreamFold } from "../event-log/StreamFold.ts"
import type { Rune } from "../event-log/Rune.ts"
import type { Home } from "./ChannelRegistry.ts"
import { apply as applyTo, type Channel, kinds, unborn } from "./ChannelState.ts"

/** The channels of a conversation, as its stream says. Plain data. */
export interface Records {
  /** What its project is called. */
  readonly home: Home | null
  /** By name. */
  readonly channels: { readonly [name: string]: Channel }
  /** Whose runes do not fold, with the reason. */
  readonly broken: { readonly [name: string]: string }
}

export const empty: Records = { home: null, channels: {}, broken: {} }

const CLOSES = "session.closed"
const REGISTERED = "project.registered"
const RENAMED = "project.config_changed"

const KINDS: ReadonlySet<string> = new Set([...kinds, CLOSES, REGISTERED, RENAMED])

const nameOf = (rune: Rune): string =>
  rune.kind === "seat.moved" ? String(rune.payload["channel"]) : rune.actor.slice(rune.actor.indexOf("/") + 1)

const named = (records: Records, { payload, stream }: Rune): Records => {
  const { home } = records
  const project = payload["name"] ?? home?.project
  if (typeof project !== "string") return records
  return { ...records, home: { conversation: stream, project, config: String(payload["config"] ?? home?.config) } }
}

const without = <A>(from: { readonly [name: string]: A }, name: string): { readonly [name: string]: A } => {
  if (!Object.hasOwn(from, name)) return from
  const { [name]: _, ...rest } = from
  return rest
}

/** One rune of the stream, folded in. */
export const apply = (records: Records, rune: Rune): Records => {
  // its conversation is archived: what it said lies in the archive's file
  if (!KINDS.has(rune.kind) || rune.payload["archived"] === true) return records
  if (rune.kind === CLOSES) return empty
  if (rune.kind === REGISTERED || rune.kind === RENAMED) return named(records, rune)
  const name = nameOf(rune)
  const { broken, channels } = records
  const known = Object.hasOwn(channels, name) ? channels[name] : undefined
  const before = known ?? unborn(rune.stream, name, decodeChannel({}))
  if (rune.kind !== "channel.created" && (Object.hasOwn(broken, name) || before.epoch === 0)) return records
  try {
    const after = applyTo(before, rune)
    return { ...records, channels: { ...channels, [name]: after }, broken: without(broken, name) }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    return { ...records, channels: without(channels, name), broken: { ...broken, [name]: reason } }
  }
}

/** The channels of a conversation, by its stream. */
export const fold: StreamFold<Records> = {
  name: "channels",
  version: 1,
  initial: empty,
  of: ConversationId.mayBe,
  apply
}

/** Every conversation, each from its own stream; one that cannot be read stops no other. */
export const recover = Effect.gen(function* () {
  const log = yield* EventLog
  const found: Array<Records> = []
  for (const { stream } of yield* log.streams) {
    if (!ConversationId.mayBe(stream)) continue
    yield* log.recover(stream, { channels: fold }).pipe(
      Effect.map(({ channels: { state } }) => found.push(state)),
      Effect.catch((error) => Effect.logError(`the channels of ${stream} cannot be read: ${error.message}`))
    )
  }
  return found
})
