/**
 * fsyncs: appends COUNT runes one after another, each when the one before it is durable. Usage: node fsyncs.ts FILE
 * COUNT
 */
import { Effect, Layer } from "effect"
import * as DaemonLog from "../../src/app/DaemonLog.ts"
import { EventLog } from "../../src/core/event-log/EventLog.ts"
import { Redact } from "../../src/core/event-log/Redact.ts"

const [file, count] = [process.argv[2]!, Number(process.argv[3])]

const program = Effect.gen(function* () {
  const log = yield* EventLog
  for (let n = 0; n < count; n++) {
    yield* log.append([
      {
        stream: "a",
        kind: "inbox.received",
        actor: "inbox/a",
        payload: { event: { _tag: "Withdrawn", messageId: `${n}` } }
      }
    ])
  }
})

await Effect.runPromise(program.pipe(Effect.provide(DaemonLog.layer({ file }).pipe(Layer.provide(Redact.layer)))))
