/**
 * LargeFiles: the content of files that Git LFS keeps beside the commits: what an agent has made is
 * copied to the person's repository, where the person's Git LFS finds it.
 *
 * Guarantees: content comes only under the hash that it has; no link is followed to it, and nothing
 * is waited for that is no file; what the person has already is not touched; a copy that was cut
 * off is made anew. What is too much for one time is left, and counted.
 */
import { Effect, FileSystem } from "effect"
import { createHash } from "node:crypto"
import { constants } from "node:fs"
import { chmod, type FileHandle, mkdir, open, rename, rm } from "node:fs/promises"
import * as path from "node:path"

/** Most files, and most bytes of one file, that are copied at one time. */
const MOST = 1_000
const MAX_BYTES = 4 * 1024 ** 3
const A_READ = 1024 * 1024

const OBJECT = /^[0-9a-f]{64}$/
const FOLDER = /^[0-9a-f]{2}$/

/** The objects of a folder of Git LFS, by the hashes that their names say. */
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

/** Copies what is read there, and says whether it has that hash. */
const copied = async (from: FileHandle, to: FileHandle, oid: string): Promise<boolean> => {
  const stat = await from.stat()
  if (!stat.isFile() || stat.size > MAX_BYTES) return false
  const hash = createHash("sha256")
  const bytes = new Uint8Array(A_READ)
  // what grows while it is read is not what its name says
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

/** Copies an object, if it is what its name says. */
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

/** Copies what the second git folder does not have; answers with how many objects it lacks still. */
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
