/**
 * The comparison of agentd's supervisor with a real OTP, run by hand.
 *
 *     npm run otp -- record [COUNT]        asks the installed Erlang, and records its answers
 *     npm run otp -- check                 asks it again: are the recorded answers still the same?
 *     npm run otp -- compare FROM COUNT    runs other scenarios on both supervisors
 */
import { type Recorded, difference, hashOf, read, seedsOf, write } from "../../test/world/supervision/otp/Recorded.ts"
import { replay } from "../../test/world/supervision/otp/Replay.ts"
import { normal, scenario, toErlang } from "../../test/world/supervision/otp/Scenario.ts"
import * as Otp from "./Otp.ts"

const usage = "npm run otp -- record [COUNT] | check | compare FROM COUNT"

const answersTo = (seeds: ReadonlyArray<number>): Recorded["answers"] => {
  const scenarios = seeds.map(scenario)
  return Otp.ask(scenarios.map(toErlang)).map((lines, n) => lines.map((line) => normal(scenarios[n]!, line)))
}

const record = (count: number): string => {
  const first = 1
  const answers = answersTo(seedsOf(first, count))
  const bytes = write({ otp: Otp.release(), first, hash: hashOf(first, count), answers })
  return `recorded ${answers.length} scenarios, ${bytes} bytes`
}

/** Number of scenarios that differ; the first ten are printed. */
const differing = (
  seeds: ReadonlyArray<number>,
  ours: (n: number) => ReadonlyArray<string>,
  theirs: Recorded["answers"]
): number => {
  let count = 0
  for (const [n, seed] of seeds.entries()) {
    const different = difference(seed, ours(n), theirs[n] ?? [])
    if (different === undefined) continue
    count++
    if (count <= 10) console.log(different)
  }
  return count
}

const check = (): string => {
  const { answers, first, hash, otp } = read()
  if (hashOf(first, answers.length) !== hash) {
    process.exitCode = 1
    return "the generator makes other scenarios than those that were recorded: record again"
  }
  const seeds = seedsOf(first, answers.length)
  const differ = differing(seeds, (n) => answers[n]!, answersTo(seeds))
  if (differ > 0) process.exitCode = 1
  return `${differ} of ${answers.length} answers of OTP ${otp} differ from those of ${Otp.release()}`
}

const compare = (from: number, count: number): string => {
  const seeds = seedsOf(from, count)
  const differ = differing(seeds, (n) => replay(scenario(seeds[n]!)), answersTo(seeds))
  if (differ > 0) process.exitCode = 1
  return `${differ} of ${count} scenarios differ`
}

const [verb, ...numbers] = process.argv.slice(2)
const [one, two] = numbers.map(Number)
if (!Otp.isHere()) {
  console.error("There is no escript here: install Erlang (Debian: erlang-base)")
  process.exit(69)
}
if (verb === "record") console.log(record(one ?? 5_000))
else if (verb === "check") console.log(check())
else if (verb === "compare" && one !== undefined && two !== undefined) console.log(compare(one, two))
else {
  console.error(usage)
  process.exit(64)
}
