import { assert, describe, it } from "@effect/vitest"
import type { Outcome } from "../../../src/runs/Outcome.ts"
import { defaultPolicy } from "../../../src/core/supervision/Backoff.ts"
import { step } from "../../../src/core/event-actor/StateMachine.ts"
import {
  type Action,
  type Data,
  type Event,
  initial,
  joins,
  type State,
  TAKEN_LIMIT,
  UNCOUNTED_LIMIT,
  Worker
} from "../../../src/agents/machines/WorkerMachine.ts"

interface Stand {
  readonly state: State
  readonly data: Data
  readonly actions: ReadonlyArray<Action>
}

/** The machine after the events; each must move it. */
const after = (events: ReadonlyArray<Event>, from: Omit<Stand, "actions"> = start()): Stand =>
  events.reduce<Stand>(
    (stand, event) => {
      const result = step(Worker, stand.state, stand.data, event)
      if (result._tag === "Refused") return assert.fail(`${event._tag} is ${result.why} in ${stand.state}`)
      return { state: result.state, data: result.data, actions: result.actions }
    },
    { ...from, actions: [] }
  )

const start = (options: Parameters<typeof initial>[0] = {}) =>
  ({ state: Worker.initial, data: initial(options) }) as const

const why = (stand: Omit<Stand, "actions">, event: Event) => {
  const result = step(Worker, stand.state, stand.data, event)
  return result._tag === "Refused" ? result.why : result.state
}

const ready: Event = { _tag: "WorktreeReady", cwd: "/work", branch: "agent/pm" }
const prompt = (runId: string): Event => ({ _tag: "PromptReady", prompt: "go", runId, messageIds: ["m1"], at: 5 })
const started = (runId: string, seq = 1): Event => ({ _tag: "SessionStarted", runId, seq, pid: 9 })
const exited = (runId: string, outcome: Outcome): Event => ({ _tag: "SessionExited", runId, outcome })
const error: Outcome = { _tag: "Error", detail: "exit code 1" }
const success: Outcome = { _tag: "Success" }
const elapsed: Event = { _tag: "BackoffElapsed" }

/** Plays runs one after another: each is prepared, maybe started, and ends as told. */
const runs = (
  count: number,
  outcome: Outcome,
  options: { readonly starts: boolean; readonly from?: Omit<Stand, "actions"> }
) => {
  let stand: Omit<Stand, "actions"> = options.from ?? after([ready])
  const delays: Array<number> = []
  let actions: ReadonlyArray<Action> = []
  for (let n = 1; n <= count; n++) {
    if (stand.state === "CoolingDown") {
      delays.push(Worker.timers.cooldown.after(stand.data, 0))
      stand = after([elapsed], stand)
    }
    const runId = `r${n}`
    const end = after([prompt(runId), ...(options.starts ? [started(runId)] : []), exited(runId, outcome)], stand)
    actions = end.actions
    stand = end
  }
  return { stand, delays, actions }
}

describe("the counters", () => {
  it("a run that starts and then fails has one error in a row, and stops at twenty in all", () => {
    const before = runs(19, error, { starts: true })
    assert.strictEqual(before.stand.state, "CoolingDown")
    assert.strictEqual(before.stand.data.consecutiveErrors, 1)
    assert.deepStrictEqual(before.delays.slice(0, 6), [2_000, 4_000, 8_000, 16_000, 32_000, 60_000])
    assert.isTrue(before.delays.slice(6).every((delay) => delay === 60_000))
    const backoff = { ...defaultPolicy, by: "streak" } as const
    const bySeed = runs(19, error, { starts: true, from: after([ready], start({ backoff })) })
    assert.isTrue(bySeed.delays.every((delay) => delay === 2_000))
    const { actions, stand } = runs(20, error, { starts: true })
    assert.strictEqual(stand.state, "Stopped")
    assert.strictEqual(stand.data.totalErrors, 20)
    assert.deepStrictEqual(
      actions.map(({ _tag }) => _tag),
      ["LogFatal"]
    )
    assert.include(stand.data.fatal?.message, "20 errors in total; the last: exit code 1")
  })

  it("a turn that comes to its answer clears the failures that waits are reckoned by", () => {
    const failed = runs(4, error, { starts: true }).stand
    assert.strictEqual(failed.data.failures, 4)
    const worked = { ...exited("x", error), worked: true }
    const again = after([elapsed, prompt("x"), started("x"), worked], failed)
    assert.strictEqual(again.data.failures, 1)
    assert.strictEqual(Worker.timers.cooldown.after(again.data, 0), 2_000)
    const answers = { ...exited("y", success), worked: true }
    assert.strictEqual(after([elapsed, prompt("y"), started("y"), answers], again).data.failures, 0)
  })

  it("a run that ends well with no answer, since it was interrupted, clears none of them: the next wait is longer", () => {
    const failed = runs(1, error, { starts: true }).stand
    const interrupted = after([elapsed, prompt("x"), started("x"), exited("x", success)], failed)
    assert.strictEqual(interrupted.data.consecutiveErrors, 0)
    const again = after([ready, prompt("y"), started("y", 2), exited("y", error)], interrupted)
    assert.strictEqual(Worker.timers.cooldown.after(again.data, 0), 4_000)
  })

  it("a run that ends with its turn's answer has answered", () => {
    const event = { _tag: "response_done", turnId: "t", finalOutput: "", usage: null, exit: { runId: "y", seq: 1 } }
    const joined = joins({ kind: "turn.completed", payload: { turn_id: "t", final_output: "", usage: null, event } })
    assert.deepStrictEqual(joined, { ...exited("y", success), worked: true } as Event)
  })

  it("a provider that cannot be had counts as no error, however often, and is waited for longer and longer", () => {
    const { delays, stand } = runs(40, { _tag: "Uncounted", reason: "unavailable" }, { starts: true })
    assert.strictEqual(stand.state, "CoolingDown")
    assert.deepInclude(stand.data, { consecutiveErrors: 0, totalErrors: 0, failures: 40 })
    assert.deepStrictEqual(delays.slice(0, 6), [2_000, 4_000, 8_000, 16_000, 32_000, 60_000])
    const asked = after(
      [elapsed, prompt("x"), started("x"), exited("x", { _tag: "Uncounted", reason: "unavailable", until: 9_000 })],
      stand
    )
    assert.strictEqual(Worker.timers.cooldown.after(asked.data, 1_000), 8_000, "as it says itself")
  })

  it("a run that never starts stops at five in a row, after 2, 4, 8 and 16 seconds", () => {
    const { delays, stand } = runs(5, error, { starts: false })
    assert.deepStrictEqual(delays, [2_000, 4_000, 8_000, 16_000])
    assert.strictEqual(stand.state, "Stopped")
    assert.include(stand.data.fatal?.message, "5 errors in a row")
  })

  it("with raised limits the delays go on to 32 and 60 seconds", () => {
    const limits = { maxConsecutiveErrors: 8, maxTotalErrors: 100 }
    const { delays, stand } = runs(8, { _tag: "Timeout" }, { starts: false, from: after([ready], start({ limits })) })
    assert.deepStrictEqual(delays, [2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000])
    assert.strictEqual(stand.state, "Stopped")
  })

  it("a confirmed start clears the errors in a row, never those in all", () => {
    const failed = runs(3, error, { starts: false }).stand
    const running = after([elapsed, prompt("x"), started("x")], failed)
    assert.strictEqual(running.data.consecutiveErrors, 0)
    assert.strictEqual(running.data.totalErrors, 3)
  })

  it("an exit while interrupting counts nothing, whatever it was", () => {
    const interrupting = after([ready, prompt("a"), started("a"), { _tag: "UrgentMessage", messageId: "m" }])
    for (const outcome of [success, error, { _tag: "Timeout" }] as const) {
      const { data, state } = after([exited("a", outcome)], interrupting)
      assert.strictEqual(state, "BuildingPrompt")
      assert.strictEqual(data.totalErrors, 0)
    }
  })

  it("session_seq is what the start says, and rises with each completion", () => {
    const complete = after([ready, prompt("a"), started("a", 7), exited("a", success)])
    assert.strictEqual(complete.data.sessionSeq, 7)
    const next = after([ready], complete)
    assert.strictEqual(next.data.sessionSeq, 8)
    assert.deepStrictEqual(next.actions, [{ _tag: "IncrementSession", sessionSeq: 8 }])
  })
})

describe("uncounted ends", () => {
  const uncounted = (reason: "quota" | "overflow" | "held" | "lost", until?: number): Outcome =>
    until === undefined ? { _tag: "Uncounted", reason } : { _tag: "Uncounted", reason, until }

  it("cool down until the time they name, two seconds at least, and count nothing", () => {
    const { stand } = runs(1, uncounted("quota", 90_000), { starts: true })
    assert.strictEqual(stand.state, "CoolingDown")
    assert.strictEqual(stand.data.totalErrors, 0)
    assert.strictEqual(Worker.timers.cooldown.after(stand.data, 30_000), 60_000)
    assert.strictEqual(Worker.timers.cooldown.after(stand.data, 89_999), 2_000)
    assert.strictEqual(Worker.timers.cooldown.after(runs(1, uncounted("held"), { starts: false }).stand.data, 0), 2_000)
  })

  it.each(["overflow", "held", "lost"] as const)("five in a row by %s are an error", (reason) => {
    assert.strictEqual(UNCOUNTED_LIMIT, 5)
    assert.strictEqual(runs(4, uncounted(reason), { starts: true }).stand.data.totalErrors, 0)
    const { data } = runs(5, uncounted(reason), { starts: true }).stand
    assert.strictEqual(data.totalErrors, 1)
    assert.strictEqual(data.uncounted.count, 0)
  })

  it("a hundred quota waits are none", () =>
    assert.strictEqual(runs(100, uncounted("quota"), { starts: true }).stand.data.totalErrors, 0))

  it("a success ends the row", () => {
    const four = runs(4, uncounted("lost"), { starts: true }).stand
    const well = after([elapsed, prompt("x"), started("x"), exited("x", success), ready], four)
    assert.strictEqual(runs(4, uncounted("lost"), { starts: true, from: well }).stand.data.totalErrors, 0)
  })

  describe("taken by agentd's own end", () => {
    const taken: Outcome = { _tag: "Uncounted", reason: "taken" }
    const TAKEN_AND_UP = { starts: true }

    it("is no error of the agent's, however often; the waits grow as they do after failures", () => {
      for (const starts of [true, false]) {
        const { delays, stand } = runs(TAKEN_LIMIT - 1, taken, { starts })
        assert.strictEqual(stand.state, "CoolingDown")
        assert.deepInclude(stand.data, { totalErrors: 0, consecutiveErrors: 0, fatal: null })
        assert.deepStrictEqual(delays.slice(0, 6), [2_000, 4_000, 8_000, 16_000, 32_000, 60_000])
      }
    })

    it("ends its agent where it comes again and again and nothing comes of it: a run of it may be what ends agentd", () => {
      const { actions, stand } = runs(TAKEN_LIMIT, taken, TAKEN_AND_UP)
      assert.strictEqual(stand.state, "Stopped")
      assert.match(stand.data.fatal!.message, /^agentd ended 20 times during a run of this agent/)
      assert.deepStrictEqual(
        actions.map(({ _tag }) => _tag),
        ["LogFatal"]
      )
      assert.strictEqual(stand.data.totalErrors, 0)
    })

    it.each([
      ["a run that ends by itself", success],
      ["its own error", error],
      ["an end of its own that nobody knows", { _tag: "Uncounted", reason: "lost" }]
    ] as const)("in a row: %s begins the row anew", (_, outcome) => {
      const most = runs(TAKEN_LIMIT - 1, taken, TAKEN_AND_UP).stand
      const other = after([elapsed, prompt("x"), started("x"), exited("x", outcome)], most)
      const stand = other.state === "SessionComplete" ? after([ready], other) : other
      const again = runs(TAKEN_LIMIT - 1, taken, { starts: true, from: stand }).stand
      assert.strictEqual(again.state, "CoolingDown")
    })

    it("in a row: one that had answered before it was taken begins the row anew", () => {
      const most = runs(TAKEN_LIMIT - 1, taken, TAKEN_AND_UP).stand
      const worked = after([elapsed, prompt("x"), started("x"), { ...exited("x", taken), worked: true } as Event], most)
      assert.strictEqual(Worker.timers.cooldown.after(worked.data, 0), 2_000)
      assert.strictEqual(runs(TAKEN_LIMIT - 2, taken, { starts: true, from: worked }).stand.state, "CoolingDown")
      assert.strictEqual(runs(TAKEN_LIMIT - 1, taken, { starts: true, from: worked }).stand.state, "Stopped")
    })

    it("says nothing of a crash loop of the agent's own", () => {
      const mixed = runs(3, taken, TAKEN_AND_UP).stand
      assert.strictEqual(runs(5, error, { starts: false, from: mixed }).stand.state, "Stopped")
    })
  })

  it("what no retry will help stops at once, with its remedy", () => {
    const fatal: Outcome = { _tag: "Fatal", detail: "not logged in", remedy: "log in" }
    for (const starts of [true, false]) {
      const { actions, stand } = runs(1, fatal, { starts })
      assert.strictEqual(stand.state, "Stopped")
      assert.deepStrictEqual(actions, [{ _tag: "LogFatal", message: "not logged in", remedy: "log in" }])
      assert.strictEqual(stand.data.totalErrors, 0)
    }
  })
})

describe("INV-RUN-FENCED: nothing from an older run changes state", () => {
  const running = after([ready, prompt("old"), exited("old", error), elapsed, prompt("new"), started("new")])

  it("an older run's start, exit and grace are stale", () => {
    assert.strictEqual(why(running, exited("old", success)), "stale")
    assert.strictEqual(why(running, started("old")), "stale")
    assert.strictEqual(why(running, { _tag: "GraceExceeded", runId: "old" }), "stale")
    assert.strictEqual(why(running, exited("new", success)), "SessionComplete")
  })

  it("so is the end of a run that has ended", () => {
    const cooling = after([exited("new", error)], running)
    assert.strictEqual(why(cooling, exited("new", error)), "stale")
  })
})

describe("signals", () => {
  const urgent: Event = { _tag: "UrgentMessage", messageId: "m" }

  it("an urgent message waits for the run that is spawning, interrupts one that runs, and is stale elsewhere", () => {
    const spawning = after([ready, prompt("a")])
    assert.strictEqual(why(spawning, urgent), "postpone")
    const running = after([started("a")], spawning)
    const interrupting = after([urgent], running)
    assert.deepStrictEqual(interrupting.actions, [{ _tag: "CancelSession", runId: "a" }])
    assert.strictEqual(interrupting.state, "Interrupting")
    for (const stand of [start(), after([ready]), interrupting]) assert.strictEqual(why(stand, urgent), "stale")
  })

  it("what ends a run names it: whichever of two graces runs out first, the next run goes on", () => {
    // an urgent message came; the turn's grace runs out, the worker's does, and the run ends, in every order
    const late: ReadonlyArray<Event> = [
      { _tag: "UrgentMessage", messageId: null, runId: "a" },
      { _tag: "GraceExceeded", runId: "a" },
      exited("a", error)
    ]
    const next = [prompt("b"), started("b", 2)] as const
    let walks = 0
    const walk = (stand: Omit<Stand, "actions">, left: ReadonlyArray<Event>, more: ReadonlyArray<Event>): void => {
      if (left.length === 0) {
        walks += 1
        // what has begun goes on, and what has not can begin
        if (stand.state === "Interrupting") return assert.strictEqual(stand.data.runId, "a")
        assert.strictEqual(after(more, stand).state, "Running")
        return
      }
      for (const event of left) {
        const result = step(Worker, stand.state, stand.data, event)
        const rest = left.filter((other) => other !== event)
        if (result._tag === "Refused") {
          assert.notStrictEqual(result.why, "illegal")
          if (stand.data.runId === "b") assert.strictEqual(result.why, "stale")
          walk(stand, rest, more)
        } else {
          for (const action of result.actions) assert.isTrue("runId" in action && action.runId === "a")
          walk(result, rest, more)
        }
      }
      const [first, ...others] = more
      if (first !== undefined && step(Worker, stand.state, stand.data, first)._tag === "Moved") {
        walk(after([first], stand), left, others)
      }
    }
    walk(after([ready, prompt("a"), started("a"), urgent]), late, next)
    assert.isAbove(walks, 10)
  })

  it("the grace that runs out force-stops the run that it was given", () => {
    const interrupting = after([ready, prompt("a"), started("a"), urgent])
    assert.strictEqual(Worker.timers.grace.after(interrupting.data, 0), 10_000)
    const forced = after([Worker.timers.grace.fires(interrupting.data)], interrupting)
    assert.deepStrictEqual(forced.actions, [{ _tag: "ForceStopSession", runId: "a" }])
    assert.strictEqual(forced.state, "BuildingPrompt")
  })

  it("work wakes a worker that waits for some, by entering its state again", () => {
    const result = step(Worker, "BuildingPrompt", after([ready]).data, { _tag: "WorkArrived" })
    assert.isTrue(result._tag === "Moved" && result.reenter && result.state === "BuildingPrompt")
  })

  it("messages are named by the rune of the prompt, and cleared by a run that ended well", () => {
    const running = after([ready, prompt("a"), started("a")])
    assert.deepStrictEqual(running.data.messageIds, ["m1"])
    assert.deepStrictEqual(after([exited("a", error)], running).data.messageIds, ["m1"])
    assert.deepStrictEqual(after([exited("a", success)], running).data.messageIds, [])
  })

  it("no run outlives its worker: whatever stops it cancels what runs", () => {
    const spawning = after([ready, prompt("a")])
    const running = after([started("a")], spawning)
    for (const stand of [spawning, running]) {
      const cancels = ({ actions }: Stand) => actions.filter(({ _tag }) => _tag === "CancelSession")
      const cancel: ReadonlyArray<Action> = [{ _tag: "CancelSession", runId: "a" }]
      assert.deepStrictEqual(cancels(after([{ _tag: "OperatorStop", by: "me" }], stand)), [...cancel])
      assert.deepStrictEqual(cancels(after([{ _tag: "FatalError", message: "no disk" }], stand)), [...cancel])
    }
    assert.deepStrictEqual(after([{ _tag: "OperatorStop", by: "me" }]).actions, [])
  })
})
