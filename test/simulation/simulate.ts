/**
 * npm run simulate -- --seed 7 [--seeds 100] [--minutes 60] [--jobs 2]
 *
 * Seeds above 10,000 have a board (15,000: its hooks come at all times), above 20,000 bytes (22,000: ACP
 * and wild bytes; 25,000: a keeper holds the programs; 27,500: and does nothing wrong), above 30,000 model APIs (38,000: accounts that are away, and fallbacks), above 40,000 days (for `--minutes 1440`; 50,000: messages are due at certain times), above 60,000 what is
 * rare (61,000: one mishap while many commands are open).
 *
 *     --trace             every event of the world
 *     --until STEP        ends at this step, at a `debugger` statement, with the trace
 *     --shrink PROMISE    the fewest commands and faults that still break it, and the trace of that
 *     --with JSON         what is different from the seed's own swarm; --swarm shows the swarm
 *     --reached --logged  what was reached and logged, with counts; cells that no world came to
 *     --stop              ends with the first seed that fails
 *     --crash-points      a busy minute of each seed, cut at each of its boundaries (--every N: at some of them;
 *                         --at N: at that one; --again: killed a few more times after it)
 */
import { parseArgs } from "node:util"
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads"
import * as Coverage from "./Coverage.ts"
import * as CrashPoints from "./CrashPoints.ts"
import { noCells } from "./checks/Tables.ts"
import { shrink } from "./Shrink.ts"
import { type Result, simulate } from "./Simulation.ts"
import { type Swarm, swarmOf } from "./Swarm.ts"

const { values } = parseArgs({
  args: isMainThread ? process.argv.slice(2) : (workerData as { readonly args: Array<string> }).args,
  options: {
    seed: { type: "string", default: "1" },
    seeds: { type: "string", default: "1" },
    minutes: { type: "string", default: "10" },
    jobs: { type: "string", default: "1" },
    trace: { type: "boolean", default: false },
    until: { type: "string" },
    swarm: { type: "boolean", default: false },
    reached: { type: "boolean", default: false },
    logged: { type: "boolean", default: false },
    stop: { type: "boolean", default: false },
    shrink: { type: "string" },
    "crash-points": { type: "boolean", default: false },
    at: { type: "string" },
    every: { type: "string", default: "1" },
    again: { type: "boolean", default: false },
    with: { type: "string", default: "{}" }
  }
})

const first = Number(values.seed)
const seeds = Number(values.seeds)
const minutes = Number(values.minutes)
const jobs = Number(values.jobs)
const swarm = (seed: number): Swarm => ({ ...swarmOf(seed), ...JSON.parse(values.with) })
const optionsOf = (seed: number) => ({ seed, swarm: swarm(seed), stormy: minutes * 60_000 })

const one = (seed: number): Result => {
  const until = values.until === undefined ? {} : { until: Number(values.until) }
  return simulate({ ...optionsOf(seed), trace: values.trace || values.until !== undefined, ...until })
}

const showBroken = ({ violations }: Pick<Result, "violations">, most: number): void => {
  for (const { at, detail, promise, step } of violations.slice(0, most))
    console.log(`  ${(at / 1000).toFixed(3)} s, step ${step}: ${promise}: ${detail}`)
}

const shrunk = (promise: string): void => {
  const { after, before, options, result, tried } = shrink(optionsOf(first), promise)
  console.log(simulate({ ...options, trace: true }).lines.join("\n"))
  console.log(`${before} commands and faults → ${after} in ${tried} tries: ${result.happened.join(" ")}`)
  console.log(`what is left of the world: ${JSON.stringify(options.swarm)}`)
  showBroken(result, Infinity)
  process.exitCode = 1
}

/** A busy minute, cut at each boundary. */
const cutAll = (): void => {
  const began = performance.now()
  const tally = CrashPoints.cutAll({ seed: first, seeds, every: Number(values.every), again: values.again }, (line) =>
    console.log(line)
  )
  for (const line of tally.lines) console.log(`  ${line}`)
  const seconds = ((performance.now() - began) / 1000).toFixed(0)
  console.log(`${tally.points} points, ${tally.kills} kills, ${tally.failures.length} promises broken, ${seconds} s`)
  process.exitCode = tally.failures.length === 0 ? 0 : 1
}

/** The same, cut at one. */
const cutOne = (at: number): void => {
  const { cuts, result } = CrashPoints.cut(first, at, { again: values.again, trace: values.trace })
  if (result.lines.length > 0) console.log(result.lines.join("\n"))
  for (const { at, boundary, number } of cuts) console.log(`killed ${number} ${boundary} at ${at.toFixed(0)} ms`)
  showBroken(result, Infinity)
  process.exitCode = result.violations.length === 0 ? 0 : 1
}

/** All worlds together. */
class Sum {
  failed = 0
  private worlds = 0
  private simulated = 0
  private steps = 0
  private runes = 0
  private readonly cells = noCells()
  private readonly promises = new Map<string, number>()
  private readonly reached = new Map<string, number>()
  private readonly logged = new Map<string, number>()

  add(result: Result): void {
    const { cells, commands, faults, hash, lives, messages, runes, seed, simulated, steps, violations } = result
    this.worlds += 1
    this.simulated += simulated
    this.steps += steps
    this.runes += runes
    Coverage.add(this.cells, cells)
    count(this.reached, result.reached)
    count(this.logged, result.logged)
    if (violations.length > 0) this.failed += 1
    count(this.promises, new Map(violations.map(({ promise }) => [promise, 1])))
    if (values.swarm) console.log(JSON.stringify(swarm(seed)))
    if (result.lines.length > 0) console.log(result.lines.join("\n"))
    console.log(
      `seed ${seed} ${hash} ${(simulated / 60_000).toFixed(1)} min ${steps} steps ${runes} runes ${lives} lives ` +
        `${messages} messages ${commands} commands ${faults} faults${violations.length === 0 ? "" : " FAILED"}`
    )
    showBroken(result, 4)
    if (violations.length > 0)
      console.log(`  again: npm run simulate -- --seed ${seed} --minutes ${minutes} --with '${values.with}' --trace`)
  }

  show(seconds: number): void {
    const rate = (what: number) => (what / seconds).toFixed(0)
    // of all threads, from the process's own beginning: a busy machine does not change it much
    const { system, user } = process.cpuUsage()
    const processor = (user + system) / 1_000_000
    console.log(
      `${this.worlds} seeds, ${this.failed} failed; ${(this.simulated / 3_600_000).toFixed(1)} h simulated in ` +
        `${seconds.toFixed(1)} s: ${rate(this.simulated / 1000)} × real time, ${rate(this.steps)} steps/s, ${rate(this.runes)} runes/s; ` +
        `${processor.toFixed(1)} s of processor: ${(this.simulated / 1000 / processor).toFixed(0)} × real time`
    )
    const sorted = (counts: ReadonlyMap<string, number>) => [...counts].toSorted((a, b) => b[1] - a[1])
    for (const [promise, times] of sorted(this.promises)) console.log(`  ${times} × ${promise}`)
    if (values.logged) for (const [what, times] of sorted(this.logged)) console.log(`  logged ${times} × ${what}`)
    if (!values.reached) return
    for (const [what, times] of [...this.reached].toSorted()) console.log(`  reached ${times} × ${what}`)
    for (const { all, missing, name, reached } of [
      ...Coverage.coverage(this.cells),
      ...Coverage.sometimes(this.reached)
    ])
      console.log(
        `coverage ${name}: ${reached} of ${all}${missing.length === 0 ? "" : `; never: ${missing.join(", ")}`}`
      )
  }
}

const count = (into: Map<string, number>, from: ReadonlyMap<string, number>): void => {
  for (const [name, times] of from) into.set(name, (into.get(name) ?? 0) + times)
}

/** Every `jobs`-th seed, from this one. */
const share = (from: number): ReadonlyArray<number> =>
  Array.from({ length: seeds }, (_, n) => first + n).filter((seed) => (seed - first) % jobs === from)

const main = async (): Promise<void> => {
  const sum = new Sum()
  const began = performance.now()
  if (jobs === 1) {
    for (const seed of share(0)) {
      sum.add(one(seed))
      if (values.stop && sum.failed > 0) break
    }
  } else {
    const workers = Array.from({ length: jobs }, (_, from) => {
      const worker = new Worker(new URL(import.meta.url), { workerData: { args: process.argv.slice(2), from } })
      worker.on("message", (result: Result) => {
        sum.add(result)
        if (values.stop && sum.failed > 0) workers.forEach((one) => void one.terminate())
      })
      return worker
    })
    await Promise.all(workers.map((worker) => new Promise((resolve) => worker.once("exit", resolve))))
  }
  sum.show((performance.now() - began) / 1000)
  process.exitCode = sum.failed === 0 ? 0 : 1
}

if (!isMainThread) {
  for (const seed of share((workerData as { readonly from: number }).from)) parentPort!.postMessage(one(seed))
} else if (values.shrink !== undefined) shrunk(values.shrink)
else if (values.at !== undefined) cutOne(Number(values.at))
else if (values["crash-points"]) cutAll()
else await main()
