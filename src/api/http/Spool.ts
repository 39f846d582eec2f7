/**
 * Spool: the folder through which SessionStart hooks reach the daemon. For this hook, Claude Code runs only commands.
 * So a small shell script writes the hook's input into the folder, atomically by rename, and the daemon reads the file
 * when it runs.
 *
 * Guarantees: the script never fails, prints nothing, and does not wait. Files that were written while no daemon ran
 * are processed oldest first, and kept until their contents are in the log. A file without a valid hook is moved to
 * another folder, and a warning is logged. The number and size of files in both folders that are read or kept are
 * limited.
 */
import { join } from "node:path"
import { Clock, Duration, Effect, FileSystem, Layer, Option, Schedule, Stream } from "effect"
import * as HookBody from "../../plates/HookBody.ts"
import { isTooDeep } from "../../plates/JsonDepth.ts"
import { type Kept, Plates } from "../../plates/Plates.ts"
import * as HookCommand from "./HookCommand.ts"
import { quoted } from "../../config/ShellWord.ts"

/** Maximum number of files per pass. The next pass handles the remaining ones. */
const MAX_FILES = 1000
const MAX_ASIDE = 100
/** Interval of the passes that find files that the file watcher has missed. */
const LOOK = "30 seconds"
/** Interval of the passes if the folder cannot be watched, because the system has no file watchers left. */
const LOOK_UNWATCHED = "5 seconds"
/** Age at which an incomplete file is deleted, because it will never be completed. */
const STILLBORN = Duration.hours(1)

const WHOLE = ".hook"
const PART = ".part"

export interface Folders {
  readonly hooks: string
  /** Path of the script for SessionStart hooks. */
  readonly script: string
  readonly spool: string
  readonly aside: string
}

export const foldersOf = (state: string): Folders => ({
  hooks: join(state, "hooks"),
  script: join(state, "hooks", "session-start.sh"),
  spool: join(state, "hooks", "spool"),
  aside: join(state, "hooks", "refused")
})

export const scriptOf = (spool: string): string => `#!/bin/sh
# Written by agentd: tells it that a session of Claude Code has started.
# It says nothing, fails never, and works while agentd is down.
umask 077
case \${CLAUDE_PID-} in *[!0-9]* | ??????????*) CLAUDE_PID= ;; esac
name=${quoted(spool)}/$$-\${CLAUDE_PID:-0}
${HookCommand.reading}{
  {
    printf 'pid=%s\\nplate=%s\\nrun=%s\\n\\n' "\${CLAUDE_PID-}" "$(clean "\${AGENTD_PLATE-}")" "$(clean "\${AGENTD_RUN-}")"
    said
  } >"$name${PART}" && mv "$name${PART}" "$name${WHOLE}"
} 2>/dev/null
exit 0
`

/** The spool file's text for an event that `agentd hook` could not send to a daemon. */
export const entryOf = (event: unknown): string => `as=event\n\n${JSON.stringify(event)}`

const FIELDS = new Set(["as", "pid", "plate", "run"])

/**
 * Parses the text of a spool file; undefined if the text is invalid. `at`: time at which the file was written, in ms
 * since the epoch.
 */
export const parse = (text: string, at: number): Kept | undefined => {
  const gap = text.indexOf("\n\n")
  if (gap < 0) return undefined
  const fields = new Map<string, string>()
  for (const line of text.slice(0, gap).split("\n")) {
    const sign = line.indexOf("=")
    if (sign < 0 || !FIELDS.has(line.slice(0, sign))) return undefined
    if (sign + 1 < line.length) fields.set(line.slice(0, sign), line.slice(sign + 1))
  }
  const pid = Number(fields.get("pid") ?? 0)
  const as = fields.get("as") ?? "hook"
  if (isTooDeep(text.slice(gap))) return undefined
  if (!Number.isSafeInteger(pid) || pid < 0 || (as !== "hook" && as !== "event")) return undefined
  try {
    return {
      body: HookBody.parse(text.slice(gap + 2)),
      origin: { plate: fields.get("plate"), run: fields.get("run"), pid: pid === 0 ? undefined : pid, at },
      as
    }
  } catch {
    return undefined
  }
}

interface Entry {
  readonly path: string
  readonly name: string
  readonly mtime: number
  readonly size: number
}

/** Regular files in the folder, oldest first. */
const filesOf = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const names = yield* fs.readDirectory(folder)
  const found = yield* Effect.forEach(names, (name) =>
    fs.stat(join(folder, name)).pipe(
      Effect.map((info): ReadonlyArray<Entry> =>
        info.type === "File"
          ? [
              {
                path: join(folder, name),
                name,
                mtime: Option.match(info.mtime, { onNone: () => 0, onSome: (at) => at.getTime() }),
                size: Number(info.size)
              }
            ]
          : []
      ),
      // skip the file: its writer might just have renamed it
      Effect.orElseSucceed((): ReadonlyArray<Entry> => [])
    )
  )
  return found.flat().toSorted((a, b) => a.mtime - b.mtime || a.name.localeCompare(b.name))
})

const moveAside = Effect.fnUntraced(function* (entry: Entry, { aside }: Folders, why: string) {
  const fs = yield* FileSystem.FileSystem
  yield* Effect.logWarning(`${entry.path} contains no hook (${why}); it was moved to ${aside}`)
  yield* fs.rename(entry.path, join(aside, entry.name))
  const kept = yield* filesOf(aside)
  yield* Effect.forEach(kept.slice(0, Math.max(0, kept.length - MAX_ASIDE)), ({ path }) => fs.remove(path), {
    discard: true
  })
})

const takeIn = Effect.fnUntraced(function* (entry: Entry, folders: Folders) {
  const fs = yield* FileSystem.FileSystem
  if (entry.size > HookBody.MAX_BYTES * 2) return yield* moveAside(entry, folders, `${entry.size} bytes are too many`)
  const dropped = parse(yield* fs.readFileString(entry.path), entry.mtime)
  if (dropped === undefined) return yield* moveAside(entry, folders, "it is not in the form that the script writes")
  const plates = yield* Plates
  yield* plates.keep(dropped).pipe(
    Effect.matchEffect({
      onSuccess: () => fs.remove(entry.path),
      onFailure: (error) =>
        error._tag === "EventRefused"
          ? moveAside(entry, folders, `${error.field}: ${error.message}`)
          : Effect.logWarning(`${entry.path} will be read later: ${error.message}`)
    })
  )
})

/** Processes all files in the spool. A file that cannot be read does not delay the others. */
export const drain = Effect.fnUntraced(function* (folders: Folders) {
  const fs = yield* FileSystem.FileSystem
  const now = yield* Clock.currentTimeMillis
  const files = yield* filesOf(folders.spool)
  const whole = files.filter(({ name }) => name.endsWith(WHOLE)).slice(0, MAX_FILES)
  yield* Effect.forEach(
    whole,
    (entry) => Effect.catch(takeIn(entry, folders), (error) => Effect.logWarning(`${entry.path}: ${error.message}`)),
    { discard: true }
  )
  const stillborn = files.filter(({ mtime, name }) => name.endsWith(PART) && now - mtime > Duration.toMillis(STILLBORN))
  yield* Effect.forEach(stillborn, ({ path }) => Effect.ignore(fs.remove(path)), { discard: true })
})

/** Creates the folders, and writes the scripts of all hooks, so that the scripts always match the daemon's version. */
export const prepare = Effect.fnUntraced(function* (state: string) {
  const fs = yield* FileSystem.FileSystem
  const folders = foldersOf(state)
  for (const folder of [folders.spool, folders.aside]) {
    yield* fs.makeDirectory(folder, { recursive: true, mode: 0o700 })
  }
  yield* HookCommand.writeScript(folders.script, scriptOf(folders.spool))
  yield* HookCommand.write(folders.hooks)
  return folders
})

/** Processes the files in the spool, now and whenever new ones arrive. */
export const layer = ({ state }: { readonly state: string }) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const folders = yield* prepare(state)
      const every = (pause: typeof LOOK | typeof LOOK_UNWATCHED) => Stream.fromSchedule(Schedule.spaced(pause))
      const watched = Stream.map(fs.watch(folders.spool), () => 0).pipe(Stream.catchCause(() => every(LOOK_UNWATCHED)))
      yield* Stream.make(0).pipe(
        Stream.concat(Stream.merge(watched, every(LOOK))),
        // one pass is enough for all changes that happen before it starts
        Stream.buffer({ capacity: 1, strategy: "sliding" }),
        Stream.runForEach(() =>
          Effect.catch(drain(folders), (error) => Effect.logWarning(`the hooks' spool: ${error.message}`))
        ),
        Effect.forkScoped
      )
    })
  )
