/** Logs of every schema that was ever released, replayed forever; and what a fold may rely on. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import * as Inbox from "../../../src/agents/machines/Inbox.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import { type AnyMachine, evolve, type Snapshot } from "../../../src/core/event-actor/StateMachine.ts"
import * as ToolMachine from "../../../src/agents/machines/ToolMachine.ts"
import * as TurnMachine from "../../../src/agents/machines/TurnMachine.ts"
import * as WorkerMachine from "../../../src/agents/machines/WorkerMachine.ts"
import { layerMemory } from "../../../src/app/DaemonLog.ts"
import * as Projection from "../../support/Projection.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import { meddle, note, storeFile, withLog } from "../../world/event-log/Disk.ts"

type Any = Snapshot<string, unknown>

const machine = (machine: AnyMachine, initial: unknown): Projection.Fold<Any> => ({
  initial: { state: machine.initial, data: initial, entered: 0, seq: 0, at: 0 },
  apply: (snapshot, rune: Rune) => {
    if (rune.kind === "run.output") return snapshot
    if (rune.kind === "worker.started") {
      return {
        state: machine.initial,
        data: rune.payload["initial"],
        entered: rune.eventId,
        seq: rune.seq,
        at: rune.at
      }
    }
    return evolve<string, { readonly _tag: string }, unknown, { readonly _tag: string }>(
      machine as never,
      snapshot,
      rune
    )
  }
})

const folds = {
  worker: machine(WorkerMachine.Worker, null),
  inbox: machine(Inbox.Inbox, Inbox.initial),
  turn: {
    ...machine(TurnMachine.Turn, TurnMachine.initial()),
    apply: TurnMachine.evolveTurn as Projection.Fold<Any>["apply"]
  },
  tool: machine(ToolMachine.Tool, ToolMachine.initial())
}

const fixtures = new URL("../../fixtures/runes/", import.meta.url)

describe("a log that an older agentd wrote", () => {
  const versions = readdirSync(fixtures).filter((name) => name.endsWith(".sql"))

  it("there is one for every schema", () => {
    expect(versions).toEqual(["v1.sql"])
  })

  for (const version of versions) {
    it.effect(`${version}: opens, verifies, folds to what it meant, and goes on`, () =>
      Effect.gen(function* () {
        const file = yield* storeFile
        meddle(file, readFileSync(new URL(version, fixtures), "utf8"))
        yield* withLog({ file }, (log) =>
          Effect.gen(function* () {
            const verdict = yield* log.verify
            expect(verdict).toMatchObject({ streams: 2, problems: [] })
            const states = yield* Projection.replay(log, folds)
            expect(states.worker).toMatchObject({
              state: "BuildingPrompt",
              data: {
                sessionSeq: 2,
                consecutiveErrors: 0,
                totalErrors: 1,
                runId: null,
                lastError: "exit 1: no such model"
              }
            })
            expect(states.inbox).toMatchObject({ data: { waiting: [], carried: [{ messageId: "m1", from: "ana" }] } })
            expect(states.turn).toMatchObject({ state: "idle", data: { turnId: "t1", pendingCalls: [] } })
            expect(states.tool).toMatchObject({ state: "completed_result", data: { callId: "c1", toolName: "shell" } })
            const [next] = yield* log.append([note("shop-1a2b3c4d", 1)])
            expect(next!.eventId).toBe(verdict.runes + 1)
            expect((yield* log.verify).problems).toEqual([])
          })
        )
      })
    )
  }
})

describe("Projection", () => {
  it.effect(
    "INV-REPLAY-DETERMINISTIC, INV-REPLAY-IDEMPOTENT: the log folds to the same, however often, from disk or memory",
    () =>
      Effect.gen(function* () {
        const file = yield* storeFile
        meddle(file, readFileSync(new URL("v1.sql", fixtures), "utf8"))
        const fold = (log: EventLog["Service"]) => Projection.replay(log, folds)
        const [once, twice] = yield* withLog({ file }, (log) => Effect.all([fold(log), fold(log)]))
        expect(twice).toEqual(once)
        expect(yield* withLog({ file }, fold)).toEqual(once)
      })
  )

  it.effect("routes each rune to the fold of its actor's family, in order, and others to none", () =>
    Effect.gen(function* () {
      const log = yield* EventLog
      yield* log.append([
        note("a", 1),
        { ...note("a", 2), actor: "seat/reviews/pm" },
        { ...note("a", 3), actor: "daemon" },
        note("b", 4)
      ])
      const collect: Projection.Fold<ReadonlyArray<number>> = {
        initial: [],
        apply: (ids, rune) => [...ids, rune.eventId]
      }
      const all = { inbox: collect, daemon: collect, worker: collect }
      expect(yield* Projection.replay(log, all)).toEqual({ inbox: [1, 4], daemon: [3], worker: [] })
      expect((yield* Projection.replay(log, all, { stream: "b" })).inbox).toEqual([4])
    }).pipe(Effect.provide(layerMemory))
  )
})
