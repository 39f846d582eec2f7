/** The codes of refusals, as programs get them of a real daemon: on the socket, over HTTP, and of the command line with `--json`. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Client from "../../../src/client/Client.ts"
import type { RefusalCode } from "../../../src/domain/RefusalCode.ts"
import * as Sandbox from "../../support/Sandbox.ts"

const caller = Client.caller("ada")
const to = (name: string, text = "hello") => ({ name, text, how: "queue", caller })
const builder = { name: "shop/builder", caller }

type Case = readonly [code: RefusalCode, verb: string, payload: object]

const CASES: ReadonlyArray<Case> = [
  ["not_found", "Send", to("shop/nobody")],
  ["invalid", "Send", to("shop/builder", " ")],
  ["too_large", "Send", to("shop/builder", "x".repeat(300_000))],
  ["conflict", "Interrupt", builder],
  ["unsupported", "Set", { ...builder, model: "m", mode: null, reset: false }]
]

type Called = (payload: object) => Effect.Effect<unknown, { readonly _tag: string; readonly code?: RefusalCode }>

describe("codes of refusals", () => {
  it.live("are the same on the socket, over HTTP, and in --json", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      const cli = (...args: ReadonlyArray<string>) =>
        Effect.map(box.cli("--json", ...args), ({ stderr }) => JSON.parse(stderr) as Record<string, unknown>)
      assert.deepInclude(yield* cli("ps"), { error: "DaemonUnreachable", code: "unavailable", exitCode: 3 })
      assert.deepInclude(yield* cli("nosuchverb"), { code: "invalid", exitCode: 2 })
      box.configure({ agents: { builder: { backend: { type: "command", shell: "cat" } } } })
      yield* box.up()
      yield* box.untilAgent("builder", "is idle", ({ word }) => word === "idle")
      const { address, token } = yield* Client.use({ state: box.state })((client) =>
        client.Grant({ right: "act", label: "codes", caller })
      )
      const refused = Effect.fnUntraced(function* ([code, verb, payload]: Case) {
        const error = yield* Client.use({ state: box.state })((client) =>
          (client as unknown as Record<string, Called>)[verb]!(payload)
        ).pipe(Effect.flip)
        assert.deepInclude({ ...error }, { _tag: "CommandRefused", code }, verb)
        const response = yield* Effect.promise(() =>
          fetch(`${address}/v1/${verb}`, {
            method: "POST",
            headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
            body: JSON.stringify(payload)
          })
        )
        assert.strictEqual(response.status, 409, code)
        assert.strictEqual((yield* Effect.promise(() => response.json())).code, code)
      })
      for (const one of CASES) yield* refused(one)
      const unknown = yield* Effect.promise(() =>
        fetch(`${address}/v1/Agents`).then(async (response) => [response.status, (await response.json()).code])
      )
      assert.deepStrictEqual(unknown, [401, "not_allowed"])

      // by the quick entry, and by the whole program
      assert.deepInclude(yield* cli("send", "nobody", "hello"), { code: "not_found", exitCode: 1 })
      assert.deepInclude(yield* cli("channel", "show", "nobody"), { code: "not_found", exitCode: 1 })
      assert.deepInclude(yield* cli("interrupt", "builder"), { code: "conflict", exitCode: 1 })
      yield* box.cli("project", "pause")
      yield* refused(["paused", "Send", to("shop/builder")])
      assert.deepInclude(yield* cli("send", "builder", "hello"), { code: "paused", exitCode: 1 })
      yield* box.cli("project", "resume")
      yield* box.cli("project", "close", "--yes")
      yield* box.until("closed", cli("send", "builder", "hello"), ({ code }) => code === "closed")
    })
  )
})
