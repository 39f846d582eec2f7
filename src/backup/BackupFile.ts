/**
 * BackupFile: a store and what it needs beside its database, in one file: a tar, compressed by zstd. Made while a
 * daemon works, or of a store that nobody has open.
 *
 *     agentd-backup.json      what it is, of when
 *     runes.db                the database as it stood at one moment
 *     segments/ archive/ …    the files that the database names
 *     agentd-contents.json    every other entry with its size and hash
 *
 * Guarantees: what was durable before it began is in it; the store is only read; the file is there whole, on the disk
 * and for this user alone, or not at all; one that is there is replaced only where that is asked for. What is no part
 * of it: repositories and work trees, agents' homes, keys and logins.
 */
import { Clock, Effect, Schema, type Scope } from "effect"
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import { dirname, join } from "node:path"
import { pipeline } from "node:stream/promises"
import { createZstdCompress } from "node:zlib"
import type { StorageError } from "../core/event-log/EventLog.ts"
import * as StoreCopy from "../core/event-log/StoreCopy.ts"
import { syncFolder } from "../core/event-log/SyncFolder.ts"
import { ABOUT, filesIn, isTorn, LIST, PASSING, SEGMENTS, STAYING, STORE } from "./Contents.ts"
import * as Tar from "./Tar.ts"

/** A backup cannot be made, or cannot be used. */
export class BackupRefused extends Schema.TaggedError<BackupRefused>()("BackupRefused", {
  message: Schema.String,
  remedy: Schema.String,
  exitCode: Schema.Int
}) {}

export const FORMAT = 1

export const About = Schema.Struct({
  format: Schema.Int,
  /** The agentd that made it. */
  agentd: Schema.String,
  schema: Schema.Int,
  /** The newest rune, and when it was appended. */
  head: Schema.Int,
  headAt: Schema.Int,
  /** When the backup was begun. */
  at: Schema.Int,
  state: Schema.String
})
export type About = typeof About.Type

export const Item = Schema.Struct({ name: Schema.String, size: Schema.Int, sha256: Schema.String })
export type Item = typeof Item.Type

export interface Options {
  /** The state folder, absolute. */
  readonly state: string
  /** Absolute. */
  readonly file: string
  readonly force: boolean
  readonly version: string
  /** Hears how much of the whole is done. */
  readonly progress: (done: number, all: number) => void
}

export interface Made extends About {
  readonly file: string
  readonly bytes: number
  readonly items: number
}

/** Files that change while they are read: so often it is begun anew. */
const TRIES = 3
const PIECE = 1 << 20

/** A file of the store was written anew since the copy of the database was made. */
class Changed extends Schema.TaggedError<Changed>()("Changed", { message: Schema.String }) {}

const refused = (message: string, remedy: string) => new BackupRefused({ message, remedy, exitCode: 1 })

const failed = (file: string) => (cause: unknown) =>
  refused(
    `The backup ${file} could not be made: ${cause instanceof Error ? cause.message : String(cause)}.`,
    "See that there is room, and that you may write there. Nothing was changed."
  )

const attempt = <A>(file: string, work: () => A) => Effect.try({ try: work, catch: failed(file) })

/** Copies what is there and not yet copied: files that are named by their content never change. */
const take = (from: string, to: string): void => {
  for (const name of PASSING.flatMap((folder) => filesIn(from, folder))) {
    const into = join(to, name)
    if (fs.existsSync(into)) continue
    fs.mkdirSync(dirname(into), { recursive: true, mode: 0o700 })
    try {
      fs.copyFileSync(join(from, name), into)
    } catch (error) {
      // nobody needs it any more
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error
    }
  }
}

const piecesOf = function* (handle: number, size: number): Generator<Uint8Array, void> {
  for (let at = 0; at < size;) {
    const piece = Buffer.alloc(Math.min(PIECE, size - at))
    const read = fs.readSync(handle, piece, 0, piece.length, at)
    if (read === 0) return
    yield piece.subarray(0, read)
    at += read
  }
}

interface Source {
  readonly name: string
  readonly path: string
  /** As the database has it. */
  readonly sha256?: string
}

const sourcesOf = (state: string, stage: string, segments: StoreCopy.Facts["segments"]): ReadonlyArray<Source> => [
  { name: STORE, path: join(stage, STORE) },
  ...segments.map(({ file, sha256 }) => ({
    name: `${SEGMENTS}/${file}`,
    path: join(state, SEGMENTS, file),
    sha256
  })),
  ...STAYING.flatMap((folder) => filesIn(state, folder)).map((name) => ({ name, path: join(state, name) })),
  ...PASSING.flatMap((folder) => filesIn(stage, folder)).map((name) => ({ name, path: join(stage, name) }))
]

const jsonEntry = (name: string, value: unknown): Tar.Entry => {
  const bytes = Buffer.from(`${JSON.stringify(value, null, 2)}\n`)
  return { name, size: bytes.length, content: [bytes] }
}

/** All entries in order; `items` has those that were written. */
const entriesOf = function* (
  about: About,
  sources: ReadonlyArray<Source>,
  items: Array<Item>,
  progress: Options["progress"]
): Generator<Tar.Entry, void> {
  yield jsonEntry(ABOUT, about)
  const all = sources.reduce((sum, { path }) => sum + (fs.statSync(path, { throwIfNoEntry: false })?.size ?? 0), 0)
  let done = 0
  for (const { name, path, sha256 } of sources) {
    let handle: number
    try {
      handle = fs.openSync(path, "r")
    } catch (error) {
      // a conversation's memory may end meanwhile; a segment that the database names may not
      if ((error as NodeJS.ErrnoException).code === "ENOENT" && sha256 === undefined) continue
      throw error
    }
    try {
      const { size } = fs.fstatSync(handle)
      const hash = createHash("sha256")
      const content = function* () {
        for (const piece of piecesOf(handle, size)) {
          hash.update(piece)
          done += piece.length
          progress(done, all)
          yield piece
        }
      }
      yield { name, size, content: content() }
      const found = hash.digest("hex")
      if (sha256 !== undefined && found !== sha256)
        throw new Changed({ message: `${path} is not as the store lists it` })
      items.push({ name, size, sha256: found })
    } finally {
      fs.closeSync(handle)
    }
  }
  yield jsonEntry(LIST, items)
}

/** Puts the whole file in its place, which nobody else's file has. */
const place = (part: string, file: string, force: boolean): void => {
  if (force) fs.renameSync(part, file)
  else {
    try {
      // fails where a file is there by now
      fs.linkSync(part, file)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === "EEXIST" || fs.existsSync(file)) throw error
      fs.renameSync(part, file)
    }
    fs.rmSync(part, { force: true })
  }
  syncFolder(dirname(file))
}

const check = ({ file, force, state }: Options) =>
  Effect.suspend(() => {
    if (!fs.existsSync(join(state, STORE)))
      return Effect.fail(
        refused(`There is no store in ${state}.`, "Name the state folder with --state DIR, or start the daemon once.")
      )
    if (isTorn(state))
      return Effect.fail(
        refused(`A restore of the store in ${state} was cut off.`, "Undo it, by a start: agentd start")
      )
    const found = fs.statSync(file, { throwIfNoEntry: false })
    if (found?.isDirectory() === true)
      return Effect.fail(refused(`${file} is a folder.`, `Name a file in it: agentd backup '${file}/agentd.tar.zst'`))
    if (found !== undefined && !force)
      return Effect.fail(
        refused(`${file} is there already.`, `Name another file, or replace it: agentd backup --force '${file}'`)
      )
    if (!fs.existsSync(dirname(file)))
      return Effect.fail(refused(`There is no folder ${dirname(file)}.`, `Make it: mkdir -p '${dirname(file)}'`))
    return Effect.void
  })

/** A folder beside the file, which is gone when the scope closes; what a killed backup has left is removed. */
const stageOf = (file: string): Effect.Effect<string, BackupRefused, Scope.Scope> =>
  Effect.acquireRelease(
    attempt(file, () => {
      const stage = `${file}.part.d`
      fs.rmSync(stage, { recursive: true, force: true })
      fs.mkdirSync(stage, { mode: 0o700 })
      return stage
    }),
    (stage) => Effect.sync(() => fs.rmSync(stage, { recursive: true, force: true }))
  )

const writePart = (file: string, entries: Iterable<Tar.Entry>) =>
  Effect.tryPromise({
    try: async (signal) => {
      const part = `${file}.part`
      fs.rmSync(part, { force: true })
      await pipeline(
        Tar.write(entries),
        createZstdCompress(),
        fs.createWriteStream(part, { flags: "wx", mode: 0o600, flush: true }),
        { signal }
      )
      return fs.statSync(part).size
    },
    catch: (cause) => (cause instanceof Changed ? cause : failed(file)(cause))
  })

const once = (options: Options): Effect.Effect<Made, BackupRefused | StorageError | Changed> =>
  Effect.gen(function* () {
    const { file, force, progress, state, version } = options
    const at = yield* Clock.currentTimeMillis
    const stage = yield* stageOf(file)
    yield* Effect.addFinalizer(() => Effect.sync(() => fs.rmSync(`${file}.part`, { force: true })))
    // a file may go as soon as the database needs it no more, so before its copy is made; and new ones come meanwhile
    yield* attempt(file, () => take(state, stage))
    yield* StoreCopy.copy(join(state, STORE), join(stage, STORE))
    yield* attempt(file, () => take(state, stage))
    const { at: headAt, head, schema, segments } = yield* StoreCopy.facts(join(stage, STORE))
    const about: About = { format: FORMAT, agentd: version, schema, head, headAt, at, state }
    const items: Array<Item> = []
    const bytes = yield* writePart(file, entriesOf(about, sourcesOf(state, stage, segments), items, progress))
    yield* attempt(file, () => place(`${file}.part`, file, force))
    return { ...about, file, bytes, items: items.length }
  }).pipe(Effect.scoped)

export const make = (options: Options): Effect.Effect<Made, BackupRefused | StorageError> =>
  Effect.andThen(
    check(options),
    once(options).pipe(
      Effect.retry({ times: TRIES - 1, while: ({ _tag }) => _tag === "Changed" }),
      Effect.catchTag("Changed", ({ message }) =>
        Effect.fail(refused(`No backup was made: ${message}.`, "See what is wrong with the store: agentd verify"))
      )
    )
  )
