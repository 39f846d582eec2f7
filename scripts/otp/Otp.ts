/**
 * Otp: the real supervisor of an Erlang that is installed here (Debian's
 * `erlang-base`), asked by `supervisor.escript` to live through scenarios.
 */
import { execFileSync, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const script = join(import.meta.dirname, "supervisor.escript")

export const isHere = (): boolean => spawnSync("escript", ["--version"]).error === undefined

/** Release and library, as `25 stdlib-4.2`. */
export const release = (): string => execFileSync("escript", [script, "--release"], { encoding: "utf8" }).trim()

/** The lines of each scenario. */
export const ask = (scenarios: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> => {
  const folder = mkdtempSync(join(tmpdir(), "agentd-otp-"))
  try {
    writeFileSync(join(folder, "scenarios"), scenarios.join(""))
    const output = execFileSync("escript", [script, join(folder, "scenarios")], {
      encoding: "utf8",
      maxBuffer: 2 ** 30
    })
    return output
      .split("end\n")
      .slice(0, -1)
      .map((block) => block.trimEnd().split("\n"))
  } finally {
    rmSync(folder, { recursive: true })
  }
}
