/**
 * FileWatch: reads a session's transcript or note as soon as it is written, if the system supports file watches.
 *
 * Guarantees: the health check would find the same changes later. The number of watched folders is limited, and only
 * folders of open plates are watched. A folder that cannot be watched is retried.
 */
import { Effect, FiberMap, type FileSystem, type Scope, Stream } from "effect"
import { basename, dirname } from "node:path"
import type { PlateActor } from "./PlateActor.ts"
import type { PlateRegistry } from "./PlateRegistry.ts"
import { fileOf } from "../runs/claude/ClaudeSessions.ts"
import { NOTE_SETTLES } from "./TranscriptRules.ts"

const MAX_FOLDERS = 64
/** Interval at which the list of watched folders is updated. */
const INTERVAL = "2 seconds"
/** Time in which file changes are grouped, because a session writes several records at a time. */
const SETTLES = "50 millis"

const foldersOf = ({ note, transcript }: PlateActor): ReadonlyArray<string> => [
  ...(transcript === undefined ? [] : [dirname(transcript.path)]),
  ...(note === undefined ? [] : [note.folder])
]

export class FileWatch {
  private readonly registry: PlateRegistry
  private readonly fs: FileSystem.FileSystem
  private readonly folders: FiberMap.FiberMap<string>
  /** Delayed reads, by plate. Each one waits until the note has not changed for a short time. */
  private readonly later: FiberMap.FiberMap<string>

  private constructor(
    registry: PlateRegistry,
    fs: FileSystem.FileSystem,
    folders: FiberMap.FiberMap<string>,
    later: FiberMap.FiberMap<string>
  ) {
    this.registry = registry
    this.fs = fs
    this.folders = folders
    this.later = later
  }

  static make(registry: PlateRegistry, fs: FileSystem.FileSystem): Effect.Effect<FileWatch, never, Scope.Scope> {
    return Effect.zipWith(FiberMap.make<string>(), FiberMap.make<string>(), (folders, later) => {
      return new FileWatch(registry, fs, folders, later)
    })
  }

  readonly loop: Effect.Effect<never> = Effect.gen({ self: this }, function* () {
    while (true) {
      yield* this.registry.populated.await
      yield* this.settle
      yield* Effect.sleep(INTERVAL)
    }
  })

  /** Starts watching the folders of the open plates, and stops watching all others. */
  private readonly settle = Effect.gen({ self: this }, function* () {
    const wanted = new Set(this.registry.open.flatMap(foldersOf))
    for (const [folder] of this.folders) if (!wanted.has(folder)) yield* FiberMap.remove(this.folders, folder)
    for (const folder of [...wanted].slice(0, MAX_FOLDERS)) {
      if (yield* FiberMap.has(this.folders, folder)) continue
      // The folder exists only after the session's first prompt.
      if (!(yield* Effect.orElseSucceed(this.fs.exists(folder), () => false))) continue
      yield* FiberMap.run(this.folders, folder, this.follow(folder))
      // The read covers what was written before the watch started.
      const there = this.registry.open.filter((plate) => foldersOf(plate).includes(folder))
      yield* Effect.forEach(there, (plate) => plate.look("look"), { discard: true })
    }
  })

  private follow(folder: string): Effect.Effect<void> {
    return this.fs.watch(folder).pipe(
      Stream.map((event) => basename(event.path)),
      Stream.groupedWithin(256, SETTLES),
      Stream.runForEach((names) => this.written(folder, new Set(names))),
      // The watch is tried again at the next update of the folder list.
      Effect.catchCause((cause) => Effect.logDebug(`${folder} is not watched for a moment`, cause))
    )
  }

  private written(folder: string, names: ReadonlySet<string>): Effect.Effect<void> {
    return Effect.forEach(
      this.registry.open,
      (plate) => {
        const { note, processes, transcript } = plate
        if (transcript !== undefined && dirname(transcript.path) === folder && names.has(basename(transcript.path))) {
          return plate.look("look")
        }
        const isOwn = processes.length === 0 || processes.some(({ pid }) => names.has(fileOf(pid)))
        const isNoted = note?.folder === folder && isOwn
        return isNoted ? this.lookLater(plate) : Effect.void
      },
      { discard: true }
    )
  }

  /** Reads the plate's files after a short time in which no newer note was written. */
  private lookLater(plate: PlateActor): Effect.Effect<void> {
    const look = Effect.delay(plate.look("look"), NOTE_SETTLES + 1)
    return Effect.asVoid(FiberMap.run(this.later, plate.plateId, look))
  }
}
