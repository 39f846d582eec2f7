/**
 * Scope: three messages to two actors that tell each other, over a log whose appends land,
 * fail or are the last of a daemon: nothing that was acknowledged is lost, nothing is
 * applied or acted on twice, ids are in the order of commits, no macrostep is half.
 *
 * `ALL=1` takes every way to send, more failures and more deaths.
 */
import { assert, describe, it } from "@effect/vitest"
import type { Unit } from "../../../src/core/event-log/Log.ts"
import { HeldLog } from "../../world/event-actor/Lab.ts"
import { explore, say } from "./Explore.ts"
import { type Options, scopeModel, type Sent } from "./ScopeModel.ts"
import { sample } from "../../support/Long.ts"

const sentBy = (hows: string, tos: string): ReadonlyArray<Sent> =>
  [...tos].map((to, index) => ({ to: to as Sent["to"], how: hows[index] === "?" ? "ask" : "tell", tellsOn: true }))

/** Asked (?) or told (!), to one of the two. */
const HOWS = sample(["!!!", "?!!", "!?!", "!!?", "??!", "?!?", "!??", "???"], ["?!?"])
const TOS = ["aaa", "aab", "aba", "abb"]
const WAYS = HOWS.flatMap((hows) => TOS.map((tos) => sentBy(hows, tos)))

const bounds = { failures: 1, deaths: 1, share: 100, most: 100_000 }

/** All ways to send, together. */
const total = (options: Omit<Options, "sent">, ways = WAYS) => {
  let [states, transitions] = [0, 0]
  for (const sent of ways) {
    const found = explore(scopeModel({ ...options, sent }))
    assert.strictEqual(say(found), "", JSON.stringify(sent))
    states += found.states
    transitions += found.transitions
  }
  return [states, transitions]
}

describe("a scope's macrosteps over failures and a crash", () => {
  it("siblings of one scope", () => {
    assert.deepStrictEqual(total({ ...bounds, scopes: 1 }), sample([5140, 7756], [636, 908]))
  })

  it("actors of two scopes", () => {
    assert.deepStrictEqual(total({ ...bounds, scopes: 2 }), sample([38_280, 65_182], [4511, 7319]))
  })

  it("one macrostep on its way at a time, and two deaths", () => {
    assert.deepStrictEqual(
      total({ ...bounds, scopes: 2, share: 1, deaths: sample(2, 1) }),
      sample([90_583, 191_788], [4901, 8074])
    )
  })

  it("three failures in a row: what breaks the log each time is dead-lettered", () => {
    const options = { ...bounds, scopes: 2 as const, failures: 3, deaths: 0 }
    const ways = TOS.map((tos) => sentBy("?!?", tos))
    assert.deepStrictEqual(total(options, ways), [1585, 2454])
  })
})

/** Says that it is durable as soon as it is taken. */
class Hasty extends HeldLog {
  override append(unit: Unit): boolean {
    super.append(unit)
    this.flight.shift()
    return true
  }
  override land(): void {}
  override get waiting(): number {
    return 0
  }
}

/** A log that keeps what it says has failed. */
class Keeping extends HeldLog {
  override break(): void {
    const [unit] = this.flight.peek(1)
    super.break()
    this.keep(unit!)
    this.head = this.durable = unit!.runes.at(-1)!.eventId
    for (const { seq, stream } of unit!.runes) this.seqs.set(stream, seq)
  }
}

describe("planted mistakes are found", () => {
  const sent = sentBy("?!?", "aba")
  const found = (options: Partial<Options>) =>
    explore(scopeModel({ ...bounds, scopes: 2, sent, ...options })).problem?.what ?? "nothing"

  it("an append is acknowledged before it is durable", () => {
    assert.match(found({ log: () => new Hasty() }), /is acknowledged, and not in the log|acted on, and not in the log/)
  })

  it("a failed append stays in the log", () => {
    assert.match(found({ log: () => new Keeping() }), /applied twice|is acted on twice|its log at/)
  })

  it("what the other scope has not heard of is not told again", () => {
    assert.match(found({ tellAgain: () => [] }), /is never heard/)
  })

  it("all is told again, and nobody knows what it has heard", () => {
    const plant: Options["plant"] = (definition) => ({
      ...definition,
      decide: (_, message, context) => definition.decide({ seen: [] }, message, context)
    })
    assert.match(found({ plant, tellAgain: (runes) => [...runes] }), /applied twice/)
  })

  it("a sibling's part of a macrostep is sent on its own", () => {
    const plant: Options["plant"] = (definition) => ({
      ...definition,
      decide: (state, message, context) => {
        const decided = definition.decide(state, message, context)
        if (typeof decided === "string" || !("runes" in decided)) return decided
        return { ...decided, tells: (decided.tells ?? []).map((told) => ({ ...told, later: true })) }
      }
    })
    assert.match(found({ scopes: 1, plant }), /only a half is in the log/)
  })
})
