/**
 * Tests of the features' folds over the streams of a store: each stream is read once
 * by all of them, and every state goes into a snapshot and comes back.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schedule, Stream } from "effect"
import { existsSync } from "node:fs"
import { dirname, join } from "node:path"
import * as Agents from "../../../src/projects/Recovery.ts"
import * as Outbox from "../../../src/alerts/Outbox.ts"
import * as DaemonLog from "../../../src/app/DaemonLog.ts"
import { folds } from "../../../src/app/FeatureFolds.ts"
import * as Channels from "../../../src/channels/Recovery.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import { Redact } from "../../../src/core/event-log/Redact.ts"
import { type AnyFold, applyTo, plainOf, stateOf } from "../../../src/core/event-log/StreamFold.ts"
import * as Goals from "../../../src/goals/GoalRegistry.ts"
import * as Plates from "../../../src/plates/Recovery.ts"
import { names, open, restore } from "../../support/Recording.ts"
import * as Scratch from "../../support/Scratch.ts"
import * as StoreReads from "../../support/StoreReads.ts"
import { sample } from "../../support/Long.ts"

/** The store of a recording, whole. */
const storeOf = (name: string) =>
  Effect.map(Scratch.folder("agentd-pass-"), (folder) => {
    const recording = open(name)
    return restore(recording, recording.runes.at(-1)!.eventId, join(folder, "s"))
  })

const withLog = <A, E>(file: string, use: Effect.Effect<A, E, EventLog>) =>
  Effect.provide(use, DaemonLog.layerInline({ file, folds }), { local: true }).pipe(
    Effect.provide(Redact.layer, { local: true })
  )

/** An older agentd's archives are put back into the log by the first start, which reads for that alone. */
const withoutArchives = (file: string) => {
  const archive = join(dirname(file), "archive")
  return Effect.when(
    withLog(
      file,
      Effect.repeat(
        Effect.sync(() => existsSync(archive)),
        { while: (isThere) => isThere, schedule: Schedule.spaced("10 millis") }
      )
    ),
    Effect.sync(() => existsSync(archive))
  )
}

/** The reads of all features at the start of the daemon. */
const start = Effect.gen(function* () {
  const log = yield* EventLog
  const records = yield* Agents.recover
  yield* Outbox.load
  yield* Plates.recover
  yield* Channels.recover
  yield* Goals.recover(log, [...records.keys()])
  return yield* log.reading
})

const isTagged = (value: object): value is { readonly $: unknown; readonly of: ReadonlyArray<unknown> } => "$" in value

/** Hash maps and sets have no order of their own. */
const ordered = (plain: unknown): unknown => {
  if (typeof plain !== "object" || plain === null) return plain
  if (Array.isArray(plain)) return plain.map(ordered)
  if (isTagged(plain) && (plain.$ === "HashMap" || plain.$ === "HashSet")) {
    const of = plain.of.map(ordered)
    return { $: plain.$, of: of.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)) }
  }
  return Object.fromEntries(Object.entries(plain).map(([key, one]) => [key, ordered(one)]))
}

const shown = (fold: AnyFold, state: unknown): unknown => {
  const plain = ordered(JSON.parse(JSON.stringify(plainOf(fold, state))))
  return fold.name === "goals" ? (plain as ReadonlyArray<unknown>).map((one) => JSON.stringify(one)).toSorted() : plain
}

const thereAndBack = (fold: AnyFold, state: unknown): unknown =>
  stateOf(fold, JSON.parse(JSON.stringify(plainOf(fold, state))))

/** Of the runes, those after which a state goes there and back. */
const EVERY = sample(1, 7)

/** Compares two forms of a fold: one goes through a snapshot again and again, the other never does. */
const compared = (fold: AnyFold, runes: ReadonlyArray<Rune>, where: string) => {
  let [straight, restored] = [fold.initial, fold.initial]
  for (const [index, rune] of runes.entries()) {
    straight = applyTo(fold, straight, rune)
    restored = applyTo(fold, restored, rune)
    if (index % EVERY !== 0 && index !== runes.length - 1) continue
    restored = thereAndBack(fold, restored)
    assert.deepStrictEqual(shown(fold, restored), shown(fold, straight), `${fold.name} ${where} at ${rune.eventId}`)
  }
}

describe("a start of the daemon", () => {
  for (const name of names()) {
    it.live(`${name}: no rune is read twice, and from snapshots next to none`, () =>
      Effect.gen(function* () {
        const file = yield* storeOf(name)
        yield* withoutArchives(file)
        const reads = yield* StoreReads.count
        const read = yield* withLog(
          file,
          Effect.gen(function* () {
            // what the guard reads when the store is opened
            reads.runes.length = 0
            const { unreadable, ...counted } = yield* start
            assert.deepStrictEqual(unreadable, [])
            assert.strictEqual(counted.read, counted.streams)
            return [...reads.runes]
          })
        )
        assert.isAbove(read.length, 0)
        assert.deepStrictEqual(
          read.filter((eventId, index) => read.indexOf(eventId) !== index),
          []
        )
      })
    )
  }
})

describe("the folds", () => {
  it("have a name each: it is their snapshot's", () =>
    assert.strictEqual(new Set(["guard", ...folds.map(({ name }) => name)]).size, folds.length + 1))
})

describe("every state goes into a snapshot and comes back", () => {
  for (const name of names()) {
    it.live(name, () =>
      Effect.gen(function* () {
        const file = yield* storeOf(name)
        yield* withLog(
          file,
          Effect.gen(function* () {
            const log = yield* EventLog
            for (const { stream } of yield* log.streams) {
              const runes = yield* Stream.runCollect(log.read({ stream }))
              for (const fold of folds.filter((one) => one.of?.(stream) ?? true)) {
                compared(fold, Array.from(runes), `of ${stream} in ${name}`)
              }
            }
          })
        )
      })
    )
  }
})
