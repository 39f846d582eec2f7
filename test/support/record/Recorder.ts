/**
 * Recorder: writes the store of a daemon that has ended into one compressed file of JSON lines: the SQL of the tables,
 * the projects' configs, the archives, and a line for each rune.
 *
 * Guarantees: an archived payload is in its rune's line too, so that the store can be restored as it was before
 * archiving. An existing recording is never written again. No recording contains a name of this machine.
 */
import { Effect } from "effect"
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { gunzipSync, gzipSync } from "node:zlib"
import type { Stage } from "../Stage.ts"
import { fileOf, type Head, type Line } from "../Recording.ts"

/** Kills the stage's daemon with SIGKILL, and records its store and the configs of these projects. */
export type Keep = (
  name: string,
  stage: Stage,
  projects: { readonly [name: string]: object }
) => Effect.Effect<void, never>

/** Texts that must not be in a fixture. */
const FOREIGN = [/\/work\b/, /\/root\b/, /\/tmp\//]

const column = (value: unknown) => value as Line[number]

/** The archive files, and the payloads in them by event id. */
const archived = (folder: string): { readonly files: Head["archives"]; readonly payloads: Map<number, string> } => {
  const payloads = new Map<number, string>()
  const files: { [name: string]: string } = {}
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    const bytes = readFileSync(join(folder, name))
    files[name] = bytes.toString("base64")
    for (const line of gunzipSync(bytes).toString("utf8").split("\n").slice(1)) {
      const found = /^\{"eventId":(\d+),"payloadHash":"[0-9a-f]{64}","payload":(.*)\}$/.exec(line)
      if (found !== null) payloads.set(Number(found[1]), found[2]!)
    }
  }
  return { files, payloads }
}

const tablesOf = (database: DatabaseSync): Head["tables"] => {
  const schema = database
    .prepare("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type = 'trigger', name")
    .all()
  return schema.map(({ name, sql, type }) => ({
    sql: String(sql),
    name: String(name),
    rows:
      type === "table" && name !== "runes" && name !== "head"
        ? database
            .prepare(`SELECT * FROM ${String(name)}`)
            .all()
            .map((row) => Object.values(row).map(column))
        : []
  }))
}

const read = (state: string): Omit<Head, "name" | "configs" | "appends"> & { readonly lines: ReadonlyArray<Line> } => {
  const { files, payloads } = archived(join(state, "archive"))
  const database = new DatabaseSync(join(state, "runes.db"))
  const lines = database
    .prepare(
      `SELECT event_id, stream, at, kind, actor, from_state, to_state, trigger_name, cause, visibility, payload, hash
       FROM runes ORDER BY event_id`
    )
    .all()
    .map((row): Line => {
      const values = Object.values(row).map(column)
      if (values[10] === null) values[10] = payloads.get(Number(values[0])) ?? null
      return values
    })
  const tables = tablesOf(database)
  database.close()
  const seals = lines.filter(([, stream, , kind]) => stream === "daemon" && kind === "session.archived")
  const sealed = Object.fromEntries(
    seals.map(([eventId, , , , , , , , , , payload]) => [
      (JSON.parse(String(payload)) as { conversation_id: string }).conversation_id,
      Number(eventId)
    ])
  )
  return { tables, archives: files, sealed, lines }
}

/** Writes the store in a state directory as the recording of that name. */
export const write = (
  name: string,
  state: string,
  more: {
    readonly configs?: Head["configs"]
    readonly appends?: Head["appends"]
    /** A kind of rune: every rune after the last one of this kind is omitted. */
    readonly lastOf?: string | undefined
  } = {}
): void => {
  const { archives, lines: all, sealed, tables } = read(state)
  const last = all.findLastIndex(([, , , kind]) => kind === more.lastOf)
  const lines = last < 0 ? all : all.slice(0, last + 1)
  const head: Head = { name, configs: more.configs ?? {}, appends: more.appends ?? [], sealed, archives, tables }
  const text = [head, ...lines].map((line) => `${JSON.stringify(line)}\n`).join("")
  for (const foreign of FOREIGN) {
    const found = foreign.exec(text)
    if (found !== null) throw new Error(`${name} names ${text.slice(found.index - 80, found.index + 40)}`)
  }
  const file = fileOf(name, "runes")
  mkdirSync(new URL(".", file), { recursive: true })
  writeFileSync(file, gzipSync(text, { level: 9 }))
  console.log(`${name}: ${lines.length} runes, ${readFileSync(file).length} bytes`)
}

export const keep: Keep = (name, { box }, projects) =>
  Effect.gen(function* () {
    yield* box.kill9
    const configs = Object.fromEntries(
      Object.keys(projects).map((project) => {
        const file = join(box.folder, project, "agentd.jsonc")
        return [file, readFileSync(file, "utf8")]
      })
    )
    write(name, box.state, { configs })
  })
