/**
 * MessageFiles: stores the contents of files that are attached to messages. Files with the same content are stored
 * once, under the hash of the content, in a folder that only agentd's user can read (files 0600, the folder 0700).
 *
 * Guarantees: Before a message can refer to a file, the file is complete, matches its hash and is on disk. A file is
 * not removed if a message needs it or if it was stored recently. Files and incomplete uploads are limited in number
 * and size. Files for messages that were never sent are removed.
 */
import { Effect, FileSystem } from "effect"
import { createHash } from "node:crypto"
import * as path from "node:path"
import * as Monotonic from "../../core/supervision/Monotonic.ts"
import { quoted, sizeInWords } from "../../runs/FileDescription.ts"
import * as AttachedFile from "../../runs/AttachedFile.ts"
import { troubleOf } from "../../config/FileTrouble.ts"
import { refuse } from "../../domain/Messages.ts"

/** Maximum total size of all stored files, bytes. `MAX_COUNT`: their maximum number. */
export const MAX_TOTAL = 512 * 1024 * 1024
export const MAX_COUNT = 4_096
export const MAX_COMING = 8
/** How long a file is kept while the message that refers to it has not arrived, ms. */
export const GRACE = 600_000

/** A part of a file. With an empty part, the sender asks how many bytes have been received. */
export interface Piece {
  readonly sha256: string
  /** Size of the complete file, bytes. */
  readonly size: number
  readonly at: number
  readonly data: Uint8Array
}

interface Coming {
  readonly size: number
  readonly pieces: Array<Uint8Array>
  has: number
}

const HASH = /^[0-9a-f]{64}$/

const hashOf = (content: Uint8Array): string => createHash("sha256").update(content).digest("hex")

const unkept = (error: unknown) =>
  refuse(
    "unavailable",
    `The file could not be stored: ${troubleOf(error)}.`,
    "Free space on the disk of agentd's state directory, and make sure that agentd may write there."
  )

export const gone = (filename: string) =>
  refuse("not_found", `The content of ${quoted(filename)} is not stored.`, "Send the message with its files again.")

export class MessageFiles {
  private readonly disk: FileSystem.FileSystem
  private readonly folder: string
  /** Size in bytes of each stored file, by its hash. */
  private readonly kept = new Map<string, number>()
  /** Incomplete uploads, oldest first. */
  private readonly coming = new Map<string, Coming>()
  /** When each recently used file may be removed (monotonic clock, ms). */
  private readonly fresh = new Map<string, number>()

  constructor(disk: FileSystem.FileSystem, folder: string) {
    this.disk = disk
    this.folder = folder
  }

  pathOf(sha256: string): string {
    return path.join(this.folder, HASH.test(sha256) ? sha256 : "none")
  }

  given(files: ReadonlyArray<AttachedFile.AttachedFile>): { readonly files?: ReadonlyArray<AttachedFile.RunFile> } {
    return files.length === 0 ? {} : { files: files.map((file) => ({ ...file, path: this.pathOf(file.sha256) })) }
  }

  get isEmpty(): boolean {
    return this.kept.size === 0
  }

  isFull(size: number): boolean {
    const total = [...this.kept.values()].reduce((sum, one) => sum + one, 0)
    return this.kept.size >= MAX_COUNT || total + size > MAX_TOTAL
  }

  private readonly pin = (sha256: string) =>
    Effect.map(Monotonic.now, (now) => void this.fresh.set(sha256, now + GRACE))

  /** Adds a part of a file. Returns the number of bytes received. The file is durable when it is complete. */
  readonly add = Effect.fnUntraced({ self: this }, function* (this: MessageFiles, { at, data, sha256, size }: Piece) {
    const kept = this.kept.get(sha256)
    if (kept !== undefined) return yield* Effect.as(this.pin(sha256), kept)
    if (this.isFull(size))
      return yield* refuse(
        "full",
        `agentd stores files of messages up to ${sizeInWords(MAX_TOTAL)}, and has no space for this one.`,
        "Wait until agents have answered their messages, or discard unanswered messages: agentd waiting"
      )
    const coming = this.coming.get(sha256) ?? { size, pieces: [], has: 0 }
    // a repeated or concurrent part: the reply tells the sender how many bytes have been received, so it continues
    // there
    if (at !== coming.has || coming.size !== size || data.length === 0) return coming.has
    if (at + data.length > size)
      return yield* refuse("invalid", "The file is longer than its announced size.", "Send it again.")
    coming.pieces.push(data)
    coming.has += data.length
    this.coming.delete(sha256)
    if (coming.has < size) {
      this.coming.set(sha256, coming)
      const [oldest] = this.coming.keys()
      if (this.coming.size > MAX_COMING && oldest !== undefined) this.coming.delete(oldest)
      return coming.has
    }
    return yield* this.put(sha256, Buffer.concat(coming.pieces))
  })

  /** Writes a complete file under a temporary name, renames it to its hash, then records its size. */
  private readonly put = (sha256: string, content: Uint8Array) => {
    if (hashOf(content) !== sha256)
      return Effect.fail(
        refuse("conflict", "The file changed while it was sent.", "Wait until it is complete, then send it again.")
      )
    const { disk, folder } = this
    const part = path.join(folder, `${sha256}.part`)
    const write = Effect.gen(function* () {
      yield* disk.makeDirectory(folder, { recursive: true, mode: 0o700 })
      yield* disk.remove(part, { force: true })
      const file = yield* disk.open(part, { flag: "wx", mode: 0o600 })
      yield* file.writeAll(content)
      yield* file.sync
      yield* disk.rename(part, path.join(folder, sha256))
      yield* (yield* disk.open(folder, { flag: "r" })).sync
    })
    return write.pipe(
      Effect.scoped,
      Effect.mapError(unkept),
      Effect.andThen(this.pin(sha256)),
      Effect.map(() => {
        this.kept.set(sha256, content.length)
        return content.length
      }),
      Effect.uninterruptible
    )
  }

  /** Returns the description of a stored file, and keeps the file until the message arrives. */
  readonly describe = Effect.fnUntraced(
    { self: this },
    function* (this: MessageFiles, filename: string, sha256: string) {
      if (!this.kept.has(sha256)) return yield* gone(filename)
      yield* this.pin(sha256)
      const content = yield* Effect.mapError(this.disk.readFile(this.pathOf(sha256)), () => gone(filename))
      if (hashOf(content) !== sha256) {
        yield* this.forget(sha256)
        return yield* gone(filename)
      }
      const type = AttachedFile.mediaTypeOf(content)
      if (type === undefined)
        return yield* refuse(
          "invalid",
          `${quoted(filename)} is of a type that agents do not accept.`,
          `They accept ${AttachedFile.KINDS}. Copy any other file into the agent's workspace, and send its path.`
        )
      const described: AttachedFile.AttachedFile = { filename, type, size: content.length, sha256 }
      return described
    }
  )

  /** Removes a file, even if a message needs it. */
  readonly forget = (sha256: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      this.kept.delete(sha256)
      this.fresh.delete(sha256)
      return HASH.test(sha256) ? Effect.ignore(this.disk.remove(this.pathOf(sha256), { force: true })) : Effect.void
    })

  readonly sweep = (needed: ReadonlySet<string>): Effect.Effect<void> =>
    Effect.flatMap(Monotonic.now, (now) => {
      for (const [sha256, until] of this.fresh) if (until <= now) this.fresh.delete(sha256)
      const left = [...this.kept.keys()].filter((sha256) => !needed.has(sha256) && !this.fresh.has(sha256))
      return Effect.forEach(left, this.forget, { discard: true })
    })

  /** Finds the files that an earlier daemon stored. Removes incomplete ones. */
  readonly restore: Effect.Effect<void> = Effect.suspend(() =>
    this.disk.readDirectory(this.folder).pipe(
      Effect.orElseSucceed((): Array<string> => []),
      Effect.flatMap((names) =>
        Effect.forEach(
          names,
          (name) => {
            const found = path.join(this.folder, name)
            if (name.endsWith(".part")) return Effect.ignore(this.disk.remove(found, { force: true }))
            if (!HASH.test(name)) return Effect.void
            return this.disk.stat(found).pipe(
              Effect.map(({ size, type }) => {
                if (type === "File") this.kept.set(name, Number(size))
              }),
              Effect.ignore
            )
          },
          { discard: true }
        )
      )
    )
  )
}

/** A stand-in for use without a disk: it stores nothing. */
export const memory = (): MessageFiles => new MessageFiles(FileSystem.makeNoop({}), "")

export const make = (folder: string) =>
  Effect.gen(function* () {
    const files = new MessageFiles(yield* FileSystem.FileSystem, folder)
    yield* files.restore
    return files
  })
