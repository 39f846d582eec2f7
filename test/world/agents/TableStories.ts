/**
 * TableStories: whole conversations of puppets by which each cell of the conversation's table
 * is reached, and what of an agent's tables takes a conversation.
 */
import { assert } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import type { Agents } from "../../../src/projects/service/Agents.ts"
import type { RunEvent } from "../../../src/runs/Backend.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import type * as Puppet from "./Puppet.ts"
import { error, fatal, success, usage } from "./TableLives.ts"
import * as World from "./World.ts"

/** A conversation of puppets. */
export interface Several {
  readonly w: World.World
  readonly fleet: Agents["Service"]
  readonly puppet: Puppet.Puppet
  readonly run: (agent: string, n?: number) => Effect.Effect<Puppet.Pulled>
  /** A turn of the agent's begins. */
  readonly busy: (agent: string) => Effect.Effect<Puppet.Pulled>
  readonly state: (state: string) => Effect.Effect<unknown>
  /** The conversation has moved by this. */
  readonly moved: (from: string, trigger: string, count?: number) => Effect.Effect<unknown>
}

export interface Story {
  readonly name: string
  readonly agents: ReadonlyArray<string>
  readonly agent?: object
  readonly conversation?: object
  readonly puppet?: Parameters<typeof Puppet.make>[0]
  readonly lives: (all: Several) => Effect.Effect<unknown, { readonly message: string }>
}

export const configOf = ({
  agent = {},
  agents,
  conversation = {}
}: Pick<Story, "agent" | "agents" | "conversation">) => ({
  agents: Object.fromEntries(agents.map((name) => [name, World.command({ backoff: { base: "1ms" }, ...agent })])),
  conversation
})

export const several = (w: World.World, fleet: Agents["Service"], puppet: Puppet.Puppet): Several => {
  const run: Several["run"] = (agent, n = 0) =>
    Effect.map(
      World.until(
        Effect.sync(() => puppet.runs.filter(({ spec }) => spec.agent === agent)),
        (found) => found.length > n
      ),
      (found) => found[n]!
    )
  const moves = Effect.orDie(Effect.map(Stream.runCollect(w.log.read({})), (runes): ReadonlyArray<Rune> => [...runes]))
  return {
    w,
    fleet,
    puppet,
    run,
    busy: Effect.fnUntraced(function* (agent) {
      yield* Effect.orDie(fleet.send(agent, { text: "work", how: "queue" }, w.caller))
      const begun = yield* run(agent)
      yield* World.untilAgent(fleet, agent, ({ state }) => state === "Running")
      yield* World.until(moves, (runes) =>
        runes.some(({ payload, trigger }) => {
          const { turnId } = (payload["event"] ?? {}) as { readonly turnId?: string }
          return trigger === "new_turn" && turnId === begun.spec.turnId
        })
      )
      return begun
    }),
    state: (state) => World.until(fleet.conversations, (rows) => rows.some((row) => row.state === state)),
    moved: (from, trigger, count = 1) =>
      World.until(
        moves,
        (runes) =>
          runes.filter(
            (rune) => rune.actor.startsWith("conversation/") && rune.from === from && rune.trigger === trigger
          ).length >= count
      )
  }
}

const complete = ({ say, spec: { turnId } }: Puppet.Pulled, ...before: ReadonlyArray<RunEvent>) =>
  say(...before, { _tag: "TurnCompleted", turnId, output: "done" })

export const stories: ReadonlyArray<Story> = [
  {
    name: "closed before it has begun",
    agents: ["a"],
    agent: { autostart: false },
    lives: ({ fleet, w }) => fleet.close("", { reason: "", force: false }, w.caller)
  },
  {
    name: "begun by a message; paused twice, its agents end meanwhile; closed while it is paused",
    agents: ["a", "b"],
    agent: { autostart: false },
    lives: Effect.fnUntraced(function* ({ busy, fleet, moved, run, w }) {
      yield* fleet.send("a", { text: "work", how: "queue" }, w.caller)
      yield* moved("created", "first_message")
      for (const name of ["a", "b"]) yield* fleet.start(name, w.caller)
      const a = yield* busy("a")
      const b = yield* busy("b")
      yield* fleet.pause("", { inFlight: "complete", reason: "" }, w.caller)
      yield* complete(a)
      yield* moved("paused", "turn_completed")
      yield* b.say(fatal)
      yield* moved("paused", "agent_failed")
      yield* fleet.resume("", w.caller)
      yield* fleet.send("a", { text: "more", how: "queue" }, w.caller)
      yield* moved("active", "new_turn", 3)
      yield* fleet.pause("", { inFlight: "interrupt", reason: "" }, w.caller)
      const { sent } = yield* run("a")
      yield* a.say({ _tag: "TurnInterrupted", turnId: sent.at(-1)!.turnId, output: "" })
      yield* moved("paused", "turn_completed", 3)
      yield* fleet.close("", { reason: "", force: false }, w.caller)
    })
  },
  {
    name: "begun by an agent; suspended by its budget, in which others end; replenished, spent again, closed",
    agents: ["a", "b"],
    conversation: { budget: { tokens: 100 } },
    lives: Effect.fnUntraced(function* ({ busy, fleet, moved, run, state, w }) {
      yield* moved("created", "agent_ready")
      yield* busy("b")
      yield* complete(yield* busy("a"), usage)
      yield* state("suspended")
      yield* moved("suspended", "turn_completed")
      const b = yield* run("b")
      yield* b.say(fatal)
      yield* moved("suspended", "agent_failed")
      yield* fleet.resume("", w.caller)
      const row = yield* World.until(fleet.conversations, (rows) => rows.some(({ state }) => state === "active"))
      assert.strictEqual(row[0]!.spent.tokens, 0, "ResetBudget")
      yield* fleet.send("a", { text: "more", how: "queue" }, w.caller)
      const a = yield* run("a")
      yield* a.say(usage)
      yield* state("suspended")
      yield* fleet.close("", { reason: "", force: true }, w.caller)
    })
  },
  {
    name: "suspended by errors of its turns, and reset",
    agents: ["a"],
    agent: { maxConsecutiveErrors: 100, maxTotalErrors: 100 },
    conversation: { maxTurnErrors: 1 },
    lives: Effect.fnUntraced(function* ({ busy, fleet, moved, state, w }) {
      yield* (yield* busy("a")).say(error)
      yield* state("suspended")
      yield* fleet.resume("", w.caller)
      yield* moved("active", "new_turn", 2)
    })
  },
  {
    name: "suspended by agents that stopped for good",
    agents: ["a", "b"],
    conversation: { maxFatalStops: 2 },
    lives: Effect.fnUntraced(function* ({ busy, moved, state }) {
      yield* (yield* busy("a")).say(fatal)
      yield* moved("active", "agent_failed")
      yield* (yield* busy("b")).say({
        _tag: "Exited",
        outcome: { _tag: "Fatal", detail: "another cause", remedy: "mend" }
      })
      yield* state("suspended")
    })
  },
  {
    name: "suspended by a file that allows fewer errors than there are",
    agents: ["a"],
    lives: Effect.fnUntraced(function* ({ busy, fleet, moved, state, w }) {
      yield* (yield* busy("a")).say(error)
      yield* moved("active", "turn_completed")
      w.configure(configOf({ agents: ["a"], conversation: { maxTurnErrors: 1 } }))
      yield* fleet.register(w.config, w.caller)
      yield* state("suspended")
    })
  },
  {
    name: "closed while a turn goes on and another's run dies",
    agents: ["a", "b"],
    puppet: { deaf: true },
    agent: { interruptGrace: "1 minute" },
    lives: Effect.fnUntraced(function* ({ busy, fleet, moved, state, w }) {
      const a = yield* busy("a")
      const b = yield* busy("b")
      const closing = yield* Effect.forkChild(fleet.close("", { reason: "", force: false }, w.caller))
      yield* state("closing")
      yield* complete(b)
      yield* moved("closing", "turn_completed")
      yield* a.say(fatal)
      yield* moved("closing", "agent_failed")
      yield* b.say(success)
      yield* Fiber.join(closing)
    })
  },
  {
    name: "an agent that ends with its parent",
    agents: ["boss"],
    agent: { interruptGrace: "20ms" },
    lives: Effect.fnUntraced(function* ({ fleet, run, w }) {
      yield* World.untilAgent(fleet, "boss", ({ state }) => state === "BuildingPrompt")
      yield* fleet.spawn("boss", { name: "kid", task: "task" }, w.caller)
      yield* run("kid")
      yield* World.untilAgent(fleet, "kid", ({ state }) => state === "Running")
      yield* fleet.stop("boss", w.caller)
      yield* World.untilAgent(fleet, "kid", ({ state }) => state === "Stopped")
    })
  }
]
