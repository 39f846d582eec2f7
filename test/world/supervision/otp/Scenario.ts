/**
 * Scenario: a random supervision tree and what happens to it, as data, and how it
 * reads in Erlang.
 *
 * A tree has up to three levels of supervisors, some of them dynamic
 * (simple_one_for_one); its children obey, take their time or are deaf when they are
 * asked to stop, with a grace, without an end of it, or killed at once; windows are
 * seconds long, and time passes. Left out, because OTP promises no order there: the
 * death of children of two supervisors at one moment, and the kill of a supervisor.
 */
import type { RestartType } from "../../../../src/core/supervision/Child.ts"
import type { AutoShutdown, Strategy } from "../../../../src/core/supervision/SupervisorOptions.ts"

/** The next starts of a child; `ok` where nothing is planned. */
export type Start = "ok" | "error" | "ignore"

/** How a child ends by itself; `kill` is done to it, and leaves it no last word. */
export type End = "normal" | "shutdown" | "shutdown_term" | "abnormal" | "kill"

export interface Flags {
  readonly strategy: Strategy
  readonly intensity: number
  /** in seconds */
  readonly period: number
  readonly autoShutdown: AutoShutdown
}

export interface Worker {
  readonly type: "worker"
  readonly id: string
  readonly restart: RestartType
  readonly significant: boolean
  /** ms, where it is a number */
  readonly shutdown: "default" | "infinity" | "brutal" | number
  /** The reaction of a worker to a stop. */
  readonly stops: "obeys" | "slowly" | "never"
  /** Ours only: a loop in a fiber, a handle, or a handle that is started without a fiber. */
  readonly made: "loop" | "handle" | "directly"
}

export interface Team {
  readonly type: "supervisor"
  readonly id: string
  readonly restart: RestartType
  readonly significant: boolean
  readonly flags: Flags
  /** None in a dynamic one. */
  readonly children: ReadonlyArray<Node>
  /** The template of the instances of a dynamic supervisor. */
  readonly template: Worker
}

export type Node = Worker | Team

export type Step =
  | { readonly _tag: "plan"; readonly id: string; readonly starts: ReadonlyArray<Start> }
  /** At one moment: their supervisor hears of all before it acts on any. */
  | { readonly _tag: "die"; readonly supervisor: string; readonly ends: ReadonlyArray<readonly [string, End]> }
  | { readonly _tag: "add"; readonly supervisor: string; readonly child: Worker; readonly isInstance: boolean }
  | {
      readonly _tag: "terminate" | "restart" | "delete"
      readonly supervisor: string
      readonly id: string
      readonly isInstance: boolean
    }
  | { readonly _tag: "pass"; readonly seconds: number }

export interface Scenario {
  readonly top: Team
  readonly steps: ReadonlyArray<Step>
  /** The first letters of the ids of instances: which of several stops first is nobody's promise. */
  readonly dynamic: ReadonlySet<string>
}

// Chance, from a seed that a failure prints.

/** Mulberry32. */
const dice = (seed: number) => {
  let state = seed
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  return {
    below: (n: number) => Math.floor(next() * n),
    pick: <A>(from: ReadonlyArray<A>): A => from[Math.floor(next() * from.length)]!,
    chance: (p: number) => next() < p
  }
}
type Dice = ReturnType<typeof dice>

const letters = ["a", "b", "c", "d", "e", "f"]
const strategies: ReadonlyArray<Strategy> = ["one_for_one", "one_for_all", "rest_for_one"]
const ends: ReadonlyArray<End> = ["normal", "shutdown", "shutdown_term", "abnormal", "abnormal", "abnormal", "kill"]
const starts: ReadonlyArray<Start> = ["ok", "ok", "error", "error", "ignore"]
/** OTP keeps an instance that answers ignore to its restart as a child without a pid; ours is forgotten. */
const instanceStarts = starts.filter((start) => start !== "ignore")

/** The first letter of the ids of its children names a supervisor. */
interface Place {
  readonly team: Team
  readonly letter: string
}

const idsOf = (letter: string) => [1, 2, 3, 4].map((n) => `${letter}${n}`)

const policy = (roll: Dice, autoShutdown: AutoShutdown) => {
  const restart = roll.pick<RestartType>(["permanent", "permanent", "transient", "temporary"])
  return { restart, significant: restart !== "permanent" && autoShutdown !== "never" && roll.chance(0.5) }
}

const worker = (roll: Dice, id: string, autoShutdown: AutoShutdown): Worker => {
  const shutdown = roll.pick<Worker["shutdown"]>(["default", "default", "default", "infinity", "brutal", 1, 2])
  const isPatient = shutdown === "default" || shutdown === "infinity"
  const stops = roll.chance(0.6) ? "obeys" : isPatient ? "slowly" : "never"
  const made = roll.pick<Worker["made"]>(["loop", "loop", "handle", "directly"])
  // A fiber cannot tell a kill from an interruption.
  const canLoop = stops === "obeys" && shutdown !== "brutal"
  return {
    type: "worker",
    id,
    ...policy(roll, autoShutdown),
    shutdown,
    stops,
    made: made === "loop" && !canLoop ? "handle" : made
  }
}

const team = (roll: Dice, id: string, above: AutoShutdown, depth: number, places: Array<Place>): Team => {
  const letter = letters[places.length]!
  const flags: Flags = {
    strategy: roll.chance(0.2) ? "dynamic" : roll.pick(strategies),
    intensity: roll.below(6),
    period: roll.pick([1, 2, 5, 10, 3600]),
    autoShutdown: roll.pick(["never", "never", "any_significant", "all_significant"])
  }
  const template = worker(roll, "template", flags.autoShutdown)
  const children: Array<Node> = []
  const made: Team = { type: "supervisor", id, ...policy(roll, above), flags, children, template }
  places.push({ team: made, letter })
  if (flags.strategy === "dynamic") return made
  for (const child of idsOf(letter).slice(0, 1 + roll.below(3))) children.push(worker(roll, child, flags.autoShutdown))
  const tries = depth < 2 ? 2 : 0
  for (let n = 0; n < tries; n++) {
    if (places.length === letters.length || !roll.chance(0.4)) continue
    const below = team(roll, `s${letter}${n}`, flags.autoShutdown, depth + 1, places)
    children.splice(roll.below(children.length + 1), 0, below)
  }
  return made
}

const isDynamic = ({ team }: Place) => team.flags.strategy === "dynamic"

const adding = (roll: Dice, { letter, team }: Place): Step => {
  const id = roll.pick(idsOf(letter))
  const isInstance = team.flags.strategy === "dynamic"
  const child = isInstance ? { ...team.template, id } : worker(roll, id, roll.pick(["never", "any_significant"]))
  return { _tag: "add", supervisor: team.id, child, isInstance }
}

const step = (roll: Dice, places: ReadonlyArray<Place>): Step => {
  const kind = roll.below(20)
  const place = roll.pick(places)
  const ids = idsOf(place.letter)
  const id = roll.pick(ids)
  if (kind < 6) return { _tag: "die", supervisor: place.team.id, ends: [[id, roll.pick(ends)]] }
  if (kind < 8) {
    const some = ids.filter(() => roll.chance(0.5))
    return { _tag: "die", supervisor: place.team.id, ends: some.map((other) => [other, roll.pick(ends)] as const) }
  }
  if (kind < 12) {
    const planned = isDynamic(place) ? instanceStarts : starts
    return { _tag: "plan", id, starts: Array.from({ length: 1 + roll.below(4) }, () => roll.pick(planned)) }
  }
  if (kind < 15) return adding(roll, place)
  if (kind < 17) return { _tag: "pass", seconds: roll.pick([1, 1, 2, 3, 5, 11]) }
  const below = place.team.children.flatMap((child) => (child.type === "supervisor" ? child.id : []))
  return {
    _tag: roll.pick(["terminate", "restart", "delete"] as const),
    supervisor: place.team.id,
    id: roll.pick([...ids, ...below]),
    isInstance: isDynamic(place)
  }
}

export const scenario = (seed: number): Scenario => {
  const roll = dice(seed)
  const places: Array<Place> = []
  const top = team(roll, "top", "never", 0, places)
  const filling = places.filter(isDynamic).flatMap((place) => [adding(roll, place), adding(roll, place)])
  const steps = [...filling, ...Array.from({ length: 16 }, () => step(roll, places))]
  return { top, steps, dynamic: new Set(places.filter(isDynamic).map(({ letter }) => letter)) }
}

// In Erlang.

const reason: { readonly [end in End]: string } = {
  normal: "normal",
  shutdown: "shutdown",
  shutdown_term: "{shutdown, some_info}",
  abnormal: "abnormal",
  kill: "kill"
}

const list = (terms: ReadonlyArray<string>) => `[${terms.join(", ")}]`

const erlangFlags = ({ autoShutdown, intensity, period, strategy }: Flags) =>
  `#{strategy => ${strategy === "dynamic" ? "simple_one_for_one" : strategy}, intensity => ${intensity}, period => ${period}, auto_shutdown => ${autoShutdown}}`

const erlangWorker = (node: Worker, id: string) => {
  const shutdown = node.shutdown === "default" ? 5000 : node.shutdown === "brutal" ? "brutal_kill" : node.shutdown
  return `{worker, ${id}, ${node.restart}, ${node.significant}, ${shutdown}, ${node.stops}}`
}

const erlangChildren = ({ children, flags, template }: Team): string =>
  list(flags.strategy === "dynamic" ? [erlangWorker(template, "template")] : children.map(erlangNode))

const erlangNode = (node: Node): string =>
  node.type === "worker"
    ? erlangWorker(node, node.id)
    : `{supervisor, ${node.id}, ${node.restart}, ${node.significant}, ${erlangFlags(node.flags)}, ${erlangChildren(node)}}`

const erlangStep = (step: Step): string => {
  switch (step._tag) {
    case "plan":
      return `{plan, ${step.id}, ${list(step.starts)}}`
    case "die":
      return `{die, ${step.supervisor}, ${list(step.ends.map(([id, end]) => `{${id}, ${reason[end]}}`))}}`
    case "add":
      return `{add, ${step.supervisor}, ${step.isInstance ? step.child.id : erlangWorker(step.child, step.child.id)}}`
    case "pass":
      return `{pass, ${step.seconds}}`
    default:
      return `{${step._tag === "terminate" && step.isInstance ? "terminate_instance" : step._tag}, ${step.supervisor}, ${step.id}}`
  }
}

export const toErlang = ({ steps, top }: Scenario): string =>
  `{${erlangFlags(top.flags)},\n ${erlangChildren(top)},\n ${list(steps.map(erlangStep))}}.\n`

/** A line in which the instances of one dynamic supervisor, which stop together, stand in the order of their names. */
export const normal = ({ dynamic }: Scenario, line: string): string => {
  const [result, lived = "", tree] = line.split(" | ")
  const events = lived.split(", ")
  const letterOf = (event: string) => (event.startsWith("stop ") && dynamic.has(event[5]!) ? event[5] : undefined)
  let from = 0
  for (let to = 1; to <= events.length; to++) {
    const letter = letterOf(events[from]!)
    if (letter !== undefined && to < events.length && letterOf(events[to]!) === letter) continue
    events.splice(from, to - from, ...events.slice(from, to).toSorted())
    from = to
  }
  return [result, events.join(", "), tree].join(" | ")
}
