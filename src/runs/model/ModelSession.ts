/**
 * ModelSession: the history of one conversation with a model, in a file of its own, so that
 * the next run goes on with it.
 *
 * Guarantees: what was appended is in the file when `append` answers, so a kill of the daemon
 * loses none of it; a torn last line is left out; a history that another replaces is there
 * whole until the other is; a history that is read is valid for a
 * provider; a session that outgrew its model is not gone on with. Only the user can read it.
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
  /** Leaves out all but the first entries. */
  readonly cut: (length: number) => Effect.Effect<void, ProviderError>
  /** Another history stands in its place: in the file, too, or it is as it was. */
  readonly replace: (history: ReadonlyArray<Message>) => Effect.Effect<void, ProviderError>
}

export interface Opened {
  readonly session: ModelSession
  readonly notices: ReadonlyArray<string>
}

/** Bytes of a session's file: more than any model's context holds. */
const MAX_SIZE = 32 * 1024 * 1024
/** A session that nothing was added to for so long is deleted when a new one begins. */
const KEPT = 30 * 86_400_000
/** Safe in a path; ids of runs are. */
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
  /** Lines within it that nobody can read. */
  readonly damaged: number
}

/** Reads a session's file. Pure. */
export const read = (text: string): Found => {
  const lines = text.split("\n")
  // what comes after the last end of a line is a line that was never finished
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
    message: `the conversation could not be kept: ${troubleOf(error)}`,
    remedy: "make room where agentd keeps its state, and see that it may write there"
  })

const unusable = (error: PlatformError.PlatformError) =>
  new BackendError({
    message: `the agent's conversation cannot be kept: ${troubleOf(error)}`,
    remedy: "make room where agentd keeps its state, and see that it may read and write there",
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
  /** Writes the whole file anew. */
  readonly renew: Write
}

const nowhere: Writing = { add: () => Effect.void, renew: () => Effect.void }

const live = (id: string, begin: ReadonlyArray<Message>, { add, renew }: Writing): ModelSession => {
  let history = begin
  let size = Buffer.byteLength(textOf(begin))
  /** Both or none, whoever is interrupted. */
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

/** The file of a session, holding the history and nothing else; and how to add to it. */
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
  // undefined: the file is another one since
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

/** Sessions that nobody goes on with. What cannot be deleted is left for the next time. */
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
 * Goes on with the session that the spec names, where that is possible, or begins one. Without
 * a folder it is kept in memory only, and ends with the run.
 */
export const open = Effect.fnUntraced(function* (
  folder: string | undefined,
  { runId, resume }: Pick<RunSpec, "resume" | "runId">
) {
  if (folder === undefined) {
    const notices = resume === undefined ? [] : ["conversations are not kept here: a new one begins"]
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
    notices.push(`conversation ${resume.sessionId} ${found?.closed ?? "is not there any more"}: a new one begins`)
  if (!fresh && found.damaged > 0) notices.push(`${found.damaged} damaged lines of the conversation are left out`)
  if (fresh) yield* sweep(folder)
  const history = fresh ? [] : found.history
  const write = yield* file(path.join(folder, `${id}.jsonl`), history, fresh || resume.fork ? undefined : text)
  const opened: Opened = { session: live(id, history, write), notices }
  return opened
}, Effect.mapError(unusable))
