/**
 * Bench of a year: the real daemon's start over 10 million runes, beside one over 10,000. To make the log
 * takes minutes and 7 GB, so it runs only where it is named; with `HISTORIES=FOLDER` it is made once.
 */
import { type Bench, interleave } from "./Bench.ts"
import { historyOf } from "./History.ts"
import { measures, subjectOf } from "./start.ts"

const [SHORT, YEAR] = ["10,000 runes", "10,000,000 runes"] as const

export const bench: Bench = {
  name: "year",
  isLong: true,
  run: async () => {
    const [short, year] = [await historyOf(10_000), await historyOf(10_000_000)]
    return interleave(measures, [subjectOf(SHORT, short), subjectOf(YEAR, year)], 3)
  },
  aims: [
    { what: "all ready", of: YEAR, to: { subject: SHORT }, atMost: 1.3 },
    { what: "own memory", of: YEAR, to: { subject: SHORT }, atMost: 1.2 }
  ]
}
