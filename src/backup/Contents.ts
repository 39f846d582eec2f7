/**
 * Contents: what of a state folder a backup holds, and the names that it has there.
 *
 * Guarantees: nothing is in a backup that is not named here; a name that is read from a backup leads into the folder
 * that it is unpacked in, and nowhere else.
 */
import * as fs from "node:fs"
import { join } from "node:path"

export const STORE = "runes.db"
/** The first entry: the facts of the backup. */
export const ABOUT = "agentd-backup.json"
/** Every other entry with its hash: the last entry. A backup without it is cut off. */
export const LIST = "agentd-contents.json"

/**
 * Folders of files that come and go; the database names them. Files of messages, inputs that wait, configs in force,
 * and archives of an older agentd, which go when their payloads are in the log.
 */
export const PASSING = ["files", "waiting", "configs", "archive"] as const
/** Folders of files that stay: what agentd's own models remember. */
export const STAYING = ["sessions"] as const
export const SEGMENTS = "segments"
/** Lies in the state folder while a restore moves files: it says how that is undone. */
export const JOURNAL = "restore.json"

/** All that a restored store replaces: the parts of a backup, and what is made of the database anew. */
export const replaces = (name: string): boolean =>
  name.startsWith(STORE) || [...PASSING, ...STAYING, SEGMENTS].some((folder) => folder === name)

const PART = /^[^/\\\0]+$/

/** Whether an entry of that name belongs into a backup. */
export const isOurs = (name: string): boolean => {
  if (name === STORE) return true
  const [folder = "", ...parts] = name.split("/")
  return (
    [...PASSING, ...STAYING, SEGMENTS].some((known) => known === folder) &&
    parts.length > 0 &&
    parts.every((part) => PART.test(part) && part !== "." && part !== "..")
  )
}

/** The files in a folder and in those below it, by their names from `base` on; half-written ones are left out. */
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

/** Whether a restore was cut off while it moved files. */
export const isTorn = (state: string): boolean => fs.existsSync(join(state, JOURNAL))
