/** When messages that wait will leave: foretold as it then comes, whatever shares an hourly limit and whatever failed. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { Alert } from "../../../src/alerts/Alert.ts"
import { departures, type Way } from "../../../src/alerts/SendTimes.ts"
import * as Outbox from "../../../src/alerts/Outbox.ts"
import type { RuneDraft } from "../../../src/core/event-log/Rune.ts"

const NONE: ReadonlySet<string> = new Set()
const WAYS = ["phone/x", "phone/x/excepted", "phone/x/later-1", "desk/y"]
const away = { class: "transient", message: "away", remedy: "-" } as const
const receipt = { to: [], rejected: [], response: "250 OK" }
/** Nothing leaves in the first ten minutes of an hour. */
const quietUntil = (at: number): number => Math.max(at, Math.floor(at / 3_600_000) * 3_600_000 + 600_000)

const alert = (name: string, at: number, cause: number): Alert => ({
  kind: "agent.stopped",
  key: `agent.stopped:${name}`,
  stream: "shop-1",
  actor: `worker/${name}`,
  name,
  headline: name,
  reason: "r",
  remedy: null,
  errors: null,
  runId: null,
  cause,
  at,
  count: 1
})

/** The outbox, and what the alerter does with it. */
class Desk {
  state = Outbox.initial
  now = 10 * 3_600_000
  private runes = 0
  private readonly maxPerHour: number
  constructor(maxPerHour: number) {
    this.maxPerHour = maxPerHour
  }
  private append(draft: RuneDraft) {
    this.runes += 1
    this.state = Outbox.evolve(this.state, { ...draft, eventId: this.runes, at: this.now })
  }
  queue(destination: string, settle: number) {
    const [channel] = destination.split("/") as [string]
    const of = { alert: alert(`n${this.runes}`, this.now, this.runes + 1), hash: "abcdef0123", upTo: 1 }
    const route = { destination, channel, settle, digestWindow: 30_000, maxPerHour: this.maxPerHour }
    this.append(Outbox.queue(this.state, of, route, this.now))
  }
  way = ({ destination }: Outbox.Batch): Way => ({
    destination,
    maxPerHour: this.maxPerHour,
    ...(destination.startsWith("desk") ? { quietUntil } : {})
  })
  get foretold() {
    return departures(this.state, this.way, this.now)
  }
  /** The first that may go now, as the alerter picks it. */
  private get next(): Outbox.Batch | undefined {
    const { now, state } = this
    return state.batches.find((batch) => {
      const { quietUntil: over = (at: number) => at } = this.way(batch)
      return (
        (Outbox.readyAt(state, batch, now) ?? Infinity) <= now &&
        over(now) <= now &&
        Outbox.freeAt(state, batch, this.maxPerHour, NONE, now) <= now
      )
    })
  }
  /** Attempts all that may go now; those that left. */
  attempt(isAway: boolean): ReadonlyArray<string> {
    const gone: Array<string> = []
    for (let batch = this.next; batch !== undefined; batch = this.next) {
      const attempt = { batch, destination: batch.destination, messageId: `<${batch.id}>` }
      this.append(isAway ? Outbox.failure(attempt, away, this.now) : Outbox.sent(attempt, receipt, this.now))
      if (!isAway) gone.push(batch.id)
    }
    return gone
  }
}

const Step = Schema.Literals([
  "x now",
  "x digest",
  "excepted",
  "later",
  "desk",
  "minutes",
  "half an hour",
  "go",
  "away"
])

describe("when a message leaves", () => {
  it.prop(
    "is foretold for each that is behind no other",
    [Schema.Array(Step).check(Schema.isMinLength(5), Schema.isMaxLength(60)), Schema.Literals([1, 2, 3])],
    ([steps, maxPerHour]) => {
      const desk = new Desk(maxPerHour)
      for (const step of steps) {
        if (step === "x now") desk.queue(WAYS[0]!, 2_000)
        else if (step === "x digest") desk.queue(WAYS[0]!, 900_000)
        else if (step === "excepted") desk.queue(WAYS[1]!, 2_000)
        else if (step === "later") desk.queue(WAYS[2]!, 5_400_000)
        else if (step === "desk") desk.queue(WAYS[3]!, 2_000)
        else if (step === "minutes") desk.now += 240_000
        else if (step === "half an hour") desk.now += 1_800_000
        else desk.attempt(step === "away")
      }
      // those behind another are told of once that has left, and share its limit: what is foretold then holds
      for (let round = 0; round < 100 && desk.state.batches.length > 0; round++) {
        const [at] = [...desk.foretold.values()].toSorted((a, b) => a - b)
        const due = [...desk.foretold].flatMap(([id, time]) => (time === at ? [id] : []))
        assert.isAtLeast(at!, desk.now)
        if (at! > desk.now) {
          desk.now = at! - 1
          assert.deepStrictEqual(desk.attempt(false), [])
        }
        desk.now = at!
        const gone = desk.attempt(false)
        for (const id of due) assert.include(gone, id)
      }
      assert.lengthOf(desk.state.batches, 0)
    }
  )

  it("all are foretold at once, in the order in which they share the limit", () => {
    const desk = new Desk(1)
    for (const way of WAYS) desk.queue(way, 2_000)
    const foretold = desk.foretold
    const left: Array<readonly [string, number]> = []
    for (let round = 0; round < 10 && desk.state.batches.length > 0; round++) {
      desk.now = Math.min(...desk.foretold.values())
      left.push(...desk.attempt(false).map((id) => [id, desk.now] as const))
    }
    assert.deepStrictEqual(new Map(left), new Map(foretold))
    assert.strictEqual(new Set(left.map(([, at]) => at)).size, 4)
  })

  it("what was mended is tried at once, and what has no way now is not foretold", () => {
    const desk = new Desk(1)
    desk.queue("phone/x", 0)
    desk.attempt(true)
    assert.deepStrictEqual([...desk.foretold.values()], [desk.now + 5_000])
    const mended = { destination: "phone/z", maxPerHour: 1 }
    assert.deepStrictEqual([...departures(desk.state, () => mended, desk.now).values()], [desk.now])
    assert.strictEqual(departures(desk.state, () => undefined, desk.now).size, 0)
  })
})
