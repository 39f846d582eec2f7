/**
 * FolderBytes: computes the total size in bytes of a file, or of all files in a folder and its subfolders. Links are
 * not followed.
 */
import * as fs from "node:fs"
import { join } from "node:path"

export const folderBytes = (path: string): number => {
  const stat = fs.lstatSync(path, { throwIfNoEntry: false })
  if (stat === undefined) return 0
  if (!stat.isDirectory()) return stat.size
  return fs.readdirSync(path).reduce((sum, name) => sum + folderBytes(join(path, name)), 0)
}
