/**
 * PortOwner: finds out from the kernel's table which user's program listens on a TCP port of this machine. Linux only;
 * on other systems the owner is unknown.
 */
import { Effect, FileSystem } from "effect"

const TABLES = ["/proc/net/tcp", "/proc/net/tcp6"]
/** The kernel's code for the state of a listening socket. */
const LISTENS = "0A"

/**
 * The user id of the program that listens on the port, according to the kernel's table; undefined if there is none.
 * Pure.
 */
export const ownerIn = (table: string, port: number): number | undefined => {
  const hex = port.toString(16).toUpperCase().padStart(4, "0")
  for (const row of table.split("\n").slice(1)) {
    const [, local = "", , state, , , , uid] = row
      .trim()
      .split(" ")
      .filter((word) => word !== "")
    if (state === LISTENS && local.endsWith(`:${hex}`)) return Number(uid)
  }
  return undefined
}

/** The user id of the program that listens on the port; null if unknown. */
export const ownerOf = (port: number): Effect.Effect<number | null, never, FileSystem.FileSystem> =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    for (const path of TABLES) {
      const owner = ownerIn(yield* Effect.orElseSucceed(fs.readFileString(path), () => ""), port)
      if (owner !== undefined) return owner
    }
    return null
  })
