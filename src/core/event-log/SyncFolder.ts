/** SyncFolder: makes durable that a folder has a file, or has it no more. Free of imports but Node's. */
import * as fs from "node:fs"

export const syncFolder = (folder: string): void => {
  const handle = fs.openSync(folder, "r")
  try {
    fs.fsyncSync(handle)
  } finally {
    fs.closeSync(handle)
  }
}
