/** Tests of the gate before every call: a payload that does not fit is refused by its field's name, whatever the procedure. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { createConnection } from "node:net"
import { Gate } from "../../../src/api/rpc/Procedure.ts"
import { Control } from "../../../src/api/rpc/Protocol.ts"
import { makeWorld, serve } from "./World.ts"

const caller = { by: "ada", config: null }

interface Exit {
  readonly _tag: "Exit"
  readonly exit: {
    readonly _tag: "Success" | "Failure"
    readonly cause?: ReadonlyArray<{
      readonly _tag: "Fail" | "Die"
      readonly error?: { readonly _tag: string; readonly message: string; readonly remedy: string }
      readonly defect?: unknown
    }>
  }
}

/** The daemon's answer to one request, as it comes over the socket. */
const answered = (socket: string, tag: string, payload: unknown): Effect.Effect<Exit["exit"]> =>
  Effect.callback((resume) => {
    const conn = createConnection(socket)
    let text = ""
    conn.on("data", (chunk) => {
      text += String(chunk)
      for (const line of text.split("\n").slice(0, -1)) {
        const said = JSON.parse(line) as Exit | { readonly _tag: "Chunk" }
        if (said._tag === "Exit") resume(Effect.succeed(said.exit))
      }
    })
    conn.write(`${JSON.stringify({ _tag: "Request", id: "1", tag, payload, headers: [] })}\n`)
    return Effect.sync(() => conn.destroy())
  })

/** How it was refused. */
const refused = Effect.fnUntraced(function* (socket: string, tag: string, payload: unknown) {
  const exit = yield* answered(socket, tag, payload)
  const [reason] = exit.cause ?? []
  assert.strictEqual(reason?._tag, "Fail", `${tag} ${JSON.stringify(payload)}: ${JSON.stringify(exit)}`)
  assert.strictEqual(reason?.error?._tag, "CommandRefused")
  return reason!.error!
})

const send = { name: "builder", text: "x", how: "queue", caller }

const wrong: ReadonlyArray<readonly [what: string, tag: string, payload: unknown, message: RegExp]> = [
  ["a field that is missing", "Send", { ...send, text: undefined }, /^text is missing\.$/],
  ["a number for a name", "Send", { ...send, name: 7 }, /^name cannot be 7\.$/],
  ["a word that is none of those", "Send", { ...send, how: "loudly" }, /^how cannot be "loudly"\.$/],
  ["a field within a field", "Send", { ...send, caller: { by: [], config: null } }, /^caller\.by cannot be \[\]\.$/],
  ["no payload", "Send", null, /^the payload cannot be null\.$/],
  ["a text for a number", "Log", { follow: false, caller, tail: "all" }, /^tail cannot be "all"\.$/],
  ["a number that is too large", "Log", { follow: false, caller, tail: 10_001 }, /must lie between 0 and 10000/],
  ["too many kinds", "Log", { follow: false, caller, kinds: Array(65).fill("k") }, /^kinds has 65 entries and may/],
  ["a name that none can have", "AssignSeat", { name: "r", caller, agent: "Bob" }, /"Bob" cannot be an agent's name/],
  ["a goal that says nothing", "GoalSubmit", { request: { goal: " ", plan: null }, caller }, /^goal is empty\.$/],
  [
    "a goal that is too long",
    "GoalSubmit",
    { request: { goal: "x".repeat(65_537), plan: null }, caller },
    /^goal has 65537 bytes and may have 65536/
  ],
  ["a long value", "Send", { ...send, how: "x".repeat(9_999) }, /^how cannot be "x{99}…\.$/]
]

describe("a payload that does not fit", () => {
  for (const [what, tag, payload, message] of wrong) {
    it.live(what, () =>
      Effect.gen(function* () {
        const world = makeWorld()
        const { socket } = yield* serve(world)
        const { message: said, remedy } = yield* refused(socket, tag, payload)
        assert.match(said, message)
        assert.notStrictEqual(remedy, "")
        assert.deepStrictEqual(world.commands, [])
      })
    )
  }

  it.live("is refused by every procedure that takes one", () =>
    Effect.gen(function* () {
      const { socket } = yield* serve(makeWorld())
      let takes = 0
      for (const [tag, rpc] of Control.requests) {
        assert.isTrue(rpc.middlewares.has(Gate), tag)
        if (!("bounds" in rpc.payloadSchema)) continue
        takes += 1
        yield* refused(socket, tag, null)
        yield* refused(socket, tag, 42)
        yield* refused(socket, tag, { name: {}, caller: 7, runId: [] })
      }
      assert.isAbove(takes, 35)
    })
  )

  it.live("is refused by every procedure that takes none, and nothing is no payload", () =>
    Effect.gen(function* () {
      const { socket } = yield* serve(makeWorld())
      const none = [...Control.requests].filter(([, { payloadSchema }]) => !("bounds" in payloadSchema))
      assert.isAbove(none.length, 10)
      for (const [tag] of none) {
        for (const payload of [7, "x", true, [], ["x"], { a: 1 }]) {
          const { message } = yield* refused(socket, tag, payload)
          assert.strictEqual(message, `${tag} takes no payload.`)
        }
      }
      for (const payload of [null, undefined, {}])
        assert.strictEqual((yield* answered(socket, "Agents", payload))._tag, "Success")
    })
  )
})
