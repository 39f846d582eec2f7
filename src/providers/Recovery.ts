/**
 * Recovery: rebuilds every provider's state from the log. Each provider and account has its own stream.
 *
 * Guarantees: a provider whose state cannot be rebuilt from its runes starts with a fresh state. If a stream cannot be
 * read, that is reported, and nothing is written to the stream.
 */
import { Effect } from "effect"
import { start, stateMachineActor } from "../core/event-actor/StateMachineActor.ts"
import type { Snapshot } from "../core/event-actor/StateMachine.ts"
import { EventLog, type StorageError } from "../core/event-log/EventLog.ts"
import type { Rune } from "../core/event-log/Rune.ts"
import type { StreamFold } from "../core/event-log/StreamFold.ts"
import * as ProviderId from "./ProviderId.ts"
import * as ProviderMachine from "./ProviderMachine.ts"

export type Stand = Snapshot<ProviderMachine.State, ProviderMachine.Data>

export const fresh: Stand = start(ProviderMachine.Provider, ProviderMachine.initial)

const kinds: ReadonlySet<string> = new Set(ProviderMachine.kinds)
const folding = stateMachineActor({ machine: ProviderMachine.Provider, data: ProviderMachine.initial })

/** State of a provider; null if it cannot be rebuilt from the runes. */
type Folded = Stand | null

const apply = (before: Folded, rune: Rune): Folded => {
  if (before === null || !kinds.has(rune.kind)) return before
  try {
    return folding.apply(before, rune, false)
  } catch {
    return null
  }
}

export const fold: StreamFold<Folded> = { name: "provider", version: 3, initial: fresh, of: ProviderId.isValid, apply }

/** States of providers, by stream; null if the stream cannot be read. */
export type Stands = ReadonlyMap<string, Stand | null>

export const recover = Effect.gen(function* () {
  const log = yield* EventLog
  const stands = new Map<string, Stand | null>()
  for (const { stream } of yield* log.streams) {
    if (!ProviderId.isValid(stream)) continue
    const stand = Effect.map(log.recover(stream, { provider: fold }), ({ provider }) => provider.state ?? fresh)
    const warned = (error: StorageError) =>
      Effect.as(log.setAside({ stream, part: "the account", message: error.message }), null)
    stands.set(stream, yield* Effect.catch(stand, warned))
  }
  return stands as Stands
})
