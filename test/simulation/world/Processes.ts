/**
 * Processes: the agents' processes of the world that the daemon starts and does not control. They
 * outlive it; they answer, hang, crash, lie, and end late or not at all.
 *
 * `backend` keeps the contract of Backend as far as a backend can: a run's scope closes
 * only when its process is gone. What the process does is its own.
 */
import { type Cause, Effect, Queue, Stream } from "effect"
import { type Backend, BackendError, type Run, type RunEvent, type RunSpec } from "../../../src/runs/Backend.ts"
import type { Outcome } from "../../../src/runs/Outcome.ts"
import type { ProcessTree } from "../../../src/runs/process/ProcessTree.ts"
import { type Touch, untouched } from "../Boundaries.ts"
import type { Contract } from "../checks/Contract.ts"
import { Chance } from "../Chance.ts"
import type { Swarm, TurnMood } from "../Swarm.ts"
import { EPOCH, type Life, type Universe } from "../Universe.ts"
import { type Lurks, never, type Strikes, unseen } from "./Strikes.ts"
import { type Asks, Errands } from "./Errands.ts"
import type { Machine } from "./Machine.ts"
import { Speech, type Voice } from "./Speech.ts"
import type { Work } from "./Work.ts"

/** An agent at work, as it is seen from outside. */
export type Seen = Pick<AgentProcess, "agent" | "alive" | "cwd" | "pid" | "runId" | "turnId">

/** The view of agents from outside, for checks. */
export interface Witness {
  readonly spawned: (process: Seen) => void
  readonly given: (process: Seen, turnId: string, text: string) => void
  readonly said: (process: Seen, event: RunEvent) => void
  readonly gone: (process: Seen) => void
  /** Tells of a process that reads words that nobody has given it. */
  readonly garbled?: (runId: string, text: string) => void
  /** The requests and events of real backends, and the bytes of their programs. */
  readonly contract?: Contract
}

/** From SIGTERM to SIGKILL, as the default of `killGrace`. */
const KILL_GRACE = 5_000

/** As the default of `silence`. */
const SILENCE = 900_000

/** The identity of an agent's process. */
export type Of = Pick<RunSpec, "agent" | "cwd" | "runId">

export class AgentProcess {
  readonly world: Processes
  readonly agent: string
  readonly runId: string
  readonly pid: number
  /** The tick of its fork. */
  readonly born: number
  readonly cwd: string
  /** The process's own dice: other processes change nothing about it. */
  readonly chance: Chance
  alive = true
  /** True once the process's daemon is gone. */
  isOrphan = false
  /** True for one that a keeper holds: its daemon's end is none of its own. */
  isKept = false
  /** The turn that it works on. */
  turnId: string | undefined = undefined
  /** Where it speaks; nowhere once its daemon is gone. */
  listener: ((event: RunEvent) => void) | undefined = undefined
  private readonly deaf: boolean
  private readonly stuck: boolean
  readonly isLiar: boolean
  private asked = new Map<string, (allowed: boolean) => void>()
  private calls = 0
  /** True once the process was asked to end; it may be deaf to that. */
  isEnding = false
  private termed = false
  private said = ""
  private readonly speech: Speech
  /** The result of the turn, where it is of a goal. */
  private result: () => string | undefined = () => undefined
  private readonly errands: Errands
  private readonly odd: Chance
  private readonly more: Chance

  constructor(world: Processes, { agent, cwd, runId }: Of, pid: number, chance: Chance) {
    const { swarm } = world
    this.cwd = cwd
    this.world = world
    this.chance = chance
    this.agent = agent
    this.runId = runId
    this.pid = pid
    this.born = world.machine?.tick ?? 1
    this.speech = new Speech(runId, pid, new Chance(world.seed, `words of ${pid}`), swarm.talk)
    this.errands = new Errands(runId, new Chance(world.seed, `errands of ${pid}`), swarm.errands)
    this.odd = new Chance(world.seed, `end of ${pid}`)
    this.more = new Chance(world.seed, `more of ${pid}`)
    this.deaf = world.unruly && chance.is(swarm.deaf)
    this.stuck = world.unruly && chance.is(swarm.stuck)
    this.isLiar = world.unruly && chance.is(swarm.lies)
  }

  private later(low: number, high: number, run: () => void): void {
    this.world.universe.later(this.chance.skewed(low, high), () => {
      if (this.alive) run()
    })
  }

  say(event: RunEvent): void {
    if (!this.alive && event._tag !== "Exited") return
    this.world.witness.said(this, event)
    this.listener?.(event)
    if (this.isLiar && event._tag !== "Exited" && this.chance.is(0.3)) this.lie(event)
  }

  private lie(event: RunEvent): void {
    const { chance } = this
    const turnId = this.turnId ?? "none"
    this.listener?.(
      chance.pick<RunEvent>([
        event._tag === "TurnCompleted" ? { _tag: "Notice", text: "again" } : event,
        {
          _tag: "ToolResult",
          callId: `ghost-${chance.below(5)}`,
          status: "success",
          output: "x".repeat(chance.below(4000))
        },
        { _tag: "TurnCompleted", turnId: `${turnId}-of-another`, output: "a lie" },
        { _tag: "ApprovalRequested", callId: `ghost-${chance.below(5)}`, reason: "" },
        { _tag: "Usage", inputTokens: -5, outputTokens: Number.NaN },
        { _tag: "Started", sessionId: "another" },
        { _tag: "TurnStarted", turnId: "another" }
      ])
    )
  }

  exit(outcome: Outcome): void {
    if (!this.alive) return
    this.alive = false
    this.world.buried(this)
    this.say({ _tag: "Exited", outcome })
  }

  /** How it ends by itself: by an error, or in one of the other ways there are. */
  private ending(detail: string): Outcome {
    const { swarm, universe } = this.world
    if (!this.odd.is(swarm.oddEnds)) return { _tag: "Error", detail }
    return this.odd.pick<Outcome>([
      { _tag: "Success" },
      { _tag: "Fatal", detail: "not logged in", remedy: "log in" },
      { _tag: "Timeout" },
      { _tag: "Uncounted", reason: "overflow" },
      { _tag: "Uncounted", reason: "held" },
      { _tag: "Uncounted", reason: "quota" },
      { _tag: "Uncounted", reason: "quota", until: EPOCH + universe.now + this.odd.skewed(1_000, 3_600_000) }
    ])
  }

  start({ prompt, resume, runId, turnId }: Pick<RunSpec, "prompt" | "resume" | "runId" | "turnId">): void {
    this.wake(() => {
      this.say({ _tag: "Started", pid: this.pid, sessionId: resume?.sessionId ?? `session-${runId}` })
      this.begin(turnId, prompt)
    })
  }

  /** Until it is up, if it comes to that. */
  wake(up: () => void): void {
    const { chance } = this
    const { swarm, unruly } = this.world
    if (unruly && chance.is(swarm.diesEarly)) {
      return this.later(1, 2_000, () => this.exit(this.ending("exit 1")))
    }
    this.later(5, unruly ? 3_000 : 50, up)
  }

  begin(turnId: string, text: string): void {
    if (!this.alive) return
    this.turnId = turnId
    this.said = ""
    this.world.witness.given(this, turnId, text)
    this.say({ _tag: "TurnStarted", turnId })
    const meanwhile = (ms: number, run: () => void) =>
      void this.world.universe.later(ms, () => this.alive && this.turnId === turnId && run())
    this.speech.begin(text, this.world.unruly, this.world.voice, meanwhile)
    this.result =
      this.world.work?.begin(
        { agent: this.agent, runId: this.runId, pid: this.pid, cwd: this.cwd, text },
        this.world.unruly,
        meanwhile
      ) ?? (() => undefined)
    if (this.world.unruly) this.errands.begin(this.world.asks, ["a", "b", "c", "helper"], meanwhile)
    const mood = this.world.unruly ? this.chance.weighed(this.world.swarm.turns) : "answers"
    this.play(mood, turnId)
  }

  private play(mood: TurnMood, turnId: string): void {
    const { chance } = this
    const mine = (run: () => void) => () => {
      if (this.turnId === turnId) run()
    }
    switch (mood) {
      case "answers":
        return this.later(
          1,
          500,
          mine(() => this.complete())
        )
      case "slow": {
        const beats = 1 + chance.below(8)
        const beat = (left: number) =>
          this.later(
            100,
            60_000,
            mine(() => {
              this.speak()
              if (left > 0) beat(left - 1)
              else this.complete()
            })
          )
        return beat(beats)
      }
      case "floods": {
        for (let left = 200 + chance.below(2_000); left > 0; left--) this.speak()
        return this.later(
          1,
          2_000,
          mine(() => this.complete())
        )
      }
      case "tools":
      case "asks":
        return this.tool(turnId, mood === "asks", 1 + chance.below(3))
      case "hangs":
        this.speak()
        // a backend ends a turn in which nothing is heard for so long
        return this.later(
          SILENCE,
          SILENCE + 1,
          mine(() => this.kill())
        )
      case "crashes":
        return this.later(
          1,
          20_000,
          mine(() => this.exit(this.ending("killed by SIGSEGV")))
        )
      case "fails":
      case "refuses":
        return this.later(
          1,
          5_000,
          mine(() => {
            this.spend()
            this.turnId = undefined
            this.say({
              _tag: "TurnError",
              turnId,
              errorType: mood === "fails" ? "agent" : "refusal",
              message: mood,
              retry: mood === "fails"
            })
            this.later(1, 200, () => this.exit({ _tag: "Error", detail: mood }))
          })
        )
    }
  }

  private tool(turnId: string, asks: boolean, left: number): void {
    const callId = `${this.runId}-${++this.calls}`
    this.say({ _tag: "ToolCall", callId, tool: "shell", arguments: { left }, readOnly: false })
    const work = (allowed: boolean) => {
      if (allowed) this.say({ _tag: "ToolStarted", callId })
      this.later(1, 10_000, () => {
        if (this.turnId !== turnId) return
        if (allowed && this.chance.is(0.3)) this.say({ _tag: "ToolProgress", callId, stream: "stdout", chunk: "…" })
        this.say({ _tag: "ToolResult", callId, status: allowed ? "success" : "denied", output: "done" })
        if (left > 1) this.tool(turnId, asks, left - 1)
        else this.later(1, 500, () => this.turnId === turnId && this.complete())
      })
    }
    if (this.more.is(this.world.swarm.pairs)) this.second(turnId)
    if (!asks) return work(true)
    this.asked.set(callId, work)
    this.say({ _tag: "ApprovalRequested", callId, reason: "may I" })
  }

  /** A call beside another: it begins a little later. */
  private second(turnId: string): void {
    const callId = `${this.runId}-${++this.calls}`
    this.say({ _tag: "ToolCall", callId, tool: "read", arguments: {}, readOnly: true })
    const { universe } = this.world
    universe.later(this.more.skewed(1, 3_000), () => {
      if (!this.alive || this.turnId !== turnId) return
      this.say({ _tag: "ToolStarted", callId })
      this.say({ _tag: "ToolResult", callId, status: "success", output: "read" })
    })
  }

  private speak(): void {
    this.said += "…"
    this.say({ _tag: "Delta", stream: "assistant", text: "…" })
    this.say({ _tag: "Usage", inputTokens: 10, outputTokens: 1 })
  }

  /** With the last words of a turn, and nothing said before. */
  private spend(): void {
    if (this.world.unruly && this.more.is(this.world.swarm.spends))
      this.say({ _tag: "Usage", inputTokens: 10, outputTokens: 1 })
  }

  private complete(): void {
    const turnId = this.turnId!
    this.spend()
    this.turnId = undefined
    const output = this.result() ?? this.speech.answer(this.said, this.world.unruly)
    this.say({ _tag: "TurnCompleted", turnId, output })
  }

  answer(callId: string, allowed: boolean): void {
    this.world.witness.contract?.heard(this, callId, allowed)
    const work = this.asked.get(callId)
    this.asked.delete(callId)
    if (this.alive) work?.(allowed)
  }

  interrupt(): void {
    if (!this.alive || this.deaf) return
    this.later(1, 1_500, () => {
      const { turnId } = this
      if (turnId === undefined) return
      this.turnId = undefined
      this.asked.clear()
      this.say({ _tag: "TurnInterrupted", turnId, output: this.said })
    })
  }

  term(): void {
    this.isEnding = true
    if (!this.alive || this.deaf || this.termed) return
    this.termed = true
    this.later(1, 2_000, () => {
      const active = this.turnId !== undefined
      if (active) this.say({ _tag: "TurnInterrupted", turnId: this.turnId!, output: this.said })
      this.turnId = undefined
      this.exit(active ? { _tag: "Error", detail: "killed by SIGTERM" } : { _tag: "Success" })
    })
  }

  /** Ends by itself before it is up. */
  fails(): void {
    this.later(1, 200, () => this.exit({ _tag: "Error", detail: "exit 1" }))
  }

  /** Ends by itself, once it has nothing to do. */
  leave(): void {
    this.later(1, 500, () => {
      if (this.turnId === undefined) this.exit({ _tag: "Success" })
      else this.leave()
    })
  }

  /** SIGKILL: the process is gone in a moment, or when the kernel lets go of it. */
  kill(): void {
    if (!this.alive) return
    const gone = () => this.exit({ _tag: "Error", detail: "killed by SIGKILL" })
    if (this.stuck) this.world.universe.later(this.chance.skewed(500, 20_000), gone)
    else this.world.universe.later(this.chance.skewed(0.5, 50), gone)
  }
}

const shown = ({ pid }: AgentProcess) => ({ pid, start: 1, parent: 1, group: pid, session: pid })

export class Processes {
  readonly universe: Universe
  readonly seed: number
  readonly swarm: Swarm
  readonly witness: Witness
  /** How agents speak through their tools, while there is a daemon. */
  voice: Voice | undefined = undefined
  /** The agents' work on goals, where there are some. */
  work: Work | undefined = undefined
  /** And ask for other things. */
  asks: Asks | undefined = undefined
  readonly living = new Set<AgentProcess>()
  /** While faults happen; afterwards all of them do as they are told. */
  unruly = true
  /** Where they are, in a world whose processes start others. */
  machine: Machine | undefined = undefined
  /** Whether what a daemon leaves behind is ended without the next one. */
  hasReaper = true
  touch: Touch = untouched
  strikes: Strikes = unseen
  lurks: Lurks = never
  private pids = 1000
  private readonly started = new Map<string, number>()

  constructor(universe: Universe, seed: number, swarm: Swarm, witness: Witness) {
    this.universe = universe
    this.seed = seed
    this.swarm = swarm
    this.witness = witness
  }

  buried(process: AgentProcess): void {
    this.living.delete(process)
    this.witness.gone(process)
    this.machine?.freed(process.pid)
  }

  ofAgent(agent: string): ReadonlyArray<AgentProcess> {
    return [...this.living].filter((process) => process.agent === agent)
  }

  /** The daemon is gone: nobody listens, and the reaper ends what it left. */
  orphan(): void {
    this.machine?.orphan(this.hasReaper, KILL_GRACE)
    for (const process of this.living) {
      if (process.isKept) continue
      process.listener = undefined
      process.isOrphan = true
      if (!this.hasReaper) continue
      this.universe.later(process.chance.skewed(1, 300), () => process.term())
      this.universe.later(KILL_GRACE, () => process.kill())
    }
  }

  /** The machine is off. */
  powerCut(): void {
    this.machine?.powerCut()
    for (const process of this.living) {
      process.listener = undefined
      process.exit({ _tag: "Error", detail: "power" })
    }
  }

  /** The dice of an agent's next process. */
  dice(agent: string): Chance {
    const number = (this.started.get(agent) ?? 0) + 1
    this.started.set(agent, number)
    return new Chance(this.seed, `run ${number} of ${agent}`)
  }

  born(of: Of, chance: Chance): AgentProcess {
    const process = new AgentProcess(this, of, ++this.pids, chance)
    this.living.add(process)
    this.witness.spawned(process)
    return process
  }

  /** Carries out the daemon's act on a process. */
  act(name: "answer" | "signal" | "turn", act: () => void): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (!this.touch(`${name}: before`)) return Effect.never
      act()
      return this.touch(`${name}: after`) ? Effect.void : Effect.never
    })
  }

  /** SIGTERM, grace, SIGKILL; returns when it is gone. */
  private readonly terminate = Effect.fnUntraced({ self: this }, function* (this: Processes, process: AgentProcess) {
    yield* this.act("signal", () => process.term())
    const deadline = this.universe.now + KILL_GRACE
    while (process.alive && this.universe.now < deadline) yield* Effect.sleep(50)
    while (process.alive) {
      yield* this.act("signal", () => process.kill())
      yield* Effect.sleep(200)
    }
  })

  /** Whether one has been asked to end and has its grace. */
  get areEnding(): boolean {
    return [...this.living].some(({ isEnding }) => isEnding)
  }

  private ofRun(runId: string): ReadonlyArray<AgentProcess> {
    return [...this.living].filter((process) => process.runId === runId)
  }

  readonly tree: ProcessTree["Service"] = {
    note: undefined,
    find: ({ runId }) => Effect.sync(() => this.ofRun(runId).map(shown)),
    kill: ({ runId }) => this.act("signal", () => this.ofRun(runId).forEach((process) => process.kill())),
    terminate: ({ runId }) =>
      Effect.suspend(() => Effect.forEach(this.ofRun(runId), (process) => this.terminate(process), { discard: true })),
    orphans: (_, alive) =>
      Effect.sync(() =>
        [...this.living]
          .filter(({ runId }) => !alive.has(runId))
          .map((process) => ({ runId: process.runId, processes: [shown(process)] }))
      )
  }

  /** Where starts fail while commands are open, a start takes until one is, or five seconds. */
  private readonly tarry = Effect.gen({ self: this }, function* () {
    for (let tries = 0; tries < 100 && !this.lurks("noStart"); tries++) yield* Effect.sleep(50)
  })

  readonly backend = (life: Life): Backend => ({
    name: "simulated",
    turns: true,
    runsTools: this.swarm.runsTools,
    start: Effect.fnUntraced({ self: this }, function* (this: Processes, spec: RunSpec) {
      const { swarm, universe } = this
      const chance = this.dice(spec.agent)
      yield* Effect.sleep(chance.skewed(1, 200))
      if (swarm.lurks === "noStart") yield* this.tarry
      if (this.unruly && (this.lurks("noStart") || chance.is(swarm.failsStart))) {
        this.strikes("noStart")
        return yield* new BackendError({ message: "no such program", remedy: "install it", fatal: chance.is(0.1) })
      }
      if (!this.touch("spawn: before")) return yield* Effect.never
      const queue = yield* Queue.unbounded<RunEvent, Cause.Done>()
      const process = yield* Effect.acquireRelease(
        Effect.sync(() => this.born(spec, chance)),
        (process) => this.terminate(process)
      )
      // a pipe: what was said first comes first, a little later
      const pipe: Array<RunEvent> = []
      process.listener = (event) => {
        pipe.push(event)
        universe.later(
          chance.skewed(0.02, 5),
          () => {
            const next = pipe.shift()!
            if (!this.touch("event: before")) return
            Queue.offerUnsafe(queue, next)
            if (next._tag === "Exited") Queue.endUnsafe(queue)
          },
          life
        )
      }
      process.start(spec)
      if (!this.touch("spawn: after")) return yield* Effect.never
      const run: Run = {
        runId: spec.runId,
        events: Stream.fromQueue(queue),
        send: ({ text, turnId }) =>
          Effect.suspend(() => {
            if (process.turnId !== undefined || !process.alive) {
              return new BackendError({ message: "a turn is in progress", remedy: "wait", fatal: false })
            }
            return this.act("turn", () => process.begin(turnId, text))
          }),
        answer: (callId, { behavior }) => this.act("answer", () => process.answer(callId, behavior === "allow")),
        cancelCall: () => Effect.void,
        interruptTurn: this.act("signal", () => process.interrupt()),
        end: this.act("signal", () => {
          process.term()
          universe.later(KILL_GRACE, () => process.kill(), life)
        }),
        kill: this.act("signal", () => process.kill())
      }
      return run
    })
  })
}
