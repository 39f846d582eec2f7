/** A person's choice for an agent holds: at once where its run can be told, across runs and restarts, and in no more than it may. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { choose, offered } from "../../../src/agents/actors/AgentChoice.ts"
import { type Backend, BackendError } from "../../../src/runs/Backend.ts"
import * as ModelChoice from "../../../src/agents/actors/ModelChoice.ts"
import { ClaudeStream } from "../../../src/runs/claude/ClaudeStream.ts"
import { BackendConfig } from "../../../src/config/BackendConfig.ts"
import { caller, make } from "../../world/agents/AgentWorld.ts"
import * as Puppet from "../../world/agents/Puppet.ts"
import { until } from "../../world/agents/World.ts"

const backend = (given: object): BackendConfig => Schema.decodeUnknownSync(BackendConfig)(given)
const claude = backend({ type: "claude", permissionMode: "plan" })
const acp = backend({ type: "acp", argv: ["opencode", "acp"] })
const model = backend({ type: "model", provider: "anthropic", model: "small" })
const command = backend({ type: "command", shell: "cat" })

const NO = { model: null, mode: null, reset: false }

describe("a choice in a backend", () => {
  it.each<readonly [string, BackendConfig, Partial<ModelChoice.ModelChoice>, object]>([
    ["claude", claude, { model: "opus", mode: "acceptEdits" }, { model: "opus", permissionMode: "acceptEdits" }],
    ["acp", acp, { model: "m", mode: "build" }, { model: "m", mode: "build" }],
    ["model", model, { model: "large" }, { model: "large" }]
  ])("%s", (_, of, chosen, expected) => {
    assert.deepInclude(ModelChoice.inBackend(of, { ...ModelChoice.NONE, ...chosen }), expected)
    assert.strictEqual(ModelChoice.inBackend(of, ModelChoice.NONE).type, of.type)
  })

  it.each<readonly [string, BackendConfig, Partial<ModelChoice.ModelChoice>, RegExp]>([
    [
      "rights that only a trusted config gives",
      claude,
      { mode: "bypassPermissions" },
      /in agentd\.jsonc: permissionMode/
    ],
    ["a mode that there is not", claude, { mode: "nonsense" }, /default, acceptEdits, plan/],
    ["an ACP agent's mode that asks for nothing", acp, { mode: "yolo" }, /in agentd\.jsonc/],
    ["a mode of a model agent", model, { mode: "plan" }, /approvals/],
    ["a model of a command", command, { model: "m" }, /argv or shell/],
    ["what would be another argument", claude, { model: "--dangerously-skip-permissions" }, /name/]
  ])("%s is refused, with what to do", (_, of, chosen, remedy) => {
    const choice = { ...ModelChoice.NONE, ...chosen }
    assert.match(ModelChoice.objection(of, choice)?.remedy ?? "", remedy)
    // and is left out where the file has changed since
    assert.strictEqual(ModelChoice.inBackend(of, choice), of)
  })

  it("Claude Code is asked for it in its own words", () => {
    const stream = new ClaudeStream(7)
    const heard: Array<string | undefined> = []
    const records = [
      stream.choose("model", "opus", (refusal) => heard.push(refusal)),
      stream.choose("mode", "plan", (refusal) => heard.push(refusal))
    ]
    assert.deepStrictEqual(
      records.map(({ request }) => request),
      [
        { subtype: "set_model", model: "opus" },
        { subtype: "set_permission_mode", mode: "plan" }
      ]
    )
    const [first, second] = records.map((record) => record["request_id"])
    const respond = (response: object) => stream.take({ type: "control_response", response }, 0)
    respond({ subtype: "success", request_id: second, response: {} })
    // its words are read, and no notice beside the answer
    const { events } = respond({ subtype: "error", request_id: first, error: "Model 'opus' not\nfound" })
    assert.deepStrictEqual(heard, [undefined, "Model 'opus' not found"])
    assert.deepStrictEqual(events, [])
  })
})

const agent = { backend: { type: "model", provider: "anthropic", model: "small" } }

describe("a choice of a person", () => {
  it.live("is a rune, ends a run that does nothing, and holds for the next one and after a restart", () =>
    Effect.gen(function* () {
      const puppet = Puppet.make()
      const world = yield* make([], agent, { puppet })
      yield* world.tree.send("work", "queue", caller)
      const run = yield* puppet.run()
      yield* until(
        Effect.sync(() => world.tree.turn().state),
        (state) => state === "streaming"
      )
      // a turn is under way: it goes on as it began
      const busy = yield* choose(world.tree, { ...NO, model: "large" }, caller)
      assert.match(busy.message, /model large, from its next run on/)
      assert.match(
        busy.message,
        /Nobody could check that the model large exists.* See the known ones: agentd set shop\/builder$/
      )
      assert.strictEqual(run.ends, 0)
      yield* run.say({ _tag: "TurnCompleted", turnId: run.spec.turnId, output: "done" })
      yield* until(
        Effect.sync(() => world.tree.turn().state),
        (state) => state === "idle"
      )
      const idle = yield* choose(world.tree, { ...NO, model: "larger" }, caller)
      assert.match(idle.message, /model larger, from its next turn on/)
      yield* until(
        Effect.sync(() => run.ends),
        (ends) => ends === 1
      )
      const [, rune] = yield* world.kind("agent.chosen", 2)
      assert.deepInclude(rune!.payload, { model: "larger", mode: null, by: caller.by })
      assert.deepStrictEqual(world.tree.life().chosen, { model: "larger", mode: null })
      yield* world.lose
      yield* world.open
      assert.deepStrictEqual(world.tree.life().chosen, { model: "larger", mode: null })
      yield* choose(world.tree, { ...NO, reset: true }, caller)
      assert.deepStrictEqual(world.tree.life().chosen, ModelChoice.NONE)
    }).pipe(Effect.scoped)
  )

  it.live("that its live run refuses is not written, and the refusal says why", () =>
    Effect.gen(function* () {
      const asked: Array<unknown> = []
      const puppet = Puppet.make()
      const told: Backend = {
        ...puppet,
        start: (spec) =>
          Effect.map(puppet.start(spec), (run) => ({
            ...run,
            choose: (choice) =>
              Effect.suspend(() => {
                asked.push(choice)
                return choice.model === "none"
                  ? Effect.fail(
                      new BackendError({ message: "there is no such model", remedy: "give another", fatal: false })
                    )
                  : Effect.void
              })
          }))
      }
      const world = yield* make([], { backend: { type: "claude" } }, { puppet: told })
      yield* world.tree.send("work", "queue", caller)
      const run = yield* puppet.run()
      yield* until(
        Effect.sync(() => world.tree.turn().state),
        (state) => state === "streaming"
      )
      const error = yield* Effect.flip(choose(world.tree, { ...NO, model: "none" }, caller))
      assert.strictEqual(
        `${error.message} ${"remedy" in error ? error.remedy : ""}`,
        "shop/builder: there is no such model. give another."
      )
      assert.isFalse((yield* world.runes).some(({ kind }) => kind === "agent.chosen"))
      assert.isUndefined(world.tree.life().chosen)
      const done = yield* choose(world.tree, { ...NO, mode: "plan" }, caller)
      assert.match(done.message, /mode plan, from now on/)
      assert.deepStrictEqual(asked, [
        { model: "none", mode: null },
        { model: null, mode: "plan" }
      ])
      assert.strictEqual(run.ends, 0)
      // what the run tells of is kept, over its end, too
      yield* run.say({ _tag: "Offers", commands: [{ name: "compact", description: "", hint: "" }] })
      yield* run.say({ _tag: "TurnCompleted", turnId: run.spec.turnId, output: "done" })
      yield* until(
        Effect.sync(() => world.tree.turn().state),
        (state) => state === "idle"
      )
      assert.deepInclude(offered(world.tree), { known: "live", mode: "plan", model: null, models: [] })
      assert.deepStrictEqual(
        offered(world.tree).modes.map(({ id }) => id),
        ["default", "acceptEdits", "plan"]
      )
      yield* run.say({ _tag: "Offers", models: [{ id: "opus", name: "Opus" }] })
      yield* until(
        Effect.sync(() => offered(world.tree).models.length),
        (count) => count === 1
      )
      const right = yield* choose(world.tree, { ...NO, model: "opus" }, caller)
      assert.match(right.message, /model opus, mode plan, from now on\.$/)
      const near = yield* choose(world.tree, { ...NO, model: "opuss" }, caller)
      assert.match(near.message, /from now on\. Nobody could check .* opuss exists: .* Did you mean opus\?$/)
      yield* world.tree.stop(caller)
      const { commands, known } = offered(world.tree)
      assert.deepStrictEqual([known, ...commands.map(({ name }) => name)], ["before", "compact"])
    }).pipe(Effect.scoped)
  )

  it.live("a run that began with a command hears who its agent is with the next turn, once", () =>
    Effect.gen(function* () {
      const puppet = Puppet.make()
      const world = yield* make([], { backend: { type: "claude" }, role: "builds" }, { puppet })
      yield* world.tree.send("/compact", "queue", caller)
      const run = yield* puppet.run()
      assert.strictEqual(run.spec.prompt, "/compact")
      const over = (turnId: string) =>
        Effect.andThen(
          run.say({ _tag: "TurnCompleted", turnId, output: "done" }),
          until(
            Effect.sync(() => world.tree.turn().state),
            (state) => state === "idle"
          )
        )
      const sent = (count: number) =>
        Effect.map(
          until(
            Effect.sync(() => run.sent),
            (all) => all.length === count
          ),
          (all) => all[count - 1]!
        )
      yield* over(run.spec.turnId)
      yield* world.tree.send("/init", "queue", caller)
      const second = yield* sent(1)
      assert.strictEqual(second.text, "/init")
      yield* over(second.turnId)
      yield* world.tree.send("work", "queue", caller)
      const third = yield* sent(2)
      assert.match(third.text, /^You are builder: builds\n\nA message follows/)
      yield* over(third.turnId)
      yield* world.tree.send("more", "queue", caller)
      assert.match((yield* sent(3)).text, /^A message follows/)
    }).pipe(Effect.scoped)
  )

  it.live("that its agent cannot have is refused, and nothing is written", () =>
    Effect.gen(function* () {
      const world = yield* make([], agent, { puppet: Puppet.make() })
      const error = yield* Effect.flip(choose(world.tree, { ...NO, mode: "plan" }, caller))
      assert.match(error.message, /no modes/)
      assert.isFalse((yield* world.runes).some(({ kind }) => kind === "agent.chosen"))
    }).pipe(Effect.scoped)
  )
})
