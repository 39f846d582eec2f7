/** Tests of the board that is read anew in parts: it is the whole one, whatever happened, for whoever looks how often. */
import { assert, describe, it } from "@effect/vitest"
import type { BoardRow } from "../../../src/domain/BoardMessages.ts"
import { after } from "../../../src/domain/BoardRow.ts"
import { worker, WORDS } from "../../../src/domain/StatusWords.ts"
import type { AgentInfo, BacklogInfo, CallInfo } from "../../../src/domain/Messages.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import { rowsOf } from "../../../src/board/BoardList.ts"
import * as BoardSections from "../../../src/board/BoardSections.ts"
import { type Facts, Shown, Told } from "../../../src/board/SubscriberRows.ts"
import { plateInfo } from "../../world/http/PlatesDouble.ts"
import { type Dice, dice } from "../../support/Dice.ts"
import { agentInfo, callInfo, conversationInfo, draft, factsOf, nothingWaits, T0 } from "../../world/rpc/World.ts"

const rune = (over: Partial<Rune>): Rune => ({ ...draft(), moves: [], ...over }) as Rune
const parts = (...runes: ReadonlyArray<Partial<Rune>>) => {
  const { agents, all, lists } = BoardSections.touched(runes.map(rune))
  return { all, agents: [...agents.keys()], lists: [...lists] }
}

describe("parts that a rune touches", () => {
  it("an agent's are the agent and those whom the fact moves", () => {
    const actors = ["inbox", "turn", "agent", "worker", "tools", "choice", "meter", "voice"]
    for (const actor of [...actors.map((machine) => `${machine}/a`), "tool/a/01call"])
      assert.deepStrictEqual(parts({ stream: "s", actor }), { all: false, agents: ["agent/s/a"], lists: [] }, actor)
    const two = parts(
      { stream: "s", actor: "turn/a", moves: ["inbox/a", "worker/b"] },
      { stream: "t", actor: "turn/a" }
    )
    assert.deepStrictEqual(two, { all: false, agents: ["agent/s/a", "agent/s/b", "agent/t/a"], lists: [] })
  })

  it("a session's, a channel's and a goal's are their lists", () => {
    const runes = ["plate/01plate", "channel/reviews", "seat/reviews/a", "plan/g1", "merge/g1"].map((actor) => ({
      actor
    }))
    assert.deepStrictEqual(parts(...runes), { all: false, agents: [], lists: ["plates", "channels", "goals"] })
  })

  it("in turns each agent has one, and all else one", () => {
    const agents = Array.from({ length: 25 }, (_, n) => agentInfo({ agent: `a${n}` }))
    const turns = Array.from({ length: 10 }, (_, n) =>
      BoardSections.turn({ known: agents, living: agents }, n + 30, 10)
    )
    assert.lengthOf(
      turns.filter(({ all, lists }) => !all && lists.has("others")),
      1
    )
    const read = turns.flatMap(({ agents }) => [...agents.keys()])
    assert.lengthOf(read, 25)
    assert.strictEqual(new Set(read).size, 25)
  })

  it("each turn has the agents that live and are not known", () => {
    const [known, other] = [agentInfo({ agent: "a" }), agentInfo({ agent: "b" })]
    for (let n = 0; n < 3; n++) {
      const { agents } = BoardSections.turn({ known: [known], living: [known, other] }, n, 3)
      assert.deepStrictEqual(
        [...agents.values()].map(({ agent }) => agent),
        n === 0 ? ["a", "b"] : ["b"]
      )
    }
  })

  it("all else touches all; but a turn that a conversation counts touches nothing", () => {
    for (const actor of ["daemon", "project", "provider/anthropic", "conversation/s", "home/worker/a", "unheard/of"])
      assert.isTrue(parts({ actor }).all, actor)
    const counts = { actor: "conversation/s", from: "active", to: "active" }
    assert.deepStrictEqual(parts(counts), { all: false, agents: [], lists: [] })
    assert.isTrue(parts({ ...counts, to: "paused" }).all)
    assert.isTrue(parts({ ...counts, from: "paused", to: "paused" }).all)
  })
})

const STATES = Object.keys(worker) as ReadonlyArray<keyof typeof worker>
const pick = <A>(dice: Dice, all: ReadonlyArray<A>): A => all[dice(all.length)]!
const HOMES = ["web-1", "shop-2"] as const

/** The daemon's facts, as they change. */
class World {
  readonly dice: Dice
  readonly agents = new Map<string, AgentInfo>()
  readonly backlog = new Map<string, BacklogInfo>()
  readonly calls = new Map<string, CallInfo>()
  plates: Facts["plates"] = []
  paused = false
  private count = 0

  constructor(seed: number) {
    this.dice = dice(seed)
  }

  get facts(): Facts {
    const agents = [...this.agents.values()]
    const ids = [...this.agents.keys()]
    return {
      ...nothingWaits,
      agents,
      backlog: ids.flatMap((id) => this.backlog.get(id) ?? []),
      calls: BoardSections.callsInOrder([...this.calls.values()], agents),
      plates: this.plates,
      conversations: HOMES.map((conversation) =>
        conversationInfo({ conversation, project: "shop", state: this.paused ? "paused" : "active" })
      ),
      all: false,
      today: new Map(),
      startedAt: T0
    }
  }

  /** An agent becomes another; answers the rune that says so. */
  private agent(): Partial<Rune> {
    const { dice } = this
    const conversation = pick(dice, HOMES)
    const agent = `a${dice(6)}`
    const id = `agent/${conversation}/${agent}`
    const of = { conversation, project: "shop", agent }
    const since = T0 + this.count
    if (dice(8) === 0) for (const all of [this.agents, this.backlog, this.calls]) all.delete(id)
    else {
      const state = pick(dice, STATES)
      const word = pick(dice, WORDS)
      this.agents.set(
        id,
        agentInfo({ ...of, state, word, since, detail: `step ${dice(3)}`, ...(dice(5) === 0 ? { failed: true } : {}) })
      )
      if (dice(3) === 0)
        this.backlog.set(id, { ...of, dropped: [], more: 0, held: dice(2), heldSince: since, questions: [] })
      if (dice(4) === 0)
        this.backlog.set(id, {
          ...of,
          dropped: [],
          more: 0,
          held: 0,
          heldSince: null,
          questions: [{ eventId: this.count, question: "Which?", since }]
        })
      if (dice(3) === 0) this.calls.set(id, callInfo({ ...of, callId: `01call${this.count}`, since }))
      else this.calls.delete(id)
    }
    return { stream: conversation, actor: `${pick(dice, ["turn", "inbox", "worker"])}/${agent}` }
  }

  step(): Partial<Rune> {
    this.count++
    const what = this.dice(10)
    if (what === 0) {
      const approval = this.dice(2) === 0 ? null : ("01approval" as never)
      const agent = pick(this.dice, [null, "shop/a1", "shop/a2"])
      this.plates = [plateInfo({ agent, approval, status: "AwaitingApproval", since: T0 + this.count })]
      return { actor: "plate/01plate" }
    }
    if (what === 1) {
      this.paused = !this.paused
      return { actor: "conversation/web-1", from: "active", to: "paused" }
    }
    return this.agent()
  }

  read({ agents, lists }: BoardSections.Parts): BoardSections.News {
    const { facts } = this
    return {
      agents: [...agents.values()].map((one) => factsOf(facts, one)),
      ...(lists.has("plates") ? { plates: facts.plates } : {})
    }
  }
}

/** A watcher who looks only now and then. */
class Watcher {
  private readonly told = new Told()
  rows: ReadonlyMap<string, BoardRow> = new Map()

  look(shown: Shown): void {
    for (const news of this.told.news(shown)) this.rows = after(this.rows, news)
  }

  get sorted(): ReadonlyArray<BoardRow> {
    return [...this.rows.values()].toSorted((a, b) => Number(a.id > b.id) - Number(a.id < b.id))
  }
}

const SEEDS = 60
const STEPS = 60

describe("a board that is read in parts", () => {
  it("is the whole one after any sequence of changes, for who looks often and who looks seldom", () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const world = new World(seed)
      const shown = new Shown()
      const [often, seldom] = [new Watcher(), new Watcher()]
      let facts = world.facts
      let pending = BoardSections.NOTHING
      for (let step = 0; step < STEPS; step++) {
        pending = BoardSections.join(pending, BoardSections.touched([rune(world.step())]))
        if (world.dice(3) === 0) continue
        facts = pending.all ? world.facts : BoardSections.withNews(facts, world.read(pending))
        pending = BoardSections.NOTHING
        shown.take(facts, T0 + step, step)
        often.look(shown)
        if (world.dice(4) === 0 || step === STEPS - 1) seldom.look(shown)
        const whole = new Map(rowsOf(world.facts, T0 + step).map((row) => [row.id, row]))
        const sorted = [...whole.values()].toSorted((a, b) => Number(a.id > b.id) - Number(a.id < b.id))
        assert.deepStrictEqual(often.sorted, sorted, `seed ${seed}, step ${step}`)
      }
      seldom.look(shown)
      assert.deepStrictEqual(seldom.sorted, often.sorted, `seed ${seed}`)
    }
  })

  it("makes only the rows anew whose facts were read, and tells only those that are not what they were", () => {
    const agents = Array.from({ length: 100 }, (_, n) => agentInfo({ agent: `a${n}` }))
    let facts: Facts = { ...nothingWaits, agents, all: false, today: new Map(), startedAt: T0 }
    const shown = new Shown()
    const told = new Told()
    shown.take(facts, T0, 1)
    const [first] = told.news(shown)
    const before = new Map(first!.rows.map((row) => [row.id, row]))
    const changed = agentInfo({ agent: "a7", detail: "another step" })
    const same = agentInfo({ agent: "a8" })
    const read = [changed, same].map((info) => factsOf({ agents: [info], backlog: [], calls: [] }, info))
    facts = BoardSections.withNews(facts, { agents: read })
    shown.take(facts, T0, 2)
    assert.deepStrictEqual(
      told.news(shown).map(({ rows }) => rows.map(({ says }) => says)),
      [["another step"]]
    )
    const kept = [...shown.rows].filter(([id, { row }]) => before.get(id) === row)
    assert.lengthOf(kept, 98)
    assert.deepStrictEqual(told.news(shown), [])
  })
})
