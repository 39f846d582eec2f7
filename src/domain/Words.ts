/**
 * Words: the status words that people read, and the mapping from each state of each state machine to its word. Pure.
 *
 * Guarantees: each state of each machine has a list of cases. The first case that holds gives the word, and the last
 * always holds. A word says who acts next: the person, nobody, or the agent itself.
 */

/** In the order in which a person looks for them. */
export const WORDS = [
  "needs you",
  "failed",
  "retrying",
  "waiting",
  "working",
  "paused",
  "idle",
  "stopped",
  "done"
] as const
export type Word = (typeof WORDS)[number]

/** Causes of waits that end by themselves. */
export const REASONS = ["limit", "network", "login", "place", "floor", "run", "task"] as const
export type Reason = (typeof REASONS)[number]

export const GROUPS = ["Needs you", "Failed", "Working", "Idle"] as const
export type Group = (typeof GROUPS)[number]

export interface Look {
  readonly glyph: string
  /** Used if a terminal has no UTF-8. */
  readonly ascii: string
  readonly colour: "you" | "failed" | "work" | "quiet" | "good"
  readonly group: Group
  readonly next: string
}

export const LOOKS: { readonly [word in Word]: Look } = {
  "needs you": { glyph: "◆", ascii: "!", colour: "you", group: "Needs you", next: "you" },
  failed: { glyph: "✕", ascii: "x", colour: "failed", group: "Failed", next: "nobody until you do" },
  retrying: { glyph: "↻", ascii: "~", colour: "work", group: "Working", next: "it, by itself" },
  waiting: { glyph: "◔", ascii: "@", colour: "quiet", group: "Working", next: "it, at a known time or event" },
  working: { glyph: "●", ascii: "*", colour: "work", group: "Working", next: "it, now" },
  paused: { glyph: "‖", ascii: "=", colour: "quiet", group: "Idle", next: "nobody until you resume it" },
  idle: { glyph: "○", ascii: "-", colour: "quiet", group: "Idle", next: "nobody: it has nothing to do" },
  stopped: { glyph: "■", ascii: "#", colour: "quiet", group: "Idle", next: "nobody: a person ended it" },
  done: { glyph: "✓", ascii: "+", colour: "good", group: "Idle", next: "nobody: it is over" }
}

/** Position of a word in a list: "needs you" comes first. */
export const rankOf = (word: Word): number => WORDS.indexOf(word)

/** Whether an agent with this word was started and is not restarted. */
export const isOver = (word: Word): boolean => word === "failed" || word === "stopped" || word === "done"

/** A word and its condition: the first case that holds counts. */
export interface Case<F> {
  readonly word: Word
  /** The condition, for people; undefined: it always holds. */
  readonly when?: string
  readonly holds?: (facts: F) => boolean
}
type Cases<F> = readonly [...ReadonlyArray<Required<Case<F>>>, Case<F>]
export type Table<S extends string, F> = { readonly [state in S]: Cases<F> }

/** Makes a table whose keys are the states. */
const table =
  <F>() =>
  <S extends string>(cases: { readonly [state in S]: Cases<F> }): Table<S, F> =>
    cases

const is = (word: Word): readonly [{ readonly word: Word }] => [{ word }]

/** Facts about an agent besides its worker's state. */
export interface AgentFacts {
  /** A call, a question or unanswered work of the agent waits for a person. */
  readonly asks: boolean
  /** The project takes no turns: it is paused or suspended. */
  readonly held: boolean
  /** A turn, or a run without turns, is under way; or work continues in the background between turns. */
  readonly works: boolean
  /** Whether the program itself retries its request to the model. */
  readonly retries: boolean
  /** The reason for the wait if the agent continues by itself; null: it does not wait. */
  readonly waits: Reason | null
  /** A person stopped it. */
  readonly wasStopped: boolean
  /** The agent that spawned it has ended it: its work is over. */
  readonly isOver: boolean
  /** Messages are queued, and nobody takes them until the agent is started. */
  readonly holds: boolean
}

const held = <F extends { readonly held: boolean }>() =>
  ({ word: "paused", when: "its project is paused or suspended", holds: ({ held }: F) => held }) as const

const WAITS = {
  word: "waiting",
  when: "a limit, an outage, a login, a place or its next run ends the wait",
  holds: ({ waits }: AgentFacts) => waits !== null
} as const

const ASKS = {
  word: "needs you",
  when: "a call, a question or unanswered work of it waits for a person",
  holds: ({ asks }: AgentFacts) => asks
} as const

const RETRIES = {
  word: "retrying",
  when: "its program asks its model again by itself",
  holds: ({ retries }: AgentFacts) => retries
} as const

const TURN = { word: "working", when: "a turn is under way", holds: ({ works }: AgentFacts) => works } as const

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
      when: "a limit or an outage made it wait",
      holds: ({ waits }) => waits === "limit" || waits === "network" || waits === "login"
    },
    { word: "retrying" }
  ],
  Stopped: [
    {
      word: "needs you",
      when: "a person stopped it, and messages wait for it",
      holds: ({ holds, wasStopped }) => wasStopped && holds
    },
    { word: "stopped", when: "a person stopped it", holds: ({ wasStopped }) => wasStopped },
    { word: "done", when: "the agent that began it has ended it", holds: ({ isOver }) => isOver },
    { word: "failed" }
  ]
})

export const plate = table<unknown>()({
  Starting: is("working"),
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
    { word: "needs you", when: "every open call of it waits for a person", holds: ({ asks }) => asks },
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
  active: [{ word: "working", when: "a turn is under way", holds: ({ turns }) => turns > 0 }, { word: "idle" }],
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
  when: "an agent that it waits for does not go on without a person",
  holds: ({ behind }: { readonly behind: boolean }) => behind
} as const

export const autonomy = table<{
  /** The project is paused or suspended. */
  readonly held: boolean
  /** A complete plan waits for approval, or a plan waits for its file. */
  readonly asks: boolean
  /** An agent that the goal waits for needs a person. */
  readonly behind: boolean
  readonly wasCancelled: boolean
}>()({
  goal_received: [held(), BEHIND, { word: "working" }],
  planning: [
    { word: "needs you", when: "its plan waits for a person", holds: ({ asks }) => asks },
    held(),
    BEHIND,
    { word: "working" }
  ],
  executing: [held(), BEHIND, { word: "working" }],
  reviewing: [held(), BEHIND, { word: "working" }],
  blocked: is("needs you"),
  goal_met: is("done"),
  stopped: [
    { word: "stopped", when: "a person cancelled it", holds: ({ wasCancelled }) => wasCancelled },
    { word: "failed" }
  ]
})

export const task = table<{ readonly isReady: boolean }>()({
  pending: [
    { word: "idle", when: "nothing that it needs is missing", holds: ({ isReady }) => isReady },
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
  QUEUED: [{ word: "idle", when: "it has read all", holds: ({ hasRead }) => hasRead }, { word: "waiting" }],
  ACTIVE: is("working"),
  WAITING: [
    { word: "needs you", when: "it waits for a person", holds: ({ forPerson }) => forPerson },
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

/** Every state machine with its states, by the machine's name. */
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
  /** The matter that waits for a person; null: none. */
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

/** Local time: `14:00` on the same day, `Tue 14:00` within six days, `3 Dec` otherwise. */
export const moment = (at: number, now: number): string => {
  const date = new Date(at)
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}`
  if (date.toDateString() === new Date(now).toDateString()) return clock
  return Math.abs(at - now) < 6 * DAY
    ? `${DAYS[date.getDay()]} ${clock}`
    : `${date.getDate()} ${MONTHS[date.getMonth()]}`
}

/** `8 s`, `4 min`, `2 h`, `3 d`: in one unit. */
export const span = (ms: number): string => {
  const seconds = Math.max(0, Math.round(ms / 1_000))
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h`
  return `${Math.floor(seconds / 86_400)} d`
}

/** A wait shorter than this is shown as its remaining time, ms. */
const SOON = 90_000

const FOR: { readonly [reason in Reason]: string } = {
  limit: "its limit",
  network: "the network",
  login: "a login",
  place: "a place",
  floor: "the floor",
  run: "its next run",
  task: "other tasks"
}

/** The word with its time: `retrying in 8 s`, `waiting until 14:00 (limit)`, `waiting for the network`. */
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

/** `phrase` as a predicate: `needs you`, `has failed`, `is retrying in 8 s`. */
export const predicate = (of: Parameters<typeof phrase>[0], now: number): string => {
  if (of.word === "needs you") return "needs you"
  return of.word === "failed" ? "has failed" : `is ${phrase(of, now)}`
}
