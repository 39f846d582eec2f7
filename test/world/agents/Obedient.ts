/**
 * An agent that does as it is told, a person and a plan that tell it so, and all that they
 * were promised, whenever daemons die meanwhile.
 */
import { assert } from "@effect/vitest"
import { Effect, HashMap, Queue, Stream } from "effect"
import * as Recovery from "../../../src/projects/Recovery.ts"
import type { ToolsState } from "../../../src/agents/machines/ToolsState.ts"
import type { Backend, Run, RunEvent, RunSpec } from "../../../src/runs/Backend.ts"
import type { Fate } from "../../../src/domain/AgentPort.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import { leave } from "./Leave.ts"
import { type AgentWorld, caller, STREAM } from "./AgentWorld.ts"
import { until } from "./World.ts"

/** Deeds outside of the agents of all lives. */
export interface Outside {
  paid: number
  approvals: number
}

/** An agent that does as it is told: pays (and asks first), hangs until it is interrupted, or answers. */
export const obedient = (outside: Outside): Backend => ({
  name: "obedient",
  turns: true,
  runsTools: true,
  start: Effect.fnUntraced(function* (spec: RunSpec) {
    const queue = yield* Queue.unbounded<RunEvent>()
    let active: string | undefined
    const say = (...events: ReadonlyArray<RunEvent>) =>
      Effect.forEach(events, (event) => Queue.offer(queue, event), { discard: true })
    const end = (event: RunEvent) =>
      Effect.suspend(() => {
        active = undefined
        return say({ _tag: "Usage", inputTokens: 10, outputTokens: 1 }, event)
      })
    const begin = (turnId: string, text: string) =>
      Effect.suspend(() => {
        active = turnId
        const started: RunEvent = { _tag: "TurnStarted", turnId }
        if (/hang/.test(text)) return say(started, { _tag: "Delta", stream: "assistant", text: "…" })
        if (!/pay/.test(text)) return Effect.andThen(say(started), end({ _tag: "TurnCompleted", turnId, output: "ok" }))
        return say(
          started,
          { _tag: "ToolCall", callId: turnId, tool: "pay", arguments: { amount: 100 }, readOnly: false },
          { _tag: "ApprovalRequested", callId: turnId, reason: "" }
        )
      })
    const run: Run = {
      runId: spec.runId,
      events: Stream.fromQueue(queue),
      send: ({ text, turnId }) => begin(turnId, text),
      answer: (callId, { behavior }) =>
        Effect.suspend(() => {
          if (active !== callId) return Effect.void
          if (behavior === "allow") outside.paid++
          const status = behavior === "allow" ? "success" : "denied"
          return Effect.andThen(
            say({ _tag: "ToolResult", callId, status, output: "paid" }),
            end({ _tag: "TurnCompleted", turnId: callId, output: "paid" })
          )
        }),
      cancelCall: () => Effect.void,
      interruptTurn: Effect.suspend(() =>
        active === undefined ? Effect.void : end({ _tag: "TurnInterrupted", turnId: active, output: "half" })
      ),
      end: say({ _tag: "Exited", outcome: { _tag: "Success" } }),
      kill: say({ _tag: "Exited", outcome: { _tag: "Error", detail: "killed" } })
    }
    yield* say({ _tag: "Started", sessionId: "s" })
    yield* begin(spec.turnId, spec.prompt)
    return run
  })
})

const MESSAGES = ["m1", "m2", "m3", "m4"] as const
const TEXTS = { m1: "pay", m2: "hang, and be dropped", m3: "hang, and be steered", m4: "say ok" }
type Id = (typeof MESSAGES)[number]

/** Plays a person and a plan, until all is done; again from the beginning in each life. */
export const drive = Effect.fnUntraced(function* (world: AgentWorld, outside: Outside) {
  const { tree } = world
  const message = (messageId: Id) => ({ messageId, from: "plan:1", text: TEXTS[messageId], alone: true })
  const fate = (messageId: Id, holds: (fate: Fate) => boolean) =>
    until(
      Effect.tap(tree.fate(messageId), () =>
        Effect.forEach(
          tree.calls().filter(({ state }) => state === "awaiting_approval"),
          ({ callId }) =>
            Effect.ignore(
              Effect.tap(tree.answer(callId, leave(tree, callId), caller), () =>
                Effect.sync(() => void outside.approvals++)
              )
            )
        )
      ),
      holds
    )
  const over = ({ _tag }: Fate) => _tag === "Ended"
  const underWay = (one: Fate) => over(one) || (one._tag === "Carried" && tree.turn().state === "streaming")
  if ((tree.worker()?.state ?? "Stopped") === "Stopped") yield* tree.start(caller)
  yield* tree.post(message("m1"))
  yield* fate("m1", over)
  yield* tree.post(message("m2"))
  yield* fate("m2", underWay)
  yield* tree.interruptMessage("m2", "not needed")
  yield* fate("m2", over)
  yield* tree.post(message("m3"))
  yield* fate("m3", underWay)
  yield* tree.steer(message("m4"))
  yield* Effect.sleep(20)
  // one that came as its turn was lost waits in the inbox, and steers nothing any more
  const steered = Effect.gen(function* () {
    const waits = (yield* tree.fate("m4"))._tag === "Waiting" && tree.turn().data.steer === null
    if (waits && (yield* tree.fate("m3"))._tag === "Carried") yield* tree.interruptMessage("m3", "enough")
    return yield* tree.fate("m3")
  })
  yield* until(steered, over)
  yield* fate("m4", over)
  yield* until(
    Effect.sync(() => `${tree.turn().state} ${tree.life().state}`),
    (states) => states === "idle idle"
  )
})

export const settings = { backoff: { base: "1ms" }, interruptGrace: "2s" }

const idsOf = ({ payload }: Rune) => (payload["event"] as { messageIds?: ReadonlyArray<string> }).messageIds ?? []

/** All that was promised of it. */
export const holds = Effect.fnUntraced(function* (world: AgentWorld, log: EventLog["Service"], outside: Outside) {
  const { tree } = world
  const runes = yield* log.tail({ stream: STREAM }, 10_000)
  assert.deepStrictEqual((yield* log.verify).problems, [])
  const of = (...kinds: ReadonlyArray<string>) => runes.filter(({ kind }) => kinds.includes(kind))
  // every turn ends once; agent and turn take the same ones
  const started = of("turn.started")
  const ended = of("turn.completed", "turn.interrupted", "turn.error")
  assert.lengthOf(ended, started.length)
  assert.isAtLeast(of("turn.finalized").length, of("turn.interrupted").length)
  assert.lengthOf(of("agent.spawning"), of("worker.started").length)
  const ofToday = new Set(started.filter(({ format }) => format > 1).map(({ payload }) => payload["turn_id"]))
  for (const { moves, payload } of [...started, ...ended]) {
    if (ofToday.has(payload["turn_id"])) assert.include(moves, `agent/${tree.name}`)
  }
  // each call has its one result
  assert.deepStrictEqual(
    of("tool.result")
      .map(({ payload }) => payload["call_id"])
      .toSorted(),
    of("tool.call")
      .map(({ payload }) => payload["call_id"])
      .toSorted()
  )
  // a message comes again exactly where its turn was lost
  for (const messageId of MESSAGES) {
    const turns = started.filter((rune) => idsOf(rune).includes(messageId)).map(({ payload }) => payload["turn_id"])
    const ends = turns.map((turnId) => ended.find(({ payload }) => payload["turn_id"] === turnId)!)
    const again = ends.map(({ kind, payload }) => kind === "turn.error" && (payload["event"] as { retry?: true }).retry)
    // whoever interrupts one that was lost just then takes it back
    const taken = of("inbox.withdrawn").some(({ payload }) => JSON.stringify(payload).includes(`"${messageId}"`))
    assert.deepStrictEqual(
      again.map(Boolean),
      ends.map((_, index) => taken || index < ends.length - 1),
      messageId
    )
    assert.lengthOf(
      of("inbox.received").filter(({ payload }) => JSON.stringify(payload).includes(`"${messageId}"`)),
      1
    )
  }
  assert.isAtMost(outside.paid, outside.approvals, "nothing is paid twice for one approval")
  assert.isAtLeast(outside.paid, 1)
  assert.deepStrictEqual(tree.turn().data.unfinished, [])
  assert.deepStrictEqual(tree.inbox().data.waiting, [])
  assert.deepStrictEqual(tree.calls(), [])
  // the fold of the log stands where the live agent does
  const record = (yield* Effect.provideService(Recovery.recover, EventLog, log)).get(STREAM)!.agents.get("builder")!
  assert.strictEqual(record.broken, undefined)
  assert.deepStrictEqual(record.turn, tree.turn())
  assert.deepStrictEqual(record.inbox, tree.inbox())
  assert.deepStrictEqual(record.life, tree.life())
  assert.deepStrictEqual(record.worker, tree.actors.worker.state)
  const plain = ({ counts, grants, open, ...rest }: ToolsState) => {
    const entries = [counts, grants, open].map((map) => [...HashMap.entries<string, unknown>(map)])
    return { ...rest, entries }
  }
  assert.deepStrictEqual(plain(record.tools), plain(tree.actors.tools.state))
})
