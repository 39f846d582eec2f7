/**
 * Bench of the daemon's start over its history: the real daemon, from its spawn to its
 * first answer on the control socket, and until all is ready. One subject has no snapshot
 * of its runes, as after an upgrade that changes every fold.
 */
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { sideFileOf } from "../../src/core/event-log/SideFile.ts"
import { type Bench, interleave, type Measure, type Subject } from "./Bench.ts"
import { historyOf, ownMemory, type Place, started, stopped } from "./History.ts"

const ROUNDS = 3

export const measures: ReadonlyArray<Measure> = [
  { what: "first answer", unit: "ms", better: "less" },
  { what: "all ready", unit: "ms", better: "less" },
  { what: "own memory", unit: "MB", better: "less" }
]

export const subjectOf = (subject: string, place: Place, before: () => void = () => {}): Subject => ({
  subject,
  round: async () => {
    before()
    const { answered, daemon, ready } = await started(place)
    const memory = ownMemory(daemon.pid!)
    await stopped(daemon)
    return { "first answer": answered, "all ready": ready, "own memory": memory }
  }
})

/** As after an upgrade to another version of every fold. */
const withoutSnapshots = (place: Place) => () => {
  const index = new DatabaseSync(sideFileOf(join(place.state, "runes.db")))
  index.exec("DELETE FROM snapshots WHERE name NOT IN ('guard', 'archives')")
  index.close()
}

const [SHORT, LONG, ANEW] = ["10,000 runes", "1,000,000 runes", "1,000,000 runes, new folds"] as const

export const bench: Bench = {
  name: "start",
  run: async () => {
    const [short, long] = [await historyOf(10_000), await historyOf(1_000_000)]
    return interleave(
      measures,
      [subjectOf(SHORT, short), subjectOf(LONG, long), subjectOf(ANEW, long, withoutSnapshots(long))],
      ROUNDS
    )
  },
  aims: [
    { what: "first answer", of: LONG, to: { subject: SHORT }, atMost: 1.3 },
    { what: "all ready", of: LONG, to: { subject: SHORT }, atMost: 1.3 },
    { what: "own memory", of: LONG, to: { subject: SHORT }, atMost: 1.2 }
  ]
}
