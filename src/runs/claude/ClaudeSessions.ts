/**
 * ClaudeSessions: what each process of Claude Code notes of itself in `sessions/<pid>.json` of
 * its folder: the one place that says what it is about whether its hooks reach us or not, and
 * who has a session open, of which the CLI itself refuses no second writer.
 *
 * Guarantees: nobody promises these files, so one of another form, or of a process that is
 * gone, counts for nothing; a bounded number of them is looked into.
 */
import { Effect, FileSystem, Option, Schema } from "effect"
import { join } from "node:path"
import { environment, Lookup } from "../process/ProcessTable.ts"

/** As far as we read it. */
const Note = Schema.Struct({
  pid: Schema.Int,
  /** Clock ticks between boot and its fork. */
  procStart: Schema.NumberFromString,
  sessionId: Schema.String,
  cwd: Schema.optional(Schema.String),
  /** `interactive`; `bg` where the CLI's own daemon holds it, which a person attaches to; `print`. */
  kind: Schema.optional(Schema.String),
  /** The CLI keeps it in reserve: nobody has begun it. */
  spare: Schema.optional(Schema.Boolean),
  /** `cli` in a terminal, `sdk-…` where a program holds it. */
  entrypoint: Schema.optional(Schema.String),
  /** ms since the epoch, as `statusUpdatedAt`. */
  startedAt: Schema.optional(Schema.Finite),
  /** `idle`, `busy`, `waiting`, `shell`; not there in the first moments. */
  status: Schema.optional(Schema.String),
  waitingFor: Schema.optional(Schema.String),
  statusUpdatedAt: Schema.optional(Schema.Finite)
})
export type Note = typeof Note.Type
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Note))

/** Each process that was killed leaves one. */
const MAX_NOTES = 1_000
/** Most bytes of one; they have some hundred. */
const MAX_BYTES = 64 * 1024

/** Claude Code's folder, as it finds it itself. */
export const configOf = (env: { readonly [name: string]: string | undefined }): string =>
  env["CLAUDE_CONFIG_DIR"] || join(env["HOME"] ?? "/", ".claude")

export const folderIn = (config: string): string => join(config, "sessions")
export const fileOf = (pid: number): string => `${pid}.json`

/** A person sits before it, or attaches to it, as far as it says. */
export const isPersons = ({ entrypoint = "", kind, spare }: Note): boolean =>
  (kind === "interactive" || kind === "bg") && spare !== true && !entrypoint.startsWith("sdk")

export const lives = ({ pid, procStart }: Note): Effect.Effect<boolean> =>
  Effect.map(Lookup, ({ isAlive }) => isAlive({ pid, start: procStart }))

/** Reads the note of a living process. What is no file is not opened: a pipe would hold up all files of the daemon. */
export const read = Effect.fnUntraced(function* (path: string) {
  const fs = yield* FileSystem.FileSystem
  const text = yield* fs.stat(path).pipe(
    Effect.filterOrFail(({ size, type }) => type === "File" && Number(size) <= MAX_BYTES),
    Effect.andThen(fs.readFileString(path)),
    Effect.orElseSucceed(() => "")
  )
  const note = Option.getOrUndefined(decode(text))
  return note !== undefined && (yield* lives(note)) ? note : undefined
})

/** Reads the notes of all living processes. */
export const all = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const names = yield* Effect.orElseSucceed(fs.readDirectory(folder), () => [])
  const paths = names.filter((name) => /^\d+\.json$/.test(name)).slice(0, MAX_NOTES)
  return (yield* Effect.forEach(paths, (name) => read(join(folder, name)))).filter((note) => note !== undefined)
})

/**
 * The pid of a process that has the session open now, and is none of the run's own; undefined where
 * none is known. Who opens it later is not seen. The program may be a wrapper: the CLI is its child then.
 */
export const holder = Effect.fnUntraced(function* (
  sessionId: string,
  own: { readonly pid: number | undefined; readonly runId: string },
  env: { readonly [name: string]: string | undefined }
) {
  for (const note of yield* all(folderIn(configOf(env)))) {
    if (note.sessionId !== sessionId || note.pid === own.pid) continue
    if (!(yield* environment(note.pid)).includes(`AGENTD_RUN=${own.runId}`)) return note.pid
  }
  return undefined
})
