/** Both formats of header: what is hashed, and that old runes keep their hashes. */
import { describe, expect, it } from "@effect/vitest"
import { GENESIS, hashPayload, hashRune, type Header, headerText } from "../../../src/core/event-log/HashChain.ts"

const header: Header = {
  format: 2,
  eventId: 7,
  seq: 3,
  stream: "shop",
  at: 1_790_000_000_000,
  kind: "worker.moved",
  actor: "worker/builder",
  from: "Idle",
  to: "Running",
  trigger: "SessionStarted",
  cause: { stream: "daemon", seq: 2 },
  causeId: null,
  moves: ["agent/builder"],
  visibility: "public"
}
const payloadHash = hashPayload("{}")
const hash = (change: Partial<Header>) => hashRune(GENESIS, { ...header, ...change }, payloadHash)

describe("HashChain", () => {
  it("format 2 hashes all of a header but its position", () => {
    const other: ReadonlyArray<Partial<Header>> = [
      { seq: 4 },
      { stream: "shop2" },
      { at: 1 },
      { kind: "worker.started" },
      { actor: "worker/critic" },
      { from: null },
      { to: null },
      { trigger: null },
      { cause: null },
      { cause: { stream: "shop", seq: 2 } },
      { cause: { stream: "daemon", seq: 3 } },
      { moves: [] },
      { visibility: "secret" },
      { format: 1 }
    ]
    expect(new Set([header, ...other].map(hash)).size).toBe(other.length + 1)
    expect(hash({ eventId: 8 })).toBe(hash({}))
  })

  it("format 1 hashes what it always did: the position and the cause's, and no seq", () => {
    const old = { ...header, format: 1, causeId: 5 }
    expect(headerText(old)).toBe(
      '[7,"shop",1790000000000,"worker.moved","worker/builder","Idle","Running","SessionStarted",5,"public"]'
    )
    expect(hash({ ...old, seq: 4, cause: null, moves: [] })).toBe(hash(old))
    expect(hash({ ...old, eventId: 8 })).not.toBe(hash(old))
  })

  it("names that look like JSON do not make two headers alike", () => {
    expect(headerText({ ...header, actor: 'a","b' })).not.toBe(headerText({ ...header, actor: "a", kind: '","b' }))
    expect(JSON.parse(headerText({ ...header, stream: 'ü "\u{1f642}' }))).toHaveLength(12)
  })
})
