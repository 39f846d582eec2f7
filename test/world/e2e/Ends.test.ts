/** Ends of a run: the same ends on each backend, in its turn, between turns, and asked for by agentd. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Stage from "../../support/Stage.ts"
import { type Step, toldTo } from "../../support/Told.ts"

type On = "acp" | "claude" | "command"

const PROGRAM = `sleep 0.5
case "$1" in
  *'"exit":0'*) exit 0;;
  *'"exit":1'*) exit 1;;
  *'"signal"'*) kill -9 $$;;
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
  const it =
    on === "command"
      ? {
          backend: { type: "command", shell: PROGRAM, promptBy: "argument", killGrace: "500ms", readyAfter: "0ms" },
          may: [],
          minRunInterval: "0ms",
          backoff: { base: "2s", cap: "2s" },
          ...rest
        }
      : stage.agent(on, { backend, backoff: { base: "2s", cap: "2s" }, ...rest })
  const shop = stage.home({
    agents: { it, other: stage.agent("acp") },
    channels: { room: { agents: ["it", "other"] } }
  })
  yield* stage.up
  yield* shop.register
  const view = stage.rpc((client) => client.Channel({ name: "room", caller: shop.caller }))
  const seat = Effect.map(view, ({ channel }) => channel.seats.find(({ agent }) => agent === "it")?.state)
  return {
    stage,
    shop,
    seat,
    post: (...lines: ReadonlyArray<string>) =>
      stage.rpc((client) => client.PostToChannel({ name: "room", text: lines.join("\n"), caller: shop.caller })),
    /** Waits until the channel has heard of the end; returns how the seat was left. */
    left: shop.until("the seat has moved", seatEvents(shop), (events) => events.length > 0),
    leaves: seatEvents(shop),
    /** The end of the worker's last run, and how many errors are counted. */
    end: Effect.map(shop.agents, (rows) => rows.find(({ agent }) => agent === "it")!),
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

const told = (...steps: ReadonlyArray<Step>) => toldTo("it", ...steps)

interface Row {
  readonly end: string
  readonly steps: ReadonlyArray<Step>
  readonly more?: Stage.More
  /** How the seat is left. */
  readonly left: ReadonlyArray<string>
  readonly on?: ReadonlyArray<On>
}

const ALL: ReadonlyArray<On> = ["claude", "acp", "command"]

const IN_TURN: ReadonlyArray<Row> = [
  { end: "exit 0", steps: [{ exit: 0 }], left: ["disconnected"], on: ["claude", "acp"] },
  { end: "exit 1", steps: [{ exit: 1 }], left: ["disconnected"] },
  { end: "SIGKILL", steps: [{ signal: "SIGKILL" }], left: ["disconnected"] },
  { end: "runTimeout", steps: [{ hold: true }], more: { runTimeout: "1s" }, left: ["stays"] },
  {
    end: "silence",
    steps: [{ hold: true }],
    more: { backend: { silence: "1s" } },
    left: ["stays"],
    on: ["claude", "acp"]
  }
]

describe("the end of a run in its turn", () => {
  for (const { end, left, more, on = ALL, steps } of IN_TURN)
    for (const backend of on)
      it.live(`${end} on ${backend} → ${left[0]}, one counted error`, () =>
        Effect.gen(function* () {
          const room = yield* open(backend, more)
          yield* room.post("go", told(...steps))
          yield* room.gone
          const row = yield* room.end
          assert.strictEqual(row.totalErrors, 1)
          assert.deepStrictEqual(yield* room.left, [...left])
          const [ended] = yield* room.shop.of("it", 1, "turn.error")
          assert.strictEqual(
            ended?.payload["error_type"],
            end === "runTimeout" ? "timeout" : end === "silence" ? "silence" : "exit"
          )
        }).pipe(Effect.scoped)
      )
})

/** A room in which the agent waits for the floor with a run that is alive, while the other one works. */
const between = Effect.fnUntraced(function* (on: On, steps: ReadonlyArray<Step> = [], more: Stage.More = {}) {
  const room = yield* open(on, more)
  const over = join(room.stage.box.folder, "over")
  yield* room.post("go", told({ say: "hi" }, ...steps), toldTo("other", { until: over }, { say: "over" }))
  yield* room.shop.of("other", 1, "turn.started")
  assert.strictEqual(yield* room.seat, "QUEUED")
  /** The other one is done: an agent that has kept its place gets the floor. */
  const next = Effect.andThen(
    Effect.sync(() => writeFileSync(over, "")),
    room.shop.of("it", 2, "turn.started")
  )
  return { ...room, next }
})

describe("the end of a run between turns, while its seat is QUEUED", () => {
  for (const on of ["claude", "acp"] as const) {
    it.live(`SIGKILL on ${on} → disconnected, one counted error`, () =>
      Effect.gen(function* () {
        const room = yield* between(on)
        const { pid } = yield* room.shop.row("it", "is alive", ({ pid }) => pid !== null)
        process.kill(pid!, "SIGKILL")
        assert.deepStrictEqual(yield* room.left, ["disconnected"])
        assert.strictEqual((yield* room.end).totalErrors, 1)
        // it comes back by itself
        yield* room.shop.until("it is back", room.seat, (state) => state === "IDLE")
      }).pipe(Effect.scoped)
    )

    it.live(`exit 0 on ${on} → its seat stays, no error`, () =>
      Effect.gen(function* () {
        const room = yield* between(on, [{ leave: 3000 }])
        yield* room.gone
        yield* room.next
        assert.deepStrictEqual([yield* room.leaves, (yield* room.end).totalErrors], [[], 0])
      }).pipe(Effect.scoped)
    )

    it.live(`idleTimeout on ${on} → its seat stays, no error`, () =>
      Effect.gen(function* () {
        const room = yield* between(on, [], { idleTimeout: "1s" })
        yield* room.gone
        yield* room.next
        assert.deepStrictEqual([yield* room.leaves, (yield* room.end).totalErrors], [[], 0])
      }).pipe(Effect.scoped)
    )

    it.live(`agentd stop on ${on} → stopped, no error`, () =>
      Effect.gen(function* () {
        const room = yield* between(on)
        yield* room.shop.cli("stop", "it")
        assert.deepStrictEqual(yield* room.left, ["stopped"])
        assert.strictEqual((yield* room.end).totalErrors, 0)
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
        yield* shop.tell("it", { ask: "true" }, { sleep: 3000 }, { say: "done" })
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
