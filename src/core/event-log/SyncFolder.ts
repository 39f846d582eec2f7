/** SyncFolder: makes it durable that a folder has a file, or no longer has it. Imports only Node's modules. */
import * as fs from "node:fs"

export const syncFolder = (folder: string): void => {
  const handle = fs.openSync(folder, "r")
  try {
    fs.fsyncSync(handle)
  } finally {
    fs.closeSync(handle)
  }
}
