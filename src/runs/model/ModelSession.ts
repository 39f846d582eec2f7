/**
 * ModelSession: the history of one conversation with a model, in its own file, so that the next run can continue it.
 *
 * Guarantees: an appended message is in the file when `append` returns, so a kill of the daemon does not lose it. An
 * incomplete last line is ignored. When a history is replaced, the old one stays complete until the new one is
 * complete. A history that is read is valid for a provider. A session that was closed because it outgrew its model is
 * not continued. Only the user can read the file.
 */
import { Clock, Effect, FileSystem, Option, type PlatformError, Schema, Scope } from "effect"
import * as path from "node:path"
import { BackendError, type RunSpec } from "../Backend.ts"
import { repair } from "./ModelHistory.ts"
import { Message, ProviderError, TOO_LONG } from "./Provider.ts"
import { troubleOf } from "../../config/FileTrouble.ts"

export interface ModelSession {
  readonly id: string
  readonly history: () => ReadonlyArray<Message>
  readonly append: (message: Message) => Effect.Effect<void, ProviderError>
  /** Keeps only the first `length` entries. */
  readonly cut: (length: number) => Effect.Effect<void, ProviderError>
  /** Replaces the history, in the file as well. If that fails, the history is unchanged. */
  readonly replace: (history: ReadonlyArray<Message>) => Effect.Effect<void, ProviderError>
}

export interface Opened {
  readonly session: ModelSession
  readonly notices: ReadonlyArray<string>
}

/** Maximum size of a session's file, in bytes: more than any model's context. */
const MAX_SIZE = 32 * 1024 * 1024
/** Time in ms. A session that was not changed for this time is deleted when a new session begins. */
const KEPT = 30 * 86_400_000
/** Form of an id that is safe in a path. Run ids have this form. */
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
  /** Number of unreadable lines. */
  readonly damaged: number
}

/** Pure. */
export const read = (text: string): Found => {
  const lines = text.split("\n")
  // The text after the last line break is a line that was never completed.
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
  /** Rewrites the whole file. */
  readonly renew: Write
}

const nowhere: Writing = { add: () => Effect.void, renew: () => Effect.void }

const live = (id: string, begin: ReadonlyArray<Message>, { add, renew }: Writing): ModelSession => {
  let history = begin
  let size = Buffer.byteLength(textOf(begin))
  /** Changes the file and the history together, even if it is interrupted. */
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

/** Writes the history to a session's file. Returns functions that add to the file or rewrite it. */
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

/** Deletes old sessions. A file that cannot be deleted is left for the next time. */
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

/**
 * Continues the session that the spec names, if possible, or begins a new one. Without a folder, the session exists in
 * memory only and ends with the run.
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
