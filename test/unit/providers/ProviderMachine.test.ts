/** The weather of a provider, by its table: what counts, how long it is waited for, and what a person is told. */
import { assert, describe, it } from "@effect/vitest"
import { newsOf } from "../../../src/alerts/AlertPolicy.ts"
import { step } from "../../../src/core/event-actor/StateMachine.ts"
import * as ProviderMachine from "../../../src/providers/ProviderMachine.ts"
import { LEASE, Queue } from "../../../src/providers/Queue.ts"

const { Provider } = ProviderMachine

const of = { provider: "anthropic", account: "login" }

const failed = (
  at: number,
  more: { readonly began?: number; readonly retryAt?: number; readonly lasts?: number } = {}
): ProviderMachine.Event => ({
  _tag: "failed",
  ...of,
  at,
  began: at,
  message: "529 overloaded",
  by: "web/ann",
  ...more
})
const refused = (at: number, began = at): ProviderMachine.Event => ({
  _tag: "refused",
  ...of,
  at,
  began,
  message: "401 token expired; log in",
  by: "web/ann"
})
const answered = (at: number, began = at): ProviderMachine.Event => ({ _tag: "answered", at, began, by: "web/bob" })
const limited = (at: number, until: number): ProviderMachine.Event => ({
  _tag: "limited",
  ...of,
  at,
  until,
  message: "the limit is reached",
  by: "web/ann"
})
const due: ProviderMachine.Event = { _tag: "retry_due" }

/** Plays the events; one that is stale leaves it as it was. */
const played = (...events: ReadonlyArray<ProviderMachine.Event>) => {
  let [state, data]: [ProviderMachine.State, ProviderMachine.Data] = [Provider.initial, ProviderMachine.initial]
  const kinds: Array<string> = []
  let woken = 0
  for (const event of events) {
    const result = step(Provider, state, data, event)
    if (result._tag === "Refused") {
      assert.strictEqual(result.why, "stale", JSON.stringify(event))
      continue
    }
    state = result.state
    data = result.data
    kinds.push(result.kind)
    woken += result.actions.length
  }
  return { state, data, kinds, woken }
}

describe("the weather", () => {
  it("an outage is told to a person when it is as old as the config says, once", () => {
    const lasts = 60_000
    const { kinds } = played(...[0, 30_000, 60_000, 120_000].map((at) => failed(at, { lasts })), answered(130_000))
    assert.deepStrictEqual(
      kinds.filter((kind) => kind !== "provider.moved"),
      ["provider.lasting", "provider.recovered"]
    )
    assert.strictEqual(kinds.indexOf("provider.lasting"), 2)
  })

  it("a herd that fails together counts once; the one that finds out makes it worse", () => {
    const herd = played(failed(1_000), failed(1_001, { began: 500 }), failed(1_002, { began: 600 }))
    assert.strictEqual(herd.state, "Degraded")
    assert.deepInclude(herd.data, { failures: 1, until: 3_000 })
    const worse = played(failed(1_000), due, failed(4_000))
    assert.strictEqual(worse.state, "Unavailable")
    assert.deepInclude(worse.data, { failures: 2, since: 1_000, until: 8_000 })
  })

  it("waits 2, 4, 8 … 60 seconds, and as long as it is asked to where that is longer", () => {
    const waits = Array.from({ length: 7 }, (_, n) => {
      const events = Array.from({ length: n + 1 }, (_, at) => failed(at * 100_000))
      return played(...events).data.until - n * 100_000
    })
    assert.deepStrictEqual(waits, [2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000])
    assert.strictEqual(played(failed(0, { retryAt: 8_000 })).data.until, 8_000)
    assert.strictEqual(played(failed(0, { retryAt: Number.MAX_SAFE_INTEGER })).data.until, 24 * 3_600_000)
  })

  it("an answer to what was asked before the failure ends nothing; one to what was asked since, all of it", () => {
    assert.strictEqual(played(failed(1_000), answered(1_500, 900)).state, "Degraded")
    const over = played(failed(1_000), answered(3_500, 3_000))
    assert.strictEqual(over.state, "Available")
    assert.deepInclude(over, { woken: 1 })
    assert.deepInclude(over.data, { failures: 0, until: 0 })
  })

  it("a limit holds whatever else fails, and one finds out when it is over", () => {
    const held = played(limited(1_000, 61_000), failed(2_000))
    assert.strictEqual(held.state, "LimitedUntil")
    assert.strictEqual(held.data.until, 61_000)
    const over = played(limited(1_000, 61_000), due)
    assert.strictEqual(over.state, "Degraded")
    assert.deepInclude(over, { woken: 1 })
    assert.isTrue(over.data.isDue)
    assert.strictEqual(Provider.timers.retry.after(over.data, 61_000), Infinity, "nothing more to wait for")
  })

  it("what lasts a quarter of an hour is told once, and its end, too; what does not, not at all", () => {
    const minutes = Array.from({ length: 30 }, (_, minute) => failed(minute * 60_000))
    const long = played(...minutes, answered(1_900_000))
    assert.deepStrictEqual(
      long.kinds.filter((kind) => kind !== "provider.moved"),
      ["provider.lasting", "provider.recovered"]
    )
    assert.strictEqual(long.kinds.indexOf("provider.lasting"), 15)
    const short = played(...minutes.slice(0, 10), answered(700_000))
    assert.isTrue(short.kinds.every((kind) => kind === "provider.moved"))
    // another outage is another one
    const again = played(...minutes, answered(1_900_000), failed(2_000_000), failed(2_010_000), answered(2_020_000))
    assert.deepStrictEqual(again.kinds.slice(-3), ["provider.moved", "provider.moved", "provider.moved"])
  })

  it("the mails say who, why and what to do", () => {
    const rune = { stream: "provider:x", actor: "provider/x", from: "Unavailable", eventId: 7, seq: 2, at: 900_000 }
    const lasting = newsOf({
      ...rune,
      kind: "provider.lasting",
      to: "Unavailable",
      payload: { event: failed(900_000) }
    } as never)?.mail
    assert.deepInclude(lasting, { headline: "anthropic (login) is unavailable", remedy: "See who waits: agentd ps" })
    assert.include(lasting?.reason, "529 overloaded")
    const recovered = newsOf({
      ...rune,
      kind: "provider.recovered",
      to: "Available",
      payload: { ...of, event: answered(1_000_000) }
    } as never)?.mail
    assert.deepInclude(recovered, { headline: "anthropic (login) answers again" })
  })
})

describe("a login that is refused", () => {
  it("is tried once more, and its renewal by another process is no trouble", () => {
    const once = played(refused(1_000))
    assert.deepStrictEqual([once.state, once.data.until, once.data.toldAt], ["Degraded", 3_000, 0])
    const over = played(refused(1_000), due, answered(3_100))
    assert.deepStrictEqual([over.state, over.woken], ["Available", 2])
    assert.isTrue(over.kinds.every((kind) => kind === "provider.moved"))
  })

  it("of a herd counts once", () => {
    const herd = played(refused(1_000, 900), refused(1_001, 901), refused(1_002, 902))
    assert.deepStrictEqual([herd.state, herd.data.refusals], ["Degraded", 1])
  })

  it("again needs a login: told once, asked again with a growing wait, and over with an answer, which is told", () => {
    const needed = played(refused(0), due, refused(2_100), due, refused(6_200), due, refused(20_000))
    assert.strictEqual(needed.state, "LoginNeeded")
    assert.deepStrictEqual(
      needed.kinds.filter((kind) => kind !== "provider.moved"),
      ["provider.lasting"]
    )
    assert.strictEqual(needed.data.until, 36_000)
    const over = played(refused(0), due, refused(2_100), due, answered(9_000))
    assert.strictEqual(over.state, "Available")
    assert.strictEqual(over.kinds.at(-1), "provider.recovered")
    // the next one is another one
    const again = played(refused(0), due, refused(2_100), due, answered(9_000), refused(10_000))
    assert.deepStrictEqual([again.state, again.data.refusals], ["Degraded", 1])
  })

  it("is still that while the network is away, too, and says what is to be done", () => {
    const needed = played(refused(0), due, refused(2_100), due, failed(9_000))
    assert.deepStrictEqual([needed.state, needed.data.message], ["LoginNeeded", "401 token expired; log in"])
    assert.isAbove(needed.data.until, 9_000)
    assert.isFalse(needed.data.isDue)
    const both = played(failed(0), refused(3_000), due, failed(6_000), due, refused(12_000))
    assert.strictEqual(both.state, "LoginNeeded")
  })

  it("in an outage of which a person knows is told besides", () => {
    const minutes = Array.from({ length: 20 }, (_, minute) => failed(minute * 60_000))
    const { kinds, state } = played(...minutes, refused(1_300_000), due, refused(1_400_000))
    assert.strictEqual(state, "LoginNeeded")
    assert.lengthOf(
      kinds.filter((kind) => kind === "provider.lasting"),
      2
    )
  })

  it("is told with who and what to do", () => {
    const rune = { stream: "provider:x", actor: "provider/x", from: "Degraded", eventId: 7, seq: 2, at: 2_100 }
    const alert = newsOf({
      ...rune,
      kind: "provider.lasting",
      to: "LoginNeeded",
      payload: { event: refused(2_100) }
    } as never)?.mail
    assert.strictEqual(alert?.headline, "anthropic (login) needs a login")
    assert.include(alert?.reason, "log in")
  })
})

describe("those that wait", () => {
  it("one finds out; the others wait until it has, or has told nothing for a minute", () => {
    const queue = new Queue()
    const woken: Array<string> = []
    const wake = (who: string) => () => void woken.push(who)
    assert.isTrue(queue.enter("ann", wake("ann"), 0))
    assert.isFalse(queue.enter("bob", wake("bob"), 1))
    assert.isTrue(queue.enter("ann", wake("ann"), 2), "the same one again")
    queue.wake()
    assert.deepStrictEqual(woken, ["bob"])
    assert.isFalse(queue.enter("bob", wake("bob"), LEASE))
    assert.isTrue(queue.enter("bob", wake("bob"), LEASE + 3), "ann has told nothing")
    queue.release("ann")
    assert.isFalse(queue.enter("cy", wake("cy"), LEASE + 4), "that was bob's")
    queue.release("bob")
    assert.isTrue(queue.enter("cy", wake("cy"), LEASE + 5))
  })

  it("who waits twice is woken once, by its newest call", () => {
    const queue = new Queue()
    const woken: Array<number> = []
    queue.wait("ann", () => woken.push(1))
    queue.wait("ann", () => woken.push(2))
    queue.wake()
    queue.wake()
    assert.deepStrictEqual(woken, [2])
  })
})
