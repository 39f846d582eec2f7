/** The alerter's place in the log: a start looks at no rune that an earlier one has looked at, mail or not. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schedule } from "effect"
import { DatabaseSync } from "node:sqlite"
import { AlertContext } from "../../../src/alerts/AlertContext.ts"
import * as Alerter from "../../../src/alerts/Alerter.ts"
import { LiveOutbox } from "../../../src/alerts/LiveOutbox.ts"
import * as DaemonLog from "../../../src/app/DaemonLog.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import { Redact } from "../../../src/core/event-log/Redact.ts"
import { sideFileOf } from "../../../src/core/event-log/SideFile.ts"
import { note, storeFile } from "../../world/event-log/Disk.ts"

/** No mail is configured, and nothing is to be mailed. */
const context = (file: string) =>
  Layer.provideMerge(
    Layer.mergeAll(
      LiveOutbox.layer,
      AlertContext.layerTest(() => undefined)
    ),
    Layer.mergeAll(DaemonLog.layer({ file }).pipe(Layer.provide(Redact.layer)), Redact.layer, NodeFileSystem.layer)
  )

const position = (file: string): unknown => {
  const index = new DatabaseSync(sideFileOf(file), { readOnly: true })
  try {
    return index.prepare("SELECT event_id FROM subscribers WHERE name = 'alerter'").get()?.["event_id"]
  } finally {
    index.close()
  }
}

describe("the alerter", () => {
  it.live("that never queued a mail has its place, too", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* Effect.gen(function* () {
        const log = yield* EventLog
        yield* Effect.forkScoped(Alerter.run({ host: "lab" }))
        for (let group = 0; group < 40; group++) {
          yield* log.append(Array.from({ length: 50 }, (_, n) => note("s1", group * 50 + n)))
        }
        yield* Effect.sync(() => position(file)).pipe(
          Effect.repeat({ until: (at) => Number(at) >= 1_024, schedule: Schedule.spaced("5 millis") })
        )
      }).pipe(Effect.scoped, Effect.provide(context(file), { local: true }))
      // what it was not told of is behind it, too
      assert.strictEqual(position(file), 2_000)
    })
  )
})
