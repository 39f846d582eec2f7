/**
 * Recovery: what the log says of every channel, in one pass over it.
 *
 * The pass is a pure fold. A channel whose runes do not fold (a log of a newer
 * agentd, a damaged one) is set aside and touches no other; a conversation that is
 * closed takes its channels with it.
 */
import { Effect, Stream } from "effect"
import { decodeChannel } from "../config/ChannelConfig.ts"
import type { Rune } from "../event-log/Rune.ts"
import { EventLog } from "../event-log/EventLog.ts"
import type { Home } from "./Channels.ts"
import { apply, type Channel, kinds, unborn } from "./ChannelState.ts"

export interface Records {
  /** By conversation, then by name. */
  readonly channels: Map<string, Map<string, Channel>>
  /** Whose runes do not fold, with the reason. */
  readonly broken: Map<string, string>
  /** What the projects are called, by conversation. */
  readonly homes: Map<string, Home>
}

export const empty = (): Records => ({ channels: new Map(), broken: new Map(), homes: new Map() })

const CLOSES = "session.closed"
const REGISTERED = "project.registered"
const RENAMED = "project.config_changed"

const nameOf = (rune: Rune): string =>
  rune.kind === "seat.moved" ? String(rune.payload["channel"]) : rune.actor.slice(rune.actor.indexOf("/") + 1)

const named = (records: Records, { payload, stream }: Rune): void => {
  const known = records.homes.get(stream)
  const project = payload["name"] ?? known?.project
  if (typeof project !== "string") return
  records.homes.set(stream, { conversation: stream, project, config: String(payload["config"] ?? known?.config) })
}

/** One rune, folded in. */
export const fold = (records: Records, rune: Rune): void => {
  // its conversation is archived: what it said lies in the archive's file
  if (rune.payload["archived"] === true) return
  if (rune.kind === CLOSES) {
    records.channels.delete(rune.stream)
    records.homes.delete(rune.stream)
    return
  }
  if (rune.kind === REGISTERED || rune.kind === RENAMED) return named(records, rune)
  const name = nameOf(rune)
  const key = `${rune.stream}/${name}`
  const own = records.channels.get(rune.stream) ?? new Map<string, Channel>()
  const before = own.get(name) ?? unborn(rune.stream, name, decodeChannel({}))
  if (rune.kind !== "channel.created" && (records.broken.has(key) || before.epoch === 0)) return
  try {
    own.set(name, apply(before, rune))
    records.channels.set(rune.stream, own)
    records.broken.delete(key)
  } catch (cause) {
    own.delete(name)
    records.broken.set(key, cause instanceof Error ? cause.message : String(cause))
  }
}

/** The whole log, folded. */
export const recover = Effect.gen(function* () {
  const log = yield* EventLog
  const records = empty()
  yield* Stream.runForEachArray(log.read({ kinds: [...kinds, CLOSES, REGISTERED, RENAMED] }), (runes) =>
    Effect.sync(() => {
      for (const rune of runes) fold(records, rune)
    })
  )
  return records
})
