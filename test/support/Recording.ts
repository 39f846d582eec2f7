/**
 * Recording: reads logs that older daemons wrote, from test/fixtures/runes/v1. It can restore a store as it was right
 * after any of its runes, as if the daemon was killed then.
 *
 * Guarantees: a store is restored with the same SQL statements and bytes that the daemon wrote. No code of src is used,
 * so that a change of src cannot change a recording.
 */
import { hash } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { gunzipSync } from "node:zlib"

/** The columns event_id, stream, at, kind, actor, from, to, trigger, cause, visibility, payload, hash. */
export type Line = ReadonlyArray<string | number | null>

export interface Head {
  readonly name: string
  /** Texts of the projects' configs, by path. */
  readonly configs: { readonly [path: string]: string }
  /** Event id of the last rune of each append; empty if appends were not recorded. */
  readonly appends: ReadonlyArray<number>
  /** For each archived stream, the event id of the rune from which on its payloads are in its archive. */
  readonly sealed: { readonly [stream: string]: number }
  /** Archive files in base64, by file name. */
  readonly archives: { readonly [name: string]: string }
  readonly tables: ReadonlyArray<{
    readonly name: string
    readonly sql: string
    readonly rows: ReadonlyArray<Line>
  }>
}

/** A rune's header, and its payload's text. */
export interface Recorded {
  readonly eventId: number
  readonly stream: string
  readonly at: number
  readonly kind: string
  readonly actor: string
  readonly from: string | null
  readonly to: string | null
  readonly trigger: string | null
  readonly payload: string
}

export interface Recording extends Head {
  readonly lines: ReadonlyArray<Line>
  readonly runes: ReadonlyArray<Recorded>
}

/** The states right after a rune of a recording. */
export interface Moment {
  readonly after: number
  readonly why: string
  /** States that changed since the moment before, by name. */
  readonly set: { readonly [name: string]: unknown }
  readonly gone: ReadonlyArray<string>
}

const FOLDER = new URL("../fixtures/runes/v1/", import.meta.url)

export const fileOf = (name: string, what: "runes" | "states"): URL => new URL(`${name}.${what}.jsonl.gz`, FOLDER)

/** The parsed lines of a fixture. */
export const linesOf = (name: string, what: "runes" | "states"): ReadonlyArray<unknown> =>
  gunzipSync(readFileSync(fileOf(name, what)))
    .toString("utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line): unknown => JSON.parse(line))

export const names = (): ReadonlyArray<string> =>
  existsSync(FOLDER)
    ? readdirSync(FOLDER)
        .filter((name) => name.endsWith(".runes.jsonl.gz"))
        .map((name) => name.replace(".runes.jsonl.gz", ""))
        .toSorted()
    : []

const textOf = (value: Line[number] | undefined): string | null => (value == null ? null : String(value))

export const open = (name: string): Recording => {
  const [head, ...rest] = linesOf(name, "runes")
  const lines = rest as ReadonlyArray<Line>
  const runes = lines.map(([eventId, stream, at, kind, actor, from, to, trigger, , , payload]) => ({
    eventId: Number(eventId),
    stream: String(stream),
    at: Number(at),
    kind: String(kind),
    actor: String(actor),
    from: textOf(from),
    to: textOf(to),
    trigger: textOf(trigger),
    payload: String(payload)
  }))
  return { ...(head as Head), lines, runes }
}

const INSERT = `INSERT INTO runes
  (event_id, stream, at, kind, actor, from_state, to_state, trigger_name, cause, visibility, payload, payload_hash, hash)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

/** Restores the state directory as it was right after the rune `upTo`; returns the path of the store's file. */
export const restore = (recording: Recording, upTo: number, state: string): string => {
  mkdirSync(state, { recursive: true })
  const file = join(state, "runes.db")
  const database = new DatabaseSync(file)
  const isSealed = (stream: unknown) => (recording.sealed[String(stream)] ?? Number.POSITIVE_INFINITY) <= upTo
  database.exec("BEGIN")
  const [tables, triggers] = [/^CREATE (TABLE|INDEX)/, /^CREATE TRIGGER/].map((what) =>
    recording.tables.filter(({ sql }) => what.test(sql))
  )
  for (const { name, rows, sql } of tables!) {
    database.exec(sql)
    for (const row of rows)
      database.prepare(`INSERT INTO ${name} VALUES (${row.map(() => "?").join(", ")})`).run(...row)
  }
  const insert = database.prepare(INSERT)
  for (const line of recording.lines) {
    if (Number(line[0]) > upTo) break
    const [payload, own] = [line[10], line[11]]
    const payloadHash = hash("sha256", String(payload), "hex")
    insert.run(...line.slice(0, 10), isSealed(line[1]) ? null : payload!, payloadHash, own!)
  }
  database.prepare("INSERT INTO head (one, event_id) VALUES (1, ?)").run(upTo)
  for (const { sql } of triggers!) database.exec(sql)
  database.exec("COMMIT")
  database.close()
  if (Object.values(recording.sealed).some((since) => since <= upTo)) {
    mkdirSync(join(state, "archive"), { recursive: true })
    for (const [name, bytes] of Object.entries(recording.archives)) {
      if (isSealed(decodeURIComponent(name.replace(".jsonl.gz", "")))) {
        writeFileSync(join(state, "archive", name), Buffer.from(bytes, "base64"))
      }
    }
  }
  return file
}
