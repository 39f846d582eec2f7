/**
 * Machine: all processes of the world as the system shows them: those of agents, what these have
 * started (with the run's mark, in sessions of their own, or with neither), and strangers, which
 * get pids that others had. What an agent has started lives on when the agent ends.
 */
import { Effect } from "effect"
import { environmentOf, type Machine as System, ProcessTree } from "../../../src/runs/process/ProcessTree.ts"
import type { Process } from "../../../src/runs/process/ProcessTable.ts"
import { Chance } from "../Chance.ts"
import type { Life } from "../Universe.ts"
import type { AgentProcess, Processes } from "./Processes.ts"

/** ms of a clock tick: a process is known by pid and the tick of its fork. */
const TICK = 10

/** The daemon's own pid; one after the other has it. */
const SELF = 500

/** Kinds of processes that an agent starts: in its group; in a session of its own; in its group, without its environment. */
const KINDS = ["plain", "apart", "bare"] as const

interface Other extends Process {
  readonly agent: string
  readonly runId: string
  readonly isMarked: boolean
  readonly isDeaf: boolean
  isAlive: boolean
  /** Of those whose daemon has died nothing shows whose they are, unless they are marked. */
  isLost: boolean
  readonly chance: Chance
  readonly gone: () => void
}

export class Machine {
  private readonly world: Processes
  private readonly store: string
  /** The probability that a call of an agent starts a process that stays. */
  private readonly litters: number
  private readonly others = new Set<Other>()
  private readonly chance: Chance

  constructor(world: Processes, store: string, litters: number) {
    this.world = world
    this.store = store
    this.litters = litters
    this.chance = new Chance(world.seed, "machine")
  }

  /** When a process that begins now has begun. */
  get tick(): number {
    return 1 + Math.floor(this.world.universe.now / TICK)
  }

  /** Processes that are left of a run besides its agent, as far as they can be known. */
  left(isOf: (of: { readonly agent: string; readonly runId: string }) => boolean): ReadonlyArray<number> {
    return [...this.others].filter((other) => !other.isLost && isOf(other)).map(({ pid }) => pid)
  }

  /** An agent is gone: a stranger gets its pid. */
  freed(pid: number): void {
    if (!this.world.unruly || !this.chance.is(this.litters)) return
    this.world.universe.later(this.chance.skewed(2 * TICK, 60_000), () => {
      const common = { agent: "", runId: "", isMarked: false, isDeaf: false, isLost: true }
      const stranger = this.add({ ...common, pid, parent: 1, group: pid, session: pid }, 60_000, () => {})
      this.world.universe.note(`stranger ${stranger.pid}`)
      this.world.witness.contract?.seen("a pid is used again")
    })
  }

  /** A call of an agent runs; `gone` is told when what it has started lets go of the agent's pipes. */
  called(process: AgentProcess, hold: () => () => void): void {
    const { chance } = this
    if (!this.world.unruly || !chance.is(this.litters)) return
    const kind = chance.pick(KINDS)
    const pid = 100_000 + chance.below(1_000_000)
    const group = kind === "apart" ? pid : process.pid
    const { agent, runId } = process
    const of = { agent, runId, isMarked: kind !== "bare", isDeaf: chance.is(0.3), isLost: false }
    this.world.universe.note(`started ${kind} ${pid} by ${process.pid}`)
    this.world.witness.contract?.seen(`an agent starts a process: ${kind}`)
    this.add(
      { ...of, pid, parent: process.pid, group, session: group },
      chance.is(0.3) ? Number.POSITIVE_INFINITY : 600_000,
      chance.is(0.5) ? hold() : () => {}
    )
  }

  private add(what: Omit<Other, "chance" | "gone" | "isAlive" | "start">, longest: number, gone: () => void): Other {
    const chance = new Chance(this.world.seed, `other ${what.pid} ${this.tick}`)
    const other: Other = { ...what, start: this.tick, isAlive: true, chance, gone }
    this.others.add(other)
    if (longest < Number.POSITIVE_INFINITY)
      this.world.universe.later(chance.skewed(10, longest), () => this.bury(other))
    return other
  }

  private bury(other: Other): void {
    if (!other.isAlive) return
    other.isAlive = false
    this.others.delete(other)
    this.world.universe.note(`gone ${other.pid}`)
    other.gone()
  }

  /** The daemon is gone: the reaper, where there is one, ends what is marked. */
  orphan(hasReaper: boolean, grace: number): void {
    const isKept = ({ runId }: Other) => [...this.world.living].some((one) => one.isKept && one.runId === runId)
    for (const other of this.others) {
      if (other.runId === "") continue
      if (!other.isMarked) other.isLost = true
      else if (hasReaper && !isKept(other)) {
        this.world.universe.later(other.chance.skewed(1, 300), () => this.signal(other, "SIGTERM"))
        this.world.universe.later(grace, () => this.signal(other, "SIGKILL"))
      }
    }
  }

  powerCut(): void {
    for (const other of this.others) this.bury(other)
  }

  private signal(other: Other, signal: NodeJS.Signals): void {
    if (other.runId === "") this.world.witness.contract?.struck(other.pid, signal)
    if (signal === "SIGKILL") this.world.universe.later(other.chance.skewed(0.5, 50), () => this.bury(other))
    if (signal === "SIGTERM" && !other.isDeaf)
      this.world.universe.later(other.chance.skewed(1, 2_000), () => this.bury(other))
  }

  private shown(process: AgentProcess): Process {
    const { born, pid } = process
    return { pid, start: born, parent: process.isOrphan || process.isKept ? 1 : SELF, group: pid, session: pid }
  }

  private get table(): ReadonlyArray<Process> {
    const agents = [...this.world.living].map((process) => this.shown(process))
    const isThere = (pid: number) => agents.some((agent) => agent.pid === pid)
    const others = [...this.others].map(({ group, parent, pid, session, start }) => ({
      pid,
      start,
      parent: isThere(parent) ? parent : 1,
      group,
      session
    }))
    const daemon = { pid: SELF, start: 1, parent: 1, group: SELF, session: SELF }
    return [{ pid: 1, start: 0, parent: 0, group: 1, session: 1 }, daemon, ...agents, ...others]
  }

  private environment(pid: number): ReadonlyArray<string> {
    const of =
      [...this.world.living].find((process) => process.pid === pid) ??
      [...this.others].find((other) => other.pid === pid && other.isMarked)
    if (of === undefined) return []
    return Object.entries(environmentOf({ store: this.store, runId: of.runId })).map(
      ([name, value]) => `${name}=${value}`
    )
  }

  private send(pid: number, signal: NodeJS.Signals): void {
    const group = pid < 0 ? -pid : undefined
    for (const process of this.world.living) {
      if (process.pid !== Math.abs(pid)) continue
      if (signal === "SIGTERM") process.term()
      if (signal === "SIGKILL") process.kill()
    }
    for (const other of this.others)
      if (group === undefined ? other.pid === pid : other.group === group) this.signal(other, signal)
  }

  /** As a daemon sees it and acts on it: by the real search. */
  readonly tree = (life: Life): ProcessTree["Service"] => {
    const machine: System = {
      self: SELF,
      snapshot: Effect.sync(() => this.table),
      environment: (pid) => Effect.sync(() => this.environment(pid)),
      isAlive: ({ pid, start }) => this.table.some((process) => process.pid === pid && process.start === start),
      signal: (pid, signal) => {
        if (!life.isDead) this.send(pid, signal)
      }
    }
    return ProcessTree.over(machine)
  }
}
