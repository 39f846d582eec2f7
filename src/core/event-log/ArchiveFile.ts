/**
 * ArchiveFile: lines of text in a compressed file. A reference: a simulated world has files of
 * its own.
 *
 * Guarantees: a file is there whole, and on the disk, or not at all; what a write that was cut
 * off has left is replaced by the next; it is written and read line by line, whatever its size.
 */
import { Context, Effect, Schema, Stream } from "effect"
import * as fs from "node:fs"
import { dirname } from "node:path"
import { pipeline } from "node:stream/promises"
import { createGunzip, createGzip } from "node:zlib"
import { syncFolder } from "./SyncFolder.ts"

/** The system's error for an archive's file. */
export class ArchiveIo extends Schema.TaggedError<ArchiveIo>()("ArchiveIo", { message: Schema.String }) {}

const failed = (cause: unknown): ArchiveIo =>
  new ArchiveIo({ message: cause instanceof Error ? cause.message : String(cause) })

export interface Content {
  /** On the disk. */
  readonly bytes: number
  readonly lines: Stream.Stream<string, ArchiveIo>
}

export interface ArchiveFile {
  /** Lines without their ends; the folder is made where it is missing. */
  readonly write: <E>(path: string, lines: Stream.Stream<string, E>) => Effect.Effect<void, ArchiveIo | E>
  /** Undefined where there is none. */
  readonly read: (path: string) => Effect.Effect<Content | undefined>
}

const write: ArchiveFile["write"] = Effect.fnUntraced(function* <E>(path: string, lines: Stream.Stream<string, E>) {
  const part = `${path}.part`
  let refused: { readonly error: E } | undefined
  const text = lines.pipe(
    Stream.map((line) => `${line}\n`),
    Stream.tapError((error) => Effect.sync(() => void (refused = { error })))
  )
  const iterable = yield* Stream.toAsyncIterableEffect(text)
  yield* Effect.tryPromise({
    try: async (signal) => {
      fs.mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
      await pipeline(iterable, createGzip(), fs.createWriteStream(part, { mode: 0o600, flush: true }), { signal })
      fs.renameSync(part, path)
      syncFolder(dirname(path))
    },
    catch: (cause) => refused?.error ?? failed(cause)
  })
})

const bytesOf = async function* (path: string): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip()
  const copied = pipeline(fs.createReadStream(path), gunzip)
  // the reader below meets the same failure, and tells of it
  copied.catch(() => {})
  yield* gunzip
  await copied
}

const read: ArchiveFile["read"] = (path) =>
  Effect.sync(() => {
    const bytes = fs.statSync(path, { throwIfNoEntry: false })?.size
    if (bytes === undefined) return undefined
    const lines = Stream.fromAsyncIterable(bytesOf(path), failed).pipe(Stream.decodeText(), Stream.splitLines)
    return { bytes, lines }
  })

export const ArchiveFile = Context.Reference<ArchiveFile>("agentd/event-log/ArchiveFile", {
  defaultValue: () => ({ write, read })
})
