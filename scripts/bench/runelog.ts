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
import { Redact } from "../../src/event-log/Redact.ts"
import { EventLog } from "../../src/event-log/EventLog.ts"
import * as DaemonLog from "../../src/app/DaemonLog.ts"
import { type Bench, interleave, quantile, type Subject } from "./Bench.ts"

const ROUNDS = 5
/** How many write at once, and how many runes they write together. */
const loads = [
  { writers: 1, runes: 400 },
  { writers: 16, runes: 8_000 },
  { writers: 64, runes: 16_000 },
  { writers: 256, runes: 32_000 }
] as const
/** What is opened, read and verified. */
const RUNES = 100_000

/** What a worker's move looks like. */
const event = { _tag: "SessionStarted", runId: "01k9z3r5w8q2m4n6p8r0t2v4x6", seq: 3, pid: 123_456 }
const payload = { sessionSeq: 3, runId: event.runId, consecutiveErrors: 0, totalErrors: 1, event }
const text = JSON.stringify(payload)

/** One thing that can write; `append` resolves when it is on the disk. */
interface Disk {
  readonly append: (writer: number) => Promise<unknown>
  readonly close: () => Promise<void>
}

type Make = (folder: string) => Promise<Disk>

const layer = (folder: string) => DaemonLog.layer({ file: join(folder, "runes.db") }).pipe(Layer.provide(Redact.layer))

const runeLog: Make = async (folder) => {
  const runtime = ManagedRuntime.make(layer(folder))
  const log = await runtime.runPromise(EventLog)
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

const eachLine: Make = async (folder) => {
  const file = openSync(join(folder, "lines.log"), "a")
  const line = `project inbox 0 ${text}\n`
  const append = async () => {
    writeSync(file, line)
    fdatasyncSync(file)
  }
  return { append, close: async () => closeSync(file) }
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

const inFolder = async <A>(use: (folder: string) => Promise<A>): Promise<A> => {
  const folder = mkdtempSync(join(tmpdir(), "agentd-bench-"))
  try {
    return await use(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

type Figures = { readonly [what: string]: number }

const load = (writers: number): string => `append, ${writers} ${writers === 1 ? "writer" : "writers"}`

/** Runes in a second, and how long one in a hundred waits at least (ms). */
const measure = async (disk: Disk, writers: number, runes: number): Promise<Figures> => {
  const waits: Array<number> = []
  const each = Math.ceil(runes / writers)
  const start = performance.now()
  await Promise.all(
    Array.from({ length: writers }, async (_, writer) => {
      for (let n = 0; n < each; n++) {
        const before = performance.now()
        await disk.append(writer)
        waits.push(performance.now() - before)
      }
    })
  )
  const seconds = (performance.now() - start) / 1000
  return { [load(writers)]: (each * writers) / seconds, [`${load(writers)}, p99`]: quantile(waits, 0.99) }
}

const appending = (subject: string, make: Make): Subject => ({
  subject,
  round: () =>
    inFolder(async (folder) => {
      const disk = await make(folder)
      let figures: Figures = {}
      for (const { writers, runes } of loads) figures = { ...figures, ...(await measure(disk, writers, runes)) }
      await disk.close()
      return figures
    })
})

const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const start = performance.now()
  await work()
  return performance.now() - start
}

/** What a start costs: opening restores the ledger, recovery reads, verify re-reads everything. */
const reading: Subject = {
  subject: "rune log",
  round: () =>
    inFolder(async (folder) => {
      const disk = await runeLog(folder)
      await measure(disk, 256, RUNES)
      await disk.close()
      const runtime = ManagedRuntime.make(layer(folder))
      let log: EventLog["Service"]
      const open = await timed(async () => (log = await runtime.runPromise(EventLog)))
      const read = await timed(() => runtime.runPromise(Stream.runDrain(log.read({}))))
      const verify = await timed(() => runtime.runPromise(log.verify))
      await runtime.dispose()
      return { open, read, verify }
    })
}

export const bench: Bench = {
  name: "rune log",
  run: async () => [
    ...(await interleave(
      loads.flatMap(({ writers }) => [
        { what: load(writers), unit: "runes/s", better: "more" as const },
        { what: `${load(writers)}, p99`, unit: "ms", better: "less" as const }
      ]),
      [
        appending("rune log", runeLog),
        appending("plain SQLite", plainSqlite),
        appending("fdatasync, one a group", plainFile),
        appending("fdatasync, one a line", eachLine)
      ],
      ROUNDS
    )),
    ...(await interleave(
      ["open", "read", "verify"].map((what) => ({ what, unit: `ms for ${RUNES} runes`, better: "less" as const })),
      [reading],
      ROUNDS
    ))
  ]
}
