/**
 * appender: appends runes to a store until it is killed, and prints each id once it is acknowledged. Usage: node
 * appender.ts FILE WRITERS
 */
import { Effect, Layer } from "effect"
import { Redact } from "../../src/core/event-log/Redact.ts"
import { EventLog } from "../../src/core/event-log/EventLog.ts"
import * as DaemonLog from "../../src/app/DaemonLog.ts"
import { say } from "./Say.ts"

const [file, writers] = [process.argv[2]!, Number(process.argv[3])]

const append = (writer: number) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    for (let n = 0; ; n++) {
      const runes = yield* log.append(
        // Two runes per call, so that a call that is only partly stored would be noticed.
        [n, n].map((number) => ({
          stream: `stream-${writer % 3}`,
          kind: "inbox.received",
          actor: `inbox/${writer}`,
          payload: {
            event: {
              _tag: "Received",
              message: {
                messageId: `${number}`,
                from: "ada",
                text: "x".repeat((number * 37) % 700),
                urgent: false,
                at: number
              },
              n: number
            }
          }
        }))
      )
      say(`${runes.map(({ eventId, seq, stream }) => `${eventId}:${stream}#${seq}`).join(" ")}\n`)
    }
  })

const program = Effect.forEach(
  Array.from({ length: writers }, (_, writer) => writer),
  append,
  { concurrency: "unbounded" }
)

await Effect.runPromise(program.pipe(Effect.provide(DaemonLog.layer({ file }).pipe(Layer.provide(Redact.layer)))))
