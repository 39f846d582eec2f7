/** Tests of the records of an outside program: what they become, and what is told of those that do not fit. */
import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { RunEvent } from "../../../src/runs/Backend.ts"
import * as ExecRecord from "../../../src/runs/exec/ExecRecord.ts"
import { ExecHistory } from "../../../src/runs/exec/ExecHistory.ts"
import { ExecStream } from "../../../src/runs/exec/ExecStream.ts"

const said = (record: object): ExecRecord.Said => {
  const read = ExecRecord.read(JSON.stringify(record))
  if (read._tag !== "Said") throw new Error(JSON.stringify(read))
  return read.said
}

const stream = (resumes?: string) => {
  const stream = new ExecStream(7, resumes, ["look"])
  const take = (record: object) => stream.take(said(record))
  return { stream, take }
}

const ready = { type: "ready", version: 1, session: "s" }
const tags = (events: ReadonlyArray<RunEvent>) => events.map(({ _tag }) => _tag)

describe("a record", () => {
  it("that does not fit is told with what is wrong; one of a type that is not known is none of ours", () => {
    const why = (line: string) => {
      const read = ExecRecord.read(line)
      return read._tag === "Wrong" ? read.why : read._tag
    }
    assert.match(why("hello"), /^it is not JSON: "hello"/)
    assert.match(why("[1]"), /^it has no type/)
    assert.match(why('{"type":"done","output":""}'), /^"done" does not fit: .*turn/)
    assert.match(why('{"type":"usage","input":-1,"output":0}'), /^"usage" does not fit: .*input/)
    assert.strictEqual(why('{"type":"later"}'), "Unknown")
    assert.strictEqual(why('{"type":"constructor"}'), "Unknown")
    assert.strictEqual(why('{"type":"text","text":"a","more":1}'), "Said")
  })
})

describe("the example of the contract's page", () => {
  it("is said by the contract: nothing of it is odd", () => {
    const page = readFileSync(join(import.meta.dirname, "../../../docs/exec-backend.md"), "utf8")
    const { stream: it, take } = stream()
    const events: Array<RunEvent> = []
    const told: Array<string> = []
    for (const [, who, line = ""] of page.matchAll(/^(agentd|program) +(\{.*\})$/gm)) {
      const record = JSON.parse(line) as { readonly type: string; readonly turn?: string; readonly call?: string }
      if (who === "program") events.push(...take(record))
      else told.push(record.type)
      if (who === "agentd" && record.type === "turn") it.give(record.turn!)
      if (who === "agentd" && record.type === "interrupt") assert.isTrue(it.interrupt())
      if (who === "agentd" && record.type === "answer") assert.isTrue(it.answer(record.call!))
    }
    assert.deepStrictEqual(told, ["start", "turn", "answer", "turn", "interrupt", "end"])
    assert.notInclude(tags(events), "Notice")
    assert.deepStrictEqual(tags(events).slice(-2), ["TurnStarted", "TurnInterrupted"])
  })
})

describe("the stream", () => {
  it("starts once it is ready; another session than the one asked for is memory lost; a later version ends it", () => {
    assert.deepStrictEqual(tags(stream().take(ready)), ["Started"])
    assert.deepStrictEqual(tags(stream("s").take(ready)), ["Started"])
    assert.deepStrictEqual(tags(stream("r").take(ready)), ["Started", "MemoryLost"])
    const later = stream()
    assert.deepStrictEqual(later.take({ ...ready, version: 2 }), [])
    assert.strictEqual(later.stream.fault?._tag, "Fatal")
  })

  it("holds turns and calls together: what is of another one, too early or twice changes nothing", () => {
    const { stream: it, take } = stream()
    assert.deepStrictEqual(tags(take({ type: "began", turn: "t" })), ["Notice"])
    take(ready)
    it.give("t")
    const call = { type: "call", call: "c", tool: "look", arguments: {} }
    assert.deepStrictEqual(tags(take(call)), ["Notice"])
    assert.deepStrictEqual(tags(take({ type: "began", turn: "other" })), ["Notice"])
    assert.deepStrictEqual(take({ type: "began", turn: "t" }), [{ _tag: "TurnStarted", turnId: "t" }])
    assert.strictEqual(it.waits, "answer")
    assert.deepInclude(take(call)[0], { _tag: "ToolCall", readOnly: true })
    assert.isUndefined(it.waits)
    assert.isFalse(it.answer("c"))
    assert.deepStrictEqual(tags(take(call)), ["Notice"])
    assert.deepStrictEqual(tags(take({ type: "result", call: "c", status: "success", output: 1 })), ["ToolResult"])
    assert.deepStrictEqual(tags(take({ type: "result", call: "c", status: "success", output: 1 })), ["Notice"])
    const asks = take({ ...call, call: "d", tool: "write", ask: "it writes" })
    assert.deepStrictEqual(tags(asks), ["ToolCall", "ApprovalRequested"])
    assert.isTrue(it.answer("d"))
    assert.isFalse(it.answer("d"))
    assert.deepStrictEqual(tags(take({ type: "done", turn: "t", output: "" })), ["TurnCompleted"])
    assert.deepStrictEqual(tags(take({ type: "done", turn: "t", output: "" })), ["Notice"])
  })

  it("a call that goes on without its answer asks no more", () => {
    const { stream: it, take } = stream()
    take(ready)
    it.give("t")
    take({ type: "began", turn: "t" })
    take({ type: "call", call: "c", tool: "write", arguments: {}, ask: "it writes" })
    const progress = { type: "progress", call: "c", text: "half" }
    assert.deepStrictEqual(tags(take(progress)), ["ApprovalWithdrawn", "ToolProgress"])
    assert.isFalse(it.answer("c"))
    assert.deepStrictEqual(tags(take(progress)), ["ToolProgress"])
  })

  it("a turn may end before it was begun, where it is refused or interrupted", () => {
    for (const end of [
      { type: "interrupted", turn: "t" },
      { type: "error", turn: "t", error: "refusal", message: "no" }
    ]) {
      const { stream: it, take } = stream()
      take(ready)
      it.give("t")
      assert.lengthOf(take(end), 1)
      assert.isUndefined(it.turnId)
    }
  })

  it("an error has its class: what is outside waits, what needs a person stops, what was asked concerns one turn", () => {
    const outcome = (more: object) => {
      const { stream: it, take } = stream()
      take(ready)
      it.give("t")
      take({ type: "began", turn: "t" })
      const [event] = take({ type: "error", turn: "t", message: "m", ...more })
      return [it.fault?._tag, event?._tag === "TurnError" && event.retry, event?._tag === "TurnError" && event.goesOn]
    }
    assert.deepStrictEqual(outcome({ error: "rate_limit" }), ["Uncounted", true, undefined])
    assert.deepStrictEqual(outcome({ error: "auth" }), ["Uncounted", true, undefined])
    assert.deepStrictEqual(outcome({ error: "billing" }), ["Fatal", true, undefined])
    assert.deepStrictEqual(outcome({ error: "odd", retry: true }), ["Error", true, undefined])
    assert.deepStrictEqual(outcome({ error: "refusal" }), [undefined, false, true])
    assert.deepStrictEqual(outcome({ error: "constructor" }), [undefined, false, true])
  })

  it("told again by its notes it stands where it stood", () => {
    const { stream: it } = stream()
    const note = (of: Parameters<typeof ExecHistory.noteOf>[0], at: number, seq: number) => ({
      seq,
      note: ExecHistory.noteOf(of, at)
    })
    const inputs = [
      note({ say: "start" }, 0, 1),
      note({ say: "turn", turnId: "t" }, 0, 2),
      note({ say: "interrupt" }, 90, 3)
    ]
    const history = new ExecHistory({ inputs: inputs as never, out: 100 }, it)
    assert.deepStrictEqual(history.upTo(50), [{ _tag: "Given", input: "t" }])
    assert.isFalse(it.interrupted)
    history.upTo(100)
    assert.isTrue(it.interrupted)
    assert.strictEqual(it.turnId, "t")
  })
})

it("a turn whose end says nothing answers with what it said last", () => {
  const answer = (...records: ReadonlyArray<object>) => {
    const { stream: it, take } = stream()
    take(ready)
    it.give("t")
    const all = [{ type: "began", turn: "t" }, ...records].flatMap((record) => take(record))
    return all.find((event) => event._tag === "TurnCompleted")?.output
  }
  const text = (words: string) => ({ type: "text", text: words })
  const call = { type: "call", call: "c", tool: "look", arguments: {} }
  const done = (output: string) => ({ type: "done", turn: "t", output })
  assert.strictEqual(answer(text("I look."), call, text("It "), text("works."), done("")), "It works.")
  assert.strictEqual(answer(text("I look."), call, done("")), "I look.")
  assert.strictEqual(answer(text("Half"), done("Whole.")), "Whole.")
})

describe("between turns", () => {
  const free = () => {
    const { stream: it, take } = stream()
    take(ready)
    it.give("t")
    take({ type: "began", turn: "t" })
    take({ type: "done", turn: "t", output: "ok" })
    return { it, take }
  }
  const call = { type: "call", call: "c", tool: "shell", arguments: { command: "true" } }
  const result = { type: "result", call: "c", status: "success", output: 0 }

  it("what is answered is what is shown: a call with questions and arguments asks for leave; a question names its tool", () => {
    const { take } = free()
    take({ type: "began", turn: "mine" })
    const questions = [{ question: "Which?", options: [{ label: "tea", description: "" }], several: false }]
    const both = take({ ...call, questions })
    assert.deepStrictEqual(both.at(-1), { _tag: "ApprovalRequested", callId: "c", reason: "shell: Which?" })
    for (const [name, empty] of [
      ["d", {}],
      ["e", null],
      ["f", []]
    ] as const)
      assert.deepStrictEqual(take({ ...call, call: name, arguments: empty, questions }).at(-1), {
        _tag: "ApprovalRequested",
        callId: name,
        reason: "",
        questions: questions.map((one) => ({ ...one, question: "shell: Which?" }))
      })
    for (const [name, full] of [
      ["g", 0],
      ["h", ""],
      ["i", false],
      ["j", [[]]]
    ] as const)
      assert.notProperty(take({ ...call, call: name, arguments: full, questions }).at(-1), "questions")
  })

  it("a program begins a turn of its own by a name that was never used; a given one takes it in", () => {
    const { it, take } = free()
    assert.deepStrictEqual(tags(take({ type: "began", turn: "t" })), ["Notice"])
    assert.deepStrictEqual(take({ type: "began", turn: "mine" }), [
      { _tag: "TurnOpened", turnId: "mine", why: "it goes on by itself" }
    ])
    assert.strictEqual(it.waits, "answer")
    assert.deepStrictEqual(tags(take({ type: "text", text: "The build has ended." })), ["Delta"])
    assert.deepStrictEqual(tags(take({ ...call, ask: "effects" })), ["ToolCall", "ApprovalRequested"])
    assert.deepStrictEqual(tags(take(result)), ["ToolResult"])
    assert.deepStrictEqual(tags(take({ type: "done", turn: "mine", output: "" })), ["TurnCompleted"])
    assert.isUndefined(it.turnId)
    take({ type: "began", turn: "again" })
    assert.isTrue(it.isOwn)
    it.give("u")
    assert.deepStrictEqual(tags(take({ type: "done", turn: "again", output: "" })), ["Notice"])
    assert.deepStrictEqual(tags(take({ type: "began", turn: "u" })), ["TurnStarted"])
  })

  it("a call is a turn until its result; a text is told with its words; all else is told", () => {
    const { it, take } = free()
    assert.deepStrictEqual(take({ type: "text", text: "by the way" }), [
      { _tag: "Notice", text: 'the program said "text" of a turn that is not active: by the way' }
    ])
    assert.deepStrictEqual(tags(take(call)), ["TurnOpened", "ToolCall", "ToolStarted"])
    assert.isTrue(it.isOwn)
    assert.deepStrictEqual(tags(take({ type: "text", text: "It works." })), ["Delta"])
    assert.deepInclude(take(result).at(-1), { _tag: "TurnCompleted", turnId: "own-c", output: "It works." })
    assert.isUndefined(it.turnId)
    assert.deepStrictEqual(tags(take(call)), ["Notice"])
    assert.deepStrictEqual(tags(take(result)), ["Notice"])
    assert.isUndefined(it.waits)
  })
})
