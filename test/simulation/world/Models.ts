/**
 * Models: agents whose turns agentd itself runs: the real model backend, against APIs and with
 * tools that are played. Its engine lives in the daemon, and dies with it.
 */
import { Duration, Effect, FileSystem, Schema, Stream } from "effect"
import type { Backend, Run, RunEvent, RunSpec, TurnInput } from "../../../src/runs/Backend.ts"
import * as ModelBackend from "../../../src/model-agent/ModelEngine.ts"
import { ModelHttp } from "../../../src/model-agent/ModelHttp.ts"
import { define, type Tool, type ToolContext, type ToolOutcome } from "../../../src/model-agent/Tool.ts"
import type { Host } from "../../../src/runs/Host.ts"
import type { ModelBackend as ModelConfig } from "../../../src/config/BackendConfig.ts"
import { Chance } from "../Chance.ts"
import type { Moving } from "../checks/Fallbacks.ts"
import type { Life, Universe } from "../Universe.ts"
import { Errands } from "./Errands.ts"
import type { Files } from "./Files.ts"
import { type ApiManners, type ApiWitness, keyOf, type Mind, ModelApi, type Request } from "./ModelApi.ts"
import type { Call } from "./ModelWire.ts"
import type { Processes, Seen } from "./Processes.ts"
import { Speech } from "./Speech.ts"

/** How models fare in a seed's world. */
export interface Modelling extends ApiManners {
  /** The backend of each agent that is a model, as the file has it. */
  readonly of: { readonly [agent: string]: object }
  /** The other accounts of agents, and what they do at a limit of their own, as the file has it. */
  readonly fallbacks: { readonly [agent: string]: Moving & { readonly fallback: ReadonlyArray<object> } }
}

/** The view of the turns of models, besides the view of any agent. */
export interface ModelWitness extends ApiWitness {
  readonly begun: (run: ModelRun, spec: RunSpec, keepsSession: boolean) => void
  readonly heard: (run: ModelRun, event: RunEvent) => void
  readonly next: (run: ModelRun, input: TurnInput) => void
  /** The run did not take it. */
  readonly notTaken: (run: ModelRun, input: TurnInput) => void
  readonly interrupted: (run: ModelRun) => void
  readonly worked: (run: ModelRun, callId: string) => void
  readonly over: (run: ModelRun, isKilled: boolean) => void
}

export class ModelRun implements Seen {
  readonly agent: string
  readonly runId: string
  readonly cwd: string
  readonly pid: number
  readonly silence: number
  alive = true
  /** The turn that was given last, while it has not ended. */
  turnId: string | undefined
  /** Until it has come to it. */
  input: TurnInput | undefined = undefined
  readonly speech: Speech
  readonly errands: Errands

  constructor(
    { agent, cwd, runId, turnId }: RunSpec,
    pid: number,
    silence: number,
    words: { readonly speech: Speech; readonly errands: Errands }
  ) {
    this.agent = agent
    this.cwd = cwd
    this.runId = runId
    this.turnId = turnId
    this.pid = pid
    this.silence = silence
    this.speech = words.speech
    this.errands = words.errands
  }
}

const TOOLS = ["look", "change", "sign"] as const
const HUGE = "😀x".repeat(40_000)

export class Models {
  readonly api: ModelApi
  private readonly universe: Universe
  private readonly seed: number
  private readonly processes: Processes
  private readonly files: Files
  private readonly talks: ModelWitness
  private readonly runs = new Map<string, ModelRun>()
  private readonly host: Host
  private started = 0
  private calls = 0

  constructor(processes: Processes, files: Files, modelling: Modelling, talks: ModelWitness) {
    const { seed, universe } = processes
    this.universe = universe
    this.seed = seed
    this.processes = processes
    this.files = files
    this.talks = talks
    const names = [...JSON.stringify(modelling).matchAll(/"KEY_(\w+)"/g)].map(([, name]) => name!)
    this.host = {
      store: "simulated",
      environment: Object.fromEntries(names.map((name) => [`KEY_${name}`, keyOf(name)])),
      sessions: "/state/sessions"
    }
    const mind: Mind = {
      answers: (agent) => this.runs.get(agent)?.speech.answer("", this.processes.unruly) ?? "done",
      calls: (request, chance) => this.callsOf(request, chance),
      silence: (agent) => this.runs.get(agent)?.silence ?? Number.POSITIVE_INFINITY
    }
    const asked = (request: Request) => {
      const run = this.runs.get(request.agent)
      if (run !== undefined) this.gives(run)
      talks.asked(request)
    }
    this.api = new ModelApi(universe, seed, modelling, mind, { ...talks, asked })
  }

  /** The daemon is gone, and its turns with it. */
  orphan(): void {
    for (const run of this.runs.values()) this.bury(run, true)
  }

  private bury(run: ModelRun, isKilled: boolean): void {
    if (this.runs.get(run.agent) === run) this.runs.delete(run.agent)
    if (!run.alive) return
    run.alive = false
    this.talks.over(run, isKilled)
    this.processes.witness.gone(run)
  }

  /** Calls of a model: of tools that there are, that there are not, and that nobody can read. */
  private callsOf({ number }: Request, chance: Chance): ReadonlyArray<Call> {
    const one = (at: number): Call => {
      const path = chance.pick(["a.txt", "ö/b.txt", "😀"])
      const input = JSON.stringify({ path, text: chance.pick(["", "x", "好".repeat(50)]) })
      const json = chance.is(0.8)
        ? input
        : chance.pick([`${"😀".repeat(1_500)}`, "{", "[1]", "", '{"path":7,"text":""}', '{"other":true}'])
      const name = chance.is(0.9) ? chance.pick(TOOLS) : chance.pick(["forget", "functions.look", "", "look at it"])
      const id = chance.is(0.9) ? `call_${number}_${at}` : chance.pick(["", "call_1_0", "x".repeat(64), "call:1"])
      return { id, name, json }
    }
    return Array.from({ length: 1 + chance.below(chance.is(0.2) ? 12 : 3) }, (_, at) => one(at))
  }

  private readonly work = (run: ModelRun, name: string, context: ToolContext): Effect.Effect<ToolOutcome> =>
    Effect.suspend(() => {
      const chance = new Chance(this.seed, `tool call ${++this.calls}`)
      this.universe.note(`works ${run.agent} ${name} ${context.callId}`)
      this.talks.worked(run, context.callId)
      const done: Effect.Effect<ToolOutcome> = Effect.suspend(() => {
        if (!this.processes.unruly || chance.is(0.6))
          return Effect.succeed({ status: "success", output: `done ${name}` })
        return chance.pick<() => Effect.Effect<ToolOutcome>>([
          () => Effect.succeed({ status: "error", output: "it does not work" }),
          () => Effect.succeed({ status: "sandbox_violation", output: "outside" }),
          () => Effect.succeed({ status: "success", output: HUGE }),
          () => Effect.succeed({ status: "success", output: "" }),
          () => Effect.as(context.progress("stdout", "…"), { status: "success", output: "…" }),
          () => Effect.die(new Error("a tool that fails"))
        ])()
      })
      const takes = this.processes.unruly ? chance.skewed(0.5, chance.is(0.2) ? 60_000 : 2_000) : 5
      return Effect.andThen(Effect.sleep(takes), done)
    })

  private tool(run: ModelRun, name: (typeof TOOLS)[number]): Tool {
    return define({
      name,
      description: `To ${name}.`,
      input: Schema.Struct({ path: Schema.String, text: Schema.String }),
      readOnly: name === "look",
      parallel: name === "look",
      asksAlways: name === "sign" ? "a person signs" : undefined,
      run: (_, context) => this.work(run, name, context)
    })
  }

  /** Says any words at the beginning of a turn. */
  private begins(run: ModelRun, { text, turnId }: TurnInput): void {
    run.turnId = turnId
    run.input = { turnId, text }
    const { universe } = this
    const { asks, unruly, voice } = this.processes
    const meanwhile = (ms: number, then: () => void) =>
      void universe.later(ms, () => run.alive && run.turnId === turnId && then())
    run.speech.begin(text, unruly, voice, meanwhile)
    if (unruly) run.errands.begin(asks, ["a", "b", "c", "helper"], meanwhile)
  }

  /** Takes the turn's input. */
  private gives(run: ModelRun): void {
    const { input } = run
    if (input === undefined) return
    run.input = undefined
    this.processes.witness.given(run, input.turnId, input.text)
  }

  private born(spec: RunSpec, config: ModelConfig): ModelRun {
    const { swarm } = this.processes
    const number = ++this.started
    // no process has so high a number
    const pid = 90_000 + number
    const speech = new Speech(spec.runId, pid, new Chance(this.seed, `words of ${pid}`), swarm.talk)
    const errands = new Errands(spec.runId, new Chance(this.seed, `errands of ${pid}`), swarm.errands)
    const run = new ModelRun(spec, pid, Duration.toMillis(config.silence), { speech, errands })
    this.runs.set(spec.agent, run)
    this.processes.witness.spawned(run)
    this.talks.begun(run, spec, config.resume)
    this.begins(run, { turnId: spec.turnId, text: spec.prompt })
    return run
  }

  private hears(run: ModelRun, event: RunEvent): void {
    if (!run.alive) return
    if (event._tag === "TurnStarted") this.universe.note(`turn ${event.turnId} of ${run.agent}`)
    if (event._tag === "TurnStarted") this.gives(run)
    this.talks.heard(run, event)
    this.processes.witness.said(run, event)
    if (event._tag === "TurnCompleted" || event._tag === "TurnError" || event._tag === "TurnInterrupted")
      run.turnId = undefined
    if (event._tag === "Exited") this.bury(run, false)
  }

  private real(life: Life, config: ModelConfig): Effect.Effect<Backend> {
    const toolbox: ModelBackend.MakeToolbox<never> = ({ spec }) =>
      Effect.sync(() => {
        const run = this.runs.get(spec.agent)
        if (run?.runId !== spec.runId) throw new Error(`run ${spec.runId} was not born`)
        return { tools: TOOLS.map((name) => this.tool(run, name)) }
      })
    return ModelBackend.make(config, this.host, toolbox).pipe(
      Effect.provideService(FileSystem.FileSystem, this.files.of(life)),
      Effect.provideService(ModelHttp, this.api.of(life))
    )
  }

  private readonly start = Effect.fnUntraced(
    { self: this },
    function* (this: Models, real: Backend, config: ModelConfig, spec: RunSpec) {
      const run = yield* Effect.acquireRelease(
        Effect.sync(() => this.born(spec, config)),
        (run) => Effect.sync(() => this.bury(run, false))
      )
      const actual = yield* real.start(spec)
      return {
        ...actual,
        events: Stream.tap(actual.events, (event) => Effect.sync(() => this.hears(run, event))),
        send: (input: TurnInput) =>
          Effect.suspend(() => {
            if (run.turnId !== undefined) return actual.send(input)
            this.begins(run, input)
            this.talks.next(run, input)
            return Effect.tapError(actual.send(input), () =>
              Effect.sync(() => {
                run.turnId = undefined
                run.input = undefined
                this.talks.notTaken(run, input)
              })
            )
          }),
        interruptTurn: Effect.suspend(() => {
          if (run.turnId !== undefined) this.talks.interrupted(run)
          return actual.interruptTurn
        })
      } satisfies Run
    }
  )

  /** The real backend of an agent, seen from outside. */
  readonly backend = (life: Life, config: ModelConfig): Effect.Effect<Backend> =>
    Effect.map(this.real(life, config), (real) => ({
      ...real,
      start: (spec: RunSpec) => this.start(real, config, spec)
    }))
}
