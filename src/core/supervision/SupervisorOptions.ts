/** SupervisorOptions: the options of a supervisor and their defaults, validated before any child is started. */
import { Duration, Effect } from "effect"
import type * as Backoff from "./Backoff.ts"
import type { ChildSpec } from "./Child.ts"
import { InvalidSpec } from "./SupervisorError.ts"
import type { TraceEvent } from "./SupervisorTrace.ts"

export type Strategy =
  /** Only the child that ended is restarted. */
  | "one_for_one"
  /** All other children are stopped, and then all children are started again. */
  | "one_for_all"
  /** The children that were started after the ended child are stopped; then the ended child and they are restarted. */
  | "rest_for_one"
  /**
   * For children that are added and removed often (`simple_one_for_one` in OTP). When a child ends, its specification
   * is deleted. When the supervisor ends, all children are stopped in parallel.
   */
  | "dynamic"

export type AutoShutdown = "never" | "any_significant" | "all_significant"

export interface Options<R = never> {
  readonly name: string
  /** Restart strategy. Default: `one_for_one`. */
  readonly strategy?: Strategy
  /** Maximum number of restarts within `period`. One more restart ends the supervisor. Default: 1. */
  readonly intensity?: number
  /** Length of the sliding time window in which restarts are counted. Default: 5 s. */
  readonly period?: Duration.Input
  /**
   * Delay before the second and each later restart of a child within `period`. Each child has its own delay; siblings
   * that were stopped together with the child wait until it starts. Default: 20 ms, doubling up to 2 s. `none`: restart
   * immediately, as OTP does.
   */
  readonly backoff?: Backoff.Policy | "none"
  /** Whether the supervisor ends itself when any, or all, of its significant children have ended. Default: `never`. */
  readonly autoShutdown?: AutoShutdown
  /**
   * Initial children. They are started, in this order, before `make` returns. If a start fails, the other children are
   * stopped and `make` fails.
   */
  readonly children?: ReadonlyArray<ChildSpec<R>>
  /** Maximum number of children. Default: 100,000. */
  readonly maxChildren?: number
  /** Maximum number of trace events in memory. Default: 64. */
  readonly traceCapacity?: number
  /** Called for each trace event when it happens; must be fast. If it throws, the error is logged and ignored. */
  readonly onTrace?: (event: TraceEvent, supervisor: string) => void
}

/** The options, with defaults for those that were omitted. `period` is in nanoseconds. */
export interface Settings {
  readonly strategy: Strategy
  readonly intensity: number
  readonly period: bigint
  readonly backoff: Backoff.Policy | "none"
  readonly autoShutdown: AutoShutdown
  readonly maxChildren: number
}

export const defaultBackoff: Backoff.Policy = { base: 20, factor: 2, cap: 2_000, jitter: 0 }

const strategies: ReadonlyArray<string> = ["one_for_one", "one_for_all", "rest_for_one", "dynamic"]
const autoShutdowns: ReadonlyArray<string> = ["never", "any_significant", "all_significant"]
const restartTypes: ReadonlyArray<string> = ["permanent", "transient", "temporary"]

const isWait = (input: Duration.Input) => {
  const wait = Duration.fromInput(input)
  return wait._tag === "Some" && !Duration.isNegative(wait.value)
}

const isShutdown = (shutdown: NonNullable<ChildSpec["shutdown"]>) =>
  shutdown === "brutal" || shutdown === "infinity" || isWait(shutdown)

export const settings = <R>(options: Options<R>): Settings | InvalidSpec => {
  const invalid = (problem: string) => new InvalidSpec({ supervisor: options.name, child: "", problem })
  const { strategy = "one_for_one", intensity = 1, autoShutdown = "never", maxChildren = 100_000 } = options
  const period = Duration.fromInput(options.period ?? "5 seconds")
  if (!strategies.includes(strategy)) return invalid(`strategy ${strategy} is not one of ${strategies.join(", ")}`)
  if (!Number.isInteger(intensity) || intensity < 0)
    return invalid(`intensity ${intensity} is not a number of restarts`)
  if (!autoShutdowns.includes(autoShutdown)) {
    return invalid(`autoShutdown ${autoShutdown} is not one of ${autoShutdowns.join(", ")}`)
  }
  if (period._tag === "None") return invalid(`period ${String(options.period)} is not a duration`)
  const nanos = Duration.toNanos(period.value)
  if (nanos._tag === "None" || nanos.value <= 0n) return invalid("period must be finite and longer than 0")
  const { backoff = defaultBackoff } = options
  const isPolicy = backoff === "none" || (backoff.base >= 0 && backoff.cap >= 0 && backoff.factor > 0)
  if (!isPolicy) return invalid("backoff needs a base and a cap that are not negative, and a positive factor")
  const ids = new Set<string>()
  for (const child of options.children ?? []) {
    const problem = ids.has(child.id) ? "another child has this id; ids must be unique" : problemOf(child, autoShutdown)
    if (problem !== undefined) return new InvalidSpec({ supervisor: options.name, child: String(child.id), problem })
    ids.add(child.id)
  }
  if (ids.size > maxChildren) return invalid(`${ids.size} children exceed maxChildren, which is ${maxChildren}`)
  return { strategy, intensity, period: nanos.value, backoff, autoShutdown, maxChildren }
}

/** Returns the error in a child's specification; undefined if the specification is valid. */
export const problemOf = <R>(child: ChildSpec<R>, autoShutdown: AutoShutdown): string | undefined => {
  const { restart = "permanent", shutdown, type = "worker" } = child
  if (typeof child.id !== "string" || child.id === "") return "a child needs an id"
  if (!Effect.isEffect(child.start) && typeof child.start !== "function") {
    return "start must be an effect that returns a loop, a handle or ignore, or a function that returns a handle or ignore"
  }
  if (!restartTypes.includes(restart)) return `restart ${restart} is not one of ${restartTypes.join(", ")}`
  if (type !== "worker" && type !== "supervisor") return `type ${String(type)} is neither worker nor supervisor`
  if (shutdown !== undefined && !isShutdown(shutdown)) {
    return `shutdown ${String(shutdown)} is neither a duration nor infinity nor brutal`
  }
  if (child.initTimeout !== undefined && !isWait(child.initTimeout)) {
    return `initTimeout ${String(child.initTimeout)} is not a duration`
  }
  if (child.significant !== true) return undefined
  if (restart === "permanent") return "a permanent child cannot be significant; make it transient or temporary"
  if (autoShutdown === "never")
    return "significant has no effect while the supervisor's autoShutdown is never; set autoShutdown"
  return undefined
}
