/**
 * Swarm: what a seed's world is like. Each seed takes a subset of the faults and of the
 * things that people do: a world in which everything happens at once hides the bugs that
 * need one thing to happen often (Groce et al., Swarm Testing, 2012).
 */
import type { Keeping } from "./world/Keepers.ts"
import type { Bytes, Wild } from "./world/Programs.ts"
import { type TongueName, TONGUES } from "./world/Tongue.ts"
import { Chance } from "./Chance.ts"
import { type Command, COMMANDS, EVERYWHERE } from "./people/Commands.ts"
import { CHANNEL_COMMANDS } from "./people/OnChannels.ts"
import { GOAL_COMMANDS } from "./people/OnGoals.ts"
import { LOG_COMMANDS } from "./people/OnLog.ts"
import { PLATE_COMMANDS } from "./people/OnPlates.ts"
import { hasLurkingBoard, rarer, wantsGoals } from "./Rare.ts"
import type { Order } from "./Universe.ts"
import { ERRANDS, type Manners } from "./world/Errands.ts"
import { MAIL_MOODS, type MailMood } from "./world/Mail.ts"
import type { Habits } from "./world/Sessions.ts"
import { API_MOODS } from "./world/ModelApi.ts"
import type { Modelling } from "./world/Models.ts"
import { ANSWERS, type Talk } from "./world/Speech.ts"
import { type Aims, DEEDS, PLANS, REVIEWS } from "./world/Work.ts"

export interface Swarm {
  readonly order: Order
  readonly maxOps: number
  readonly agents: number
  readonly people: number
  /** The mean pause between two commands of a person, ms. */
  readonly pause: number
  readonly commands: { readonly [name in Command]: number }
  readonly turns: { readonly [name in TurnMood]: number }
  /** Probabilities of a run. */
  readonly failsStart: number
  readonly diesEarly: number
  readonly lies: number
  /** The probability that a process does not end at SIGTERM; `stuck`: nor at once at SIGKILL. */
  readonly deaf: number
  readonly stuck: number
  /** Mean time between two of these, ms; 0 for never. */
  readonly every: { readonly [name in Fault]: number }
  /** The probability that something goes wrong while a command waits for its answer. */
  readonly meddles: number
  /** The mishap that strikes while a command is open, once or twice for each kind of command. */
  readonly lurks: Mishap | undefined
  /** The probability that who asks does not wait for the answer. */
  readonly leaves: number
  /** The probability that a process that ends by itself ends in another way than by an error. */
  readonly oddEnds: number
  /** How often an edit of the file adds an agent, beside the other edits. */
  readonly edits: number
  /** How often an edit leaves conversations fewer errors, and agents less to spend, than there were already. */
  readonly strict: number
  readonly starves: number
  /** The probability that an agent makes two calls at once. */
  readonly pairs: number
  /** The probability that a turn ends with tokens that are spent. */
  readonly spends: number
  /** The probability that the daemon is killed right after a commit, before anybody has heard of it. */
  readonly killAtCommit: number
  /** How often the mail server does what. */
  readonly mail: { readonly [mood in MailMood]: number }
  /** The file's settings of mail, besides its address. */
  readonly mailing?: object
  /** Whether the backend runs the calls of its agents itself. */
  readonly runsTools: boolean
  readonly settings: object
  readonly conversation: object
  /** The file's schedules, by name. */
  readonly schedules: object
  /** The file's settings of single agents. */
  readonly ofAgent: { readonly [agent: string]: object }
  /** Channels, and how agents talk in them; undefined in a world without any. */
  readonly talk: Talk | undefined
  /** Requests of agents to agentd by their tools. */
  readonly errands: Manners | undefined
  /** The file's settings of its channel. */
  readonly review: object
  /** How goals fare; undefined in a world without goals. */
  readonly aims: Aims | undefined
  /** How people's own sessions are; undefined in a world without. */
  readonly board: Habits | undefined
  /** How the bytes of real backends fare; undefined in a world where backends are played. */
  readonly bytes: Bytes | undefined
  /** Agents that are models behind an API, and how that fares; undefined in a world without any. */
  readonly models: Modelling | undefined
}

const FIRST_MOODS = ["answers", "slow", "tools", "asks", "hangs", "crashes", "fails", "refuses"] as const
export const MOODS = [...FIRST_MOODS, "floods"] as const
export type TurnMood = (typeof MOODS)[number]
const FIRST_FAULTS = ["kill", "powerCut", "stop", "diskFull", "diskIo", "diskSlow", "clockJump"] as const
export const FAULTS = [...FIRST_FAULTS, "diskLocked"] as const
export type Fault = (typeof FAULTS)[number]
/** All that goes wrong: what a seed's world strikes with, and what parts of the world do by themselves. */
export const MISHAPS = [...FAULTS, "killAtCommit", "noStart", "noMail", "noGit", "fileGone"] as const
export type Mishap = (typeof MISHAPS)[number]
export const isFault = (mishap: Mishap): mishap is Fault => (FAULTS as ReadonlyArray<string>).includes(mishap)

const some = <A extends string>(chance: Chance, names: ReadonlyArray<A>, always: ReadonlyArray<A>, share: number) =>
  Object.fromEntries(
    names.map((name) => [name, always.includes(name) || chance.is(share) ? chance.skewed(0.05, 1) : 0])
  ) as { readonly [name in A]: number }

const NAMES = ["a", "b", "c"]

/** Worlds in which happens often what is seldom elsewhere. */
const OF_RARE = 60_000

/** The newest seed of the first worlds: later additions happen in later worlds only, so that older seeds stay the same. */
const LATER = 200
/** Worlds in which people have sessions of their own. */
/** Above `odd` hooks come at all times, and much fails: what is seldom elsewhere. */
const BOARD = { above: 10_000, odd: 15_000, upTo: 20_000 } as const

/** With dice of its own: a world without channels is what it was before there were any. */
const channelsOf = (
  seed: number
): Pick<Swarm, "review" | "talk"> & {
  readonly asked: Partial<Swarm["commands"]>
  /** Of what else people ask. */
  readonly share: number
} => {
  const chance = new Chance(seed, "channels")
  if (!chance.is(0.5)) return { talk: undefined, review: {}, asked: {}, share: 1 }
  const often = <A>(usual: A, ...others: ReadonlyArray<A>) => (chance.is(0.5) ? usual : chance.pick(others))
  return {
    talk: {
      answers: some(chance, ANSWERS, ["completes"], 0.5),
      voices: chance.is(0.4) ? 0.4 : 0,
      interjects: chance.is(0.3) ? 0.2 : 0
    },
    // in some of them the agents are left in peace
    share: new Chance(seed, "peace").is(0.5) ? 0.05 : 1,
    asked: some(chance, CHANNEL_COMMANDS, ["channelPost", "channelShow"], 0.5),
    review: {
      agents: NAMES.filter(() => chance.is(0.8)),
      order: often("round-robin", "priority", "manual"),
      priorities: chance.is(0.5) ? { b: 3, c: -1 } : {},
      timeouts: chance.is(0.3) ? { a: 20 } : {},
      rejoin: chance.is(0.6),
      turnConfig: {
        humanInterruptMode: often("inject", "queue", "interrupt", "parallel"),
        autoDetectTurnEnd: chance.is(0.3),
        waitTimeoutSeconds: often(300, 20),
        restAfterPosts: often(20, 3),
        announceTimeouts: chance.is(0.7),
        announceDisconnects: chance.is(0.7)
      }
    }
  }
}

/** Weights of commands that end goals early: a world whose goals always end early says nothing. */
const EARLY: { readonly [name in Command]?: number } = {
  goalCancel: 0.1,
  goalReject: 0.15,
  goalTend: 0.3,
  goalPlan: 0.4,
  desk: 0.5
}

/** With dice of its own: a world without goals is what it was before there were any. */
const goalsOf = (
  seed: number
): Pick<Swarm, "aims"> & { readonly asked: Partial<Swarm["commands"]>; readonly share: number } => {
  const chance = new Chance(seed, "goals")
  if (!chance.is(seed > OF_RARE ? wantsGoals(seed) : 0.33) || hasModels(seed))
    return { aims: undefined, asked: {}, share: 1 }
  const asked = some(chance, GOAL_COMMANDS, ["goalNew", "goalNewPlan", "goalApprove", "goalRetry", "goalMerge"], 0.5)
  const rate = (most: number) => (chance.is(0.4) ? chance.skewed(0.005, most) : 0)
  const cast = chance.pick([
    { planner: "a", critic: "b" },
    { planner: "a" },
    { planner: "a", critic: "a", workers: ["a", "c", "d"] },
    { planner: "d", critic: "c" },
    {}
  ])
  return {
    // in most of them agents are left to their goals
    share: chance.is(0.3) ? 1 : 0.1,
    asked: Object.fromEntries(GOAL_COMMANDS.map((name) => [name, asked[name] * (EARLY[name] ?? 1)])),
    aims: {
      goals: {
        ...cast,
        autoStart: chance.is(0.6),
        ...(chance.is(0.5) ? { checks: ["test"] } : {}),
        ...(chance.is(0.3) ? { rounds: 1 + chance.below(3) } : {}),
        ...(chance.is(0.3) ? { maxTaskErrors: 1 + chance.below(3) } : {}),
        ...(chance.is(0.2) ? { maxErrors: 2 } : {}),
        ...(chance.is(0.2) ? { taskTimeout: "1 minute" } : {}),
        ...(chance.is(0.2) ? { checkTimeout: "5 seconds" } : {}),
        ...(chance.is(0.1) ? { blockedTimeout: "2 minutes" } : {}),
        ...(chance.is(0.2) ? { planTries: 1 } : {}),
        ...(chance.is(0.2) ? { target: "main" } : {})
      },
      worktree: chance.is(0.9),
      plans: some(chance, PLANS, ["good"], 0.3),
      deeds: some(chance, DEEDS, ["commits"], 0.4),
      reviews: some(chance, REVIEWS, ["satisfied"], 0.4),
      strays: chance.is(0.4) ? 0.3 : 0,
      git: {
        slowest: chance.is(0.3) ? chance.skewed(500, 120_000) : 50,
        fails: rate(0.1),
        isAbsent: rate(0.05),
        findsLock: rate(0.2),
        isCutOff: rate(0.1)
      },
      checkTakes: chance.skewed(100, 60_000),
      checkFails: rate(0.3)
    }
  }
}

/** With dice of its own: a world without sessions is what it was before there were any. */
const boardOf = (
  seed: number
): Pick<Swarm, "board"> & { readonly asked: Partial<Swarm["commands"]>; readonly share: number } => {
  if (!(seed > BOARD.above && seed <= BOARD.upTo) && !hasLurkingBoard(seed))
    return { board: undefined, asked: {}, share: 1 }
  const chance = new Chance(seed, "board")
  const rate = (most: number) => (chance.is(0.5) ? chance.skewed(0.01, most) : 0)
  const often = (most: number) => chance.skewed(most / 10, most)
  const odd =
    seed <= BOARD.odd
      ? {}
      : {
          pause: chance.skewed(500, 5_000),
          lost: often(0.5),
          late: often(0.4),
          latest: 6_000,
          fails: chance.pick([0.2, 0.6]),
          wrapped: 0.5,
          strays: often(0.3),
          registersAgain: 0.2
        }
  return {
    // in most of them agents are left in peace
    share: chance.is(0.3) ? 1 : 0.1,
    asked: { ...some(chance, PLATE_COMMANDS, ["plateShow"], 0.6), ...(seed > BOARD.odd ? { plateForget: 1 } : {}) },
    board: {
      sessions: 1 + chance.below(4),
      pause: chance.skewed(1_000, 40_000),
      noted: chance.pick([1, 1, 0.5, 0]),
      lost: rate(0.6),
      late: rate(0.2),
      twice: rate(0.3),
      crashes: rate(0.3),
      fails: rate(0.3),
      approvals: chance.pick([0, 0.5, 1]),
      wrapped: chance.is(0.3) ? 0.5 : 0,
      reuses: chance.is(0.3) ? 0.5 : 0,
      latest: 6_000,
      strays: 0,
      registersAgain: 0,
      ...odd
    }
  }
}

/** Worlds in which the real backends read what programs write. */
const OF_BYTES = 20_000

/** Worlds in which bytes are worse still, and processes start others. */
const OF_WILD = 22_000

const wildOf = (seed: number): Wild | undefined => {
  if (seed <= OF_WILD) return undefined
  const chance = new Chance(seed, "wild")
  const often = (most: number) => (chance.is(0.6) ? chance.skewed(0.01, most) : 0)
  return { noise: often(0.3), litters: often(0.8), tears: often(1) }
}

/** Worlds whose programs a keeper holds: they outlive their daemon. */
const OF_KEPT = 25_000

/** Above it a keeper does nothing wrong. */
const OF_SOUND = 27_500

const keepingOf = (seed: number): Keeping | undefined => {
  if (seed <= OF_KEPT) return undefined
  const chance = new Chance(seed, "keeping")
  const every = (share: number) => (seed <= OF_SOUND && chance.is(share) ? chance.skewed(5_000, 600_000) : 0)
  return {
    lease: chance.pick(["5s", "30s", "5 minutes"]),
    segment: chance.pick([100, 2_000, 4 << 20]),
    dies: every(0.4),
    hangs: every(0.3),
    leaves: chance.pick([0, 0.5, 1]),
    loses: chance.is(0.5) ? 0.5 : 0
  }
}

/** A world about kept runs: agents that work on, and a daemon that comes back soon. */
const aboutKept = (seed: number, swarm: Swarm): Swarm => {
  const chance = new Chance(seed, "about kept")
  const { commands, turns } = swarm
  return {
    ...swarm,
    commands: {
      ...commands,
      send: Math.max(commands.send, chance.skewed(0.1, 1)),
      approve: Math.max(commands.approve, chance.skewed(0.05, 0.5)),
      start: Math.max(commands.start, 0.1)
    },
    every: { ...swarm.every, kill: chance.skewed(3_000, 120_000), stop: chance.is(0.3) ? 120_000 : 0 },
    turns: {
      ...turns,
      slow: Math.max(turns.slow, 0.5),
      asks: Math.max(turns.asks, 0.3),
      tools: Math.max(turns.tools, 0.3)
    },
    killAtCommit: chance.is(0.4) ? chance.skewed(0.002, 0.1) : 0,
    pause: Math.min(swarm.pause, chance.skewed(1_000, 20_000))
  }
}

const bytesOf = (seed: number): Bytes | undefined => {
  if (seed <= OF_BYTES || seed > OF_MODELS) return undefined
  const chance = new Chance(seed, "bytes")
  const tongues: ReadonlyArray<TongueName> = seed <= OF_WILD ? TONGUES : [...TONGUES, "acp"]
  const often = (most: number) => (chance.is(0.6) ? chance.skewed(0.01, most) : 0)
  return {
    of: Object.fromEntries(["a", "b", "c", "d"].map((name) => [name, chance.pick(tongues)])),
    cuts: often(1),
    noise: often(0.3),
    holds: often(0.5),
    forgets: often(0.3),
    wild: wildOf(seed),
    kept: keepingOf(seed)
  }
}

/** Worlds in which agents are models: the real backend asks APIs that are played. */
const OF_MODELS = 30_000

/** Worlds of days, in which little happens at a time: what only long times bring about. */
const OF_DAYS = 40_000

const hasModels = (seed: number): boolean => seed > OF_MODELS && seed <= OF_DAYS

/** Of these, worlds in which accounts are away for a while, and agents have others to ask meanwhile. */
const OF_FALLBACKS = 38_000

/** The account that all agents may fall back to. */
const SPARE = "spare"

const fallbacksOf = (seed: number, agents: ReadonlyArray<string>): Pick<Modelling, "fallbacks" | "outages"> => {
  if (seed <= OF_FALLBACKS) return { fallbacks: {}, outages: undefined }
  const chance = new Chance(seed, "fallbacks")
  const others = (name: string) => [
    { keyEnv: `KEY_${name}2`, provider: chance.pick(["anthropic", "openai"]) },
    { keyEnv: `KEY_${SPARE}` }
  ]
  return {
    outages: { fair: chance.skewed(5_000, 600_000), away: chance.skewed(1_000, 300_000) },
    fallbacks: Object.fromEntries(
      agents
        .filter((name) => name === "a" || chance.is(0.7))
        .map((name) => [
          name,
          {
            fallback: chance.pick([others(name), others(name).slice(0, 1), others(name).slice(1)]),
            onLimit: chance.pick(["move", "move", "wait", "stop"] as const)
          }
        ])
    )
  }
}

/** Of the worlds of days, those in which messages are due at certain times. */
const OF_SCHEDULES = 50_000

const schedulesOf = (seed: number): object => {
  if (seed <= OF_SCHEDULES || seed > OF_RARE) return {}
  const chance = new Chance(seed, "schedules")
  const schedule = () => ({
    cron: chance.pick(["*/10 * * * *", "0 * * * *", "30 2 * * *", "15 1,13 * * *"]),
    timeZone: chance.pick(["UTC", "Europe/Berlin", "Australia/Sydney"]),
    catchUp: chance.pick(["once", "all", "none"]),
    send: { agent: "a", text: "look after the shop" }
  })
  return Object.fromEntries(["s1", "s2", "s3"].slice(0, 1 + chance.below(3)).map((name) => [name, schedule()]))
}

/** After these nothing helps but a person. */
const FATAL = { unauthorized: 0.1, unpaid: 0.1, redirects: 0.1, tooLong: 0.3 }

const modelsOf = (seed: number): Modelling | undefined => {
  if (!hasModels(seed)) return undefined
  const chance = new Chance(seed, "models")
  const moods = some(chance, API_MOODS, ["answers", "calls"], 0.4)
  const rare = Object.entries(FATAL).map(([mood, share]) => [mood, moods[mood as keyof typeof FATAL] * share])
  const agents = ["a", "b", "c", "d"].filter((name) => name === "a" || chance.is(0.6))
  const backend = (name: string) => ({
    type: "model",
    provider: chance.pick(["anthropic", "openai"]),
    model: "m",
    keyEnv: `KEY_${name}`,
    retries: chance.pick([0, 1, 4]),
    silence: chance.pick(["2s", "20s", "2 minutes"]),
    ...(chance.is(0.3) ? { maxRounds: chance.pick([1, 3]) } : {}),
    ...(chance.is(0.15) ? { resume: false } : {}),
    ...(chance.is(0.3) ? { price: { input: 3, output: 15 } } : {})
  })
  return {
    of: Object.fromEntries(agents.map((name) => [name, backend(name)])),
    moods: { ...moods, ...Object.fromEntries(rare) },
    cuts: chance.is(0.7) ? chance.skewed(0.05, 1) : 0,
    slowest: chance.skewed(50, 60_000),
    ...fallbacksOf(seed, agents)
  }
}

const budgetOf = (chance: Chance): object =>
  chance.pick([
    { tokens: chance.pick([50, 500, 5_000]) },
    { toolCalls: chance.pick([2, 20]) },
    { wallTime: chance.pick(["5s", "2 minutes"]) }
  ])

type Later = "edits" | "oddEnds" | "errands" | "leaves" | "meddles"

const laterOf = (
  seed: number
): Pick<Swarm, Later> & {
  readonly asked: Partial<Swarm["commands"]>
  readonly diskLocked: number
  readonly floods: number
  /** Whether what its agents may spend is soon spent. */
  readonly isTight: boolean
} => {
  if (seed <= LATER)
    return {
      asked: {},
      edits: 0,
      oddEnds: 0,
      isTight: false,
      errands: undefined,
      leaves: 0,
      meddles: 0,
      diskLocked: 0,
      floods: 0
    }
  const chance = new Chance(seed, "later")
  return {
    asked: {
      ...(chance.is(0.4) ? { close: 4, begin: 0.3, archive: 0.3, conversations: 0.1 } : {}),
      ...(chance.is(0.4) ? some(chance, LOG_COMMANDS, ["log", "follow"], 0.5) : {})
    },
    meddles: chance.is(0.3) ? 0.05 : 0,
    errands: chance.is(0.4)
      ? { share: chance.skewed(0.05, 0.4), often: some(chance, ERRANDS, ["message"], 0.6) }
      : undefined,
    leaves: chance.is(0.3) ? 0.1 : 0,
    edits: chance.is(0.5) ? 1 : 0,
    diskLocked: chance.is(0.3) ? chance.skewed(5_000, 1_800_000) : 0,
    oddEnds: chance.is(0.4) ? 0.5 : 0,
    isTight: chance.is(0.2),
    floods: chance.is(0.3) ? chance.skewed(0.05, 0.5) : 0
  }
}

/** Weights of commands on seats: an agent that is always removed, skipped and put last says nothing. */
const rarely = (share: number) =>
  Object.fromEntries(CHANNEL_COMMANDS.filter((name) => !/Post|Show|New/.test(name)).map((name) => [name, share]))

/** Weights of seldom commands: a verification reads the whole log, and a closed conversation is over. */
const RARE: { readonly [name in Command]?: number } = {
  verify: 0.03,
  why: 0.1,
  close: 0.05,
  edit: 0.3,
  log: 0.1,
  follow: 0.02,
  spawn: 0.3,
  plateForget: 0.1,
  ...rarely(0.2)
}

/** Everybody has days for it: people, faults, agents. */
const inDays = (seed: number, swarm: Swarm): Swarm => {
  const chance = new Chance(seed, "days")
  const slower = chance.skewed(20, 400)
  const every = Object.entries(swarm.every).map(([fault, mean]) => [fault, mean * slower])
  return {
    ...swarm,
    pause: swarm.pause * slower,
    every: Object.fromEntries(every) as Swarm["every"],
    killAtCommit: swarm.killAtCommit / 10,
    settings: {
      ...swarm.settings,
      idleTimeout: chance.pick(["1s", "5 minutes", "12 hours"]),
      minRunInterval: chance.pick(["10 minutes", "3 hours", "1 day"]),
      ...(chance.is(0.3) ? { maxRunsPerHour: chance.pick([1, 3]) } : {}),
      ...(chance.is(0.3) ? { approvals: { timeout: chance.pick(["8 hours", "3 days"]), always: ["*"] } } : {}),
      ...(chance.is(0.3) ? { budget: { wallTime: chance.pick(["2 hours", "2 days"]) } } : {})
    }
  }
}

export const swarmOf = (seed: number): Swarm => {
  if (seed > OF_RARE) return rarer(seed, drawn(seed))
  if (seed > OF_KEPT && seed <= OF_MODELS) return aboutKept(seed, drawn(seed))
  return seed > OF_DAYS ? inDays(seed, drawn(seed)) : drawn(seed)
}

const drawn = (seed: number): Swarm => {
  const chance = new Chance(seed, "swarm")
  const every = Object.fromEntries(
    FIRST_FAULTS.map((fault) => [fault, chance.is(0.4) ? chance.skewed(5_000, 1_800_000) : 0])
  ) as { readonly [name in (typeof FIRST_FAULTS)[number]]: number }
  const maybe = (most: number) => (chance.is(0.4) ? chance.skewed(0.01, most) : 0)
  const later = laterOf(seed)
  const { asked: ofChannels, review, share, talk } = channelsOf(seed)
  const ofGoals = goalsOf(seed)
  const ofBoard = boardOf(seed)
  const elsewhere = some(chance, EVERYWHERE, ["send"], 0.5)
  const asked: Partial<Swarm["commands"]> = {
    ...Object.fromEntries(EVERYWHERE.map((name) => [name, elsewhere[name] * share * ofGoals.share * ofBoard.share])),
    ...ofChannels,
    ...later.asked,
    ...ofGoals.asked,
    ...ofBoard.asked
  }
  return {
    order: chance.is(0.5) ? "any" : "fifo",
    maxOps: chance.pick([32, 128, 512, 2048]),
    agents: Math.max(1 + chance.below(3), ofGoals.aims === undefined ? 1 : 4),
    people: 1 + chance.below(3),
    pause: chance.skewed(300, 120_000),
    commands: Object.fromEntries(
      COMMANDS.map((name) => [name, (asked[name] ?? 0) * (RARE[name] ?? 1)])
    ) as Swarm["commands"],
    turns: { ...some(chance, FIRST_MOODS, ["answers"], 0.4), floods: later.floods },
    failsStart: maybe(0.5),
    diesEarly: maybe(0.5),
    lies: maybe(0.3),
    deaf: maybe(0.8),
    stuck: maybe(0.8),
    every: {
      ...every,
      diskLocked: later.diskLocked,
      // two at once would be no evidence of either
      ...((ofBoard.board?.strays ?? 0) > 0 ? { clockJump: 0 } : {})
    },
    meddles: later.meddles,
    leaves: later.leaves,
    edits: later.edits,
    strict: 0,
    starves: 0,
    pairs: 0,
    spends: 0,
    lurks: undefined,
    oddEnds: later.oddEnds,
    killAtCommit: chance.is(0.3) ? chance.skewed(0.002, 0.1) : 0,
    mail: some(chance, MAIL_MOODS, ["takes"], 0.4),
    runsTools: chance.is(0.3),
    settings: {
      interruptGrace: chance.pick(["500ms", "2s", "10s"]),
      idleTimeout: chance.pick(["1s", "30s", "5 minutes"]),
      minRunInterval: chance.pick(["0ms", "1s"]),
      ...(chance.is(0.2) ? { mode: "loop", prompt: "look after the shop" } : {}),
      ...(chance.is(0.2) ? { budget: budgetOf(chance) } : {}),
      ...(chance.is(0.3) ? { maxConsecutiveErrors: chance.pick([1, 2, 10]) } : {}),
      ...(chance.is(0.2) ? { maxTotalErrors: chance.pick([2, 6]) } : {}),
      ...(chance.is(0.2) ? { maxRunsPerHour: chance.pick([3, 30]) } : {}),
      ...(chance.is(0.2) ? { runTimeout: "20s" } : {}),
      ...(chance.is(0.4)
        ? {
            approvals: {
              mode: chance.pick(["read_only", "auto", "full_access"]),
              timeout: chance.pick(["5s", "2 minutes"]),
              ...(chance.is(0.5) ? { never: ["she*"] } : { always: ["*"] })
            }
          }
        : {}),
      ...(chance.is(0.4) ? { toolTimeout: "2s", maxToolTimeout: "5s" } : {}),
      ...(later.isTight ? { budget: { tokens: 25, toolCalls: 3, wallTime: "20s" } } : {})
    },
    ofAgent: {
      ...(chance.is(0.15) ? { c: { worktree: true } } : {}),
      ...(chance.is(0.2) ? { b: { autostart: false } } : {}),
      ...(chance.is(0.2) ? { b: { parent: "a" } } : {})
    },
    talk,
    errands: later.errands,
    review,
    aims: ofGoals.aims,
    board: ofBoard.board,
    bytes: bytesOf(seed),
    models: modelsOf(seed),
    schedules: schedulesOf(seed),
    conversation: {
      ...(chance.is(0.2) ? { budget: { tokens: chance.pick([100, 2_000]) } } : {}),
      ...(chance.is(0.3) ? { maxTurnErrors: chance.pick([2, 50]) } : {}),
      ...(chance.is(0.3) ? { maxFatalStops: chance.pick([1, 100]) } : {})
    }
  }
}
