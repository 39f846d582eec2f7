/**
 * Transcript: one transcript file, followed from where it was last read to.
 *
 * Guarantees: a look that finds nothing new costs one `stat`; one look reads a
 * bounded amount, and the next goes on from there; a half-written line is read
 * when it is whole; a line that is too long, or no record, is passed over and
 * said so; a file that was replaced or cut short is read anew; what is no file is
 * not opened, since a pipe would hold up all files of the daemon.
 */
import { Effect, FileSystem, Option } from "effect"
import { type Chain, TranscriptView } from "./TranscriptView.ts"

/** Bytes that one look reads at most. */
const MAX_LOOK = 4 * 1024 * 1024
/** A line that is longer is passed over. */
const MAX_LINE = MAX_LOOK
/** Of a file that is there already only the end is read. */
const MAX_FIRST = 16 * 1024 * 1024
const CHUNK = 256 * 1024
const NEWLINE = 0x0a

export type Found =
  /** The transcript is not there (yet), or cannot be read. */
  | { readonly _tag: "Absent" }
  /** More is there than one look reads, or a line is being written: the next look sees it. */
  | { readonly _tag: "Behind" }
  | {
      readonly _tag: "Read"
      /** When it was last written, ms since the epoch. */
      readonly mtime: number
      /** Whole lines were written: what they say counts more than its mtime. */
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

export class Transcript {
  readonly path: string
  private readonly chain: Chain
  private readonly fs: FileSystem.FileSystem
  view: TranscriptView
  /** Only the end of it was read: what is counted over all of it is not known. */
  partial = false
  /** The result of the last look; undefined before the first. */
  found: Found | undefined = undefined
  private inode = ""
  private offset = 0
  private size = -1
  private mtime = -1
  /** In a line that is too long. */
  private skipping = false
  private said = false

  constructor(fs: FileSystem.FileSystem, path: string, chain: Chain) {
    this.fs = fs
    this.path = path
    this.chain = chain
    this.view = new TranscriptView(chain)
  }

  /** Reads what is new. */
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
        // What is appended while it is read is read, too, so that the mtime is that of what was read.
        while (this.offset < stat.size && budget > 0) {
          const took = yield* this.readOn(file, Math.min(budget, stat.size - this.offset))
          if (took === 0) break
          budget -= took
          stat = statOf(yield* file.stat)
        }
        const whole = this.offset >= stat.size
        // A half line that stays one is no line that is being written.
        if (!whole && (!settled || this.offset > unread)) {
          this.remember(stat)
          return behind
        }
        const grown = this.offset > unread || this.said
        this.remember(stat)
        this.said = false
        // at once: a look that is given up as its file is closed has read what no other reads again
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
    this.view = new TranscriptView(this.chain)
    this.partial = stat.size > MAX_FIRST
    this.offset = this.partial ? stat.size - MAX_FIRST : 0
    // The first line is then the end of one.
    this.skipping = this.partial
    this.said = false
  }

  /** Takes the whole lines of the next `length` bytes; answers how many bytes were passed. */
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
