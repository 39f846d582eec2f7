/**
 * Chores: each has its share of the time; one that cannot go on rests, is told of, holds up nobody, and goes on by itself
 * when its cause is gone.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { DatabaseSync } from "node:sqlite"
import { sideFileOf } from "../../../src/core/event-log/SideFile.ts"
import { type BackgroundTask, Chores, FIRST_PAUSE, LONGEST_PAUSE } from "../../../src/core/event-log/BackgroundTask.ts"
import { LogStore } from "../../../src/core/event-log/LogStore.ts"
import { nodeSqlite } from "../../../src/core/event-log/Sqlite.ts"
import { tapped } from "../../simulation/storage/Tap.ts"
import { note, storeFile, withInlineLog } from "../../world/event-log/Disk.ts"

/** Does `steps`, one in each step. */
class Work implements BackgroundTask {
  readonly chore: string
  private steps: number
  failing = false
  done = 0
  constructor(chore: string, steps: number) {
    this.chore = chore
    this.steps = steps
  }
  get isDone(): boolean {
    return this.done >= this.steps
  }
  step(): void {
    if (this.failing) throw new Error("the disk is full")
    this.done += 1
  }
}

/** Never done. A step takes so long. */
const endless = (took: number, pass: (ms: number) => void) => {
  const chore = { chore: "endless", isDone: false, steps: 0, step: () => void (pass(took), (chore.steps += 1)) }
  return chore
}

describe("chores", () => {
  it("one that always has work does not starve another, in whatever order they stand", () => {
    for (const isFirst of [true, false]) {
      let now = 0
      const always = endless(7, (ms) => (now += ms))
      const other = new Work("other", 10)
      const chores = new Chores(isFirst ? [always, other] : [other, always], () => now)
      for (let steps = 0; steps < 20; steps++) chores.step()
      assert.isTrue(other.isDone)
    }
  })

  it("have turns one after another where the clock stands", () => {
    const all = [1, 2, 3].map(() => endless(0, () => {}))
    const chores = new Chores(all, () => 0)
    for (let steps = 0; steps < 30; steps++) chores.step()
    assert.deepStrictEqual(
      all.map(({ steps }) => steps),
      [10, 10, 10]
    )
  })

  it("have the same time, and not as many steps; one that had nothing to do is owed nothing", () => {
    let now = 0
    const [slow, quick] = [9, 1].map((took) => endless(took, (ms) => (now += ms))) as [
      ReturnType<typeof endless>,
      ReturnType<typeof endless>
    ]
    const chores = new Chores([slow, quick], () => now)
    quick.isDone = true
    for (let steps = 0; steps < 100; steps++) chores.step()
    assert.strictEqual(slow.steps, 100)
    quick.isDone = false
    for (let steps = 0; steps < 100; steps++) chores.step()
    assert.isAtLeast(slow.steps, 109)
    assert.isAtLeast(quick.steps, 85)
  })

  it("have half of the time, and a tenth beside appends", () => {
    let now = 0
    const chores = new Chores([endless(4, (ms) => (now += ms))], () => now)
    assert.strictEqual(chores.due(true), 0)
    chores.step()
    assert.strictEqual(chores.due(), 4)
    assert.strictEqual(chores.due(true), 36)
    now += 36
    assert.strictEqual(chores.due(true), 0)
  })
})

/** A store of so many runes, whose actors' file is empty. */
const storeOf = (runes: number) =>
  Effect.gen(function* () {
    const file = yield* storeFile
    const few = Array.from({ length: 200 }, (_, n) => note("a", n))
    yield* withInlineLog({ file }, (log) => Effect.repeat(log.append(few), { times: runes / 200 - 1 }))
    nodeSqlite.remove(sideFileOf(file))
    const store = yield* Effect.acquireRelease(
      Effect.sync(() => new LogStore({ file, home: "daemon", seals: [], guarded: [] })),
      (store) => Effect.sync(() => store.close())
    )
    return { file, store }
  })

const first = (file: string, sql: string): number => {
  const database = new DatabaseSync(file, { readOnly: true })
  const found = Object.values(database.prepare(sql).get() ?? {})[0]
  database.close()
  return Number(found)
}

describe("one segment after another", () => {
  it.effect("rows go, and the file of actors is filled, before all are written", () =>
    Effect.gen(function* () {
      const { file, store } = yield* storeOf(4_000)
      const seen: Array<{ rows: number; filed: number }> = []
      const seal = () =>
        store.seal({ upTo: (seen.length + 1) * 1_000, before: Number.MAX_SAFE_INTEGER, least: 1 }, (sealed) => {
          if ("failure" in sealed || sealed.made === undefined) throw new Error("nothing was sealed")
          store.carryOut({ _tag: "Leave", made: sealed.made })
          seen.push({
            rows: first(file, "SELECT count(*) FROM runes"),
            filed: first(sideFileOf(file), "SELECT event_id FROM filed")
          })
          if (seen.length < 3) seal()
        })
      seal()
      for (let steps = 0; seen.length < 3 && steps < 200; steps++) store.chore()
      assert.deepStrictEqual(
        seen.map(({ rows }) => rows),
        [4_000, 3_000, 2_000]
      )
      assert.isAtLeast(seen[0]!.filed, 500)
      assert.strictEqual(seen[2]!.filed, 4_000)
    })
  )
})

describe("a chore that cannot go on", () => {
  it("rests for longer and longer, up to an hour, while others go on; it is told three times", () => {
    let now = 0
    const [first, second] = [new Work("first", 2), new Work("second", 2)]
    const chores = new Chores([first, second], () => now)
    const told: Array<string> = []
    chores.onTrouble = (message) => told.push(message)
    first.failing = true
    for (let steps = 0; steps < 5; steps++) chores.step()
    assert.strictEqual(second.done, 2)
    assert.strictEqual(chores.due(), FIRST_PAUSE)
    const pauses: Array<number> = []
    for (let times = 0; times < 12; times++) {
      pauses.push(chores.due())
      now += chores.due()
      assert.strictEqual(chores.due(), 0)
      chores.step()
    }
    assert.deepStrictEqual(pauses.slice(0, 3), [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE])
    assert.strictEqual(pauses.at(-1), LONGEST_PAUSE)
    assert.strictEqual(told.length, 3)
    assert.strictEqual(told[0], "first cannot go on: the disk is full; it is tried again in 10 s")
    first.failing = false
    now += LONGEST_PAUSE
    chores.step()
    chores.step()
    assert.isTrue(first.isDone)
    assert.strictEqual(chores.due(), Number.POSITIVE_INFINITY)
    // what comes later finds no pause of before
    first.failing = true
    first.done = 0
    chores.step()
    assert.strictEqual(chores.due(), FIRST_PAUSE)
  })

  it.live("the file of actors: a disk that was full for a moment leaves it behind for no longer than a pause", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withInlineLog({ file }, (log) => log.append([note("a", 1), note("b", 2)]))
      nodeSqlite.remove(sideFileOf(file))
      let isFull = true
      let now = 0
      const full = () => {
        if (isFull) throw Object.assign(new Error("database or disk is full"), { errcode: 13 })
      }
      const sqlite = tapped(nodeSqlite, {
        statement: (sql, statement, _, of) =>
          of === sideFileOf(file) && sql.startsWith("SELECT id FROM threads")
            ? { get: (...values) => (full(), statement.get(...values)) }
            : {}
      })
      const store = new LogStore({ file, home: "daemon", seals: [], guarded: [] }, sqlite, () => now)
      const told: Array<string> = []
      store.onTrouble = (message) => told.push(message)
      const rest = () => {
        while (store.choresDue() === 0) store.chore()
      }
      rest()
      assert.strictEqual(store.choresDue(), FIRST_PAUSE)
      assert.match(told.join("\n"), /which runes an actor has cannot go on: database or disk is full/)
      isFull = false
      now += FIRST_PAUSE
      rest()
      assert.strictEqual(store.choresDue(), Number.POSITIVE_INFINITY)
      store.close()
      const actors = new DatabaseSync(sideFileOf(file), { readOnly: true })
      assert.strictEqual(actors.prepare("SELECT event_id FROM filed").get()?.["event_id"], 2)
      assert.strictEqual(actors.prepare("SELECT count(*) AS n FROM entries").get()?.["n"], 2)
      actors.close()
    })
  )
})
