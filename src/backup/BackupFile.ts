/**
 * BackupFile: writes a backup: a store and the files that belong to it, in one tar file compressed with zstd. A backup
 * can be made while a daemon runs, or when no program has the store open.
 *
 *     agentd-backup.json      facts about the backup, such as its time
 *     runes.db                a consistent copy of the database
 *     segments/ archive/ …    the files that the database names
 *     agentd-contents.json    every entry but the first, with its size and hash
 *
 * Guarantees: the backup contains everything that was on disk when the backup began. The store is never changed. The
 * backup file is either complete, on disk and readable only by this user, or it does not exist. An existing file is
 * replaced only on request. Repositories, work trees, agents' home folders, keys and logins are not included.
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
import { troubleOf } from "../config/FileTrouble.ts"
import * as Tar from "./Tar.ts"

/** The backup cannot be made or used. */
export class BackupRefused extends Schema.TaggedError<BackupRefused>()("BackupRefused", {
  message: Schema.String,
  remedy: Schema.String,
  exitCode: Schema.Int
}) {}

export const FORMAT = 1

export const About = Schema.Struct({
  format: Schema.Int,
  /** Version of the agentd that made the backup. */
  agentd: Schema.String,
  schema: Schema.Int,
  /** EventId of the newest rune, and the time at which it was appended, in ms since the epoch. */
  head: Schema.Int,
  headAt: Schema.Int,
  /** Time at which the backup was begun, in ms since the epoch. */
  at: Schema.Int,
  state: Schema.String
})
export type About = typeof About.Type

export const Item = Schema.Struct({ name: Schema.String, size: Schema.Int, sha256: Schema.String })
export type Item = typeof Item.Type

export interface Options {
  /** Absolute path of the state directory. */
  readonly state: string
  /** Absolute path of the backup file. */
  readonly file: string
  readonly force: boolean
  readonly version: string
  /** Called with the number of bytes written so far, and the total number of bytes. */
  readonly progress: (done: number, all: number) => void
}

export interface Made extends About {
  readonly file: string
  readonly bytes: number
  readonly items: number
}

/** Maximum number of attempts at a backup if files change while they are being read. */
const TRIES = 3
const PIECE = 1 << 20

/** Error: a file of the store changed after the database was copied. */
class Changed extends Schema.TaggedError<Changed>()("Changed", { message: Schema.String }) {}

const refused = (message: string, remedy: string) => new BackupRefused({ message, remedy, exitCode: 1 })

const failed = (file: string) => (cause: unknown) =>
  refused(
    `The backup ${file} could not be made: ${troubleOf(cause)}.`,
    "Make sure that the disk has space and that you can write there. Nothing was changed."
  )

const attempt = <A>(file: string, work: () => A) => Effect.try({ try: work, catch: failed(file) })

/**
 * Copies files from the store that have not been copied yet. A file's name is derived from its content, so a file never
 * changes.
 */
const take = (from: string, to: string): void => {
  for (const name of PASSING.flatMap((folder) => filesIn(from, folder))) {
    const into = join(to, name)
    if (fs.existsSync(into)) continue
    fs.mkdirSync(dirname(into), { recursive: true, mode: 0o700 })
    try {
      fs.copyFileSync(join(from, name), into)
    } catch (error) {
      // the file was removed meanwhile, because it was no longer needed
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
  /** The file's hash, as recorded in the database; undefined if none is recorded. */
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

/** All entries of the backup in order. Each file that has been written is added to `items`. */
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
      // a conversation's memory may be removed during the backup; a segment that the database names may not
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
        throw new Changed({ message: `${path} differs from the store's list` })
      items.push({ name, size, sha256: found })
    } finally {
      fs.closeSync(handle)
    }
  }
  yield jsonEntry(LIST, items)
}

/** Moves the complete file to its final path. An existing file is replaced only if `force` is set. */
const place = (part: string, file: string, force: boolean): void => {
  if (force) fs.renameSync(part, file)
  else {
    try {
      // fails if a file with that name has appeared meanwhile
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
        refused(
          `There is no store in ${state}.`,
          "Specify the state directory with --state DIR, or start the daemon once."
        )
      )
    if (isTorn(state))
      return Effect.fail(
        refused(`A restore of the store in ${state} was interrupted.`, "Start the daemon to undo it: agentd start")
      )
    const found = fs.statSync(file, { throwIfNoEntry: false })
    if (found?.isDirectory() === true)
      return Effect.fail(refused(`${file} is a folder.`, `Name a file in it: agentd backup '${file}/agentd.tar.zst'`))
    if (found !== undefined && !force)
      return Effect.fail(
        refused(`${file} exists already.`, `Name another file, or replace it: agentd backup --force '${file}'`)
      )
    if (!fs.existsSync(dirname(file)))
      return Effect.fail(refused(`There is no folder ${dirname(file)}.`, `Create it: mkdir -p '${dirname(file)}'`))
    return Effect.void
  }).pipe(Effect.catchDefect((cause) => Effect.fail(failed(file)(cause))))

/**
 * A temporary folder next to the backup file, removed when the scope closes. Leftovers of a backup that was killed are
 * removed first.
 */
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
    // copy files before the database, because they can be removed later; and again after it, because new files can
    // appear
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
        Effect.fail(refused(`No backup was made: ${message}.`, "Check the store: agentd verify"))
      )
    )
  )
