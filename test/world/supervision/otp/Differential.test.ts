/**
 * The same random supervision trees, and the same things happening to them, through
 * a real OTP and through ours: starts, stops, results and trees must be the same, step
 * by step. OTP's answers to 5,000 scenarios are recorded, so that the comparison runs
 * everywhere; where an Erlang is installed it is asked about others, too:
 * `OTP_SEEDS=from,count` chooses them.
 */
import { describe, expect, it } from "@effect/vitest"
import * as Otp from "../../../../scripts/otp/Otp.ts"
import { difference, hashOf, read, seedsOf } from "./Recorded.ts"
import { replay } from "./Replay.ts"
import { type Node, scenario, type Scenario, type Team, toErlang, type Worker } from "./Scenario.ts"

const recorded = read()
const { answers, first, hash, otp } = recorded

const [from = first + answers.length, count = 200] = (process.env["OTP_SEEDS"] ?? "")
  .split(",")
  .filter(Boolean)
  .map(Number)

describe("Supervisor against OTP", () => {
  it("the recorded scenarios are those that the generator makes", () =>
    expect(hashOf(first, answers.length), "record again: npm run otp -- record").toBe(hash))

  it(`${answers.length} random trees live as they did in OTP ${otp}`, () => {
    for (const [n, seed] of seedsOf(first, answers.length).entries()) {
      expect(difference(seed, replay(scenario(seed)), answers[n]!)).toBeUndefined()
    }
  })

  it.skipIf(!Otp.isHere())(`${count} more live as they do in the OTP that is here`, () => {
    const seeds = seedsOf(from, count)
    const theirs = Otp.ask(seeds.map((seed) => toErlang(scenario(seed))))
    expect(theirs.length).toBe(count)
    for (const [n, seed] of seeds.entries()) {
      expect(difference(seed, replay(scenario(seed)), theirs[n]!)).toBeUndefined()
    }
  })
})

describe("the comparison sees a supervisor that breaks a rule", () => {
  const workers = (change: (worker: Worker) => Worker) => (node: Team) => ({
    ...node,
    template: change(node.template),
    children: node.children.map((child): Node => (child.type === "worker" ? change(child) : child))
  })
  const flags = (change: (flags: Team["flags"]) => Partial<Team["flags"]>) => (node: Team) => ({
    ...node,
    flags: { ...node.flags, ...change(node.flags) }
  })
  /** The tree as a supervisor with that fault would run it. */
  const faults: { readonly [fault: string]: (node: Team) => Team } = {
    "one restart too many": flags(({ intensity }) => ({ intensity: intensity + 1 })),
    "a window that is a second too long": flags(({ period }) => ({ period: period + 1 })),
    "a window that is a second too short": flags(({ period }) => ({ period: Math.max(0.5, period - 1) })),
    "one_for_all as one_for_one": flags(({ strategy }) =>
      strategy === "one_for_all" ? { strategy: "one_for_one" } : {}
    ),
    "rest_for_one as one_for_all": flags(({ strategy }) =>
      strategy === "rest_for_one" ? { strategy: "one_for_all" } : {}
    ),
    "any significant child as all": flags(({ autoShutdown }) =>
      autoShutdown === "any_significant" ? { autoShutdown: "all_significant" } : {}
    ),
    "a brutal kill that asks first": workers((worker) =>
      worker.shutdown === "brutal" ? { ...worker, shutdown: "default" } : worker
    ),
    "a grace that is not given": workers((worker) =>
      worker.stops === "slowly" ? { ...worker, shutdown: "brutal" } : worker
    ),
    "transient as permanent": workers((worker) =>
      worker.restart === "transient" && !worker.significant ? { ...worker, restart: "permanent" } : worker
    )
  }
  const everywhere = (change: (node: Team) => Team, node: Team): Team => {
    const changed = change(node)
    const children = changed.children.map((child) => (child.type === "worker" ? child : everywhere(change, child)))
    return { ...changed, children }
  }
  for (const [fault, change] of Object.entries(faults)) {
    it(fault, () => {
      const broken = (chosen: Scenario) => replay({ ...chosen, top: everywhere(change, chosen.top) })
      const seen = seedsOf(first, 500).find(
        (seed, n) => difference(seed, broken(scenario(seed)), answers[n]!) !== undefined
      )
      expect(seen).toBeDefined()
    })
  }
})
