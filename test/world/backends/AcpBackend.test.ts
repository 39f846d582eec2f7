import { assert, describe, it, layer } from "@effect/vitest"
import { Duration, Effect, Exit, Scope, Stream } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import * as AcpBackend from "../../../src/runs/acp/AcpBackend.ts"
import type { Decision, Run, RunEvent, RunSpec } from "../../../src/runs/Backend.ts"
import { isAlive } from "../../../src/runs/process/ProcessTable.ts"
import type * as Config from "../../../src/config/BackendConfig.ts"
import * as Support from "../../support/backend-run.ts"

const { tags, world } = Support
const fixture = (name: string) => path.join(import.meta.dirname, "../../fixtures/acp", name)
const AGENT = fixture("agent.mjs")

type World = Effect.Success<typeof world>
type Event<T extends RunEvent["_tag"]> = Extract<RunEvent, { _tag: T }>

const config = (play: string, more: Partial<Config.AcpBackend> = {}): Config.AcpBackend => ({
  type: "acp",
  argv: [process.execPath, AGENT, play],
  env: {},
  killGrace: Duration.seconds(5),
  sandbox: "off",
  share: [],
  resume: true,
  trustKinds: [],
  readOnlyTools: [],
  network: false,
  silence: Duration.minutes(1),
  startTimeout: Duration.minutes(1),
  ...more
})

const start = Effect.fnUntraced(function* (here: World, how: Config.AcpBackend, spec: Partial<RunSpec> = {}) {
  const backend = yield* AcpBackend.make(how, { store: here.store, environment: process.env })
  return yield* backend.start({
    runId: "run-1",
    turnId: "turn-1",
    agent: "builder",
    prompt: "world",
    cwd: here.folder,
    env: {},
    resume: undefined,
    mcp: {},
    ...spec
  })
})

/** A test's reaction to an event. */
type Reaction = (event: RunEvent, run: Run) => Effect.Effect<unknown, unknown> | undefined

const ALLOW: Decision = { behavior: "allow" }
const DENY: Decision = { behavior: "deny", message: "no" }
const answers =
  (decision: Decision): Reaction =>
  (event, run) =>
    event._tag === "ApprovalRequested" ? run.answer(event.callId, decision) : undefined
/** Interrupts the turn, once. */
const interrupts =
  (on: RunEvent["_tag"]): Reaction =>
  (event, run) =>
    event._tag === on ? run.interruptTurn : undefined

const ends = new Set<RunEvent["_tag"]>(["TurnCompleted", "TurnInterrupted"])

/** All events of a run that takes these turns one after the other and is ended then. */
const watch = Effect.fnUntraced(function* (run: Run, react: Reaction = () => undefined, prompts: Array<string> = []) {
  const all: Array<RunEvent> = []
  const waiting = prompts.map((text, index) => ({ text, turnId: `turn-${index + 2}` }))
  yield* Stream.runForEach(run.events, (event) =>
    Effect.gen(function* () {
      all.push(event)
      yield* react(event, run) ?? Effect.void
      if (!ends.has(event._tag)) return
      const next = waiting.shift()
      yield* next === undefined ? run.end : run.send(next)
    })
  )
  return all
})

/** The whole life of a run that plays this. */
const play = Effect.fnUntraced(function* (
  name: string,
  options: {
    readonly config?: Partial<Config.AcpBackend>
    readonly spec?: Partial<RunSpec>
    readonly react?: Reaction
    readonly prompts?: Array<string>
  } = {}
) {
  const here = yield* world
  const run = yield* start(here, config(name, options.config), options.spec)
  return { here, all: yield* watch(run, options.react, options.prompts) }
})

const of = <T extends RunEvent["_tag"]>(all: ReadonlyArray<RunEvent>, tag: T) =>
  all.filter((event): event is Event<T> => event._tag === tag)

const outcome = (all: ReadonlyArray<RunEvent>) => {
  assert.strictEqual(all.at(-1)?._tag, "Exited", "Exited is the last")
  assert.strictEqual(of(all, "Exited").length, 1, "exactly one Exited")
  return of(all, "Exited")[0]!.outcome
}
const error = (all: ReadonlyArray<RunEvent>) => {
  assert.strictEqual(of(all, "TurnError").length, 1)
  return of(all, "TurnError")[0]!
}
const outputs = (all: ReadonlyArray<RunEvent>) => of(all, "TurnCompleted").map(({ output }) => output)

/** The messages that the agent was sent. */
const heard = (here: World): ReadonlyArray<Record<string, any>> =>
  fs
    .readFileSync(path.join(here.folder, "heard"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
const methods = (here: World) => heard(here).flatMap(({ method }) => method ?? [])
const paramsOf = (here: World, method: string) =>
  heard(here).find((message) => message["method"] === method)?.["params"]
const read = (here: World, name: string) => fs.readFileSync(path.join(here.folder, name), "utf8")

it("opencode is told to ask about every call while a rule denies or asks, unless the config says otherwise", () => {
  const own = (more: Partial<Config.AcpBackend>, asksAll: boolean) =>
    AcpBackend.outlined(
      config("", { argv: ["opencode", "acp"], ...more }),
      { store: "", environment: {} },
      { runId: "r", turnId: "t", agent: "a", prompt: "", cwd: "/", env: {}, resume: undefined, mcp: {}, asksAll }
    ).options.own["OPENCODE_PERMISSION"]
  assert.include(own({}, true), '"bash":"ask"')
  assert.isUndefined(own({}, false))
  assert.strictEqual(own({ env: { OPENCODE_PERMISSION: "{}" } }, true), "{}")
  assert.isUndefined(own({ argv: ["gemini", "--acp"] }, true))
})

layer(Support.layer, { excludeTestServices: true })("AcpBackend", (it) => {
  describe("turns", () => {
    it.effect("Started with the session, one turn after the other, then a success when it is ended", () =>
      Effect.gen(function* () {
        const { all, here } = yield* play("text", { prompts: ["again"] })
        const turn = ["TurnStarted", "Delta", "Delta", "Usage", "Usage", "TurnCompleted"] as const
        assert.deepStrictEqual(tags(all), ["Started", ...turn, ...turn, "Exited"])
        assert.strictEqual(of(all, "Started")[0]?.sessionId, "s-1")
        assert.deepStrictEqual(outputs(all), ["Hello world 1.", "Hello again 2."])
        assert.deepStrictEqual(
          of(all, "TurnStarted").map(({ turnId }) => turnId),
          ["turn-1", "turn-2"]
        )
        assert.deepStrictEqual(outcome(all), { _tag: "Success" })
        assert.deepStrictEqual(methods(here), ["initialize", "session/new", "session/prompt", "session/prompt"])
      })
    )

    it.effect("usage is the difference, though the cost is told as a sum", () =>
      Effect.gen(function* () {
        const { all } = yield* play("text", { prompts: ["again"] })
        const spent = of(all, "Usage").map(({ inputTokens, outputTokens, usd }) => [inputTokens, outputTokens, usd])
        const turn = [
          [0, 0, 0.25],
          [11, 5, 0]
        ]
        assert.deepStrictEqual(spent, [...turn, ...turn])
      })
    )

    it.effect("a second turn at the same time is refused, and so is one after the end", () =>
      Effect.gen(function* () {
        const here = yield* world
        const run = yield* start(here, config("slow"))
        const send = Effect.flip(run.send({ turnId: "turn-2", text: "more" }))
        const seen: Array<string> = []
        const all = yield* watch(run, (event) =>
          Effect.gen(function* () {
            if (event._tag === "Delta") {
              seen.push((yield* send).message)
              yield* run.end
              seen.push((yield* send).message)
            }
          })
        )
        assert.deepStrictEqual(seen, ["a turn is in progress", "the run accepts no turn now"])
        assert.strictEqual(all.at(-2)?._tag, "TurnInterrupted")
        assert.deepStrictEqual(outcome(all), { _tag: "Success" })
      })
    )

    for (const reason of ["max_tokens", "max_turn_requests", "refusal"]) {
      it.effect(`a turn that stops for ${reason} is an error that asking again does not mend`, () =>
        Effect.gen(function* () {
          const { all } = yield* play("stops", { spec: { prompt: reason } })
          const { errorType, message, retry } = error(all)
          assert.deepStrictEqual([errorType, retry], [reason, false])
          assert.deepStrictEqual(outcome(all), { _tag: "Error", detail: message })
        })
      )
    }

    it.effect(
      "what comes outside of a prompt is a turn of its own, which asks and ends when nothing more is heard",
      () =>
        Effect.gen(function* () {
          const here = yield* world
          const run = yield* start(here, config("late", { silence: Duration.seconds(1) }))
          const all: Array<RunEvent> = []
          yield* Stream.runForEach(run.events, (event) => {
            all.push(event)
            if (event._tag === "ApprovalRequested") return run.answer(event.callId, DENY)
            return event._tag === "TurnCompleted" && event.turnId === "own-1" ? run.end : Effect.void
          })
          assert.deepStrictEqual(tags(all), [
            "Started",
            "TurnStarted",
            "Delta",
            "TurnCompleted",
            "TurnOpened",
            "Delta",
            "ToolCall",
            "ApprovalRequested",
            "ToolResult",
            "TurnCompleted",
            "Exited"
          ])
          assert.deepStrictEqual(of(all, "TurnOpened"), [
            { _tag: "TurnOpened", turnId: "own-1", why: "it goes on by itself" }
          ])
          assert.deepStrictEqual(outputs(all), ["early", "late"])
          assert.strictEqual(of(all, "ToolResult")[0]?.status, "denied")
          assert.strictEqual(read(here, "answers"), "no\n")
          assert.deepStrictEqual(outcome(all), { _tag: "Success" })
        })
    )

    it.effect("what it has agentd do in such a turn is asked for, and a prompt takes the turn in", () =>
      Effect.gen(function* () {
        const here = yield* world
        const run = yield* start(here, config("afterwards"), { prompt: here.folder })
        const all: Array<RunEvent> = []
        yield* Stream.runForEach(run.events, (event) => {
          all.push(event)
          if (event._tag === "ApprovalRequested") return run.answer(event.callId, DENY)
          if (event._tag === "TurnOpened") return Effect.ignore(run.send({ turnId: "turn-2", text: here.folder }))
          return event._tag === "TurnCompleted" && event.turnId === "turn-2" ? run.end : Effect.void
        })
        assert.strictEqual(of(all, "ApprovalRequested").length, 2)
        assert.isFalse(fs.existsSync(path.join(here.folder, "late")))
        assert.deepStrictEqual(
          of(all, "TurnCompleted").map(({ turnId }) => turnId),
          ["turn-1", "turn-2"],
          "what was taken in has no end of its own"
        )
      })
    )

    it.effect("an interrupt ends it, and so does the run's end", () =>
      Effect.gen(function* () {
        const here = yield* world
        const run = yield* start(here, config("late"))
        const all = yield* Stream.runCollect(
          Stream.tap(run.events, (event) =>
            event._tag === "ApprovalRequested"
              ? run.interruptTurn
              : event._tag === "TurnInterrupted"
                ? run.end
                : Effect.void
          )
        )
        assert.deepStrictEqual(
          of(all, "TurnInterrupted").map(({ turnId }) => turnId),
          ["own-1"]
        )
        assert.strictEqual(read(here, "answers"), "cancelled\n")
        assert.deepStrictEqual(outcome(all), { _tag: "Success" })
      })
    )
  })

  describe("tools and permissions", () => {
    const call = { callId: "t", arguments: { command: "make" }, readOnly: false }
    for (const [name, tool, bare] of [
      ["eager", "execute", false],
      ["pending", "Bash", false],
      ["quiet", "execute", true]
    ] as const) {
      const toolCall = { _tag: "ToolCall", ...call, tool, ...(bare ? { arguments: { title: "make" } } : {}) }
      it.effect(`${name}: an allowed call is asked about, started and ended once`, () =>
        Effect.gen(function* () {
          const { all } = yield* play(name, { react: answers(ALLOW) })
          assert.deepStrictEqual(all.filter(({ _tag }) => _tag !== "Offers").slice(2, -3), [
            toolCall,
            { _tag: "ApprovalRequested", callId: "t", reason: "make" },
            { _tag: "ToolStarted", callId: "t" },
            { _tag: "ToolResult", callId: "t", status: "success", output: bare ? "" : "made" }
          ] as ReadonlyArray<unknown> as ReadonlyArray<RunEvent>)
          assert.deepStrictEqual(outputs(all), ["yes"])
        })
      )
      it.effect(`${name}: a denied call ends denied, whatever the agent says of it`, () =>
        Effect.gen(function* () {
          const { all } = yield* play(name, { react: answers(DENY) })
          assert.deepStrictEqual(
            tags(all).filter((tag) => tag !== "Delta"),
            ["Started", "TurnStarted", "ToolCall", "ApprovalRequested", "ToolResult", "TurnCompleted", "Exited"]
          )
          assert.strictEqual(of(all, "ToolResult")[0]?.status, "denied")
          assert.deepStrictEqual(outputs(all), ["no"])
        })
      )
    }

    it.effect("a call that never asks is told once nothing more is heard of it", () =>
      Effect.gen(function* () {
        const here = yield* world
        const run = yield* start(here, config("unasked"))
        const at: Array<[string, number]> = []
        yield* watch(run, (event) => Effect.sync(() => at.push([event._tag, performance.now()])))
        const time = (tag: string) => at.find(([one]) => one === tag)![1]
        assert.isBelow(time("ToolCall"), time("ToolResult"))
        assert.deepStrictEqual(
          at.map(([tag]) => tag).filter((tag) => tag !== "Offers"),
          ["Started", "TurnStarted", "ToolCall", "ToolResult", "TurnCompleted", "Exited"]
        )
      })
    )

    it.effect("what a running call writes is progress, each piece once", () =>
      Effect.gen(function* () {
        const { all } = yield* play("progress")
        assert.deepStrictEqual(
          of(all, "ToolProgress").map(({ chunk }) => chunk),
          ["one\n", "two\n"]
        )
        assert.strictEqual(of(all, "ToolStarted").length, 1)
      })
    )

    it.effect("an option for ever is chosen only where there is none else, and none is a cancel", () =>
      Effect.gen(function* () {
        const allowed = yield* play("always", { react: answers(ALLOW) })
        assert.deepStrictEqual(outputs(allowed.all), ["for-ever"])
        const denied = yield* play("always", { react: answers(DENY) })
        assert.deepStrictEqual(outputs(denied.all), ["cancelled"])
        assert.match(of(denied.all, "Notice")[0]?.text ?? "", /no way to deny/)
      })
    )

    it.effect("ids that an agent repeats are made unique, and no call asks twice", () =>
      Effect.gen(function* () {
        const { all } = yield* play("repeats", { react: answers(ALLOW), prompts: ["again"] })
        const ids = ["t", "t#2", "t#3", "t#4"]
        for (const tag of ["ToolCall", "ApprovalRequested", "ToolResult"] as const) {
          assert.deepStrictEqual(
            of(all, tag).map(({ callId }) => callId),
            ids,
            tag
          )
        }
      })
    )
  })

  describe("interrupts", () => {
    it.effect("in a tool: its calls are cancelled whatever their status, and the run goes on", () =>
      Effect.gen(function* () {
        const { all, here } = yield* play("tool", { react: interrupts("ToolCall") })
        assert.deepStrictEqual(
          of(all, "ToolResult").map(({ callId, status }) => [callId, status]),
          [
            ["t", "cancelled"],
            ["u", "cancelled"]
          ]
        )
        assert.deepStrictEqual(tags(all).slice(-2), ["TurnInterrupted", "Exited"])
        assert.deepStrictEqual(outcome(all), { _tag: "Success" })
        assert.strictEqual(methods(here).filter((method) => method === "session/cancel").length, 1)
      })
    )

    it.effect("in a permission: the question is answered cancelled", () =>
      Effect.gen(function* () {
        const { all, here } = yield* play("asking", { react: interrupts("ApprovalRequested") })
        assert.strictEqual(read(here, "answers"), "cancelled\n")
        assert.strictEqual(of(all, "ToolResult")[0]?.status, "cancelled")
        assert.strictEqual(of(all, "TurnInterrupted").length, 1)
      })
    )

    it.effect("by a denial: the call is denied and the turn interrupted", () =>
      Effect.gen(function* () {
        const { all } = yield* play("eager", { react: answers({ ...DENY, interrupt: true }) })
        assert.strictEqual(of(all, "ToolResult")[0]?.status, "denied")
      })
    )

    it.effect("in an answer: what there was of it is kept, and the next turn is taken", () =>
      Effect.gen(function* () {
        const { all } = yield* play("slow", { react: interrupts("Delta"), prompts: ["again"] })
        assert.deepStrictEqual(
          of(all, "TurnInterrupted").map(({ output, turnId }) => [turnId, output]),
          [
            ["turn-1", "I begin"],
            ["turn-2", "I begin"]
          ]
        )
      })
    )

    it.effect("an agent that answers a cancel with an error was interrupted all the same", () =>
      Effect.gen(function* () {
        const { all } = yield* play("breaks", { react: interrupts("Delta") })
        assert.deepStrictEqual(tags(all).slice(-2), ["TurnInterrupted", "Exited"])
        assert.deepStrictEqual(outcome(all), { _tag: "Success" })
      })
    )

    it.effect("an agent that hears no cancel is ended after the grace", () =>
      Effect.gen(function* () {
        const { all } = yield* play("deaf", {
          config: { killGrace: Duration.millis(100) },
          react: (event, run) => (event._tag === "Delta" ? run.end : undefined)
        })
        assert.deepStrictEqual(tags(all).slice(-2), ["TurnInterrupted", "Exited"])
        assert.strictEqual(outcome(all)._tag, "Error")
      })
    )
  })

  describe("a person's reason", () => {
    const why: Decision = { behavior: "deny", message: "not before the tests pass", words: true }

    it.effect("reaches the agent in a prompt of the same turn, once; a refusal without one does not", () =>
      Effect.gen(function* () {
        let asked = 0
        const once: Reaction = (event, run) =>
          event._tag === "ApprovalRequested" ? run.answer(event.callId, asked++ === 0 ? why : DENY) : undefined
        const { all, here } = yield* play("quiet", { react: once })
        const prompts = heard(here).filter(({ method }) => method === "session/prompt")
        assert.strictEqual(prompts.length, 2)
        assert.include(JSON.stringify(prompts[1]), "Your call was denied: not before the tests pass")
        assert.strictEqual(of(all, "TurnCompleted").length, 1)
        assert.strictEqual(of(all, "TurnStarted").length, 1)
        assert.deepStrictEqual(
          of(all, "ToolResult").map(({ status }) => status),
          ["denied", "denied"]
        )
      })
    )

    it.effect("is kept from an agent whose turn is interrupted with it", () =>
      Effect.gen(function* () {
        const { all, here } = yield* play("asking", { react: answers({ ...why, interrupt: true }) })
        assert.strictEqual(heard(here).filter(({ method }) => method === "session/prompt").length, 1)
        assert.deepStrictEqual(outcome(all), { _tag: "Success" })
      })
    )
  })

  describe("sessions", () => {
    const resume = { sessionId: "s-1", fork: false }

    it.effect("a loaded session's replay becomes no event, and its cost is nobody's turn", () =>
      Effect.gen(function* () {
        const { all, here } = yield* play("text", { spec: { resume } })
        assert.deepStrictEqual(tags(all).slice(0, 3), ["Started", "TurnStarted", "Delta"])
        assert.deepStrictEqual(outputs(all), ["Hello world 1."])
        assert.deepStrictEqual(
          of(all, "Usage").map(({ usd }) => usd),
          [undefined]
        )
        assert.deepInclude(paramsOf(here, "session/load"), { sessionId: "s-1", cwd: here.folder })
      })
    )

    it.effect("a replay that comes after the answer is none of the first turn, and no turn of its own", () =>
      Effect.gen(function* () {
        const { all } = yield* play("late-replay", { spec: { resume } })
        assert.deepStrictEqual(outputs(all), ["Hello world 1."])
        assert.deepStrictEqual(of(all, "TurnOpened"), [])
        assert.deepStrictEqual(of(all, "ToolCall"), [])
      })
    )

    it.effect("it is resumed rather than loaded where the agent can, and forked where it is held", () =>
      Effect.gen(function* () {
        const resumed = yield* play("resumes", { spec: { resume } })
        assert.deepStrictEqual(methods(resumed.here).slice(1), ["session/resume", "session/prompt"])
        const forked = yield* play("resumes", { spec: { resume: { ...resume, fork: true } } })
        assert.deepStrictEqual(methods(forked.here).slice(1), ["session/fork", "session/prompt"])
        assert.strictEqual(of(forked.all, "Started")[0]?.sessionId, "s-2")
        assert.strictEqual(paramsOf(forked.here, "session/prompt")?.["sessionId"], "s-2")
      })
    )

    it.effect("an agent that says that it resumes, and does not know how, is loaded and loses no memory", () =>
      Effect.gen(function* () {
        const { all, here } = yield* play("boasts", { spec: { resume } })
        const asked = ["session/resume", "session/load", "session/prompt"]
        assert.deepStrictEqual(methods(here).slice(1), asked)
        assert.deepStrictEqual(of(all, "MemoryLost"), [])
        assert.strictEqual(of(all, "Started")[0]?.sessionId, "s-1")
      })
    )

    it.effect("an agent that fails to load a session which may be there begins none anew", () =>
      Effect.gen(function* () {
        const { all, here } = yield* play("broken", { spec: { resume } })
        assert.notInclude(methods(here), "session/new")
        assert.deepStrictEqual(tags(all), ["Exited"])
        assert.strictEqual(outcome(all)._tag, "Error")
      })
    )

    for (const [name, why] of [
      ["forgetful", /no longer has the session s-1/],
      ["new", /cannot resume a session/]
    ] as const) {
      it.effect(`${name}: a session that cannot be gone on with is replaced, and said so`, () =>
        Effect.gen(function* () {
          const { all, here } = yield* play(name, { spec: { resume } })
          assert.match(of(all, "MemoryLost")[0]?.text ?? "", why)
          assert.include(methods(here), "session/new")
          assert.deepStrictEqual(outcome(all), { _tag: "Success" })
        })
      )
    }

    it.effect("what it offers is told, bounded, and its commands with it", () =>
      Effect.gen(function* () {
        const { all } = yield* play("commands")
        const offers = Object.assign({}, ...of(all, "Offers"))
        assert.deepStrictEqual(offers.commands, [
          { name: "init", description: "writes \u001b[2J AGENTS.md", hint: "" },
          { name: "review", description: "looks", hint: "what" }
        ])
        assert.deepStrictEqual(offers.modes, [
          { id: "ask", name: "Ask" },
          { id: "plan", name: "Plan" }
        ])
        assert.deepStrictEqual(
          offers.models.map(({ name }: { readonly name: string }) => name),
          ["Small", "large"]
        )
      })
    )

    it.effect(
      "a model or a mode is chosen in a session that lives, in the midst of a turn, by whichever request it offers",
      () =>
        Effect.gen(function* () {
          const chosen = Effect.fnUntraced(function* (name: string, model: string | null, mode: string | null) {
            let answer = "nothing"
            const { here } = yield* play(name, {
              react: (event, run) =>
                event._tag === "TurnStarted"
                  ? Effect.matchEffect(run.choose!({ model, mode }), {
                      onFailure: ({ message, remedy }) => Effect.sync(() => (answer = `${message}; ${remedy}`)),
                      onSuccess: () => Effect.sync(() => (answer = "taken"))
                    })
                  : undefined
            })
            const asked = heard(here).flatMap(({ method, params }) =>
              /set_(mode|model|config_option)$/.test(method) ? [params.modeId ?? params.modelId ?? params.value] : []
            )
            return [answer, ...asked]
          })
          // by its id, or by what it is called
          assert.deepStrictEqual(yield* chosen("text", "Large", "plan"), ["taken", "$odd|large(x)", "plan"])
          assert.deepStrictEqual(yield* chosen("options", "large", "plan"), ["taken", "large", "plan"])
          // some agents say yes to anything
          assert.deepStrictEqual(yield* chosen("text", null, "wild"), [
            'Fake has no mode "wild"; set mode to one of: ask, plan'
          ])
          assert.match((yield* chosen("stubborn", "large", null))[0]!, /Fake did not accept the model "large"/)
          assert.match(
            (yield* chosen("moody", null, "plan"))[0]!,
            /refused the mode "plan": Internal error: no such mood/
          )
          assert.match((yield* chosen("silent-choices", "any", null))[0]!, /refused the model "any": Method not found/)
        })
    )

    it.effect("the mode is set before the first prompt; one that is not offered is fatal and says which are", () =>
      Effect.gen(function* () {
        const { here } = yield* play("text", { config: { mode: "plan" } })
        assert.deepStrictEqual(methods(here).slice(2), ["session/set_mode", "session/prompt"])
        const { all } = yield* play("text", { config: { mode: "wild" } })
        assert.deepStrictEqual(tags(all), ["Exited"])
        assert.deepStrictEqual(outcome(all), {
          _tag: "Fatal",
          detail: 'Fake has no mode "wild"',
          remedy: "set mode to one of: ask, plan"
        })
      })
    )

    it.effect(
      "an agent that judges for itself is set to ask, unless it has full access or the config names its mode",
      () =>
        Effect.gen(function* () {
          const modesOf = (all: ReadonlyArray<RunEvent>) => of(all, "Offers").flatMap(({ mode }) => mode ?? [])
          for (const approvals of ["read_only", "auto"] as const) {
            const { all, here } = yield* play("judges", {
              spec: { prompt: "touch made", approvals },
              react: answers(DENY)
            })
            assert.deepStrictEqual(paramsOf(here, "session/set_mode")?.["modeId"], "default")
            assert.deepStrictEqual(modesOf(all), [{ id: "default", isUnasked: false }])
            assert.strictEqual(of(all, "ApprovalRequested").length, 1)
            assert.isFalse(fs.existsSync(path.join(here.folder, "made")))
            assert.deepStrictEqual(of(all, "Notice"), [])
          }
          for (const [more, mode] of [
            [{ spec: { prompt: "touch made", approvals: "full_access" } }, "auto"],
            [{ spec: { prompt: "touch made" }, config: { mode: "bypassPermissions" } }, "bypassPermissions"]
          ] as const) {
            const { all, here } = yield* play("judges", more)
            assert.deepStrictEqual(modesOf(all), [{ id: mode, isUnasked: true }])
            assert.isTrue(fs.existsSync(path.join(here.folder, "made")))
          }
        })
    )

    it.effect(
      "where no mode asks it is said, and an agent that may only read ends with the first call that changes",
      () =>
        Effect.gen(function* () {
          const unasked = yield* play("modeless", { spec: { prompt: "touch made", approvals: "auto" } })
          assert.match(
            of(unasked.all, "Notice")[0]!.text,
            /^agentd does not know whether .* asks for approval \(it has no modes\): calls that it does not ask about run without approval$/
          )
          assert.deepStrictEqual(outcome(unasked.all), { _tag: "Success" })
          for (const prompt of ["touch made", "sleep 100"]) {
            const { all } = yield* play("modeless", { spec: { prompt, approvals: "read_only" } })
            const end = outcome(all)
            assert.strictEqual(end._tag, "Fatal")
            assert.match(
              end._tag === "Fatal" ? end.detail : "",
              new RegExp(`without asking.*may only read.*: ${prompt}`)
            )
            assert.strictEqual(error(all).errorType, "unasked")
          }
          const reads = yield* play("modeless", { spec: { prompt: "pwd && ls -l | wc -l", approvals: "read_only" } })
          assert.deepStrictEqual(outcome(reads.all), { _tag: "Success" })
          const named = yield* play("judges", {
            spec: { prompt: "touch made", approvals: "read_only" },
            config: { mode: "auto" }
          })
          assert.strictEqual(error(named.all).errorType, "unasked")
        })
    )

    it.effect("an agent of the protocol's own SDK understands all that it is told, and answers", () =>
      Effect.gen(function* () {
        const here = yield* world
        const how = config("", { argv: [process.execPath, fixture("sdk-agent.mjs")], mode: "plan" })
        const mcp = { voice: { argv: ["true"], env: { TOKEN: "x" } } }
        const turn = Effect.fnUntraced(function* (spec: Partial<RunSpec>) {
          const all = yield* watch(yield* start(here, how, { prompt: here.folder, mcp, ...spec }), answers(ALLOW))
          assert.deepStrictEqual(outcome(all), { _tag: "Success" })
          return outputs(all)[0]
        })
        const answer = JSON.stringify(["yes", "made", 0, "run\n"])
        assert.strictEqual(yield* turn({}), answer)
        assert.strictEqual(yield* turn({ resume }), answer)
      })
    )

    it.effect("it is given the servers, with their arguments and variables", () =>
      Effect.gen(function* () {
        const { here } = yield* play("text", {
          spec: { mcp: { voice: { argv: ["agentd", "mcp"], env: { TOKEN: "x" } } } }
        })
        assert.deepStrictEqual(paramsOf(here, "session/new"), {
          _meta: { claudeCode: { emitRawSDKMessages: [{ type: "system", subtype: "api_retry" }] } },
          cwd: here.folder,
          mcpServers: [{ name: "voice", command: "agentd", args: ["mcp"], env: [{ name: "TOKEN", value: "x" }] }]
        })
      })
    )
  })

  describe("errors", () => {
    it.effect("an agent that wants a login counts nothing, and the ways to log in are named", () =>
      Effect.gen(function* () {
        const { all } = yield* play("locked")
        assert.deepStrictEqual(tags(all), ["Exited"])
        const end = outcome(all)
        assert(end._tag === "Uncounted")
        assert.strictEqual(end.reason, "auth")
        assert.match(end.detail ?? "", /key \(Key: run fake login\)/)
      })
    )

    it.effect("the login that the config names is asked for, and one that is not offered is fatal", () =>
      Effect.gen(function* () {
        const { all, here } = yield* play("locked", { config: { authMethod: "key" } })
        assert.deepStrictEqual(outputs(all), ["Hello world 1."])
        assert.include(methods(here), "authenticate")
        const other = outcome((yield* play("locked", { config: { authMethod: "badge" } })).all)
        assert(other._tag === "Fatal")
        assert.match(other.detail, /no login method "badge"/)
      })
    )

    for (const [what, refusal, errorType, expected] of [
      ["401", { code: -32603, message: "Internal error: 401 invalid key" }, "auth", "auth"],
      ["a rate limit", { code: -32603, message: "oh", data: { details: "429 rate_limit" } }, "rate_limit", "quota"],
      ["an overflow", { code: -32603, message: "prompt is too long: 9 tokens" }, "overflow", "overflow"],
      ["an outage", { code: -32603, message: "529 overloaded" }, "overloaded", "unavailable"],
      ["anything else", { code: -32603, message: "Internal error" }, "agent", "Error"]
    ] as const) {
      it.effect(`${what}: the turn's error has its class, and so has the run's outcome`, () =>
        Effect.gen(function* () {
          const { all } = yield* play("refuses", { spec: { prompt: JSON.stringify(refusal) } })
          assert.deepStrictEqual(tags(all), ["Started", "TurnStarted", "TurnError", "Exited"])
          assert.deepInclude(error(all), { errorType, retry: true })
          const end = outcome(all)
          assert.strictEqual(end._tag === "Uncounted" ? end.reason : end._tag, expected)
        })
      )
    }

    it.effect("an agent that dies in a turn: its calls are unknown, and the last it said is told", () =>
      Effect.gen(function* () {
        const { all } = yield* play("dies")
        assert.strictEqual(of(all, "ToolResult")[0]?.status, "unknown")
        assert.deepStrictEqual(of(all, "TurnError"), [])
        const end = outcome(all)
        assert(end._tag === "Error")
        assert.match(end.detail, /exit code 3: no memory left$/)
      })
    )

    it.effect("alive but dead: a turn in which nothing is heard is ended and counts", () =>
      Effect.gen(function* () {
        const { all } = yield* play("hangs", { config: { silence: Duration.millis(200) } })
        assert.deepInclude(error(all), { errorType: "silence", retry: true })
        assert.strictEqual(outcome(all)._tag, "Error")
      })
    )

    it.effect("a question that waits for a person is no silence", () =>
      Effect.gen(function* () {
        const { all } = yield* play("eager", {
          config: { silence: Duration.millis(100) },
          react: (event, run) =>
            event._tag === "ApprovalRequested"
              ? Effect.andThen(Effect.sleep("400 millis"), run.answer(event.callId, ALLOW))
              : undefined
        })
        assert.deepStrictEqual(outputs(all), ["yes"])
      })
    )

    it.effect("what is no message is told of a few times and skipped; what is unknown is refused", () =>
      Effect.gen(function* () {
        const { all } = yield* play("garbage")
        const notices = of(all, "Notice").map(({ text }) => text)
        assert.strictEqual(notices.length, 10)
        assert.match(notices[0]!, /not a message of the protocol: "noise 0"/)
        assert.match(notices[9]!, /further lines of this kind are not reported/)
        assert.deepStrictEqual(outputs(all), ["-32601"])
      })
    )

    it.effect("another version of the protocol is fatal; a program that is no agent never starts", () =>
      Effect.gen(function* () {
        const newer = outcome((yield* play("newer")).all)
        assert(newer._tag === "Fatal")
        assert.match(newer.detail, /speaks version 2 of the protocol, agentd version 1/)
        const { all } = yield* play("", { config: { argv: ["sh", "-c", "echo usage: none; exit 2"] } })
        assert.deepStrictEqual(tags(all), ["Notice", "Exited"])
        assert.deepStrictEqual(outcome(all), { _tag: "Error", detail: "sh ended with exit code 2" })
      })
    )

    it.effect("an agent that is not ready in time has failed to start", () =>
      Effect.gen(function* () {
        const { all } = yield* play("slow-start", { config: { startTimeout: Duration.millis(500) } })
        assert.deepStrictEqual(tags(all), ["Exited"])
        const end = outcome(all)
        assert(end._tag === "Error")
        assert.match(end.detail, /not ready within 500ms/)
      })
    )
  })

  describe("files", () => {
    /** The outcome of each of these requests. */
    const ask = Effect.fnUntraced(function* (
      here: World,
      requests: ReadonlyArray<readonly [string, object]>,
      name = "files"
    ) {
      const all = yield* watch(yield* start(here, config(name), { prompt: JSON.stringify(requests) }), answers(ALLOW))
      return { answers: outputs(all)[0]!.trim().split("\n"), notices: of(all, "Notice").map(({ text }) => text) }
    })
    const READ = "fs/read_text_file"
    const WRITE = "fs/write_text_file"

    it.effect("what lies in the workspace is read, by lines too, and written", () =>
      Effect.gen(function* () {
        const here = yield* world
        const file = path.join(here.folder, "a.txt")
        fs.writeFileSync(file, "one\ntwo\nthree\n")
        const { answers, notices } = yield* ask(here, [
          [READ, { path: file }],
          [READ, { path: file, line: 2, limit: 1 }],
          [WRITE, { path: path.join(here.folder, "new/b.txt"), content: "made" }],
          [READ, { path: path.join(here.folder, "none") }]
        ])
        assert.deepStrictEqual(answers.slice(0, 3), [
          JSON.stringify({ content: "one\ntwo\nthree\n" }),
          JSON.stringify({ content: "two\n" }),
          "{}"
        ])
        assert.match(answers[3]!, /refused: .*does not exist/)
        assert.strictEqual(read(here, "new/b.txt"), "made")
        assert.deepStrictEqual(notices, [])
      })
    )

    it.effect("Gemini CLI, which makes no file that it is told is missing, is told of an empty one", () =>
      Effect.gen(function* () {
        const here = yield* world
        const { answers } = yield* ask(here, [[READ, { path: path.join(here.folder, "none") }]], "gemini-files")
        assert.deepStrictEqual(answers, [JSON.stringify({ content: "" })])
      })
    )

    it.effect("what lies outside is refused to the agent and told, also through a link", () =>
      Effect.gen(function* () {
        const [here, other] = [yield* world, yield* world]
        const secret = path.join(other.folder, "secret")
        fs.writeFileSync(secret, "secret")
        fs.symlinkSync(other.folder, path.join(here.folder, "link"))
        const { answers, notices } = yield* ask(here, [
          [READ, { path: secret }],
          [READ, { path: path.join(here.folder, "link/secret") }],
          [READ, { path: path.join(here.folder, "../x/../../etc/passwd") }],
          [WRITE, { path: path.join(here.folder, "link/secret"), content: "changed" }],
          [WRITE, { path: path.join(other.folder, "new"), content: "made" }]
        ])
        assert.strictEqual(answers.length, 5)
        for (const answer of answers) assert.match(answer, /^refused: .*(workspace)/)
        assert.strictEqual(notices.length, 5)
        assert.match(notices[0]!, /the agent was not allowed to read: /)
        assert.strictEqual(fs.readFileSync(secret, "utf8"), "secret")
        assert.isFalse(fs.existsSync(path.join(other.folder, "new")))
      })
    )
  })

  describe("processes", () => {
    it.effect("terminals: output and exit code, bounded output, kill, release, none outside the workspace", () =>
      Effect.gen(function* () {
        // a name that suggests a secret: whoever wrote the config has set it for the agent
        const env = { DB_PASSWORD: "of-the-config" }
        const { all } = yield* play("terminals", { config: { env }, react: answers(ALLOW) })
        const { exit, gone, killed, outside, output, tail } = JSON.parse(outputs(all)[0]!)
        assert.deepStrictEqual(exit, { exitCode: 3, signal: null })
        assert.deepStrictEqual(output.output.split("\n").toSorted(), ["", "no", "run-1 more of-the-config"])
        assert.deepInclude(output, { truncated: false, exitStatus: exit })
        assert.strictEqual(gone, -32002)
        assert.strictEqual(killed.signal, "SIGTERM")
        assert.deepInclude(tail, { truncated: true, output: "fgh\n" })
        assert.match(outside, /workspace/)
        assert.deepStrictEqual(
          of(all, "ToolResult").map(({ callId, status }) => [callId, status]),
          [
            ["agentd:1", "error"],
            ["agentd:2", "error"],
            ["t", "success"]
          ]
        )
      })
    )

    it.effect("orphans: terminals that an agent leaves behind are gone before Exited", () =>
      Effect.gen(function* () {
        const here = yield* world
        const run = yield* start(here, config("leaves"))
        const all: Array<RunEvent> = []
        yield* Stream.runForEach(run.events, (event) =>
          Effect.gen(function* () {
            all.push(event)
            yield* answers(ALLOW)(event, run) ?? Effect.void
            if (event._tag !== "TurnCompleted") return
            yield* Support.pids(here.folder, 2)
            yield* run.end
          })
        )
        assert.deepStrictEqual(outcome(all), { _tag: "Success" })
        assert.deepStrictEqual(Support.pidsIn(here.folder).filter(isAlive), [])
      })
    )

    it.effect("a launcher that is killed does not leave the real agent running", () =>
      Effect.gen(function* () {
        const here = yield* world
        const shell = `echo $$ >> pids; exec 3<&0; "$0" "$1" "$2" <&3 & echo $! >> pids; wait`
        const run = yield* start(here, config("", { argv: ["sh", "-c", shell, process.execPath, AGENT, "slow"] }))
        let launcher: number | undefined
        const all = yield* watch(run, (event) =>
          Effect.sync(() => {
            if (event._tag === "Started") launcher = event.pid
            if (event._tag === "Delta") process.kill(launcher!, "SIGKILL")
          })
        )
        assert.deepStrictEqual(of(all, "TurnError"), [])
        assert.deepStrictEqual(outcome(all), { _tag: "Error", detail: "sh was killed by SIGKILL" })
        assert.strictEqual(Support.pidsIn(here.folder).filter(isAlive).length, 0)
      })
    )

    it.effect("closing its scope ends all of it", () =>
      Effect.gen(function* () {
        const here = yield* world
        const scope = yield* Scope.make()
        const run = yield* start(here, config("helper")).pipe(Scope.provide(scope))
        yield* Stream.runForEach(Stream.take(run.events, 1), () => Effect.void)
        const known = yield* Support.pids(here.folder, 1)
        yield* Scope.close(scope, Exit.void)
        assert.deepStrictEqual(known.filter(isAlive), [])
      })
    )

    it.effect("a flood of updates arrives whole and in order, however slowly it is read", () =>
      Effect.gen(function* () {
        const run = yield* start(yield* world, config("flood"))
        let next = 0
        yield* Stream.runForEach(run.events, (event) =>
          Effect.gen(function* () {
            if (event._tag === "TurnCompleted") return yield* run.end
            if (event._tag !== "Delta") return
            assert.strictEqual(event.text, `${next++} `)
            if (next % 500 === 0) yield* Effect.yieldNow
          })
        )
        assert.strictEqual(next, 5000)
      })
    )

    it.effect("kill ends it at once", () =>
      Effect.gen(function* () {
        const { all } = yield* play("deaf", {
          react: (event, run) => (event._tag === "Delta" ? run.kill : undefined)
        })
        assert.deepStrictEqual(of(all, "TurnError"), [])
        assert.match((outcome(all) as { detail: string }).detail, /was killed by SIGKILL/)
      })
    )
  })
})
