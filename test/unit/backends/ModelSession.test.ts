import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { callsIn, LOST, repair, unanswered } from "../../../src/model-agent/ModelHistory.ts"
import * as ModelSession from "../../../src/model-agent/ModelSession.ts"
import { Message } from "../../../src/model-agent/Provider.ts"
import { folder, layer as files } from "../../world/backends/ModelStand.ts"

const user = (text: string): Message => ({ role: "user", text })
const said = (text: string): Message => ({ role: "assistant", parts: [{ type: "text", text }] })

const histories = { history: Schema.Array(Message).check(Schema.isMaxLength(10)) }

describe("repair", () => {
  it.prop("every call is followed by its one result, and no result is without its call", histories, ({ history }) => {
    const sound = repair(history)
    for (const [at, message] of sound.entries()) {
      const results = message.role === "tool" ? message.results.map(({ callId }) => callId) : []
      assert.deepStrictEqual(
        results,
        callsIn(sound[at - 1]).map(({ id }) => id)
      )
    }
    assert.isFalse(callsIn(sound.at(-1)).length > 0)
    assert.isFalse(unanswered(sound))
  })
  it("a result that is there is kept, one that is lost is unknown, one too many is left out", () => {
    const asked: Message = {
      role: "assistant",
      parts: ["a", "b"].map((id) => ({ type: "call", id, name: "echo", input: {} }))
    }
    const results = ["c", "b"].map((callId) => ({ callId, output: `from ${callId}`, error: false }))
    const [, , told] = repair([user("x"), asked, { role: "tool", results }, said("y")])
    assert.deepStrictEqual(told, {
      role: "tool",
      results: [
        { callId: "a", output: LOST, error: true },
        { callId: "b", output: "from b", error: false }
      ]
    })
  })
  it.prop("what is sound is left as it is", histories, ({ history }) => {
    const sound = repair(history)
    assert.deepStrictEqual(repair(sound), sound)
  })
})

layer(files, { excludeTestServices: true })("ModelSession", (it) => {
  const open = (folder: string, runId: string, sessionId?: string, fork = false) =>
    ModelSession.open(folder, { runId, resume: sessionId === undefined ? undefined : { sessionId, fork } })

  it.effect("goes on where the last run was, without what was cut and without a line that was never finished", () =>
    Effect.gen(function* () {
      const here = yield* folder
      const { session } = yield* open(here, "one")
      for (const message of [user("a"), said("b"), user("c"), said("d")]) yield* session.append(message)
      yield* session.cut(2)
      yield* session.append(user("e"))
      yield* session.append(said("f"))
      fs.appendFileSync(path.join(here, "one.jsonl"), '{"message":{"role":"user","te')
      const again = yield* open(here, "two", "one")
      assert.deepStrictEqual(again.session.history(), [user("a"), said("b"), user("e"), said("f")])
      assert.deepStrictEqual(again.notices, [])
      yield* again.session.append(user("g"))
      yield* again.session.append(said("h"))
      assert.strictEqual((yield* open(here, "three", "one")).session.history().length, 6)
    })
  )

  it.effect("a damaged line is left out, and told", () =>
    Effect.gen(function* () {
      const here = yield* folder
      const line = (message: Message) => `${JSON.stringify({ message })}\n`
      fs.writeFileSync(path.join(here, "one.jsonl"), `${line(user("a"))}\u0000\u0000\n${line(said("b"))}`)
      const { notices, session } = yield* open(here, "two", "one")
      assert.deepStrictEqual(session.history(), [user("a"), said("b")])
      assert.include(notices[0], "1 damaged line")
    })
  )

  it.effect(
    "one that is not there, was closed, or names a path, is not gone on with: a new one begins, and that is told",
    () =>
      Effect.gen(function* () {
        const here = yield* folder
        const { session } = yield* open(here, "closed")
        yield* session.append(user("a"))
        yield* session.append(said("b"))
        fs.appendFileSync(path.join(here, "closed.jsonl"), `${JSON.stringify({ closed: "has outgrown its model" })}\n`)
        fs.writeFileSync(path.join(here, "..", `${path.basename(here)}-out.jsonl`), "")
        for (const id of ["closed", "none", `../${path.basename(here)}-out`]) {
          const next = yield* open(here, `after-${path.basename(id)}`, id)
          assert.strictEqual(next.session.id, `after-${path.basename(id)}`)
          assert.deepStrictEqual(next.session.history(), [])
          assert.strictEqual(next.notices.length, 1)
        }
        fs.rmSync(path.join(here, "..", `${path.basename(here)}-out.jsonl`))
      })
  )

  it.effect("a fork is a copy: what is added to one is not in the other", () =>
    Effect.gen(function* () {
      const here = yield* folder
      const { session } = yield* open(here, "one")
      for (const message of [user("a"), said("b")]) yield* session.append(message)
      const copy = yield* open(here, "two", "one", true)
      assert.strictEqual(copy.session.id, "two")
      for (const message of [user("c"), said("d")]) yield* copy.session.append(message)
      assert.strictEqual((yield* open(here, "three", "one")).session.history().length, 2)
      assert.strictEqual((yield* open(here, "four", "two")).session.history().length, 4)
    })
  )

  it.effect("it takes no more than a model's context holds", () =>
    Effect.gen(function* () {
      const { session } = yield* ModelSession.open(undefined, { runId: "one", resume: undefined })
      const large = "x".repeat(20 * 1024 * 1024)
      yield* session.append(user(large))
      const full = yield* Effect.flip(session.append(said(large)))
      assert.strictEqual(full.kind, "overflow")
      assert.strictEqual(session.history().length, 1)
    })
  )

  it.effect("what nobody went on with for a month is gone when the next one begins", () =>
    Effect.gen(function* () {
      const here = yield* folder
      yield* open(here, "old")
      yield* open(here, "new")
      const month = Date.now() / 1000 - 31 * 86_400
      fs.utimesSync(path.join(here, "old.jsonl"), month, month)
      yield* open(here, "next")
      assert.deepStrictEqual(fs.readdirSync(here).toSorted(), ["new.jsonl", "next.jsonl"])
    })
  )

  it.effect("a folder that cannot be made is an error that says what to do", () =>
    Effect.gen(function* () {
      const here = yield* folder
      fs.writeFileSync(path.join(here, "file"), "")
      const error = yield* Effect.flip(open(path.join(here, "file", "sessions"), "one"))
      assert.strictEqual(error._tag, "BackendError")
      assert.include(error.remedy, "write")
    })
  )
})
