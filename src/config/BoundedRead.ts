/**
 * BoundedRead: reads the beginning of a stream of bytes, such as a file on standard input or the body of an answer.
 *
 * Guarantees: at most `most` bytes are returned, and at most one chunk more is read. After that, the stream is closed,
 * so that a sender that never ends is not waited for.
 */
import { Effect, Stream } from "effect"

export interface Read {
  readonly bytes: Uint8Array
  /** True if the stream has more bytes. */
  readonly isCut: boolean
}

export const read = <E, R>(stream: Stream.Stream<Uint8Array, E, R>, most: number): Effect.Effect<Read, E, R> =>
  Effect.suspend(() => {
    const parts: Array<Uint8Array> = []
    let size = 0
    return Stream.runForEachWhile(stream, (part) =>
      Effect.sync(() => {
        parts.push(part)
        size += part.length
        return size <= most
      })
    ).pipe(Effect.map(() => ({ bytes: Buffer.concat(parts).subarray(0, most), isCut: size > most })))
  })
