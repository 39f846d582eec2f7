/** The list of alerts: each trouble once, newest first, with where its mail stands; and what `agentd alert ls` prints of it. */
import { assert, describe, it } from "@effect/vitest"
import * as AlertList from "../../../src/alerts/AlertList.ts"
import type { Alert } from "../../../src/alerts/Alert.ts"
import * as Outbox from "../../../src/alerts/Outbox.ts"
import type { Way } from "../../../src/alerts/SendTimes.ts"
import { alerts } from "../../../src/cli/daemon/Alerts.ts"
import type { RuneDraft } from "../../../src/core/event-log/Rune.ts"

const NOW = 1_000_000
const route: Outbox.Route = { destination: "d", digestWindow: 30_000, maxPerHour: 20 }
const to = ["ada@example.org"]

const alert = (cause: number, name: string, at: number): Alert => ({
  kind: "agent.stopped",
  key: `agent.stopped:shop-1/worker/${name}`,
  stream: "shop-1",
  actor: `worker/${name}`,
  name,
  headline: `${name} stopped: 5 errors in a row`,
  reason: "r",
  remedy: null,
  errors: null,
  runId: null,
  cause,
  at,
  count: 1
})

class Desk {
  state = Outbox.initial
  runes: Array<RuneDraft & { readonly eventId: number; readonly at: number }> = []
  now = NOW
  append(draft: RuneDraft) {
    const rune = { ...draft, eventId: this.runes.length + 1, at: this.now }
    this.runes.push(rune)
    this.state = Outbox.evolve(this.state, rune)
  }
  queue(name: string, way: Outbox.Route | undefined = route) {
    const of = { alert: alert(this.runes.length + 1, name, this.now), hash: "abcdef0123", upTo: 1 }
    this.append(Outbox.queue(this.state, of, way, this.now))
  }
  attempt(): Outbox.Attempt {
    return { batch: this.state.batches[0]!, destination: "d", messageId: "<m>" }
  }
  /** As the config says it now. */
  way: Way | undefined = route
  list(failed = false, mailed: ReadonlyMap<string, ReadonlyArray<string>> = new Map([["shop-1", to]])) {
    const projects = new Map([["shop-1", "shop"]])
    const given = { state: this.state, runes: this.runes, projects, mailed, wayOf: () => this.way, now: this.now }
    return AlertList.listOf(given, { count: 10, failed })
  }
  shown(rows = this.list()) {
    return alerts.view(rows, { now: this.now, colour: false, columns: null, world: null })
  }
}

const away = { class: "transient", message: "the server is away", remedy: "-" } as const
const wrong = { class: "permanent", message: "550 no", remedy: "-" } as const

describe("alerts", () => {
  it("what was answered, or is over, offers its command no more", () => {
    const desk = new Desk()
    const [command, about] = ["agentd approve 01k9", "call:01k9"]
    const notice = { kind: "needsYou", title: "t", body: "b", command, urgency: "now", about, project: "shop" } as const
    const asked = { ...alert(1, "ann", desk.now), remedy: command, notice }
    desk.append(
      Outbox.queue(desk.state, { alert: asked, hash: "abcdef0123", upTo: 1 }, { ...route, channel: "phone" }, NOW)
    )
    assert.strictEqual(desk.list()[0]!.remedy, command)
    desk.now += 60_000
    const payload = { about, by: null, at: desk.now, upTo: 1, drops: [], withdraws: [] }
    desk.append({ stream: "daemon", kind: "alert.answered", actor: "alerter", payload })
    assert.match(desk.list()[0]!.remedy!, /^Resolved at /)
  })

  it("what was answered before it was sent was told to nobody: it is not listed as sent", () => {
    for (const kind of ["alert.answered", "alert.overtaken"] as const) {
      const desk = new Desk()
      const about = "call:01k9"
      const notice = {
        kind: "needsYou",
        title: "t",
        body: "b",
        command: "c",
        urgency: "now",
        about,
        project: "shop"
      } as const
      const asked = { ...alert(1, "ann", desk.now), notice }
      desk.append(
        Outbox.queue(desk.state, { alert: asked, hash: "abcdef0123", upTo: 1 }, { ...route, channel: "phone" }, NOW)
      )
      const drops = [desk.state.batches[0]!.id]
      const over =
        kind === "alert.answered" ? { by: "ada", at: desk.now, withdraws: [] } : { kind: "needsYou", alertIds: [] }
      desk.append({ stream: "daemon", kind, actor: "alerter", payload: { about, upTo: 2, drops, ...over } })
      assert.deepStrictEqual(desk.state.batches, [])
      assert.deepStrictEqual(desk.list(), [])
      // another kind of news of the same matter was not overtaken
      if (kind === "alert.answered") continue
      const other = { ...alert(9, "bob", desk.now), key: "other", notice: { ...notice, kind: "question" } } as const
      desk.append(
        Outbox.queue(desk.state, { alert: other, hash: "abcdef0124", upTo: 2 }, { ...route, channel: "phone" }, NOW)
      )
      const [batch] = desk.state.batches
      const payload = { about, upTo: 3, drops: [batch!.id], kind: "needsYou", alertIds: [] }
      desk.append({ stream: "daemon", kind, actor: "alerter", payload })
      desk.append(
        Outbox.sent(
          { batch: batch!, destination: "d", messageId: "<m>" },
          { to: ["phone"], rejected: [], response: "250" },
          desk.now
        )
      )
      assert.deepStrictEqual(
        desk.list().map(({ state }) => state),
        ["sent"]
      )
    }
  })

  it("one that waits says to whom it goes, and when", () => {
    const desk = new Desk()
    desk.queue("ann")
    const [row] = desk.list()
    assert.deepInclude(row, { agent: "shop/ann", state: "waiting", to, word: "failed", nextAt: NOW + 2_000, count: 1 })
    assert.match(desk.shown()[0]!, /✕ shop: ann stopped: 5 errors in a row$/)
    assert.deepStrictEqual(desk.shown().slice(1), [
      "    will be sent to ada@example.org in 2s",
      "    agentd why shop/ann"
    ])
  })

  it("equal troubles of one mail are one row; once it is sent, it says to whom and when", () => {
    const desk = new Desk()
    desk.queue("ann")
    desk.queue("ann")
    desk.queue("bob")
    desk.now += 2_000
    desk.append(Outbox.sent(desk.attempt(), { to, rejected: ["old@example.org"], response: "250" }, desk.now))
    desk.now += 60_000
    const rows = desk.list()
    assert.deepStrictEqual(
      rows.map(({ agent, count, sentAt, state }) => [agent, count, sentAt, state]),
      [
        ["shop/bob", 1, NOW + 2_000, "sent"],
        ["shop/ann", 2, NOW + 2_000, "sent"]
      ]
    )
    assert.include(desk.shown()[1], "sent to ada@example.org 1m ago; rejected for old@example.org")
    assert.deepStrictEqual(desk.list(true), [])
  })

  it("one that could not be sent says why and when it is tried next; one that was given up, that it never was", () => {
    const desk = new Desk()
    desk.queue("ann")
    desk.now += 2_000
    desk.append(Outbox.failure(desk.attempt(), away, desk.now))
    const [row] = desk.list(true)
    assert.deepInclude(row, { state: "failed", attempts: 1, error: "the server is away", nextAt: desk.now + 5_000 })
    assert.include(desk.shown()[1], "not sent to ada@example.org: the server is away (1 attempt); next try in 5s")
    while (desk.state.batches.length > 0) desk.append(Outbox.failure(desk.attempt(), wrong, desk.now))
    assert.deepInclude(desk.list(true)[0], { state: "given up", attempts: 5, error: "550 no" })
    assert.include(desk.shown()[1], "never sent: 550 no (5 attempts)")
  })

  it("one that the hourly limit of its channel, or quiet hours, hold back says when it leaves", () => {
    const desk = new Desk()
    desk.way = { destination: "phone/x", maxPerHour: 1 }
    const phone = { ...route, channel: "phone", settle: 2_000 }
    desk.queue("ann", { ...phone, destination: "phone/x" })
    desk.queue("bob", { ...phone, destination: "phone/x/excepted" })
    const times = () => Object.fromEntries(desk.list().map(({ agent, nextAt }) => [agent, nextAt! - NOW]))
    assert.deepStrictEqual(times(), { "shop/ann": 2_000, "shop/bob": 3_602_000 })
    assert.include(desk.shown().join("\n"), "will be sent to phone in 1h")
    desk.way = { ...desk.way, quietUntil: (at) => Math.max(at, NOW + 600_000) }
    assert.deepStrictEqual(times(), { "shop/ann": 600_000, "shop/bob": 4_200_000 })
  })

  it("one whose channel nobody can use any more is told nobody", () => {
    const desk = new Desk()
    desk.queue("ann", { ...route, channel: "phone", destination: "phone/x" })
    desk.way = undefined
    assert.deepInclude(desk.list()[0], { state: "nobody", to: [], nextAt: null })
  })

  it("without an address nobody was told, and it says so", () => {
    const desk = new Desk()
    desk.queue("ann", undefined)
    assert.deepInclude(desk.list(false, new Map())[0], { state: "nobody", to: [] })
    assert.include(desk.shown(desk.list(false, new Map()))[1], "not sent: no mail address is configured")
    assert.deepStrictEqual(desk.shown([]), ["There are no alerts. Test whether mail arrives: agentd alert test"])
  })
})
