/**
 * Contents: defines which files of a state directory a backup contains, and their names in the backup.
 *
 * Guarantees: a backup contains only files that are listed here. A name that is read from a backup cannot lead outside
 * the folder into which the backup is unpacked.
 */
import * as fs from "node:fs"
import { join } from "node:path"

export const STORE = "runes.db"
/** The first entry of a backup: facts such as its time. */
export const ABOUT = "agentd-backup.json"
/** The last entry: lists every other entry with its hash. A backup without this entry is truncated. */
export const LIST = "agentd-contents.json"

/**
 * Folders whose files are created and removed all the time; the database names these files. They contain attached files
 * of messages, waiting inputs, configs in force, and archives of an older agentd. An archive is removed when its
 * payloads are in the log.
 */
export const PASSING = ["files", "waiting", "configs", "archive"] as const
/** Folders whose files are kept permanently: the memory of agentd's own models. */
export const STAYING = ["sessions"] as const
export const SEGMENTS = "segments"
/** File in the state directory that exists while a restore moves files. It says how to undo the restore. */
export const JOURNAL = "restore.json"

/**
 * True for names in the state directory that a restore replaces: the parts of a backup, and files that are derived from
 * the database.
 */
export const replaces = (name: string): boolean =>
  name.startsWith(STORE) || [...PASSING, ...STAYING, SEGMENTS].some((folder) => folder === name)

const PART = /^[^/\\\0]+$/

/** True if a backup can contain an entry with that name. */
export const isOurs = (name: string): boolean => {
  if (name === STORE) return true
  const [folder = "", ...parts] = name.split("/")
  return (
    [...PASSING, ...STAYING, SEGMENTS].some((known) => known === folder) &&
    parts.length > 0 &&
    parts.every((part) => PART.test(part) && part !== "." && part !== "..")
  )
}

/** All files in a folder and its subfolders, as paths relative to `base`. Incomplete files are left out. */
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

/** True if a restore was interrupted while it moved files. */
export const isTorn = (state: string): boolean => fs.existsSync(join(state, JOURNAL))
