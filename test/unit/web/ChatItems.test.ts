/** A conversation as its runes tell it, a patch as its lines: without a browser. */
import { assert, describe, it } from "@effect/vitest"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import { type Comment, filesOf, messageOf } from "../../../src/web/FilePatch.ts"
import { type Item, ChatItems } from "../../../src/web/ChatItems.ts"

let eventId = 0
const rune = (kind: string, payload: Rune["payload"], at = 0): Rune => ({
  format: 2,
  eventId: ++eventId,
  seq: eventId,
  stream: "shop",
  at,
  kind,
  actor: "turn/builder",
  from: null,
  to: null,
  trigger: null,
  cause: null,
  moves: [],
  visibility: "public",
  payload
})
const received = (messageId: string, more: object = {}) =>
  rune("inbox.received", { event: { _tag: "Received", message: { messageId, from: "ada", text: "go", ...more } } })
const started = (...messageIds: ReadonlyArray<string>) =>
  rune("turn.started", { turn_id: "t", event: { _tag: "start_turn", messageIds } })
const delta = (content: string) => rune("turn.assistant_delta", { turn_id: "t", content })
const completed = (final_output: string) => rune("turn.completed", { turn_id: "t", final_output, event: {} })
const call = (call_id: string, at = 0) =>
  rune(
    "tool.call",
    {
      call_id,
      tool_name: "shell",
      arguments: { command: "ls" },
      event: { _tag: "call_requested", turnId: "t", callId: call_id, tool: "shell", input: { command: "ls" } }
    },
    at
  )
const result = (call_id: string, at: number, more: object) =>
  rune("tool.result", { call_id, event: { _tag: "exec_failed" }, ...more }, at)

const talkOf = (...runes: ReadonlyArray<Rune>): ChatItems => {
  const talk = new ChatItems()
  for (const one of runes) talk.feed(one)
  return talk
}
const brief = (item: Item): string =>
  item.is === "said"
    ? `${item.by}:${item.text}${item.isWaiting ? " waits" : ""}${item.isOpen ? " …" : ""}`
    : item.is === "tool"
      ? `${item.tool} ${item.status} ${item.output}`
      : item.text
const told = (...runes: ReadonlyArray<Rune>) => talkOf(...runes).items.map(brief)

describe("a conversation", () => {
  it("a message waits until a turn carries it; an answer that streamed is told once", () => {
    assert.deepStrictEqual(told(received("m")), ["ada:go waits"])
    assert.deepStrictEqual(told(received("m"), started("m"), delta("It "), delta("works")), ["ada:go", ":It works …"])
    const all = [received("m"), started("m"), delta("It "), delta("works"), completed("It works")]
    assert.deepStrictEqual(told(...all), ["ada:go", ":It works"])
    assert.deepStrictEqual(told(received("m"), started("m"), completed("It works")), ["ada:go", ":It works"])
  })

  it("a call stands where it was made, and words after it are new ones", () => {
    const runes = [
      started(),
      delta("I look"),
      call("c", 10),
      rune("tool.progress", { call_id: "c", chunk: "a", event: { _tag: "exec_progress", stream: "stdout" } }),
      result("c", 30, { status: "error", error: "no such file" }),
      delta("It is gone")
    ]
    assert.deepStrictEqual(told(...runes), [":I look", "shell failed no such file", ":It is gone …"])
    const [, tool] = talkOf(...runes).items
    assert.strictEqual(tool?.is === "tool" ? tool.took : undefined, 20)
  })

  it("a call asks, is denied with its reason, or is let run by somebody", () => {
    const asks = [call("c"), rune("tool.approval_requested", { call_id: "c", event: { _tag: "approval_needed" } })]
    assert.deepStrictEqual(told(...asks), ["shell asks "])
    const denied = rune("tool.denied", { call_id: "c", reason: "not now", event: { _tag: "denied", approver: "ada" } })
    assert.deepStrictEqual(told(...asks, denied), ["shell denied not now"])
    assert.deepStrictEqual(
      told(...asks, rune("tool.approved", { call_id: "c", approver: "ada", event: { _tag: "approved" } })),
      ["shell running "]
    )
  })

  it("a question that its agent has taken back asks no more", () => {
    const asks = [call("c"), rune("tool.approval_requested", { call_id: "c", event: { _tag: "approval_needed" } })]
    const back = rune("tool.approval_withdrawn", { call_id: "c", event: { _tag: "approval_withdrawn" } })
    assert.deepStrictEqual(told(...asks), ["shell asks "])
    assert.deepStrictEqual(told(...asks, back), ["shell running "])
  })

  it("a rune of another form is left out, and what follows is told", () => {
    const strange = [
      rune("tool.call", { call_id: "c" }),
      rune("worker.moved", { event: null }),
      rune("turn.started", { a: 1 })
    ]
    assert.deepStrictEqual(told(...strange, received("m"), completed("It works")), ["ada:go waits", ":It works"])
  })

  it("a notice is no fault, and lost memory is one", () => {
    const items = talkOf(
      rune("run.notice", { runId: "r", text: "a model is used up" }),
      rune("run.memory_lost", { runId: "r", text: "it begins anew" })
    ).items
    assert.deepStrictEqual(
      items.map((item) => item.is === "note" && item.isBad),
      [false, true]
    )
  })

  it("what did not change is the same value", () => {
    const talk = talkOf(received("m"), started("m"), delta("a"))
    const [before] = talk.items
    talk.feed(delta("b"))
    assert.strictEqual(talk.items[0], before)
  })

  it("it holds so much, and the oldest goes", () => {
    const talk = new ChatItems()
    for (let n = 0; n < 2_500; n++) talk.feed(received(`m${n}`))
    assert.strictEqual(talk.items.length, 2_000)
    assert.strictEqual(talk.items[0]!.key, "m500")
  })

  it("runs have their end, their turns and what they spent", () => {
    const talk = talkOf(
      rune("worker.moved", { event: { _tag: "PromptReady", runId: "r1" } }, 1),
      started(),
      rune("agent.usage", { usd: 0.5, tokens: 100 }),
      rune(
        "worker.moved",
        { event: { _tag: "SessionExited", runId: "r1", outcome: { _tag: "Error", detail: "exit 3" } } },
        9
      ),
      rune("worker.moved", { event: { _tag: "PromptReady", runId: "r2" } }, 10)
    )
    assert.deepInclude(talk.runs[1], { id: "r1", began: 1, ended: 9, end: "exit 3", isBad: true, turns: 1, usd: 0.5 })
    assert.deepInclude(talk.runs[0], { id: "r2", turns: 0 })
    assert.notProperty(talk.runs[0], "ended")
  })
})

const PATCH = `diff --git a/a b.ts b/a b.ts
index 1..2 100644
--- a/a b.ts\t
+++ b/a b.ts\t
@@ -3,3 +3,4 @@ const x
 same
-gone
+come
+and more
 end
\\ No newline at end of file
diff --git a/old.txt b/old.txt
deleted file mode 100644
index 1..0
--- a/old.txt
+++ /dev/null
@@ -1 +0,0 @@
--- a/line that looks like a head
diff --git a/x.png b/x.png
new file mode 100644
Binary files /dev/null and b/x.png differ
`

describe("a patch", () => {
  it("has its files, and each line the number under which it is found", () => {
    const [one, two, three] = filesOf(PATCH)
    assert.strictEqual(one!.path, "a b.ts")
    assert.deepStrictEqual(
      one!.lines.map(({ number, sign, text }) => `${number}${sign}${text}`),
      ["0@const x", "3 same", "4-gone", "4+come", "5+and more", "6 end"]
    )
    assert.strictEqual(two!.path, "old.txt")
    assert.deepStrictEqual(two!.lines[1], { sign: "-", text: "-- a/line that looks like a head", number: 1 })
    assert.deepStrictEqual(three, { path: "x.png", lines: [] })
  })

  it("comments are one message, each with its file, its line and the line itself", () => {
    const comments: ReadonlyArray<Comment> = [
      { path: "a.ts", line: { sign: "+", text: "come", number: 4 }, text: "why?" },
      { path: "a.ts", line: { sign: "-", text: "gone", number: 4 }, text: "keep it" }
    ]
    assert.strictEqual(
      messageOf(comments),
      "2 comments on your changes:\n\na.ts:4\n    +come\nwhy?\n\na.ts:4 (as it was)\n    -gone\nkeep it"
    )
  })
})
