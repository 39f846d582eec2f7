/**
 * InstalledProgram: checks whether the installed program is still the one that the daemon runs.
 *
 * Guarantees: a rebuilt program with the same content counts as the same, because the first file of the bundle contains
 * the content hashes of all other files. If the daemon runs from its sources, or the file is missing, nothing is
 * reported.
 */
import * as fs from "node:fs"
import { basename, dirname, join } from "node:path"
import { attempt } from "../config/Attempt.ts"

/** Path of the bundle's first file, even if the quick entry next to it was started. */
const entryOf = (script: string): string =>
  basename(script) === "quick.cjs" ? join(dirname(script), "agentd.mjs") : script

const textOf = (file: string): string | undefined =>
  attempt(() => (file.endsWith(".mjs") ? fs.readFileSync(file, "utf8") : undefined))

/** Remembers the current program. The returned function tells whether another program has been installed since. */
export const noted = (script: string): (() => boolean) => {
  const file = entryOf(script)
  const before = textOf(file)
  return () => {
    const now = textOf(file)
    return before !== undefined && now !== undefined && now !== before
  }
}
