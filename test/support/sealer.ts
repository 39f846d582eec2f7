/**
 * sealer: appends runes to a store and seals its oldest ones, again and again, until it is killed; prints each id once
 * it is acknowledged. Usage: node sealer.ts FILE
 */
import { Effect, Layer } from "effect"
import { Redact } from "../../src/core/event-log/Redact.ts"
import { EventLog } from "../../src/core/event-log/EventLog.ts"
import * as DaemonLog from "../../src/app/DaemonLog.ts"
import { say } from "./Say.ts"

const draft = (n: number) => ({
  stream: `stream-${n % 5}`,
  kind: "inbox.received",
  actor: `inbox/${n % 3}`,
  payload: {
    event: {
      _tag: "Received",
      n,
      message: { messageId: `${n}`, from: "ada", text: "x".repeat((n * 37) % 400), urgent: false, at: n }
    }
  }
})

const program = Effect.gen(function* () {
  const log = yield* EventLog
  for (let n = 0; ; n += 100) {
    const runes = yield* log.append(Array.from({ length: 100 }, (_, index) => draft(n + index)))
    say(`${runes.map(({ eventId, seq, stream }) => `${eventId}:${stream}#${seq}`).join(" ")}\n`)
    const { last } = yield* log.sealed
    if (n % 700 !== 0) continue
    const rune = yield* log.seal({
      upTo: Math.max(last, (yield* log.head) - 300),
      before: Number.MAX_SAFE_INTEGER,
      least: 100
    })
    say(`sealed ${String(rune?.payload["last"])}\n`)
  }
})

await Effect.runPromise(
  program.pipe(Effect.provide(DaemonLog.layer({ file: process.argv[2]! }).pipe(Layer.provide(Redact.layer))))
)
