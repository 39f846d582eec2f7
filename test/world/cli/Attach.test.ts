import { describe, expect, it } from "@effect/vitest"
import { Effect, Option, Scope, type Terminal } from "effect"
import { stripVTControlCharacters } from "node:util"
import { recent } from "../../../src/cli/tui/Attach.ts"
import { answered, chosen, parse } from "../../../src/cli/tui/AttachInput.ts"
import { SHOWN } from "../../../src/board/ConversationView.ts"
import { AttachView, type Line } from "../../../src/cli/tui/AttachView.ts"
import { type Editing, empty, press, shown } from "../../../src/cli/tui/LineEditor.ts"
import { compose, tailOf } from "../../../src/cli/tui/LiveScreen.ts"
import type { Rune, RuneDraft } from "../../../src/core/event-log/Rune.ts"
import { Limits } from "../../../src/board/Limits.ts"
import { kinds } from "../../../src/app/EventKinds.ts"
import { callInfo, folder, makeWorld, serve, serveAt, T0 } from "../rpc/World.ts"
import { launch } from "./Child.ts"

const eventually = (holds: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (holds() ? Effect.void : Effect.andThen(Effect.sleep(5), eventually(holds))))

const EVIL = "\u001b]0;owned\u0007\u009b31m\u202e"

const draft = (kind: string, event: object, fields: object = {}, actor = "turn/builder"): RuneDraft => ({
  stream: "web-1a2b3c4d",
  actor,
  kind,
  payload: { event, ...fields }
})
const turn = (id: string, input = "do it") =>
  draft(
    "turn.started",
    { _tag: "start_turn", turnId: id, agentId: "builder", input, source: "queue", messageIds: [], at: 1 },
    { turn_id: id, agent_id: "builder", input }
  )
const delta = (id: string, content: string) =>
  draft("turn.assistant_delta", { _tag: "assistant_delta", turnId: id, content }, { turn_id: id, content })
const completed = (id: string, output: string) =>
  draft(
    "turn.completed",
    { _tag: "response_done", turnId: id, finalOutput: output, usage: {} },
    { turn_id: id, final_output: output, usage: { inputTokens: 12, outputTokens: 3, usd: 0.001 } }
  )
const tool = (id: string, kind: string, event: object, fields: object = {}) =>
  draft(`tool.${kind}`, { callId: id, ...event }, { call_id: id, ...fields }, `tool/builder/${id}`)

let eventId = 0
const rune = (each: RuneDraft): Rune => ({
  from: null,
  to: null,
  trigger: null,
  cause: null,
  moves: [],
  visibility: "public",
  ...each,
  format: 2,
  eventId: ++eventId,
  seq: eventId,
  at: T0
})
const feed = (view: AttachView, ...drafts: ReadonlyArray<RuneDraft>): ReadonlyArray<string> =>
  drafts.flatMap((each) => view.feed(rune(each)).map(({ text }: Line) => text))

describe("the view", () => {
  it("asks only for kinds that there are, and not for more than one may", () => {
    expect(SHOWN.filter((kind) => kinds.get(kind) === undefined)).toEqual([])
    expect(SHOWN.length).toBeLessThanOrEqual(Limits.kinds)
  })

  it("an answer comes line by line as it streams, and is not told again at the turn's end", () => {
    const view = new AttachView()
    feed(view, turn("t1"))
    expect(feed(view, delta("t1", "I am wor"))).toEqual([])
    expect(view.partial).toBe("I am wor")
    expect(feed(view, delta("t1", "king\nand more"))).toEqual(["I am working"])
    expect(feed(view, completed("t1", "I am working\nand more"))).toEqual([
      "and more",
      "✓ the turn is over after 0s (12 tokens in, 3 out, $0.0010)"
    ])
    expect(view.partial).toBe("")
  })

  it("an answer that was not seen as it came is told at the end", () => {
    const view = new AttachView()
    feed(view, turn("t1"), delta("t1", "old"), completed("t1", "old"), turn("t2"))
    expect(feed(view, completed("t2", "new\nanswer")).slice(0, 2)).toEqual(["new", "answer"])
  })

  it("what a command prints is its answer, and is not told again at the turn's end", () => {
    const view = new AttachView()
    const printed = draft("run.output", {}, { source: "stdout", text: "one\ntwo" }, "worker/builder")
    expect(feed(view, turn("t1"), printed).slice(-2)).toEqual(["one", "two"])
    expect(feed(view, completed("t1", "one\ntwo"))).toHaveLength(1)
  })

  it("nothing that an agent says can speak to the terminal, and everything has an end", () => {
    const view = new AttachView()
    const long = "x".repeat(100_000)
    const many = "line\n".repeat(100_000)
    const floods = [EVIL, long, many].flatMap((text) => [
      turn("t1", text),
      delta("t1", text),
      tool("c1", "call", {}, { tool_name: text, arguments: { text } }),
      tool("c1", "approval_requested", {}, { policy_reason: text }),
      tool("c1", "denied", {}, { reason: text }),
      tool("c1", "progress", {}, { stream: "stdout", chunk: text }),
      tool("c1", "result", {}, { status: text, output: { text } }),
      draft("turn.interrupted", {}, { turn_id: "t1", reason: text }),
      draft("turn.error", {}, { turn_id: "t1", error_type: text, message: text }),
      draft("inbox.received", { _tag: "Received", message: { from: text, text } }, {}, "inbox/builder"),
      draft(
        "inbox.received",
        {
          _tag: "Received",
          message: { from: text, text, files: [{ filename: text, type: "text/plain", size: 1, sha256: text }] }
        },
        {},
        "inbox/builder"
      ),
      draft("agent.reported", {}, { status: text, summary: text }, "agent/builder"),
      draft("run.output", {}, { source: text, text }, "worker/builder"),
      draft("run.notice", {}, { text }, "worker/builder"),
      completed("t2", text)
    ])
    for (const each of floods) {
      const lines = feed(view, each)
      for (const line of [...lines, view.partial]) {
        expect(line).not.toMatch(/[\p{Cc}\u202e]/u)
        expect(line.length).toBeLessThanOrEqual(4100)
      }
      if (each.kind !== "turn.assistant_delta") expect(lines.length).toBeLessThan(500)
    }
  })

  it("a call is shown with the beginning of its arguments", () => {
    const view = new AttachView()
    const command = `rm ${"a".repeat(500)} end`
    const [called] = feed(view, tool("c1", "call", {}, { tool_name: "shell", arguments: { command } }))
    expect(called).toMatch(/^⚙ shell \{"command":"rm a+…$/)
    const asked = feed(view, tool("c1", "approval_requested", {}, { policy_reason: "effects" }))
    // the whole call comes before it
    expect(asked).toEqual(["? it asks: effects", "  /approve c1   or   /deny c1 why"])
  })

  it("a question is shown with its options, and what was chosen", () => {
    const options = [{ label: "Red", description: "warm" }]
    const questions = [{ question: "Which?", options, several: true }]
    const view = new AttachView()
    const asked = tool("c1", "approval_requested", { questions }, { policy_reason: "it asks" })
    expect(feed(view, asked).map((each) => each.trim())).toEqual([
      "? it asks you to choose",
      "Which? (one or more)",
      "1  Red: warm",
      "type 1   or   /answer c1 a text"
    ])
    const [said] = feed(view, tool("c1", "approved", { answers: ["Red"] }, { approver: "ada" }))
    expect(said).toBe("  ada answered: Red")
  })

  it("progress ends with a word about the rest", () => {
    const view = new AttachView()
    const chunk = tool("c1", "progress", {}, { stream: "stdout", chunk: "line\n".repeat(150) })
    const lines = feed(view, chunk, chunk, chunk)
    expect(lines.length).toBeLessThan(210)
    expect(lines.at(-1)).toBe("  │ … the rest is in the log")
  })
})

it("it begins with the last turns; one that is under way comes whole, as it streams", () => {
  eventId = 0
  const over = [turn("t1"), completed("t1", "a"), turn("t2"), completed("t2", "b")].map(rune)
  expect(recent(over, 1, 99)).toEqual({ shown: over.slice(2), after: 4 })
  expect(recent(over, 9, 99)).toEqual({ shown: over, after: 4 })
  expect(recent(over, 0, 99)).toEqual({ shown: [], after: 4 })
  const open = [...over, ...[turn("t3"), tool("c", "call", {})].map(rune)]
  expect(recent(open, 1, 99)).toEqual({ shown: [open[4]], after: 5 })
  expect(recent([], 3, 99)).toEqual({ shown: [], after: 99 })
})

describe("a command's first second, in which it does not count as started", () => {
  const prompt = (id: string) =>
    draft(
      "worker.moved",
      { _tag: "PromptReady", runId: id, prompt: "do it", messageIds: [], at: 1 },
      {},
      "worker/builder"
    )
  const printed = (text: string, source = "stdout") =>
    draft("run.output", {}, { runId: "r1", source, text }, "worker/builder")

  it("what it says then comes after its turn's begin, which is said once", () => {
    const view = new AttachView()
    const lines = feed(
      view,
      prompt("r1"),
      printed("first"),
      turn("r1"),
      printed("second"),
      completed("r1", "first\nsecond")
    )
    expect(lines).toEqual(["", "▶ a turn begins", "  do it", "first", "second", expect.stringMatching(/^✓ the turn/)])
    // a run's later turns begin by themselves
    expect(feed(view, turn("t2"))).toContain("▶ a turn begins")
  })

  it("one that fails in it says so, and its words stay", () => {
    const view = new AttachView()
    const exited = { _tag: "SessionExited", runId: "r1", outcome: { _tag: "Error", detail: "exit code 3" } }
    const lines = feed(
      view,
      prompt("r1"),
      printed("oops", "stderr"),
      draft("worker.moved", exited, {}, "worker/builder")
    )
    expect(lines.slice(-2)).toEqual(["oops", "— the run has ended: exit code 3"])
  })

  it("attach begins before it: with the run, be it over, open, or failed", () => {
    eventId = 0
    const runes = [prompt("r1"), printed("first"), turn("r1"), printed("second")].map(rune)
    expect(recent(runes, 1, 99)).toEqual({ shown: [runes[0]], after: 1 })
    const over = [...runes, rune(completed("r1", "first\nsecond"))]
    expect(recent(over, 1, 99)).toEqual({ shown: over, after: 5 })
    const exited = { _tag: "SessionExited", runId: "r2", outcome: { _tag: "Timeout" } }
    const failed = [...over, ...[prompt("r2"), printed("x"), draft("worker.moved", exited)].map(rune)]
    expect(recent(failed, 1, 99)).toEqual({ shown: failed.slice(5), after: 8 })
  })
})

it.each([
  ["hello", { _tag: "Send", how: "queue", text: "hello" }],
  ["  two\nlines ", { _tag: "Send", how: "queue", text: "two\nlines" }],
  ["/steer not that\nfile", { _tag: "Send", how: "steer", text: "not that\nfile" }],
  ["/urgent now", { _tag: "Send", how: "urgent", text: "now" }],
  ["/urgent", { _tag: "Wrong" }],
  ["//etc/passwd", { _tag: "Send", how: "queue", text: "/etc/passwd" }],
  ["/etc/passwd", { _tag: "Wrong" }],
  ["/interrupt", { _tag: "Interrupt" }],
  ["/deny 01k9 not on main", { _tag: "Answer", decision: "deny", rest: "01k9 not on main" }],
  ["/approve", { _tag: "Answer", decision: "allow", rest: "" }],
  ["2", { _tag: "Choose", rest: "2", bare: true }],
  ["1; 2,3", { _tag: "Choose", rest: "1; 2,3", bare: true }],
  ["2 of them", { _tag: "Send", how: "queue", text: "2 of them" }],
  ["/answer rather mauve", { _tag: "Choose", rest: "rather mauve", bare: false }],
  ["", { _tag: "Nothing" }],
  ["/quit", { _tag: "Quit" }]
])("%j is understood", (line, asked) => expect(parse(line)).toMatchObject(asked))

it.each([
  ["", ["c1", "c2"], { callId: "c1", reason: "" }],
  ["c2 because", ["c1", "c2"], { callId: "c2", reason: "because" }],
  ["because it is", ["c1", "c2"], { callId: "c1", reason: "because it is" }],
  ["c1 yes", ["c12", "c1"], { callId: "c1", reason: "yes" }],
  ["c why", ["c1", "c2"], { message: "c matches 2 waiting calls: c1, c2" }],
  ["", [], { message: "No call is waiting for an answer." }]
])("an answer of %j to %j", (rest, asking, is) => expect(answered(rest, asking)).toEqual(is))

it.each([
  ["2", ["2a-1", "2b-1"], { callId: "2a-1", reason: "2" }],
  ["2b-1 1", ["2a-1", "2b-1"], { callId: "2b-1", reason: " 1" }],
  ["2", [], { message: "No question is waiting for an answer." }]
])("a choice of %j to %j", (rest, asking, is) => expect(chosen(rest, asking)).toEqual(is))

const key = (name: string, input?: string, ctrl = false): Terminal.UserInput => ({
  input: Option.fromUndefinedOr(input),
  key: { name, ctrl, meta: false, shift: false }
})
const typed = (text: string) => Array.from(text, (char) => key(char === "\r" ? "return" : char, char))
const pressed = (keys: ReadonlyArray<Terminal.UserInput>) => {
  let editing: Editing = empty
  const lines: Array<string> = []
  for (const each of keys) {
    const next = press(editing, each)
    if (next._tag === "Quit") return { lines, editing, quit: true }
    if (next._tag === "Enter") lines.push(next.line)
    editing = next.editing
  }
  return { lines, editing, quit: false }
}

describe("the line that is typed", () => {
  it.each([
    ["text", [...typed("hello\r")], ["hello"]],
    ["a slip", [...typed("hellp"), key("backspace"), ...typed("o\r")], ["hello"]],
    ["in the middle", [...typed("ho"), key("left"), ...typed("ell"), key("end"), ...typed("!\r")], ["hello!"]],
    ["a word too many", [...typed("one two"), key("w", "\u0017", true), ...typed("three\r")], ["one three"]],
    ["all of it", [...typed("one two"), key("u", "\u0015", true), ...typed("x\r")], ["x"]],
    ["the last one again", [...typed("one\r"), key("up"), ...typed("!\r")], ["one", "one!"]],
    [
      "pasted lines are one text, sent by a key",
      [key("paste-start"), ...typed("a\rb"), key("paste-end"), ...typed("\r")],
      ["a\nb"]
    ],
    ["controls are no text", [key("escape", "\u001b"), key("x", "\u0018", true), ...typed("a\r")], ["a"]]
  ])("%s", (_, keys, lines) => expect(pressed(keys).lines).toEqual(lines))

  it("Ctrl-C ends it; Ctrl-D only where nothing is typed", () => {
    expect(pressed([...typed("x"), key("c", "\u0003", true)]).quit).toBe(true)
    expect(pressed([key("d", "\u0004", true)]).quit).toBe(true)
    expect(pressed([...typed("x"), key("d", "\u0004", true)]).quit).toBe(false)
  })

  it("what does not fit is out of sight, the cursor never is", () => {
    const editing = pressed(typed("0123456789")).editing
    expect(shown(editing, 5)).toEqual({ text: "6789", column: 4 })
    expect(shown({ ...editing, cursor: 0 }, 5)).toEqual({ text: "0123", column: 0 })
    expect(shown(pressed([key("paste-start"), ...typed("日本\u202e\r")]).editing, 20)).toEqual({
      text: "日本·⏎",
      column: 6
    })
  })

  it("no row that is redrawn is as wide as the terminal", () => {
    const editing = pressed(typed("x".repeat(200))).editing
    const frame = compose(["a line"], { partial: "y".repeat(300), editing, columns: 40 }, "builder> ", true)
    const rows = stripVTControlCharacters(frame).replace(/^\r/, "").split("\r\n")
    expect(rows[0]).toBe("a line")
    for (const row of rows) expect(row.length).toBeLessThan(40)
    expect(tailOf("short", 40)).toBe("short")
    expect(tailOf("0123456789", 5)).toBe("…6789")
  })
})

describe("agentd attach", () => {
  it.live("prints plain lines off a terminal, takes piped lines where --stdin says so, and ends with /quit", () =>
    Effect.gen(function* () {
      const world = makeWorld({ calls: [callInfo(), callInfo({ callId: "02other", agent: "other" })] })
      const { append, state } = yield* serve(world, [
        turn("t1"),
        completed("t1", "earlier"),
        turn("t2", `look ${EVIL}`),
        delta("t2", "half a li")
      ])
      const { child, ended, out } = yield* launch(["--state", state, "attach", "builder", "--stdin"], { input: null })
      yield* eventually(() => out().includes("look"))
      yield* append(delta("t2", "ne\n"), draft("agent.ready", { _tag: "init_complete" }, {}, "agent/other"))
      yield* eventually(() => out().includes("half a line\n"))
      child.stdin.write("hello\n/deny not now\n/steer left\n/what\n")
      yield* eventually(() => out().includes("There is no command /what"))
      yield* append(completed("t2", "half a line\n"))
      yield* eventually(() => out().includes("the turn is over"))
      child.stdin.write("/quit\n")
      expect(yield* ended).toMatchObject({ code: 0, err: "" })
      expect(out()).not.toMatch(/[^\n\P{Cc}]|\u202e/u)
      expect(out().match(/a turn begins/g)).toHaveLength(2)
      expect(world.commands).toMatchObject([
        ["send", "web/builder", { text: "hello", how: "queue" }],
        ["answerCall", "01call000000000000000000aa", { behavior: "deny", reason: "not now" }],
        ["send", "web/builder", { text: "left", how: "steer" }]
      ])
    })
  )

  it.live("the command in a refusal names the state directory", () =>
    Effect.gen(function* () {
      const world = makeWorld({ calls: [callInfo()] })
      const { state } = yield* serve(world, [turn("t1")])
      const { child, ended, out } = yield* launch(["--state", state, "attach", "builder", "--stdin"], { input: null })
      child.stdin.write("/approve\n")
      yield* eventually(() => out().includes("type the command again"))
      world.calls[0] = callInfo({ arguments: '{"command":"true"}' })
      child.stdin.write("/approve\n")
      yield* eventually(() => out().includes("→"))
      expect(out()).toContain(`→ See its current content: agentd --state ${state} approve 01call`)
      child.stdin.write("/quit\n")
      expect(yield* ended).toMatchObject({ code: 0 })
    })
  )

  it.live("what is typed while the daemon is away is kept in its order, and sent once when it is back", () =>
    Effect.gen(function* () {
      const world = makeWorld()
      const state = yield* folder
      const outer = yield* Effect.scope
      const drafts = [turn("t1"), completed("t1", "earlier")]
      const attached = yield* Effect.scoped(
        Effect.gen(function* () {
          yield* serveAt(state, world, drafts)
          const args = ["--state", state, "attach", "builder", "--stdin"]
          const launched = yield* Scope.provide(launch(args, { input: null }), outer)
          yield* eventually(() => launched.out().includes("the turn is over"))
          return launched
        })
      )
      const { child, ended, out } = attached
      yield* eventually(() => out().includes("when the daemon is back"))
      child.stdin.write("one\n/interrupt\ntwo\n")
      yield* eventually(() => out().match(/The message is queued, and sent when the daemon is back/g)?.length === 2)
      expect(out()).toMatch(/No daemon is running/)
      expect(world.commands).toEqual([])
      yield* serveAt(state, world, drafts)
      yield* eventually(() => world.commands.length === 2)
      expect(world.commands).toMatchObject([
        ["send", "web/builder", { text: "one" }],
        ["send", "web/builder", { text: "two" }]
      ])
      child.stdin.write("/quit\n")
      expect((yield* ended).code).toBe(0)
      expect(out()).not.toContain("Not sent")
    })
  )

  it.live("standard input is left alone unless it is said to be input", () =>
    Effect.gen(function* () {
      const world = makeWorld()
      const { append, state } = yield* serve(world, [turn("t1")])
      const { child, ended, out } = yield* launch(["--state", state, "attach", "builder"], { input: "hello\n/quit\n" })
      yield* eventually(() => out().includes("a turn begins"))
      yield* append(completed("t1", "done"))
      yield* eventually(() => out().includes("the turn is over"))
      child.kill("SIGINT")
      expect((yield* ended).code).toBe(130)
      expect(world.commands).toEqual([])
    })
  )
})
