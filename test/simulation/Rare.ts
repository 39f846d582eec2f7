/**
 * Rare: worlds in which happens often what is seldom elsewhere, by themes: a cell of a table
 * or a refusal that takes three things at once is met in a world that is about these three.
 */
import { Chance } from "./Chance.ts"
import { COMMANDS, EVERYWHERE } from "./people/Commands.ts"
import { CHANNEL_COMMANDS } from "./people/OnChannels.ts"
import { GOAL_COMMANDS } from "./people/OnGoals.ts"
import { PLATE_COMMANDS } from "./people/OnPlates.ts"
import { FAULTS, MISHAPS, MOODS, type Swarm } from "./Swarm.ts"
import { MAIL_MOODS } from "./world/Mail.ts"
import { ANSWERS } from "./world/Speech.ts"
import { REVIEWS } from "./world/Work.ts"

type Part = Partial<Swarm>
type Weights = { readonly [name: string]: number }

const only = <A extends string>(names: ReadonlyArray<A>, weights: Weights): { readonly [name in A]: number } =>
  Object.fromEntries(names.map((name) => [name, weights[name] ?? 0])) as { readonly [name in A]: number }

const each = (names: ReadonlyArray<string>, weight: number): Weights =>
  Object.fromEntries(names.map((name) => [name, weight]))

/** Nothing strikes but what the theme says. */
const strikes = (every: Weights): Swarm["every"] => only(FAULTS, every)
const asks = (weights: Weights): Swarm["commands"] => only(COMMANDS, weights)
const moods = (weights: Weights): Swarm["turns"] => only(MOODS, weights)

const calm = { killAtCommit: 0, meddles: 0, leaves: 0, lies: 0, stuck: 0 } satisfies Part
const noChannels = { talk: undefined } satisfies Part

/** Agents that are stopped, starved and sent away as they start, work, are interrupted and cool down. */
const agents = (chance: Chance, swarm: Swarm): Part => ({
  ...calm,
  ...noChannels,
  every: strikes({ kill: 300_000, diskSlow: 30_000 }),
  commands: asks({
    send: 1,
    urgent: 0.5,
    steer: 0.3,
    interrupt: 0.5,
    stop: 0.5,
    start: 1,
    restart: 0.2,
    spawn: 0.2,
    edit: 0.5,
    reload: 0.1,
    approve: 0.3,
    mistake: 0.1,
    ps: 0.1
  }),
  turns: moods({ answers: 1, slow: 1, tools: 0.5, asks: 0.5, crashes: 0.7, fails: 0.3, refuses: 0.3, hangs: 0.2 }),
  deaf: 0.6,
  diesEarly: 0.4,
  failsStart: 0.1,
  oddEnds: 0.6,
  strict: 2,
  starves: 2,
  edits: 0,
  pairs: 0.3,
  spends: 0.6,
  settings: {
    ...swarm.settings,
    interruptGrace: "10s",
    idleTimeout: chance.pick(["1s", "30s"]),
    ...(chance.is(0.5) ? { maxConsecutiveErrors: 2 } : { maxTotalErrors: 3, maxConsecutiveErrors: 10 }),
    ...(chance.is(0.6) ? { budget: { tokens: chance.pick([11, 50]) } } : {})
  }
})

/** Agents whose file leaves them less than they have spent, wherever they stand. */
const starving = (chance: Chance, swarm: Swarm): Part => ({
  ...calm,
  ...noChannels,
  every: strikes({}),
  commands: asks({ send: 2, urgent: 0.2, start: 1.5, edit: 1.2, reload: 0.3, interrupt: 0.1, mistake: 0.05 }),
  pause: chance.is(0.3) ? chance.skewed(200, 500) : chance.skewed(1_500, 6_000),
  spends: 0.8,
  turns: moods({ answers: 1, slow: 0.1, crashes: 0.6, fails: 0.3 }),
  failsStart: 0.2,
  diesEarly: 0.3,
  oddEnds: 0.2,
  strict: 0,
  starves: 6,
  edits: 0,
  settings: {
    ...swarm.settings,
    budget: {},
    idleTimeout: "1s",
    minRunInterval: chance.pick(["0ms", "1s"]),
    maxConsecutiveErrors: 10,
    maxTotalErrors: chance.pick([3, 50])
  },
  ofAgent: {},
  conversation: {}
})

/** Calls that wait, are answered, run for too long, and end with their turn. */
const tools = (chance: Chance, swarm: Swarm): Part => ({
  ...calm,
  ...noChannels,
  every: strikes({ kill: 300_000 }),
  commands: asks({
    send: 1,
    approve: 1,
    answerAgain: 0.3,
    interrupt: 0.2,
    urgent: 0.1,
    steer: 0.3,
    stop: 0.05,
    start: 0.3,
    mistake: 0.1
  }),
  turns: moods({ answers: 0.2, tools: 1, asks: 1.5, crashes: 0.1 }),
  diesEarly: 0,
  pairs: 0.7,
  deaf: 0.3,
  oddEnds: 0,
  runsTools: chance.is(0.5),
  settings: {
    ...swarm.settings,
    interruptGrace: "500ms",
    approvals: {
      mode: chance.pick(["read_only", "auto", "full_access"]),
      timeout: "5s",
      ...(chance.is(0.5) ? { never: ["she*"] } : { always: ["*"] })
    },
    toolTimeout: "2s",
    maxToolTimeout: "5s"
  }
})

/** A conversation that is paused, suspended, closed and begun again while its agents fail. */
const conversation = (chance: Chance, swarm: Swarm): Part => {
  // in some of them all is closed again soon, in others a suspension is crossed by a person's word
  const isShort = chance.is(0.4)
  return {
    ...calm,
    ...noChannels,
    every: strikes({ kill: chance.is(0.5) ? 120_000 : 0, diskSlow: isShort ? 0 : 15_000 }),
    commands: asks({
      send: 1,
      urgent: 0.1,
      start: 1,
      pause: 0.4,
      resume: isShort ? 0.5 : 3,
      close: isShort ? 0.5 : 0.02,
      begin: 0.6,
      archive: 0.1,
      edit: 0.3,
      approve: 0.1,
      mistake: 0.2,
      conversations: 0.1,
      conversation: 0.1,
      stop: 0.1
    }),
    turns: moods({ answers: 1, slow: 1, tools: 0.5, crashes: 0.7, fails: 0.5, refuses: 0.3 }),
    oddEnds: 0.7,
    deaf: isShort ? 0.9 : 0.5,
    diesEarly: 0.1,
    failsStart: 0.2,
    spends: 0.5,
    strict: 2,
    starves: 0,
    ofAgent: chance.is(0.5) ? Object.fromEntries(["a", "b", "c"].map((name) => [name, { autostart: false }])) : {},
    settings: {
      ...swarm.settings,
      interruptGrace: chance.pick(["500ms", "10s"]),
      maxTotalErrors: 100,
      ...(isShort ? { maxConsecutiveErrors: 1 } : {})
    },
    conversation: isShort
      ? chance.pick([{ maxTurnErrors: 2, maxFatalStops: 100 }, { maxTurnErrors: 100, maxFatalStops: 2 }, {}])
      : chance.pick([{ budget: { tokens: 40 } }, { budget: { wallTime: "20s" } }, { budget: { toolCalls: 2 } }, {}])
  }
}

const TALK = { answers: only(ANSWERS, each(ANSWERS, 0.5)), voices: 0.4, interjects: 0.2 }

/** Channels in which everything is said and done, and little fails. */
const channels = (chance: Chance): Part => ({
  ...calm,
  agents: 3,
  every: strikes({ kill: chance.is(0.5) ? 200_000 : 0 }),
  commands: asks({
    ...each(CHANNEL_COMMANDS, 0.2),
    channelPost: 1.5,
    channelNew: 0.3,
    channelClose: 0.05,
    channelTend: 0.4,
    channelAssign: 0.5,
    send: 0.1,
    stop: 0.1,
    start: 0.5,
    close: 0.01,
    begin: 0.1,
    mistake: 0.2
  }),
  turns: moods({ answers: 1, slow: 0.7, crashes: 0.15, fails: 0.1, refuses: 0.1, hangs: 0.2 }),
  diesEarly: 0.05,
  failsStart: 0.05,
  oddEnds: 0.2,
  talk: TALK,
  settings: { minRunInterval: "0ms", idleTimeout: "30s", interruptGrace: "2s" },
  conversation: {},
  review: {
    agents: chance.is(0.7) ? ["a", "b", "c"] : ["a"],
    order: chance.pick(["round-robin", "priority", "manual"]),
    timeouts: chance.is(0.5) ? { a: 20, b: 20 } : {},
    rejoin: chance.is(0.6),
    turnConfig: {
      humanInterruptMode: chance.pick(["inject", "queue", "interrupt", "parallel"]),
      autoDetectTurnEnd: chance.is(0.3),
      waitTimeoutSeconds: chance.pick([300, 20]),
      restAfterPosts: 20,
      announceTimeouts: true,
      announceDisconnects: true
    }
  }
})

/** Goals that come as far as their review, and end there and before in each way. */
const goals = (chance: Chance, { aims, settings }: Swarm): Part => {
  // its agents are stopped as they are given a folder
  const isSlow = chance.is(0.3)
  const isPoor = chance.is(0.5)
  return {
    ...calm,
    ...noChannels,
    every: strikes({ kill: chance.is(0.4) ? 300_000 : 0 }),
    commands: asks({
      ...each(GOAL_COMMANDS, 0.1),
      goalNew: 0.3,
      goalNewPlan: 0.5,
      goalApprove: 0.5,
      goalRetry: 0.3,
      goalMerge: 0.3,
      goalCancel: 0.05,
      goalReject: 0.1,
      goalTend: 0.05,
      start: 0.3,
      stop: isSlow ? 0.6 : 0.02,
      send: 0.05,
      edit: 0.05,
      close: 0.01,
      begin: 0.1,
      archive: 0.1,
      mistake: 0.2
    }),
    pause: 2_000,
    turns: moods({ answers: 1, slow: 0.1, crashes: 0.05 }),
    diesEarly: 0.02,
    failsStart: 0.02,
    oddEnds: 0.2,
    spends: 0.7,
    deaf: 0.1,
    starves: chance.is(0.3) ? 4 : 0,
    settings: {
      ...settings,
      minRunInterval: "0ms",
      runTimeout: "5 minutes",
      ...(isPoor ? { budget: chance.pick([{ wallTime: "3s" }, { tokens: 60 }, { wallTime: "10s" }]) } : {})
    },
    ...(aims === undefined
      ? {}
      : {
          aims: {
            ...aims,
            goals: {
              ...aims.goals,
              ...(chance.is(0.8) ? { planner: "a" } : {}),
              critic: chance.pick(["a", "b"]),
              autoStart: chance.is(0.7),
              rounds: isPoor ? 3 : chance.pick([1, 2, 3]),
              planTries: 1,
              ...(chance.is(0.5) ? { blockedTimeout: "20 seconds" } : {})
            },
            plans: { ...aims.plans, good: 1.5 },
            deeds: { ...aims.deeds, commits: 1.5 },
            reviews: only(REVIEWS, { ...each(REVIEWS, 0.4), replan: isPoor ? 2 : 0.4 }),
            checkTakes: 1_000,
            checkFails: 0.05,
            git: isSlow ? { ...aims.git, slowest: 20_000, isAbsent: 0.03 } : { ...aims.git, slowest: 50 }
          }
        })
  }
}

/** A world whose faults come while commands are open; the disk is slow, so that all of them are. */
const meddling = (chance: Chance, swarm: Swarm): Part => {
  const { aims, review, talk } = swarm
  return {
    ...(aims === undefined ? { talk: talk ?? TALK, review: talk === undefined ? { agents: ["a", "b"] } : review } : {}),
    every: strikes({ ...each(FAULTS, 60_000), kill: 120_000, powerCut: 200_000, stop: 200_000, diskSlow: 15_000 }),
    commands: asks({
      ...each(EVERYWHERE, 0.3),
      ...(aims === undefined ? each(CHANNEL_COMMANDS, 0.3) : {}),
      ...(aims === undefined ? {} : each(GOAL_COMMANDS, 0.3)),
      archive: 0.1,
      alertTest: 0.2,
      close: 0.03,
      verify: 0,
      goalCancel: 0.1,
      desk: 0.02,
      mistake: 0.3
    }),
    people: 6,
    pause: chance.skewed(300, 1_000),
    meddles: 0.2,
    killAtCommit: chance.is(0.5) ? 0.1 : 0.005,
    failsStart: 0.3,
    diesEarly: 0.1,
    mail: { ...swarm.mail, takes: 0.3, refuses: 0.3, hangs: 0.1 },
    ...(aims === undefined ? {} : { aims: { ...aims, git: { ...aims.git, fails: 0.1, isAbsent: 0.05 } } })
  }
}

/** The same in a world of goals. */
const meddlingAtGoals = (chance: Chance, swarm: Swarm): Part => {
  const { commands, ...rest } = meddling(chance, { ...swarm, ...noChannels })
  return {
    ...rest,
    ...noChannels,
    commands: { ...commands!, ...only(EVERYWHERE, { ...each(EVERYWHERE, 0.03), verify: 0, start: 0.3 }) }
  }
}

/** Above it each world has one kind of mishap, which comes while a command is open that has not met it. */
const OF_LURKING = 61_000

const isLurking = (seed: number): boolean => seed > OF_LURKING

/** Every other one has sessions and channels, too. */
export const hasLurkingBoard = (seed: number): boolean => isLurking(seed) && seed % 2 === 0

/** Goals, calls, channels and sessions of all kinds, in peace but for one mishap. */
const lurking = (seed: number, chance: Chance, swarm: Swarm): Part => {
  const lurks = MISHAPS[seed % MISHAPS.length]!
  const hasBoard = hasLurkingBoard(seed)
  const { aims, settings: _, commands: ofGoals, ...whole } = goals(chance, swarm)
  return {
    ...whole,
    lurks,
    commands: {
      ...ofGoals!,
      ...only(EVERYWHERE, {
        ...each(EVERYWHERE, 0.2),
        start: 0.5,
        send: lurks === "noStart" ? 3 : 0.5,
        edit: 0.1,
        verify: 0,
        pause: 0.1,
        resume: 0.5,
        close: 0.05,
        begin: 0.5,
        mistake: 0.2
      }),
      ...only(GOAL_COMMANDS, {
        ...each(GOAL_COMMANDS, 0.2),
        goalNewPlan: 0.5,
        goalApprove: 0.5,
        goalMerge: 0.5,
        goalCancel: 0.05,
        goalReject: 0.1,
        goalTend: 0.05
      }),
      archive: 0.2,
      answerAgain: 0.2,
      elsewhere: 0.1,
      alertTest: lurks === "noMail" ? 2 : 0.2,
      ...(hasBoard ? { ...each(CHANNEL_COMMANDS, 0.2), ...each(PLATE_COMMANDS, 0.5) } : {})
    },
    people: 3,
    pause: 1_000,
    every: strikes({}),
    turns: moods({ answers: 1, slow: 0.2, asks: 0.3, tools: 0.2, crashes: 0.2 }),
    settings: {
      interruptGrace: "2s",
      idleTimeout: "1s",
      minRunInterval: "0ms",
      maxConsecutiveErrors: 1_000,
      maxTotalErrors: 10_000,
      approvals: { mode: "auto", timeout: "20s", always: ["*"] }
    },
    // somebody has to start all the time
    ofAgent:
      lurks === "noStart" ? Object.fromEntries(["c", "d"].map((name) => [name, { mode: "loop", prompt: "look" }])) : {},
    conversation: { maxTurnErrors: 10_000, maxFatalStops: 10_000 },
    mail: only(MAIL_MOODS, { takes: 1 }),
    aims: { ...(aims ?? swarm.aims!), worktree: true },
    ...(hasBoard ? { talk: TALK, review: { agents: ["c", "d"] } } : {})
  }
}

const THEMES = [
  agents,
  starving,
  tools,
  conversation,
  channels,
  goals,
  meddling,
  agents,
  goals,
  meddlingAtGoals,
  conversation
] as const

/** The probability that a world of the theme has goals. */
export const wantsGoals = (seed: number): number => {
  if (isLurking(seed)) return 1
  const theme = THEMES[seed % THEMES.length]
  return theme === goals || theme === meddlingAtGoals ? 1 : 0
}

/** Each seed has one of the themes, in turn. */
export const rarer = (seed: number, swarm: Swarm): Swarm => {
  const chance = new Chance(seed, "rare")
  if (isLurking(seed)) return { ...swarm, ...lurking(seed, chance, swarm) }
  const theme = THEMES[seed % THEMES.length]!
  return { ...swarm, people: 3, pause: chance.skewed(300, 1_500), ...theme(chance, swarm) }
}
