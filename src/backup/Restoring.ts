/**
 * Restoring: unpacks a backup next to the current store, checks the backup, and then replaces the store by it.
 *
 * Guarantees: the store is not touched before the whole backup has been read and verified. The previous store is moved
 * to another folder as a whole, and is never removed. If a restore is interrupted, it is undone when the store is next
 * opened: the previous store is back. The caller must hold the store's lock.
 */
import { Effect, Option, Schema } from "effect"
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import { dirname, join } from "node:path"
import { pipeline } from "node:stream/promises"
import { createZstdDecompress } from "node:zlib"
import { syncFolder } from "../core/event-log/SyncFolder.ts"
import { About, BackupRefused, FORMAT, Item } from "./BackupFile.ts"
import { ABOUT, isOurs, JOURNAL, LIST, replaces, STORE } from "./Contents.ts"
import * as Tar from "./Tar.ts"

/** Folder in the state directory into which a backup is unpacked. */
const STAGE = "restore.part"
/** Maximum size of a JSON entry, in bytes. */
const MAX_JSON = 64 * 1024 * 1024

const Journal = Schema.Struct({
  /** Name of the folder in the state directory to which the previous store is moved. */
  aside: Schema.String,
  /** File names of the previous store. */
  olds: Schema.Array(Schema.String),
  /** File names of the restored store. */
  news: Schema.Array(Schema.String)
})

const decodeAbout = Schema.decodeUnknownOption(Schema.fromJsonString(About))
const decodeItems = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Array(Item)))
const decodeJournal = Schema.decodeUnknownOption(Schema.fromJsonString(Journal))

const refused = (message: string, remedy: string) => new BackupRefused({ message, remedy, exitCode: 4 })

const damaged = (file: string) => (cause: unknown) =>
  cause instanceof BackupRefused
    ? cause
    : refused(
        `${file} cannot be restored: ${cause instanceof Error ? cause.message : String(cause)}.`,
        "Nothing was changed. Use another backup, or copy this one here again."
      )

const attempt = <A>(file: string, work: () => A) => Effect.try({ try: work, catch: damaged(file) })

export interface Unpacked extends About {
  readonly stage: string
  readonly items: number
}

const textOf = async (content: AsyncIterable<Uint8Array>, size: number): Promise<string> => {
  if (size > MAX_JSON) throw new Error("an entry is too large")
  const pieces: Array<Uint8Array> = []
  for await (const piece of content) pieces.push(piece)
  return Buffer.concat(pieces).toString("utf8")
}

/** Writes an entry to a new file and flushes the file to disk. Returns the content's hash. */
const writeTo = async (path: string, content: AsyncIterable<Uint8Array>): Promise<string> => {
  fs.mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const hash = createHash("sha256")
  const hashed = async function* () {
    for await (const piece of content) {
      hash.update(piece)
      yield piece
    }
  }
  await pipeline(hashed(), fs.createWriteStream(path, { flags: "wx", mode: 0o600, flush: true }))
  return hash.digest("hex")
}

const aboutIn = (text: string): About => {
  const about = Option.getOrUndefined(decodeAbout(text))
  if (about === undefined) throw new Error("it is not a backup of agentd")
  if (about.format > FORMAT)
    throw refused(
      `The backup has format ${about.format} and was made by agentd ${about.agentd}; this agentd reads formats up to ${FORMAT}.`,
      "Restore it with the agentd that made it, or a newer one. Nothing was changed."
    )
  return about
}

const checkAll = (listed: ReadonlyArray<Item> | undefined, found: ReadonlyMap<string, Item>): void => {
  if (listed === undefined) throw new Error("its list of contents is missing or damaged")
  for (const { name, sha256, size } of listed) {
    const item = found.get(name)
    if (item === undefined) throw new Error(`${name} is missing in the backup`)
    if (item.size !== size || item.sha256 !== sha256) throw new Error(`${name} has changed since it was written`)
  }
  if (found.size !== listed.length || !found.has(STORE)) throw new Error("its contents differ from its list")
}

const unpackInto = async (file: string, stage: string, signal: AbortSignal): Promise<Unpacked> => {
  let about: About | undefined
  let listed: ReadonlyArray<Item> | undefined
  const found = new Map<string, Item>()
  await pipeline(
    fs.createReadStream(file),
    createZstdDecompress(),
    async (stream: AsyncIterable<Uint8Array>) =>
      Tar.read(stream, async ({ name, size }, content) => {
        if (about === undefined) {
          if (name !== ABOUT) throw new Error("it is not a backup of agentd")
          about = aboutIn(await textOf(content, size))
        } else if (name === LIST) listed = Option.getOrUndefined(decodeItems(await textOf(content, size)))
        else if (!isOurs(name) || listed !== undefined || found.has(name))
          throw new Error(`it has an entry that no backup has: ${JSON.stringify(name)}`)
        else found.set(name, { name, size, sha256: await writeTo(join(stage, name), content) })
      }),
    { signal }
  )
  checkAll(listed, found)
  return { ...about!, stage, items: found.size }
}

/**
 * Unpacks a backup and checks each entry. The folder is removed when the scope closes, unless it has become the new
 * store.
 */
export const unpack = (state: string, file: string) =>
  Effect.acquireRelease(
    attempt(file, () => {
      const stage = join(state, STAGE)
      fs.rmSync(stage, { recursive: true, force: true })
      fs.mkdirSync(stage, { mode: 0o700 })
      return stage
    }),
    (stage) => Effect.sync(() => fs.rmSync(stage, { recursive: true, force: true }))
  ).pipe(
    Effect.flatMap((stage) =>
      Effect.tryPromise({ try: (signal) => unpackInto(file, stage, signal), catch: damaged(file) })
    )
  )

const rename = (from: string, to: string): void => {
  if (fs.existsSync(from)) fs.renameSync(from, to)
}

const syncAll = (folder: string): void => {
  for (const entry of fs.readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) syncAll(join(folder, entry.name))
  syncFolder(folder)
}

const writeJournal = (state: string, journal: typeof Journal.Type): void => {
  const path = join(state, JOURNAL)
  const handle = fs.openSync(`${path}.new`, "w", 0o600)
  try {
    fs.writeSync(handle, JSON.stringify(journal))
    fs.fsyncSync(handle)
  } finally {
    fs.closeSync(handle)
  }
  fs.renameSync(`${path}.new`, path)
  syncFolder(state)
}

/**
 * Undoes an interrupted restore, so that the previous store is back. Returns false if no restore was interrupted.
 * Throws if the restore's journal cannot be read.
 */
export const undo = (state: string): boolean => {
  const path = join(state, JOURNAL)
  if (!fs.existsSync(path)) return false
  const journal = Option.getOrUndefined(decodeJournal(fs.readFileSync(path, "utf8")))
  if (journal === undefined) throw new Error(`${path} cannot be read`)
  const { aside, news, olds } = journal
  const stage = join(state, STAGE)
  const from = join(state, aside)
  // if both folders have a file with this name, the old file is in `aside`, and the new file in the state directory
  for (const name of news) {
    const isOld = olds.includes(name) && !fs.existsSync(join(from, name))
    if (!isOld && !fs.existsSync(join(stage, name))) fs.rmSync(join(state, name), { recursive: true, force: true })
  }
  for (const name of olds) rename(join(from, name), join(state, name))
  fs.rmSync(stage, { recursive: true, force: true })
  if (fs.existsSync(from) && fs.readdirSync(from).length === 0) fs.rmdirSync(from)
  syncFolder(state)
  fs.rmSync(path)
  syncFolder(state)
  return true
}

const move = (state: string, aside: string): string | undefined => {
  const stage = join(state, STAGE)
  const olds = fs.readdirSync(state).filter(replaces)
  const news = fs.readdirSync(stage).filter(replaces)
  syncAll(stage)
  // fails if a folder with that name exists, because an undo would treat its files as those of the previous store
  if (olds.length > 0) fs.mkdirSync(join(state, aside), { mode: 0o700 })
  writeJournal(state, { aside, olds, news })
  for (const name of olds) fs.renameSync(join(state, name), join(state, aside, name))
  for (const name of news) fs.renameSync(join(stage, name), join(state, name))
  if (olds.length > 0) syncFolder(join(state, aside))
  syncFolder(state)
  // when this file has been removed, the restore is complete
  fs.rmSync(join(state, JOURNAL))
  syncFolder(state)
  return olds.length > 0 ? join(state, aside) : undefined
}

/**
 * Replaces the store by the unpacked backup. Returns the new path of the previous store; undefined if there was none.
 * `aside`: folder name for the previous store, which must not be in use.
 */
export const swap = (state: string, file: string, aside: string): Effect.Effect<string | undefined, BackupRefused> =>
  Effect.uninterruptible(
    Effect.try({
      try: () => {
        try {
          return move(state, aside)
        } catch (error) {
          undo(state)
          throw error
        }
      },
      catch: damaged(file)
    })
  )
