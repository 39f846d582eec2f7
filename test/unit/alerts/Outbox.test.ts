/** The outbox as a fold: what is queued stays until a rune says otherwise, whatever happens between. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { readFileSync } from "node:fs"
import { type Alert, together } from "../../../src/alerts/Alert.ts"
import * as Outbox from "../../../src/alerts/Outbox.ts"
import { delayAfter, TELLS_AT } from "../../../src/alerts/Retry.ts"
import type { RuneDraft } from "../../../src/core/event-log/Rune.ts"

const alert = (cause: number, name: string, at = 0): Alert => ({
  kind: "agent.stopped",
  key: `agent.stopped:demo/worker/${name}`,
  stream: "demo",
  actor: `worker/${name}`,
  name,
  headline: `${name} stopped`,
  reason: "r",
  remedy: null,
  errors: null,
  runId: null,
  cause,
  at,
  count: 1
})

const route: Outbox.Route = { destination: "d", digestWindow: 30_000, maxPerHour: 20 }
const refused = { class: "permanent", message: "550 no", remedy: "-" } as const
const away = { class: "transient", message: "away", remedy: "-" } as const
const receipt = { to: ["ada@example.org"], rejected: [], response: "250 OK" }

/** A log with nothing but the outbox's own runes, and the clock of its reader. */
class Desk {
  state = Outbox.initial
  runes: Array<RuneDraft & { readonly eventId: number; readonly at: number }> = []
  now = 1_000_000
  append(draft: RuneDraft) {
    const rune = { ...draft, eventId: this.runes.length + 1, at: this.now }
    this.runes.push(rune)
    this.state = Outbox.evolve(this.state, rune)
  }
  queue(name: string, to: Outbox.Route | null = route) {
    const cause = this.runes.length + 1
    this.append(
      Outbox.queue(
        this.state,
        { alert: alert(cause, name, this.now), hash: "abcdef0123", upTo: cause },
        to ?? undefined,
        this.now
      )
    )
  }
  /** `maxPerHour`: as the config says it now. */
  attempt(maxPerHour = 1000): Outbox.Attempt | undefined {
    const { now, state } = this
    const batch = state.batches.find(
      (one) =>
        (Outbox.readyAt(state, one, now) ?? Infinity) <= now &&
        Outbox.freeAt(state, one, maxPerHour, new Set(), now) <= now
    )
    return batch && { batch, destination: "d", messageId: Outbox.messageId(batch, "example.org") }
  }
  send(): Outbox.Attempt | undefined {
    const attempt = this.attempt()
    if (attempt !== undefined) this.append(Outbox.sent(attempt, receipt, this.now))
    return attempt
  }
}

const names = (attempt: Outbox.Attempt | undefined) =>
  attempt && [...attempt.batch.alerts.values()].map(({ alert }) => `${alert.name}×${alert.count}`)

describe("Outbox", () => {
  it("the first alert is due within seconds, and what comes before that joins it", () => {
    const desk = new Desk()
    desk.queue("a")
    assert.isUndefined(desk.attempt())
    desk.queue("b")
    desk.queue("a")
    desk.now += 5_000
    assert.deepStrictEqual(names(desk.attempt()), ["a×2", "b×1"])
  })

  it("keeps since when no mail can be sent, over further failures, until one is sent", () => {
    const desk = new Desk()
    desk.now = 1_000_000
    desk.queue("a")
    desk.now += 60_000
    const since = desk.now
    desk.append(Outbox.failure(desk.attempt()!, away, desk.now))
    desk.now += 3_600_000
    desk.append(Outbox.failure(desk.attempt()!, away, desk.now))
    assert.strictEqual(desk.state.failsSince, since)
    desk.now += 3_600_000
    desk.send()
    assert.isUndefined(desk.state.failsSince)
  })

  it("a clock that is set back by hours keeps no mail back: neither the first attempt, nor the next, nor a later alert", () => {
    const desk = new Desk()
    desk.now = 100 * 3_600_000
    desk.queue("a")
    desk.now -= 2 * 3_600_000
    const first = desk.attempt()
    assert.deepStrictEqual(names(first), ["a×1"])
    desk.append(Outbox.failure(first!, away, desk.now))
    assert.isUndefined(desk.attempt(), "by the clock as it is now")
    desk.now -= 2 * 3_600_000
    assert.deepStrictEqual(names(desk.send()), ["a×1"])
    desk.queue("b")
    desk.now += 60_000
    assert.deepStrictEqual(names(desk.attempt()), ["b×1"])
  })

  it("no alert joins a batch whose attempt has begun, whatever the clock shows meanwhile", () => {
    const desk = new Desk()
    desk.queue("a")
    desk.now += 5_000
    const begun = new Set([desk.attempt()!.batch.id])
    desk.now -= 4_000
    const source = { alert: alert(7, "b", desk.now), hash: "abcdef0123", upTo: 7 }
    desk.append(Outbox.queue(desk.state, source, route, desk.now, begun))
    assert.lengthOf(desk.state.batches, 2)
  })

  it("a channel's message that a pressing notice joins goes sooner, but not above the hourly limit", () => {
    const desk = new Desk()
    const phone = { ...route, channel: "phone", maxPerHour: 1, settle: 2_000 }
    desk.queue("a", phone)
    desk.now += 2_000
    assert.deepStrictEqual(names(desk.send()), ["a×1"])
    const sentAt = desk.now
    desk.now += 60_000
    desk.queue("b", { ...phone, settle: 2 * 3_600_000 })
    desk.queue("c", phone)
    desk.now = sentAt + 3_600_000 - 1
    assert.isUndefined(desk.attempt())
    desk.now += 1
    assert.deepStrictEqual(names(desk.attempt()), ["b×1", "c×1"])
  })

  it("one that was hastened counts from when it left, not from when it was due first", () => {
    const desk = new Desk()
    const phone = { ...route, channel: "phone", maxPerHour: 1, settle: 2_000 }
    desk.queue("a", { ...phone, settle: 900_000 })
    desk.queue("b", phone)
    desk.now += 2_000
    assert.deepStrictEqual(names(desk.send()), ["a×1", "b×1"])
    const sentAt = desk.now
    desk.now += 600_000
    desk.queue("c", phone)
    desk.now = sentAt + 3_600_000 - 1
    assert.isUndefined(desk.attempt(1))
    desk.now += 1
    assert.deepStrictEqual(names(desk.attempt(1)), ["c×1"])
  })

  it("what waited behind a receiver that was away leaves within the hourly limit", () => {
    const desk = new Desk()
    const phone = { ...route, channel: "phone", maxPerHour: 1, settle: 2_000 }
    desk.queue("a", phone)
    for (let attempt = 0; attempt < 3; attempt++) {
      desk.now += 600_000
      desk.append(Outbox.failure(desk.attempt(1)!, away, desk.now))
      desk.queue("b", phone)
    }
    desk.now += 7_200_000
    assert.deepStrictEqual(names(desk.attempt(1)), ["a×1"])
    desk.append(Outbox.sent(desk.attempt(1)!, receipt, desk.now))
    desk.now += 3_600_000 - 1
    assert.isUndefined(desk.attempt(1))
    desk.now += 1
    assert.deepStrictEqual(names(desk.attempt(1)), ["b×3"])
  })

  it("a clock that is set back a day keeps nothing back for the messages that left", () => {
    const desk = new Desk()
    const phone = { ...route, channel: "phone", maxPerHour: 1, settle: 2_000 }
    desk.now = 100 * 3_600_000
    desk.queue("a", phone)
    desk.now += 2_000
    desk.append(Outbox.sent(desk.attempt(1)!, receipt, desk.now))
    desk.now -= 24 * 3_600_000
    desk.queue("b", phone)
    desk.now += 2_000
    assert.deepStrictEqual(names(desk.attempt(1)), ["b×1"])
  })

  const Step = Schema.Literals(["now", "soon", "digest", "second", "minutes", "half an hour", "send", "away"])
  it.prop(
    "in no hour more leaves than the limit, in whatever order it is queued, hastened and put off; all leaves in the end",
    [Schema.Array(Step).check(Schema.isMinLength(30), Schema.isMaxLength(150)), Schema.Literals([1, 2, 3])],
    ([steps, maxPerHour]) => {
      const desk = new Desk()
      const settles = { now: 2_000, soon: 30_000, digest: 900_000 } as const
      const waits = { second: 1_000, minutes: 240_000, "half an hour": 1_800_000 } as const
      const left: Array<number> = []
      const attempted = (isAway: boolean) => {
        const attempt = desk.attempt(maxPerHour)
        if (attempt === undefined) return
        if (isAway) return desk.append(Outbox.failure(attempt, away, desk.now))
        left.push(desk.now)
        desk.append(Outbox.sent(attempt, receipt, desk.now))
      }
      for (const [at, step] of steps.entries()) {
        if (step in settles) {
          const settle = settles[step as keyof typeof settles]
          desk.queue(`n${at % 5}`, { ...route, channel: "phone", maxPerHour, settle })
        } else if (step in waits) desk.now += waits[step as keyof typeof waits]
        else attempted(step === "away")
      }
      for (let round = 0; round < 20 && desk.state.batches.length > 0; round++) {
        desk.now += 3_600_000
        attempted(false)
      }
      assert.lengthOf(desk.state.batches, 0)
      for (const [at, time] of left.entries())
        assert.isAtMost(left.slice(at).filter((other) => other < time + 3_600_000).length, maxPerHour)
    }
  )

  it("a batch that may have been tried takes nobody in any more", () => {
    const desk = new Desk()
    desk.queue("a")
    desk.now += 5_000
    desk.queue("b")
    assert.deepStrictEqual(names(desk.send()), ["a×1"])
    assert.strictEqual(Outbox.summary(desk.state).waiting, 1)
  })

  it("an equal alert that comes while its like is under way is mailed later, under another Message-ID", () => {
    const desk = new Desk()
    desk.queue("a")
    desk.now += 5_000
    const first = desk.attempt()!
    desk.queue("a")
    desk.append(Outbox.sent(first, receipt, desk.now))
    desk.now += 60_000
    const second = desk.send()
    assert.deepStrictEqual(names(second), ["a×1"])
    assert.notStrictEqual(second?.messageId, first.messageId)
  })

  it("a mail that the server refuses holds back no other, and is tried on beside them", () => {
    const desk = new Desk()
    desk.queue("bad")
    desk.now += 60_000
    desk.append(Outbox.failure(desk.attempt()!, refused, desk.now))
    desk.now += 1_000
    desk.queue("good")
    desk.now += 40_000
    assert.deepStrictEqual(names(desk.send()), ["good×1"])
    desk.now += 60_000
    assert.deepStrictEqual(names(desk.send()), ["bad×1"])
  })

  it("nor does one that the server puts off again and again, while it takes others", () => {
    const desk = new Desk()
    desk.queue("bad")
    for (let attempt = 0; attempt < 4; attempt++) {
      desk.now += 60_000
      desk.append(Outbox.failure(desk.attempt()!, away, desk.now))
    }
    desk.queue("good")
    desk.now += 40_000
    assert.deepStrictEqual(names(desk.send()), ["bad×1"])
    assert.deepStrictEqual(names(desk.send()), ["good×1"])
  })

  it("while a server is away all that is new waits in a few batches behind the first", () => {
    const desk = new Desk()
    desk.queue("a")
    for (let minute = 0; minute < 60; minute++) {
      desk.now += 60_000
      const attempt = desk.attempt()
      if (attempt !== undefined) desk.append(Outbox.failure(attempt, away, desk.now))
      desk.queue(`late${minute % 3}`)
    }
    const { length } = desk.state.batches
    assert.isAtMost(length, 4)
    desk.now += 15 * 60_000
    const sent = Array.from({ length }, () => names(desk.send()))
    assert.deepStrictEqual(sent[0], ["a×1"])
    const late = sent
      .slice(1)
      .flat()
      .map((name) => Number(name!.split("×")[1]))
    assert.strictEqual(
      late.reduce((sum, count) => sum + count, 0),
      60
    )
    assert.strictEqual(Outbox.summary(desk.state).waiting, 0)
  })

  it("names at most 200 troubles in a mail and counts the rest", () => {
    const desk = new Desk()
    for (let n = 0; n < 300; n++) desk.queue(`agent${n}`)
    desk.now += 5_000
    assert.deepInclude(desk.state.batches[0], { more: 100 })
    assert.strictEqual(Outbox.summary(desk.state).waiting, 300)
  })

  it("what is not routed waits in one batch a project and is no destination's", () => {
    const desk = new Desk()
    desk.queue("a", null)
    desk.now += 3_600_000
    desk.queue("b", null)
    desk.queue("c")
    assert.deepStrictEqual(
      desk.state.batches.map(({ alerts, destination, routed }) => [destination, routed, alerts.size]),
      [
        ["demo", false, 2],
        ["d", true, 1]
      ]
    )
  })

  it("skips runes that it does not understand", () => {
    const rune = { eventId: 9, at: 0, kind: "alert.queued", payload: { from: "a newer agentd" } }
    assert.deepStrictEqual(Outbox.evolve(Outbox.initial, rune), Outbox.initial)
  })

  const Operation = Schema.Literals([
    "queue a",
    "queue b",
    "unrouted",
    "wait",
    "long",
    "send",
    "away",
    "refused",
    "restart"
  ])
  it.prop(
    "no alert is lost or mailed twice, each attempt of a batch carries the same, and the fold is the state",
    [Schema.Array(Operation).check(Schema.isMinLength(30), Schema.isMaxLength(200))],
    ([operations]) => {
      const desk = new Desk()
      let [queued, sent, givenUp] = [0, 0, 0]
      const carried = new Map<string, string>()
      const held = (attempt: Outbox.Attempt) =>
        attempt.batch.more + [...attempt.batch.alerts.values()].reduce((sum, one) => sum + one.alert.count, 0)
      for (const operation of [...operations, "long", "send", "long", "send"]) {
        const attempt = desk.attempt()
        if (attempt !== undefined && ["send", "away", "refused"].includes(operation)) {
          const content = JSON.stringify([...attempt.batch.alerts])
          assert.strictEqual(carried.get(attempt.messageId) ?? content, content)
          carried.set(attempt.messageId, content)
        }
        if (operation === "wait") desk.now += 3_000
        else if (operation === "long") desk.now += 3_600_000
        else if (operation === "queue a" || operation === "queue b") {
          desk.queue(operation)
          queued++
        } else if (operation === "unrouted") {
          desk.queue("u", null)
          queued++
        } else if (operation === "send" && attempt !== undefined) {
          desk.append(Outbox.sent(attempt, receipt, desk.now))
          sent += held(attempt)
        } else if (attempt !== undefined && (operation === "away" || operation === "refused")) {
          const draft = Outbox.failure(attempt, operation === "away" ? away : refused, desk.now)
          desk.append(draft)
          if (draft.payload["nextAt"] === null) givenUp += held(attempt)
        }
        const waiting = desk.state.batches.reduce(
          (sum, batch) => sum + held({ batch, destination: "", messageId: "" }),
          0
        )
        assert.strictEqual(queued, sent + givenUp + waiting)
      }
      assert.deepStrictEqual(desk.runes.reduce(Outbox.evolve, Outbox.initial), desk.state)
    }
  )
})

describe("Retry", () => {
  it("transient: 5 s, doubled up to 15 min", () => {
    assert.deepStrictEqual(
      [1, 2, 3, 8, 9, 100].map((attempt) => delayAfter("transient", attempt)),
      [5_000, 10_000, 20_000, 640_000, 900_000, 900_000]
    )
  })

  it("setup: every 15 min", () => {
    assert.deepStrictEqual(
      [1, 2, 50].map((attempt) => delayAfter("setup", attempt)),
      [900_000, 900_000, 900_000]
    )
  })

  it("permanent: given up with the fifth", () => {
    assert.deepStrictEqual(
      [1, 2, 3, 4, 5].map((attempt) => delayAfter("permanent", attempt)),
      [60_000, 120_000, 240_000, 480_000, undefined]
    )
  })

  it("the others are told of a channel that is away after as long as the docs say", () => {
    const waits = Array.from({ length: TELLS_AT - 1 }, (_, at) => delayAfter("transient", at + 1) ?? 0)
    const minutes = waits.reduce((sum, wait) => sum + wait, 0) / 60_000
    const page = readFileSync(new URL("../../../docs/notifications.md", import.meta.url), "utf8")
    const [, said] = /after some (\d+) minutes, or at\s+once/u.exec(page) ?? []
    assert.strictEqual(Number(said), Math.round(minutes / 5) * 5)
  })

  it("no class is tried for ever", () => {
    for (const failure of ["transient", "setup", "permanent"] as const) assert.isUndefined(delayAfter(failure, 300))
  })
})

describe("together", () => {
  it("keeps the newer words and counts both", () => {
    const both = together(alert(1, "a"), { ...alert(2, "a"), reason: "newer", count: 3 })
    assert.deepInclude(both, { cause: 2, reason: "newer", count: 4 })
  })
})
