/**
 * Scenario: a random supervision tree and what happens to it, as data; how it
 * reads in Erlang, and how it runs through our supervisor.
 */
import { Effect, type Scope } from "effect"
import type { ChildSpec, RestartType } from "../../../src/supervision/Child.ts"
import { make, type Supervisor } from "../../../src/supervision/Supervisor.ts"
import type { AutoShutdown, Options, Strategy } from "../../../src/supervision/SupervisorOptions.ts"
import { type End, Lab, settled, type Start } from "./Lab.ts"

interface Flags {
  readonly strategy: Strategy
  readonly intensity: number
  readonly autoShutdown: AutoShutdown
}

type Node =
  | { readonly type: "worker"; readonly id: string; readonly restart: RestartType; readonly significant: boolean }
  | {
      readonly type: "supervisor"
      readonly id: string
      readonly restart: RestartType
      readonly significant: boolean
      readonly flags: Flags
      readonly children: ReadonlyArray<Node>
    }

type Step =
  | { readonly _tag: "plan"; readonly id: string; readonly starts: ReadonlyArray<Start> }
  | { readonly _tag: "die"; readonly ends: ReadonlyArray<readonly [string, End]> }
  | { readonly _tag: "add"; readonly supervisor: string; readonly child: Node }
  | { readonly _tag: "terminate" | "restart" | "delete"; readonly supervisor: string; readonly id: string }

export interface Scenario {
  readonly flags: Flags
  readonly children: ReadonlyArray<Node>
  /** What the instances of a dynamic supervisor have in common. */
  readonly template: { readonly restart: RestartType; readonly significant: boolean }
  readonly steps: ReadonlyArray<Step>
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

const workers = ["a", "b", "c", "d", "e", "f"]
const strategies: ReadonlyArray<Strategy> = ["one_for_one", "one_for_all", "rest_for_one"]
const ends: ReadonlyArray<End> = ["normal", "shutdown", "shutdown_term", "abnormal", "abnormal", "abnormal"]
const starts: ReadonlyArray<Start> = ["ok", "ok", "error", "error", "ignore"]
/** OTP keeps an instance that answers ignore to its restart as a child without a pid; ours is forgotten. */
const dynamicStarts = starts.filter((start) => start !== "ignore")

const flags = (roll: Dice, strategy: Strategy): Flags => ({
  strategy,
  intensity: roll.below(6),
  autoShutdown: roll.pick(["never", "never", "any_significant", "all_significant"])
})

const policy = (roll: Dice, autoShutdown: AutoShutdown) => {
  const restart = roll.pick<RestartType>(["permanent", "permanent", "transient", "temporary"])
  return { restart, significant: restart !== "permanent" && autoShutdown !== "never" && roll.chance(0.5) }
}

const step = (
  roll: Dice,
  supervisors: ReadonlyArray<string>,
  starts: ReadonlyArray<Start>,
  child: (id: string) => Node
): Step => {
  const kind = roll.below(10)
  const id = roll.pick(workers)
  const supervisor = roll.pick(supervisors)
  if (kind < 3) return { _tag: "die", ends: [[id, roll.pick(ends)]] }
  // At the same moment only under one supervisor: which of two acts first is nobody's promise.
  if (kind < 4 && supervisors.length === 1) {
    const others = workers.filter(() => roll.chance(0.4))
    return { _tag: "die", ends: others.map((other) => [other, roll.pick(ends)] as const) }
  }
  if (kind < 7) return { _tag: "plan", id, starts: Array.from({ length: 1 + roll.below(4) }, () => roll.pick(starts)) }
  if (kind < 8) return { _tag: "add", supervisor, child: child(id) }
  return {
    _tag: roll.pick(["terminate", "restart", "delete"] as const),
    supervisor,
    id: roll.pick([...workers, "inner"])
  }
}

export const scenario = (seed: number): Scenario => {
  const roll = dice(seed)
  const dynamic = roll.chance(0.2)
  const top = flags(roll, dynamic ? "dynamic" : roll.pick(strategies))
  const template = policy(roll, top.autoShutdown)
  const worker = (id: string, autoShutdown: AutoShutdown): Node => ({
    type: "worker",
    id,
    ...(dynamic ? template : policy(roll, autoShutdown))
  })
  const inner = flags(roll, roll.pick(strategies))
  const own = workers.slice(0, 1 + roll.below(3))
  const below = workers.slice(own.length, own.length + roll.below(3))
  const children: Array<Node> = dynamic ? [] : own.map((id) => worker(id, top.autoShutdown))
  const nested = !dynamic && roll.chance(0.5)
  if (nested) {
    const at = roll.below(children.length + 1)
    children.splice(at, 0, {
      type: "supervisor",
      id: "inner",
      ...policy(roll, top.autoShutdown),
      flags: inner,
      children: below.map((id) => worker(id, inner.autoShutdown))
    })
  }
  const steps = Array.from({ length: 14 }, (_, n) => {
    if (dynamic && n < 4) return { _tag: "add", supervisor: "top", child: worker(workers[n]!, "never") } as const
    return step(roll, nested ? ["top", "inner"] : ["top"], dynamic ? dynamicStarts : starts, (id) =>
      worker(id, roll.pick(["never", top.autoShutdown]))
    )
  })
  return { flags: top, children, template, steps }
}

// In Erlang.

const reason: { readonly [end in End]: string } = {
  normal: "normal",
  shutdown: "shutdown",
  shutdown_term: "{shutdown, some_info}",
  abnormal: "abnormal",
  kill: "killed"
}

const list = (terms: ReadonlyArray<string>) => `[${terms.join(", ")}]`

const erlangFlags = ({ strategy, intensity, autoShutdown }: Flags) =>
  `#{strategy => ${strategy === "dynamic" ? "simple_one_for_one" : strategy}, intensity => ${intensity}, period => 3600, auto_shutdown => ${autoShutdown}}`

const erlangNode = (node: Node): string => {
  const common = `${node.type}, ${node.id}, ${node.restart}, ${node.significant}`
  return node.type === "worker"
    ? `{${common}}`
    : `{${common}, ${erlangFlags(node.flags)}, ${list(node.children.map(erlangNode))}}`
}

const erlangStep = (step: Step, dynamic: boolean): string => {
  switch (step._tag) {
    case "plan":
      return `{plan, ${step.id}, ${list(step.starts)}}`
    case "die":
      return `{die, ${list(step.ends.map(([id, end]) => `{${id}, ${reason[end]}}`))}}`
    case "add":
      return `{add, ${step.supervisor}, ${dynamic ? step.child.id : erlangNode(step.child)}}`
    case "terminate":
      return `{${dynamic ? "terminate_instance" : "terminate"}, ${step.supervisor}, ${step.id}}`
    default:
      return `{${step._tag}, ${step.supervisor}, ${step.id}}`
  }
}

export const toErlang = ({ flags, children, template, steps }: Scenario): string => {
  const dynamic = flags.strategy === "dynamic"
  const nodes = dynamic ? [`{template, ${template.restart}, ${template.significant}}`] : children.map(erlangNode)
  return `{${erlangFlags(flags)},\n ${list(nodes)},\n ${list(steps.map((step) => erlangStep(step, dynamic)))}}.\n`
}

// Through ours.

const results: { readonly [tag: string]: string } = {
  AlreadyStarted: "already_started",
  AlreadyPresent: "already_present",
  Running: "running",
  Restarting: "restarting",
  NotFound: "not_found",
  SimpleOneForOne: "simple_one_for_one",
  StartFailed: "failed",
  InvalidSpec: "invalid",
  SupervisorEnded: "ended"
}

/** Runs a scenario and answers its lines, as the Erlang script prints them. */
export const run = Effect.fnUntraced(function* (scenario: Scenario) {
  const lab = new Lab()
  const supervisors = new Map<string, Supervisor>()

  const supervisor = (id: string, flags: Flags, children: ReadonlyArray<Node>) => {
    const options: Options = { name: id, ...flags, backoff: "none", period: "1 hour", children: children.map(spec) }
    return Effect.tap(make(options), (made) => Effect.sync(() => supervisors.set(id, made)))
  }
  const spec = (node: Node): ChildSpec =>
    node.type === "worker"
      ? lab.spec(node.id, node)
      : { ...node, start: Effect.suspend(() => supervisor(node.id, node.flags, node.children)) }

  const tree = (id: string): Effect.Effect<string> =>
    Effect.gen(function* () {
      const rows: Array<string> = []
      for (const child of yield* supervisors.get(id)!.whichChildren) {
        const running = child.type === "supervisor" && child.status === "running"
        rows.push(`${child.id}:${running ? yield* tree(child.id) : child.status}`)
      }
      const shown = scenario.flags.strategy === "dynamic" ? rows.toSorted() : rows
      return `${id}(${shown.join(" ")})`
    }).pipe(Effect.catchTag("SupervisorEnded", () => Effect.succeed("ended")))

  const perform = (step: Step): Effect.Effect<string> => {
    if (step._tag === "plan") return Effect.sync(() => (lab.plan(step.id, ...step.starts), "ok"))
    if (step._tag === "die") {
      return Effect.as(
        Effect.forEach(step.ends, ([id, end]) => (lab.alive(id) ? lab.end(id, end) : Effect.void)),
        "ok"
      )
    }
    const target = supervisors.get(step.supervisor)
    if (target === undefined) return Effect.succeed("ended")
    const action = (): Effect.Effect<unknown, { readonly _tag: string }> => {
      if (step._tag === "add") return target.startChild(spec(step.child))
      if (step._tag === "terminate") return target.terminateChild(step.id)
      return step._tag === "restart" ? target.restartChild(step.id) : target.deleteChild(step.id)
    }
    return Effect.match(action(), {
      onSuccess: (handle) =>
        handle === undefined && (step._tag === "add" || step._tag === "restart") ? "ignored" : "ok",
      onFailure: (error) => results[error._tag] ?? error._tag
    })
  }

  const lines: Array<string> = []
  const show = (result: string) =>
    Effect.gen(function* () {
      yield* settled
      lines.push(`${result} | ${lab.take().join(", ")} | ${supervisors.has("top") ? yield* tree("top") : "ended"}`)
    })

  const body: Effect.Effect<void, never, Scope.Scope> = Effect.gen(function* () {
    const started = yield* Effect.exit(supervisor("top", scenario.flags, scenario.children))
    yield* show(started._tag === "Success" ? "ok" : "failed")
    for (const step of scenario.steps) yield* show(yield* perform(step))
  })
  yield* Effect.scoped(body)
  yield* show("stopped")
  return lines
})
