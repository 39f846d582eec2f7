/**
 * Bench of the rune log: many writers, each of which waits until its rune is on
 * the disk before it writes the next.
 *
 * Beside it, in the same run and in turns: the least that SQLite can do (one
 * prepared INSERT a row, the same pragmas, commits shared in the same way, no
 * hashes, no schema, no guard) and the least that the disk can do (the same bytes
 * appended to a file, one fdatasync a group; and one a rune).
 */
import { Layer, ManagedRuntime, Stream } from "effect"
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { Redact } from "../../src/runes/Redact.ts"
import { RuneLog } from "../../src/runes/RuneLog.ts"
import * as SqlRuneLog from "../../src/runes/SqlRuneLog.ts"

export interface Row {
  readonly what: string
  readonly subject: string
  readonly median: number
  readonly unit: string
}

export const name = "rune log"

const ROUNDS = 5
/** How many write at once, and how many runes they write together. */
const loads = [
  { writers: 1, runes: 400 },
  { writers: 16, runes: 8_000 },
  { writers: 64, runes: 16_000 },
  { writers: 256, runes: 32_000 }
] as const

/** What a worker's move looks like. */
const event = { _tag: "SessionStarted", runId: "01k9z3r5w8q2m4n6p8r0t2v4x6", seq: 3, pid: 123_456 }
const payload = { sessionSeq: 3, runId: event.runId, consecutiveErrors: 0, totalErrors: 1, event }
const text = JSON.stringify(payload)

/** One thing that can write; `append` resolves when it is on the disk. */
interface Subject {
  readonly append: (writer: number) => Promise<unknown>
  readonly close: () => Promise<void>
}

type Make = (folder: string) => Promise<Subject>

const runeLog: Make = async (folder) => {
  const runtime = ManagedRuntime.make(
    SqlRuneLog.layer({ file: join(folder, "runes.db") }).pipe(Layer.provide(Redact.layer))
  )
  const log = await runtime.runPromise(RuneLog)
  // Each writer is an inbox of its own: no invariant looks at these.
  const draft = (writer: number) => ({
    stream: `project-${writer % 8}`,
    kind: "inbox.received",
    actor: `inbox/${writer}`,
    from: "Open",
    to: "Open",
    trigger: "Received",
    payload
  })
  return {
    append: (writer) => runtime.runPromise(log.append([draft(writer)])),
    close: () => runtime.dispose()
  }
}

/** Callers share a commit: whoever comes while one is under way waits for the next. */
const grouped = (commit: (count: number) => void) => {
  let waiting: Array<() => void> = []
  const flush = () => {
    const group = waiting
    waiting = []
    commit(group.length)
    for (const answer of group) answer()
  }
  return () =>
    new Promise<void>((resolve) => {
      waiting.push(resolve)
      if (waiting.length === 1) setImmediate(flush)
    })
}

const plainSqlite: Make = async (folder) => {
  const database = new DatabaseSync(join(folder, "plain.db"))
  database.exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL")
  database.exec("CREATE TABLE rows (id INTEGER PRIMARY KEY, stream TEXT, actor TEXT, at INTEGER, payload TEXT) STRICT")
  const insert = database.prepare("INSERT INTO rows (stream, actor, at, payload) VALUES (?, ?, ?, ?)")
  const append = grouped((count) => {
    database.exec("BEGIN IMMEDIATE")
    for (let row = 0; row < count; row++) insert.run("project", "inbox", row, text)
    database.exec("COMMIT")
  })
  return { append, close: async () => database.close() }
}

const plainFile: Make = async (folder) => {
  const file = openSync(join(folder, "plain.log"), "a")
  const line = `project inbox 0 ${text}\n`
  const append = grouped((count) => {
    writeSync(file, line.repeat(count))
    fdatasyncSync(file)
  })
  return { append, close: async () => closeSync(file) }
}

const subjects = { "rune log": runeLog, "plain SQLite": plainSqlite, "plain fdatasync": plainFile } as const
type Name = keyof typeof subjects

interface Measured {
  /** Runes in a second. */
  readonly rate: number
  /** ms */
  readonly p99: number
}

const measure = async (subject: Subject, writers: number, runes: number): Promise<Measured> => {
  const waits: Array<number> = []
  const each = Math.ceil(runes / writers)
  const start = performance.now()
  await Promise.all(
    Array.from({ length: writers }, async (_, writer) => {
      for (let n = 0; n < each; n++) {
        const before = performance.now()
        await subject.append(writer)
        waits.push(performance.now() - before)
      }
    })
  )
  const seconds = (performance.now() - start) / 1000
  return { rate: (each * writers) / seconds, p99: waits.toSorted((a, b) => a - b)[Math.floor(waits.length * 0.99)]! }
}

const median = (values: ReadonlyArray<number>): number => values.toSorted((a, b) => a - b)[values.length >> 1]!

const inFolder = async <A>(use: (folder: string) => Promise<A>): Promise<A> => {
  const folder = mkdtempSync(join(tmpdir(), "agentd-bench-"))
  try {
    return await use(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** One load: every subject in every round, so that what else the machine does meets them all. */
const appending = (writers: number, runes: number): Promise<ReadonlyArray<Row>> =>
  inFolder(async (folder) => {
    const names = Object.keys(subjects) as ReadonlyArray<Name>
    const all = await Promise.all(names.map(async (each) => [each, await subjects[each](folder)] as const))
    const measured = new Map<Name, Array<Measured>>(names.map((each) => [each, []]))
    // The first round warms up, and is not counted.
    for (let round = 0; round <= ROUNDS; round++) {
      for (const [each, subject] of all) {
        const result = await measure(subject, writers, runes)
        if (round > 0) measured.get(each)!.push(result)
      }
    }
    for (const [, subject] of all) await subject.close()
    const rates = (each: Name) => measured.get(each)!.map(({ rate }) => rate)
    const against = (other: Name) => median(rates("rune log").map((rate, round) => rate / rates(other)[round]!))
    const what = `append, ${writers} ${writers === 1 ? "writer" : "writers"}`
    return [
      ...names.map((subject) => ({ what, subject, median: median(rates(subject)), unit: "runes/s" })),
      ...names.map((subject) => ({
        what: `${what}, p99`,
        subject,
        median: median(measured.get(subject)!.map(({ p99 }) => p99)),
        unit: "ms"
      })),
      { what, subject: "rune log / plain SQLite", median: against("plain SQLite"), unit: "×" },
      { what, subject: "rune log / plain fdatasync", median: against("plain fdatasync"), unit: "×" }
    ]
  })

const RUNES = 100_000

/** What a start costs: opening restores the ledger, recovery reads, verify re-reads everything. */
const reading = (): Promise<ReadonlyArray<Row>> =>
  inFolder(async (folder) => {
    const subject = await runeLog(folder)
    await measure(subject, 256, RUNES)
    await subject.close()
    const layer = SqlRuneLog.layer({ file: join(folder, "runes.db") }).pipe(Layer.provide(Redact.layer))
    const times = { open: [] as Array<number>, read: [] as Array<number>, verify: [] as Array<number> }
    const timed = async (into: Array<number>, work: () => Promise<unknown>) => {
      const start = performance.now()
      await work()
      into.push(performance.now() - start)
    }
    for (let round = 0; round < ROUNDS; round++) {
      const runtime = ManagedRuntime.make(layer)
      let log: RuneLog["Service"] | undefined
      await timed(times.open, async () => (log = await runtime.runPromise(RuneLog)))
      await timed(times.read, () => runtime.runPromise(Stream.runDrain(log!.read({}))))
      await timed(times.verify, () => runtime.runPromise(log!.verify))
      await runtime.dispose()
    }
    return Object.entries(times).map(([what, each]) => ({
      what: `${what}, ${RUNES} runes`,
      subject: "rune log",
      median: median(each),
      unit: "ms"
    }))
  })

export const run = async (): Promise<ReadonlyArray<Row>> => {
  const rows: Array<Row> = []
  for (const { writers, runes } of loads) rows.push(...(await appending(writers, runes)))
  return [...rows, ...(await reading())]
}
