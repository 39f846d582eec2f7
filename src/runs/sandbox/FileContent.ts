/**
 * FileContent: reads an open file, as lines of text or as a whole, with limits.
 *
 * Guarantees: only a regular file is opened. A binary file is refused, not printed. If a file is huge, only the
 * requested part of it is kept, and no more than necessary is read.
 */
import { Effect } from "effect"
import * as fs from "node:fs"
import * as PathContainment from "./PathContainment.ts"
import { call, FileFailed, type Held, shown } from "./PathContainment.ts"

export interface ReadOptions {
  readonly maxBytes: number
  /** Number of the first line to read, counted from 1. */
  readonly line?: number | undefined
  /** Maximum number of lines. */
  readonly limit?: number | undefined
}

export interface Text {
  readonly text: string
  /** The number of the first line in `text`. */
  readonly line: number
  /** Number of lines in `text`; the last one may be incomplete. */
  readonly lines: number
  /** Why `text` stops before the end of the file; undefined if it contains the rest. */
  readonly cut: "limit" | "maxBytes" | undefined
  /** Size of the whole file, bytes. */
  readonly size: number
}

export interface Whole {
  readonly bytes: Buffer
  /** Version of the file. Every change of the file gives another version. */
  readonly version: string
}

const CHUNK = 65_536
/**
 * How many bytes at the beginning of a file are searched for a NUL byte. As in git and grep, a file with a NUL byte is
 * treated as binary.
 */
const SNIFF = 8_000
/** Maximum number of bytes that are read to reach the first requested line. */
const SCAN_LIMIT = 268_435_456

export const failed = (reason: FileFailed["reason"], message: string, remedy: string) =>
  new FileFailed({ reason, message, remedy })

export const versionOf = (stat: fs.BigIntStats) => `${stat.ino}.${stat.size}.${stat.mtimeNs}.${stat.ctimeNs}`

const readAt = (fd: number, buffer: Buffer, position: number) =>
  call<number>((done) => fs.read(fd, buffer, 0, buffer.length, position, done))

const isBinary = (bytes: Buffer) => bytes.subarray(0, SNIFF).includes(0)

const binary = (name: string, size: bigint) =>
  failed("Binary", `${shown(name)} is a binary file of ${size} bytes`, "look at it with a program, by the shell tool")

export const regular = (name: string, held: Held): Effect.Effect<Held, FileFailed> => {
  if (held.stat.isFile()) return Effect.succeed(held)
  const kind = held.stat.isDirectory() ? "a folder" : "no regular file (a device, pipe or socket)"
  return Effect.fail(failed("NotAFile", `${shown(name)} is ${kind}`, "name a regular file"))
}

/** Collects `count` lines, starting with line number `first`, from chunks of bytes. */
const lineTaker = (first: number, count: number, maxBytes: number) => {
  const kept: Array<Buffer> = []
  let [line, size, ended, cut] = [1, 0, false, undefined as Text["cut"]]
  const take = (part: Buffer) => {
    if (size + part.length > maxBytes) cut = "maxBytes"
    const piece = part.subarray(0, maxBytes - size)
    kept.push(Buffer.from(piece))
    size += piece.length
  }
  /** Adds a chunk. Returns false if no more bytes are needed. */
  const push = (chunk: Buffer): boolean => {
    for (let from = 0; from < chunk.length;) {
      if (line >= first + count) cut = "limit"
      if (cut !== undefined) return false
      const end = chunk.indexOf(10, from)
      const to = end < 0 ? chunk.length : end + 1
      if (line >= first) take(chunk.subarray(from, to))
      if (end >= 0) line++
      ended = end >= 0
      from = to
    }
    return cut === undefined
  }
  const result = () => {
    // leave out a character that the limit has cut in two
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(Buffer.concat(kept), { stream: true })
    const total = ended ? line - 1 : line
    return { text, cut, total, lines: kept.length === 0 ? 0 : Math.max(0, (ended ? line - 1 : line) - first + 1) }
  }
  return { push, result }
}

export const readLines = Effect.fnUntraced(function* (name: string, held: Held, options: ReadOptions) {
  const fd = yield* PathContainment.readable(held)
  const first = Math.max(1, options.line ?? 1)
  const taker = lineTaker(first, options.limit ?? Number.MAX_SAFE_INTEGER, options.maxBytes)
  const buffer = Buffer.allocUnsafe(CHUNK)
  for (let position = 0; ;) {
    const count = yield* readAt(fd, buffer, position)
    const chunk = buffer.subarray(0, count)
    if (position === 0 && isBinary(chunk)) return yield* binary(name, held.stat.size)
    if (count === 0 || !taker.push(chunk)) break
    position += count
    if (position > SCAN_LIMIT)
      return yield* failed(
        "TooLarge",
        `${shown(name)}: line ${first} is too far down`,
        "use the shell: tail, sed -n or grep"
      )
  }
  const { text, cut, lines, total } = taker.result()
  if (lines === 0 && first > 1)
    return yield* failed(
      "Invalid",
      `${shown(name)} has ${total} lines: there is no line ${first}`,
      "read an earlier line"
    )
  const result: Text = { text, line: first, lines, cut, size: Number(held.stat.size) }
  return result
})

export const readWhole = Effect.fnUntraced(function* (name: string, held: Held, maxBytes: number) {
  const tooLarge = failed(
    "TooLarge",
    `${shown(name)} is longer than ${maxBytes} bytes`,
    "read a range of its lines, or use the shell"
  )
  if (held.stat.size > BigInt(maxBytes)) return yield* tooLarge
  const fd = yield* PathContainment.readable(held)
  const parts: Array<Buffer> = []
  for (let size = 0; ;) {
    const buffer = Buffer.allocUnsafe(CHUNK)
    const count = yield* readAt(fd, buffer, size)
    if (count === 0) return { bytes: Buffer.concat(parts), version: versionOf(held.stat) }
    parts.push(buffer.subarray(0, count))
    size += count
    if (size > maxBytes) return yield* tooLarge
  }
})
