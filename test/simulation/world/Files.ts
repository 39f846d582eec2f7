/**
 * Files: a file system in memory, which outlives the daemon. It answers at once and tells
 * its watchers; what the daemon does not use is not there, and says so.
 */
import { ByteSize, type Cause, Effect, FileSystem, Option, PlatformError, Queue, Stream } from "effect"
import { OwnFileRefused, type Read } from "../../../src/config/OwnFile.ts"
import { type Touch, untouched } from "../Boundaries.ts"
import { EPOCH, type Life, type Universe } from "../Universe.ts"

interface Entry {
  readonly bytes: Uint8Array | undefined
  readonly mtime: number
}

const missing = (method: string, path: string) =>
  PlatformError.systemError({
    _tag: "NotFound",
    module: "FileSystem",
    method,
    description: "No such file or directory",
    pathOrDescriptor: path
  })

const noRoom = (path: string) =>
  PlatformError.systemError({
    _tag: "Unknown",
    module: "FileSystem",
    method: "write",
    description: "no space left on device",
    pathOrDescriptor: path
  })

const parentOf = (path: string): string => path.slice(0, path.lastIndexOf("/")) || "/"

interface Watcher {
  readonly path: string
  readonly life: Life
  readonly tell: (event: FileSystem.WatchEvent) => void
}

export class Files {
  private readonly entries = new Map<string, Entry>()
  private watchers: Array<Watcher> = []
  touch: Touch = untouched
  /** Files that are made up as they are read, as below /proc. */
  readonly told = new Map<string, () => string>()
  private readonly universe: Universe

  /** Why nothing can be added to a file, if so. */
  trouble: () => string | undefined = () => undefined
  private temporary = 0

  constructor(universe: Universe) {
    this.universe = universe
  }

  /** A change of the daemon's. */
  private change(change: () => void): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (!this.touch("file: before")) return Effect.never
      change()
      return this.touch("file: after") ? Effect.void : Effect.never
    })
  }

  /** `mtime`: ms since the epoch, as a machine's clock shows that was set; else the present time. */
  write(path: string, content: string, mtime = EPOCH + this.universe.now): void {
    this.set(path, new TextEncoder().encode(content), mtime - EPOCH)
  }

  append(path: string, content: string, mtime: number): void {
    this.write(path, `${this.text(path) ?? ""}${content}`, mtime)
  }

  /** Hears of what is removed before it is. */
  removes: (path: string) => void = () => {}

  remove(path: string): void {
    this.removes(path)
    for (const name of this.entries.keys()) if (name === path || name.startsWith(`${path}/`)) this.entries.delete(name)
    this.tell(path, "Remove")
  }

  /** The texts below a folder, by their paths in it. */
  texts(folder: string, isWanted: (path: string) => boolean): Map<string, string> {
    const found = new Map<string, string>()
    for (const [name, { bytes }] of this.entries) {
      if (bytes === undefined || !name.startsWith(`${folder}/`)) continue
      const path = name.slice(folder.length + 1)
      if (isWanted(path)) found.set(path, new TextDecoder().decode(bytes))
    }
    return found
  }

  text(path: string): string | undefined {
    const bytes = this.entries.get(path)?.bytes
    return bytes === undefined ? undefined : new TextDecoder().decode(bytes)
  }

  has(path: string): boolean {
    return this.entries.has(path)
  }

  /** The files that nobody else can have written: here they all are. */
  readonly owned: Read = (path, most) =>
    Effect.suspend(() => {
      const bytes = this.entries.get(path)?.bytes
      const refused = (reason: "missing" | "tooLarge", message: string) =>
        Effect.fail(new OwnFileRefused({ reason, message, remedy: "" }))
      if (bytes === undefined) return refused("missing", "there is no such file")
      return bytes.length > most ? refused("tooLarge", "is too large") : Effect.succeed(bytes)
    })

  /** The life is over: nobody of it watches any more. */
  forget(life: Life): void {
    this.watchers = this.watchers.filter((watcher) => watcher.life !== life)
  }

  private set(path: string, bytes: Uint8Array | undefined, mtime = this.universe.now): void {
    for (let folder = parentOf(path); folder !== "/" && !this.entries.has(folder); folder = parentOf(folder)) {
      this.entries.set(folder, { bytes: undefined, mtime: this.universe.now })
    }
    const isNew = !this.entries.has(path)
    this.entries.set(path, { bytes, mtime })
    this.tell(path, isNew ? "Create" : "Update")
  }

  private tell(path: string, _tag: FileSystem.WatchEvent["_tag"]): void {
    for (const watcher of this.watchers) {
      if (watcher.path !== path && watcher.path !== parentOf(path)) continue
      this.universe.later(1, () => watcher.tell({ _tag, path } as FileSystem.WatchEvent), watcher.life)
    }
  }

  private get(method: string, path: string) {
    return Effect.suspend(() => {
      const entry = this.entries.get(path)
      return entry === undefined ? Effect.fail(missing(method, path)) : Effect.succeed(entry)
    })
  }

  private bytesOf(method: string, path: string) {
    return Effect.flatMap(this.get(method, path), ({ bytes }) =>
      bytes === undefined ? Effect.fail(missing(method, path)) : Effect.succeed(bytes)
    )
  }

  /** To be read. */
  private opened(path: string): FileSystem.File {
    const read: FileSystem.File["read"] = (into, { position } = {}) =>
      Effect.map(this.bytesOf("read", path), (bytes) => {
        const from = Number(position ?? 0)
        const some = bytes.subarray(from, from + into.length)
        into.set(some)
        return some.length
      })
    const file: Partial<FileSystem.File> = { stat: Effect.map(this.get("stat", path), infoOf), read }
    return file as FileSystem.File
  }

  /** A file that is added to: half of what is written may be there when the daemon dies, or its disk is full. */
  private appending(path: string): FileSystem.File {
    const add = (bytes: Uint8Array) =>
      this.change(() => this.set(path, Buffer.concat([this.entries.get(path)?.bytes ?? new Uint8Array(), bytes])))
    const writeAll = (bytes: Uint8Array) =>
      Effect.gen({ self: this }, function* () {
        const half = Math.floor(bytes.length / 2)
        const isTold = this.trouble() !== undefined
        yield* add(bytes.subarray(0, half))
        if (isTold) return yield* noRoom(path)
        yield* Effect.sleep(0.05)
        yield* add(bytes.subarray(half))
      })
    return { writeAll } as unknown as FileSystem.File
  }

  /** As one life of the daemon sees it. */
  readonly of = (life: Life): FileSystem.FileSystem =>
    FileSystem.makeNoop({
      exists: (path) => Effect.sync(() => this.entries.has(path)),
      realPath: (path) => Effect.as(this.get("realPath", path), path),
      stat: (path) => Effect.map(this.get("stat", path), infoOf),
      readFile: (path) => this.bytesOf("readFile", path),
      readFileString: (path) =>
        Effect.suspend(() => {
          const told = this.told.get(path)
          if (told !== undefined) return Effect.succeed(told())
          return Effect.map(this.bytesOf("readFileString", path), (bytes) => new TextDecoder().decode(bytes))
        }),
      readDirectory: (path) =>
        Effect.map(this.get("readDirectory", path), () =>
          [...this.entries.keys()]
            .filter((name) => parentOf(name) === path && name !== path)
            .map((name) => name.slice(path.length + 1))
        ),
      makeDirectory: (path) => this.change(() => this.set(path, undefined)),
      writeFileString: (path, content) => this.change(() => this.write(path, content)),
      writeFile: (path, bytes) => this.change(() => this.set(path, bytes)),
      rename: (from, to) =>
        Effect.flatMap(this.bytesOf("rename", from), (bytes) =>
          this.change(() => {
            this.remove(from)
            this.set(to, bytes)
          })
        ),
      makeTempDirectoryScoped: ({ prefix = "" } = {}) => {
        const path = `/tmp/${prefix}${++this.temporary}`
        const made = this.change(() => this.set(path, undefined))
        return Effect.as(
          Effect.acquireRelease(made, () => this.change(() => this.remove(path))),
          path
        )
      },
      remove: (path) => this.change(() => this.remove(path)),
      open: (path, options) =>
        options?.flag === "a"
          ? Effect.sync(() => this.appending(path))
          : Effect.as(this.bytesOf("open", path), this.opened(path)),
      chmod: () => Effect.void,
      watch: (path) =>
        Stream.unwrap(
          Effect.gen({ self: this }, function* () {
            const queue = yield* Queue.unbounded<FileSystem.WatchEvent, Cause.Done>()
            this.watchers.push({ path, life, tell: (event) => void Queue.offerUnsafe(queue, event) })
            return Stream.fromQueue(queue)
          })
        )
    })
}

const infoOf = ({ bytes, mtime }: Entry): FileSystem.File.Info =>
  ({
    type: bytes === undefined ? "Directory" : "File",
    size: ByteSize.bytes(bytes?.length ?? 0),
    mtime: Option.some(new Date(EPOCH + mtime)),
    atime: Option.none(),
    birthtime: Option.none(),
    dev: 1,
    ino: Option.none(),
    mode: 0o644,
    nlink: Option.none(),
    uid: Option.none(),
    gid: Option.none(),
    rdev: Option.none(),
    blksize: Option.none(),
    blocks: Option.none()
  }) as unknown as FileSystem.File.Info
