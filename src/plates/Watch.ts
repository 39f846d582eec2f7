/**
 * Watch: looks at a transcript as soon as it is written, where the system says so.
 *
 * Guarantees: only makes sooner what the health check finds anyway; a bounded
 * number of folders is watched, those of open plates; one that cannot be watched
 * is tried again.
 */
import { Effect, FiberMap, type FileSystem, type Scope, Stream } from "effect"
import { basename, dirname } from "node:path"
import type { PlateActor } from "./PlateActor.ts"
import type { Roster } from "./Roster.ts"

const MAX_FOLDERS = 64
/** How often the folders are gone through. */
const INTERVAL = "2 seconds"
/** A session writes several records at a time. */
const SETTLES = "50 millis"

export class Watch {
  private readonly roster: Roster
  private readonly fs: FileSystem.FileSystem
  private readonly folders: FiberMap.FiberMap<string>

  private constructor(roster: Roster, fs: FileSystem.FileSystem, folders: FiberMap.FiberMap<string>) {
    this.roster = roster
    this.fs = fs
    this.folders = folders
  }

  static make(roster: Roster, fs: FileSystem.FileSystem): Effect.Effect<Watch, never, Scope.Scope> {
    return Effect.map(FiberMap.make<string>(), (folders) => new Watch(roster, fs, folders))
  }

  /** For its supervisor. */
  readonly loop: Effect.Effect<never> = Effect.gen({ self: this }, function* () {
    while (true) {
      yield* this.roster.populated.await
      yield* this.settle
      yield* Effect.sleep(INTERVAL)
    }
  })

  /** The folders of the open plates, and no others. */
  private readonly settle = Effect.gen({ self: this }, function* () {
    const wanted = new Set(
      this.roster.open.flatMap(({ transcript }) => (transcript === undefined ? [] : [dirname(transcript.path)]))
    )
    for (const [folder] of this.folders) if (!wanted.has(folder)) yield* FiberMap.remove(this.folders, folder)
    for (const folder of [...wanted].slice(0, MAX_FOLDERS)) {
      if (yield* FiberMap.has(this.folders, folder)) continue
      // It is there with the session's first prompt only.
      if (!(yield* Effect.orElseSucceed(this.fs.exists(folder), () => false))) continue
      yield* FiberMap.run(this.folders, folder, this.follow(folder))
      // What was written before the watch stood.
      const there = this.roster.open.filter(
        ({ transcript }) => transcript !== undefined && dirname(transcript.path) === folder
      )
      yield* Effect.forEach(there, (plate) => plate.look("look"), { discard: true })
    }
  })

  private follow(folder: string): Effect.Effect<void> {
    return this.fs.watch(folder).pipe(
      Stream.map((event) => basename(event.path)),
      Stream.filter((name) => name.endsWith(".jsonl")),
      Stream.groupedWithin(256, SETTLES),
      Stream.runForEach((names) =>
        Effect.forEach(this.named(folder, new Set(names)), (plate) => plate.look("look"), { discard: true })
      ),
      // The next pass tries again.
      Effect.catchCause((cause) => Effect.logDebug(`${folder} is not watched for a moment`, cause))
    )
  }

  private named(folder: string, names: ReadonlySet<string>): ReadonlyArray<PlateActor> {
    return this.roster.open.filter(
      ({ transcript }) =>
        transcript !== undefined && names.has(basename(transcript.path)) && dirname(transcript.path) === folder
    )
  }
}
