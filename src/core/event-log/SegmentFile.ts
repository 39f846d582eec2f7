/**
 * SegmentFile: a compressed file of runes that were moved out of the store. The file contains all runes from one
 * position of the log to another, of all streams, as they were stored.
 *
 *     blocks of 256 runes, each a zstd frame of lines of JSON: [eventId, format, seq, …, payload, payloadHash, hash]
 *     a skippable frame: the offset of each block, and the newest rune of each stream in the file
 *
 * `zstd -d` decompresses the file to plain lines. Guarantees: a file under its final name is complete and on disk, or
 * does not exist. To find a rune, one block is read. At run time this module uses no npm packages, because the log's
 * threads load it.
 */
import { createHash, type Hash } from "node:crypto"
import * as fs from "node:fs"
import { dirname, join } from "node:path"
import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib"
import type { Link } from "./ChainWalk.ts"
import { COLUMNS, fromRow, type RowValues, rowOfValues, type RuneRow } from "./RuneRow.ts"
import type { StoredRune } from "./StoredRune.ts"
import { syncFolder } from "./SyncFolder.ts"

/** Name of the folder that contains the segments, next to the store. */
export const SEGMENTS = "segments"
const BLOCK = 256
const LEVEL = 3
/** Number of bytes after which the file is synced. A single sync of the whole file would delay other writers. */
const PIECE = 1_000_000
const VERSION = 1
const MAGIC = 0x31534741
/** Magic number of a zstd frame that decoders skip. */
const SKIPPABLE = 0x184d2a50

/** The newest rune of a stream, with the data about the stream that an append needs. */
export interface Head extends Link {
  readonly isSealed: boolean
  /** Position of the newest rune whose kind the guard reads; 0 if there is none. */
  readonly guarded: number
}

/** The newest rune that a segment has of a stream. */
export interface SegmentHead extends Head {
  readonly stream: string
}

export interface Made {
  readonly first: number
  readonly last: number
  readonly runes: number
  /** Name of the file within the folder of segments. */
  readonly file: string
  readonly bytes: number
  readonly sha256: string
}

interface Footer {
  readonly version: number
  readonly first: number
  readonly last: number
  /** For each block: position of its first rune, and the block's offset and length in bytes. */
  readonly blocks: ReadonlyArray<readonly [first: number, offset: number, bytes: number]>
  readonly heads: ReadonlyArray<SegmentHead>
  /** Used by another kind of file, see `BaselineFile`. */
  readonly contents?: unknown
}

const lineOf = (row: RuneRow): string => JSON.stringify(COLUMNS.map((column) => row[column]))

const rowOf = (line: string): RuneRow => rowOfValues(JSON.parse(line) as RowValues)

const compress = (text: string): Buffer =>
  zstdCompressSync(text, { params: { [constants.ZSTD_c_compressionLevel]: LEVEL } })

const closing = (footer: Omit<Footer, "version">): Buffer => {
  const bytes = compress(JSON.stringify({ version: VERSION, ...footer } satisfies Footer))
  const ends = Buffer.alloc(16)
  ends.writeUInt32LE(SKIPPABLE, 0)
  ends.writeUInt32LE(bytes.length + 8, 4)
  ends.writeUInt32LE(bytes.length, 8)
  ends.writeUInt32LE(MAGIC, 12)
  return Buffer.concat([ends.subarray(0, 8), bytes, ends.subarray(8)])
}

export const sizeOf = (path: string): number => fs.statSync(path, { throwIfNoEntry: false })?.size ?? 0

/** Returns the size (bytes) of a store on disk, without its segments. */
export const storeBytes = (file: string): number => sizeOf(file) + sizeOf(`${file}-wal`)

export const namesIn = (folder: string): ReadonlyArray<string> => (fs.existsSync(folder) ? fs.readdirSync(folder) : [])

/** Names of the segment files in the folder, complete or unfinished. */
export const filesIn = (folder: string): ReadonlyArray<string> =>
  namesIn(folder).filter((name) => /^((\d+|begins)-\d+\.zst|segment\.part)$/.test(name))

export const remove = (path: string): void => fs.rmSync(path, { force: true })

/** A file that is being written. The file gets its final name only when it is complete and on disk. */
export class PartFile {
  private readonly folder: string
  private readonly part: string
  private readonly handle: number
  private readonly sha256: Hash = createHash("sha256")
  bytes = 0
  /** Number of written bytes that were already synced to disk. */
  private synced = 0

  constructor(folder: string) {
    this.folder = folder
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
    this.part = join(folder, "segment.part")
    this.handle = fs.openSync(this.part, "w", 0o600)
  }

  /** Writes a frame. Returns its offset and length in bytes. */
  frame(text: string): readonly [offset: number, bytes: number] {
    const offset = this.bytes
    const frame = compress(text)
    this.write(frame)
    if (this.bytes - this.synced > PIECE) {
      fs.fdatasyncSync(this.handle)
      this.synced = this.bytes
    }
    return [offset, frame.length]
  }

  /** Completes the file, which is then on disk. Throws if its content differs from the bytes that were written. */
  finish(file: string, footer: Omit<Footer, "version">, runes: number): Made {
    this.write(closing(footer))
    fs.fsyncSync(this.handle)
    const sha256 = this.sha256.digest("hex")
    if (new SegmentFile(this.part).sha256 !== sha256) throw new Error(`${this.part} is not as it was written`)
    fs.closeSync(this.handle)
    fs.renameSync(this.part, join(this.folder, file))
    syncFolder(this.folder)
    syncFolder(dirname(this.folder))
    const { first, last } = footer
    return { first, last, runes, file, bytes: this.bytes, sha256 }
  }

  abandon(): void {
    fs.closeSync(this.handle)
    fs.rmSync(this.part, { force: true })
  }

  private write(bytes: Buffer): void {
    // the operating system can write fewer bytes than requested
    for (let from = 0; from < bytes.length;) from += fs.writeSync(this.handle, bytes, from)
    this.sha256.update(bytes)
    this.bytes += bytes.length
  }
}

/** Writes a segment file. Rows must be added in order of eventId. */
export class SegmentWriter {
  private readonly file: PartFile
  private readonly blocks: Array<Footer["blocks"][number]> = []
  private waiting: Array<RuneRow> = []
  private first = 0
  private last = 0
  runes = 0

  constructor(folder: string) {
    this.file = new PartFile(folder)
  }

  add(rows: ReadonlyArray<RuneRow>): void {
    for (const row of rows) {
      if (this.runes++ === 0) this.first = row.event_id
      this.last = row.event_id
      this.waiting.push(row)
      if (this.waiting.length === BLOCK) this.block()
    }
  }

  /** Completes the file. When this method returns, the file is durable, and its runes may be deleted from the store. */
  finish(heads: ReadonlyArray<SegmentHead>): Made {
    this.block()
    const { blocks, first, last, runes } = this
    return this.file.finish(`${first}-${last}.zst`, { first, last, blocks, heads }, runes)
  }

  abandon(): void {
    this.file.abandon()
  }

  private block(): void {
    const [row] = this.waiting
    if (row === undefined) return
    const lines = this.waiting.map((one) => `${lineOf(one)}\n`).join("")
    this.blocks.push([row.event_id, ...this.file.frame(lines)])
    this.waiting = []
  }
}

/** An existing segment file. Methods throw if the file is damaged or missing. */
export class SegmentFile {
  readonly path: string
  private known: Footer | undefined

  constructor(path: string) {
    this.path = path
  }

  get footer(): Footer {
    return (this.known ??= this.reading((handle) => {
      const { size } = fs.fstatSync(handle)
      const end = this.part(handle, size - 8, 8)
      if (end.readUInt32LE(4) !== MAGIC) throw new Error(`${this.path} does not end as a segment does`)
      const length = end.readUInt32LE(0)
      const footer = JSON.parse(String(zstdDecompressSync(this.part(handle, size - 8 - length, length)))) as Footer
      if (footer.version !== VERSION) throw new Error(`${this.path} is of version ${footer.version}`)
      return footer
    }))
  }

  get blocks(): number {
    return this.footer.blocks.length
  }

  blockOf(eventId: number): number {
    const { blocks } = this.footer
    let [low, high] = [0, blocks.length - 1]
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (blocks[middle]![0] <= eventId) low = middle
      else high = middle - 1
    }
    return low
  }

  rows(block: number): ReadonlyArray<RuneRow> {
    const [, offset, length] = this.footer.blocks[block]!
    return this.text(offset, length).trimEnd().split("\n").map(rowOf)
  }

  /** Returns the text of the frame at an offset. `offset` and `length` are in bytes. */
  text(offset: number, length: number): string {
    return String(zstdDecompressSync(this.reading((handle) => this.part(handle, offset, length))))
  }

  runes(block: number): ReadonlyArray<StoredRune> {
    return this.rows(block).map(fromRow)
  }

  get bytes(): number {
    return fs.statSync(this.path).size
  }

  get sha256(): string {
    const sha256 = createHash("sha256")
    this.reading((handle) => {
      const chunk = Buffer.alloc(1 << 16)
      for (let read = -1; read !== 0;) {
        read = fs.readSync(handle, chunk)
        sha256.update(chunk.subarray(0, read))
      }
    })
    return sha256.digest("hex")
  }

  private part(handle: number, offset: number, length: number): Buffer {
    const bytes = Buffer.alloc(length)
    if (offset < 0 || fs.readSync(handle, bytes, 0, length, offset) !== length)
      throw new Error(`${this.path} is cut off`)
    return bytes
  }

  private reading<A>(read: (handle: number) => A): A {
    const handle = fs.openSync(this.path, "r")
    try {
      return read(handle)
    } finally {
      fs.closeSync(handle)
    }
  }
}
