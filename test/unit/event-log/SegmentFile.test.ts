/** Segments' files on a disk that takes less than it is given: what leaves the store must be in them. */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import fs from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { RuneRow } from "../../../src/core/event-log/RuneRow.ts"
import { SegmentFile, SegmentWriter } from "../../../src/core/event-log/SegmentFile.ts"

const { writeSync } = fs

/** The disk writes so from now on. */
const disk = (write: (handle: number, bytes: Uint8Array, offset: number) => number) => {
  fs.writeSync = ((handle: number, bytes: Uint8Array, offset?: number | null) =>
    write(handle, bytes, offset ?? 0)) as typeof writeSync
  syncBuiltinESMExports()
}

afterEach(() => {
  fs.writeSync = writeSync
  syncBuiltinESMExports()
})

const row = (eventId: number): RuneRow => ({
  event_id: eventId,
  format: 3,
  seq: eventId,
  prev: eventId - 1,
  stream: "shop",
  at: eventId,
  kind: "x.happened",
  actor: "a",
  from_state: null,
  to_state: null,
  trigger_name: null,
  cause: null,
  cause_stream: null,
  cause_seq: null,
  moves: null,
  visibility: "public",
  payload: JSON.stringify({ text: Math.sin(eventId).toString(36).repeat(5) }),
  payload_hash: "p",
  hash: "h"
})

const rows = Array.from({ length: 600 }, (_, index) => row(index + 1))

const folder = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(join(tmpdir(), "agentd-segment-"))),
  (made) => Effect.sync(() => fs.rmSync(made, { recursive: true }))
)

describe("a segment's file", () => {
  it.effect("is whole though the system takes a part of each write", () =>
    Effect.gen(function* () {
      const at = join(yield* folder, "segments")
      disk((handle, bytes, offset) => writeSync(handle, bytes, offset, Math.min(1000, bytes.length - offset)))
      const writer = new SegmentWriter(at)
      writer.add(rows)
      const made = writer.finish([])
      const file = new SegmentFile(join(at, made.file))
      assert.strictEqual(file.sha256, made.sha256)
      assert.deepStrictEqual(Array.from({ length: file.blocks }, (_, block) => file.rows(block)).flat(), rows)
    })
  )

  it.effect("that is not as it was written comes to no name: its runes stay in the store", () =>
    Effect.gen(function* () {
      const at = join(yield* folder, "segments")
      disk((handle, bytes, offset) => {
        const spoiled = Uint8Array.from(bytes)
        spoiled[offset] = spoiled[offset]! ^ 1
        return writeSync(handle, spoiled, offset)
      })
      const writer = new SegmentWriter(at)
      writer.add(rows)
      assert.throws(() => writer.finish([]), /is not as it was written/)
      writer.abandon()
      assert.deepStrictEqual(fs.readdirSync(at), [])
    })
  )
})
