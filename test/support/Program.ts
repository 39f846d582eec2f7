/**
 * Program: agentd as people run it, for tests that start it as a process: the bundle, which starts in a third of the
 * time that src needs. It is built before the tests, unless the last build is newer than all its sources.
 *
 * Tests of behaviour that exists only when run from src name src/main.ts themselves.
 */
import { execFileSync } from "node:child_process"
import { readdirSync, statSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "..", "..")
const folder = join(root, "node_modules", ".cache", "program")

/** The bundle's main module. */
export const PROGRAM = join(folder, "agentd.mjs")
/** The entry that the launcher runs: it answers the commands that it can, and hands the others to PROGRAM. */
export const QUICK = join(folder, "quick.cjs")

const age = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Number.NEGATIVE_INFINITY

/** Builds the bundle if it is out of date. Vitest calls this function once, before all test files. */
export const setup = (): void => {
  const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).map((name) => join("src", name))
  const made = ["package.json", "package-lock.json", "scripts/bundle.ts", "src", ...sources]
  const newest = Math.max(...made.map((path) => age(join(root, path))))
  if (age(PROGRAM) > newest) return
  execFileSync(process.execPath, [join(root, "scripts", "bundle.ts"), folder], { cwd: root, stdio: "inherit" })
}
