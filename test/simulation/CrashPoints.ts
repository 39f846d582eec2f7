/**
 * CrashPoints: one busy minute of a world, played again and again, each time with a kill -9 of
 * the daemon at another of the boundaries that the minute comes to, and at times with a second
 * one while the next daemon recovers. Apart from that nothing is wrong with the world: whatever
 * breaks a promise is a moment at which agentd may not be killed.
 */
import { Boundaries, type Boundary, type Cut } from "./Boundaries.ts"
import { Chance } from "./Chance.ts"
import { COMMANDS } from "./people/Commands.ts"
import { type Line, type Options, type Result, simulate } from "./Simulation.ts"
import { FAULTS, type Swarm } from "./Swarm.ts"
import { ANSWERS } from "./world/Speech.ts"
import { DEEDS, PLANS, REVIEWS } from "./world/Work.ts"

const MINUTE = 60_000
const AGENTS = ["a", "b", "c"]
/** The boundaries of a recovery, about. */
const RECOVERY = 16

const noneOf = <A extends string>(names: ReadonlyArray<A>) =>
  Object.fromEntries(names.map((name) => [name, 0])) as { readonly [name in A]: number }

/** Minutes of later seeds are those of a team: goals are worked off and merged, and a channel is spoken in. */
const LATER = 100

/** Three agents that answer, ask, fail, cool down, and spend what they have. */
const aloneOf = (seed: number): Swarm => ({
  order: seed % 4 < 2 ? "fifo" : "any",
  maxOps: 2048,
  agents: AGENTS.length,
  people: 0,
  pause: MINUTE,
  commands: noneOf(COMMANDS),
  turns: {
    answers: 1,
    slow: 0.1,
    tools: 0.5,
    asks: 0.7,
    hangs: 0,
    crashes: seed % 3 === 0 ? 0.3 : 2,
    fails: 0.3,
    refuses: 0.15,
    floods: 0
  },
  failsStart: 0.05,
  diesEarly: 0.05,
  lies: 0,
  deaf: 0.1,
  stuck: 0.1,
  every: noneOf(FAULTS),
  meddles: 0,
  lurks: undefined,
  leaves: 0,
  edits: 0,
  strict: 0,
  starves: 0,
  pairs: 0,
  spends: 0,
  oddEnds: 0.2,
  killAtCommit: 0,
  mailing: { digestWindow: "1s", maxPerHour: 1000 },
  mail: { takes: 1, refuses: 0.2, hangs: 0, isLost: 0.2, rejects: 0 },
  runsTools: seed % 3 === 0,
  settings: {
    interruptGrace: "500ms",
    idleTimeout: "2s",
    minRunInterval: "0ms",
    approvals: { mode: "read_only", timeout: "5s" },
    maxConsecutiveErrors: 2
  },
  ofAgent: { b: { budget: { tokens: 200 } }, c: { parent: "a", maxConsecutiveErrors: 1 } },
  conversation: { maxTurnErrors: 20, maxFatalStops: 100 },
  talk: undefined,
  board: undefined,
  aims: undefined,
  bytes: undefined,
  models: undefined,
  schedules: {},
  errands: undefined,
  review: {}
})

const teamOf = (seed: number): Swarm => ({
  ...aloneOf(seed),
  agents: 4,
  turns: { ...aloneOf(seed).turns, crashes: 0.2, asks: 0.2, refuses: 0 },
  settings: { interruptGrace: "500ms", idleTimeout: "2s", minRunInterval: "0ms" },
  ofAgent: {},
  talk: { answers: { ...noneOf(ANSWERS), completes: 1, waitsTime: 0.1 }, voices: 0, interjects: 0 },
  review: { agents: ["a", "d"], turnConfig: { restAfterPosts: 3 } },
  aims: {
    goals: { planner: "a", critic: "b", workers: ["b", "c", "d"], autoStart: seed % 2 === 0, checks: ["test"] },
    worktree: true,
    plans: { ...noneOf(PLANS), good: 1, prose: 0.1 },
    deeds: { ...noneOf(DEEDS), commits: 1, several: 0.3, forgets: 0.1, fails: 0.1, reports: 0.3 },
    reviews: { ...noneOf(REVIEWS), satisfied: 1, error: 0.2, errorOfTask: 0.2 },
    strays: 0,
    git: { slowest: 20, fails: 0, isAbsent: 0, findsLock: 0, isCutOff: 0 },
    checkTakes: 300,
    checkFails: 0
  }
})

const swarmOf = (seed: number): Swarm => (seed > LATER ? teamOf(seed) : aloneOf(seed))

/** Deeds of once a minute; the rest are sends, steers, approvals. */
const ONCE: ReadonlyArray<readonly [second: number, what: Line["what"], agent: string]> = [
  [6, "spawn", "a"],
  [9, "interrupt", "b"],
  [12, "pause", ""],
  [15, "resume", ""],
  [18, "stop", "c"],
  [20, "start", "c"],
  [23, "reload", ""],
  [26, "restart", "a"],
  [29, "verify", ""],
  [33, "shutdown", ""],
  [37, "why", "b"],
  [40, "interrupt", "a"],
  [47, "ps", ""],
  [51, "close", ""],
  [53, "begin", ""],
  [55, "archive", ""],
  [57, "archive", ""]
]

const OF_TEAM: typeof ONCE = [
  [1, "goalNewPlan", ""],
  [2, "goalNew", ""],
  [5, "goalApprove", ""],
  [8, "channelPost", ""],
  [12, "goalTend", ""],
  [16, "restart", "c"],
  [20, "goalTend", ""],
  [24, "channelPost", ""],
  [26, "goalNewPlan", ""],
  [30, "goalTend", ""],
  [33, "shutdown", ""],
  [38, "goalTend", ""],
  [42, "goalMerge", ""],
  [45, "goalCancel", ""],
  [50, "goalTend", ""],
  [57, "goalMerge", ""]
]

export const scriptOf = (seed: number): ReadonlyArray<Line> => {
  const chance = new Chance(seed, "script")
  const isTeam = seed > LATER
  const lines: Array<Line> = (isTeam ? OF_TEAM : ONCE).map(([second, what, agent]) => ({
    at: second * 1_000 + chance.below(900),
    what,
    agent
  }))
  for (let at = 100; at < MINUTE; at += isTeam ? chance.between(2_000, 6_000) : chance.between(300, 1_600)) {
    const what = isTeam
      ? chance.weighed({ send: 1, approve: 2, start: 1, channelPost: 1, goalShow: 1 })
      : chance.weighed({ send: 5, steer: 1.5, urgent: 1, approve: 3, start: 2.5 })
    lines.push({ at: Math.floor(at), what, agent: chance.pick(AGENTS) })
  }
  return lines.toSorted((a, b) => a.at - b.at)
}

const optionsOf = (seed: number, boundaries: Boundaries): Options => ({
  seed,
  stormy: MINUTE,
  swarm: swarmOf(seed),
  script: scriptOf(seed),
  boundaries
})

export interface Played {
  readonly result: Result
  readonly cuts: ReadonlyArray<Cut>
}

/** The minute without a kill: the boundaries that it comes to. */
export const record = (seed: number): { readonly result: Result; readonly passed: ReadonlyArray<Boundary> } => {
  const boundaries = new Boundaries()
  return { result: simulate(optionsOf(seed, boundaries)), passed: boundaries.passed }
}

export interface Manner {
  /** Kills a few more daemons, some hundred boundaries apart, as long as the script goes on. */
  readonly again?: boolean
  readonly trace?: boolean
}

/** The minute with a kill at the boundary of that number; a drawn tenth is killed again as it recovers. */
export const cut = (seed: number, number: number, { again = false, trace = false }: Manner = {}): Played => {
  const chance = new Chance(seed, `cut ${number}`)
  const recovering = chance.is(0.1) ? [1 + chance.below(RECOVERY)] : []
  const later = again ? Array.from({ length: 4 }, () => 60 + chance.below(120)) : []
  const boundaries = new Boundaries(number, ...recovering, ...later)
  const result = simulate({ ...optionsOf(seed, boundaries), trace })
  return { result, cuts: boundaries.cuts }
}

export interface Failure {
  readonly seed: number
  readonly number: number
  readonly cuts: ReadonlyArray<Cut>
  readonly promise: string
  readonly detail: string
}

/** The tally of many cuts. */
export class Tally {
  /** Daemons killed, by boundary; in brackets those that were recovering. */
  readonly killed = new Map<Boundary, { all: number; recovering: number }>()
  readonly failures: Array<Failure> = []
  points = 0

  /** `expected`: what the recording came to there. */
  add(seed: number, number: number, expected: Boundary, { cuts, result }: Played): void {
    this.points += 1
    for (const { boundary, isRecovering } of cuts) {
      const count = this.killed.get(boundary) ?? { all: 0, recovering: 0 }
      this.killed.set(boundary, { all: count.all + 1, recovering: count.recovering + Number(isRecovering) })
    }
    for (const { detail, promise } of result.violations) this.failures.push({ seed, number, cuts, promise, detail })
    if (cuts[0]?.boundary !== expected)
      this.failures.push({ seed, number, cuts, promise: "a world plays again as it did", detail: `not ${expected}` })
  }

  get kills(): number {
    return [...this.killed.values()].reduce((sum, { all }) => sum + all, 0)
  }

  get lines(): ReadonlyArray<string> {
    return [...this.killed]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(
        ([boundary, { all, recovering }]) =>
          `${boundary}: ${all}${recovering === 0 ? "" : ` (${recovering} in a recovery)`}`
      )
  }
}

const told = ({ cuts, detail, number, promise, seed }: Failure): string =>
  `FAILED --seed ${seed} --crash-points --at ${number} (${cuts.map(({ boundary }) => boundary).join(", ")}): ${promise}: ${detail}`

/** Each `every`-th boundary of the minutes of so many seeds. */
export const cutAll = (
  {
    again = false,
    every,
    seed,
    seeds
  }: Manner & { readonly seed: number; readonly seeds: number; readonly every: number },
  say: (line: string) => void
): Tally => {
  const tally = new Tally()
  const soFar = () => say(`so far ${tally.points} points, ${tally.kills} kills: ${tally.lines.join(", ")}`)
  for (let one = seed; one < seed + seeds; one++) {
    const { passed, result } = record(one)
    say(`seed ${one}: ${passed.length} boundaries, ${result.runes} runes in a minute`)
    for (const { detail, promise } of result.violations)
      tally.failures.push({ seed: one, number: 0, cuts: [], promise, detail })
    for (let number = 1 + (one % every); number <= passed.length; number += every) {
      const known = tally.failures.length
      tally.add(one, number, passed[number - 1]!, cut(one, number, { again }))
      for (const failure of tally.failures.slice(known)) say(told(failure))
      if (tally.points % 100 === 0) soFar()
    }
    soFar()
  }
  return tally
}
