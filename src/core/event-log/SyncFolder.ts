/**
 * SyncFolder: syncs a folder to disk, so that the creation, renaming and deletion of files in it are durable. Imports
 * only Node's own modules.
 */
import * as fs from "node:fs"

export const syncFolder = (folder: string): void => {
  const handle = fs.openSync(folder, "r")
  try {
    fs.fsyncSync(handle)
  } finally {
    fs.closeSync(handle)
  }
}
