/**
 * The same random supervision trees, and the same things happening to them,
 * through a real OTP and through ours: starts, stops, results and trees must be
 * the same, step by step. `OTP_SEEDS=from,count` chooses the seeds.
 */
import { execFileSync, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { run, scenario, toErlang } from "./Scenario.ts"

const erlang = spawnSync("escript", ["--version"]).error === undefined
// oxlint-disable-next-line no-console
if (!erlang) console.warn("SKIPPED: no escript here, so nothing was compared with a real OTP (Debian: erlang-base)")

const [first = 1, count = 300] = (process.env["OTP_SEEDS"] ?? "").split(",").filter(Boolean).map(Number)

const otp = (text: string): ReadonlyArray<ReadonlyArray<string>> => {
  const folder = mkdtempSync(join(tmpdir(), "agentd-otp-"))
  try {
    writeFileSync(join(folder, "scenarios"), text)
    const script = new URL("../../../scripts/otp/supervisor.escript", import.meta.url).pathname
    const output = execFileSync("escript", [script, join(folder, "scenarios")], {
      encoding: "utf8",
      maxBuffer: 2 ** 28
    })
    return output
      .split("end\n")
      .slice(0, -1)
      .map((block) => block.trimEnd().split("\n"))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Which of several instances stops first is nobody's promise. */
const unordered = (line: string) =>
  line
    .split(/[|,]/)
    .map((part) => part.trim())
    .toSorted()
    .join(", ")

describe("Supervisor against OTP", () => {
  it.effect.skipIf(!erlang)(
    "random trees live through the same starts, stops and restarts",
    () =>
      Effect.gen(function* () {
        const seeds = Array.from({ length: count }, (_, n) => first + n)
        const theirs = otp(seeds.map((seed) => toErlang(scenario(seed))).join(""))
        expect(theirs.length).toBe(count)
        for (const [n, seed] of seeds.entries()) {
          const chosen = scenario(seed)
          const ours = yield* run(chosen)
          const normal = (line: string) => (chosen.flags.strategy === "dynamic" ? unordered(line) : line)
          expect(ours.map(normal), `OTP_SEEDS=${seed},1\n${toErlang(chosen)}`).toEqual(theirs[n]!.map(normal))
        }
      }),
    120_000
  )
})
