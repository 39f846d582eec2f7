/**
 * node test/simulation/simulate.ts --seed 7 [--seeds 100] [--minutes 60] [--trace]
 *
 * With --crash-points: a busy minute of each seed, cut at each of its boundaries (`--every N`: at some of them);
 * with --crash-points --at N: at that one.
 */
import { parseArgs } from "node:util"
import * as Coverage from "./Coverage.ts"
import * as CrashPoints from "./CrashPoints.ts"
import { noCells } from "./checks/Tables.ts"
import { shrink } from "./Shrink.ts"
import { simulate } from "./Simulation.ts"
import { type Swarm, swarmOf } from "./Swarm.ts"

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    seeds: { type: "string", default: "1" },
    minutes: { type: "string", default: "60" },
    trace: { type: "boolean", default: false },
    swarm: { type: "boolean", default: false },
    reached: { type: "boolean", default: false },
    logged: { type: "boolean", default: false },
    /** Ends with the first seed that fails. */
    stop: { type: "boolean", default: false },
    shrink: { type: "string" },
    "crash-points": { type: "boolean", default: false },
    /** The one crash point. */
    at: { type: "string" },
    every: { type: "string", default: "1" },
    /** With --crash-points: kills a few more times after it. */
    again: { type: "boolean", default: false },
    /** What is different from the seed's own swarm, as JSON. */
    with: { type: "string", default: "{}" },
    /** Promises that are known to be broken: not counted. */
    known: { type: "string", default: "" }
  }
})

const first = Number(values.seed)
const swarm = (seed: number): Swarm => ({ ...swarmOf(seed), ...JSON.parse(values.with) })
const known = values.known.split(",").filter(Boolean)
if (values["crash-points"] && values.at === undefined) {
  const began = performance.now()
  const tally = CrashPoints.cutAll(
    { seed: first, seeds: Number(values.seeds), every: Number(values.every), again: values.again },
    (line) => console.log(line)
  )
  for (const line of tally.lines) console.log(`  ${line}`)
  const took = (performance.now() - began) / 1000
  console.log(
    `${tally.points} points, ${tally.kills} kills, ${tally.failures.length} promises broken, ${took.toFixed(0)} s`
  )
  process.exit(tally.failures.length === 0 ? 0 : 1)
}
if (values.at !== undefined) {
  const { cuts, result } = CrashPoints.cut(first, Number(values.at), { again: values.again, trace: values.trace })
  console.log(result.lines.join("\n"))
  for (const { at, boundary, number } of cuts) console.log(`killed ${number} ${boundary} at ${at.toFixed(0)} ms`)
  for (const { at, detail, promise } of result.violations) console.log(`  ${at.toFixed(0)} ms: ${promise}: ${detail}`)
  process.exit(result.violations.length === 0 ? 0 : 1)
}
if (values.shrink !== undefined) {
  const { after, before, options, result, tried } = shrink(
    { seed: first, swarm: swarm(first), stormy: Number(values.minutes) * 60_000 },
    values.shrink
  )
  const traced = simulate({ ...options, trace: true })
  console.log(traced.lines.join("\n"))
  console.log(`${before} commands and faults → ${after} in ${tried} tries: ${result.happened.join(" ")}`)
  console.log(`what is left of the world: ${JSON.stringify(options.swarm)}`)
  for (const { at, detail, promise } of result.violations)
    console.log(`  ${(at / 1000).toFixed(3)} s: ${promise}: ${detail}`)
  process.exit(1)
}
const began = performance.now()
let [simulated, steps, runes, failed] = [0, 0, 0, 0]
const promises = new Map<string, number>()
const reached = new Map<string, number>()
const cells = noCells()
const logged = new Map<string, number>()
const add = (into: Map<string, number>, from: ReadonlyMap<string, number>) => {
  for (const [name, count] of from) into.set(name, (into.get(name) ?? 0) + count)
}
for (let seed = first; seed < first + Number(values.seeds); seed++) {
  const at = performance.now()
  const all = simulate({ seed, swarm: swarm(seed), stormy: Number(values.minutes) * 60_000, trace: values.trace })
  const result = {
    ...all,
    violations: all.violations.filter(({ promise }) => !known.some((one) => promise.startsWith(one)))
  }
  const took = performance.now() - at
  if (values.swarm) console.log(JSON.stringify(swarm(seed)))
  if (values.trace) console.log(result.lines.join("\n"))
  simulated += result.simulated
  steps += result.steps
  runes += result.runes
  add(reached, result.reached)
  Coverage.add(cells, result.cells)
  add(logged, result.logged)
  console.log(
    `seed ${seed} ${result.hash} ${(result.simulated / 60_000).toFixed(1)} min ${result.steps} steps ${result.runes} runes ` +
      `${result.lives} lives ${result.messages} messages ${result.commands} commands ${result.faults} faults ${took.toFixed(0)} ms` +
      (result.violations.length === 0 ? "" : " FAILED")
  )
  if (result.violations.length > 0) failed += 1
  for (const promise of new Set(result.violations.map((one) => one.promise)))
    promises.set(promise, (promises.get(promise) ?? 0) + 1)
  for (const { at, detail, promise, step } of result.violations.slice(0, 4))
    console.log(`  ${(at / 1000).toFixed(3)} s, step ${step}: ${promise}: ${detail}`)
  if (values.stop && failed > 0) break
}
const took = (performance.now() - began) / 1000
console.log(
  `${values.seeds} seeds, ${failed} failed; ${(simulated / 3_600_000).toFixed(1)} h simulated in ${took.toFixed(1)} s: ` +
    `${(simulated / 1000 / took).toFixed(0)} × real time, ${(steps / took).toFixed(0)} steps/s, ${(runes / took).toFixed(0)} runes/s`
)
for (const [promise, count] of [...promises].toSorted((a, b) => b[1] - a[1])) console.log(`  ${count} × ${promise}`)
if (values.reached) for (const [what, count] of [...reached].toSorted()) console.log(`  reached ${count} × ${what}`)
if (values.reached) {
  for (const { all, missing, name, reached: count } of Coverage.coverage(cells))
    console.log(`coverage ${name}: ${count} of ${all}${missing.length === 0 ? "" : `; never: ${missing.join(", ")}`}`)
}
if (values.logged)
  for (const [what, count] of [...logged].toSorted((a, b) => b[1] - a[1])) console.log(`  logged ${count} × ${what}`)
process.exitCode = failed === 0 ? 0 : 1
