/** What the chain binds together. */
import { describe, expect, it } from "@effect/vitest"
import { GENESIS, hashPayload, hashRune } from "../../src/event-log/HashChain.ts"

const header = {
  eventId: 7,
  stream: "a",
  at: 1_000,
  kind: "worker.moved",
  actor: "worker/builder",
  from: "Spawning",
  to: "Running",
  trigger: "SessionStarted",
  cause: 6,
  visibility: "public"
}

describe("HashChain", () => {
  it("is the same today as when the first store was written", () => {
    expect(hashPayload('{"a":1}')).toBe("015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862")
    expect(hashRune(GENESIS, header, hashPayload("{}"))).toBe(
      "58faa3efea4e7967d881f25652194a4c709b14d069321a16a405e38660864376"
    )
  })

  it("changes with every part of the header, with the payload's hash and with what came before", () => {
    const base = hashRune(GENESIS, header, hashPayload("{}"))
    const changed = {
      eventId: 8,
      stream: "b",
      at: 1_001,
      kind: "x",
      actor: "x",
      from: null,
      to: null,
      trigger: null,
      cause: null,
      visibility: "secret"
    }
    for (const [field, value] of Object.entries(changed)) {
      expect(hashRune(GENESIS, { ...header, [field]: value }, hashPayload("{}")), field).not.toBe(base)
    }
    expect(hashRune(GENESIS, header, hashPayload("[]"))).not.toBe(base)
    expect(hashRune(base, header, hashPayload("{}"))).not.toBe(base)
  })

  it("tells apart headers whose parts run together", () => {
    const one = hashRune(GENESIS, { ...header, stream: "ab", kind: "c" }, "")
    const two = hashRune(GENESIS, { ...header, stream: "a", kind: "bc" }, "")
    expect(one).not.toBe(two)
    expect(hashRune(GENESIS, { ...header, from: "null" }, "")).not.toBe(
      hashRune(GENESIS, { ...header, from: null }, "")
    )
  })
})
