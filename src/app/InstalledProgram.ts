/**
 * InstalledProgram: whether the program that is installed where the daemon was started from is still the one that runs.
 *
 * Guarantees: a program that was built anew and is the same counts as the same: its first file names all others by
 * their contents. Where it runs from its sources, or the file is gone, nothing is said.
 */
import * as fs from "node:fs"
import { basename, dirname, join } from "node:path"
import { attempt } from "../config/Attempt.ts"

/** The first file of the bundle, also where the quick entry beside it was called. */
const entryOf = (script: string): string =>
  basename(script) === "quick.cjs" ? join(dirname(script), "agentd.mjs") : script

const textOf = (file: string): string | undefined =>
  attempt(() => (file.endsWith(".mjs") ? fs.readFileSync(file, "utf8") : undefined))

/** Notes the program as it is now; the answer says whether it is another one by then. */
export const noted = (script: string): (() => boolean) => {
  const file = entryOf(script)
  const before = textOf(file)
  return () => {
    const now = textOf(file)
    return before !== undefined && now !== undefined && now !== before
  }
}
