import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { TestClock } from "effect/testing"
import { MAX_PROMPT_BYTES } from "../../../src/agents/prompt/Prompt.ts"
import type { RunSpec } from "../../../src/runs/Backend.ts"
import * as ScriptedBackend from "../../../src/runs/ScriptedBackend.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import { caller, make as oneAgent } from "./AgentWorld.ts"
import * as Puppet from "./Puppet.ts"
import * as World from "./World.ts"

const fails: ScriptedBackend.Script = {
  steps: [{ _tag: "Started", pid: 7 }],
  exitAfter: "10 millis",
  outcome: { _tag: "Error", detail: "exit code 3: the disk is slow today" }
}
const works: ScriptedBackend.Script = { steps: [{ _tag: "Started", pid: 7 }], exitAfter: "10 millis" }
const stays: ScriptedBackend.Script = { steps: [{ _tag: "Started", pid: 7 }], hang: true }

describe("WorkerActor", () => {
  it.live("loses no message when the reason of a failure makes the next prompt longer", () =>
    Effect.gen(function* () {
      const backend = ScriptedBackend.make([fails, works])
      const world = yield* World.make(backend)
      world.configure({
        agents: { a: World.command({ autostart: false, backoff: { base: "10ms", cap: "10ms" } }) }
      })
      const fleet = yield* world.open
      yield* fleet.register(world.config, world.caller)
      // two that fit a prompt together, just so
      const text = "x".repeat(MAX_PROMPT_BYTES / 2 - 340)
      for (const name of ["first", "secnd"]) {
        yield* fleet.send("a", { text: text.slice(5) + name, how: "queue" }, world.caller)
      }
      yield* fleet.start("a", world.caller)
      yield* World.untilAgent(
        fleet,
        "a",
        ({ inbox, sessionSeq, state }) => inbox === 0 && state === "BuildingPrompt" && sessionSeq > 1
      )
      const told = backend.played().map(({ spec }) => ["first", "secnd"].filter((name) => spec.prompt.includes(name)))
      assert.deepStrictEqual(told, [
        ["first", "secnd"],
        ["first", "secnd"]
      ])
    })
  )

  it.live("a backend hears of the next run before it is durable, and then of its start", () =>
    Effect.gen(function* () {
      const heard: Array<string> = []
      const scripted = ScriptedBackend.make([fails, fails, stays])
      const backend = {
        ...scripted,
        expect: (runId: string, comes: boolean) => void heard.push(`${comes ? "expect" : "no"} ${runId}`),
        start: (spec: RunSpec) =>
          Effect.andThen(
            Effect.sync(() => void heard.push(`start ${spec.runId}`)),
            scripted.start(spec)
          )
      }
      const world = yield* World.make(backend)
      world.configure({
        agents: { a: World.command({ mode: "loop", prompt: "go", backoff: { base: "0ms", cap: "0ms" } }) }
      })
      const fleet = yield* world.open
      yield* fleet.register(world.config, world.caller)
      yield* World.untilAgent(fleet, "a", ({ state, totalErrors }) => totalErrors === 2 && state === "Running")
      const ids = scripted.played().map(({ spec }) => spec.runId)
      const [first, second, third] = ids
      assert.deepStrictEqual(heard, [
        `start ${first}`,
        `no ${first}`,
        ...[second, third].flatMap((id) => [`expect ${id}`, `start ${id}`, `no ${id}`])
      ])
    })
  )

  it.live("a command's answer is all that it printed, what came before it counted as started, too", () =>
    Effect.gen(function* () {
      const line = (text: string) => ({ _tag: "Delta", stream: "stdout", text }) as const
      const backend = ScriptedBackend.make([
        { steps: [line("one"), { _tag: "Started", pid: 7 }, line("two")], exitAfter: "10 millis" },
        { steps: [line("early")], outcome: { _tag: "Error", detail: "exit code 3" } },
        { steps: [line("three"), { _tag: "Started", pid: 7 }] }
      ])
      const world = yield* World.make(backend)
      world.configure({ agents: { a: World.command({ backoff: { base: "10ms", cap: "10ms" } }) } })
      const fleet = yield* world.open
      yield* fleet.register(world.config, world.caller)
      const answers = Effect.map(Stream.runCollect(world.log.read({ kinds: ["turn.completed"] })), (runes) =>
        [...runes].map(({ payload }) => payload["final_output"])
      )
      for (const count of [1, 2]) {
        yield* fleet.send("a", { text: "work", how: "queue" }, world.caller)
        yield* World.until(answers, (all) => all.length === count)
      }
      assert.deepStrictEqual(yield* answers, ["one\ntwo\n", "three\n"], "and nothing of a run that failed")
    })
  )

  it.live("an urgent message that fits no prompt yet ends no run over and over", () =>
    Effect.gen(function* () {
      const backend = ScriptedBackend.make([stays])
      const world = yield* World.make(backend)
      world.configure({ agents: { a: World.command({ autostart: false, interruptGrace: "100ms" }) } })
      const fleet = yield* world.open
      yield* fleet.register(world.config, world.caller)
      const large = "x".repeat(200 * 1024)
      for (let count = 0; count < 3; count++) yield* fleet.send("a", { text: large, how: "queue" }, world.caller)
      yield* fleet.send("a", { text: `now ${large}`, how: "urgent" }, world.caller)
      yield* fleet.start("a", world.caller)
      yield* World.until(
        Effect.sync(() => backend.played().length),
        (runs) => runs >= 1
      )
      yield* Effect.sleep(500)
      assert.isAtMost(backend.played().length, 2)
    })
  )

  it.live("a message that would be too large for the log once it is part of a prompt is refused when it comes", () =>
    Effect.gen(function* () {
      const backend = ScriptedBackend.make([works])
      const world = yield* World.make(backend)
      world.configure({ agents: { a: World.command({ instructions: "i".repeat(400 * 1024) }) } })
      const fleet = yield* world.open
      yield* fleet.register(world.config, world.caller)
      const send = (text: string) => fleet.send("a", { text, how: "queue" }, world.caller)
      const refused = yield* Effect.flip(send("\u0001".repeat(MAX_PROMPT_BYTES / 6 + 1)))
      assert.match(refused.message, /takes 524292 bytes in the log, and the maximum is 524288/)
      yield* send("\u0001".repeat(MAX_PROMPT_BYTES / 6))
      yield* World.untilAgent(
        fleet,
        "a",
        ({ inbox, sessionSeq, state }) => inbox === 0 && sessionSeq > 0 && state !== "Stopped"
      )
    })
  )

  it.live("a prompt that the log does not take stops its agent for good and says why", () =>
    Effect.gen(function* () {
      const world = yield* World.make(ScriptedBackend.make([stays]))
      world.configure({ agents: { a: World.command({ instructions: "x".repeat(900 * 1024) }) } })
      const fleet = yield* world.open
      yield* fleet.register(world.config, world.caller)
      yield* fleet.send("a", { text: "y".repeat(200 * 1024), how: "queue" }, world.caller)
      // before its start it is stopped, too
      const row = yield* World.untilAgent(fleet, "a", ({ detail }) => /prompt/.test(detail))
      assert.strictEqual(row.state, "Stopped")
    })
  )

  it.live("a bug in one agent's activity ends that agent, not the daemon", () =>
    Effect.gen(function* () {
      const backend = ScriptedBackend.make([stays])
      const world = yield* World.make(backend, (config) =>
        config.type === "command" && config.argv?.[0] === "broken"
          ? Effect.die(new Error("a bug"))
          : Effect.succeed(backend)
      )
      const loop = { mode: "loop", prompt: "x" }
      world.configure({
        agents: {
          bad: World.command({ ...loop, backend: { type: "command", argv: ["broken"] } }),
          good: World.command(loop)
        }
      })
      const fleet = yield* world.open
      yield* fleet.register(world.config, world.caller)
      yield* World.untilAgent(fleet, "good", ({ state }) => state === "Running")
      yield* Effect.sleep(500)
      const good = (yield* fleet.all).find(({ agent }) => agent === "good")
      assert.strictEqual(good?.state, "Running")
      assert.strictEqual(world.ended, false, "the supervisors above it live")
      const bad = (yield* fleet.all).find(({ agent }) => agent === "bad")
      assert.strictEqual(bad?.state, "Stopped")
    })
  )

  it.effect("a clock that is set back by a day costs a run's interval, not a day", () =>
    Effect.gen(function* () {
      const backend = ScriptedBackend.make([{ steps: [{ _tag: "Started" }] }])
      const world = yield* World.make(backend)
      world.configure({ agents: { a: World.command({ mode: "loop", prompt: "x", minRunInterval: "10 seconds" }) } })
      yield* TestClock.setTime(10 * 86_400_000)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const fleet = yield* world.open
          yield* fleet.register(world.config, world.caller)
          yield* World.untilAgent(fleet, "a", ({ sessionSeq, state }) => sessionSeq > 1 && state === "BuildingPrompt")
        })
      )
      yield* TestClock.setTime(9 * 86_400_000)
      const runs = backend.played().length
      yield* world.open
      yield* Effect.promise(() => new Promise<void>((resolve) => setTimeout(resolve, 50)))
      yield* TestClock.adjust("11 seconds")
      yield* World.until(
        Effect.sync(() => backend.played().length),
        (count) => count > runs
      )
    })
  )

  for (const [how, from, to] of [
    ["longer", "10 seconds", "1 minute"],
    ["shorter", "1 hour", "20 seconds"]
  ] as const)
    it.effect(`an agent that waits for its next run heeds a reload that makes the wait ${how}`, () =>
      Effect.gen(function* () {
        const backend = ScriptedBackend.make([{ steps: [{ _tag: "Started" }] }])
        const world = yield* World.make(backend)
        const every = (minRunInterval: string) =>
          world.configure({ agents: { a: World.command({ mode: "loop", prompt: "x", minRunInterval }) } })
        every(from)
        const fleet = yield* world.open
        yield* fleet.register(world.config, world.caller)
        yield* World.untilAgent(fleet, "a", ({ sessionSeq, state }) => sessionSeq > 1 && state === "BuildingPrompt")
        every(to)
        yield* fleet.register(world.config, world.caller)
        yield* TestClock.adjust("11 seconds")
        yield* Effect.promise(() => new Promise<void>((resolve) => setTimeout(resolve, 50)))
        assert.lengthOf(backend.played(), 1)
        yield* TestClock.adjust("55 seconds")
        yield* World.until(
          Effect.sync(() => backend.played().length),
          (count) => count > 1
        )
      })
    )

  it.effect("an agent that waits for its next run heeds a reload by which the wait is over", () =>
    Effect.gen(function* () {
      const backend = ScriptedBackend.make([{ steps: [{ _tag: "Started" }] }])
      const world = yield* World.make(backend)
      const every = (minRunInterval: string) =>
        world.configure({ agents: { a: World.command({ mode: "loop", prompt: "x", minRunInterval }) } })
      every("1 day")
      const fleet = yield* world.open
      yield* fleet.register(world.config, world.caller)
      yield* World.untilAgent(fleet, "a", ({ sessionSeq, state }) => sessionSeq > 1 && state === "BuildingPrompt")
      yield* TestClock.adjust("1 hour")
      assert.lengthOf(backend.played(), 1)
      every("5 minutes")
      yield* fleet.register(world.config, world.caller)
      yield* World.until(
        Effect.sync(() => backend.played().length),
        (count) => count > 1
      )
    })
  )

  it.effect("an agent that has had its runs of the hour heeds a reload that allows it more", () =>
    Effect.gen(function* () {
      const backend = ScriptedBackend.make([{ steps: [{ _tag: "Started" }] }])
      const world = yield* World.make(backend)
      const hourly = (maxRunsPerHour: number) =>
        world.configure({
          agents: { a: World.command({ mode: "loop", prompt: "x", minRunInterval: "0ms", maxRunsPerHour }) }
        })
      hourly(1)
      const fleet = yield* world.open
      yield* fleet.register(world.config, world.caller)
      yield* World.untilAgent(fleet, "a", ({ sessionSeq, state }) => sessionSeq > 1 && state === "BuildingPrompt")
      yield* TestClock.adjust("10 minutes")
      assert.lengthOf(backend.played(), 1)
      hourly(3)
      yield* fleet.register(world.config, world.caller)
      yield* World.untilAgent(fleet, "a", ({ sessionSeq, state }) => sessionSeq > 3 && state === "BuildingPrompt")
      yield* TestClock.adjust("10 minutes")
      assert.lengthOf(backend.played(), 3)
    })
  )

  it.effect("an agent that fails goes by the limits that its file has when its run begins", () =>
    Effect.gen(function* () {
      const backend = ScriptedBackend.make([{ steps: [], outcome: { _tag: "Error", detail: "exit code 3" } }])
      const world = yield* World.make(backend)
      const upTo = (maxConsecutiveErrors: number) =>
        world.configure({
          agents: {
            a: World.command({
              mode: "loop",
              prompt: "x",
              minRunInterval: "0ms",
              maxConsecutiveErrors,
              maxTotalErrors: 100,
              backoff: { base: "1 minute", cap: "1 minute" }
            })
          }
        })
      upTo(50)
      const fleet = yield* world.open
      yield* fleet.register(world.config, world.caller)
      yield* World.untilAgent(fleet, "a", ({ state }) => state === "CoolingDown")
      upTo(2)
      yield* fleet.register(world.config, world.caller)
      yield* TestClock.adjust("1 minute")
      const { consecutiveErrors } = yield* World.untilAgent(fleet, "a", ({ state }) => state === "Stopped")
      assert.strictEqual(consecutiveErrors, 2)
    })
  )

  it.effect("a project whose file is broken at a restart lives by its last good one", () =>
    Effect.gen(function* () {
      const world = yield* World.make(ScriptedBackend.make([stays]))
      const good = { agents: { a: World.command({ mode: "loop", prompt: "x" }) } }
      world.configure(good)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const fleet = yield* world.open
          yield* fleet.register(world.config, world.caller)
        })
      )
      world.configure("{ broken")
      const fleet = yield* world.open
      yield* World.until(fleet.all, (rows) => rows.length === 1)
      const [project] = yield* fleet.projects
      assert.notDeepEqual(project!.problems, [])
      world.configure(good)
      yield* Effect.promise(() => new Promise<void>((resolve) => setTimeout(resolve, 50)))
      yield* TestClock.adjust("5 seconds")
      yield* World.until(fleet.projects, ([mended]) => mended!.problems.length === 0)
    })
  )
})

describe("an agent whose run is lost before any turn", () => {
  it.live("says that it is free once it is: whoever took it for busy after a start hears so", () =>
    Effect.gen(function* () {
      const puppet = Puppet.make({ up: false })
      const world = yield* oneAgent([], { backoff: { base: "500ms" } }, { puppet })
      yield* world.tree.send("work", "queue", caller)
      const [received] = yield* world.kind("inbox.received")
      const { message } = received!.payload["event"] as { readonly message: { readonly messageId: string } }
      yield* world.rune(({ trigger }) => trigger === "PromptReady")
      yield* world.lose
      yield* world.open
      yield* world.rune(({ trigger }) => trigger === "SessionExited")
      assert.isTrue(yield* world.tree.withdraw([message.messageId]))
      const before = world.reports.length
      yield* World.until(
        Effect.sync(() => world.reports.slice(before)),
        (reports) => reports.some(({ _tag }) => _tag === "Idle")
      )
    })
  )
})

describe("a run that agentd's own end takes", () => {
  /** How its runs ended, as the log has it. */
  const ends = (runes: ReadonlyArray<Rune>) =>
    runes.flatMap(({ payload, trigger }) => {
      if (trigger !== "SessionExited") return []
      const { outcome, worked } = payload["event"] as { readonly outcome: unknown; readonly worked?: boolean }
      return [{ outcome, worked }]
    })
  const taken = { _tag: "Uncounted", reason: "taken" }

  it.live("is no error of its agent's, whether it was up or not, however often", () =>
    Effect.gen(function* () {
      const lives = 12
      const puppet = Puppet.make({ up: false })
      const world = yield* oneAgent([], { backoff: { base: "1ms", cap: "1ms" } }, { puppet })
      yield* world.tree.send("work", "queue", caller)
      for (let life = 0; life < lives; life++) {
        const run = yield* puppet.run(life)
        if (life % 2 === 1) yield* run.say({ _tag: "Started" })
        if (life % 2 === 1) yield* world.kind("turn.started", Math.ceil(life / 2))
        yield* world.lose
        yield* world.open
      }
      yield* puppet.run(lives)
      const runes = yield* world.runes
      assert.deepStrictEqual(
        ends(runes),
        Array.from({ length: lives }, () => ({ outcome: taken, worked: undefined }))
      )
      const errors = runes.flatMap(({ kind, payload }) => (kind === "worker.moved" ? [payload["totalErrors"]] : []))
      assert.deepStrictEqual(new Set(errors), new Set([0]))
    }).pipe(Effect.scoped)
  )

  it.live("has answered, where the log has an answer of it", () =>
    Effect.gen(function* () {
      const puppet = Puppet.make()
      const world = yield* oneAgent([], { backoff: { base: "1ms", cap: "1ms" } }, { puppet })
      yield* world.tree.send("one", "queue", caller)
      const first = yield* puppet.run()
      yield* first.say({ _tag: "TurnCompleted", turnId: first.spec.turnId, output: "1" })
      yield* world.over(1)
      yield* world.lose
      yield* world.open
      yield* world.rune(({ trigger }) => trigger === "SessionExited")
      yield* world.tree.send("two", "queue", caller)
      const second = yield* puppet.run(1)
      yield* second.say({ _tag: "TurnCompleted", turnId: second.spec.turnId, output: "2" })
      yield* world.over(2)
      yield* world.tree.send("three", "queue", caller)
      yield* world.kind("turn.started", 3)
      yield* world.lose
      yield* world.open
      yield* puppet.run(2)
      const answered = { outcome: taken, worked: true }
      assert.deepStrictEqual(ends(yield* world.runes), [answered, answered])
    }).pipe(Effect.scoped)
  )
})

describe("a run that is stopped before it is up", () => {
  it.live("what it says nevertheless is of no turn", () =>
    Effect.gen(function* () {
      const puppet = Puppet.make({ up: false, deaf: true })
      const world = yield* oneAgent([], {}, { puppet })
      yield* world.tree.send("work", "queue", caller)
      const run = yield* puppet.run()
      yield* Effect.forkChild(world.tree.stop(caller))
      yield* world.rune(({ trigger }) => trigger === "OperatorStop")
      yield* run.say(
        { _tag: "Started" },
        { _tag: "TurnStarted", turnId: run.spec.turnId },
        { _tag: "Delta", stream: "assistant", text: "too late" },
        { _tag: "Notice", text: "still here" }
      )
      yield* world.rune(({ kind }) => kind === "run.notice")
      const kinds = (yield* world.runes).map(({ kind }) => kind)
      assert.notInclude(kinds, "turn.assistant_delta")
      yield* run.say({ _tag: "Exited", outcome: { _tag: "Success" } })
    })
  )
})
