/**
 * Long: three sizes of the test suite. `npm test` shows each behaviour once. `npm run test:long`, which CI runs after
 * it, runs the tests that are declared by `long`: the same behaviours with other agents, attacks and crash points. `npm
 * run test:all` also takes every sample (each crash point, many seeds, planted faults), and takes hours.
 */
import { describe, it } from "@effect/vitest"
import type { TestOptions } from "vitest"

export const isAll = process.env["ALL"] === "1"
const isLong = isAll || process.env["LONG"] === "1"

/** Every sample with `npm run test:all`, otherwise the few that show each behaviour once. */
export const sample = <A>(every: A, few: A): A => (isAll ? every : few)

/** `npm run test:long` runs tests with this tag and no others. */
const tagged = (options: number | TestOptions = {}): TestOptions => ({
  ...(typeof options === "number" ? { timeout: options } : options),
  tags: ["long"]
})

type Body = () => void | Promise<void>
type Live = Parameters<typeof it.live>

export const long = {
  describe: (name: string, body: () => void) => describe.runIf(isLong)(name, tagged(), body),
  it: (name: string, options: TestOptions | Body, body: Body | number = {} as never) =>
    typeof options === "function"
      ? it.runIf(isLong)(name, tagged(typeof body === "number" ? body : {}), options)
      : it.runIf(isLong)(name, tagged(options), body as Body),
  live: (name: Live[0], self: Live[1], options?: Live[2]) => it.live.runIf(isLong)(name, self, tagged(options))
}

/** Tests that take minutes each, or find planted faults. */
export const all = {
  describe: describe.runIf(isAll),
  it: it.runIf(isAll),
  live: it.live.runIf(isAll)
}
