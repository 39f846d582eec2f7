/** An agent's runes tell which rows change: real agents under random commands, and a board that reads only what runes touch. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Agents } from "../../../src/projects/service/Agents.ts"
import * as ScriptedBackend from "../../../src/runs/ScriptedBackend.ts"
import type { TurnScript } from "../../../src/runs/ScriptedTurns.ts"
import type { BoardRow } from "../../../src/domain/BoardMessages.ts"
import { after } from "../../../src/domain/BoardRow.ts"
import { rowsOf } from "../../../src/board/BoardList.ts"
import * as LiveBoard from "../../../src/board/LiveBoard.ts"
import * as World from "../../world/agents/World.ts"
import { type Dice, dice } from "../../support/Dice.ts"
import { nothingWaits } from "../../world/rpc/World.ts"

const NAMES = ["a", "b", "c", "d"]
const PARTS = 5
const STEPS = 8

/** A call's id is new each time, since a run's calls are. */
const turns = (dice: Dice, n: number): ReadonlyArray<TurnScript> =>
  Array.from({ length: 20 }, (_, turn): TurnScript => {
    const call = { id: `${n}-${turn}`, tool: "shell", asks: true }
    return [
      { output: "done" },
      { steps: [{ calls: [call] }, { say: "ok" }] },
      { hang: true },
      { error: { errorType: "refusal", message: "no", retry: false } },
      { steps: [{ usage: { inputTokens: 9, outputTokens: 2 } }, { say: "well" }] }
    ][dice(5)]!
  })

/** Commands as people give them; those that are refused are refused. */
const commands = (fleet: Agents["Service"], { caller }: World.World, dice: Dice) => {
  const name = NAMES[dice(NAMES.length)]!
  const how = (["queue", "steer", "urgent"] as const)[dice(3)]!
  const all = [
    fleet.send(name, { text: `hello ${dice(100)}`, how }, caller),
    fleet.send(name, { text: "go", how: "queue" }, caller),
    fleet.stop(name, caller),
    fleet.start(name, caller),
    fleet.restart(name, caller),
    fleet.interrupt(name, caller),
    fleet.retry(name, undefined, caller),
    fleet.dismiss(name, { which: undefined, held: dice(2) === 0 }, caller),
    Effect.flatMap(fleet.calls, ([call]) =>
      call === undefined
        ? Effect.void
        : Effect.flatMap(fleet.askedCall(call.callId), ({ hash }) =>
            fleet.answerCall(call.callId, { behavior: "allow", reason: "", hash }, caller)
          )
    )
  ]
  return Effect.ignore(all[dice(all.length)]! as Effect.Effect<unknown, unknown>)
}

const everything = (fleet: Agents["Service"]) =>
  Effect.gen(function* () {
    const [agents, backlog, calls] = [yield* fleet.all, yield* fleet.backlog, yield* fleet.calls]
    return { ...nothingWaits, agents, backlog, calls, startedAt: 0, all: false, today: new Map() }
  })

/** In the order of their ids. The model's context is told by the run, and no rune says so. */
const told = (rows: Iterable<BoardRow>) =>
  [...rows].map((row) => ({ ...row, context: null })).toSorted((a, b) => Number(a.id > b.id) - Number(a.id < b.id))

describe("a board that reads only what the runes touch", () => {
  it.live.each([1, 2, 3])(
    "is the whole one whenever all is still (seed %i)",
    (seed) =>
      Effect.gen(function* () {
        const throws = dice(seed)
        let starts = 0
        const w = yield* World.make(ScriptedBackend.make([{}]), () =>
          Effect.sync(() => ScriptedBackend.make([{ turns: turns(throws, ++starts) }]))
        )
        const agent = World.command({ interruptGrace: "20ms", backoff: { base: "1ms" } })
        w.configure({ agents: Object.fromEntries(NAMES.map((name) => [name, agent])) })
        const fleet = yield* w.open
        yield* fleet.register(w.config, w.caller)
        yield* World.until(fleet.all, (rows) => rows.length === NAMES.length)

        let looks = 0
        const board = yield* LiveBoard.make({
          given: () =>
            Effect.tap(
              everything(fleet),
              Effect.sync(() => void looks++)
            ),
          parts: ({ agents }) => Effect.map(fleet.some(agents.values()), (agents) => ({ agents })),
          addresses: fleet.addresses,
          log: w.log,
          allowances: { costs: () => Effect.succeed([]) } as never,
          every: "1 hour"
        })
        let rows: ReadonlyMap<string, BoardRow> = new Map()
        yield* Effect.forkScoped(
          Stream.runForEach(board.news, (news) => Effect.sync(() => void (rows = after(rows, news))))
        )
        yield* World.until(
          Effect.sync(() => rows),
          ({ size }) => size === NAMES.length
        )
        for (let part = 0; part < PARTS; part++) {
          for (let step = 0; step < STEPS; step++) {
            yield* commands(fleet, w, throws)
            if (throws(3) === 0) yield* Effect.sleep(throws(20))
          }
          const [, whole] = yield* World.until(
            Effect.map(everything(fleet), (whole) => [told(rows.values()), told(rowsOf(whole, Date.now()))] as const),
            ([parts, whole]) => JSON.stringify(parts) === JSON.stringify(whole)
          )
          assert.isAtLeast(whole.length, NAMES.length)
        }
        assert.strictEqual(looks, 1)
      }).pipe(Effect.scoped),
    30_000
  )
})
