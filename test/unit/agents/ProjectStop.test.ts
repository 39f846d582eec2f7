/** Tests of a project that is stopped as a whole, over real agents on backends that play turns. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Scope, Stream } from "effect"
import type { Agents } from "../../../src/projects/service/Agents.ts"
import * as ScriptedBackend from "../../../src/runs/ScriptedBackend.ts"
import * as World from "../../world/agents/World.ts"

const agent = (more: object = {}) => World.command({ interruptGrace: "200ms", ...more })

const worldOf = Effect.fnUntraced(function* (agents: object) {
  const made = yield* World.make(ScriptedBackend.make([{ turns: [{ hang: true }] }]))
  made.configure({ agents })
  return made
})

/** A daemon's life. */
const daemon = <A, E>(of: World.World, use: (fleet: Agents["Service"]) => Effect.Effect<A, E, Scope.Scope>) =>
  Effect.scoped(Effect.flatMap(of.open, use))

/** By agent: its word, and how that is told. */
const standing = (fleet: Agents["Service"]) =>
  Effect.map(fleet.all, (rows) =>
    Object.fromEntries(rows.map(({ agent, detail, state }) => [agent, `${state}: ${detail}`]))
  )

const stopped = (fleet: Agents["Service"], names: ReadonlyArray<string>) =>
  Effect.map(standing(fleet), (all) => names.every((name) => all[name]?.startsWith("Stopped") === true))

const refused = <A>(command: Effect.Effect<A, unknown>) =>
  Effect.map(Effect.flip(command), (error) => error as { readonly message: string; readonly remedy: string })

describe("a project that is stopped", () => {
  it.live(
    "has no agent that runs, also under the next daemon, and its start brings back what was stopped with it",
    () =>
      Effect.gen(function* () {
        const w = yield* worldOf({ a: agent(), b: agent(), alone: agent() })
        yield* daemon(w, (fleet) =>
          Effect.gen(function* () {
            yield* fleet.register(w.config, w.caller)
            yield* fleet.stop("alone", w.caller)
            const { message } = yield* fleet.stopProject("shop", w.caller)
            assert.match(message, /^shop is stopped; ended: a, b\. .*agentd project start shop$/)
            assert.isTrue(yield* stopped(fleet, ["a", "b", "alone"]))
            assert.include((yield* standing(fleet))["a"], "stopped by ada, with its project")
            assert.deepInclude((yield* fleet.projects)[0]!.stopped, { by: "ada" })
            const kept = yield* fleet.send("a", { text: "x", how: "queue" }, w.caller)
            assert.match(kept.message, /stored for shop\/a, which is stopped\. Start it: agentd project start shop$/)
            const alone = yield* fleet.send("alone", { text: "x", how: "queue" }, w.caller)
            assert.match(alone.message, /Start it: agentd start shop\/alone$/)
            for (const command of [fleet.start("a", w.caller), fleet.restart("alone", w.caller)]) {
              const no = yield* refused(command)
              assert.match(no.message, /project shop is stopped \(by ada\)/)
              assert.match(no.remedy, /agentd project start shop$/)
            }
          })
        )
        w.configure({
          agents: { a: agent(), b: agent(), alone: agent(), fresh: agent(), later: agent({ autostart: false }) }
        })
        yield* daemon(w, (fleet) =>
          Effect.gen(function* () {
            yield* fleet.register(w.config, w.caller, "as it stands")
            assert.isTrue(yield* stopped(fleet, ["a", "b", "alone"]))
            assert.notInclude((yield* standing(fleet))["fresh"], "Running")
            assert.strictEqual((yield* fleet.agent("fresh", w.caller)).sessionSeq, 0)
            const again = yield* fleet.stopProject("shop", w.caller)
            assert.match(again.message, /ended: none/)
            const { message } = yield* fleet.startProject("", w.caller)
            assert.match(message, /^shop is started; begun: a, b, fresh\..*left so: alone; agentd start shop\/alone$/)
            assert.isFalse(yield* stopped(fleet, ["a"]))
            assert.isTrue(yield* stopped(fleet, ["alone"]))
            assert.isUndefined((yield* fleet.projects)[0]!.stopped)
            // it is no agent that was stopped with its project
            yield* fleet.start("alone", w.caller)
            assert.match((yield* fleet.startProject("shop", w.caller)).message, /begun: none\.$/)
          })
        )
      })
  )

  it.live("is ended by the next daemon where the one before died in the midst of it", () =>
    Effect.gen(function* () {
      const w = yield* worldOf({ a: agent() })
      yield* daemon(w, (fleet) =>
        Effect.andThen(fleet.register(w.config, w.caller), fleet.send("a", { text: "x", how: "queue" }, w.caller))
      )
      const [first] = [...(yield* Stream.runCollect(w.log.read({ kinds: ["project.registered"] })))]
      const stop = { kind: "project.stopped", actor: "project", payload: { name: "shop", by: "ada" } }
      yield* w.log.append([{ stream: first!.stream, ...stop }])
      yield* daemon(w, (fleet) =>
        Effect.gen(function* () {
          yield* World.until(fleet.all, (rows) => rows.some(({ state }) => state === "Stopped"))
          assert.match((yield* fleet.startProject("shop", w.caller)).message, /begun: a\./)
          yield* World.until(fleet.all, (rows) => rows.some(({ state }) => state === "Running"))
        })
      )
    })
  )

  it.live("an agent of another project is not touched; one that is closed is told as that", () =>
    Effect.gen(function* () {
      const w = yield* worldOf({ a: agent() })
      const fleet = yield* w.open
      yield* fleet.register(w.config, w.caller)
      assert.match((yield* refused(fleet.stopProject("nothing", w.caller))).message, /no project "nothing"/)
      yield* fleet.close("shop", { reason: "", force: true }, w.caller)
      assert.match((yield* refused(fleet.stopProject("shop", w.caller))).message, /is closed/)
    })
  )
})
