/**
 * Shrink: the fewest commands and faults with which a seed still breaks the same promise.
 * Delta debugging (Zeller, 2002) over what happens from outside, then over what the world
 * is like. Each part of the world has dice of its own, so what is left goes on much as before.
 */
import { type Options, type Result, simulate } from "./Simulation.ts"
import { FAULTS, MOODS, type Swarm, swarmOf } from "./Swarm.ts"

export interface Shrunk {
  readonly options: Options
  readonly result: Result
  readonly tried: number
  readonly before: number
  readonly after: number
}

export const shrink = (options: Options, promise: string, budget = 400): Shrunk => {
  let tried = 0
  const breaks = (candidate: Options): Result | undefined => {
    tried += 1
    const result = simulate(candidate)
    return result.violations.some((one) => one.promise === promise) ? result : undefined
  }
  let best: Options = { ...options, swarm: options.swarm ?? swarmOf(options.seed) }
  let result = breaks(best)
  if (result === undefined) throw new Error(`seed ${options.seed} does not break: ${promise}`)
  const before = result.happened.length

  const tryTo = (change: Partial<Options>): boolean => {
    if (tried >= budget) return false
    const candidate = { ...best, ...change }
    const again = breaks(candidate)
    if (again === undefined) return false
    best = candidate
    result = again
    return true
  }

  // what comes after the break is of no interest
  const first = result.violations.find((one) => one.promise === promise)!
  if (first.at < best.stormy) tryTo({ stormy: first.at + 1_000 })

  const happenings = () => {
    let size = Math.ceil(result!.happened.length / 2)
    for (;;) {
      const before = result!.happened.length
      for (let at = 0; at < result!.happened.length;) {
        if (tried >= budget) return
        const some = result!.happened.slice(at, at + size)
        if (!tryTo({ without: new Set([...(best.without ?? []), ...some]) })) at += size
      }
      if (size === 1 && result!.happened.length === before) return
      size = Math.max(1, Math.floor(size / 2))
    }
  }
  happenings()

  const calmer = (swarm: Swarm): ReadonlyArray<Partial<Swarm>> => [
    { order: "fifo" },
    { maxOps: 2048 },
    { errands: undefined },
    ...(["failsStart", "diesEarly", "lies", "deaf", "stuck", "leaves", "meddles", "edits", "oddEnds"] as const)
      .filter((name) => swarm[name] > 0)
      .map((name) => ({ [name]: 0 })),
    ...FAULTS.filter((fault) => swarm.every[fault] > 0).map((fault) => ({ every: { ...swarm.every, [fault]: 0 } })),
    ...MOODS.filter((mood) => mood !== "answers" && swarm.turns[mood] > 0).map((mood) => ({
      turns: { ...swarm.turns, [mood]: 0 }
    }))
  ]
  for (const change of calmer(best.swarm!)) tryTo({ swarm: { ...best.swarm!, ...change } })
  happenings()
  return { options: best, result, tried, before, after: result.happened.length }
}
