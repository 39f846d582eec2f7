import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as path from "node:path"
import type { RunEvent } from "../../../src/runs/Backend.ts"
import { CodexStream, type KnownStream, type Note, type Options } from "../../../src/runs/codex/CodexStream.ts"
import type { Said } from "../../../src/runs/line/LineProtocol.ts"

const NOW = 1_796_030_700_000
const FOLDER = path.resolve(import.meta.dirname, "../../fixtures/codex")

interface Step {
  readonly dir: "<" | ">"
  readonly m: {
    readonly id?: string | number
    readonly method?: string
    readonly params?: { readonly turnId?: string }
  }
}

const recorded = (name: string): ReadonlyArray<Step> =>
  fs
    .readFileSync(path.join(FOLDER, `${name}.jsonl`), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))

const OPTIONS: Options = { pid: 7, session: { _tag: "New" }, thread: { cwd: "/home/user/project" }, given: ["agentd"] }

const input = (turnId: string, text = "go") => ({
  turnId,
  uuid: `input-${turnId}`,
  text,
  files: { found: [], gone: [] },
  paths: []
})

interface Told {
  readonly events: ReadonlyArray<RunEvent>
  readonly says: ReadonlyArray<Said<Note>>
  readonly stream: CodexStream
}

/**
 * Plays a recording. `on`: called after each line of Codex; returns what agentd says. Turns are t1, t2 …: the next one
 * is given where the recorded client gave one.
 */
const play = (
  name: string,
  {
    on,
    options = OPTIONS
  }: { readonly on?: (event: RunEvent, stream: CodexStream) => unknown; readonly options?: Options } = {}
): Told => {
  const stream = new CodexStream(options)
  const events: Array<RunEvent> = []
  const says = [...stream.opening(), ...stream.give(input("t1"))]
  let turn = 0
  for (const { dir, m } of recorded(name)) {
    if (dir === ">") {
      if (m.method === "turn/start" && ++turn > 1) says.push(...stream.give(input(`t${turn}`)))
      if (m.method === "turn/interrupt" && turn === 1) says.push(...stream.interrupt())
      continue
    }
    const heard = stream.take(JSON.stringify(m), NOW)!
    events.push(...heard.events)
    says.push(...heard.says)
    for (const event of heard.events) {
      const more = on?.(event, stream)
      if (Array.isArray(more)) says.push(...more)
    }
  }
  return { events, says, stream }
}

const of = <T extends RunEvent["_tag"]>(events: ReadonlyArray<RunEvent>, tag: T) =>
  events.filter((event): event is Extract<RunEvent, { readonly _tag: T }> => event._tag === tag)
const methods = (says: ReadonlyArray<Said<Note>>) => says.map(({ text }) => JSON.parse(text).method ?? "answer")
const allows = (event: RunEvent, stream: CodexStream) =>
  event._tag === "ApprovalRequested" ? stream.answer(event.callId, { behavior: "allow" }) : []
const quiet = new Set<RunEvent["_tag"]>(["Usage", "Offers", "Notice", "Windows", "ToolProgress", "Delta"])
const tags = (events: ReadonlyArray<RunEvent>) => events.map(({ _tag }) => _tag).filter((tag) => !quiet.has(tag))

describe("CodexStream over recordings of codex app-server 0.171.0", () => {
  it("two turns of one thread: each begins and ends once, with its text and its tokens once", () => {
    const { events, says, stream } = play("two-turns")
    const turn = ["TurnStarted", "TurnCompleted"]
    assert.deepStrictEqual(tags(events), ["Started", ...turn, ...turn])
    assert.deepStrictEqual(methods(says), ["initialize", "initialized", "thread/start", "turn/start", "turn/start"])
    assert.deepStrictEqual(
      of(events, "TurnCompleted").map(({ output, turnId }) => [turnId, output]),
      [
        ["t1", "Hello there, this is a somewhat longer answer in pieces."],
        ["t2", "second"]
      ]
    )
    assert.strictEqual(
      of(events, "Delta")
        .map(({ text }) => text)
        .join("|")
        .replaceAll("|", ""),
      "Hello there, this is a somewhat longer answer in pieces.second"
    )
    assert.deepStrictEqual(
      of(events, "Usage").map(({ context, inputTokens, model, outputTokens }) => [
        model,
        inputTokens,
        outputTokens,
        context
      ]),
      [
        ["stub-model", 100, 20, { used: 100, window: 258_400 }],
        ["stub-model", 100, 20, { used: 100, window: 258_400 }]
      ]
    )
    assert.isTrue(stream.isIdle)
    assert.match(stream.session ?? "", /^01a22/)
  })

  it("a command in Codex's read-only sandbox has no side effects; what goes beyond it asks, whole as it is", () => {
    const { events } = play("calls", { on: allows })
    const calls = of(events, "ToolCall")
    assert.deepStrictEqual(
      calls.map(({ readOnly, tool, voice }) => [tool, readOnly, voice]),
      [
        ["shell", true, undefined],
        ["shell", false, undefined],
        ["apply_patch", false, undefined],
        ["mcp__agentd__say", false, true]
      ]
    )
    const [, escalated, patch, said] = calls
    assert.deepStrictEqual(escalated?.arguments, {
      command: "/bin/bash -lc 'touch made.txt; echo made'",
      cwd: "/home/user/project"
    })
    assert.deepStrictEqual(patch?.arguments, {
      changes: [{ path: "/home/user/project/new.txt", kind: { type: "add" }, diff: "hello\n" }]
    })
    assert.deepStrictEqual(said?.arguments, { text: "hi" })
    assert.deepStrictEqual(
      of(events, "ApprovalRequested").map(({ callId, reason }) => [callId, reason]),
      [
        [escalated!.callId, "May I write?"],
        [patch!.callId, ""],
        [said!.callId, 'Allow the agentd MCP server to run tool "say"?']
      ]
    )
    assert.deepStrictEqual(
      of(events, "ToolResult").map(({ output, status }) => [status, `${output}`.split("\n")[0]]),
      [
        ["error", "# a project"],
        ["success", "made"],
        ["success", "/home/user/project/new.txt"],
        ["success", 'said {"text":"hi"}shh']
      ]
    )
    for (const { callId } of calls) {
      const own = events.filter((event) => "callId" in event && event.callId === callId).map(({ _tag }) => _tag)
      assert.strictEqual(own[0], "ToolCall")
      assert.strictEqual(own.at(-1), "ToolResult")
    }
    const mode = of(events, "Offers").find((offer) => offer.mode !== undefined)?.mode
    assert.deepStrictEqual(mode, { id: "on-request, readOnly", isUnasked: false })
  })

  it("a denial tells the model why: the reason is an input of the turn, before the answer", () => {
    const { events, says } = play("deny", {
      on: (event, stream) =>
        event._tag === "ApprovalRequested"
          ? stream.answer(event.callId, { behavior: "deny", message: "not that file", words: true })
          : []
    })
    assert.deepStrictEqual(methods(says).slice(-2), ["turn/steer", "answer"])
    assert.include(says.at(-2)?.text, "Your call was denied: not that file")
    assert.include(says.at(-1)?.text, '"decision":"decline"')
    assert.deepStrictEqual(
      of(events, "ToolResult").map(({ status }) => status),
      ["denied"]
    )
    for (const { note } of says) assert.notInclude(JSON.stringify(note), "not that file")
  })

  it("an interrupt ends the turn, and the command that Codex leaves running", () => {
    const { events, says, stream } = play("interrupt")
    assert.deepStrictEqual(tags(events), [
      "Started",
      "TurnStarted",
      "ToolCall",
      "ToolStarted",
      "TurnInterrupted",
      "TurnStarted",
      "TurnCompleted"
    ])
    assert.deepStrictEqual(methods(says), [
      "initialize",
      "initialized",
      "thread/start",
      "turn/start",
      "turn/interrupt",
      "thread/backgroundTerminals/list",
      "thread/backgroundTerminals/terminate",
      "turn/start"
    ])
    assert.deepStrictEqual(of(events, "Background"), [])
    assert.isTrue(stream.isIdle)
  })

  it("a command that outlives its turn is background work until it ends", () => {
    const { events } = play("background", { on: allows })
    assert.deepStrictEqual(
      of(events, "Background").map(({ works }) => works.map(({ kind }) => kind)),
      [["shell"], []]
    )
    assert.deepStrictEqual(
      of(events, "ToolResult").map(({ status }) => status),
      ["success"]
    )
  })

  it("a question to the user has its options, and its answer goes to the question by its id", () => {
    const { events, says } = play("question", {
      on: (event, stream) =>
        event._tag === "ApprovalRequested" ? stream.answer(event.callId, { behavior: "allow", answers: ["Blue"] }) : []
    })
    const [asked] = of(events, "ApprovalRequested")
    assert.deepStrictEqual(asked?.questions, [
      {
        question: "Which colour?",
        options: [
          { label: "Red (Recommended)", description: "warm" },
          { label: "Blue", description: "cold" }
        ],
        several: false
      }
    ])
    assert.include(says.at(-1)?.text, '"answers":{"color":{"answers":["Blue"]}}')
    assert.deepStrictEqual(
      of(events, "ToolResult").map(({ callId, status }) => [callId, status]),
      [[asked!.callId, "success"]]
    )
  })
})

describe("how a turn fails", () => {
  const rows: ReadonlyArray<readonly [recording: string, errorType: string, outcome: object]> = [
    ["error-400", "invalid_request", { _tag: "Error" }],
    ["error-401", "auth", { _tag: "Uncounted", reason: "auth" }],
    ["error-404", "model", { _tag: "Fatal" }],
    ["error-429", "rate_limit", { _tag: "Uncounted", reason: "quota", until: NOW + 60_000 }],
    ["error-usage", "rate_limit", { _tag: "Uncounted", reason: "quota", until: 1_796_040_000_000 }],
    ["error-500", "overloaded", { _tag: "Uncounted", reason: "unavailable" }],
    ["error-503", "overloaded", { _tag: "Uncounted", reason: "unavailable" }],
    ["error-overflow", "overflow", { _tag: "Uncounted", reason: "overflow" }]
  ]
  for (const [recording, errorType, outcome] of rows)
    it(`${recording}: ${errorType}`, () => {
      const { events, stream } = play(recording)
      const [error] = of(events, "TurnError")
      assert.strictEqual(error?.errorType, errorType)
      assert.deepInclude(stream.fault?.outcome, outcome)
    })

  it("a retry is a notice, and no end; the windows of the account are told with their resets", () => {
    const { events } = play("cut")
    const [notice] = of(events, "Notice").filter(({ retries }) => retries !== undefined)
    assert.match(notice?.text ?? "", /^Reconnecting\.\.\. 1\/1 \(stream disconnected/)
    assert.strictEqual(of(events, "TurnCompleted").length, 2)
    assert.deepStrictEqual(of(play("error-usage").events, "Windows")[0]?.windows, [
      { name: "five_hour", used: 1, resetsAt: 1_796_040_000_000 },
      { name: "seven_day", used: 0.4, resetsAt: 1_796_400_000_000 }
    ])
  })

  it("an outage is a notice for each wait, and the turn waits on", () => {
    const { events, stream } = play("outage")
    assert.isAbove(of(events, "Notice").filter(({ retries }) => retries !== undefined).length, 2)
    assert.strictEqual(stream.turnId, "t1")
  })
})

describe("the thread of a new process", () => {
  it("is the old one if it exists, and a turn of it goes on", () => {
    const { events, says } = play("resume-2", { options: { ...OPTIONS, session: { _tag: "Resumed", id: "x" } } })
    assert.deepStrictEqual(methods(says).slice(0, 4), ["initialize", "initialized", "thread/resume", "turn/start"])
    assert.deepStrictEqual(of(events, "MemoryLost"), [])
    assert.strictEqual(of(events, "TurnCompleted")[0]?.output, "after resume")
  })

  it("is a new one if the old one is gone, and that is told", () => {
    const { events, says, stream } = play("gone-2", { options: { ...OPTIONS, session: { _tag: "Resumed", id: "x" } } })
    assert.deepStrictEqual(methods(says), ["initialize", "initialized", "thread/resume", "thread/start"])
    assert.strictEqual(of(events, "MemoryLost").length, 1)
    assert.isFalse(stream.isUp)
    assert.strictEqual(stream.waits, "ready")
  })
})

describe("a later daemon", () => {
  /** The notes of all lines, with the number of lines of Codex that had been handled before. */
  const noted = (name: string, on?: (event: RunEvent, stream: CodexStream) => unknown) => {
    const notes: Array<readonly [at: number, note: Note]> = []
    const stream = new CodexStream(OPTIONS)
    const put = (at: number, says: unknown) => {
      for (const { note } of (says ?? []) as ReadonlyArray<Said<Note>>) notes.push([at, note])
    }
    put(0, stream.opening())
    put(0, stream.give(input("t1")))
    const events: Array<RunEvent> = []
    let [turn, at] = [0, 0]
    for (const { dir, m } of recorded(name)) {
      if (dir === ">") {
        if (m.method === "turn/start" && ++turn > 1) put(at, stream.give(input(`t${turn}`)))
        if (m.method === "turn/interrupt" && turn === 1) put(at, stream.interrupt())
        continue
      }
      const heard = stream.take(JSON.stringify(m), NOW)!
      put(at, heard.says)
      at++
      events.push(...heard.events)
      for (const event of heard.events) put(at, on?.(event, stream))
    }
    return { notes, events, stream }
  }

  for (const name of ["two-turns", "interrupt", "calls", "deny", "question", "background"])
    it(`has the same state from the same lines and notes: ${name}`, () => {
      const on = name === "deny" ? undefined : allows
      const { events, notes, stream } = noted(name, on)
      const again = new CodexStream(OPTIONS)
      const heard: Array<RunEvent> = []
      const said: Array<Said<Note>> = []
      const left = [...notes]
      let at = 0
      for (const { dir, m } of recorded(name)) {
        if (dir === ">") continue
        for (; left[0] !== undefined && left[0][0] <= at; left.shift()) again.recall(left[0][1])
        const step = again.take(JSON.stringify(m), NOW)!
        at++
        heard.push(...step.events)
        said.push(...step.says)
      }
      for (const [, note] of left) again.recall(note)
      assert.deepStrictEqual(heard, events)
      assert.deepStrictEqual(again.known, stream.known)
      assert.strictEqual(said.length, notes.filter(([, { say }]) => say === "reply").length)
      for (const { note } of said) assert.strictEqual(note.say, "reply")
    })

  it("goes on from the state of an idle process", () => {
    const { stream } = play("two-turns")
    const known: KnownStream = JSON.parse(JSON.stringify(stream.known))
    const again = new CodexStream(OPTIONS, known)
    assert.deepStrictEqual(again.known, stream.known)
    assert.strictEqual(again.session, stream.session)
    const [line] = again.give(input("t3"))
    assert.deepInclude(JSON.parse(line!.text), { id: "agentd-5", method: "turn/start" })
    assert.isUndefined(again.known)
  })
})

describe("what Codex should not send", () => {
  it("is answered or ignored, and changes nothing", () => {
    const { stream } = play("two-turns")
    const take = (message: unknown) => stream.take(JSON.stringify(message), NOW)!
    assert.isUndefined(stream.take("not a message", NOW))
    const refused = take({ id: 9, method: "item/tool/call", params: {} }).says
    assert.deepInclude(JSON.parse(refused[0]!.text), {
      id: 9,
      error: { code: -32601, message: "agentd does not know item/tool/call" }
    })
    for (const message of [
      { method: "turn/completed", params: { turn: {} } },
      { method: "item/started", params: { item: 3 } },
      { method: "thread/tokenUsage/updated", params: {} },
      { id: "agentd-77", result: {} },
      { method: "serverRequest/resolved", params: { requestId: 5 } }
    ])
      assert.deepStrictEqual(take(message), { events: [], says: [] })
    assert.isTrue(stream.isIdle)
  })

  it("a turn that it begins by itself is an own turn", () => {
    const { stream } = play("two-turns")
    const take = (method: string, params: object) => stream.take(JSON.stringify({ method, params }), NOW)!.events
    const [opened] = take("turn/started", { turn: { id: "own" } })
    assert.deepInclude(opened, { _tag: "TurnOpened", turnId: "own-1" })
    assert.isFalse(stream.isGiven)
    const [ended] = take("turn/completed", { turn: { id: "own", status: "completed" } })
    assert.deepInclude(ended, { _tag: "TurnCompleted", turnId: "own-1" })
  })
})
