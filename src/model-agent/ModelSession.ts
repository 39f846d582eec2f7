/**
 * ModelSession: the history of one conversation with a model, in its own file, so that the next run can continue it.
 *
 * Guarantees: an appended message is in the file when `append` returns, so a kill of the daemon does not lose it. An
 * incomplete last line is ignored. When a history is replaced, the old one stays complete until the new one is
 * complete. Providers accept a history that was read from a file. A session that was closed because it became too long
 * for its model is not continued. Only the user can read the file.
 */
import { Clock, Effect, FileSystem, Option, type PlatformError, Schema, Scope } from "effect"
import * as path from "node:path"
import { BackendError, type RunSpec } from "../runs/Backend.ts"
import { repair } from "./ModelHistory.ts"
import { Message, ProviderError, TOO_LONG } from "./Provider.ts"
import { troubleOf } from "../config/FileTrouble.ts"

export interface ModelSession {
  readonly id: string
  readonly history: () => ReadonlyArray<Message>
  readonly append: (message: Message) => Effect.Effect<void, ProviderError>
  /** Removes all entries after the first `length` entries. */
  readonly cut: (length: number) => Effect.Effect<void, ProviderError>
  /** Replaces the history, also in the file. If that fails, the history does not change. */
  readonly replace: (history: ReadonlyArray<Message>) => Effect.Effect<void, ProviderError>
}

export interface Opened {
  readonly session: ModelSession
  readonly notices: ReadonlyArray<string>
}

/** Maximum size of a session's file, bytes. Larger than the context of any model. */
const MAX_SIZE = 32 * 1024 * 1024
/** Age after which a session that has not changed is deleted, ms. Checked when a new session begins. */
const KEPT = 30 * 86_400_000
/** Pattern of an id that is safe in a path. Run ids match it. */
const ID = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/

const Line = Schema.Union([
  Schema.Struct({ message: Message }),
  Schema.Struct({ cut: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)) }),
  Schema.Struct({ closed: Schema.String })
])
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Line))
const line = (value: typeof Line.Type) => `${JSON.stringify(value)}\n`
const textOf = (history: ReadonlyArray<Message>) => history.map((message) => line({ message })).join("")

interface Found {
  readonly history: ReadonlyArray<Message>
  readonly closed: string | undefined
  /** Number of lines that cannot be read. */
  readonly damaged: number
}

/** Reads the text of a session's file. Pure. */
export const read = (text: string): Found => {
  const lines = text.split("\n")
  // the text after the last line break is an incomplete line
  lines.pop()
  let [history, closed, damaged]: [Array<Message>, string | undefined, number] = [[], undefined, 0]
  for (const one of lines) {
    const found = Option.getOrUndefined(decode(one))
    if (found === undefined) damaged++
    else if ("message" in found) history.push(found.message)
    else if ("cut" in found) history = history.slice(0, found.cut)
    else closed = found.closed
  }
  return { history: repair(history), closed, damaged }
}

const storage = (error: PlatformError.PlatformError) =>
  new ProviderError({
    kind: "storage",
    message: `the conversation could not be stored: ${troubleOf(error)}`,
    remedy: "free disk space in agentd's state directory, and check that agentd may write there"
  })

const unusable = (error: PlatformError.PlatformError) =>
  new BackendError({
    message: `the agent's conversation cannot be stored: ${troubleOf(error)}`,
    remedy: "free disk space in agentd's state directory, and check that agentd may read and write there",
    fatal: false
  })

const tooLarge = () =>
  new ProviderError({
    kind: "overflow",
    message: `the conversation has grown to ${MAX_SIZE / 1024 / 1024} MB`,
    remedy: TOO_LONG
  })

type Write = (text: string) => Effect.Effect<void, ProviderError>

interface Writing {
  readonly add: Write
  /** Writes the whole file again. */
  readonly renew: Write
}

const nowhere: Writing = { add: () => Effect.void, renew: () => Effect.void }

const live = (id: string, begin: ReadonlyArray<Message>, { add, renew }: Writing): ModelSession => {
  let history = begin
  let size = Buffer.byteLength(textOf(begin))
  /** Changes the file together with the history, even if it is interrupted. */
  const both = (writing: Effect.Effect<void, ProviderError>, change: () => void) =>
    Effect.uninterruptible(Effect.andThen(writing, Effect.sync(change)))
  return {
    id,
    history: () => history,
    append: (message) =>
      Effect.suspend(() => {
        const text = line({ message })
        size += Buffer.byteLength(text)
        return size > MAX_SIZE ? Effect.fail(tooLarge()) : both(add(text), () => void (history = [...history, message]))
      }),
    cut: (length) =>
      Effect.suspend(() =>
        length >= history.length
          ? Effect.void
          : both(add(line({ cut: length })), () => void (history = history.slice(0, length)))
      ),
    replace: (other) =>
      Effect.suspend(() => {
        const text = textOf(other)
        return both(renew(text), () => {
          history = other
          size = Buffer.byteLength(text)
        })
      })
  }
}

/** Writes the history to a session's file. Returns functions that extend or rewrite the file. */
const file = Effect.fnUntraced(function* (name: string, history: ReadonlyArray<Message>, before: string | undefined) {
  const files = yield* FileSystem.FileSystem
  const renew = (text: string) =>
    Effect.andThen(
      files.writeFileString(`${name}.new`, text, { mode: 0o600 }),
      Effect.uninterruptible(files.rename(`${name}.new`, name))
    )
  const text = textOf(history)
  if (text !== before) yield* renew(text)
  const scope = yield* Effect.scope
  const open = Scope.provide(files.open(name, { flag: "a", mode: 0o600 }), scope)
  // Undefined if the file has been replaced since it was opened.
  let handle: FileSystem.File | undefined = yield* open
  const writing: Writing = {
    add: (added) =>
      Effect.gen(function* () {
        handle ??= yield* open
        yield* handle.writeAll(Buffer.from(added))
      }).pipe(Effect.mapError(storage)),
    renew: (whole) =>
      renew(whole).pipe(Effect.andThen(Effect.sync(() => void (handle = undefined))), Effect.mapError(storage))
  }
  return writing
})

/** Deletes old sessions. If a file cannot be deleted, it is tried again the next time. */
const sweep = Effect.fnUntraced(
  function* (folder: string) {
    const files = yield* FileSystem.FileSystem
    const now = yield* Clock.currentTimeMillis
    for (const name of yield* files.readDirectory(folder)) {
      if (!name.endsWith(".jsonl")) continue
      const found = path.join(folder, name)
      const { mtime } = yield* files.stat(found)
      if (Option.exists(mtime, (at) => at.getTime() < now - KEPT)) yield* files.remove(found)
    }
  },
  (sweeping) => Effect.ignore(sweeping)
)

const stored = Effect.fnUntraced(function* (folder: string, id: string) {
  const files = yield* FileSystem.FileSystem
  const name = path.join(folder, `${id}.jsonl`)
  return ID.test(id) && (yield* files.exists(name)) ? yield* files.readFileString(name) : undefined
})

/** Whether there is a session that can be continued. */
export const isThere = (folder: string | undefined, id: string) =>
  folder === undefined
    ? Effect.succeed(false)
    : Effect.map(
        Effect.mapError(stored(folder, id), unusable),
        (text) => text !== undefined && read(text).closed === undefined
      )

/**
 * Continues the session that the spec names, if possible, or begins a new one. If there is no folder, the session
 * exists only in memory and ends with the run.
 */
export const open = Effect.fnUntraced(function* (
  folder: string | undefined,
  { runId, resume }: Pick<RunSpec, "resume" | "runId">
) {
  if (folder === undefined) {
    const notices = resume === undefined ? [] : ["conversations are not stored here: a new one begins"]
    return { session: live(runId, [], nowhere), notices }
  }
  const files = yield* FileSystem.FileSystem
  yield* files.makeDirectory(folder, { recursive: true, mode: 0o700 })
  const text = resume === undefined ? undefined : yield* stored(folder, resume.sessionId)
  const found = text === undefined ? undefined : read(text)
  const fresh = resume === undefined || found === undefined || found.closed !== undefined
  const id = fresh || resume.fork ? runId : resume.sessionId
  const notices: Array<string> = []
  if (fresh && resume !== undefined)
    notices.push(`conversation ${resume.sessionId} ${found?.closed ?? "no longer exists"}: a new one begins`)
  if (!fresh && found.damaged > 0) notices.push(`${found.damaged} damaged lines of the conversation are left out`)
  if (fresh) yield* sweep(folder)
  const history = fresh ? [] : found.history
  const write = yield* file(path.join(folder, `${id}.jsonl`), history, fresh || resume.fork ? undefined : text)
  const opened: Opened = { session: live(id, history, write), notices }
  return opened
}, Effect.mapError(unusable))
