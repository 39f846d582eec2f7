/** A daemon that has nothing to do: no clock of it ticks fast. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import * as Sandbox from "../../support/Sandbox.ts"

/** ms; nothing that repeats may be armed for less. */
const SHORTEST = 10_000
/** Looks one after the other that find no short timer: a clock that ticks is armed at nearly every look. */
const LOOKS = 30

interface Look {
  readonly looks: number
  readonly timers: ReadonlyArray<number>
}

describe("an idle daemon", () => {
  it.live("has no clock that ticks more often than each ten seconds", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      const file = join(box.folder, "timers")
      box.environment["NODE_OPTIONS"] = `--require ${resolve(import.meta.dirname, "../../fixtures/pending-timers.cjs")}`
      box.environment["PENDING_TIMERS"] = file
      box.setUser({ http: { port: 20_417 }, orphanGrace: "0 seconds" })
      const backend = { type: "command", shell: "cat" }
      box.configure({ agents: { one: { backend }, two: { backend }, three: { backend } } })
      yield* box.up()
      yield* box.until("they wait", box.rows, (rows) => rows.length === 3)
      const look = Effect.sync((): Look => {
        return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : { looks: 0, timers: [] }
      })
      let last = 0
      let still = 0
      const seen = yield* box.until("no short timer is armed", look, ({ looks, timers }) => {
        if (looks === last) return false
        last = looks
        still = timers.some((ms) => ms < SHORTEST) ? 0 : still + 1
        return still >= LOOKS
      })
      assert.isAbove(seen.timers.length, 3, "the looks see timers")
    }).pipe(Effect.scoped)
  )
})
