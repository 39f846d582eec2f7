/**
 * StatusWords: the status words that users see, and the table that maps each state of each state machine to a word.
 * Pure.
 *
 * Guarantees: each state of each machine has a list of cases. The first case whose condition is true gives the word;
 * the last case has no condition. A word says who acts next: the user, nobody, or the thing itself.
 */

/** All status words, in the order in which lists show them. */
export const WORDS = [
  "needs you",
  "failed",
  "retrying",
  "waiting",
  "working",
  "open",
  "paused",
  "idle",
  "stopped",
  "done"
] as const
export type Word = (typeof WORDS)[number]

/** Reasons for waits that end without the user. */
export const REASONS = ["limit", "network", "login", "place", "floor", "run", "task"] as const
export type Reason = (typeof REASONS)[number]

export const GROUPS = ["Needs you", "Failed", "Working", "Idle"] as const
export type Group = (typeof GROUPS)[number]

export interface Look {
  readonly glyph: string
  /** Replacement for the glyph if the terminal does not support UTF-8. */
  readonly ascii: string
  readonly colour: "you" | "failed" | "work" | "quiet" | "good"
  readonly group: Group
  readonly next: string
}

export const LOOKS: { readonly [word in Word]: Look } = {
  "needs you": { glyph: "◆", ascii: "!", colour: "you", group: "Needs you", next: "you" },
  failed: { glyph: "✕", ascii: "x", colour: "failed", group: "Failed", next: "nobody, until you act" },
  retrying: { glyph: "↻", ascii: "~", colour: "work", group: "Working", next: "it, by itself" },
  waiting: {
    glyph: "◔",
    ascii: "@",
    colour: "quiet",
    group: "Working",
    next: "it, by itself, at a known time or event"
  },
  working: { glyph: "●", ascii: "*", colour: "work", group: "Working", next: "it, by itself, now" },
  open: { glyph: "◌", ascii: "?", colour: "quiet", group: "Idle", next: "unknown: it reports nothing to agentd" },
  paused: { glyph: "‖", ascii: "=", colour: "quiet", group: "Idle", next: "nobody, until you resume it" },
  idle: { glyph: "○", ascii: "-", colour: "quiet", group: "Idle", next: "nobody: it has nothing to do" },
  stopped: { glyph: "■", ascii: "#", colour: "quiet", group: "Idle", next: "nobody: a user stopped it" },
  done: { glyph: "✓", ascii: "+", colour: "good", group: "Idle", next: "nobody: it is over" }
}

/** Sort position of a word: 0 for "needs you", whose rows come first. */
export const rankOf = (word: Word): number => WORDS.indexOf(word)

/** Returns true if an agent with this word has ended and is not restarted automatically. */
export const isOver = (word: Word): boolean => word === "failed" || word === "stopped" || word === "done"

/** A status word and its condition. In a list of cases, the first whose condition is true counts. */
export interface Case<F> {
  readonly word: Word
  /** Wording of the condition for users; undefined: the case always applies. */
  readonly when?: string
  readonly holds?: (facts: F) => boolean
}
type Cases<F> = readonly [...ReadonlyArray<Required<Case<F>>>, Case<F>]
export type Table<S extends string, F> = { readonly [state in S]: Cases<F> }

const table =
  <F>() =>
  <S extends string>(cases: { readonly [state in S]: Cases<F> }): Table<S, F> =>
    cases

const is = (word: Word): readonly [{ readonly word: Word }] => [{ word }]

/** Facts that, in addition to the worker's state, determine an agent's status word. */
export interface AgentFacts {
  /** True: a call, a question or an unanswered message of the agent waits for the user. */
  readonly asks: boolean
  /** True: the agent's project is paused or suspended, and starts no turns. */
  readonly held: boolean
  /** True: the agent has an active turn, an active run without turns, or background work between two turns. */
  readonly works: boolean
  /** True: the agent's program is retrying its request to the model. */
  readonly retries: boolean
  /** The reason why the agent waits, if the wait ends without the user; null: the agent does not wait. */
  readonly waits: Reason | null
  /** True: a user stopped the agent. */
  readonly wasStopped: boolean
  /** True: the parent agent has ended this sub-agent, because the sub-agent's work is over. */
  readonly isOver: boolean
  /** True: messages are queued, but will not be processed until the agent is started. */
  readonly holds: boolean
}

const held = <F extends { readonly held: boolean }>() =>
  ({ word: "paused", when: "its project is paused or suspended", holds: ({ held }: F) => held }) as const

const WAITS = {
  word: "waiting",
  when: "it waits for the end of a limit or outage, for a login, a free slot or its next run",
  holds: ({ waits }: AgentFacts) => waits !== null
} as const

const ASKS = {
  word: "needs you",
  when: "a call, a question or an unanswered message waits for the user",
  holds: ({ asks }: AgentFacts) => asks
} as const

const RETRIES = {
  word: "retrying",
  when: "its program is retrying its request to the model",
  holds: ({ retries }: AgentFacts) => retries
} as const

const TURN = { word: "working", when: "a turn is in progress", holds: ({ works }: AgentFacts) => works } as const

export const worker = table<AgentFacts>()({
  Initializing: is("working"),
  BuildingPrompt: [ASKS, held(), WAITS, TURN, { word: "idle" }],
  Spawning: is("working"),
  Running: [ASKS, RETRIES, TURN, held(), WAITS, { word: "idle" }],
  Interrupting: is("working"),
  SessionComplete: is("working"),
  CoolingDown: [
    held(),
    {
      word: "waiting",
      when: "it waits because of a limit, an outage or a login",
      holds: ({ waits }) => waits === "limit" || waits === "network" || waits === "login"
    },
    { word: "retrying" }
  ],
  Stopped: [
    {
      word: "needs you",
      when: "a user stopped it, and messages wait for it",
      holds: ({ holds, wasStopped }) => wasStopped && holds
    },
    { word: "stopped", when: "a user stopped it", holds: ({ wasStopped }) => wasStopped },
    { word: "done", when: "the agent that spawned it has ended it", holds: ({ isOver }) => isOver },
    { word: "failed" }
  ]
})

export const plate = table<unknown>()({
  Starting: is("open"),
  Running: is("working"),
  Idle: is("idle"),
  AwaitingInput: is("needs you"),
  AwaitingApproval: is("needs you"),
  Error: is("failed"),
  Closed: is("done")
})

export const turn = table<{ readonly asks: boolean }>()({
  idle: is("idle"),
  streaming: is("working"),
  tool_executing: [
    { word: "needs you", when: "all open calls of the turn wait for the user", holds: ({ asks }) => asks },
    { word: "working" }
  ],
  completed: is("done"),
  interrupted: is("working"),
  error: is("failed")
})

export const tool = table<unknown>()({
  pending_call: is("working"),
  awaiting_approval: is("needs you"),
  executing: is("working"),
  denied: is("done"),
  completed_result: is("done"),
  error_result: is("failed"),
  timeout_result: is("failed"),
  cancelled_result: is("done")
})

export const conversation = table<{ readonly turns: number }>()({
  created: is("idle"),
  active: [{ word: "working", when: "a turn is in progress", holds: ({ turns }) => turns > 0 }, { word: "idle" }],
  paused: is("paused"),
  suspended: is("needs you"),
  closing: is("working"),
  closed: is("done"),
  archived: is("done")
})

export const agent = table<unknown>()({
  spawning: is("working"),
  idle: is("idle"),
  running_turn: is("working"),
  terminated: is("done"),
  failed: is("failed")
})

const BEHIND = {
  word: "needs you",
  when: "an agent of the goal cannot continue without the user",
  holds: ({ behind }: { readonly behind: boolean }) => behind
} as const

export const autonomy = table<{
  /** True: the goal's project is paused or suspended. */
  readonly held: boolean
  /** True: a complete plan waits for the user's approval, or a plan waits for a file that the user must provide. */
  readonly asks: boolean
  /** True: an agent for which the goal waits cannot continue without the user's help. */
  readonly behind: boolean
  readonly wasCancelled: boolean
}>()({
  goal_received: [held(), BEHIND, { word: "working" }],
  planning: [
    { word: "needs you", when: "its plan waits for the user", holds: ({ asks }) => asks },
    held(),
    BEHIND,
    { word: "working" }
  ],
  executing: [held(), BEHIND, { word: "working" }],
  reviewing: [held(), BEHIND, { word: "working" }],
  blocked: is("needs you"),
  goal_met: is("done"),
  stopped: [
    { word: "stopped", when: "a user cancelled it", holds: ({ wasCancelled }) => wasCancelled },
    { word: "failed" }
  ]
})

export const task = table<{ readonly isReady: boolean }>()({
  pending: [
    { word: "idle", when: "all tasks that it depends on are completed", holds: ({ isReady }) => isReady },
    { word: "waiting" }
  ],
  assigned: is("working"),
  running: is("working"),
  completed: is("done"),
  failed: is("failed"),
  blocked: is("needs you"),
  cancelled: is("done")
})

export const seat = table<{ readonly hasRead: boolean; readonly forPerson: boolean }>()({
  OFFLINE: is("paused"),
  IDLE: is("idle"),
  QUEUED: [{ word: "idle", when: "it has read all posts", holds: ({ hasRead }) => hasRead }, { word: "waiting" }],
  ACTIVE: is("working"),
  WAITING: [
    { word: "needs you", when: "it waits for the user", holds: ({ forPerson }) => forPerson },
    { word: "waiting" }
  ]
})

export const provider = table<unknown>()({
  Available: is("idle"),
  Degraded: is("retrying"),
  Unavailable: is("waiting"),
  LimitedUntil: is("waiting"),
  LoginNeeded: is("needs you")
})

export const TABLES = { worker, plate, turn, tool, conversation, agent, autonomy, task, seat, provider } as const

export const wordOf = <S extends string, F>(table: Table<S, F>, state: S, facts: F): Word =>
  table[state].find(({ holds }) => holds === undefined || holds(facts))!.word

export const channelWord = ({
  closed,
  floor,
  paused,
  seats,
  waits
}: {
  readonly closed: boolean
  readonly paused: boolean
  readonly floor: string | null
  /** The question or problem that waits for the user; null: nothing waits for the user. */
  readonly waits: string | null
  readonly seats: ReadonlyArray<Word>
}): Word => {
  if (closed) return "done"
  if (waits !== null || seats.includes("needs you")) return "needs you"
  if (floor !== null) return "working"
  if (paused) return "paused"
  return seats.includes("working") || seats.includes("waiting") ? "waiting" : "idle"
}

const two = (value: number): string => String(value).padStart(2, "0")

const DAY = 86_400_000
const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

/** Formats a time as local time: `14:00` on the same day, `Tue 14:00` within six days, `3 Dec` otherwise. */
export const moment = (at: number, now: number): string => {
  const date = new Date(at)
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}`
  if (date.toDateString() === new Date(now).toDateString()) return clock
  return Math.abs(at - now) < 6 * DAY
    ? `${DAYS[date.getDay()]} ${clock}`
    : `${date.getDate()} ${MONTHS[date.getMonth()]}`
}

/** Formats a duration in one unit: `8 s`, `4 min`, `2 h`, `3 d`. */
export const span = (ms: number): string => {
  const seconds = Math.max(0, Math.round(ms / 1_000))
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h`
  return `${Math.floor(seconds / 86_400)} d`
}

/** Maximum remaining time in ms for which a wait is shown as a duration. For longer waits, the clock time is shown. */
const SOON = 90_000

const FOR: { readonly [reason in Reason]: string } = {
  limit: "its limit",
  network: "the network",
  login: "a login",
  place: "a free slot",
  floor: "the floor",
  run: "its next run",
  task: "other tasks"
}

/** Describes a wait: `retrying in 8 s`, `waiting until 14:00 (limit)`, `waiting for the network`. */
export const phrase = (
  {
    reason = null,
    until = null,
    word
  }: { readonly word: Word; readonly until?: number | null | undefined; readonly reason?: Reason | null | undefined },
  now: number
): string => {
  if (word === "retrying")
    return until === null ? word : until > now ? `${word} in ${span(until - now)}` : `${word} now`
  if (word !== "waiting") return word
  if (reason === "network" || reason === "login" || until === null || until <= now)
    return reason === null ? word : `${word} for ${FOR[reason]}`
  const tail = reason === "limit" ? " (limit)" : ""
  return until - now < SOON ? `${word} ${span(until - now)}${tail}` : `${word} until ${moment(until, now)}${tail}`
}

/** A row's text as it continues the phrase of a wait: `waiting 13 s · for its next run`. */
export const afterPhrase = (says: string): string => `· ${says.replace(/^waits (?=for )/u, "")}`

/** The status word as the predicate of a sentence: `needs you`, `has failed`, `is retrying in 8 s`. */
export const predicate = (of: Parameters<typeof phrase>[0], now: number): string => {
  if (of.word === "needs you") return "needs you"
  return of.word === "failed" ? "has failed" : `is ${phrase(of, now)}`
}
