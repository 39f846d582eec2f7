/** Asking: makes the calls of a declared verb over a connection of the whole program. */
import { Effect, Stream } from "effect"
import type { CommandRefused } from "../../domain/Messages.ts"
import type { StorageError } from "../../core/event-log/EventLog.ts"
import type { Client } from "../../api/rpc/ControlClient.ts"
import type { Ask } from "./DeclaredVerb.ts"

/** A procedure, called by the tag in a declaration. The declaration has already checked the payload's type. */
type Procedure = (
  payload: unknown
) => Effect.Effect<unknown, CommandRefused | StorageError> | Stream.Stream<unknown, CommandRefused | StorageError>

export const answers = <V>(client: Client, ask: Ask<V>) =>
  Effect.forEach(
    ask.calls,
    ({ payload, stream, tag }) => {
      const reply = (client as unknown as { readonly [tag: string]: Procedure })[tag]!(payload ?? undefined)
      return stream
        ? Stream.runCollect(reply as Stream.Stream<unknown, CommandRefused | StorageError>)
        : (reply as Effect.Effect<unknown, CommandRefused | StorageError>)
    },
    { concurrency: "unbounded" }
  ).pipe(Effect.map(ask.value))
