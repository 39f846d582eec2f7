/**
 * OldArchives: restores payloads that an older agentd has moved out of the log. That version moved the payloads of a
 * closed conversation into `archive/STREAM.jsonl.gz`, next to the store:
 *
 *     {"agentd":"archive","version":1,"stream":"shop-1a2b3c4d"}
 *     {"eventId":7,"payloadHash":"…","payload":{…}}
 *
 * Guarantees: a payload is compared with its hash in the chain before it is written back into the store, or into the
 * segment of its rune. An archive file is deleted only when no rune of its stream lacks a payload. After a kill,
 * nothing is lost, and the next start continues. Each archive is restored independently. An archive is kept if it is
 * damaged, if it needs a damaged segment, or if disk space is lacking. The next start retries it.
 */
import { Effect, Schema, type Semaphore, Stream } from "effect"
import * as fs from "node:fs"
import { dirname, join } from "node:path"
import { pipeline } from "node:stream/promises"
import { createGunzip } from "node:zlib"
import type { Appender } from "./Appender.ts"
import { type Erasing, without } from "./Erasure.ts"
import { type RuneRefused, StorageError } from "./EventLog.ts"
import { hashPayload } from "./HashChain.ts"
import type { LogReader } from "./LogReader.ts"
import type { Change } from "./LogStore.ts"
import * as Room from "./Room.ts"
import { namesIn, remove } from "./SegmentFile.ts"
import * as SegmentLog from "./SegmentLog.ts"
import { storageError } from "./StorageFailure.ts"

/** Name of the folder that contains the archives, next to the store. */
export const FOLDER = "archive"
const END = ".jsonl.gz"
const ACTOR = "log/archives"
/** Maximum number of payload characters in memory at once. All of them are written into a segment in one rewrite. */
const MOST = 16_000_000
/** Number of payload characters that one transaction of the store writes. */
const PIECE = 500_000
/** Maximum number of archives that a report lists one by one. */
const MAX_TOLD = 20
const LINE = /^\{"eventId":(\d+),"payloadHash":"[^"]*","payload":/

/** The reason why an archive could not be restored. */
export interface Kept {
  readonly message: string
  readonly isDamaged: boolean
}

export interface Archives {
  /** Absolute path of the folder with the archives; undefined for a log without a file. */
  readonly folder: string | undefined
  /** The streams that are archived, according to the log. */
  readonly streams: Set<string>
  /** Archives of an older agentd that could not be restored, by stream. */
  readonly kept: Map<string, Kept>
}

export interface Parts {
  readonly archives: Archives
  readonly reader: LogReader
  /** eventId of the newest rune of each stream, by stream. */
  readonly newest: ReadonlyMap<string, number>
  readonly segments: SegmentLog.Parts | undefined
  readonly change: (change: Change) => Effect.Effect<void, StorageError>
  readonly append: Appender["append"]
  readonly home: string
  /** The erasures, each by the eventId of the erased rune. */
  readonly erasures: Effect.Effect<ReadonlyMap<number, Erasing>, StorageError>
  readonly lock: Semaphore.Semaphore
}

/** An archive whose stream has runes without payloads. */
interface Volume {
  readonly stream: string
  readonly path: string
  /** Hash of each payload that is missing from the log, by the eventId of its rune. */
  readonly lacking: ReadonlyMap<number, string>
}

class Unreadable extends Schema.TaggedError<Unreadable>()("Unreadable", { message: Schema.String }) {}

const pathOf = (folder: string, stream: string): string => join(folder, `${encodeURIComponent(stream)}${END}`)

const streamOf = (name: string): string | undefined => {
  try {
    return name.endsWith(END) ? decodeURIComponent(name.slice(0, -END.length)) : undefined
  } catch {
    return undefined
  }
}

/**
 * Describes what is wrong with the archive of a stream whose runes lack payloads. Undefined if the archive only waits
 * to be restored, or if the log has no file.
 */
export const problemOf = ({ folder, kept }: Archives, stream: string): string | undefined => {
  if (folder === undefined) return undefined
  const known = kept.get(stream)
  if (known !== undefined) return known.isDamaged ? known.message : undefined
  const path = pathOf(folder, stream)
  return fs.existsSync(path)
    ? undefined
    : `its payload was in ${path}, the archive of an older agentd, which is missing`
}

/**
 * Message for the user with one line for each archive that is not restored yet: the conversation, and the reason.
 * Undefined if there is none.
 */
export const told = ({ kept }: Archives): string | undefined => {
  if (kept.size === 0) return undefined
  const lines = Array.from(kept, ([stream, { message }]) => `${stream}: ${message}`)
  const more = lines.length > MAX_TOLD ? [`log: ${lines.length - MAX_TOLD} more archives are not put back`] : []
  return [...lines.slice(0, MAX_TOLD), ...more].join("\n")
}

const bytesOf = async function* (path: string): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip()
  const copied = pipeline(fs.createReadStream(path), gunzip)
  // the reader below gets the same error, and reports it
  copied.catch(() => {})
  yield* gunzip
  await copied
}

const unreadable = (cause: unknown): Unreadable =>
  new Unreadable({ message: cause instanceof Error ? cause.message : String(cause) })

/** Size in bytes of the file's decompressed content, as far as it can be read. */
const sizeOf = (path: string): Effect.Effect<number> => {
  let size = 0
  return Stream.fromAsyncIterable(bytesOf(path), unreadable).pipe(
    Stream.runForEach((bytes) => Effect.sync(() => void (size += bytes.length))),
    Effect.ignore,
    Effect.map(() => size)
  )
}

const lackingIn = Effect.fnUntraced(function* ({ newest, reader }: Parts, stream: string) {
  const lacking = new Map<number, string>()
  for (const page of yield* reader.pages(newest.get(stream) ?? 0, 0)) {
    for (const { eventId, payload, payloadHash } of yield* reader.at(page)) {
      if (payload === null) lacking.set(eventId, payloadHash)
    }
    yield* Effect.yieldNow
  }
  return lacking
})

/** Returns the payload without erased text. Undefined if it is not the payload that was appended. */
const checked = (payload: string, hash: string, erasing: Erasing | undefined): string | undefined => {
  const own = hashPayload(payload)
  if (erasing === undefined) return own === hash ? payload : undefined
  if (own === erasing.left) return payload
  return own === hash ? without(payload, erasing.fields) : undefined
}

/** Writes payloads back into the store, or into the segments that contain their runes. */
const place = Effect.fnUntraced(function* (
  { change, segments, ...parts }: Parts,
  payloads: ReadonlyMap<number, string>
): Effect.fn.Return<void, StorageError | RuneRefused> {
  const listed = segments?.segments.listed ?? []
  const last = listed.at(-1)?.last ?? 0
  let piece: Array<readonly [number, string]> = []
  let size = 0
  for (const [eventId, payload] of payloads) {
    if (eventId <= last) continue
    piece.push([eventId, payload])
    size += payload.length
    if (size < PIECE) continue
    yield* change({ _tag: "PutBack", payloads: piece })
    piece = []
    size = 0
  }
  if (piece.length > 0) yield* change({ _tag: "PutBack", payloads: piece })
  if (segments === undefined) return
  const remake = SegmentLog.remake(segments, { ...parts, actor: ACTOR })
  for (const segment of listed) {
    if (![...payloads.keys()].some((eventId) => segment.first <= eventId && eventId <= segment.last)) continue
    yield* remake(segment, (row) =>
      row.payload === null ? { ...row, payload: payloads.get(row.event_id) ?? null } : row
    )
  }
})

/** Reads an archive and restores its payloads. Returns the reason if the file could not be read to its end. */
const read = Effect.fnUntraced(function* (parts: Parts, { lacking, path }: Volume) {
  const erasures = yield* parts.erasures
  let payloads = new Map<number, string>()
  let size = 0
  const flush = Effect.suspend(() => {
    const full = payloads
    payloads = new Map()
    size = 0
    return place(parts, full)
  })
  const broken = yield* Stream.fromAsyncIterable(bytesOf(path), unreadable).pipe(
    Stream.decodeText(),
    Stream.splitLines,
    Stream.runForEach((line) =>
      Effect.suspend(() => {
        const start = LINE.exec(line)
        const hash = lacking.get(Number(start?.[1]))
        if (start === null || hash === undefined) return Effect.void
        const eventId = Number(start[1])
        const payload = checked(line.slice(start[0].length, -1), hash, erasures.get(eventId))
        if (payload === undefined) return Effect.void
        payloads.set(eventId, payload)
        size += payload.length
        return size < MOST ? Effect.void : flush
      })
    ),
    Effect.as(undefined),
    Effect.catchTag("Unreadable", ({ message }) => Effect.succeed(message))
  )
  yield* flush
  return broken
})

const attempt = <A>(path: string, work: () => A) =>
  Effect.try({ try: work, catch: (cause) => storageError(path, cause) })

/** Returns the reason why the archive must be kept; undefined if all its payloads are in the log. */
const restore = Effect.fnUntraced(function* (parts: Parts, path: string, stream: string) {
  const before = yield* lackingIn(parts, stream)
  if (before.size > 0) {
    const lack = yield* Room.lacking(dirname(path), yield* neededFor(parts, path))
    if (lack !== undefined) {
      const message = `${path} of an older agentd is not put back into the log: ${lack}. Make room, then restart the daemon`
      return { message, isDamaged: false }
    }
  }
  const broken = before.size === 0 ? undefined : yield* read(parts, { stream, path, lacking: before })
  const lacking = before.size === 0 ? before : yield* lackingIn(parts, stream)
  const [first] = lacking.keys()
  if (first === undefined) {
    yield* attempt(path, () => remove(path))
    yield* Effect.logInfo(`${path} is back in the log: ${before.size} payloads of ${stream}`)
    return undefined
  }
  const message = `${path} does not hold ${lacking.size} payloads of ${stream}, from rune ${first} on${broken === undefined ? "" : ` (${broken})`}: put back a backup of it, then restart the daemon`
  return { message, isDamaged: true }
})

/** Free disk space (bytes) needed for an archive: the store, its write-ahead log, a second copy of one segment. */
const neededFor = ({ segments }: Parts, path: string): Effect.Effect<number> =>
  Effect.map(
    sizeOf(path),
    (text) => 2 * text + Math.max(0, ...(segments?.segments.listed ?? []).map(({ bytes }) => bytes))
  )

/**
 * Rewrites again the segments whose files differ from the store's list. If the process is killed between writing a
 * segment's new file and appending the rune that records it, the store still lists the old file.
 */
const relisted = Effect.fnUntraced(function* ({ segments, ...parts }: Parts) {
  if (segments === undefined) return
  const remake = SegmentLog.remake(segments, { ...parts, actor: ACTOR })
  for (const { content, ...segment } of segments.segments.open) {
    yield* Effect.gen(function* () {
      if ((yield* attempt(content.path, () => content.sha256)) !== segment.sha256) yield* remake(segment, (row) => row)
    }).pipe(Effect.catch(({ message }) => Effect.logWarning(`runes: ${message}`)))
    yield* Effect.yieldNow
  }
})

export const areThere = ({ folder }: Archives): boolean => folder !== undefined && fs.existsSync(folder)

/** Restores all archives independently. An archive that cannot be restored is added to `kept`, and its file stays. */
export const restoreAll = (parts: Parts): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { folder, kept } = parts.archives
    if (folder === undefined) return
    yield* parts.lock.withPermit(relisted(parts))
    for (const name of namesIn(folder)) {
      const path = join(folder, name)
      const stream = streamOf(name)
      // an older agentd was killed while it wrote this file, so the payloads are still in the log
      if (name.endsWith(`${END}.part`)) yield* Effect.ignore(attempt(path, () => remove(path)))
      if (stream === undefined) continue
      const why = yield* Effect.catch(Effect.uninterruptible(restore(parts, path, stream)), ({ message }) =>
        Effect.succeed({
          message: `${path} is not put back into the log: ${message.replace(/\.$/, "")}. See what is wrong (agentd verify), mend the log (agentd repair) or put back a backup, then restart the daemon`,
          isDamaged: false
        })
      ).pipe(parts.lock.withPermit)
      if (why === undefined) continue
      kept.set(stream, why)
      yield* Effect.logError(`runes: ${why.message}`)
    }
    yield* attempt(folder, () => namesIn(folder).length === 0 && fs.rmdirSync(folder))
  }).pipe(
    Effect.catch(({ message }) =>
      Effect.logError(`runes: archives are not put back, the next start tries again: ${message}`)
    )
  )
