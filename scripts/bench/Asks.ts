/**
 * Asks: asks one durable actor so many times, one after the other; the bench `durable`
 * runs it under strace and counts what it syncs.
 *
 *     node scripts/bench/Asks.ts FILE COUNT
 */
import { Effect, Layer } from "effect"
import * as DaemonLog from "../../src/app/DaemonLog.ts"
import { Redact } from "../../src/core/event-log/Redact.ts"
import { hello, table } from "./Counter.ts"
import { layer, run, spawner } from "./Scopes.ts"

const [file, count] = [process.argv[2]!, Number(process.argv[3])]

const asks = Effect.gen(function* () {
  const spawn = yield* spawner
  const actor = yield* spawn(table)
  for (let n = 0; n < count; n++) yield* actor.ask(hello)
})

await run(
  Effect.provide(asks, layer.pipe(Layer.provide(DaemonLog.layer({ file })), Layer.provide(Redact.layer)), {
    local: true
  })
)
