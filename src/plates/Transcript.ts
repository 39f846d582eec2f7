/**
 * Transcript: follows one transcript file, from the position that was read last.
 *
 * Guarantees: a read that finds nothing new costs one `stat`. One read takes a bounded number of bytes, and the next
 * one continues from there. An incomplete line is read when it is complete. A line that is too long, or is not a
 * record, is skipped and counted as unknown. A file that was replaced or truncated is read again from the start. A path
 * that is not a regular file is not opened: a pipe would block all file operations of the daemon.
 */
import { Effect, FileSystem, Option } from "effect"
import type { TranscriptView } from "./TranscriptView.ts"

/** Maximum number of bytes that one call of `look` reads. */
const MAX_LOOK = 4 * 1024 * 1024
/** Maximum length of a line, in bytes. A longer line is skipped. */
const MAX_LINE = MAX_LOOK
/** Maximum number of bytes at the end of a file that the first read processes. */
const MAX_FIRST = 16 * 1024 * 1024
const CHUNK = 256 * 1024
const NEWLINE = 0x0a

export type Found =
  /** The transcript does not exist (yet), or cannot be read. */
  | { readonly _tag: "Absent" }
  /** More was written than one call reads, or a line is incomplete. The next call continues from there. */
  | { readonly _tag: "Behind" }
  | {
      readonly _tag: "Read"
      /** When the file was last written, ms since the epoch. */
      readonly mtime: number
      /** True if complete lines were added. Their content is more reliable than the mtime. */
      readonly grown: boolean
    }

const absent: Found = { _tag: "Absent" }
const behind: Found = { _tag: "Behind" }

interface Stat {
  readonly inode: string
  readonly size: number
  readonly mtime: number
}

const statOf = (info: FileSystem.File.Info): Stat => ({
  inode: String(Option.getOrElse(info.ino, () => 0)),
  size: Number(info.size),
  mtime: Option.match(info.mtime, { onNone: () => 0, onSome: (at) => at.getTime() })
})

/** Receives the file's lines, one by one. */
export interface View {
  readonly take: (line: string) => void
  /** Called for a line that is too long. */
  readonly passOver: () => void
}

export class Transcript<V extends View = TranscriptView> {
  readonly path: string
  private readonly make: () => V
  private readonly fs: FileSystem.FileSystem
  view: V
  /** True if only the end of the file was read, so that totals are unknown. */
  partial = false
  /** Result of the newest read; undefined before the first one. */
  found: Found | undefined = undefined
  private inode = ""
  private offset = 0
  private size = -1
  private mtime = -1
  /** True while a line that is too long is being skipped. */
  private skipping = false
  private said = false

  constructor(fs: FileSystem.FileSystem, path: string, make: () => V) {
    this.fs = fs
    this.path = path
    this.make = make
    this.view = make()
  }

  /** Reads what was added since the last call. */
  readonly look: Effect.Effect<Found> = Effect.suspend(() =>
    this.fs.stat(this.path).pipe(
      Effect.flatMap((info) => {
        if (info.type !== "File") return Effect.succeed(absent)
        const stat = statOf(info)
        return this.isSame(stat) && this.found?._tag === "Read" ? Effect.succeed(this.found) : this.read(stat)
      }),
      Effect.orElseSucceed(() => absent),
      Effect.tap((found) =>
        Effect.sync(() => {
          this.found = found
        })
      )
    )
  )

  private isSame(stat: Stat): boolean {
    return stat.inode === this.inode && stat.size === this.size && stat.mtime === this.mtime
  }

  private read(before: Stat) {
    return Effect.scoped(
      Effect.gen({ self: this }, function* () {
        const file = yield* this.fs.open(this.path, { flag: "r" })
        const settled = before.size === this.size && before.mtime === this.mtime
        let stat = statOf(yield* file.stat)
        if (stat.inode !== this.inode || stat.size < this.offset) this.restart(stat)
        const unread = this.offset
        let budget = MAX_LOOK
        // Lines that are appended during the read are read, too, so that the mtime belongs to the content.
        while (this.offset < stat.size && budget > 0) {
          const took = yield* this.readOn(file, Math.min(budget, stat.size - this.offset))
          if (took === 0) break
          budget -= took
          stat = statOf(yield* file.stat)
        }
        const whole = this.offset >= stat.size
        // If an incomplete line has stopped changing, it is not being written any more.
        if (!whole && (!settled || this.offset > unread)) {
          this.remember(stat)
          return behind
        }
        const grown = this.offset > unread || this.said
        this.remember(stat)
        this.said = false
        // set this now: if the read is interrupted while the file closes, later reads must not read these lines again
        return (this.found = { _tag: "Read", mtime: stat.mtime, grown: whole && grown })
      })
    )
  }

  private remember(stat: Stat): void {
    this.inode = stat.inode
    this.size = stat.size
    this.mtime = stat.mtime
  }

  private restart(stat: Stat): void {
    this.view = this.make()
    this.partial = stat.size > MAX_FIRST
    this.offset = this.partial ? stat.size - MAX_FIRST : 0
    // the first line is then incomplete
    this.skipping = this.partial
    this.said = false
  }

  /** Processes the complete lines of the next `length` bytes, and returns the number of bytes that were consumed. */
  private readOn(file: FileSystem.File, length: number) {
    return Effect.gen({ self: this }, function* () {
      const wanted = Math.min(length, this.skipping ? CHUNK : MAX_LINE)
      const buffer = Buffer.allocUnsafe(wanted)
      let filled = 0
      while (filled < wanted) {
        const count = yield* file.read(buffer.subarray(filled, Math.min(wanted, filled + CHUNK)), {
          position: BigInt(this.offset + filled)
        })
        if (count === 0) break
        filled += count
      }
      const passed = this.lines(buffer.subarray(0, filled))
      if (passed === 0 && filled >= MAX_LINE) {
        this.skipping = true
        this.view.passOver()
        this.offset += filled
        return filled
      }
      this.offset += passed
      return passed
    })
  }

  private lines(bytes: Buffer): number {
    let start = 0
    if (this.skipping) {
      const end = bytes.indexOf(NEWLINE)
      if (end < 0) return bytes.length
      this.skipping = false
      start = end + 1
    }
    for (let end = bytes.indexOf(NEWLINE, start); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
      const line = bytes.toString("utf8", start, end).trim()
      start = end + 1
      if (line === "") continue
      this.said = true
      this.view.take(line)
    }
    return start
  }
}
