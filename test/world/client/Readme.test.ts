/** Tests of agentd/client: its README's example with a real daemon, and what keeps a daemon from answering. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Client from "../../../src/client/Client.ts"
import * as Promises from "../../../src/client/Promises.ts"
import * as ReadmeExample from "../../support/ReadmeExample.ts"
import * as Sandbox from "../../support/Sandbox.ts"
import { said, worked } from "./example.ts"

describe("the README of client", () => {
  it("opens with the example that is run here", () => {
    assert.strictEqual(ReadmeExample.shown("client"), ReadmeExample.run("client"))
  })

  it.live("says what the example answers", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({ agents: { builder: { backend: { type: "command", shell: "cat", readyAfter: "10ms" } } } })
      yield* box.up()
      const readme = ReadmeExample.readme("client")
      const done = Option.getOrThrow(yield* worked(box.state))
      assert.include(readme, `\`worked\` answers \`${done}\``)
      for (const line of yield* Effect.promise(() => said(box.state))) assert.include(readme, `\`${line}\``)
      // what it did is in the log under its name
      const [received] = yield* box.runes("inbox.received")
      assert.include(JSON.stringify(received?.payload), '"from":"dashboard"')
    })
  )
})

/** A socket at which a daemon of another time refuses whoever greets it. */
const refusing = Effect.acquireRelease(
  Effect.callback<{ readonly folder: string; readonly close: () => void }>((resume) => {
    const folder = mkdtempSync(join(tmpdir(), "agentd-client-"))
    const server = createServer((connection) => {
      connection.once("data", (data) => {
        const { id } = JSON.parse(data.toString().split("\n")[0]!)
        const error = { _tag: "CommandRefused", message: "speaks protocol 9", remedy: "agentd restart" }
        const exit = { _tag: "Failure", cause: [{ _tag: "Fail", error }] }
        connection.write(`${JSON.stringify({ _tag: "Exit", requestId: id, exit })}\n`)
      })
    })
    const close = () => {
      server.close()
      rmSync(folder, { recursive: true, force: true })
    }
    server.listen(join(folder, "control.sock"), () => resume(Effect.succeed({ folder, close })))
  }),
  ({ close }) => Effect.sync(close)
)

describe("a daemon that cannot be asked", () => {
  it.live("is named: there is none, or it speaks another protocol and is asked nothing", () =>
    Effect.gen(function* () {
      const nobody = yield* Effect.flip(Client.use({ state: "/nowhere" })((client) => client.Agents()))
      assert.strictEqual(nobody._tag, "DaemonUnreachable")
      const { folder } = yield* refusing
      const other = yield* Effect.flip(Client.use({ state: folder })((client) => client.Agents()))
      assert.deepInclude(other, { reason: "protocol", message: "speaks protocol 9", remedy: "agentd restart" })
      const failed = yield* Effect.promise(() =>
        Promises.connect({ state: folder })
          .call("Agents")
          .catch((error: unknown) => error)
      )
      assert.instanceOf(failed, Promises.DaemonUnreachable)
      assert.deepInclude(failed, { reason: "protocol", message: "speaks protocol 9", remedy: "agentd restart" })
      const streamed = yield* Effect.promise(async () => {
        try {
          for await (const _ of Promises.connect({ state: folder }).stream("Log", { follow: true })) return "a rune"
          return "an end"
        } catch (error) {
          return error
        }
      })
      assert.instanceOf(streamed, Promises.DaemonUnreachable)
      // both clients say the same of a daemon that is not there
      const absent = yield* Effect.promise(() =>
        Promises.connect({ state: "/nowhere" })
          .call("Agents")
          .catch((error: unknown) => error)
      )
      const { message, reason, remedy } = nobody as Client.DaemonUnreachable
      assert.deepInclude(absent, { _tag: "DaemonUnreachable", message, reason, remedy })
    })
  )
})
