/**
 * Bench of the rune log: many writers, each of which waits until its rune is on
 * the disk before it writes the next.
 *
 * Beside it, in the same run and in turns: a plain group commit of the same rows with
 * the same hashes, and without them (one prepared INSERT a row, the same pragmas,
 * commits shared in the same way, no schema, no guard), and the least that the disk can
 * do (the same bytes appended to a file, one fdatasync a group; and one a rune).
 *
 * Meanwhile a timer of 1 ms says how late the main thread is: what a hook waits for.
 */
import { Layer, ManagedRuntime, Stream } from "effect"
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { chain, GENESIS, hashPayload, joinHeader } from "../../src/core/event-log/HashChain.ts"
import { Redact } from "../../src/core/event-log/Redact.ts"
import { EventLog, RuneRefused } from "../../src/core/event-log/EventLog.ts"
import { Log, type Owner, type Unit } from "../../src/core/event-log/Log.ts"
import { FORMAT, type RuneDraft } from "../../src/core/event-log/Rune.ts"
import * as DaemonLog from "../../src/app/DaemonLog.ts"
import { type Aim, type Bench, interleave, quantile, type Subject } from "./Bench.ts"

const ROUNDS = 5
/** How many write at once, and how many runes they write together. */
const loads = [
  { writers: 1, runes: 400 },
  { writers: 16, runes: 8_000 },
  { writers: 64, runes: 16_000 },
  { writers: 256, runes: 32_000 }
] as const
/** Runes that are opened, read and verified. */
const RUNES = 100_000

/** An inbox's move, as long as a worker's. */
const message = {
  messageId: "01k9z3r5w8q2m4n6p8r0t2v4x6",
  from: "operator",
  text: "As soon as the tests pass, commit what is there.",
  urgent: false,
  at: 1_764_000_000_000
}
const payload = { event: { _tag: "Received", message } }
const text = JSON.stringify(payload)

/** A log that can write; `append` resolves when the rune is on the disk. */
interface Disk {
  readonly append: (writer: number) => Promise<unknown>
  readonly close: () => Promise<void>
}

type Make = (folder: string) => Promise<Disk>

const layer = (folder: string) => DaemonLog.layer({ file: join(folder, "runes.db") }).pipe(Layer.provide(Redact.layer))

/** Each writer is an inbox of its own: no invariant looks at these. */
const draftOf = (writer: number): RuneDraft => ({
  stream: `project-${writer % 8}`,
  kind: "inbox.received",
  actor: `inbox/${writer}`,
  from: "Open",
  to: "Open",
  trigger: "Received",
  payload
})

const runeLog: Make = async (folder) => {
  const runtime = ManagedRuntime.make(layer(folder))
  const log = await runtime.runPromise(EventLog)
  return {
    append: (writer) => runtime.runPromise(log.append([draftOf(writer)])),
    close: () => runtime.dispose()
  }
}

/** As an actor's scope appends: one rune, prepared, checked and appended, and its owner hears when it is durable. */
class Writer implements Owner {
  ahead = 0
  private readonly log: Log
  private readonly draft: RuneDraft
  private resume: (() => void) | undefined = undefined

  constructor(log: Log, writer: number) {
    this.log = log
    this.draft = draftOf(writer)
  }

  append(): Promise<void> {
    return new Promise((resolve) => {
      const { log } = this
      const { actor, from, kind, stream, to, trigger } = this.draft
      const prepared = log.prepare(this.draft)
      if (prepared instanceof RuneRefused) throw prepared
      const { payload, text, visibility } = prepared
      const places = { format: FORMAT, eventId: log.head + 1, seq: log.seqOf(stream) + 1, at: Date.now() }
      const names = { stream, kind, actor, from: from!, to: to!, trigger: trigger!, cause: null, moves: [] }
      const unit: Unit = { owner: this, runes: [{ ...places, ...names, visibility, payload }], texts: [text] }
      const refused = log.refuses(unit)
      if (refused !== undefined) throw refused
      this.resume = resolve
      if (log.append(unit)) resolve()
    })
  }

  durable(): void {
    this.resume!()
  }

  failed(_: Unit, error: unknown): void {
    throw error
  }

  refold(): void {}
  rest(): void {}
}

const asActors: Make = async (folder) => {
  const runtime = ManagedRuntime.make(layer(folder))
  const log = await runtime.runPromise(Log)
  const writers = Array.from({ length: 256 }, (_, writer) => new Writer(log, writer))
  return { append: (writer) => writers[writer]!.append(), close: () => runtime.dispose() }
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

/** The columns of the log's own table; `hashed`: with the chain that it makes. */
const plainSqlite =
  (hashed: boolean): Make =>
  async (folder) => {
    const database = new DatabaseSync(join(folder, "plain.db"))
    database.exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL")
    database.exec(
      "CREATE TABLE runes (event_id INTEGER PRIMARY KEY, format INTEGER, seq INTEGER, prev INTEGER, stream TEXT, at INTEGER," +
        " kind TEXT, actor TEXT, from_state TEXT, to_state TEXT, trigger_name TEXT, cause_stream TEXT, cause_seq INTEGER," +
        " moves TEXT, visibility TEXT, payload TEXT, payload_hash TEXT, hash TEXT) STRICT"
    )
    const insert = database.prepare(`INSERT INTO runes VALUES (${Array.from({ length: 18 }, () => "?").join(",")})`)
    let [id, hash, payloadHash] = [0, GENESIS, GENESIS]
    const append = grouped((count) => {
      database.exec("BEGIN IMMEDIATE")
      for (let row = 0; row < count; row++) {
        id += 1
        if (hashed) {
          payloadHash = hashPayload(text)
          const header = joinHeader(
            '"project"',
            id,
            id,
            '"inbox.received"',
            '"inbox/1"',
            '"Open"',
            '"Open"',
            '"Received"',
            "null",
            "[]",
            '"public"'
          )
          hash = chain(hash, header, payloadHash)
        }
        // oxfmt-ignore
        insert.run(id, 2, id, id - 1, "project", id, "inbox.received", "inbox/1", "Open", "Open", "Received", null, null, null, "public", text, payloadHash, hash)
      }
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

/** How late (ms) one in a hundred turns of a 1 ms timer is. */
const lateness = () => {
  const all: Array<number> = []
  let due = performance.now() + 1
  const timer = setInterval(() => {
    all.push(Math.max(0, performance.now() - due))
    due = performance.now() + 1
  }, 1)
  return () => {
    clearInterval(timer)
    return all.length === 0 ? 0 : quantile(all, 0.99)
  }
}

/** Runes in a second, and how long one in a hundred waits at least (ms). */
const measure = async (disk: Disk, writers: number, runes: number): Promise<Figures> => {
  const waits: Array<number> = []
  const each = Math.ceil(runes / writers)
  const late = lateness()
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
  return {
    [load(writers)]: (each * writers) / seconds,
    [`${load(writers)}, p99`]: quantile(waits, 0.99),
    [`${load(writers)}, a 1 ms timer late, p99`]: late()
  }
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

/** The cost of a start: opening restores the ledger, recovery reads, verify re-reads everything. */
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

const OURS = "rune log, as actors append"
const HASHED = "plain SQLite, same hashes"

const aims: ReadonlyArray<Aim> = [64, 256].flatMap((writers) => [
  { what: load(writers), to: { subject: HASHED }, atLeast: 0.7 },
  { what: `${load(writers)}, a 1 ms timer late, p99`, to: { subject: HASHED }, atMost: 0.2 },
  ...(writers === 64 ? [{ what: `${load(writers)}, a 1 ms timer late, p99`, atMost: 1 }] : [])
])

export const bench: Bench = {
  name: "rune log",
  aims,
  run: async () => [
    ...(await interleave(
      loads.flatMap(({ writers }) => [
        { what: load(writers), unit: "runes/s", better: "more" as const },
        { what: `${load(writers)}, p99`, unit: "ms", better: "less" as const },
        { what: `${load(writers)}, a 1 ms timer late, p99`, unit: "ms", better: "less" as const }
      ]),
      [
        appending(OURS, asActors),
        appending("rune log, by Effects", runeLog),
        appending(HASHED, plainSqlite(true)),
        appending("plain SQLite", plainSqlite(false)),
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
