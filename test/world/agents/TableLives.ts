/**
 * TableLives: the lives of one agent on a puppet's runs by which each cell of its four tables
 * is reached: what a person, its file, its run and its workplace do to it, in each state.
 */
import { Effect, Fiber, Schema } from "effect"
import { WorktreeError } from "../../../src/agents/workplace/Worktree.ts"
import type { RunEvent } from "../../../src/runs/Backend.ts"
import type { Outcome } from "../../../src/runs/Outcome.ts"
import { AgentConfig } from "../../../src/config/AgentConfig.ts"
import { leave } from "./Leave.ts"
import { type AgentWorld, caller } from "./AgentWorld.ts"
import type * as Puppet from "./Puppet.ts"
import * as World from "./World.ts"

export const usage: RunEvent = { _tag: "Usage", inputTokens: 100, outputTokens: 0 }
const exited = (outcome: Outcome): RunEvent => ({ _tag: "Exited", outcome })
export const success = exited({ _tag: "Success" })
export const error = exited({ _tag: "Error", detail: "exit code 1" })
export const fatal = exited({ _tag: "Fatal", detail: "no login", remedy: "log in" })
const call = (callId: string, readOnly = false): RunEvent => ({
  _tag: "ToolCall",
  callId,
  tool: "shell",
  arguments: { callId },
  readOnly
})
const asks = (callId: string): RunEvent => ({ _tag: "ApprovalRequested", callId, reason: "" })
const runs = (callId: string): RunEvent => ({ _tag: "ToolStarted", callId })
const result = (callId: string, status: "success" | "error" | "cancelled"): RunEvent => ({
  _tag: "ToolResult",
  callId,
  status,
  output: ""
})

/** An agent of a puppet's; `n` is one of its runs, from 0. */
export class One {
  readonly world: AgentWorld
  readonly puppet: Puppet.Puppet

  constructor(world: AgentWorld, puppet: Puppet.Puppet) {
    this.world = world
    this.puppet = puppet
  }

  run(n: number) {
    return this.puppet.run(n)
  }

  /** With its first turn under way. */
  readonly working = Effect.fnUntraced({ self: this }, function* (this: One, n: number) {
    const run = yield* this.puppet.run(n)
    yield* this.turn("streaming")
    return run
  })

  say(n: number, ...events: ReadonlyArray<RunEvent>) {
    return Effect.flatMap(this.puppet.run(n), (run) => run.say(...events))
  }

  /** The first turn of the run has ended. */
  done(n: number) {
    return Effect.flatMap(this.puppet.run(n), ({ say, spec: { turnId } }) =>
      say({ _tag: "TurnCompleted", turnId, output: "done" })
    )
  }

  send(text = "work", how: "queue" | "steer" | "urgent" = "queue") {
    return this.world.tree.send(text, how, caller)
  }

  worker(state: string) {
    return World.until(
      Effect.sync(() => this.world.tree.worker()?.state ?? "none"),
      (now) => now === state
    )
  }

  turn(state: string) {
    return World.until(
      Effect.sync(() => this.world.tree.turn().state),
      (now) => now === state
    )
  }

  life(state: string) {
    return World.until(
      Effect.sync(() => this.world.tree.life().state),
      (now) => now === state
    )
  }

  /** The calls in a state, oldest first, once there are so many of them. */
  calls(count: number, state: string) {
    return World.until(
      Effect.sync(() => this.world.tree.calls().filter((one) => one.state === state)),
      ({ length }) => length === count
    )
  }

  /** Answers when no process of an earlier incarnation is left. */
  readonly start = Effect.suspend(() => this.world.tree.start(caller))

  /** `n`: its run, which ends once it is told to. */
  readonly stop = Effect.fnUntraced({ self: this }, function* (this: One, n?: number) {
    const stopping = yield* Effect.forkChild(this.world.tree.stop(caller))
    yield* this.worker("Stopped")
    if (n !== undefined) yield* this.say(n, success)
    yield* Fiber.join(stopping)
  })

  /** Changes the agent's file. */
  file(more: object): void {
    const { budget: _, ...rest } = this.world.config
    const before = Schema.encodeSync(AgentConfig)({ ...rest, budget: {} })
    this.world.config = Schema.decodeUnknownSync(AgentConfig)({ ...before, ...more })
  }
}

const place: AgentWorld["place"] = Effect.succeed({ cwd: "/tmp", branch: undefined })
const nowhere: AgentWorld["place"] = Effect.fail(
  new WorktreeError({ reason: "NotARepository", message: "no repository", remedy: "git init" })
)

export interface Life {
  readonly name: string
  readonly config?: object
  readonly puppet?: Parameters<typeof Puppet.make>[0]
  /** A backend that knows no turns. */
  readonly plain?: boolean
  readonly place?: AgentWorld["place"]
  readonly lives: (one: One) => Effect.Effect<unknown, { readonly message: string }>
}

export const lives: ReadonlyArray<Life> = [
  {
    name: "stopped before there is a place, without a place, and with one",
    place: Effect.never,
    lives: Effect.fnUntraced(function* (one) {
      yield* one.stop()
      one.world.place = nowhere
      yield* one.start
      yield* one.life("failed")
      one.world.place = place
      yield* one.start
      yield* one.life("idle")
      yield* one.stop()
    })
  },
  {
    name: "runs that end before they are up, in each way",
    puppet: { up: false, deaf: true },
    config: { budget: { tokens: 100 }, maxConsecutiveErrors: 2 },
    lives: Effect.fnUntraced(function* (one) {
      yield* one.send()
      yield* one.run(0)
      yield* one.stop(0)
      yield* one.start
      yield* one.say(1, usage)
      yield* one.worker("Stopped")
      yield* one.say(1, success)
      yield* one.start
      yield* one.say(2, success)
      yield* one.say(3, error)
      yield* one.say(4, fatal)
      yield* one.worker("Stopped")
      yield* one.start
      yield* one.say(5, error)
      yield* one.say(6, error)
      yield* one.worker("Stopped")
    })
  },
  {
    name: "runs that end while they are up, in each way",
    puppet: { deaf: true },
    config: { budget: { tokens: 100 }, maxTotalErrors: 2 },
    lives: Effect.fnUntraced(function* (one) {
      yield* one.send()
      yield* one.working(0)
      yield* one.stop(0)
      yield* one.start
      yield* one.working(1)
      yield* one.say(1, usage)
      yield* one.worker("Stopped")
      yield* one.say(1, success)
      yield* one.start
      yield* one.working(2)
      yield* one.say(2, success)
      yield* one.say(3, error)
      yield* one.say(4, error)
      yield* one.worker("Stopped")
      yield* one.start
      yield* one.working(5)
      yield* one.say(5, fatal)
      yield* one.life("terminated")
    })
  },
  {
    name: "a command, whose turn is its run",
    plain: true,
    lives: Effect.fnUntraced(function* (one) {
      yield* one.send()
      yield* one.working(0)
      yield* one.say(0, success)
      yield* one.world.kind("turn.completed")
      yield* one.worker("BuildingPrompt")
    })
  },
  {
    name: "stopped, spent and ended while its run is interrupted by an urgent message",
    puppet: { deaf: true },
    config: { budget: { tokens: 100 }, interruptGrace: "1 minute" },
    lives: Effect.fnUntraced(function* (one) {
      const interrupted = Effect.fnUntraced(function* (n: number) {
        yield* one.working(n)
        yield* one.send("now", "urgent")
        yield* one.worker("Interrupting")
      })
      yield* one.send()
      yield* interrupted(0)
      yield* one.stop(0)
      yield* one.start
      yield* interrupted(1)
      yield* one.say(1, usage)
      yield* one.worker("Stopped")
      yield* one.say(1, success)
      yield* one.start
      yield* interrupted(2)
      yield* one.say(2, success)
      yield* one.working(3)
    })
  },
  {
    name: "a run that outlives the grace of an urgent message, which its turn would wait for longer",
    puppet: { deaf: true },
    config: { interruptGrace: "10ms" },
    lives: Effect.fnUntraced(function* (one) {
      one.file({ interruptGrace: "1 hour" })
      yield* one.send()
      yield* one.working(0)
      yield* one.send("now", "urgent")
      // killed, it takes its turn with it, and the next run hears what is urgent
      yield* one.world.over()
      yield* one.working(1)
    })
  },
  {
    name: "a turn that outlives its grace, which its worker would wait for longer",
    puppet: { deaf: true },
    config: { interruptGrace: "1 hour" },
    lives: Effect.fnUntraced(function* (one) {
      one.file({ interruptGrace: "10ms" })
      yield* one.send()
      yield* one.working(0)
      yield* one.world.tree.interrupt(caller)
      yield* one.world.rune(
        ({ kind, payload }) => kind === "turn.finalized" && (payload["event"] as { forced?: boolean }).forced === true
      )
      yield* one.worker("BuildingPrompt")
    })
  },
  {
    name: "with ports that another program takes before its run",
    lives: Effect.fnUntraced(function* (one) {
      yield* one.send()
      yield* one.working(0)
      one.world.ports = { first: 20_000, count: 2 }
      yield* one.say(0, error)
      yield* one.working(1)
      yield* one.say(1, success)
    })
  },
  {
    name: "between two runs: without the place that it had",
    lives: Effect.fnUntraced(function* (one) {
      const { world } = one
      yield* one.send()
      yield* one.working(0)
      world.place = Effect.never
      yield* one.say(0, success)
      yield* one.worker("SessionComplete")
      yield* one.stop()
      world.place = place
      yield* one.start
      yield* one.working(1)
      world.place = nowhere
      yield* one.say(1, success)
      yield* one.worker("Stopped")
    })
  },
  {
    name: "cooling down, and waiting for work: stopped, spent and woken",
    config: { backoff: { base: "1 hour", cap: "1 hour" }, budget: { tokens: 1_000 } },
    lives: Effect.fnUntraced(function* (one) {
      yield* one.send()
      yield* one.working(0)
      yield* one.say(0, error)
      yield* one.worker("CoolingDown")
      yield* one.stop()
      yield* one.start
      yield* one.working(1)
      yield* one.say(1, usage, error)
      yield* one.worker("CoolingDown")
      const { config } = one.world
      one.file({ budget: { tokens: 50 } })
      yield* one.send()
      yield* one.worker("Stopped")
      one.world.config = config
      yield* one.start
      yield* one.working(2)
      yield* one.say(2, usage)
      yield* one.done(2)
      yield* one.turn("idle")
      yield* one.say(2, success)
      yield* one.worker("BuildingPrompt")
      yield* one.world.tree.control.wake
      yield* one.world.rune(({ trigger }) => trigger === "WorkArrived")
      one.file({ budget: { tokens: 50 } })
      yield* one.send()
      yield* one.worker("Stopped")
    })
  },
  {
    name: "cooling down for a moment",
    config: { backoff: { base: "1ms" } },
    lives: Effect.fnUntraced(function* (one) {
      yield* one.send()
      yield* one.say(0, error)
      yield* one.working(1)
    })
  },
  {
    name: "turns with deltas, tools and steers, each end",
    lives: Effect.fnUntraced(function* (one) {
      const { world } = one
      yield* one.send()
      const { spec } = yield* one.working(0)
      yield* one.say(0, { _tag: "Delta", stream: "assistant", text: "…" })
      yield* world.kind("turn.assistant_delta")
      yield* one.say(0, call("a"))
      yield* world.kind("turn.tool_calls_received")
      yield* one.say(0, call("b"))
      yield* world.kind("turn.tool_calls_received", 2)
      yield* one.say(0, runs("a"), runs("b"), result("a", "success"), result("b", "success"))
      yield* world.kind("turn.tools_finished")
      yield* one.send("rather this", "steer")
      yield* one.say(0, { _tag: "TurnInterrupted", turnId: spec.turnId, output: "" })
      const steered = (yield* world.kind("turn.started", 2))[1]!
      yield* one.say(0, { _tag: "TurnCompleted", turnId: String(steered.payload["turn_id"]), output: "" })
      yield* one.turn("idle")
      yield* one.send()
      const [, , third] = yield* world.kind("turn.started", 3)
      yield* one.say(0, {
        _tag: "TurnError",
        turnId: String(third!.payload["turn_id"]),
        errorType: "server",
        message: "no",
        retry: false
      })
      yield* world.kind("turn.error")
    })
  },
  {
    name: "interrupted and lost while tools run",
    lives: Effect.fnUntraced(function* (one) {
      const { world } = one
      yield* one.send()
      const { spec } = yield* one.working(0)
      yield* one.say(0, call("a"), runs("a"), call("b"))
      yield* one.turn("tool_executing")
      yield* world.tree.interrupt(caller)
      yield* one.say(0, { _tag: "TurnInterrupted", turnId: spec.turnId, output: "" })
      yield* one.turn("idle")
      yield* one.send()
      yield* one.turn("streaming")
      yield* one.say(0, call("c"), runs("c"))
      yield* world.kind("tool.started", 2)
      yield* world.lose
      yield* world.open
      yield* world.kind("turn.error")
    })
  },
  {
    name: "calls that are allowed, refused, called off, and end in each way",
    lives: Effect.fnUntraced(function* (one) {
      const { tree } = one.world
      yield* one.send()
      yield* one.working(0)
      yield* one.say(0, call("a", true), call("b"), call("c"), call("d"), call("e"), call("f"), call("g"))
      yield* one.say(0, asks("a"), { _tag: "ToolProgress", callId: "a", stream: "stdout", chunk: "…" })
      yield* one.world.kind("tool.progress")
      yield* one.say(0, result("a", "success"), runs("b"), result("b", "error"), result("e", "cancelled"))
      yield* one.say(0, asks("c"), asks("d"), asks("f"), runs("g"))
      const [c, d] = yield* one.calls(3, "awaiting_approval")
      yield* tree.answer(c!.callId, leave(tree, c!.callId), caller)
      yield* tree.answer(d!.callId, { behavior: "deny", reason: "no" }, caller)
      yield* one.say(0, result("c", "success"), result("f", "cancelled"), result("g", "cancelled"))
      yield* one.world.kind("turn.tools_finished")
      yield* one.say(0, call("i"), asks("i"))
      yield* one.calls(1, "awaiting_approval")
      yield* one.say(0, { _tag: "ApprovalWithdrawn", callId: "i" }, result("i", "success"))
      yield* one.world.kind("turn.tools_finished", 2)
      yield* one.say(0, call("h"))
      yield* one.done(0)
      yield* one.world.kind("turn.completed")
    })
  },
  {
    name: "calls whose time is over",
    config: { toolTimeout: "10ms", approvals: { timeout: "10ms" } },
    lives: Effect.fnUntraced(function* (one) {
      yield* one.send()
      yield* one.working(0)
      yield* one.say(0, call("a"), asks("a"), call("b"), runs("b"))
      yield* one.world.kind("turn.tools_finished")
    })
  },
  {
    name: "spent with the last words of a turn, with its failure, and between two turns",
    config: { budget: { tokens: 100 } },
    lives: Effect.fnUntraced(function* (one) {
      yield* one.send()
      const { say, spec } = yield* one.working(0)
      yield* say(usage, { _tag: "TurnCompleted", turnId: spec.turnId, output: "done" })
      yield* one.life("terminated")
      yield* one.send()
      yield* one.start
      const failing = yield* one.working(1)
      const { turnId } = failing.spec
      yield* failing.say(usage, { _tag: "TurnError", turnId, errorType: "server", message: "no", retry: true })
      yield* one.life("terminated")
      yield* one.start
      yield* one.working(2)
      yield* one.done(2)
      yield* one.turn("idle")
      yield* one.say(2, usage)
      yield* one.life("terminated")
    })
  }
]
