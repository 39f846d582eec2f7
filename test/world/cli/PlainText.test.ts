/** Tests of what counts as a text that is sent. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { randomBytes } from "node:crypto"
import { decoded, troubleIn } from "../../../src/cli/render/PlainText.ts"
import { makeWorld, serve } from "../rpc/World.ts"
import { agentd } from "./Child.ts"
import { spawn } from "node:child_process"
import { PROGRAM } from "../../support/Program.ts"

describe("a text", () => {
  it("may have tabs, ends of lines and a terminal's colours, and any letters", () => {
    for (const text of ["plain", "a\tb\r\nc\f", "\u001b[31mred\u001b[0m", "Büro 文字 👩‍👩‍👧", "a\bb"]) {
      assert.isUndefined(troubleIn(text))
      assert.strictEqual(decoded(Buffer.from(text)), text)
    }
    assert.strictEqual(decoded(Buffer.from("\ufeffwith a mark")), "with a mark")
  })
  it("has no other controls, and is UTF-8", () => {
    assert.match(troubleIn("a\u0000b")!.message, /0x00\) at position 1/)
    assert.match(troubleIn("\u007f")!.message, /0x7f/)
    assert.match((decoded(Buffer.from([0x61, 0xe9, 0x62])) as { message: string }).message, /not valid UTF-8/)
    for (let round = 0; round < 20; round++) assert.isObject(decoded(randomBytes(3_000)))
  })
})

const piped = (state: string, bytes: Uint8Array) =>
  Effect.promise(
    () =>
      new Promise<{ readonly code: number | null; readonly err: string }>((resolve) => {
        const child = spawn(process.execPath, [PROGRAM, "--state", state, "send", "builder"], {
          cwd: "/",
          stdio: ["pipe", "ignore", "pipe"]
        })
        let err = ""
        child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text))
        child.stdin.end(bytes)
        child.on("close", (code) => resolve({ code, err }))
      })
  )

it.live("3,000 random bytes are no message, nor is a control character; the way for a file is named", () =>
  Effect.gen(function* () {
    const world = makeWorld()
    const { state } = yield* serve(world)
    const random = yield* piped(state, randomBytes(3_000))
    assert.strictEqual(random.code, 2)
    assert.match(random.err, /This is not plain text: .*Nothing was sent\.\n.*--file PATH/)
    const control = yield* agentd(["--state", state, "send", "builder", "a\u0001b"])
    assert.strictEqual(control.code, 2)
    assert.match(control.err, /control character \(0x01\)/)
    assert.deepStrictEqual(world.commands, [])
    assert.strictEqual((yield* piped(state, Buffer.from("ünder"))).code, 0)
    assert.deepInclude(world.commands[0]![2], { text: "ünder" })
  })
)
