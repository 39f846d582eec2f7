import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { branchesOf, type Snapshot, step } from "../../../src/core/event-actor/StateMachine.ts"
import { Event, Plate, type State, transcriptAhead } from "../../../src/plates/PlateMachine.ts"
import { type Data, initial } from "../../../src/plates/PlateState.ts"
import { walks } from "./laws.ts"
import { events, type SeedEvent, type Status, statuses, transition } from "./seeds/plate.ts"
import { plate } from "./subjects.ts"

type Stand = Pick<Snapshot<State, Data>, "state" | "data">

const at = 1_000
const sessionId = "s1"

const decode = Schema.decodeUnknownSync(Event)

/** The event as it is sent, with what every event has; the Schema drops what one of its tag has not. */
const sent = (event: { readonly _tag: string }, more: object = {}): Event =>
  decode({ at, asOf: at, sessionId, ...event, ...more })

const after = (events: ReadonlyArray<Event>, from: Stand = { state: "Starting", data: initial }): Stand =>
  events.reduce((stand, event) => {
    const result = step(Plate, stand.state, stand.data, event)
    return result._tag === "Moved" ? { state: result.state, data: result.data } : stand
  }, from)

const hook = (tag: string, more: object = {}): Event => sent({ _tag: `Hook${tag}` }, more)
const question = hook("PermissionRequest", { tool: "AskUserQuestion" })
const bash = (tag: string, callId = "c1", more: object = {}) => hook(tag, { tool: "Bash", callId, ...more })
const started = hook("SessionStart", { source: "startup" })
const prompted = hook("UserPromptSubmit")
const stopped = (...backgroundTasks: ReadonlyArray<string>) => hook("Stop", { backgroundTasks })
const exited = sent({ _tag: "ProcessExited" })

describe("fed the five events of /events and the recovery, a plate is the source's function", () => {
  const deviates = (state: State, event: SeedEvent) =>
    // The dead do not rise: what is late is stale.
    state === "Closed" && event._tag !== "SessionStart"

  it("has the source's statuses", () => assert.deepStrictEqual(Object.keys(Plate.states), [...statuses]))

  it("in every state that any events of any vocabulary lead to", () => {
    const seen = new Set<State>()
    const compared = walks({
      ...plate,
      holds: ({ data, state }: Snapshot<State, Data>) => {
        seen.add(state)
        const wrong = events
          .filter((event) => !data.forgotten && !deviates(state, event))
          .find(
            (event) =>
              after([sent(event, { asOf: Number.MAX_SAFE_INTEGER })], { state, data }).state !==
              transition(state, event)
          )
        return wrong === undefined || `the function for ${JSON.stringify(wrong)}`
      }
    })
    assert.strictEqual(compared._tag, "Passed", JSON.stringify(compared))
    assert.deepStrictEqual([...seen].toSorted(), [...statuses].toSorted())
  })

  it("over any sequence of them", () => {
    let status: Status = "Starting"
    let stand: Stand = { state: "Starting", data: initial }
    for (let i = 0; i < 2_000; i++) {
      const event = events[(i * i * 7 + i * 3) % events.length]!
      status = transition(status, event)
      stand = after([sent(event)], stand)
      assert.strictEqual(stand.state, status)
    }
  })
})

describe("settle", () => {
  it("is one list, shared by every cell that chooses by the sets", () => {
    const lists = new Set(
      Object.values(Plate.table).flatMap((row) =>
        Object.values(row).flatMap((cell) =>
          typeof cell !== "string" && branchesOf(cell).length > 1 ? [cell.then] : []
        )
      )
    )
    assert.strictEqual(lists.size, 1)
  })
})

describe("hooks add to the sets and take from them", () => {
  const cases: ReadonlyArray<readonly [string, ReadonlyArray<Event>, State]> = [
    ["a session's start shows an idle screen", [started], "Idle"],
    ["a prompt starts a turn", [started, prompted], "Running"],
    ["a stop ends it", [started, prompted, stopped()], "Idle"],
    ["a turn that failed", [started, prompted, hook("StopFailure", { error: "rate_limit" })], "Error"],
    ["a question waits for input", [started, prompted, question], "AwaitingInput"],
    [
      "a plan waits for approval",
      [started, prompted, hook("PermissionRequest", { tool: "ExitPlanMode" })],
      "AwaitingApproval"
    ],
    [
      "a permission waits for approval",
      [started, prompted, hook("PermissionRequest", { tool: "Bash" })],
      "AwaitingApproval"
    ],
    [
      "another tool's end hides no question",
      [started, prompted, bash("PreToolUse"), question, bash("PostToolUse")],
      "AwaitingInput"
    ],
    [
      "an answer closes its question",
      [started, prompted, question, hook("PostToolUse", { tool: "AskUserQuestion", callId: "c2" })],
      "Running"
    ],
    [
      "a failed tool's end closes its permission",
      [
        started,
        prompted,
        bash("PreToolUse"),
        hook("PermissionRequest", { tool: "Bash" }),
        bash("PostToolUseFailure", "c1", { isInterrupt: false })
      ],
      "Running"
    ],
    [
      "a refusal fires no end of the tool: the batch's end closes its permission",
      [started, prompted, bash("PreToolUse"), hook("PermissionRequest", { tool: "Bash" }), hook("PostToolBatch")],
      "Running"
    ],
    [
      "a subagent asks after the stop",
      [started, prompted, stopped("sub"), hook("PermissionRequest", { tool: "Bash", agentId: "sub" })],
      "AwaitingApproval"
    ],
    [
      "a subagent that works after the stop is not the main agent's turn",
      [started, prompted, stopped("sub"), bash("PreToolUse", "c9", { agentId: "sub" })],
      "Idle"
    ],
    [
      "the end of background work is a prompt",
      [started, prompted, stopped("b1"), hook("UserPromptSubmit", { endedTask: "b1" })],
      "Running"
    ],
    [
      "an interrupt closes a question",
      [started, prompted, question, sent({ _tag: "TurnEndObserved" }, { why: "interrupt" })],
      "Idle"
    ],
    [
      "a failure that only the transcript tells",
      [started, prompted, sent({ _tag: "TurnEndObserved" }, { why: "failure", error: "rate_limit" })],
      "Error"
    ],
    [
      "silence closes no question",
      [started, prompted, question, sent({ _tag: "TurnEndObserved" }, { why: "silent" })],
      "AwaitingInput"
    ],
    ["silence ends a turn", [started, prompted, sent({ _tag: "TurnEndObserved" }, { why: "silent" })], "Idle"],
    [
      "a late start of a tool that has ended opens nothing",
      [
        started,
        prompted,
        hook("PostToolUse", { tool: "AskUserQuestion", callId: "c2" }),
        hook("PreToolUse", { tool: "AskUserQuestion", callId: "c2" })
      ],
      "Running"
    ],
    [
      "a dialog that only a notification tells of",
      [started, prompted, hook("Notification", { notificationType: "agent_needs_input" })],
      "AwaitingInput"
    ],
    [
      "a missed stop heals when the screen is idle",
      [started, prompted, hook("Notification", { notificationType: "idle_prompt" })],
      "Idle"
    ],
    [
      "a compaction goes on within its turn",
      [started, prompted, hook("PreCompact"), hook("SessionStart", { source: "compact" })],
      "Running"
    ],
    ["a session's end is not the process's", [started, prompted, hook("SessionEnd", { reason: "clear" })], "Idle"],
    [
      "a clear goes on under a new id",
      [
        started,
        hook("SessionEnd", { reason: "clear" }),
        hook("SessionStart", { source: "clear", sessionId: "s2" }),
        hook("UserPromptSubmit", { sessionId: "s2" })
      ],
      "Running"
    ],
    [
      "what comes late under the former id is stale",
      [
        started,
        hook("SessionEnd", { reason: "clear" }),
        hook("SessionStart", { source: "clear", sessionId: "s2" }),
        prompted
      ],
      "Idle"
    ]
  ]
  it.each(cases)("%s", (_, events, state) => assert.strictEqual(after(events).state, state))

  it("the same hook twice changes nothing more", () => {
    for (const [, events] of cases) {
      const once = after(events)
      assert.deepStrictEqual(after([events.at(-1)!], once), once)
    }
  })
})

describe("the dead do not rise", () => {
  const closed = after([started, prompted, exited])

  it("the process's end closes a plate in every state", () => {
    for (const state of statuses) {
      const result = step(Plate, state, { ...initial }, exited)
      assert.strictEqual(result._tag === "Moved" ? result.state : state, "Closed", state)
    }
  })

  it("a late hook is stale, a resumed session is not", () => {
    assert.strictEqual(closed.state, "Closed")
    assert.deepStrictEqual(after([prompted, bash("PreToolUse"), stopped()], closed), closed)
    assert.strictEqual(after([hook("SessionStart", { source: "resume" })], closed).state, "Idle")
    assert.strictEqual(after([sent({ _tag: "SessionStart" })], closed).state, "Running")
  })

  it("the end of the process before the resumption is told late, and closes nothing", () => {
    const first = after([
      hook("SessionStart", { source: "startup", pid: 7 }),
      sent({ _tag: "ProcessExited" }, { pid: 7 })
    ])
    const resumed = after([hook("SessionStart", { source: "resume", pid: 8 })], first)
    assert.strictEqual(after([sent({ _tag: "ProcessExited" }, { pid: 7 })], resumed).state, "Idle")
    assert.strictEqual(after([sent({ _tag: "ProcessExited" }, { pid: 8 })], resumed).state, "Closed")
  })

  it("a forgotten plate takes nothing any more", () => {
    const forgotten = after([started, sent({ _tag: "Forgotten" }, { by: "me" })])
    assert.deepStrictEqual(after([hook("SessionStart", { source: "resume" }), exited], forgotten), forgotten)
  })
})

describe("order", () => {
  const posted = (tag: string, timestamp: number) => sent({ _tag: tag }, { timestamp })

  it("an event that is older than the last one applied is stale, one of the same time is not", () => {
    const running = after([posted("PromptSubmit", 10)])
    assert.strictEqual(after([posted("Stop", 9)], running).state, "Running")
    assert.strictEqual(after([posted("Stop", 10)], running).state, "Idle")
  })

  it("a health check never overwrites a newer hook", () => {
    const asking = after([started, prompted, question])
    const newer = after([hook("PermissionRequest", { tool: "ExitPlanMode", at: at + 1 })], asking)
    assert.strictEqual(after([sent({ _tag: "HealthCheckRecovery" })], newer).state, "AwaitingInput")
    assert.strictEqual(after([sent({ _tag: "HealthCheckRecovery" }, { asOf: at + 1 })], newer).state, "Idle")
  })

  it("a transcript is ahead by more than two whole seconds: 102 over 100 is fresh, 103 is stale", () => {
    assert.isFalse(transcriptAhead(102, 100))
    assert.isFalse(transcriptAhead(102.9, 100.1))
    assert.isTrue(transcriptAhead(103, 100))
  })

  it("says which signal its status rests on, and of when it is", () => {
    assert.deepStrictEqual(after([started]).data.signal, { from: "hook", at })
    assert.strictEqual(after([exited]).data.signal?.from, "process")
  })
})
