/** Chores that cannot go on: they rest, are told of, hold up nobody, and go on by themselves when their cause is gone. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { DatabaseSync } from "node:sqlite"
import { actorFileOf } from "../../src/event-log/ActorIndex.ts"
import { type Chore, Chores, FIRST_PAUSE, LONGEST_PAUSE } from "../../src/event-log/Chore.ts"
import { LogStore } from "../../src/event-log/LogStore.ts"
import { nodeSqlite } from "../../src/event-log/Sqlite.ts"
import { tapped } from "../simulation/storage/Tap.ts"
import { note, storeFile, withInlineLog } from "./Disk.ts"

/** Does `steps`, one in each step. */
class Work implements Chore {
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
    assert.strictEqual(chores.due, FIRST_PAUSE)
    const pauses: Array<number> = []
    for (let times = 0; times < 12; times++) {
      pauses.push(chores.due)
      now += chores.due
      assert.strictEqual(chores.due, 0)
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
    assert.strictEqual(chores.due, Number.POSITIVE_INFINITY)
    // what comes later finds no pause of before
    first.failing = true
    first.done = 0
    chores.step()
    assert.strictEqual(chores.due, FIRST_PAUSE)
  })

  it.live("the file of actors: a disk that was full for a moment leaves it behind for no longer than a pause", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withInlineLog({ file }, (log) => log.append([note("a", 1), note("b", 2)]))
      nodeSqlite.remove(actorFileOf(file))
      let isFull = true
      let now = 0
      const full = () => {
        if (isFull) throw Object.assign(new Error("database or disk is full"), { errcode: 13 })
      }
      const sqlite = tapped(nodeSqlite, {
        statement: (sql, statement, _, of) =>
          of === actorFileOf(file) && sql.startsWith("SELECT id FROM threads")
            ? { get: (...values) => (full(), statement.get(...values)) }
            : {}
      })
      const store = new LogStore({ file, seals: [], guarded: [] }, sqlite, () => now)
      const told: Array<string> = []
      store.onTrouble = (message) => told.push(message)
      const rest = () => {
        while (store.choresDue === 0) store.chore()
      }
      rest()
      assert.strictEqual(store.choresDue, FIRST_PAUSE)
      assert.match(told.join("\n"), /which runes an actor has cannot go on: database or disk is full/)
      isFull = false
      now += FIRST_PAUSE
      rest()
      assert.strictEqual(store.choresDue, Number.POSITIVE_INFINITY)
      store.close()
      const actors = new DatabaseSync(actorFileOf(file), { readOnly: true })
      assert.strictEqual(actors.prepare("SELECT event_id FROM place").get()?.["event_id"], 2)
      assert.strictEqual(actors.prepare("SELECT count(*) AS n FROM entries").get()?.["n"], 2)
      actors.close()
    })
  )
})
