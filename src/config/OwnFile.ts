/**
 * OwnFile: reads a file that only this user (or root) can have written, and replaces such a file's text. `OwnFile` is a
 * context reference, so that a simulation can replace the file system.
 *
 * Guarantees: the file, every folder above it and every link on the way belong to this user or to root, and nobody else
 * can write to them. Others can add files to a folder with the sticky bit (/tmp), but cannot change this user's files.
 * A group whose only member is this user does not count as someone else. Owner, mode and content are read through one
 * descriptor, which is opened without following a link. Opening never blocks, even if the path is a pipe. At most the
 * allowed size plus one block is read. A text is replaced completely or not at all, only if the file still has the text
 * that the caller has seen, with the file's mode, and behind the links of its path.
 */
import { Context, Effect, Result, Schema } from "effect"
import { constants, type Stats } from "node:fs"
import { type FileHandle, link, lstat, mkdir, open, readFile, readlink, rename, rm } from "node:fs/promises"
import { randomBytes } from "node:crypto"
import { basename, dirname, isAbsolute, join, resolve } from "node:path"
import { GONE, troubleOf } from "./FileTrouble.ts"

/** The file is not read. Reason `foreign`: another user could have written the file. */
export class OwnFileRefused extends Schema.TaggedError<OwnFileRefused>()("OwnFileRefused", {
  reason: Schema.Literals(["missing", "unreadable", "noFile", "tooLarge", "foreign", "changed"]),
  /** The problem, without the file's path, such as `is not a file`. */
  message: Schema.String,
  /** The remedy; empty if the remedy depends on what the file is for. */
  remedy: Schema.String
}) {}

export type Read = (path: string, most: number) => Effect.Effect<Uint8Array, OwnFileRefused>

/** Maximum number of links in a path, as in Linux. */
const MAX_LINKS = 40
const A_READ = 64 * 1024
/**
 * Maximum size of /etc/group and of /etc/passwd, in characters. If one of them is larger, no group counts as private.
 */
const MAX_ACCOUNTS = 1024 * 1024

const refused = (reason: OwnFileRefused["reason"], message: string, remedy = "") =>
  new OwnFileRefused({ reason, message, remedy })

const partsOf = (path: string): ReadonlyArray<string> => path.split("/").filter((part) => part !== "")

/**
 * True if this user is the only member of the group: /etc/group lists no other member, and no other user has the group
 * as primary group in /etc/passwd.
 */
const isPrivate = async (gid: number, uid: number): Promise<boolean> => {
  const read = (file: string) =>
    readFile(file, "utf8").then((text) => (text.length > MAX_ACCOUNTS ? [] : text.split("\n")))
  const [groups, users] = await Promise.all([read("/etc/group"), read("/etc/passwd")]).catch(() => [[], []])
  const accounts = users.map((line) => line.split(":"))
  const own = accounts.find((account) => account[2] === String(uid))?.[0]
  const group = groups.map((line) => line.split(":")).find((fields) => fields[2] === String(gid))
  if (own === undefined || group === undefined) return false
  const members = (group[3] ?? "").split(",").filter((name) => name !== "")
  return (
    members.every((name) => name === own) &&
    accounts.every((account) => account[3] !== String(gid) || account[2] === String(uid))
  )
}

/** Refuses a file or folder if a user other than `uid` or root owns it or can write to it. */
const checkOwn = async (stat: Stats, path: string, uid: number): Promise<void> => {
  const isFolder = stat.isDirectory()
  const what = isFolder ? `the folder ${path}` : stat.isSymbolicLink() ? `the link ${path}` : path
  if (stat.uid !== uid && stat.uid !== 0) {
    throw refused(
      "foreign",
      `is not used: ${what} belongs to another user (uid ${stat.uid}), who controls its content`,
      isFolder
        ? `Move the file into a folder of your own.`
        : `If you have read it and agree, copy it into a folder of your own, or make it yours: chown ${uid} ${path}`
    )
  }
  // the mode of a link has no meaning, so it is not checked
  const isShared = (stat.mode & 0o002) !== 0 || ((stat.mode & 0o020) !== 0 && !(await isPrivate(stat.gid, uid)))
  if (stat.isSymbolicLink() || !isShared || (isFolder && (stat.mode & 0o1000) !== 0)) return
  throw refused(
    "foreign",
    `is not used: others can write to ${what} (mode ${(stat.mode & 0o7777).toString(8)})`,
    `Make sure that nobody changed it, then: chmod go-w ${path}`
  )
}

/** Resolves the links in a path, and checks every folder and link on the way. */
const walk = async (path: string, uid: number): Promise<string> => {
  let [at, rest, links] = ["/", partsOf(resolve(path)), 0]
  await checkOwn(await lstat(at), at, uid)
  for (let name = rest[0]; name !== undefined; name = rest[0]) {
    rest = rest.slice(1)
    if (name === ".") continue
    const next = name === ".." ? dirname(at) : join(at, name)
    const stat = await lstat(next)
    if (rest.length > 0 || stat.isSymbolicLink()) await checkOwn(stat, next, uid)
    if (!stat.isSymbolicLink()) {
      at = next
      continue
    }
    links += 1
    if (links > MAX_LINKS) throw refused("unreadable", "its symbolic links form a loop")
    const target = await readlink(next)
    rest = [...partsOf(target), ...rest]
    if (isAbsolute(target)) at = "/"
  }
  return at
}

const bytesOf = async (file: FileHandle, most: number): Promise<Uint8Array> => {
  const parts: Array<Buffer> = []
  let bytes = 0
  while (bytes <= most) {
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(A_READ), 0, A_READ, bytes)
    if (bytesRead === 0) break
    bytes += bytesRead
    parts.push(buffer.subarray(0, bytesRead))
  }
  if (bytes > most) throw refused("tooLarge", `is larger than ${most / 1024} KiB`)
  return Buffer.concat(parts)
}

const readOwn = async (path: string, most: number, uid: number): Promise<Uint8Array> => {
  const place = await walk(path, uid)
  const { O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants
  const file = await open(place, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
  try {
    const stat = await file.stat()
    if (!stat.isFile()) throw refused("noFile", "is not a file")
    await checkOwn(stat, place, uid)
    return await bytesOf(file, most)
  } finally {
    await file.close()
  }
}

const errorOf = async (error: unknown, path: string): Promise<OwnFileRefused> => {
  if (error instanceof OwnFileRefused) return error
  const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT"
  if (!isMissing) return refused("unreadable", troubleOf(error))
  const isFolder = await lstat(dirname(path)).then(
    () => true,
    () => false
  )
  return refused("missing", isFolder ? "there is no such file" : GONE)
}

export const reading =
  (uid: number = process.getuid?.() ?? 0): Read =>
  (path, most) =>
    Effect.flatMap(
      Effect.promise(() =>
        readOwn(path, most, uid).then(Result.succeed, async (error: unknown) => Result.fail(await errorOf(error, path)))
      ),
      Effect.fromResult
    )

/** The function that reads such files. Default: reads from the real file system. */
export const OwnFile = Context.Reference<Read>("agentd/config/OwnFile", { defaultValue: () => reading() })

export const readText = (path: string, most: number): Effect.Effect<string, OwnFileRefused> =>
  Effect.flatMap(OwnFile, (read) => read(path, most)).pipe(
    Effect.flatMap((bytes) =>
      Effect.try({
        try: () => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes),
        catch: () => refused("unreadable", "is not UTF-8 text", "Save it as UTF-8.")
      })
    )
  )

/** Maximum size of a key, a password or a certificate, in bytes. */
const MAX_SECRET = 64 * 1024

export const readSecret = (path: string) => readText(path, MAX_SECRET)

const changed = refused("changed", "has changed since it was shown")

/** Writes the text into a new file beside `place`, then calls `put` with the new file's path. */
const beside = async (place: string, text: string, mode: number, put: (part: string) => Promise<void>) => {
  const part = `${place}.${randomBytes(6).toString("hex")}.part`
  const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants
  try {
    const file = await open(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode)
    try {
      await file.chmod(mode)
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await put(part)
  } finally {
    await rm(part, { force: true })
  }
}

const createOwn = async (path: string, text: string, uid: number): Promise<void> => {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const folder = await walk(dirname(path), uid)
  await checkOwn(await lstat(folder), folder, uid)
  const place = join(folder, basename(path))
  await beside(place, text, 0o600, (part) =>
    link(part, place).catch((error: unknown) => {
      throw error instanceof Error && "code" in error && error.code === "EEXIST" ? changed : error
    })
  )
}

const replaceOwn = async (path: string, before: string, after: string, uid: number): Promise<void> => {
  const place = await walk(path, uid)
  const { mode, uid: owner } = await lstat(place)
  if (owner !== uid) throw refused("foreign", `belongs to another user (uid ${owner}): it is not written`)
  await beside(place, after, mode & 0o7777, async (part) => {
    const now = await readOwn(place, Buffer.byteLength(before), uid).catch((error: unknown) => {
      throw error instanceof OwnFileRefused && error.reason === "tooLarge" ? changed : error
    })
    if (!Buffer.from(before).equals(now)) throw changed
    await rename(part, place)
  })
}

/**
 * Replaces the text of a file of this user. `before`: the text that the file must still have; undefined: the file is
 * created, with its folder, and must not exist. Fails with the reason `changed` if that is not so.
 */
export const replaceText = (
  path: string,
  before: string | undefined,
  after: string,
  uid: number = process.getuid?.() ?? 0
): Effect.Effect<void, OwnFileRefused> =>
  Effect.tryPromise({
    try: () => (before === undefined ? createOwn(path, after, uid) : replaceOwn(path, before, after, uid)),
    catch: (error) => (error instanceof OwnFileRefused ? error : refused("unreadable", troubleOf(error)))
  }).pipe(Effect.uninterruptible)
