/**
 * Tar: writes and reads tar files as a stream, in the POSIX `pax` format, which every `tar` program can read.
 *
 * Guarantees: writing fails if an entry does not have the number of bytes that it states. Reading trusts nothing:
 * headers must have correct checksums, entries must be regular files, and a truncated stream is an error. File contents
 * are streamed, and never loaded into memory as a whole.
 */

/** A file to be written. Its content has exactly `size` bytes. */
export interface Entry {
  readonly name: string
  readonly size: number
  readonly content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>
}

const BLOCK = 512
const MAX_NAME = 100
/** The largest file size that fits into a plain header: 11 octal digits. */
const MAX_SIZE = 0o77777777777
/** Maximum size of an extended header, in bytes. A path is always shorter. */
const MAX_EXTRA = 65_536

const padding = (size: number): number => (BLOCK - (size % BLOCK)) % BLOCK

const sumOf = (header: Uint8Array): number =>
  header.reduce((sum, byte, at) => sum + (at >= 148 && at < 156 ? 0x20 : byte), 0)

const headerOf = (name: string, size: number, type: "0" | "x"): Buffer => {
  const header = Buffer.alloc(BLOCK)
  header.set(Buffer.from(name).subarray(0, MAX_NAME))
  header.write("0000600\0", 100)
  header.write("0000000\0", 108)
  header.write("0000000\0", 116)
  header.write(`${size.toString(8).padStart(11, "0")}\0`, 124)
  header.write(`${"0".repeat(11)}\0`, 136)
  header.write(type, 156)
  header.write("ustar\u000000", 257)
  header.write(`${sumOf(header).toString(8).padStart(6, "0")}\0 `, 148)
  return header
}

/** A record of an extended header, such as `17 path=a/long/name\n`. Its length includes the length itself. */
const recordOf = (key: string, value: string): string => {
  const rest = ` ${key}=${value}\n`
  let length = Buffer.byteLength(rest)
  while (`${length}`.length + Buffer.byteLength(rest) !== length) length = `${length}`.length + Buffer.byteLength(rest)
  return `${length}${rest}`
}

const headersOf = ({ name, size }: Pick<Entry, "name" | "size">): Buffer => {
  const extra = [
    ...(Buffer.byteLength(name) > MAX_NAME ? [recordOf("path", name)] : []),
    ...(size > MAX_SIZE ? [recordOf("size", `${size}`)] : [])
  ].join("")
  const plain = headerOf(name, size > MAX_SIZE ? 0 : size, "0")
  if (extra === "") return plain
  const bytes = Buffer.from(extra)
  return Buffer.concat([headerOf("pax", bytes.length, "x"), bytes, Buffer.alloc(padding(bytes.length)), plain])
}

export const write = async function* (
  entries: AsyncIterable<Entry> | Iterable<Entry>
): AsyncGenerator<Uint8Array, void> {
  for await (const entry of entries) {
    yield headersOf(entry)
    let left = entry.size
    for await (const piece of entry.content) {
      left -= piece.length
      if (left < 0) break
      yield piece
    }
    if (left !== 0) throw new Error(`${entry.name} does not have ${entry.size} bytes: it changed while it was read`)
    yield Buffer.alloc(padding(entry.size))
  }
  yield Buffer.alloc(2 * BLOCK)
}

/** Reads a stream, which arrives in pieces, in exactly the numbers of bytes that the caller needs. */
class Source {
  private readonly pieces: AsyncIterator<Uint8Array>
  private rest: Uint8Array = new Uint8Array(0)

  constructor(stream: AsyncIterable<Uint8Array>) {
    this.pieces = stream[Symbol.asyncIterator]()
  }

  /** Reads at least one byte and at most `most` bytes. */
  async some(most: number): Promise<Uint8Array> {
    while (this.rest.length === 0) {
      const next = await this.pieces.next()
      if (next.done === true) throw new Error("it is truncated")
      this.rest = next.value
    }
    const piece = this.rest.subarray(0, most)
    this.rest = this.rest.subarray(piece.length)
    return piece
  }

  async exactly(size: number): Promise<Buffer> {
    const pieces: Array<Uint8Array> = []
    for (let left = size; left > 0;) {
      const piece = await this.some(left)
      pieces.push(piece)
      left -= piece.length
    }
    return Buffer.concat(pieces)
  }

  async padding(size: number): Promise<void> {
    if ((await this.exactly(padding(size))).some((byte) => byte !== 0)) throw new Error("it is damaged")
  }

  async *content(size: number): AsyncGenerator<Uint8Array, void> {
    for (let left = size; left > 0;) {
      const piece = await this.some(left)
      left -= piece.length
      yield piece
    }
  }
}

const octal = (header: Buffer, at: number, length: number): number => {
  const text = header
    .toString("latin1", at, at + length)
    .replaceAll("\0", " ")
    .trim()
  if (!/^[0-7]+$/.test(text)) throw new Error("a header is damaged")
  return Number.parseInt(text, 8)
}

const extraIn = (bytes: Buffer): ReadonlyMap<string, string> => {
  const found = new Map<string, string>()
  for (let at = 0; at < bytes.length;) {
    const space = bytes.indexOf(0x20, at)
    const length = Number(bytes.toString("latin1", at, space))
    if (space < 0 || !Number.isSafeInteger(length) || length <= space - at) throw new Error("a header is damaged")
    const record = bytes.toString("utf8", space + 1, at + length - 1)
    const equals = record.indexOf("=")
    found.set(record.slice(0, equals), record.slice(equals + 1))
    at += length
  }
  return found
}

/**
 * Passes each entry to `each`, which must read the entry's content to the end. Entries other than regular files are
 * rejected.
 */
export const read = async (
  stream: AsyncIterable<Uint8Array>,
  each: (entry: Pick<Entry, "name" | "size">, content: AsyncIterable<Uint8Array>) => Promise<void>
): Promise<void> => {
  const source = new Source(stream)
  let extra: ReadonlyMap<string, string> = new Map()
  for (;;) {
    const header = await source.exactly(BLOCK)
    if (header.every((byte) => byte === 0)) return
    if (octal(header, 148, 8) !== sumOf(header)) throw new Error("a header is damaged")
    const type = header.toString("latin1", 156, 157)
    const size = Number(extra.get("size") ?? octal(header, 124, 12))
    if (type === "x") {
      if (size > MAX_EXTRA) throw new Error("a header is damaged")
      extra = extraIn(await source.exactly(size))
      await source.padding(size)
      continue
    }
    if (type !== "0" || !Number.isSafeInteger(size)) throw new Error("it has an entry that is not a plain file")
    const name = extra.get("path") ?? header.toString("utf8", 0, MAX_NAME).split("\0", 1)[0]!
    extra = new Map()
    await each({ name, size }, source.content(size))
    await source.padding(size)
  }
}
