/**
 * ClaudeSessions: reads the file `sessions/<pid>.json` that each process of Claude Code writes into its folder. This
 * file is the only source for the status of a session without hooks. It also shows which process has a session open;
 * the CLI itself does not reject a second writer.
 *
 * Guarantees: the format of these files is not documented, so a file of another form, or of a process that is gone, is
 * ignored. At most `MAX_NOTES` files are read.
 */
import { Effect, FileSystem, Option, Schema } from "effect"
import { join } from "node:path"
import { environment, Lookup } from "../process/ProcessTable.ts"

/** The fields that agentd reads. */
const Note = Schema.Struct({
  pid: Schema.Int,
  /** When the process started, in clock ticks since boot. */
  procStart: Schema.NumberFromString,
  sessionId: Schema.String,
  cwd: Schema.optional(Schema.String),
  /** Kind of the session: `interactive`; `bg` if the CLI's own daemon runs it and the user attaches to it; `print`. */
  kind: Schema.optional(Schema.String),
  /** True if the CLI keeps the process in reserve and nobody has begun a session in it. */
  spare: Schema.optional(Schema.Boolean),
  /** How the session was started: `cli` in a terminal, `sdk-…` by a program. */
  entrypoint: Schema.optional(Schema.String),
  /** When the session started, ms since the epoch. `statusUpdatedAt` has the same unit. */
  startedAt: Schema.optional(Schema.Finite),
  /** Status of the session: `idle`, `busy`, `waiting` or `shell`; missing in the first moments. */
  status: Schema.optional(Schema.String),
  waitingFor: Schema.optional(Schema.String),
  statusUpdatedAt: Schema.optional(Schema.Finite)
})
export type Note = typeof Note.Type
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Note))

/** Maximum number of files that are read. Each killed process leaves one behind. */
const MAX_NOTES = 1_000
/** Maximum size of a file, bytes. A normal file has a few hundred bytes. */
const MAX_BYTES = 64 * 1024

/** Claude Code's folder, determined in the same way as Claude Code does. */
export const configOf = (env: { readonly [name: string]: string | undefined }): string =>
  env["CLAUDE_CONFIG_DIR"] || join(env["HOME"] ?? "/", ".claude")

export const folderIn = (config: string): string => join(config, "sessions")
export const fileOf = (pid: number): string => `${pid}.json`

/** True if, according to the file, the user uses the session directly or can attach to it. */
export const isPersons = ({ entrypoint = "", kind, spare }: Note): boolean =>
  (kind === "interactive" || kind === "bg") && spare !== true && !entrypoint.startsWith("sdk")

export const lives = ({ pid, procStart }: Note): Effect.Effect<boolean> =>
  Effect.map(Lookup, ({ isAlive }) => isAlive({ pid, start: procStart }))

/** Reads the file of a live process. Opens only regular files, because a pipe would block the daemon. */
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

/** Reads the files of all living processes. */
export const all = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const names = yield* Effect.orElseSucceed(fs.readDirectory(folder), () => [])
  const paths = names.filter((name) => /^\d+\.json$/.test(name)).slice(0, MAX_NOTES)
  return (yield* Effect.forEach(paths, (name) => read(join(folder, name)))).filter((note) => note !== undefined)
})

/**
 * Finds a process outside this run that has the session open now, and returns its pid. Undefined if none is known. A
 * process that opens the session later is not noticed. The run's program can be a wrapper that starts the CLI, so every
 * process with the run's AGENTD_RUN counts as the run's own.
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
