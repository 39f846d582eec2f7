/** Replayed: a recorded log, opened as the daemon opens it, as it was right after one of its runes. */
import { Effect, Layer } from "effect"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { Redact } from "../../../../src/core/event-log/Redact.ts"
import { EventLog } from "../../../../src/core/event-log/EventLog.ts"
import * as DaemonLog from "../../../../src/app/DaemonLog.ts"
import { folds } from "../../../../src/app/FeatureFolds.ts"
import * as Scratch from "../../../support/Scratch.ts"
import { type Recording, restore } from "../../../support/Recording.ts"
import { folded } from "./Folded.ts"

/** Uses the log of a daemon that died right after that rune; gone afterwards. */
export const withLogAt = <A, E, R>(recording: Recording, after: number, use: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => Scratch.make("agentd-replay-")),
    (folder) => {
      const file = restore(recording, after, join(folder, "s"))
      const log = DaemonLog.layerInline({ file, folds }).pipe(Layer.provide(Redact.layer))
      return Effect.provide(use, Layer.fresh(log))
    },
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )

/** The problems of the log, and its fold. */
export const foldedAt = (recording: Recording, after: number) =>
  withLogAt(
    recording,
    after,
    Effect.gen(function* () {
      const log = yield* EventLog
      const { problems, runes } = yield* log.verify
      const now = recording.runes.find(({ eventId }) => eventId === after)!.at
      return { problems, runes, states: yield* folded({ configs: recording.configs, now }) }
    })
  )
