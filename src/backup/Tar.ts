/**
 * Tar: writes and reads tar files as a stream, by Effect's Tar, which reads the formats of GNU tar, PAX and USTAR.
 *
 * Guarantees: writing fails if an entry does not have the number of bytes that it states. Reading trusts nothing:
 * headers must have correct checksums, entries must be regular files and end in zero bytes, and a truncated stream is an
 * error. File contents are streamed, and never loaded into memory as a whole.
 */
import { identity, Stream } from "effect"
import * as Tar from "effect/encoding/Tar"

type Pieces<A> = AsyncIterable<A> | Iterable<A>

/** A file to be written. Its content has exactly `size` bytes. */
export interface Entry {
  readonly name: string
  readonly size: number
  readonly content: Pieces<Uint8Array>
}

const BLOCK = 512

const streamOf = <A>(pieces: Pieces<A>): Stream.Stream<A, unknown> =>
  Stream.fromAsyncIterable(
    (async function* () {
      yield* pieces
    })(),
    identity
  )

export const write = (entries: Pieces<Entry>): AsyncIterable<Uint8Array> =>
  streamOf(entries).pipe(
    Stream.map(({ content, name, size }) => Tar.fileStream(name, size, streamOf(content), { mode: 0o600 })),
    Stream.pipeThroughChannel(Tar.encode<unknown, unknown, Tar.Entry<unknown>>()),
    Stream.toAsyncIterable
  )

/**
 * Divides a stream so that an entry's padding can be checked, which Effect's decoder skips. The decoder asks for a piece
 * only when it needs one. So `last` contains the end of an entry once the entry's content was read.
 */
class Blocks {
  /** Number of bytes, in whole blocks, that can be passed on as one piece because they are all content. */
  whole = 0
  last: Uint8Array = new Uint8Array(0)
  private readonly stream: AsyncIterable<Uint8Array>

  constructor(stream: AsyncIterable<Uint8Array>) {
    this.stream = stream
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void> {
    let rest: Uint8Array = new Uint8Array(0)
    for await (const piece of this.stream) {
      rest = rest.length === 0 ? piece : Buffer.concat([rest, piece])
      while (rest.length >= BLOCK) {
        const size = Math.max(BLOCK, Math.min(this.whole, rest.length - (rest.length % BLOCK)))
        this.whole = Math.max(0, this.whole - size)
        this.last = rest.subarray(0, size)
        rest = rest.subarray(size)
        yield this.last
      }
    }
    if (rest.length > 0) yield rest
  }
}

/**
 * Passes each entry to `each`, which must read the entry's content to the end. Entries other than regular files are
 * rejected.
 */
export const read = async (
  stream: AsyncIterable<Uint8Array>,
  each: (entry: Pick<Entry, "name" | "size">, content: AsyncIterable<Uint8Array>) => Promise<void>
): Promise<void> => {
  const blocks = new Blocks(stream)
  const entries = streamOf(blocks).pipe(Stream.pipeThroughChannel(Tar.decode<unknown>()), Stream.toAsyncIterable)
  for await (const { body, header } of entries) {
    const { path: name, size, type } = header
    if (type !== "File") throw new Error("it has an entry that is not a plain file")
    blocks.whole = size - (size % BLOCK)
    await each({ name, size }, Stream.toAsyncIterable(body))
    const end = size % BLOCK
    if (end > 0 && blocks.last.subarray(end).some((byte) => byte !== 0)) throw new Error("it is damaged")
  }
}
