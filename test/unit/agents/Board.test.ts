import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import * as AgentView from "../../../src/agents/run/AgentView.ts"
import { LiveRun } from "../../../src/agents/run/LiveRun.ts"
import * as Inbox from "../../../src/agents/machines/Inbox.ts"
import { AgentConfig } from "../../../src/config/AgentConfig.ts"
import { evolve, type Snapshot } from "../../../src/core/event-actor/StateMachine.ts"
import type { CallInfo } from "../../../src/domain/Messages.ts"
import * as TurnMachine from "../../../src/agents/machines/TurnMachine.ts"
import * as WorkerMachine from "../../../src/agents/machines/WorkerMachine.ts"

const config = (more: object = {}): AgentConfig =>
  Result.getOrThrow(
    Schema.decodeUnknownResult(AgentConfig)({
      backend: { type: "command", argv: ["agent"] },
      minRunInterval: "10 seconds",
      ...more
    })
  )

type Snap = Snapshot<WorkerMachine.State, WorkerMachine.Data>

/** Where the events lead; the n-th rune came n seconds after the first. */
const after = (events: ReadonlyArray<WorkerMachine.Event>, options: WorkerMachine.Options = {}): Snap => {
  let snapshot: Snap = { state: "Initializing", data: WorkerMachine.initial(options), entered: 1, seq: 1, at: 0 }
  events.forEach((event, index) => {
    snapshot = evolve(WorkerMachine.Worker, snapshot, {
      eventId: index + 2,
      seq: index + 2,
      at: (index + 1) * 1000,
      payload: { event }
    })
  })
  return snapshot
}

const turn = (state: TurnMachine.State, data: Partial<TurnMachine.Data> = {}) => ({
  state,
  data: { ...TurnMachine.initial(), ...data },
  entered: 0,
  seq: 0,
  at: 0
})

const row = (worker: Snap | undefined, more: Partial<AgentView.Row> = {}) =>
  AgentView.row({
    conversation: "c",
    project: "shop",
    agent: "a",
    config: config(),
    worker,
    turn: turn("idle"),
    calls: [],
    inbox: Inbox.initial,
    broken: undefined,
    now: 4000,
    ...more
  })

const message = { messageId: "m1", from: "ada", text: "t", urgent: false, at: 1 }
const place: WorkerMachine.Event = { _tag: "WorktreeReady", cwd: "/w", branch: "agentd/a" }
const prompt: WorkerMachine.Event = { _tag: "PromptReady", prompt: "p", runId: "r1", messageIds: ["m1"], at: 2000 }
const started: WorkerMachine.Event = { _tag: "SessionStarted", runId: "r1", seq: 1, pid: 7 }
const ended = (outcome: Extract<WorkerMachine.Event, { _tag: "SessionExited" }>["outcome"]): WorkerMachine.Event => ({
  _tag: "SessionExited",
  runId: "r1",
  outcome
})
const urgent: WorkerMachine.Event = { _tag: "UrgentMessage", messageId: "m2" }
const running = [place, prompt, started]

describe("Board", () => {
  const details: { readonly [s in WorkerMachine.State]: readonly [ReadonlyArray<WorkerMachine.Event>, string] } = {
    Initializing: [[], "prepares its working folder"],
    BuildingPrompt: [[place], "waits for a message"],
    Spawning: [[place, prompt], "starts run 1"],
    Running: [running, "waits for a message"],
    Interrupting: [[...running, urgent], "ends its run for what is urgent"],
    SessionComplete: [[...running, ended({ _tag: "Success" })], "has finished a run successfully"],
    CoolingDown: [[...running, ended({ _tag: "Error", detail: "exit code 3\nmore" })], "after: exit code 3"],
    Stopped: [[...running, { _tag: "OperatorStop", by: "ada" }], "stopped by ada"]
  }
  for (const [state, [events, detail]] of Object.entries(details)) {
    it(`says of ${state}: ${detail}`, () => {
      const found = row(after(events))
      assert.deepStrictEqual([found.state, found.detail], [state, detail])
      assert.strictEqual(found.restsOn, events.length + 1, "the rune that entered the state")
      assert.strictEqual(found.since, events.length * 1000)
    })
  }

  it("names run and process while there are some, and none of an agent that has stopped", () => {
    const lacking = row(after(running), { lacks: ["the MCP server records"] })
    assert.match(lacking.detail, /^waits for a message; without the MCP server records$/)
    const moded = (isUnasked: boolean) => row(after(running), { mode: { id: "auto", isUnasked } }).detail
    assert.strictEqual(moded(false), "waits for a message (mode auto)")
    assert.strictEqual(moded(true), "waits for a message (mode auto: calls run without approval)")
    const alive = row(after(running))
    assert.deepStrictEqual([alive.runId, alive.pid], ["r1", 7])
    const stopped = row(after([...running, { _tag: "OperatorStop", by: "ada" }]))
    assert.deepStrictEqual([stopped.runId, stopped.pid], [null, null])
  })

  it("an agent that was never started, and one whose log does not fold, are stopped and say so", () => {
    const fresh = row(undefined)
    assert.deepStrictEqual([fresh.state, fresh.detail, fresh.restsOn], ["Stopped", "was never started", 0])
    const broken = row(after(running), { broken: "rune 9 is illegal" })
    assert.deepStrictEqual([broken.state, broken.detail], ["Stopped", "its log is inconsistent: rune 9 is illegal"])
    assert.strictEqual(broken.pid, null)
  })

  const streaming = turn("streaming", { turnId: "r1" })

  it("a run whose program tries again says so; one of which nothing is heard, that", () => {
    const notice = "the API failed (529 overloaded); try 2 of 10 follows in 4 s"
    const trying = row(after(running), { turn: streaming, heard: { at: 3_000, notice } })
    assert.strictEqual(trying.detail, notice)
    const heard = { at: 4_000 }
    assert.strictEqual(row(after(running), { turn: streaming, heard, now: 33_000 }).detail, "runs its command")
    const claude = config({ backend: { type: "claude" } })
    assert.strictEqual(row(after(running), { config: claude, turn: streaming, heard, now: 33_000 }).detail, "thinks")
    const line = `All tests pass.  ${"x".repeat(200)}`
    assert.match(row(after(running), { turn: streaming, heard, line, now: 33_000 }).detail, /^All tests pass. x{144}…$/)
    const silent = row(after(running), { turn: streaming, heard, now: 49_000 })
    assert.strictEqual(silent.detail, "no output for 45 s")
  })

  it("the newest whole line of what a run says is shown, else its newest sentence; none of the turn before", () => {
    const live = new LiveRun()
    const lines = ["I look", " at the cart. Then", " I test it.\n", "It", " fails: exit code 1\n\n", "Now"].map(
      (text) => {
        live.show(text)
        return live.line
      }
    )
    const [cart, cut] = ["I look at the cart.", "I look at the cart. Then I test it."]
    const fails = "It fails: exit code 1"
    assert.deepStrictEqual(lines, [undefined, cart, cut, cut, fails, fails])
    live.show("x".repeat(10_000))
    assert.isUndefined(live.line)
    live.show(` of it. I go on. ${"y".repeat(380)}`)
    assert.strictEqual(live.line, "I go on.", "what is cut begins at a whole sentence")
    live.show("\nend\n")
    live.pause()
    assert.isUndefined(live.line)
  })

  it("what waits for its provider says so, and until when; what has nothing to ask does not wait", () => {
    const trouble = {
      provider: "anthropic",
      account: "login",
      state: "Unavailable",
      since: 1_000,
      until: 9_000,
      message: "529 overloaded",
      restsOn: 7
    } as const
    const waiting = row(after([place]), { trouble, inbox: { ...Inbox.initial, waiting: [message] } })
    assert.strictEqual(waiting.detail, "anthropic (login) is unavailable: 529 overloaded")
    assert.strictEqual(waiting.nextAt, 9_000)
    const limited = row(after(running), {
      trouble: { ...trouble, state: "LimitedUntil" },
      inbox: { ...Inbox.initial, waiting: [message] }
    })
    assert.include(limited.detail, "has reached its limit")
    assert.strictEqual(row(after([place]), { trouble }).detail, "waits for a message")
    assert.strictEqual(row(after(running), { trouble, turn: streaming }).detail, "runs its command")
  })

  it("a fatal stop gives its first line as the reason", () => {
    const fatal = row(after([...running, ended({ _tag: "Fatal", detail: "no key\nat all", remedy: "log in" })]))
    assert.deepStrictEqual([fatal.state, fatal.detail], ["Stopped", "no key"])
  })

  it("says when a cool-down is over", () => {
    const cooling = after([...running, ended({ _tag: "Error", detail: "x" })])
    assert.strictEqual(row(cooling).nextAt, cooling.at + 2000)
  })

  it("cools down at least as long as its provider is limited", () => {
    const limited = ended({ _tag: "Uncounted", reason: "quota" })
    const cooling = after([...running, limited])
    const trouble = {
      provider: "openai",
      account: "login",
      state: "LimitedUntil",
      since: 1_000,
      until: cooling.at + 60_000,
      message: "429",
      restsOn: 7
    } as const
    assert.strictEqual(row(cooling, { trouble }).nextAt, trouble.until)
    assert.strictEqual(row(cooling, { trouble: { ...trouble, until: 0 } }).nextAt, cooling.at + 2000)
  })

  it("waits for its next run when it has work of any kind, else for a message", () => {
    const resting = after([...running, ended({ _tag: "Error", detail: "x" }), { _tag: "BackoffElapsed" }])
    const due = 12_000
    assert.strictEqual(row(resting).nextAt, null)
    for (const more of [
      { inbox: { ...Inbox.initial, waiting: [{ ...message, messageId: "m9" }] } },
      { turn: turn("idle", { messageIds: ["m1"], unfinished: ["m1"] }) },
      { config: config({ mode: "loop", prompt: "x" }) }
    ]) {
      const found = row(resting, { config: config(), ...more })
      assert.deepStrictEqual([found.nextAt, found.detail], [due, "waits for its next run"])
    }
    assert.strictEqual(
      row(resting, { inbox: { ...Inbox.initial, carried: [{ ...message, messageId: "done" }] } }).nextAt,
      null,
      "what a run has finished is no work"
    )
  })

  it("says of a run what its turn is about, and first what it asks a person for", () => {
    const call: CallInfo = {
      callId: "c-1",
      conversation: "c",
      project: "shop",
      agent: "a",
      turnId: "t",
      tool: "shell",
      arguments: '{"command":"npm test"}',
      state: "executing",
      since: 1,
      reason: null,
      until: null,
      restsOn: 1
    }
    const detail = (state: TurnMachine.State, calls: ReadonlyArray<CallInfo> = []) =>
      row(after(running), { turn: turn(state), calls }).detail
    assert.strictEqual(detail("streaming"), "runs its command")
    assert.strictEqual(detail("tool_executing", [call]), "runs npm test")
    assert.strictEqual(detail("tool_executing", [call, { ...call, tool: "read" }]), "runs npm test and 1 more")
    assert.strictEqual(
      detail("tool_executing", [{ ...call, state: "awaiting_approval" }]),
      "asks for shell: agentd approve c-1"
    )
    assert.strictEqual(detail("interrupted"), "ends its turn")
  })

  describe("since when its word is true", () => {
    const call = (callId: string, since: number, state: CallInfo["state"] = "awaiting_approval"): CallInfo => ({
      callId,
      conversation: "c",
      project: "shop",
      agent: "a",
      turnId: "r1",
      tool: "shell",
      arguments: "{}",
      state,
      since,
      reason: "it writes",
      until: null,
      restsOn: 1
    })
    const since = (worker: Snap | undefined, more: Partial<AgentView.Row> = {}) => {
      const { since: at, word } = row(worker, { now: 90_000, ...more })
      return [word, at]
    }
    const at = (state: TurnMachine.State, moved: number, data: Partial<TurnMachine.Data> = {}) => ({
      ...turn(state, data),
      at: moved
    })
    const executing = at("tool_executing", 9_000, { startedAt: 8_000 })

    it("a person is asked: the oldest of what asks", () => {
      const calls = [call("1", 60_000), call("2", 20_000), call("3", 10_000, "executing")]
      assert.deepStrictEqual(since(after(running), { turn: executing, calls }), ["needs you", 20_000])
      const inbox = { ...Inbox.initial, questions: [{ eventId: 1, question: "?", at: 15_000 }] }
      assert.deepStrictEqual(since(after(running), { turn: executing, calls, inbox }), ["needs you", 15_000])
      const end = { turnId: "t", errorType: "refusal", reason: "no", at: 7_000, message }
      const dropped = { ...Inbox.initial, dropped: { dropped: [end, { ...end, at: 8_000 }], more: 0 } }
      assert.deepStrictEqual(since(after(running), { turn: at("idle", 8_000), inbox: dropped }), ["needs you", 7_000])
      const waiting = { ...Inbox.initial, waiting: [{ ...message, at: 30_000 }] }
      assert.deepStrictEqual(since(undefined, { inbox: waiting }), ["needs you", 30_000])
      const stopped = after([...running, { _tag: "OperatorStop", by: "ada" }])
      assert.deepStrictEqual(since(stopped, { inbox: waiting }), ["needs you", 30_000])
    })

    it("it works: since its turn began, or since a person answered", () => {
      const calls = [call("1", 60_000, "executing")]
      assert.deepStrictEqual(since(after(running), { turn: executing, calls }), ["working", 8_000])
      assert.deepStrictEqual(since(after(running), { turn: executing, answeredAt: 60_000 }), ["working", 60_000])
      assert.deepStrictEqual(since(after(running), { turn: executing, answeredAt: 5_000 }), ["working", 8_000])
    })

    it("it has something to do: since it came", () => {
      const waiting = { ...Inbox.initial, waiting: [{ ...message, at: 80_000 }] }
      const ready = after([place])
      assert.deepStrictEqual(since(ready, { inbox: waiting }), ["working", 80_000])
    })

    it("it rests: since its turn ended, or what it held was let go", () => {
      assert.deepStrictEqual(since(after(running), { turn: at("idle", 50_000) }), ["idle", 50_000])
      assert.deepStrictEqual(since(after(running), { turn: at("idle", 50_000), inboxAt: 70_000 }), ["idle", 70_000])
    })

    it("it waits or is paused: since the trouble, or since it had something to do", () => {
      const trouble = {
        provider: "anthropic",
        account: "login",
        state: "Unavailable",
        since: 40_000,
        until: 95_000,
        message: "529",
        restsOn: 7
      } as const
      const inbox = (moved: number) => ({ ...Inbox.initial, waiting: [{ ...message, at: moved }] })
      const idle = at("idle", 20_000)
      assert.deepStrictEqual(since(after(running), { turn: idle, trouble, inbox: inbox(30_000) }), ["waiting", 40_000])
      assert.deepStrictEqual(since(after(running), { turn: idle, trouble, inbox: inbox(50_000) }), ["waiting", 50_000])
      const home = { conversation: "c", state: "paused", since: 60_000 } as const
      assert.deepStrictEqual(since(after(running), { turn: idle, home }), ["paused", 60_000])
    })
  })

  it("an agent that a person stopped is stopped, and says who did it; one whose parent ended it is done", () => {
    const stop = (by: string) => row(after([...running, { _tag: "OperatorStop", by }]))
    assert.deepStrictEqual([stop("ada").word, stop("ada").detail], ["stopped", "stopped by ada"])
    assert.strictEqual(stop("agent:lead").word, "done")
  })

  it("a program that asks its model again by itself is retrying: what, and since when", () => {
    const now = new Date(2026, 10, 28, 14, 9).getTime()
    const retries = {
      since: new Date(2026, 10, 28, 14, 2).getTime(),
      text: "the API failed (529 overloaded); try 7 of 10"
    }
    const found = row(after(running), { turn: streaming, retries, now })
    assert.deepStrictEqual([found.word, found.since], ["retrying", retries.since])
    assert.strictEqual(found.detail, "retries by itself since 14:02: the API failed (529 overloaded); try 7 of 10")
    assert.strictEqual(row(after(running), { retries, now }).word, "idle", "with its turn it is over")
  })
})
