/** HostsFile: reads the hosts that the user has saved. Used by both entry points of the program, and by the daemon. */
import { readFileSync } from "node:fs"
import { parseFile, type SavedHost } from "./Host.ts"

/** The saved hosts by name; the problem if the file cannot be used. A missing file has no hosts. */
export const read = (path: string): ReadonlyMap<string, SavedHost> | string => {
  let text: string
  try {
    text = readFileSync(path, "utf8")
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    return code === "ENOENT" || code === "ENOTDIR" ? new Map() : `${path} cannot be read: ${message}`
  }
  const found = parseFile(text)
  return typeof found === "string" ? `${path}: ${found}` : found
}
