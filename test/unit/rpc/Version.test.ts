/** Versions of the protocol that the daemon speaks, and the words for clients of others. */
import { assert, describe, it } from "@effect/vitest"
import { mismatch, OLDEST_PROTOCOL, ourselves, PROTOCOL, VERSION } from "../../../src/api/rpc/Version.ts"

describe("a client of protocol", () => {
  it("the oldest to the newest that the daemon speaks is answered, whatever its version", () => {
    for (let protocol = OLDEST_PROTOCOL; protocol <= PROTOCOL; protocol++)
      assert.isUndefined(mismatch({ protocol, version: "9.9.9" }))
    assert.isUndefined(mismatch(ourselves))
  })

  it("a newer one is told to restart the daemon, an older one to use the daemon's own command", () => {
    const newer = mismatch({ protocol: PROTOCOL + 1, version: "9.9.9" })
    assert.include(newer?.message, `The daemon is agentd ${VERSION} and speaks protocol ${PROTOCOL}`)
    assert.include(newer?.remedy, "agentd restart")
    const older = mismatch({ protocol: OLDEST_PROTOCOL - 1, version: "0.0.1" })
    assert.include(older?.message, `this command is of agentd 0.0.1 and speaks ${OLDEST_PROTOCOL - 1}`)
    assert.include(older?.remedy, `Use the command of agentd ${VERSION}`)
  })
})
