/**
 * worlds: records real actors with a real store in this process, in which every append is seen. The state between two
 * appends is the one that a daemon leaves if it is killed there. Also records the kinds of runes that only modules at
 * the edges write.
 */
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as DeadLetters from "../../../src/core/event-actor/DeadLetters.ts"
import { DAEMON_STREAM } from "../../../src/core/event-log/Rune.ts"
import { Redact } from "../../../src/core/event-log/Redact.ts"
import type { AdmittingLog } from "../../../src/core/event-log/AdmittingLog.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import * as DaemonLog from "../../../src/app/DaemonLog.ts"
import { AgentWorld, STREAM } from "../../world/agents/AgentWorld.ts"
import { drive, obedient, settings } from "../../world/agents/Obedient.ts"
import { provided, type TestLog } from "../../world/agents/TestLog.ts"
import { until, untilAgent, World } from "../../world/agents/World.ts"
import { write } from "./Recorder.ts"

interface Store {
  readonly folder: string
  readonly log: TestLog
  /** Event id of the last rune of each append so far. */
  readonly appends: Array<number>
}

/** Makes a log in a file, uses it, and records it under that name. */
const stored = Effect.fnUntraced(function* <E>(
  name: string,
  use: (store: Store) => Effect.Effect<void, E, Scope.Scope>,
  {
    configs = () => ({}),
    lastOf
  }: {
    readonly configs?: () => { readonly [path: string]: string }
    /** Kind of the last rune that the killed daemon had written. */
    readonly lastOf?: string
  } = {}
) {
  const folder = mkdtempSync(join(tmpdir(), "agentd-world-"))
  const state = join(folder, "s")
  mkdirSync(state)
  const scope = yield* Scope.make()
  const layer = DaemonLog.layer({ file: join(state, "runes.db") }).pipe(Layer.provide(Redact.layer))
  const log = yield* provided.pipe(Effect.provide(yield* Layer.build(Layer.fresh(layer)).pipe(Scope.provide(scope))))
  const appends: Array<number> = []
  const watched = log.core as AdmittingLog
  watched.watch({
    landed: (units) => {
      for (const { runes } of units) appends.push(runes.at(-1)?.eventId ?? 0)
    },
    refused: () => {}
  })
  yield* Effect.scoped(use({ folder, log, appends }))
  yield* Scope.close(scope, Exit.void)
  write(name, state, { appends, configs: configs(), lastOf })
  rmSync(folder, { recursive: true })
})

const registered = {
  stream: STREAM,
  kind: "project.registered",
  actor: "project",
  payload: { config: "/home/dev/shop/agentd.jsonc", name: "shop" }
}

/** An agent that is approved, interrupted and steered; each message is delivered once. */
export const life = () =>
  stored("life", ({ log }) =>
    Effect.gen(function* () {
      yield* log.append([registered])
      const world = new AgentWorld(log, [], settings)
      const outside = { paid: 0, approvals: 0 }
      world.puppet = obedient(outside)
      yield* world.open
      yield* Effect.addFinalizer(() => world.lose)
      yield* drive(world, outside)
    })
  )

/** The runes of `send` and similar commands, with the agent's conversation. */
export const sends = () => {
  let file = ""
  return stored(
    "sends",
    ({ folder, log }) =>
      Effect.gen(function* () {
        const outside = { paid: 0, approvals: 0 }
        const world = new World(log, () => Effect.succeed(obedient(outside)), folder)
        file = world.config
        world.configure({
          agents: {
            builder: { backend: { type: "command", argv: ["agent"] }, minRunInterval: "0ms", backoff: { base: "1ms" } }
          }
        })
        const fleet = yield* world.open
        yield* fleet.register(world.config, world.caller)
        yield* untilAgent(fleet, "builder", ({ state }) => state === "BuildingPrompt")
        const send = (text: string, how: "queue" | "steer" | "urgent" = "queue") =>
          fleet.send("builder", { text, how }, world.caller)
        const kinds = (...wanted: ReadonlyArray<string>) =>
          Effect.map(Effect.orDie(log.tail({ kinds: wanted }, 10_000)), (runes) => runes.length)
        const finalized = (count: number) => until(kinds("turn.finalized"), (seen) => seen >= count)
        const begun = (count: number) => until(kinds("agent.busy"), (seen) => seen >= count)
        yield* send("say ok")
        yield* finalized(1)
        yield* send("say ok again")
        yield* finalized(2)
        yield* send("pay")
        const [call] = yield* until(fleet.calls, (calls) => calls.some(({ state }) => state === "awaiting_approval"))
        const { hash } = yield* fleet.askedCall(call!.callId)
        yield* fleet.answerCall(call!.callId, { behavior: "allow", reason: "", hash }, world.caller)
        yield* finalized(3)
        yield* send("hang")
        yield* begun(4)
        yield* fleet.interrupt("builder", world.caller)
        yield* finalized(4)
        yield* send("hang, and be steered")
        yield* begun(5)
        yield* send("say so", "steer")
        yield* finalized(6)
        yield* send("hang, and be cut short")
        yield* begun(7)
        yield* send("say at once", "urgent")
        yield* finalized(7)
        yield* begun(8)
        yield* fleet.stop("builder", world.caller)
      }),
    { configs: () => ({ [file]: readFileSync(file, "utf8") }) }
  )
}

/** Rare runes, each written by its own module, and `run.started`, which no code writes any more. */
export const edges = () =>
  stored(
    "edges",
    ({ log }) =>
      Effect.gen(function* () {
        yield* log.append([
          { stream: DAEMON_STREAM, kind: "daemon.started", actor: "daemon", payload: { pid: 1, version: "0.1.0" } },
          registered,
          {
            stream: STREAM,
            kind: "run.started",
            actor: "worker/builder",
            payload: { runId: "r1", agent: "builder" }
          }
        ])
        const dead = yield* Layer.build(
          Layer.fresh(DeadLetters.layer().pipe(Layer.provide(Layer.succeed(EventLog, log))))
        )
        for (const reason of ["illegal", "poison", "full", "postponed-limit", "refused", "closed"] as const) {
          Context.get(dead, DeadLetters.DeadLetters).post({
            address: "worker/builder",
            reason,
            message: { _tag: "WorkArrived" },
            why: new Error("as an example")
          })
        }
        yield* until(
          Effect.map(Effect.orDie(log.tail({ kinds: ["actor.dead_letter"] }, 10)), (runes) => runes.length),
          (count) => count === 6
        )
        // the end of a turn that never began: the guard refuses it and reports it
        const event = { _tag: "response_done", turnId: "t9", finalOutput: "", usage: {} }
        const end = { stream: STREAM, kind: "turn.completed", actor: "turn/builder", trigger: "response_done" }
        yield* Effect.exit(log.append([{ ...end, payload: { event, turn_id: "t9", agent_id: "builder" } }]))
        yield* log.append([
          { stream: DAEMON_STREAM, kind: "daemon.stopping", actor: "daemon", payload: { reason: "stop" } },
          { stream: DAEMON_STREAM, kind: "daemon.stopped", actor: "daemon", payload: { pid: 1 } }
        ])
        // at once more than the buffer can hold
        const output = (n: number) => ({
          stream: STREAM,
          kind: "run.output",
          actor: "worker/builder",
          payload: { runId: "r1", source: "stdout", text: `line ${n}\n` }
        })
        yield* log.appendLazy(Array.from({ length: 4_100 }, (_, n) => output(n)))
        yield* until(
          Effect.map(Effect.orDie(log.tail({ kinds: ["runes.dropped"] }, 10)), (runes) => runes.length),
          (count) => count > 0
        )
      }),
    { lastOf: "runes.dropped" }
  )
