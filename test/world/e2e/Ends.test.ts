/** Ends of a run: twelve ends on each backend, in a turn, between turns, and asked for by agentd. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Stage from "../../support/Stage.ts"
import { type Step, toldTo } from "../../support/Told.ts"

const ALL = ["claude", "acp", "codex", "model", "command"] as const
type On = (typeof ALL)[number]

const PROGRAM = `sleep 0.5
case "$1" in
  *'"exit":1'*) exit 1;;
  *'"hold"'*) sleep 60;;
esac
echo TURN_COMPLETE`

/** How the agent's seat was left; "stays" for a turn that failed. */
const seatEvents = (shop: Stage.Project) =>
  Effect.map(shop.log(), (runes) =>
    runes.flatMap(({ actor, payload }): ReadonlyArray<string> => {
      const event = payload["event"] as { readonly _tag: string; readonly how?: string } | undefined
      if (actor !== "seat/room/it") return []
      return event?._tag === "AgentLeft" ? [event.how ?? ""] : event?._tag === "TurnFailed" ? ["stays"] : []
    })
  )

const open = Effect.fnUntraced(function* (on: On, more: Stage.More = {}) {
  const stage = yield* Stage.make
  const { backend = {}, ...rest } = more
  const backoff = { base: "2s", cap: "2s" }
  const it =
    on === "command"
      ? {
          backend: { type: "command", shell: PROGRAM, promptBy: "argument", killGrace: "500ms", readyAfter: "0ms" },
          may: [],
          minRunInterval: "0ms",
          backoff,
          ...rest
        }
      : stage.agent(on, { backend, backoff, ...rest })
  const shop = stage.home({
    agents: { it, other: stage.agent("acp") },
    channels: { room: { agents: ["it", "other"] } }
  })
  yield* stage.up
  yield* shop.register
  const view = stage.rpc((client) => client.Channel({ name: "room", caller: shop.caller }))
  const over = join(stage.box.folder, "over")
  return {
    stage,
    shop,
    seat: Effect.map(view, ({ channel }) => channel.seats.find(({ agent }) => agent === "it")?.state),
    /** Sends the steps to the agent, and lets the other one wait until `over`. */
    begin: (steps: ReadonlyArray<Step>) =>
      stage.rpc((client) =>
        client.PostToChannel({
          name: "room",
          text: ["go", toldTo("it", ...steps), toldTo("other", { until: over }, { say: "over" })].join("\n"),
          caller: shop.caller
        })
      ),
    /** Ends the wait of the other one; an agent that has kept its place then gets the floor. */
    next: Effect.andThen(
      Effect.sync(() => writeFileSync(over, "")),
      shop.of("it", 2, "turn.started")
    ),
    pid: Effect.map(
      shop.row("it", "is alive", ({ pid }) => pid !== null),
      ({ pid }) => pid!
    ),
    /** Waits until the channel has heard of the end; returns how the seat was left. */
    left: shop.until("the seat has moved", seatEvents(shop), (events) => events.length > 0),
    leaves: seatEvents(shop),
    errors: Effect.map(shop.agents, (rows) => rows.find(({ agent }) => agent === "it")!.totalErrors),
    gone: shop.until(
      "its run has ended",
      Effect.map(shop.log("worker.moved"), (runes) =>
        runes.filter(
          ({ actor, payload }) =>
            actor === "worker/it" && (payload["event"] as { readonly _tag: string })._tag === "SessionExited"
        )
      ),
      (runes) => runes.length > 0
    )
  }
})

type Room = Effect.Success<ReturnType<typeof open>>

/** State of the seat when the run ends. In a turn it is ACTIVE. */
type At = "its turn" | "QUEUED" | "WAITING" | "ACTIVE"

interface Cell {
  readonly at: At
  readonly steps?: ReadonlyArray<Step>
  readonly more?: Stage.More
  /** Ends the run, if its steps do not. */
  readonly act?: (room: Room) => Effect.Effect<unknown, unknown>
  /** How the seat is left: offline for this reason, or "stays" after a failed turn; undefined: it does not move. */
  readonly left?: "disconnected" | "stopped" | "stays"
  readonly errors: 0 | 1
  /** The error of the turn. */
  readonly error?: string
}

interface Row extends Cell {
  readonly end: string
  /** Differences on a backend, or the reason why it has no such end. */
  readonly on?: { readonly [on in On]?: Partial<Cell> | string }
}

const kill = (signal: NodeJS.Signals) => (room: Room) =>
  Effect.map(room.pid, (pid) => {
    process.kill(pid, signal)
  })

const death = { left: "disconnected", errors: 1 } as const
const NO_TURNS = "a run is one turn: between turns there is no process"
const OWN = "agentd's own program exits with code 0 only when its input ends, which agentd alone does"

/** Answers by which the seat comes to each state. */
const SAID: { readonly [at in At]: ReadonlyArray<Step> } = {
  "its turn": [],
  QUEUED: [{ say: "hi" }],
  WAITING: [{ say: "WAIT: for a decision, until person" }],
  ACTIVE: [{ say: "more soon …" }]
}

const between = (at: At): Row => ({
  end: `SIGKILL between turns, ${at}`,
  at,
  ...death,
  act: kill("SIGKILL"),
  on: { command: NO_TURNS }
})

const ROWS: ReadonlyArray<Row> = [
  {
    end: "exit 0 in its turn",
    at: "its turn",
    steps: [{ exit: 0 }],
    ...death,
    error: "exit",
    on: { model: OWN, command: "exit code 0 completes its turn" }
  },
  {
    end: "exit 1 in its turn",
    at: "its turn",
    steps: [{ exit: 1 }],
    ...death,
    error: "exit",
    // the model agent exits with a code only when a signal asks it to
    on: { model: { steps: [{ hold: true }], act: kill("SIGTERM") } }
  },
  {
    end: "SIGKILL in its turn",
    at: "its turn",
    steps: [{ hold: true }],
    act: kill("SIGKILL"),
    ...death,
    error: "exit"
  },
  {
    end: "runTimeout",
    at: "its turn",
    steps: [{ hold: true }],
    more: { runTimeout: "1s" },
    left: "stays",
    errors: 1,
    error: "timeout"
  },
  {
    end: "silence",
    at: "its turn",
    steps: [{ hold: true }],
    more: { backend: { silence: "1s" } },
    left: "stays",
    errors: 1,
    error: "silence",
    on: {
      // the silence of the model's API
      model: { more: { backend: { silence: "1s", retries: 0 } } },
      command: "a program without turns may be silent until runTimeout"
    }
  },
  {
    end: "exit 0 between turns",
    at: "QUEUED",
    steps: [{ leave: 3000 }],
    errors: 0,
    on: { model: OWN, command: NO_TURNS }
  },
  between("QUEUED"),
  between("WAITING"),
  between("ACTIVE"),
  {
    end: "idleTimeout",
    at: "QUEUED",
    more: { idleTimeout: "1s" },
    errors: 0,
    on: { command: NO_TURNS }
  },
  {
    end: "stop",
    at: "QUEUED",
    act: (room) => room.shop.cli("stop", "it"),
    left: "stopped",
    errors: 0,
    on: { command: { at: "its turn", steps: [{ hold: true }] } }
  },
  {
    end: "restart",
    at: "QUEUED",
    act: ({ pid, stage }) =>
      Effect.gen(function* () {
        const old = yield* pid
        yield* stage.box.terminate
        assert.isFalse(existsSync(`/proc/${old}`))
        yield* stage.up
      }),
    errors: 0,
    on: { command: { at: "its turn", steps: [{ hold: true }] } }
  }
]

describe("the end of a run", () => {
  it("has a test for each of the twelve ends on each backend, or a reason why there is none", () => {
    assert.strictEqual(ROWS.length, 12)
    for (const { end, on: other = {} } of ROWS)
      for (const on of ALL) assert.notStrictEqual(other[on], "", `${end} on ${on}`)
  })

  for (const { end, on: other = {}, ...row } of ROWS)
    for (const on of ALL) {
      const own = other[on] ?? {}
      if (typeof own === "string") continue
      const { act, at, error, errors, left, more, steps = [] } = { ...row, ...own }
      const isBetween = at !== "its turn"
      it.live(`${end} on ${on}: its seat ${left ?? "does not move"}, errors: ${errors}`, () =>
        Effect.gen(function* () {
          const room = yield* open(on, more)
          yield* room.begin([...SAID[at], ...steps])
          if (isBetween) {
            yield* room.shop.of("it", 1, "turn.completed")
            if (at !== "ACTIVE") yield* room.shop.of("other", 1, "turn.started")
            assert.strictEqual(yield* room.seat, at)
          } else yield* room.shop.of("it", 1, "turn.started")
          yield* act?.(room) ?? room.gone
          if (left === undefined) {
            yield* room.next
            assert.deepStrictEqual(yield* room.leaves, [])
          } else assert.deepStrictEqual(yield* room.left, [left])
          assert.strictEqual(yield* room.errors, errors)
          if (error !== undefined)
            assert.strictEqual((yield* room.shop.of("it", 1, "turn.error"))[0]?.payload["error_type"], error)
          // an agent that has lost its process comes back by itself
          if (left === "disconnected") yield* room.shop.until("it is back", room.seat, (state) => state !== "OFFLINE")
        }).pipe(Effect.scoped)
      )
    }
})

describe("runTimeout", () => {
  for (const on of ["claude", "acp"] as const)
    it.live(`the time that a turn on ${on} waits for a person does not count, nor does it after a restart`, () =>
      Effect.gen(function* () {
        const stage = yield* Stage.keeping
        const shop = stage.home({ agents: { it: { ...stage.agent(on), runTimeout: "5s" } } })
        yield* stage.up
        yield* shop.register
        yield* shop.tell("it", { ask: "touch asked" }, { sleep: 3000 }, { say: "done" })
        yield* shop.asked("it")
        // longer than the limit: no event tells that it does not count
        yield* Effect.sleep("6 seconds")
        yield* stage.box.kill9
        yield* stage.up
        yield* shop.asked("it")
        yield* shop.answer("it", "allow")
        assert.deepStrictEqual(yield* shop.answers("it", 1), ["done"])
        assert.strictEqual((yield* shop.row("it", "is idle", ({ word }) => word === "idle")).totalErrors, 0)
      }).pipe(Effect.scoped)
    )
})
