/**
 * Verify: reads a whole store again and reports every damaged rune. It checks that positions and seqs have no gaps, and
 * that each hash matches the rune's content and the previous hash. It also checks the payloads of archived streams, and
 * the invariants that the guard enforces on append.
 */
import { Effect } from "effect"
import { Worker } from "node:worker_threads"
import type { Begins, Problem, StorageError, Verdict } from "./EventLog.ts"
import { textOf } from "./SchemaRepair.ts"
import { errorOf } from "./GroupCommit.ts"
import { foldOf, type InvariantGuard, type States } from "./InvariantGuard.ts"
import * as OldArchives from "./OldArchives.ts"
import { readOwn } from "./OwnKinds.ts"
import type { BaselineFile } from "./BaselineFile.ts"
import type { Made } from "./SegmentFile.ts"
import type { Listed, Segments } from "./Segments.ts"
import { definitions } from "./Migrations.ts"
import { nodeSqlite } from "./Sqlite.ts"
import type { LogReader } from "./LogReader.ts"
import type { Rules } from "./LogRules.ts"
import { firstState } from "./InitialState.ts"
import { parsePayload, type StoredRune } from "./StoredRune.ts"
import { storageError } from "./StorageFailure.ts"
import { type Looked, type Marks, StoreScan, type Walked } from "./StoreScan.ts"
import { TableCheck, type Tables } from "./TableCheck.ts"
import * as ReportedSegments from "./ReportedSegments.ts"
import { verifyThread } from "./ThreadFile.ts"
import type { FromVerify, VerifyData } from "./VerifyThread.ts"

/** Maximum number of reported problems. With more, the whole store is damaged, and further reports are of no use. */
const MAX_PROBLEMS = 1_000

/** Reads a whole store, and calls `each` with the runes of the `relevant` kinds. */
export type Walk = (
  relevant: ReadonlyArray<string>,
  marks: Marks,
  each: (looked: ReadonlyArray<Looked>) => void
) => Effect.Effect<Walked, StorageError>

/** Reads the store on this thread. `file`: path of the store, if the store is a file on this machine. */
export const walkHere =
  (reader: LogReader, segments?: Segments, file?: string): Walk =>
  (relevant, marks, each) =>
    Effect.scoped(
      Effect.gen(function* () {
        const walk = new StoreScan(relevant, marks)
        const tables = file === undefined ? undefined : yield* tablesOf(file)
        if (segments !== undefined) walk.files(segments)
        for (;;) {
          const left = segments === undefined ? undefined : walk.page(segments)
          const runes = left ?? (yield* reader.page({}, walk.head, Number.MAX_SAFE_INTEGER)).runes
          if (runes.length === 0) break
          tables?.next(runes)
          each(walk.next(runes))
          yield* Effect.yieldNow
        }
        return tables === undefined ? walk.end : { ...walk.end, tables: tables.end(walk.left(segments?.last ?? 0)) }
      })
    )

const tablesOf = (file: string) =>
  Effect.acquireRelease(
    Effect.try({
      try: () => {
        const database = nodeSqlite.open(file, { readOnly: true })
        return { database, check: new TableCheck(database, file) }
      },
      catch: (cause) => storageError(file, cause)
    }),
    ({ database }) => Effect.sync(() => database.close())
  ).pipe(Effect.map(({ check }) => check))

/** Reads the store in a separate thread, which ends after the walk. `pause`: pause (ms) after each thousand runes. */
export const walkThere =
  (file: string, pause = 0): Walk =>
  (relevant, marks, each) =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        const workerData: VerifyData = { file, relevant, pause, ...marks }
        return new Worker(verifyThread(), { workerData, name: "verify" })
      }),
      (worker) =>
        Effect.callback<Walked, StorageError>((resume) => {
          worker.on("error", (cause) => resume(Effect.fail(storageError(file, cause))))
          worker.on("message", (message: FromVerify) => {
            if (message._tag === "Failed") return resume(Effect.fail(storageError(file, errorOf(message.failure))))
            if (message._tag === "End") return resume(Effect.succeed(message.walked))
            each(message.looked)
            worker.postMessage("more")
          })
          worker.postMessage("more")
        }),
      (worker) => Effect.promise(() => worker.terminate())
    )

/** Applies the guard to all streams. Collects the archived streams, and the segments that are recorded by runes. */
class Look {
  readonly problems: Array<Problem> = []
  readonly archived = new Set<string>()
  /** Segments that are recorded by runes, by the eventId of their first rune. */
  readonly segments = new Map<number, Made>()
  /** The beginning of the log; set if a rune records that older runes were deleted. */
  begins: Begins | undefined
  private readonly states = new Map<string, States>()
  private readonly rules: Rules
  private readonly beginning: BaselineFile | undefined

  constructor(rules: Rules, beginning?: BaselineFile) {
    this.rules = rules
    this.beginning = beginning
  }

  each(looked: Looked): void {
    const { archives, guard, home } = this.rules
    if (looked.kind === archives.kind && looked.stream === home) this.archived.add(archives.streamOf(looked))
    const own = looked.stream === home ? readOwn({ kind: looked.kind, payload: payloadOf(looked) }) : undefined
    ReportedSegments.note(this.segments, own)
    if (own?.kind === "log.begins") {
      this.begins = { eventId: own.payload.last + 1, at: own.payload.at, by: own.payload.by }
    }
    if (looked.isErased) return
    const seen = { ...looked, payload: parsePayload(looked as unknown as StoredRune) ?? {} }
    const states = this.states.get(looked.stream) ?? this.first(looked.stream)
    const violation = guard.check(states, seen)
    if (violation !== undefined) this.report(looked, violation.rule, violation.message)
    this.states.set(looked.stream, guard.apply(states, seen))
  }

  private first(stream: string): States {
    const { guard } = this.rules
    return firstState(this.beginning, stream, foldOf(guard)) as States
  }

  report(rune: { readonly eventId: number; readonly stream: string }, rule: string, message: string): void {
    if (this.problems.length < MAX_PROBLEMS) {
      this.problems.push({ eventId: rune.eventId, stream: rune.stream, rule, message })
    }
  }
}

const relevantOf = (guard: InvariantGuard, { archives }: Rules): ReadonlyArray<string> => [
  ...guard.kinds,
  archives.kind,
  "segment.sealed",
  "segment.rewritten",
  "log.begins",
  "log.repaired"
]

const payloadOf = (looked: Looked) => parsePayload(looked as unknown as StoredRune) ?? {}

/** Problems with the store that concern no particular rune. */
const tableProblems = (tables: Walked["tables"]): ReadonlyArray<string> => {
  if (tables === undefined) return []
  const isChanged = textOf(definitions()) !== tables.schema
  return [...tables.problems, ...(isChanged ? ["the definitions of its tables and triggers were changed"] : [])]
}

const isAs = (told: Listed | undefined, { bytes, file, last, sha256 }: Listed): boolean =>
  told?.sha256 === sha256 && told.last === last && told.bytes === bytes && told.file === file

/**
 * The file that replaces deleted runes; undefined if there is none, or if it cannot be read, because the walk reports
 * that.
 */
const beginningOf = (segments: Segments | undefined): BaselineFile | undefined => {
  try {
    return segments?.beginning
  } catch {
    return undefined
  }
}

/**
 * Differences between the segments that are recorded by runes and the segments that the store lists. Segments that
 * changed during the walk are ignored, because the next check covers them.
 */
const segmentProblems = (told: ReadonlyMap<number, Listed>, [before, after]: Tables["listed"]) => [
  ...before
    .filter(
      (one) =>
        isAs(
          after.find(({ first }) => first === one.first),
          one
        ) && !isAs(told.get(one.first), one)
    )
    .map(({ file, first }) => ({
      eventId: first,
      message: `no rune says that its segment ${file} is as it is listed`
    })),
  ...[...told.keys()]
    .filter((known) => ![...before, ...after].some(({ first }) => first === known))
    .map((first) => ({ eventId: first, message: "the store does not list its segment" }))
]

export const verify = ({
  archives,
  reader,
  refill,
  rules,
  segments,
  walk
}: {
  readonly reader: LogReader
  readonly rules: Rules
  readonly walk: Walk
  readonly archives: OldArchives.Archives
  readonly segments?: (() => Segments) | undefined
  /** Called if the side file next to the store is wrong, to rebuild it. */
  readonly refill?: (() => void) | undefined
}): Effect.Effect<Verdict, StorageError> =>
  Effect.gen(function* () {
    const { guard, kinds } = rules
    const marks = { seals: kinds.sealing, guarded: guard.kinds }
    const before = yield* reader.lastCommitted
    const beginning = beginningOf(segments?.())
    const look = new Look(rules, beginning)
    const walked = yield* walk(relevantOf(guard, rules), marks, (looked) => looked.forEach((one) => look.each(one)))
    const { bare, erased, head, runes, streams } = walked
    const found = [...walked.problems, ...look.problems].toSorted((a, b) => a.eventId - b.eventId)
    const rest = new Look(rules)
    if (walked.tables?.isRefilled === true) refill?.()
    for (const message of tableProblems(walked.tables)) {
      rest.report({ eventId: 0, stream: "" }, "INV-HASH-VALID", message)
    }
    const { listed = [segments?.().listed ?? [], segments?.().listed ?? []] } = walked.tables ?? {}
    for (const { eventId, message } of segmentProblems(look.segments, listed)) {
      rest.report({ eventId, stream: "" }, "INV-HASH-VALID", message)
    }
    for (const [stream, eventId] of bare) {
      const message = look.archived.has(stream) ? OldArchives.problemOf(archives, stream) : undefined
      if (message !== undefined) rest.report({ eventId, stream }, "INV-HASH-VALID", message)
    }
    // A daemon can have appended runes during the walk, so the last rune that was read must be between the two heads.
    const after = yield* reader.lastCommitted
    if (head < before || head > after) {
      rest.report(
        { eventId: head, stream: "" },
        "INV-EVENTID-MONOTONIC",
        `the last commit ended with rune ${after}, and the store ends with ${head}`
      )
    }
    return {
      runes,
      streams,
      erased: erased.slice(0, MAX_PROBLEMS),
      ...(look.begins === undefined ? {} : { begins: look.begins }),
      problems: [...found, ...rest.problems].slice(0, MAX_PROBLEMS)
    }
  })
