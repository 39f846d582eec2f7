/**
 * TreeGrowth: measures by how many bytes some folders have grown since a start time. It uses the sizes of the files and
 * the used space of the disk.
 *
 * Guarantees: No link is followed and no other disk is entered. A file with several names counts once. A file that
 * disappears during the walk through the folders is not counted. Other fibers can run during a walk. No list of files
 * is stored between two walks. If the disk does not fill, walks take 1 % of the time.
 */
import { Clock, Duration, Effect } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { attempt } from "../../config/Attempt.ts"
import * as Monotonic from "../../core/supervision/Monotonic.ts"
import * as ProcessUse from "./ProcessUse.ts"

/** How many files are checked before other fibers can run. */
const BATCH = 128
const MAX_FILES = 3_000_000
const BLOCK = 512
/** Minimum pause between two walks: a time in ms, and a multiple of the last walk's duration. */
const WALK_EVERY = 30_000
const WALK_SHARE = 100
/** If the disk has grown by less than this fraction of the limit, no walk is made. */
const LEAST_GROWTH = 1 / 32
const ANSWER_WITHIN = Duration.seconds(2)

const statOf = (file: string): fs.Stats | undefined => attempt(() => fs.lstatSync(file))

/** Reads the names in a folder one by one, because a folder can contain millions. */
function* namesIn(folder: string): Generator<string> {
  let open: fs.Dir | undefined
  try {
    open = fs.opendirSync(folder)
    for (let entry = open.readSync(); entry !== null; entry = open.readSync()) yield entry.name
  } catch {
    // the folder is gone or not readable
  } finally {
    open?.closeSync()
  }
}

/** Calls `visit` for every file and folder below the folder, until it returns false. */
export const walk = Effect.fnUntraced(function* (folder: string, visit: (file: string, stat: fs.Stats) => boolean) {
  const device = statOf(folder)?.dev
  const folders = device === undefined ? [] : [folder]
  let seen = 0
  for (let next = folders.pop(); next !== undefined; next = folders.pop()) {
    for (const name of namesIn(next)) {
      if (++seen % BATCH === 0) yield* Effect.yieldNow
      const file = path.join(next, name)
      const stat = statOf(file)
      if (stat === undefined || stat.dev !== device) continue
      if (stat.isDirectory()) folders.push(file)
      if (!visit(file, stat)) return
    }
  }
})

/**
 * Measures the bytes of files that were created since `since` (ms since the epoch), and of older files that were
 * changed since then. Each file counts with its whole size. The walk ends when the created files have more than
 * `enough` bytes.
 */
const measure = Effect.fnUntraced(function* (folder: string, since: number, enough: number) {
  const several = new Set<number>()
  let [made, changed, seen] = [0, 0, 0]
  yield* walk(folder, (_, stat) => {
    const isCounted = stat.ctimeMs < since || several.has(stat.ino)
    if (stat.nlink > 1 && !stat.isDirectory()) several.add(stat.ino)
    const size = isCounted ? 0 : Math.max(1, stat.blocks) * BLOCK
    if (stat.birthtimeMs >= since) made += size
    else changed += size
    return ++seen < MAX_FILES && made <= enough
  })
  return { made, changed }
})

/** Number of bytes in use on each disk, by device number. */
type Disks = ReadonlyMap<number, number>

/**
 * Returns the device number and the used bytes of the folder's disk. If the folder does not exist, uses the nearest
 * existing parent folder.
 */
const diskOf = (folder: string): Effect.Effect<readonly [device: number, used: number] | undefined> =>
  Effect.tryPromise(async () => {
    const [{ bfree, blocks, bsize }, { dev }] = await Promise.all([
      fs.promises.statfs(folder),
      fs.promises.stat(folder)
    ])
    return [dev, (blocks - bfree) * bsize] as const
  }).pipe(
    Effect.timeout(ANSWER_WITHIN),
    Effect.catch(() => (folder === path.dirname(folder) ? Effect.undefined : diskOf(path.dirname(folder))))
  )

const disksOf = (folders: ReadonlyArray<string>): Effect.Effect<Disks> =>
  Effect.map(Effect.forEach(folders, diskOf), (disks) => new Map(disks.filter((disk) => disk !== undefined)))

/** By how many bytes the disks have grown since `before`. */
const grown = (before: Disks, now: Disks): number =>
  [...now].reduce((sum, [device, used]) => sum + Math.max(0, used - (before.get(device) ?? used)), 0)

/** How much some folders have grown since a start time, according to the last walk. */
export interface Written {
  readonly folders: ReadonlyArray<string>
  /** Start time, ms since the epoch. */
  readonly since: number
  /** State of the folders' disks at the start, and at the last walk. */
  readonly before: Disks
  readonly walked: Disks
  readonly bytes: number
  /** The part of `bytes` that is in the first folder. */
  readonly inFirst: number
  /** When the next walk is due at the latest, ms on the monotonic clock. */
  readonly due: number
}

/** Starts the measurement now. `coarse`: how much earlier than the clock a file's time can be, ms. */
export const fromNow = Effect.fnUntraced(function* (folders: ReadonlyArray<string>, coarse = 0) {
  const since = (yield* Clock.currentTimeMillis) - coarse
  const due = (yield* Monotonic.now) + WALK_EVERY
  const before = yield* disksOf(folders)
  return { folders, since, before, walked: before, bytes: 0, inFirst: 0, due } satisfies Written
})

/**
 * Walks through the folders again if the disks have grown by half of the bytes that remain up to `most`, or if a walk
 * is due. Deleted files count if the processes hold them open.
 */
export const again = Effect.fnUntraced(function* (last: Written, most: number, pids: ReadonlyArray<number>) {
  const begun = yield* Monotonic.now
  const walked = yield* disksOf(last.folders)
  const room = Math.max((most - last.bytes) / 2, most * LEAST_GROWTH)
  if (grown(last.walked, walked) < room && begun < last.due) return last
  let growth = grown(last.before, walked)
  const sizes: Array<number> = []
  for (const folder of last.folders) {
    const { changed, made } = yield* measure(folder, last.since, most)
    // the earlier size of a changed file is unknown, but the file cannot have grown by more than its disk
    const older = Math.min(changed, growth)
    growth -= older
    sizes.push(made + older)
  }
  const bytes = sizes.reduce((sum, size) => sum + size, ProcessUse.namelessOf(pids))
  const now = yield* Monotonic.now
  const due = now + Math.max(WALK_EVERY, WALK_SHARE * (now - begun))
  return { ...last, walked, bytes, inFirst: sizes[0] ?? 0, due } satisfies Written
})
