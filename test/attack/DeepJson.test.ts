/** JSON of a hundred thousand levels, at each door: refused as the sender's mistake, with a reason; the daemon goes on. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { request } from "node:http"
import { connect } from "node:net"
import { join } from "node:path"
import { call } from "../../src/api/rpc/ControlClient.ts"
import { isTooDeep, MAX_NESTING } from "../../src/plates/JsonDepth.ts"
import * as Sandbox from "../support/Sandbox.ts"

const LEVELS = 100_000
const deep = `${"[".repeat(LEVELS)}${"]".repeat(LEVELS)}`
const hook = (value: string) =>
  `{"session_id":"s1","hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"c1","event_type":"tool_start","cwd":"/","tool_input":${value}}`

const post = (socketPath: string, path: string, body: string) =>
  Effect.callback<{ readonly status: number; readonly text: string }>((resume) => {
    const outgoing = request({ socketPath, path, method: "POST", agent: false }, (response) => {
      let text = ""
      response.setEncoding("utf8").on("data", (part: string) => (text += part))
      response.on("end", () => resume(Effect.succeed({ status: response.statusCode ?? 0, text })))
    })
    outgoing.end(body)
  })

describe("JSON that is a hundred thousand levels deep", () => {
  it.live("is a 400 with a reason at every route that takes a body", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({ agents: {} })
      yield* box.up()
      const socket = join(box.state, "http.sock")
      for (const path of [
        "/hooks/claude",
        "/hooks/claude/permission",
        "/events",
        "/plates/register",
        "/plates/stopped"
      ])
        for (const body of [deep, hook(deep), `{"a":`.repeat(LEVELS) + "1" + "}".repeat(LEVELS)]) {
          const { status, text } = yield* post(socket, path, body)
          assert.strictEqual(status, 400, path)
          assert.deepStrictEqual(JSON.parse(text), {
            error: `The body has more than ${MAX_NESTING} levels of nesting.`,
            code: "invalid",
            field: "body",
            remedy: "Leave out the deep part."
          })
        }
      const brackets = hook(JSON.stringify({ command: "[".repeat(50_000) }))
      assert.strictEqual((yield* post(socket, "/hooks/claude", brackets)).status, 202)
    })
  )

  it.live("in the spool is moved aside, and holds up nothing that lies there with it", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({ agents: {} })
      const spool = join(box.state, "hooks", "spool")
      mkdirSync(spool, { recursive: true, mode: 0o700 })
      writeFileSync(join(spool, "1.hook"), `as=hook\n\n${hook(deep)}`)
      writeFileSync(
        join(spool, "2.hook"),
        `as=hook\n\n{"session_id":"after","hook_event_name":"SessionStart","source":"startup","cwd":"/"}`
      )
      yield* box.up()
      const rows = Effect.orElseSucceed(
        call(join(box.state, "control.sock"), (client) => client.Plates({ all: true })),
        () => []
      )
      yield* box.until("the other is taken in", rows, (all) => all.some(({ sessionId }) => sessionId === "after"))
      assert.deepStrictEqual(readdirSync(join(box.state, "hooks", "refused")), ["1.hook"])
    })
  )

  it.live("at the control socket costs its own connection at most", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({ agents: {} })
      yield* box.up()
      const path = join(box.state, "control.sock")
      for (const payload of [deep, `{"name":${deep}}`]) {
        const answer = yield* Effect.callback<string>((resume) => {
          let text = ""
          const socket = connect(path, () =>
            socket.write(`{"_tag":"Request","id":"1","tag":"Agent","payload":${payload},"headers":[]}\n`)
          )
          socket.setEncoding("utf8").on("data", (part: string) => {
            text += part
            if (text.includes("\n")) socket.destroy()
          })
          socket.on("error", () => {})
          socket.on("close", () => resume(Effect.succeed(text)))
        })
        assert.isBelow(answer.length, 10_000)
        if (payload !== deep) assert.include(answer, '"CommandRefused"')
        assert.strictEqual((yield* box.cli("ps")).code, 0)
      }
    })
  )

  it("is told from what is merely long, or has brackets in its texts", () => {
    const nested = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`
    assert.isFalse(isTooDeep(nested(MAX_NESTING)))
    assert.isTrue(isTooDeep(nested(MAX_NESTING + 1)))
    assert.isFalse(isTooDeep(JSON.stringify(["[".repeat(1000), '\\"[[', "\\"])))
    assert.isFalse(isTooDeep(`[${"[],".repeat(1000)}1]`))
  })
})
