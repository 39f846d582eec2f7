/** Wellness: which two looks at the daemon feed its watchdog; and a log whose writer hangs. */
import { assert, describe, it } from "@effect/vitest"
import { type Look, isWell } from "../../../src/app/WatchdogCheck.ts"

const look = (more: Partial<Look> = {}): Look => ({ isReady: true, read: 0, assigned: 10, durable: 10, ...more })

describe("the watchdog is fed", () => {
  it.each([
    ["at the first look", undefined, look({ isReady: false })],
    ["while nothing is to be written", look(), look()],
    ["while the log is read on", look({ isReady: false, read: 5 }), look({ isReady: false, read: 6 })],
    ["while what waited gets durable, however much comes", look({ assigned: 20 }), look({ assigned: 90, durable: 11 })],
    ["where work has only just come", look(), look({ assigned: 20 })],
    ["where what waited was refused", look({ assigned: 20 }), look()]
  ])("%s", (_, before, now) => assert.isTrue(isWell(before, now)))
})

describe("the watchdog is not fed", () => {
  it.each([
    ["where the reading of the log stands", look({ isReady: false, read: 5 }), look({ isReady: false, read: 5 })],
    ["where the log's thread hangs with work before it", look({ assigned: 20 }), look({ assigned: 20 })],
    ["however much more work comes to a thread that hangs", look({ assigned: 20 }), look({ assigned: 90 })]
  ])("%s", (_, before, now) => assert.isFalse(isWell(before, now)))
})
