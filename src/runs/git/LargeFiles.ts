/**
 * LargeFiles: copies Git LFS objects that an agent has created to the user's repository, where the user's Git LFS finds
 * them.
 *
 * Guarantees: An object is copied only if its content has the hash in its name. Links are not followed, and opening a
 * file that is not a regular one does not block. Objects that the user already has are not changed. An interrupted copy
 * is repeated. Objects beyond the limits are left out and counted.
 */
import { Effect, FileSystem } from "effect"
import { createHash } from "node:crypto"
import { constants } from "node:fs"
import { chmod, type FileHandle, mkdir, open, rename, rm } from "node:fs/promises"
import * as path from "node:path"

/** Maximum number of files that are copied at once, and maximum size of one file, bytes. */
const MOST = 1_000
const MAX_BYTES = 4 * 1024 ** 3
const A_READ = 1024 * 1024

const OBJECT = /^[0-9a-f]{64}$/
const FOLDER = /^[0-9a-f]{2}$/

/** Lists the objects in a Git LFS folder, by the hashes in their names. */
const objectsIn = Effect.fnUntraced(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  const names = (at: string, of: RegExp) =>
    Effect.map(
      Effect.orElseSucceed(files.readDirectory(at), () => [] as ReadonlyArray<string>),
      (all) => all.filter((name) => of.test(name))
    )
  const found: Array<string> = []
  for (const first of yield* names(folder, FOLDER))
    for (const second of yield* names(path.join(folder, first), FOLDER))
      found.push(...(yield* names(path.join(folder, first, second), OBJECT)))
  return found
})

const placeOf = (folder: string, oid: string): string => path.join(folder, oid.slice(0, 2), oid.slice(2, 4), oid)

/** Whether the hash of the content matches the object id. */
const copied = async (from: FileHandle, to: FileHandle, oid: string): Promise<boolean> => {
  const stat = await from.stat()
  if (!stat.isFile() || stat.size > MAX_BYTES) return false
  const hash = createHash("sha256")
  const bytes = new Uint8Array(A_READ)
  // reads only the initial size: a file that grows while it is read does not match its name anyway
  for (let at = 0; at <= stat.size;) {
    const { bytesRead } = await from.read(bytes, 0, A_READ, at)
    if (bytesRead === 0) break
    const part = bytes.subarray(0, bytesRead)
    hash.update(part)
    await to.write(part)
    at += bytesRead
  }
  return hash.digest("hex") === oid
}

const copy = async (from: string, to: string, oid: string): Promise<void> => {
  const source = await open(placeOf(from, oid), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const target = placeOf(to, oid)
    const part = `${target}.part`
    await mkdir(path.dirname(target), { recursive: true })
    const made = await open(part, "w", 0o600)
    const isRight = await copied(source, made, oid).finally(() => made.close())
    if (!isRight) return await rm(part)
    await chmod(part, 0o444)
    await rename(part, target)
  } finally {
    await source.close()
  }
}

/** Copies the objects that the second git folder lacks. Returns how many it still lacks. */
export const carry = Effect.fnUntraced(function* (from: string, to: string) {
  const [here, there] = [path.join(from, "lfs/objects"), path.join(to, "lfs/objects")]
  const made = yield* objectsIn(here)
  if (made.length === 0) return 0
  const known = new Set(yield* objectsIn(there))
  const missing = made.filter((oid) => !known.has(oid))
  for (const oid of missing.slice(0, MOST)) yield* Effect.ignore(Effect.tryPromise(() => copy(here, there, oid)))
  const has = new Set(yield* objectsIn(there))
  return missing.filter((oid) => !has.has(oid)).length
})
