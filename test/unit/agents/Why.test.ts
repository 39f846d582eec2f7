import { describe, expect, it } from "@effect/vitest"
import { span, why } from "../../../src/projects/service/Why.ts"
import type { AgentInfo, CallInfo, ConversationInfo } from "../../../src/domain/Messages.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import type { Event } from "../../../src/agents/machines/WorkerMachine.ts"

const T0 = Date.parse("2026-11-20T09:12:00Z")

const agent = (over: Partial<AgentInfo> = {}): AgentInfo => ({
  conversation: "web-1a2b3c4d",
  project: "web",
  agent: "builder",
  backend: "command",
  mode: "inbox",
  role: "",
  model: "",
  word: "failed",
  reason: null,
  state: "Stopped",
  since: T0,
  restsOn: 9,
  detail: "",
  nextAt: null,
  runId: null,
  pid: null,
  sessionSeq: 7,
  consecutiveErrors: 0,
  totalErrors: 0,
  maxConsecutiveErrors: 5,
  maxTotalErrors: 20,
  inbox: 0,
  cwd: "/srv/web",
  branch: null,
  ...over
})

/** Moves, a second apart. */
const moves = (
  ...steps: ReadonlyArray<readonly [from: string, to: string, event: Event, counts?: { row: number; all: number }]>
): ReadonlyArray<Rune> =>
  steps.map(([from, to, event, counts], index) => ({
    format: 2,
    eventId: index + 1,
    seq: index + 1,
    moves: [],
    stream: "web-1a2b3c4d",
    at: T0 + index * 1000,
    kind: "worker.moved",
    actor: "worker/builder",
    from,
    to,
    trigger: event._tag,
    cause: null,
    visibility: "internal",
    payload: {
      event,
      sessionSeq: 7,
      ...(counts === undefined ? {} : { consecutiveErrors: counts.row, totalErrors: counts.all })
    },
    hash: ""
  }))

const begun = (eventId: number): Rune => ({
  ...moves(["", "", { _tag: "BackoffElapsed" }])[0]!,
  eventId,
  kind: "worker.started",
  from: null,
  to: "Initializing",
  trigger: null,
  payload: { by: "ada", incarnation: 2, initial: {} }
})

const failed = (detail: string): Event => ({ _tag: "SessionExited", runId: "r", outcome: { _tag: "Error", detail } })
const texts = (runes: ReadonlyArray<Rune>, info: AgentInfo) => why(runes, info).lines.map((line) => line.text)

describe("a run that failed", () => {
  it("is told with its code, its last line and both counts, then the wait", () => {
    const runes = moves(
      ["Running", "CoolingDown", failed("exit code 3: no such file"), { row: 2, all: 2 }],
      ["CoolingDown", "BuildingPrompt", { _tag: "BackoffElapsed" }],
      ["BuildingPrompt", "Spawning", { _tag: "PromptReady", prompt: "p", runId: "r2", messageIds: [], at: T0 }]
    )
    const stretched = runes.map((rune, index) => ({ ...rune, at: index === 0 ? T0 : T0 + 4000 }))
    expect(texts(stretched, agent({ state: "Spawning" }))).toEqual([
      "run 7 ended with exit code 3: no such file (2nd error in a row of 5, 2 of 20 in total)",
      "retrying in 4 s",
      "a run is being started with its configured prompt"
    ])
  })

  it("and cools down now is told with the time that is left from the board", () => {
    const runes = moves(["Spawning", "CoolingDown", failed("no such program"), { row: 1, all: 1 }])
    expect(texts(runes, agent({ state: "CoolingDown", nextAt: T0 + 90_000, detail: "after: …" }))).toEqual([
      "run 7 failed: no such program (1st error in a row of 5, 1 of 20 in total)",
      "retrying in 1 min 30 s"
    ])
  })

  it("is told with what it has left behind; what a run said in its course is told while it runs", () => {
    const [end] = moves(["Running", "CoolingDown", failed("exit code 3"), { row: 1, all: 1 }])
    const notice = (eventId: number, text: string): Rune => ({
      ...end!,
      eventId,
      kind: "run.notice",
      from: null,
      to: null,
      trigger: null,
      payload: { runId: "r", text }
    })
    const runes = [notice(3, "is tired"), { ...end!, eventId: 4 }, notice(5, "it has left a set-gid file")]
    expect(texts(runes, agent({ state: "CoolingDown", nextAt: T0 + 5_000 }))).toEqual([
      "run 7 ended with exit code 3 (1st error in a row of 5, 1 of 20 in total)",
      "retrying in 5 s",
      "after its run: it has left a set-gid file"
    ])
  })

  it("for the last time is told as the end, with what to do", () => {
    const runes = moves(["Spawning", "Stopped", failed("exit code 1: boom"), { row: 5, all: 9 }])
    expect(why(runes, agent())).toMatchObject({
      lines: [{ eventId: 1, at: T0 }, { text: "stopped permanently: 5 errors in a row" }],
      advice: "Fix the last error. Start it again: agentd start web/builder"
    })
  })
})

const quota = { _tag: "Uncounted", reason: "quota" } as const

describe("the chain", () => {
  it("says of a run that has the number of a failed one that it started again", () => {
    const runes = moves(
      ["Spawning", "Running", { _tag: "SessionStarted", runId: "r", seq: 7, pid: 41 }],
      ["Running", "CoolingDown", { _tag: "SessionExited", runId: "r", outcome: quota }, { row: 0, all: 0 }],
      ["CoolingDown", "BuildingPrompt", { _tag: "BackoffElapsed" }],
      ["Spawning", "Running", { _tag: "SessionStarted", runId: "s", seq: 7, pid: 42 }],
      ["Running", "CoolingDown", failed("exit code 3"), { row: 1, all: 1 }],
      ["CoolingDown", "BuildingPrompt", { _tag: "BackoffElapsed" }],
      ["Spawning", "Running", { _tag: "SessionStarted", runId: "t", seq: 7, pid: 43 }]
    )
    expect(texts(runes, agent({ state: "Running" })).filter((text) => text.includes("started"))).toEqual([
      "run 7 started (pid 41)",
      "run 7 started again (pid 42)",
      "run 7 started again (pid 43)"
    ])
  })

  it("begins at the last success", () => {
    const runes = moves(
      ["Running", "CoolingDown", failed("exit code 1: old"), { row: 1, all: 1 }],
      ["Running", "SessionComplete", { _tag: "SessionExited", runId: "r", outcome: { _tag: "Success" } }],
      ["SessionComplete", "BuildingPrompt", { _tag: "WorktreeReady", cwd: "/srv/web" }],
      ["Spawning", "Running", { _tag: "SessionStarted", runId: "r", seq: 7, pid: 42 }]
    )
    expect(texts(runes, agent({ state: "Running", detail: "run 7" }))).toEqual([
      "run 7 ended well",
      "run 7 started (pid 42)",
      "now: run 7"
    ])
  })

  it("begins where the agent was started again, and says by whom", () => {
    const runes = [...moves(["Running", "Stopped", { _tag: "OperatorStop", by: "bob" }]), begun(2)]
    expect(texts(runes, agent({ state: "Initializing", detail: "prepares where it works" }))).toEqual([
      "started by ada",
      "now: prepares where it works"
    ])
  })

  it("is cut at its old end when it is long, and says how much is left out", () => {
    const runes = moves(
      ...Array.from(
        { length: 60 },
        (_, index) => ["Running", "CoolingDown", failed(`exit code ${index}`), { row: 1, all: index }] as const
      )
    )
    const lines = texts(runes, agent({ state: "CoolingDown", nextAt: null, maxTotalErrors: 100 }))
    expect(lines).toHaveLength(25)
    expect(lines[0]).toBe("… 96 earlier steps: agentd log --agent builder")
    expect(lines.at(-2)).toContain("exit code 59")
  })

  it("of an agent that never moved is empty", () => {
    expect(why([], agent({ state: "Stopped" }))).toEqual({
      lines: [],
      advice: "Start it again: agentd start web/builder"
    })
  })
})

describe("advice", () => {
  it("of a fatal error is the error's own remedy, then how to start", () => {
    const runes = moves([
      "Spawning",
      "Stopped",
      { _tag: "FatalError", message: "the worktree is dirty", remedy: "Commit or stash it." }
    ])
    expect(why(runes, agent())).toMatchObject({
      lines: [{ text: "cannot continue: the worktree is dirty" }],
      advice: "Commit or stash it. Start it again: agentd start web/builder"
    })
  })

  it("of a person's stop is only how to start", () => {
    const runes = moves(["Running", "Stopped", { _tag: "OperatorStop", by: "bob", reason: "lunch" }])
    expect(why(runes, agent())).toMatchObject({
      lines: [{ text: "stopped by bob: lunch" }],
      advice: "Start it again: agentd start web/builder"
    })
  })

  it("of one that has nothing to do is to give it something", () => {
    expect(why([], agent({ state: "BuildingPrompt", inbox: 0 })).advice).toContain("agentd send web/builder")
    expect(why([], agent({ state: "BuildingPrompt", inbox: 1 })).advice).toBeNull()
    // the message of a failed turn waits for the provider outside the inbox
    expect(why([], agent({ state: "BuildingPrompt", inbox: 0, reason: "limit" })).advice).toBeNull()
  })
})

/** Of another of its actors. */
const told = (eventId: number, kind: string, event: object): Rune => ({
  ...moves(["", "", { _tag: "BackoffElapsed" }])[0]!,
  eventId,
  kind,
  actor: kind.startsWith("turn.") ? "turn/builder" : "agent/builder",
  payload: kind.startsWith("turn.") ? { ...SAID, event } : { event }
})
/** Fields of a turn's kinds beside the event. */
const SAID = { turn_id: "t", agent_id: "builder", reason: "", error_type: "", message: null }
const start = (eventId: number, ...messageIds: ReadonlyArray<string>) =>
  told(eventId, "turn.started", {
    _tag: "start_turn",
    turnId: "t",
    agentId: "builder",
    input: "",
    source: "queue",
    messageIds,
    at: 1
  })
const turns = { backend: "claude", state: "Running", detail: "run 7" }

describe("the last turn", () => {
  it.each([
    [
      "turn.error",
      { _tag: "stream_error", turnId: "t", errorType: "server", message: "overloaded", retry: true },
      "the turn failed (server): overloaded; its work is queued again"
    ],
    [
      "turn.interrupted",
      { _tag: "interrupt", turnId: "t", by: "ada", reason: "interrupted by ada" },
      "the turn was interrupted: interrupted by ada; its work is dropped"
    ],
    ["turn.completed", { _tag: "response_done", turnId: "t", finalOutput: "done", usage: {} }, "the turn ended well"]
  ])("ended with %s: it is told with its beginning, each with its rune", (kind, event, text) => {
    const runes = [begun(1), start(2), start(5, "a", "b"), told(7, kind, event)]
    const { lines } = why(runes, agent(turns))
    expect(lines.map(({ eventId, text }) => [eventId, text])).toEqual([
      [1, "started by ada"],
      [5, "a turn began with 2 messages"],
      [7, text],
      [0, "now: run 7"]
    ])
  })

  it("ended without a call that nobody answered: that is told, and what to do, until a person has done something", () => {
    const end = { _tag: "response_done", turnId: "t", finalOutput: "", usage: {} } as const
    const text = "nobody answered within 10 min: shell: npm publish expired, and was denied"
    const expired: Rune = {
      ...told(6, "agent.bound_reached", end),
      actor: "inbox/builder",
      payload: { agent_id: "builder", text, call_id: "c1" }
    }
    const runes = [begun(1), start(5, "a"), expired, told(7, "turn.completed", end)]
    expect(texts(runes, agent(turns)).slice(1, 4)).toEqual([
      "a turn began with 1 message",
      text,
      "the turn ended, and nobody had answered 1 call"
    ])
    expect(why(runes, agent(turns)).advice).toBe(
      'Let it try again: agentd send web/builder "…"   or dismiss it: agentd dismiss web/builder'
    )
    const dismissed: Rune = {
      ...told(8, "inbox.dismissed", end),
      actor: "inbox/builder",
      payload: { event: { _tag: "Dismissed", messageIds: [], all: true, by: "ada" } }
    }
    expect(why([...runes, dismissed], agent(turns)).advice).toBeNull()
  })

  it("came later than the state that lasts: what is now is not told with an earlier time", () => {
    const end = { _tag: "response_done", turnId: "t", finalOutput: "", usage: {} }
    const { lines } = why([begun(1), start(5, "a"), told(7, "turn.completed", end)], agent({ ...turns, since: 3 }))
    expect(lines.at(-1)).toEqual({ eventId: 0, at: lines.at(-2)!.at, text: "now: run 7" })
  })

  it("its conversation was compacted: how, and by how much", () => {
    const compacted = (eventId: number, cut: number, summarised: number): Rune => ({
      ...told(eventId, "agent.compacted", { _tag: "finalize" } as never),
      payload: { run_id: "r", turn_id: "t", from: 190_000, to: 60_000, cut_results: cut, summarised }
    })
    expect(
      texts([begun(1), start(2, "a"), compacted(3, 12, 0), compacted(4, 1, 30)], agent(turns)).slice(2, 4)
    ).toEqual([
      "its conversation was compacted from about 190000 tokens to 60000: 12 older tool results were cut",
      "its conversation was compacted from about 190000 tokens to 60000: its older part was replaced by a summary"
    ])
  })

  it("of an earlier start, or of a run that is one turn, is left out", () => {
    expect(texts([start(1, "a"), begun(2)], agent(turns))).toEqual(["started by ada", "now: run 7"])
    expect(texts([begun(1), start(2, "a")], agent({ ...turns, backend: "command" }))).toEqual([
      "started by ada",
      "now: run 7"
    ])
  })
})

describe("what waits for a person", () => {
  const call: CallInfo = {
    callId: "c1-1",
    conversation: "web-1a2b3c4d",
    project: "web",
    agent: "builder",
    turnId: "t",
    tool: "shell",
    arguments: '{"command":"rm -r dist"}',
    state: "awaiting_approval",
    since: T0,
    reason: "it may have side effects",
    until: null,
    restsOn: 12
  }

  it("is told with its rune and the command that answers it", () => {
    const now = { calls: [call, { ...call, callId: "c1-2", state: "executing" as const }] }
    const { advice, lines } = why([begun(1)], agent({ ...turns, detail: "asks for shell" }), now)
    expect(lines.slice(1)).toEqual([
      {
        eventId: 12,
        at: T0,
        text: "waits for you: shell: rm -r dist (it may have side effects): approve c1-1"
      }
    ])
    expect(advice).toBe('Answer it: agentd approve c1-1, or agentd deny c1-1 --reason "why"')
    const several = false
    const asks = { ...call, questions: [{ question: "Which one?", options: [], several }] }
    expect(why([], agent(turns), { calls: [asks] })).toMatchObject({
      lines: [{ eventId: 12, text: "waits for you to choose: Which one?: answer c1-1" }],
      advice: "Choose: agentd answer c1-1"
    })
  })

  it("may be its whole conversation", () => {
    const conversation = {
      state: "suspended",
      detail: "suspended: the budget of usd is spent",
      restsOn: 20,
      since: T0,
      project: "web"
    } as ConversationInfo
    expect(why([], agent({ state: "BuildingPrompt", inbox: 1 }), { conversation })).toMatchObject({
      lines: [{ eventId: 20, text: "its conversation is suspended: the budget of usd is spent" }],
      advice: "Let it go on: agentd project resume web"
    })
  })
})

it("a spent budget is told with what was spent, and how to start again is said once", () => {
  const spent = told(3, "agent.budget_exhausted", {
    _tag: "budget_exhausted",
    resource: "tokens",
    spent: 120,
    limit: 100
  })
  const remedy = "Raise its budget in agentd.jsonc, or start it again with a fresh one: agentd start web/builder"
  const [stop] = moves(["Running", "Stopped", { _tag: "FatalError", message: "the budget of tokens is spent", remedy }])
  expect(why([begun(1), { ...stop!, eventId: 5 }, spent], agent({ backend: "claude" }))).toMatchObject({
    lines: [
      { eventId: 1 },
      { eventId: 3, text: "its budget of tokens is spent: 120 of 100" },
      { eventId: 5, text: "cannot continue: the budget of tokens is spent" }
    ],
    advice: remedy
  })
  const [other] = moves([
    "Running",
    "Stopped",
    { _tag: "FatalError", message: "the prompt is too long", remedy: "Shorten it, then start it again." }
  ])
  expect(why([other!], agent()).advice).toBe("Shorten it. Start it again: agentd start web/builder")
})

it("an uncounted end says why it does not count", () => {
  const runes = moves([
    "Running",
    "CoolingDown",
    { _tag: "SessionExited", runId: "r", outcome: { _tag: "Uncounted", reason: "quota", until: T0 + 3_600_000 } }
  ])
  expect(texts(runes, agent({ state: "CoolingDown", nextAt: T0 + 3_600_000 }))).toEqual([
    "run 7 ended: its quota is used up (not counted as an error)",
    "waiting for 1 h"
  ])
})

it("does not say how long it waited for its provider: the wait goes on after the cool-down", () => {
  const runes = moves(
    ["Running", "CoolingDown", { _tag: "SessionExited", runId: "r", outcome: quota }],
    ["CoolingDown", "BuildingPrompt", { _tag: "BackoffElapsed" }]
  )
  expect(texts(runes, agent({ state: "BuildingPrompt", detail: "openai (login) has reached its limit" }))).toEqual([
    "run 7 ended: its quota is used up (not counted as an error)",
    "waiting",
    "the wait after its run is over",
    "now: openai (login) has reached its limit"
  ])
})

it("a rune of a kind or event that it does not know is told by its move", () => {
  const [rune] = moves(["Running", "Stopped", { _tag: "OperatorStop", by: "x" }])
  const strange = { ...rune!, trigger: "Abducted", payload: { event: { _tag: "Abducted" } } }
  expect(texts([strange], agent())).toEqual(["worker.moved: Running → Stopped by Abducted"])
})

it.each([
  [1, "1st"],
  [2, "2nd"],
  [3, "3rd"],
  [4, "4th"],
  [11, "11th"],
  [12, "12th"],
  [13, "13th"],
  [21, "21st"],
  [112, "112th"]
])("%i is the %s error", (row, word) => {
  const runes = moves(["Running", "CoolingDown", failed("x"), { row, all: row }])
  expect(texts(runes, agent({ state: "CoolingDown" }))[0]).toContain(`(${word} error`)
})

it.each([
  [0, "0 ms"],
  [500, "500 ms"],
  [4000, "4 s"],
  [60_000, "1 min"],
  [90_000, "1 min 30 s"],
  [3_600_000, "1 h"],
  [7_500_000, "2 h 5 min"],
  [90_000_000, "1 d 1 h"]
])("%i ms are %s", (millis, text) => expect(span(millis)).toBe(text))
