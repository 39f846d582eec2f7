/**
 * Otp: runs scenarios on the real supervisor of an installed Erlang (Debian's `erlang-base`), by `supervisor.escript`.
 */
import { execFileSync, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const script = join(import.meta.dirname, "supervisor.escript")

export const isHere = (): boolean => spawnSync("escript", ["--version"]).error === undefined

/** Release and library version, such as `25 stdlib-4.2`. */
export const release = (): string => execFileSync("escript", [script, "--release"], { encoding: "utf8" }).trim()

/** Runs the scenarios; returns the output lines of each. */
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
