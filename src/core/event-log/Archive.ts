/**
 * Archive: the payloads of a sealed stream in a compressed file, apart from the
 * store. The headers and hashes stay where they are, so the chain stays whole.
 *
 *     {"agentd":"archive","version":1,"stream":"shop-1a2b3c4d"}
 *     {"eventId":7,"payloadHash":"…","payload":{…}}
 *
 * Guarantees: the file is on disk, and was read back and compared with the store,
 * before any payload is erased; a file that is damaged, short, or not this
 * stream's is named with the first rune that it does not hold. Kill -9 at any
 * moment leaves a store that is whole without the file, or a whole file.
 */
import { Effect, Stream } from "effect"
import { join } from "node:path"
import { ArchiveFile, type ArchiveIo } from "./ArchiveFile.ts"
import { type Erasing, without } from "./Erasure.ts"
import { type InvariantGuard, type States } from "./InvariantGuard.ts"
import { hashPayload } from "./HashChain.ts"
import { type Archived, type Problem, StorageError } from "./EventLog.ts"
import type { LogReader } from "./LogReader.ts"
import { parsePayload, type StoredRune } from "./StoredRune.ts"

/** An archive: its place, and the part of the log that it holds. */
export interface Volume {
  readonly reader: LogReader
  readonly guard: InvariantGuard
  /** Absolute. */
  readonly folder: string
  readonly stream: string
  /** No rune of the stream lies beyond it. */
  readonly head: number
  /** The hash of what is left of a payload, by the rune whose texts were erased. */
  readonly erased: ReadonlyMap<number, string>
  /** The newest rune that a person's setting has deleted: what the file has of older ones is compared with nothing. */
  readonly begins?: number
}

/** Beside the store. */
export const FOLDER = "archive"
/** Ids that one erasing statement looks at. */
const ERASE_SPAN = 5_000
const VERSION = 1
/** A file that is wrong all over is wrong. */
const MAX_PROBLEMS = 100

/** The stream of a file; undefined for other files. */
export const streamOf = (name: string): string | undefined =>
  name.endsWith(".jsonl.gz") ? decodeURIComponent(name.slice(0, -".jsonl.gz".length)) : undefined

const nameOf = (stream: string): string => `${encodeURIComponent(stream)}.jsonl.gz`

export const pathOf = ({ folder, stream }: Volume): string => join(folder, nameOf(stream))

const headerOf = (stream: string): string => JSON.stringify({ agentd: "archive", version: VERSION, stream })

/** Everything but the payload is as long in every reader: the payload's text is cut out, not parsed. */
const prefixOf = ({ eventId, payloadHash }: StoredRune): string =>
  `{"eventId":${eventId},"payloadHash":"${payloadHash}","payload":`

const ioError = (path: string, { message }: ArchiveIo): StorageError =>
  new StorageError({
    reason: "io",
    message: `${path} cannot be written: ${message}`,
    remedy: "Make room and make the folder writable for this user, then archive it once more: nothing is lost."
  })

/** All runes of the stream, oldest first, page by page. */
class Pages {
  private waiting: ReadonlyArray<StoredRune> = []
  private next = 0
  private cursor = 0
  private readonly of: Volume

  constructor(of: Volume) {
    this.of = of
  }

  readonly take: Effect.Effect<StoredRune | undefined, StorageError> = Effect.suspend(() => {
    const rune = this.waiting[this.next]
    if (rune !== undefined) {
      this.next += 1
      return Effect.succeed(rune)
    }
    const { head, reader, stream } = this.of
    if (this.cursor >= head) return Effect.succeed(undefined)
    return Effect.flatMap(reader.page({ stream }, this.cursor, head), ({ cursor, runes }) => {
      this.waiting = runes
      this.next = 0
      this.cursor = cursor
      return this.take
    })
  })

  /** The one that the next `take` gives. */
  readonly peek: Effect.Effect<StoredRune | undefined, StorageError> = Effect.suspend(() =>
    Effect.tap(this.take, (rune) =>
      Effect.sync(() => {
        if (rune !== undefined) this.next -= 1
      })
    )
  )
}

/** Whether it is the payload that was appended, or what an erasure has left of it. */
const isOf = ({ eventId, payloadHash }: StoredRune, payload: string, erased: Volume["erased"]): boolean => {
  const hash = hashPayload(payload)
  return hash === payloadHash || hash === erased.get(eventId)
}

const lineOf = (rune: StoredRune, erased: Volume["erased"]): Effect.Effect<string, StorageError> =>
  rune.payload !== null && isOf(rune, rune.payload, erased)
    ? Effect.succeed(`${prefixOf(rune)}${rune.payload}}`)
    : Effect.fail(
        new StorageError({
          reason: "corrupt",
          message: `The payload of rune ${rune.eventId} (${rune.stream}) is not the one that was appended: it is not archived.`,
          remedy: "`agentd verify` says what else is wrong; put back a backup."
        })
      )

/** Writes the file anew; whatever a write that was cut off has left is replaced. */
export const write = Effect.fnUntraced(function* (of: Volume): Effect.fn.Return<void, StorageError> {
  const path = pathOf(of)
  const pages = new Pages(of)
  const lines = Stream.fromIterable([headerOf(of.stream)]).pipe(
    Stream.concat(
      Stream.unfold(pages, () =>
        Effect.flatMap(pages.take, (rune) =>
          rune === undefined
            ? Effect.succeed(undefined)
            : Effect.map(lineOf(rune, of.erased), (line) => [line, pages] as const)
        )
      )
    )
  )
  const file = yield* ArchiveFile
  yield* file.write(path, lines).pipe(Effect.catchTag("ArchiveIo", (error) => Effect.fail(ioError(path, error))))
})

/** The payload's text and the rest of its line; undefined for another rune's line. */
const payloadIn = (line: string, eventId: number): readonly [prefix: string, payload: string] | undefined => {
  const start = `{"eventId":${eventId},"payloadHash":"`
  if (!line.startsWith(start)) return undefined
  const from = line.indexOf('"payload":', start.length) + '"payload":'.length
  return [line.slice(0, from), line.slice(from, -1)]
}

const eventIdOf = (line: string): number => Number(/^\{"eventId":(\d+),/.exec(line)?.[1] ?? Number.POSITIVE_INFINITY)

/** The payload of one rune, as its archive holds it. */
export const payloadOf = Effect.fnUntraced(function* (folder: string, stream: string, eventId: number) {
  const path = join(folder, nameOf(stream))
  const content = yield* (yield* ArchiveFile).read(path)
  if (content === undefined) return undefined
  return yield* Stream.runFold(
    content.lines,
    (): string | undefined => undefined,
    (found, line) => found ?? payloadIn(line, eventId)?.[1]
  ).pipe(Effect.catchTag("ArchiveIo", (error) => Effect.fail(ioError(path, error))))
})

/** Writes the archive anew without the erased texts: the old file is there until the new one is whole. */
export const rewrite = Effect.fnUntraced(function* (
  folder: string,
  { eventId, fields, left, stream }: Erasing
): Effect.fn.Return<void, StorageError> {
  const path = join(folder, nameOf(stream))
  const file = yield* ArchiveFile
  const content = yield* file.read(path)
  if (content === undefined) return
  const lines = Stream.map(content.lines, (line) => {
    const found = payloadIn(line, eventId)
    if (found === undefined || hashPayload(found[1]) === left) return line
    return `${found[0]}${without(found[1], fields)}}`
  })
  yield* file.write(path, lines).pipe(Effect.catchTag("ArchiveIo", (error) => Effect.fail(ioError(path, error))))
})

/** The file against the store, rune by rune, and the invariants that its payloads show. */
class Comparison {
  readonly problems: Array<Omit<Problem, "stream">> = []
  private readonly of: Volume
  private readonly pages: Pages
  private states: States
  private lines = 0
  runes = 0
  first = 0
  last: StoredRune | undefined = undefined

  constructor(of: Volume) {
    this.of = of
    this.pages = new Pages(of)
    this.states = of.guard.initial
  }

  report(eventId: number, rule: string, message: string): void {
    if (this.problems.length < MAX_PROBLEMS) this.problems.push({ eventId, rule, message })
  }

  /** Reports damage of the file as a whole, from the present rune on. */
  broken(message: string): Effect.Effect<void, StorageError> {
    return Effect.map(this.pages.peek, (rune) =>
      this.report((rune ?? this.last)?.eventId ?? 0, "INV-HASH-VALID", `its archive ${pathOf(this.of)} ${message}`)
    )
  }

  line(line: string): Effect.Effect<void, StorageError> {
    if (this.lines++ === 0) {
      return line === headerOf(this.of.stream) ? Effect.void : this.broken("does not begin as one of this stream")
    }
    if (eventIdOf(line) <= (this.of.begins ?? 0)) return Effect.void
    return Effect.flatMap(this.pages.take, (rune) => {
      if (rune === undefined) return this.broken("holds more than the stream")
      this.compare(rune, line)
      return Effect.void
    })
  }

  private compare(rune: StoredRune, line: string): void {
    if (this.runes++ === 0) this.first = rune.eventId
    this.last = rune
    const prefix = prefixOf(rune)
    const payload = line.slice(prefix.length, -1)
    if (!line.startsWith(prefix) || !line.endsWith("}") || !isOf(rune, payload, this.of.erased)) {
      return this.report(rune.eventId, "INV-HASH-VALID", "the payload in its archive is not the one that was appended")
    }
    const { guard } = this.of
    const seen = { ...rune, payload: parsePayload({ ...rune, payload }) ?? {} }
    const violation = guard.check(this.states, seen)
    if (violation !== undefined) this.report(rune.eventId, violation.rule, violation.message)
    this.states = guard.apply(this.states, seen)
  }

  readonly end: Effect.Effect<void, StorageError> = Effect.suspend(() =>
    Effect.map(this.pages.take, (rune) => {
      if (rune !== undefined && this.problems.length === 0) {
        this.report(rune.eventId, "INV-HASH-VALID", `its archive ${pathOf(this.of)} ends before it`)
      }
    })
  )
}

/** Reads the whole file. What is wrong with it is the answer, not a failure. */
export const check = Effect.fnUntraced(function* (
  of: Volume
): Effect.fn.Return<Archived & { readonly problems: ReadonlyArray<Omit<Problem, "stream">> }, StorageError> {
  const comparison = new Comparison(of)
  const content = yield* (yield* ArchiveFile).read(pathOf(of))
  if (content === undefined) yield* comparison.broken("is missing")
  else {
    yield* content.lines.pipe(
      Stream.runForEach((line) => comparison.line(line)),
      Effect.andThen(comparison.end),
      Effect.catchTag("ArchiveIo", ({ message }) => comparison.broken(`is damaged: ${message}`))
    )
  }
  const { first, last, problems, runes } = comparison
  return {
    file: `${FOLDER}/${nameOf(of.stream)}`,
    runes,
    bytes: content?.bytes ?? 0,
    firstEventId: first,
    lastEventId: last?.eventId ?? 0,
    lastHash: last?.hash ?? "",
    problems
  }
})

/** Fails for a file that does not hold the stream: nothing may be erased then. */
export const intact = (of: Volume): Effect.Effect<Archived, StorageError> =>
  Effect.flatMap(check(of), ({ problems, ...archived }) => {
    const [problem] = problems
    return problem === undefined
      ? Effect.succeed(archived)
      : Effect.fail(
          new StorageError({
            reason: "corrupt",
            message: `Rune ${problem.eventId} (${of.stream}): ${problem.message}.`,
            remedy: "No payload was erased now. Put back a backup of the file, then archive it once more."
          })
        )
  })

/** Erases payloads of a stream with `after` < eventId ≤ `upTo`. */
export type Erase = (stream: string, after: number, upTo: number) => Effect.Effect<void, StorageError>

/** A bit at a time: the writer goes on meanwhile. */
export const erase = Effect.fnUntraced(function* (
  stream: string,
  { firstEventId, lastEventId }: Archived,
  eraseSpan: Erase
): Effect.fn.Return<void, StorageError> {
  for (let after = firstEventId - 1; after < lastEventId; after += ERASE_SPAN) {
    yield* eraseSpan(stream, after, Math.min(after + ERASE_SPAN, lastEventId))
    yield* Effect.yieldNow
  }
})
