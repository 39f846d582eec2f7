/**
 * Contents: which files of a state directory a backup contains, and their names in it.
 *
 * Guarantees: a backup contains nothing that is not named here. A name that is read from a backup cannot lead outside
 * the folder in which it is unpacked.
 */
import * as fs from "node:fs"
import { join } from "node:path"

export const STORE = "runes.db"
/** The first entry: facts about the backup. */
export const ABOUT = "agentd-backup.json"
/** The last entry: every other entry with its hash. A backup without it is truncated. */
export const LIST = "agentd-contents.json"

/**
 * Folders of files that are created and removed all the time; the database names them. They contain files of messages,
 * waiting inputs, configs in force, and archives of an older agentd. An archive is removed when its payloads are in the
 * log.
 */
export const PASSING = ["files", "waiting", "configs", "archive"] as const
/** Folders of permanent files: the memory of agentd's own models. */
export const STAYING = ["sessions"] as const
export const SEGMENTS = "segments"
/** Exists in the state directory while a restore moves files, and says how to undo that. */
export const JOURNAL = "restore.json"

/** Everything that a restore replaces: the parts of a backup, and files that are derived from the database. */
export const replaces = (name: string): boolean =>
  name.startsWith(STORE) || [...PASSING, ...STAYING, SEGMENTS].some((folder) => folder === name)

const PART = /^[^/\\\0]+$/

/** Whether an entry with that name can be in a backup. */
export const isOurs = (name: string): boolean => {
  if (name === STORE) return true
  const [folder = "", ...parts] = name.split("/")
  return (
    [...PASSING, ...STAYING, SEGMENTS].some((known) => known === folder) &&
    parts.length > 0 &&
    parts.every((part) => PART.test(part) && part !== "." && part !== "..")
  )
}

/** All files in a folder and below it, as paths relative to `base`. Incomplete files are left out. */
export const filesIn = (base: string, folder: string): ReadonlyArray<string> =>
  fs.existsSync(join(base, folder))
    ? fs
        .readdirSync(join(base, folder), { withFileTypes: true })
        .flatMap((entry) => {
          const name = `${folder}/${entry.name}`
          if (entry.isDirectory()) return filesIn(base, name)
          return entry.isFile() && !entry.name.endsWith(".part") ? [name] : []
        })
        .toSorted()
    : []

/** Whether a restore was interrupted while it moved files. */
export const isTorn = (state: string): boolean => fs.existsSync(join(state, JOURNAL))
