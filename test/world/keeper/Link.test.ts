/** KeeperLink: what a keeper that has gone mad may cost the daemon. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import * as net from "node:net"
import { join } from "node:path"
import { connect } from "../../../src/runs/keeper/KeeperLink.ts"
import { folder } from "../rpc/World.ts"

/** The answer to an order after a keeper that sends a chunk so many times has lost its connection. */
const said = (chunk: Buffer, times: number) =>
  Effect.gen(function* () {
    const file = join(yield* folder, "keeper.sock")
    const server = net.createServer((daemon) => {
      daemon.on("error", () => {})
      const write = (left: number): void => void (left > 0 && daemon.write(chunk, () => write(left - 1)))
      write(times)
    })
    yield* Effect.acquireRelease(
      Effect.callback<void>((resume) => void server.listen(file, () => resume(Effect.void))),
      () => Effect.sync(() => void server.close())
    )
    const link = yield* connect(file, () => {})
    yield* Deferred.await(link.gone)
    return yield* link.ask({ op: "retire" })
  })

describe("KeeperLink", () => {
  it.live("a line that never ends, ends the connection", () =>
    Effect.gen(function* () {
      const { error } = yield* said(Buffer.alloc(1024 * 1024, "x"), 200)
      assert.strictEqual(error, "gone")
    })
  )

  it.live("a line that is not JSON ends the connection", () =>
    Effect.gen(function* () {
      const { error } = yield* said(Buffer.from("rubbish\n"), 1)
      assert.strictEqual(error, "gone")
    })
  )
})
