/**
 * Workspace: the one folder whose files an agent may read and change.
 *
 * Guarantees: each path is opened first, and then the location of the open file is checked (see PathContainment).
 * Therefore `..`, absolute paths, links, and folders that are replaced by links during the check can only cause a
 * WorkspaceViolation. Only regular files are opened, so that no FIFO or device blocks a call. Reads and listings are
 * limited. A write is either complete or not done: a new file replaces the old one and gets its permissions.
 *
 * Some files inside it cannot be written either: `.git`, whose hooks and settings are run by the user's git, and
 * `agentd.jsonc`, which says what agents may do. The files and folders in `hidden` cannot even be read.
 */
import { Context, Effect, Random, type Scope } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import * as PathContainment from "./PathContainment.ts"
import {
  at,
  call,
  explain,
  FileFailed,
  type Held,
  shown,
  type WorkspaceError,
  WorkspaceViolation
} from "./PathContainment.ts"
import * as FileContent from "./FileContent.ts"
import { failed } from "./FileContent.ts"

export interface Entry {
  /** Path of the entry, relative to the workspace. */
  readonly path: string
  readonly kind: "file" | "folder" | "link" | "other"
}

export interface Listing {
  readonly entries: ReadonlyArray<Entry>
  /** True if the folder has more than `maxEntries` entries. */
  readonly more: boolean
}

export interface ListOptions {
  readonly maxEntries: number
  /** How many levels of folders are listed; 1 lists only the folder itself. */
  readonly depth?: number | undefined
  /** Returns true for the name of a folder that is listed without its contents. */
  readonly skip?: ((name: string) => boolean) | undefined
}

export interface Workspace {
  /** The real path of the workspace. */
  readonly root: string
  readonly read: (path: string, options: FileContent.ReadOptions) => Effect.Effect<FileContent.Text, WorkspaceError>
  /** Reads the whole content of a file of at most `maxBytes` bytes. */
  readonly whole: (path: string, maxBytes: number) => Effect.Effect<FileContent.Whole, WorkspaceError>
  /**
   * Creates or replaces a file; also creates missing folders above it. If `version` is given, the file is written only
   * if it still has that version.
   */
  readonly write: (
    path: string,
    text: string,
    options?: { readonly version?: string }
  ) => Effect.Effect<{ readonly created: boolean }, WorkspaceError>
  /** Lists a folder, sorted by name; each subfolder is followed by its contents. Links are listed but not followed. */
  readonly list: (path: string, options: ListOptions) => Effect.Effect<Listing, WorkspaceError>
  /** Returns the real path of a folder in the workspace. */
  readonly folder: (path: string) => Effect.Effect<string, WorkspaceError>
}

export interface WorkspaceOptions {
  /** Real paths of files and folders that no agent may access, wherever they are. */
  readonly hidden?: ReadonlyArray<string> | undefined
}

/** Names of files and folders that no tool may write to, anywhere in the workspace. */
export const PROTECTED: ReadonlySet<string> = new Set([".git", "agentd.jsonc"])

const MAX_DEPTH = 64

type Failure = WorkspaceError | NodeJS.ErrnoException

/** Converts every error to an error that names the path as the caller wrote it. Closes everything that was opened. */
const told = <A>(name: string, effect: Effect.Effect<A, Failure, Scope.Scope>): Effect.Effect<A, WorkspaceError> =>
  Effect.mapError(Effect.scoped(effect), (error) =>
    error instanceof WorkspaceViolation || error instanceof FileFailed ? error : explain(name)(error)
  )

interface Ground {
  readonly beneath: PathContainment.Beneath
  readonly hidden: ReadonlyArray<string>
}

const isHidden = ({ hidden }: Ground, location: string): boolean =>
  hidden.some((secret) => PathContainment.within(secret, location))

const unseen = (name: string) =>
  new WorkspaceViolation({
    message: `${shown(name)} is hidden from agents: it holds a key, or is agentd's own`,
    remedy: "go on without it; nothing in it is needed for the work"
  })

const visible = (ground: Ground, name: string, held: Held): Effect.Effect<Held, WorkspaceViolation> =>
  isHidden(ground, held.location) ? Effect.fail(unseen(name)) : Effect.succeed(held)

const writable = ({ beneath }: Ground, location: string): Effect.Effect<void, WorkspaceViolation> => {
  const parts = path.relative(beneath.root, location).split("/")
  const name = parts.find((part) => PROTECTED.has(part.toLowerCase()))
  return name === undefined
    ? Effect.void
    : Effect.fail(
        new WorkspaceViolation({
          message: `${shown(parts.join("/"))}: ${name} is not written by tools, since others act on what it says`,
          remedy: name === ".git" ? "use git, by the shell tool" : "ask a person to change it"
        })
      )
}

/** The error for a hidden path. It is the same whether the path exists or not. */
const hold = (ground: Ground, name: string) =>
  ground.beneath.hold(name).pipe(
    Effect.catchTag("FileFailed", (error) =>
      Effect.flatMap(ground.beneath.leads(name), (place) =>
        Effect.fail<WorkspaceError>(place !== undefined && isHidden(ground, place) ? unseen(name) : error)
      )
    ),
    Effect.flatMap((held) => visible(ground, name, held))
  )

const file = (ground: Ground, name: string) =>
  Effect.flatMap(hold(ground, name), (held) => FileContent.regular(name, held))

const folder = Effect.fnUntraced(function* (ground: Ground, name: string) {
  const held = yield* hold(ground, name)
  if (!held.stat.isDirectory()) return yield* failed("NotAFolder", `${shown(name)} is no folder`, "name a folder")
  return held
})

/** Where a file is written: an open folder, a name in it, and the file that has this name now. */
interface Target {
  readonly folder: Held
  readonly name: string
  readonly old: Held | undefined
}

/**
 * Finds where a file is written. For an existing file, this is its own folder and name after links were followed. For a
 * new file, it is the path's folder, which is created if necessary.
 */
const target = Effect.fnUntraced(function* (ground: Ground, given: string) {
  const name = yield* ground.beneath.relative(given)
  yield* writable(ground, path.join(ground.beneath.root, name))
  const old = yield* file(ground, name).pipe(
    Effect.catchIf(
      (error) => error instanceof FileFailed && error.reason === "NotFound",
      () => Effect.succeed(undefined)
    )
  )
  const place = old === undefined ? path.join(ground.beneath.root, name) : old.location
  if (old === undefined && given.endsWith("/"))
    return yield* failed("Invalid", `${shown(given)} names a folder`, "name the file to write")
  yield* writable(ground, place)
  const above = path.relative(ground.beneath.root, path.dirname(place))
  const made = yield* ground.beneath.makeFolder(above, (location) => writable(ground, location))
  yield* visible(ground, given, made)
  const last = path.basename(place)
  yield* writable(ground, path.join(made.location, last))
  const result: Target = { folder: made, name: last, old }
  return result
})

const isLink = ({ folder, name }: Target) =>
  call<fs.Stats>((done) => fs.lstat(at(folder.fd, name), done)).pipe(
    Effect.map((stat) => stat.isSymbolicLink()),
    Effect.catchIf(
      (error) => error.code === "ENOENT",
      () => Effect.succeed(false)
    )
  )

/** Writes a new file in the same folder and renames it. Uninterruptible, so that no partial file remains. */
const replace = Effect.fnUntraced(function* ({ folder, name, old }: Target, bytes: Buffer) {
  const id = yield* Random.nextIntBetween(0, Number.MAX_SAFE_INTEGER)
  const temporary = `.agentd-${id.toString(36)}.tmp`
  const fd = yield* PathContainment.create(folder, temporary, old === undefined ? 0o666 : 0o600)
  yield* Effect.gen(function* () {
    for (let from = 0; from < bytes.length;) {
      from += yield* call<number>((done) => fs.write(fd, bytes, from, bytes.length - from, null, done))
    }
    if (old !== undefined) yield* call((done) => fs.fchmod(fd, Number(old.stat.mode) & 0o777, done))
    yield* call((done) => fs.rename(at(folder.fd, temporary), at(folder.fd, name), done))
  }).pipe(Effect.onError(() => Effect.ignore(call((done) => fs.unlink(at(folder.fd, temporary), done)))))
}, Effect.uninterruptible)

const write = Effect.fnUntraced(function* (ground: Ground, given: string, text: string, version: string | undefined) {
  const goal = yield* target(ground, given)
  const { old } = goal
  if (version !== undefined && (old === undefined || FileContent.versionOf(old.stat) !== version))
    return yield* failed(
      "Changed",
      `${shown(given)} has changed since it was read`,
      "read it again, then repeat the edit"
    )
  if (old !== undefined) yield* call((done) => fs.access(at(old.fd), fs.constants.W_OK, done))
  else if (yield* isLink(goal))
    return yield* new WorkspaceViolation({
      message: `${shown(given)} is a link that leads nowhere`,
      remedy: "remove the link, or write to another name"
    })
  yield* replace(goal, Buffer.from(text, "utf8"))
  return { created: old === undefined }
})

const entriesOf = (held: Held, max: number) =>
  Effect.acquireUseRelease(
    call<fs.Dir>((done) => fs.opendir(at(held.fd), done)),
    Effect.fnUntraced(function* (dir) {
      const found: Array<fs.Dirent> = []
      while (found.length <= max) {
        const entry = yield* call<fs.Dirent | null>((done) => dir.read(done))
        if (entry === null) break
        found.push(entry)
      }
      return found.toSorted((one, other) => (one.name < other.name ? -1 : 1))
    }),
    (dir) => Effect.ignore(call((done) => dir.close(done)))
  )

const kindOf = (entry: fs.Dirent): Entry["kind"] =>
  entry.isFile() ? "file" : entry.isDirectory() ? "folder" : entry.isSymbolicLink() ? "link" : "other"

/**
 * Adds entries to `into` until it has more entries than requested. Each folder stays open while its contents are
 * listed.
 */
const walk = Effect.fnUntraced(function* (
  ground: Ground,
  held: Held,
  name: string,
  depth: number,
  options: ListOptions,
  into: Array<Entry>
): Effect.fn.Return<void, Failure> {
  for (const entry of yield* entriesOf(held, options.maxEntries - into.length)) {
    if (into.length > options.maxEntries) return
    const kind = kindOf(entry)
    const inner = path.join(name, entry.name)
    into.push({ path: inner, kind })
    if (kind !== "folder" || depth <= 1 || options.skip?.(entry.name) === true) continue
    // leave out entries that have disappeared or cannot be read
    yield* Effect.ignore(
      Effect.scoped(Effect.flatMap(hold(ground, inner), (next) => walk(ground, next, inner, depth - 1, options, into)))
    )
  }
})

const list = Effect.fnUntraced(function* (ground: Ground, name: string, options: ListOptions) {
  const held = yield* folder(ground, name)
  const entries: Array<Entry> = []
  const from = path.relative(ground.beneath.root, held.location)
  yield* walk(ground, held, from, Math.min(options.depth ?? 1, MAX_DEPTH), options, entries)
  return { entries: entries.slice(0, options.maxEntries), more: entries.length > options.maxEntries }
})

type Opening = (root: string, options?: WorkspaceOptions) => Effect.Effect<Workspace, FileFailed, Scope.Scope>

export const open: Opening = Effect.fnUntraced(function* (
  root: string,
  options: WorkspaceOptions = {}
): Effect.fn.Return<Workspace, FileFailed, Scope.Scope> {
  const beneath = yield* PathContainment.open(root)
  const ground: Ground = { beneath, hidden: options.hidden ?? [] }
  const result: Workspace = {
    root: beneath.root,
    read: (name, options) =>
      told(
        name,
        Effect.flatMap(file(ground, name), (held) => FileContent.readLines(name, held, options))
      ),
    whole: (name, maxBytes) =>
      told(
        name,
        Effect.flatMap(file(ground, name), (held) => FileContent.readWhole(name, held, maxBytes))
      ),
    write: (name, text, options) => told(name, write(ground, name, text, options?.version)),
    list: (name, options) => told(name, list(ground, name, options)),
    folder: (name) =>
      told(
        name,
        Effect.map(folder(ground, name), ({ location }) => location)
      )
  }
  return result
})

/** Opens a workspace, by default on this machine. A simulation can provide its own. */
export const Opener = Context.Reference<Opening>("agentd/backends/model/Workspace", { defaultValue: () => open })
