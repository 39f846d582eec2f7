/** The daemon over a platform of the test's: this machine, but for its log, which is held up. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Schedule } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Daemon from "../../../src/app/Daemon.ts"
import * as DaemonLog from "../../../src/app/DaemonLog.ts"
import * as Platform from "../../../src/app/Platform.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import * as ControlClient from "../../../src/api/rpc/ControlClient.ts"
import * as Scratch from "../../support/Scratch.ts"

/** The real log; a stream is read when the gate is open, and not before. */
const held = (options: DaemonLog.Options, gate: Effect.Effect<void>) =>
  Layer.effectContext(
    Effect.map(Layer.build(DaemonLog.layer(options)), (context) => {
      const log = Context.get(context, EventLog)
      const recover: typeof log.recover = (stream, folds) => Effect.andThen(gate, log.recover(stream, folds))
      return Context.add(context, EventLog, { ...log, recover })
    })
  )

describe("a daemon that is reading its log", () => {
  it.live("answers on its socket, says what it waits for, and goes on when the reading is over", () =>
    Effect.gen(function* () {
      const folder = yield* Scratch.folder("agentd-platform-")
      const userConfig = join(folder, "config.jsonc")
      writeFileSync(userConfig, JSON.stringify({ http: { enabled: false } }))
      const state = join(folder, "state")
      mkdirSync(state, { mode: 0o700 })
      const socket = join(state, "agentd.sock")
      const options = { state, socket, userConfig, command: ["agentd"] as const, environment: {} }
      const gate = Deferred.makeUnsafe<void>()
      const platform = {
        ...Platform.node(options),
        log: (log: DaemonLog.Options) => held(log, Deferred.await(gate))
      }
      const daemon = yield* Effect.forkScoped(Daemon.run(options, platform))
      const status = ControlClient.call(socket, (client) => client.Status()).pipe(
        Effect.retry({ schedule: Schedule.spaced(20), times: 1_000 })
      )
      const { daemon: during } = yield* status
      assert.strictEqual(during.phase, "recovering")
      assert.include(during.reading?.waiting ?? [], "agents")
      yield* Deferred.succeed(gate, undefined)
      yield* Effect.repeat(status, {
        schedule: Schedule.spaced(20),
        until: ({ daemon: { phase } }) => phase === "ready"
      })
      yield* ControlClient.call(socket, (client) => client.Shutdown({ reason: "over", by: "a test" }))
      yield* Fiber.join(daemon)
    })
  )
})
