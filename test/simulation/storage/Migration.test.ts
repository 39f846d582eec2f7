/**
 * A store of an older schema is brought up to date on a disk that tears and forgets: the power
 * goes at each of its operations, and the next start ends with the same store.
 */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { readFileSync } from "node:fs"
import { rules } from "../../../src/app/DaemonLog.ts"
import { none } from "../../../src/core/event-log/InvariantGuard.ts"
import { LogStore } from "../../../src/core/event-log/LogStore.ts"
import * as Migrations from "../../../src/core/event-log/Migrations.ts"
import { type Database, openStore } from "../../../src/core/event-log/Sqlite.ts"
import * as SqlReader from "../../../src/core/event-log/SqlReader.ts"
import { verify, walkHere } from "../../../src/core/event-log/Verify.ts"
import { PATIENCE } from "../../support/Patience.ts"
import * as Recording from "../../support/Recording.ts"
import * as Scratch from "../../support/Scratch.ts"
import { Chance } from "../Chance.ts"
import { TornDisk } from "./TornDisk.ts"
import { WasmSqlite } from "./WasmSqlite.ts"
import { sample } from "../../support/Long.ts"

const FILE = "/state/runes.db"
/** Each so many operations the power goes. */
const EVERY = sample(1, 7)

let wasm: WasmSqlite
let old: Uint8Array
beforeAll(async () => {
  wasm = await WasmSqlite.load()
  const recording = Recording.open("sends")
  old = readFileSync(Recording.restore(recording, recording.runes.at(-1)!.eventId, Scratch.make("agentd-migration-")))
})

const withStore = <A, E>(readOnly: boolean, use: (database: Database) => Effect.Effect<A, E>): Promise<A> =>
  Effect.runPromise(
    Effect.acquireUseRelease(
      Effect.sync(() => openStore({ file: FILE, readOnly }, wasm)),
      use,
      (database) => Effect.sync(() => database.close())
    )
  )

/** As a start does. */
const start = async (): Promise<void> => {
  await withStore(false, (database) => Effect.sync(() => Migrations.migrate(database, FILE)))
  new LogStore({ file: FILE, home: "daemon", seals: [], guarded: [] }, wasm).close()
}

const contents = (): unknown => {
  const database = wasm.open(FILE, { readOnly: true })
  try {
    return {
      runes: database.prepare("SELECT * FROM runes ORDER BY event_id").all(),
      head: database.prepare("SELECT event_id FROM head").all(),
      triggers: database.prepare("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name").all(),
      versions: database.prepare("SELECT migration_id FROM schema_versions ORDER BY 1").all()
    }
  } finally {
    database.close()
  }
}

/** A disk with the old store; the operations that its start makes until it is cut. */
const after = async (seed: number, cut: number): Promise<number> => {
  const disk = new TornDisk(new Chance(seed, "migration"))
  disk.putBack(FILE, old, [])
  wasm.mount(disk)
  disk.cutAfter(cut, false)
  const begun = disk.operations
  await start().catch((error: unknown) => {
    if (!disk.isDead) throw error
  })
  const made = disk.operations - begun
  wasm.die()
  disk.powerCut()
  return made
}

describe("a store of schema 1", () => {
  it(
    "is brought up to date whenever the power goes",
    async () => {
      const operations = await after(0, Number.POSITIVE_INFINITY)
      await start()
      const expected = contents()
      wasm.die()
      assert.isAbove(operations, 50)
      for (let cut = 1; cut <= operations; cut += EVERY) {
        await after(cut, cut)
        await start()
        assert.deepStrictEqual(contents(), expected, `cut in operation ${cut} of ${operations}`)
        const verdict = await withStore(true, (database) => {
          const reader = SqlReader.make(database, { file: FILE, giveUpAfter: Duration.seconds(1) })
          return verify({
            reader,
            rules: { ...rules, guard: none() },
            archives: { folder: undefined, streams: new Set(), kept: new Map() },
            walk: walkHere(reader)
          })
        })
        assert.deepStrictEqual(verdict.problems, [], `cut in operation ${cut} of ${operations}`)
        wasm.die()
      }
    },
    5 * PATIENCE
  )
})
