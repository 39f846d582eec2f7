/**
 * The tables of an agent's machines and of its conversation, walked: each legal cell is
 * reached by a run of the real agents, and each action is performed where the list says
 * so; what no run comes to is listed with the reason, and nothing else is.
 */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Fiber, Logger, Stream } from "effect"
import type { Backend } from "../../../src/runs/Backend.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import { cellsOf } from "../../support/Cells.ts"
import { make } from "./AgentWorld.ts"
import * as Puppet from "./Puppet.ts"
import { type Life, lives, One } from "./TableLives.ts"
import { configOf, several, stories, type Story } from "./TableStories.ts"
import { unreached, whyNot } from "../../support/Unreached.ts"
import { type Asked, machines, type Name, names, TableWalk } from "./TableWalk.ts"
import { holding, memoryLog, openLog } from "./TestLog.ts"
import * as World from "./World.ts"

// --- what no run comes to, and where the actions are performed

/** The traces of a life. */
interface Left {
  readonly runes: ReadonlyArray<Rune>
  readonly runs: ReadonlyArray<Puppet.Pulled>
  readonly logged: ReadonlyArray<string>
}

type Seen = (asked: Asked, left: Left) => boolean
interface Performed {
  readonly by: string
  readonly seen: Seen
}

const worked = ({ runs }: Left, turnId: unknown, holds: (run: Puppet.Pulled) => boolean): boolean =>
  runs.some((run) => [run.spec, ...run.sent].some((input) => input.turnId === turnId) && holds(run))
const later = ({ runes }: Left, { eventId }: Rune, holds: (rune: Rune) => boolean): boolean =>
  runes.some((rune) => rune.eventId > eventId && holds(rune))
const turnOf = ({ payload }: Rune): unknown => payload["turn_id"]

const ENDS: ReadonlyArray<string> = ["turn.completed", "turn.interrupted", "turn.error"]
/** Of a turn that goes on with them, or ends with them. */
const resultsIn = ({ payload }: Rune): ReadonlyArray<unknown> => {
  const { results = [] } = payload["event"] as { readonly results?: ReadonlyArray<{ readonly call_id: string }> }
  return results.map(({ call_id }) => call_id)
}
const turnOfCall = (runes: ReadonlyArray<Rune>, { actor }: Rune): unknown =>
  (runes.find((rune) => rune.kind === "tool.call" && rune.actor === actor)!.payload["event"] as { turnId: string })
    .turnId

const performed: { readonly [action: string]: Performed } = {
  "worker.StorePrompt": {
    by: "WorkerActor: its state holds the prompt, with which SpawnRun spawns",
    seen: ({ action: { prompt, runId } }, { runs }) =>
      runs.some(({ spec }) => spec.runId === runId && spec.prompt === prompt)
  },
  "worker.IncrementSession": {
    by: "WorkerMachine: its data counts, and the rune says so",
    seen: ({ action: { sessionSeq }, rune }) => rune.payload["sessionSeq"] === sessionSeq
  },
  "worker.CancelSession": {
    by: "WorkerActor.perform: RunSupervisor.stop",
    seen: ({ action: { runId } }, { runs }) => runs.some(({ ends, spec }) => spec.runId === runId && ends > 0)
  },
  "worker.ForceStopSession": {
    by: "WorkerActor.perform: RunSupervisor.kill",
    seen: ({ action: { runId } }, { runs }) => runs.some(({ kills, spec }) => spec.runId === runId && kills > 0)
  },
  "worker.LogFatal": {
    by: "WorkerActor.perform: the daemon's own log",
    seen: ({ action: { message } }, { logged }) =>
      logged.some((line) => line.includes(`permanently: ${String(message)}`))
  },
  "turn.StopWork": {
    by: "TurnActor.perform: Run.interruptTurn",
    seen: ({ action: { turnId } }, left) => worked(left, turnId, ({ interrupts }) => interrupts > 0)
  },
  "turn.ForceStopWork": {
    by: "TurnActor.perform: RunSupervisor.kill",
    seen: ({ action: { turnId } }, left) => worked(left, turnId, ({ kills }) => kills > 0)
  },
  "tool.StopTool": {
    by: "ToolCalls.perform: Run.cancelCall",
    seen: ({ rune }, { runs }) =>
      runs.some(({ cancelled, spec }) => cancelled.length > 0 && rune.actor.includes(spec.runId.slice(-8)))
  },
  "tool.ReportResult": {
    by: "ToolCalls.perform: LiveRun.settled; the turn has the results in the same append, unless it ends with its calls",
    seen: ({ action: { callId }, rune }, { runes }) =>
      runes.some(
        (one) =>
          (one.trigger === "tools_finished" && resultsIn(one).includes(callId)) ||
          (one.kind !== "turn.completed" && ENDS.includes(one.kind) && turnOf(one) === turnOfCall(runes, rune))
      )
  },
  "agent.StartTurn": {
    by: "TurnActor: the turn's start is the rune that the agent joins",
    seen: ({ action: { turnId }, rune }) => rune.kind === "turn.started" && turnOf(rune) === turnId
  },
  "agent.InterruptTurn": {
    by: "AgentActor: tells the turn in the same macrostep, in which it may be ending by itself",
    seen: ({ action: { turnId }, rune }, left) =>
      later(left, rune, (one) => ENDS.includes(one.kind) && turnOf(one) === turnId)
  },
  "conversation.InterruptTurns": {
    by: "ConversationActor.perform: each agent's turn that is on",
    seen: ({ action: { turnIds } }, left) =>
      (turnIds as ReadonlyArray<string>).every((turnId) =>
        left.runes.some((one) => ENDS.includes(one.kind) && turnOf(one) === turnId)
      )
  },
  "conversation.ResetBudget": {
    by: "ConversationActor.perform: what was spent counts no more (the story of the budget asserts the sum)",
    seen: ({ rune }, left) => later(left, rune, ({ trigger }) => trigger === "new_turn")
  },
  "conversation.DrainQueues": {
    by: "ConversationActor.perform: each agent is woken",
    seen: ({ rune }, left) => later(left, rune, ({ trigger }) => trigger === "WorkArrived" || trigger === "start_turn")
  }
}

/** Actions of cells that no run comes to. */
const idle: { readonly [action: string]: string } = {
  "agent.ForceStopTurn": "AgentActor.perform kills the run; its one cell is running_turn × kill_forced"
}

// --- the walk

const all = (log: World.World["log"]) =>
  Effect.map(Stream.runCollect(log.read({})), (runes): ReadonlyArray<Rune> => [...runes])

const named = (name: string) =>
  Effect.catchCause((cause: Cause.Cause<unknown>) => Effect.sync(() => assert.fail(`${name}: ${Cause.pretty(cause)}`)))

class Walks {
  readonly reached: TableWalk["reached"] = {
    worker: new Set(),
    turn: new Set(),
    tool: new Set(),
    agent: new Set(),
    conversation: new Set()
  }
  readonly acted = new Set<string>()
  /** Lines that the daemon logged in this life. */
  readonly logged: Array<string> = []

  /** Reads what a life has left, and waits until all that its cells ask for is done. */
  readonly look = Effect.fnUntraced(
    { self: this },
    function* (this: Walks, walk: TableWalk, log: World.World["log"], { runs }: Puppet.Puppet) {
      const undone = Effect.map(all(log), (runes) => {
        walk.take(runes)
        return walk.asked.filter((asked) => !performed[asked.name]!.seen(asked, { runes, runs, logged: this.logged }))
      })
      yield* World.until(
        Effect.map(undone, (asked) => asked.map(({ name, rune }) => `${name} of rune ${rune.eventId}`)),
        ({ length }) => length === 0
      )
      for (const { name } of walk.asked) this.acted.add(name)
      this.logged.length = 0
    }
  )
}

const walkLife = Effect.fnUntraced(function* (life: Life, walks: Walks) {
  const puppet = Puppet.make(life.puppet)
  const backend: Backend = life.plain === true ? { ...puppet, turns: false } : puppet
  const settings = { backoff: { base: "1ms" }, interruptGrace: "10 seconds", ...life.config }
  const { place } = life
  const world = yield* make([], settings, { puppet: backend, ...(place === undefined ? {} : { place }) })
  yield* life.lives(new One(world, puppet))
  yield* walks.look(new TableWalk(walks.reached), world.log, puppet)
})

const walkStory = Effect.fnUntraced(function* (story: Story, walks: Walks) {
  const puppet = Puppet.make(story.puppet)
  const w = yield* World.make(puppet)
  w.configure(configOf(story))
  const fleet = yield* w.open
  yield* fleet.register(w.config, w.caller)
  yield* story.lives(several(w, fleet, puppet))
  yield* walks.look(new TableWalk(walks.reached), w.log, puppet)
})

/** The end of a conversation is told in another stream, and takes its runes along. */
const walkArchive = Effect.fnUntraced(function* (walks: Walks) {
  const puppet = Puppet.make()
  const { folder } = yield* World.make(puppet)
  const log = yield* openLog({ file: `${folder}/state/runes.db` })
  const w = new World.World(log, () => Effect.succeed(puppet), folder)
  w.configure(configOf({ agents: ["a"] }))
  const fleet = yield* w.open
  yield* fleet.register(w.config, w.caller)
  yield* fleet.close("", { reason: "", force: false }, w.caller)
  const walk = new TableWalk(walks.reached)
  yield* walks.look(walk, log, puppet)
  yield* fleet.archive("", w.caller)
  yield* walks.look(walk, log, puppet)
})

/** A person's resume crosses a suspension that is decided and not durable yet. */
const walkCrossing = Effect.fnUntraced(function* (walks: Walks) {
  const puppet = Puppet.make()
  const { folder } = yield* World.make(puppet)
  const gate = holding(yield* memoryLog)
  const w = new World.World(gate.log, () => Effect.succeed(puppet), folder)
  w.configure(configOf({ agents: ["a"], conversation: { budget: { tokens: 100 } } }))
  const fleet = yield* w.open
  yield* fleet.register(w.config, w.caller)
  const {
    say,
    spec: { turnId }
  } = yield* several(w, fleet, puppet).busy("a")
  const held: Array<string> = []
  gate.hold(({ trigger }) => {
    if (trigger !== "budget_exhausted" && trigger !== "resume_requested") return false
    held.push(trigger)
    return true
  })
  const caught = (trigger: string) =>
    World.until(
      Effect.sync(() => held),
      (all) => all.includes(trigger)
    )
  yield* say({ _tag: "Usage", inputTokens: 100, outputTokens: 0 })
  yield* caught("budget_exhausted")
  const resuming = yield* Effect.forkChild(fleet.resume("", w.caller))
  yield* caught("resume_requested")
  yield* gate.free
  yield* Fiber.join(resuming)
  yield* say({ _tag: "TurnInterrupted", turnId, output: "" })
  yield* walks.look(new TableWalk(walks.reached), w.log, puppet)
})

const actionsOf = (name: Name): ReadonlyArray<string> =>
  Object.keys(machines[name].actions).map((action) => `${name}.${action}`)

describe("the tables of an agent", { timeout: 60_000 }, () => {
  it.live("each legal cell is reached by a run of the real agents, or says why not; each action is performed", () =>
    Effect.gen(function* () {
      const walks = new Walks()
      const logger = Logger.make<unknown, void>(({ message }) => void walks.logged.push(String(message)))
      yield* Effect.gen(function* () {
        for (const life of lives) yield* Effect.scoped(walkLife(life, walks)).pipe(named(life.name))
        for (const story of stories) yield* Effect.scoped(walkStory(story, walks)).pipe(named(story.name))
        yield* Effect.scoped(walkArchive(walks)).pipe(named("closed and archived"))
        yield* Effect.scoped(walkCrossing(walks)).pipe(named("resumed as it is suspended"))
      }).pipe(Effect.provide(Logger.layer([logger])))
      for (const name of names) {
        const missing = cellsOf(machines[name]).filter((cell) => !walks.reached[name].has(cell))
        assert.sameMembers(missing, Object.keys(unreached[name]), name)
      }
      assert.sameMembers(names.flatMap(actionsOf), [...Object.keys(performed), ...Object.keys(idle)])
      assert.sameMembers([...walks.acted], Object.keys(performed))
    })
  )

  it("each event has a sender: it is the event of a cell that is reached", () => {
    for (const name of names) {
      const events = Object.values(machines[name].table).flatMap((row) => Object.keys(row))
      const sent = cellsOf(machines[name])
        .filter((cell) => whyNot(name, cell) === undefined)
        .map((cell) => cell.split(" × ")[1]!.split(" → ")[0]!)
      assert.sameMembers([...new Set(events)], [...new Set(sent)], name)
    }
  })
})
