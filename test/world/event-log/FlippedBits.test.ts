/** Single flipped bits in a store: each is named by `verify`, or lies where nothing is stored. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Random, Stream } from "effect"
import { TestClock } from "effect/testing"
import { readdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import * as SqlitePages from "../../support/SqlitePages.ts"
import { note, withInlineLog } from "./Disk.ts"
import { copyOf, store, STREAMS, verified } from "./Flips.ts"
import { seeded } from "./Seed.ts"
import { sample } from "../../support/Long.ts"

/** All that the file says, to SQLite. */
const saidBy = (file: string): string => {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    const tables = database.prepare("SELECT * FROM sqlite_master ORDER BY name").all()
    const named = tables.filter(({ type }) => type === "table").map(({ name }) => String(name))
    return JSON.stringify([tables, ...named.map((name) => database.prepare(`SELECT * FROM "${name}"`).all())])
  } finally {
    database.close()
  }
}

describe("a flipped bit", () => {
  it.effect("in the store's file is named, or changes nothing that is stored", () =>
    seeded(
      Effect.gen(function* () {
        const original = yield* store
        assert.deepStrictEqual((yield* verified(original)).problems, [])
        const uses = SqlitePages.usesOf(original)
        const said = saidBy(original)
        const { file, flip, size } = yield* copyOf(original, "runes.db")
        const unseen: Array<string> = []
        const counts = { named: 0, unused: 0, ignored: 0 }
        for (let n = 0; n < sample(1_000, 40); n++) {
          // every eighth one in the head
          const at = yield* Random.nextIntBetween(0, n % 8 === 7 ? 99 : size - 1)
          const where = yield* flip(at)
          const outcome = yield* Effect.exit(verified(file))
          const use = uses(at)
          if (Exit.isFailure(outcome) || outcome.value.problems.length > 0) counts.named += 1
          else if (use !== "stored" && saidBy(file) === said) counts[use] += 1
          else unseen.push(where)
        }
        assert.deepStrictEqual(unseen, [])
        assert.isAbove(counts.named, counts.unused)
      })
    )
  )

  it.effect("in a segment's file is named", () =>
    seeded(
      Effect.gen(function* () {
        const original = yield* store
        const [name] = readdirSync(join(dirname(original), "segments"))
        const { file, flip, size } = yield* copyOf(original, join("segments", name!))
        for (let n = 0; n < sample(300, 5); n++) {
          const where = yield* flip(yield* Random.nextIntBetween(0, size - 1))
          const { problems } = yield* verified(file)
          assert.isAbove(problems.length, 0, where)
        }
      })
    )
  )

  it.effect("in runes.db.index is named, or changes nothing; the log goes on as with a good file", () =>
    seeded(
      Effect.gen(function* () {
        const original = yield* store
        const { file, flip, size } = yield* copyOf(original, "runes.db.index")
        const uses = SqlitePages.usesOf(`${original}.index`)
        const stored = Array.from({ length: size }, (_, at) => at).filter((at) => uses(at) === "stored")
        let named = 0
        for (let n = 0; n < sample(800, 12); n++) {
          const where = yield* flip(stored[yield* Random.nextIntBetween(0, stored.length - 1)]!)
          if ((yield* verified(file)).problems.length > 0) named += 1
          yield* withInlineLog({ file }, (log) =>
            Effect.gen(function* () {
              yield* log.append(STREAMS.map((stream, n) => note(stream, n)))
              yield* log.verify
              yield* TestClock.adjust("10 seconds")
              const mine = yield* Stream.runCollect(log.read({ actor: "inbox/builder" }))
              assert.strictEqual(mine.filter(({ eventId }) => eventId > 300).length, 603, where)
            })
          )
          const { problems } = yield* verified(file)
          assert.deepStrictEqual(
            problems.filter(({ eventId }) => eventId > 0),
            [],
            where
          )
        }
        assert.isAbove(named, 0)
      })
    )
  )
})
