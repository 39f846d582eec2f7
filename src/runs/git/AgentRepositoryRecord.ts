/**
 * AgentRepositoryRecord: a file that records that a folder is an agent's own repository, and from which repository it
 * borrows objects:
 *
 *     STATE/store/own/KEY
 *
 * Guarantees: No agent can write the record. A folder's key is readable and unique.
 */
import { createHash } from "node:crypto"
import * as path from "node:path"

/** Folder in agentd's state directory that contains the daemon's own git folders. */
export const STORES = "store"

/** Returns a unique name for a folder. The name can be used as a file name. */
export const keyOf = (folder: string): string => {
  const name = path.basename(folder).replaceAll(/[^A-Za-z0-9_-]/g, "_")
  return `${name}-${createHash("sha256").update(folder).digest("hex").slice(0, 12)}`
}

/**
 * Returns the path of the record of a folder. The record's lines are the git folder that the folder borrows from, and
 * the agent's branch.
 */
export const recordOf = (stores: string, folder: string): string => path.join(stores, "own", keyOf(folder))
