/**
 * OwnRecord: where it is recorded that a folder is an agent's repository, and from which it borrows:
 *
 *     STATE/store/own/KEY
 *
 * Guarantees: no agent can write it; a folder's key is readable, and no other folder's.
 */
import { createHash } from "node:crypto"
import * as path from "node:path"

/** The folder of agentd's state in which the git folders of the daemon's own lie. */
export const STORES = "store"

/** A name for a folder. */
export const keyOf = (folder: string): string => {
  const name = path.basename(folder).replaceAll(/[^A-Za-z0-9_-]/g, "_")
  return `${name}-${createHash("sha256").update(folder).digest("hex").slice(0, 12)}`
}

/** The record of a folder: the git folder that it borrows from, then its agent's branch, a line each. */
export const recordOf = (stores: string, folder: string): string => path.join(stores, "own", keyOf(folder))
