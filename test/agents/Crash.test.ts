/**
 * The daemon dies at every rune: right after it is durable, before anybody has heard
 * of it, or once they have. What the next daemon makes of the log is what was asked,
 * done once. `LONG=1` takes every point, else a sample of them.
 */
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Queue, Stream } from "effect"
import { layerMemory } from "../../src/app/DaemonLog.ts"
import { Redact } from "../../src/event-log/Redact.ts"
import { EventLog, StorageError } from "../../src/event-log/EventLog.ts"
import * as Recovery from "../../src/agents/Recovery.ts"
import type { Backend, Run, RunEvent, RunSpec } from "../../src/backends/Backend.ts"
import type { Fate } from "../../src/domain/AgentPort.ts"
import type { Rune } from "../../src/event-log/Rune.ts"
import { AgentWorld, caller, STREAM } from "./AgentWorld.ts"
import { until } from "./World.ts"

const long = process.env["LONG"] !== undefined
/** Of the sample. */
const EVERY = 9

/** What the agents of all lives did outside. */
interface Outside {
  paid: number
  approvals: number
}

/** An agent that does as it is told: pays (and asks first), hangs until it is interrupted, or answers. */
const agent = (outside: Outside): Backend => ({
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

/** A log on which a daemon dies: the n-th append is the last one; `heard`: it is still told of. */
const mortal = Effect.fnUntraced(function* (log: EventLog["Service"], n: number, heard: boolean) {
  const dead = yield* Deferred.make<void>()
  const gone = yield* Deferred.make<never, StorageError>()
  let count = 0
  const append: EventLog["Service"]["append"] = (drafts) =>
    Effect.suspend(() => {
      if (++count > n) return Deferred.await(gone)
      if (count < n) return log.append(drafts)
      const last = Effect.tap(log.append(drafts), () => Deferred.succeed(dead, undefined))
      return heard ? last : Effect.andThen(last, Deferred.await(gone))
    })
  const mortalLog: EventLog["Service"] = {
    ...log,
    append,
    appendLazy: (drafts) => (count >= n ? Effect.void : log.appendLazy(drafts))
  }
  const error = new StorageError({ message: "the daemon is gone", remedy: "", reason: "closed" })
  return {
    log: mortalLog,
    dead: Deferred.await(dead),
    bury: Deferred.fail(gone, error),
    count: () => count
  }
})

const MESSAGES = ["m1", "m2", "m3", "m4"] as const
const TEXTS = { m1: "pay", m2: "hang, and be dropped", m3: "hang, and be steered", m4: "say ok" }
type Id = (typeof MESSAGES)[number]

/** What a person and a plan do, until all is done; again from its beginning in each life. */
const drive = Effect.fnUntraced(function* (world: AgentWorld, outside: Outside) {
  const { tree } = world
  const message = (messageId: Id) => ({ messageId, from: "plan:1", text: TEXTS[messageId], alone: true })
  const fate = (messageId: Id, holds: (fate: Fate) => boolean) =>
    until(
      Effect.tap(tree.fate(messageId), () =>
        Effect.forEach(
          tree.calls().filter(({ state }) => state === "awaiting_approval"),
          ({ callId }) =>
            Effect.ignore(
              Effect.tap(tree.answer(callId, { behavior: "allow", reason: "" }, caller), () =>
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
    Effect.sync(() => `${tree.turn().state} ${world.agent.life!.snapshot.state}`),
    (states) => states === "idle idle"
  )
})

const settings = { backoff: { base: "1ms" }, interruptGrace: "2s" }
const fresh = Effect.gen(function* () {
  const log = Context.get(yield* Layer.build(Layer.fresh(layerMemory.pipe(Layer.provide(Redact.layer)))), EventLog)
  const payload = { config: "/shop/agentd.jsonc", name: "shop" }
  yield* log.append([{ stream: STREAM, kind: "project.registered", actor: "project", payload }])
  return log
})
const life = Effect.fnUntraced(function* (log: EventLog["Service"], outside: Outside) {
  const world = new AgentWorld(log, [], settings)
  world.puppet = agent(outside)
  yield* world.open
  return world
})

const idsOf = ({ payload }: Rune) => (payload["event"] as { messageIds?: ReadonlyArray<string> }).messageIds ?? []

/** All that was promised of it. */
const holds = Effect.fnUntraced(function* (world: AgentWorld, log: EventLog["Service"], outside: Outside) {
  const { agent: live, tree } = world
  const runes = yield* log.tail({ stream: STREAM }, 10_000)
  assert.deepStrictEqual((yield* log.verify).problems, [])
  const of = (...kinds: ReadonlyArray<string>) => runes.filter(({ kind }) => kinds.includes(kind))
  // every turn ends once, and is finalized; agent and turn take the same ones
  const started = of("turn.started")
  const ended = of("turn.completed", "turn.interrupted", "turn.error")
  assert.lengthOf(ended, started.length)
  assert.lengthOf(of("turn.finalized"), started.length)
  assert.lengthOf(of("agent.spawning"), of("worker.started").length)
  assert.lengthOf(of("agent.idle"), of("agent.busy").length)
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
  assert.deepStrictEqual(record.life, live.life!.snapshot)
  assert.deepStrictEqual(record.spent, live.meter.spent)
  assert.deepStrictEqual([...record.ended], [...live.record.ended])
  assert.strictEqual(record.calls.size, 0)
  assert.strictEqual(record.incarnation, live.record.incarnation)
})

/** One death, and what comes after it; false when the daemon lived through it all. */
const die = Effect.fnUntraced(function* (n: number, heard: boolean) {
  const log = yield* fresh
  const outside: Outside = { paid: 0, approvals: 0 }
  const death = yield* mortal(log, n, heard)
  const first = yield* life(death.log, outside)
  const driving = yield* Effect.forkScoped(drive(first, outside))
  const survived = yield* Deferred.make<boolean>()
  yield* Effect.forkScoped(
    Effect.flatMap(Effect.exit(Fiber.join(driving)), ({ _tag }) => Deferred.succeed(survived, _tag === "Success"))
  )
  // what it had begun by then may go on a little
  yield* Effect.forkScoped(
    Effect.andThen(
      Effect.andThen(death.dead, Effect.sleep(heard ? 3 : 0)),
      Effect.suspend(() => Deferred.succeed(survived, false))
    )
  )
  const done = yield* Deferred.await(survived)
  yield* death.bury
  yield* first.lose
  const second = yield* life(log, outside)
  yield* Effect.catchCause(Effect.andThen(drive(second, outside), holds(second, log, outside)), (cause) =>
    Effect.flatMap(log.tail({ stream: STREAM }, 200), (runes) => {
      const told = runes.map(({ actor, eventId, kind, trigger }) => `${eventId} ${kind} ${actor} ${trigger}`)
      return Effect.andThen(
        Effect.logError(`after append ${n}, ${heard ? "heard" : "unheard"}:\n${told.join("\n")}`),
        Effect.failCause(cause)
      )
    })
  ).pipe(Effect.ensuring(second.lose))
  return !done
})

describe("kill -9 at every rune", { timeout: 300_000 }, () => {
  for (const heard of [false, true]) {
    it.live(`${heard ? "once it has been heard of" : "before anybody hears of it"}: done once, nothing lost`, () =>
      Effect.gen(function* () {
        const step = long ? 1 : EVERY
        let n = 1
        while (yield* Effect.scoped(die(n, heard))) n += step
        assert.isAbove(n, 40)
      })
    )
  }
})
