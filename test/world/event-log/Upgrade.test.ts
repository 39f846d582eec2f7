/** Stores of older and newer agentds: forward with a copy taken before, never back. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import * as Migrations from "../../../src/core/event-log/Migrations.ts"
import * as StoreCopy from "../../../src/core/event-log/StoreCopy.ts"
import { agentd } from "../cli/Child.ts"
import * as Recording from "../../support/Recording.ts"
import { folder, note, withInlineLog, withLog } from "./Disk.ts"

/** A store that an older agentd has written. */
const older = Effect.gen(function* () {
  const base = yield* folder
  const recording = Recording.open("sends")
  const recorded = Recording.restore(recording, recording.runes.at(-1)!.eventId, yield* folder)
  const file = join(base, "runes.db")
  copyFileSync(recorded, file)
  const { head, schema } = yield* StoreCopy.facts(file)
  assert.isBelow(schema, Migrations.SCHEMA_VERSION)
  return { base, file, head, schema, copy: `${file}.schema-${schema}` }
})

describe("a store of an older schema", () => {
  it.live("is brought up to date once, and lies beside it as it was", () =>
    Effect.gen(function* () {
      const { copy, file, head, schema } = yield* older
      yield* withLog({ file }, (log) => log.append([note("new", 1)]))
      assert.deepInclude(yield* StoreCopy.facts(copy), { schema, head })
      assert.deepInclude(yield* StoreCopy.facts(file), { schema: Migrations.SCHEMA_VERSION, head: head + 1 })
      assert.strictEqual(statSync(copy).mode & 0o777, 0o600)
      const before = readFileSync(copy)
      yield* withLog({ file }, (log) => log.append([note("new", 2)]))
      assert.deepStrictEqual(readFileSync(copy), before)
      assert.isFalse(existsSync(`${copy}.part`))
    })
  )

  it.live("stays as it is where the copy cannot be made", () =>
    Effect.gen(function* () {
      const { copy, file, schema } = yield* older
      mkdirSync(join(copy, "in the way"), { recursive: true })
      const error = yield* Effect.flip(withInlineLog({ file, giveUpAfter: 0 }, (log) => log.head))
      assert.strictEqual(error._tag, "StorageError")
      assert.include(error.message, copy)
      assert.strictEqual((yield* StoreCopy.facts(file)).schema, schema)
    })
  )
})

describe("a store of a newer schema", () => {
  it.live("is refused by all that read or write, with its number, and nothing in its folder changes", () =>
    Effect.gen(function* () {
      const state = join(yield* folder, "s")
      const file = join(state, "runes.db")
      yield* withInlineLog({ file }, (log) => log.append([note("a", 1)]))
      const database = new DatabaseSync(file)
      database.exec("INSERT INTO schema_versions (migration_id, name) VALUES (99, 'tomorrow')")
      database.close()
      const before = readFileSync(file)
      for (const verb of ["up", "verify"]) {
        const { code, err } = yield* agentd(["--state", state, verb])
        assert.strictEqual(code, 74)
        assert.match(err, /has schema 99, written by a newer agentd; this one knows up to \d/)
        assert.match(err, /Install the newer agentd again/)
      }
      assert.deepStrictEqual(readFileSync(file), before)
      assert.deepStrictEqual(
        readdirSync(state).filter((name) => name.includes("schema")),
        []
      )
    })
  )
})
