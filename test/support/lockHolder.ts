/**
 * lockHolder: holds the lock of a store until it is killed, and prints `held` once it has the lock. Usage: node
 * lockHolder.ts FOLDER SOCKET
 */
import { Effect } from "effect"
import * as StoreLock from "../../src/core/event-log/StoreLock.ts"

await Effect.runPromise(
  Effect.scoped(
    StoreLock.acquire({ folder: process.argv[2]!, socket: process.argv[3]! }).pipe(
      Effect.andThen(Effect.sync(() => console.log("held"))),
      // A timer keeps the process alive.
      Effect.andThen(Effect.sleep("1 hour"))
    )
  )
)
