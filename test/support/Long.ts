/**
 * Long: `npm test` shows each behaviour once. What shows more of the same (every crash point, many seeds, all vectors
 * of a kind) is left to `npm run test:long`, which runs the files that import this.
 */
import { describe, it } from "@effect/vitest"

export const isLong = process.env["LONG"] === "1"

/** All samples where they are asked for, else the few that show each behaviour once. */
export const sample = <A>(all: A, few: A): A => (isLong ? all : few)

/** Tests that run with all samples only. */
export const long = {
  describe: describe.runIf(isLong),
  it: it.runIf(isLong),
  live: it.live.runIf(isLong)
}
