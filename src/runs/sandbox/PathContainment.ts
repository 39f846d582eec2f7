/**
 * PathContainment: opens only files inside a folder, even if parts of the path are replaced at the same time.
 *
 * Guarantees: Each file is first opened, and then /proc/self/fd shows where it is. If it is not inside the root, the
 * result is a WorkspaceViolation. Nothing is read, written or created before that check: the first descriptor is
 * O_PATH, whose opening reads nothing, blocks on no FIFO and wakes no device. A new file or folder is created in a
 * folder that was opened in this way, under a single name, and never through a link. A path that leads out is rejected
 * in the same way whether its target exists or not. A link therefore cannot be used to find out which files exist
 * outside.
 *
 * Linux only: on other systems a descriptor cannot be located, and `open` fails.
 */
import { Effect, Schema, type Scope } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"

/** The path leads out of the workspace, or to a file that no tool may access. */
export class WorkspaceViolation extends Schema.TaggedError<WorkspaceViolation>()("WorkspaceViolation", {
  message: Schema.String,
  remedy: Schema.String
}) {}

/** The operation failed, but not because of a violation. */
export class FileFailed extends Schema.TaggedError<FileFailed>()("FileFailed", {
  reason: Schema.Literals([
    "NotFound",
    "NotAFile",
    "NotAFolder",
    "Binary",
    "TooLarge",
    "Changed",
    "Denied",
    "Invalid",
    "Unsupported",
    "Failed"
  ]),
  message: Schema.String,
  remedy: Schema.String
}) {}

export type WorkspaceError = WorkspaceViolation | FileFailed

/** An open descriptor, with the location that its file had when it was checked. */
export interface Held {
  readonly fd: number
  readonly location: string
  readonly stat: fs.BigIntStats
}

export interface Beneath {
  /** The real path of the root. */
  readonly root: string
  /** Returns the normalized path relative to the root; "" for the root itself. Does not access the file system. */
  readonly relative: (given: string) => Effect.Effect<string, WorkspaceError>
  /** Returns where a path that cannot be opened leads, with links followed; undefined if it leads out of the root. */
  readonly leads: (given: string) => Effect.Effect<string | undefined, WorkspaceError>
  /** Opens an existing file or folder, with links followed. The descriptor cannot be read yet. */
  readonly hold: (given: string) => Effect.Effect<Held, WorkspaceError, Scope.Scope>
  /**
   * Opens a folder. If it does not exist, creates it and its missing parents. `refuse` checks the location of each
   * folder before the folder is created.
   */
  readonly makeFolder: (
    relative: string,
    refuse: (location: string) => Effect.Effect<void, WorkspaceError>
  ) => Effect.Effect<Held, WorkspaceError, Scope.Scope>
}

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = fs.constants
/** The value of this flag on Linux, on all of Node's architectures. `fs.constants` does not contain it. */
const O_PATH = 0o10000000

/** Path to an open descriptor, or to a name in the folder that the descriptor refers to. */
export const at = (fd: number, name?: string): string =>
  name === undefined ? `/proc/self/fd/${fd}` : `/proc/self/fd/${fd}/${name}`

type Done<A> = (error: NodeJS.ErrnoException | null, value: A) => void

/** Converts a call of node:fs to an effect. Uninterruptible, so that an interruption leaves no file half open. */
export const call = <A = void>(start: (done: Done<A>) => void): Effect.Effect<A, NodeJS.ErrnoException> =>
  Effect.uninterruptible(
    Effect.callback((resume) => {
      try {
        start((error, value) => resume(error === null ? Effect.succeed(value) : Effect.fail(error)))
      } catch (error) {
        // node throws for a NUL byte in a path
        resume(Effect.fail(error as NodeJS.ErrnoException))
      }
    })
  )

const failure = (reason: FileFailed["reason"], message: string, remedy: string) =>
  new FileFailed({ reason, message, remedy })

/** Quotes a name if necessary, so that it fits into a line of text. */
export const shown = (name: string): string =>
  /[\p{Cc}\p{Cf}\u2028\u2029"\\]/u.test(name) ? JSON.stringify(name).replaceAll("\u007f", "\\u007f") : name

export const explain =
  (given: string) =>
  (error: NodeJS.ErrnoException): FileFailed => {
    const name = shown(given)
    switch (error.code) {
      case "ENOENT":
        return failure("NotFound", `${name} does not exist`, "list the folder to see what is there")
      case "ENOTDIR":
        return failure("NotAFolder", `${name}: a part of the path is a file`, "list the folder to see what is there")
      case "EISDIR":
        return failure("NotAFile", `${name} is a folder`, "name a file in it")
      case "ELOOP":
        return failure(
          "Invalid",
          `${name}: links in the path lead in a circle`,
          "remove the link, or name the file itself"
        )
      case "EACCES":
      case "EPERM":
      case "EROFS":
      case "EBUSY":
        return failure(
          "Denied",
          `${name}: ${error.code}: the system does not permit it`,
          "ask a person to see to its permissions"
        )
      case "ENAMETOOLONG":
      case "ERR_INVALID_ARG_VALUE":
        return failure("Invalid", `${name} is no valid path`, "give a shorter one without NUL bytes")
      default:
        return failure("Failed", `${name}: ${error.message}`, "see whether the disk is full or out of order")
    }
  }

const opened = (file: string, flags: number, mode?: number) =>
  Effect.acquireRelease(
    call<number>((done) => fs.open(file, flags, mode, done)),
    (fd) => Effect.ignore(call((done) => fs.close(fd, done)))
  )

const locate = (fd: number) => call<string>((done) => fs.readlink(at(fd), done))
const stat = (fd: number) => call<fs.BigIntStats>((done) => fs.fstat(fd, { bigint: true }, done))

/** Maximum number of links, the same as in Linux. */
const MAX_LINKS = 40

/** Where a link points to; undefined if the file is not a link or does not exist. */
const targetOf = (file: string) =>
  Effect.orElseSucceed(
    call<string | undefined>((done) => fs.readlink(file, done)),
    () => undefined
  )

/** Whether the location is the folder itself or inside it. Both must be real paths. */
export const within = (folder: string, location: string): boolean =>
  location === folder || location.startsWith(folder === "/" ? folder : `${folder}/`)

const outside = (given: string, where: string) =>
  new WorkspaceViolation({
    message: `${shown(given)} ${where}`,
    remedy: "name a path inside the workspace, relative to it; what lies outside is not yours to touch"
  })

const hold = (file: string, flags: number) =>
  Effect.gen(function* () {
    const fd = yield* opened(file, O_PATH | flags)
    return { fd, location: yield* locate(fd), stat: yield* stat(fd) }
  })

/** Opens a readable descriptor for exactly the file of an open descriptor, without looking up a name again. */
export const readable = (held: Held) => opened(at(held.fd), O_RDONLY | O_NONBLOCK | O_NOCTTY)

/** Creates a new file in an open folder. The name must not exist yet, so that a link cannot lead out. */
export const create = (folder: Held, name: string, mode: number) =>
  opened(at(folder.fd, name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY, mode)

/**
 * Follows the names from the root, but only while they stay inside the root, so that nothing outside is accessed.
 * Undefined if the names lead out.
 */
const follow = Effect.fnUntraced(function* (
  { given, root }: { readonly root: string; readonly given: string },
  names: ReadonlyArray<string>
) {
  let place = root
  let rest = names
  for (let links = 0; rest.length > 0;) {
    const [name = "", ...more] = rest
    const next = path.join(place, name)
    if (!within(root, next)) return undefined
    const target = name === "" || name === "." || name === ".." ? undefined : yield* targetOf(next)
    rest = more
    if (target === undefined) {
      place = next
      continue
    }
    links += 1
    if (links > MAX_LINKS) return place
    if (!path.isAbsolute(target)) {
      rest = [...target.split("/"), ...more]
      continue
    }
    // if a link's target is an absolute path inside the root, it is followed from the root again; the root can have two
    // names
    const absolute = path.resolve(target)
    const home = [root, given].find((one) => within(one, absolute))
    if (home === undefined) return undefined
    place = root
    rest = [...path.relative(home, absolute).split("/"), ...more]
  }
  return place
})

/** Opens a descriptor, which is closed with the scope. */
export const open = Effect.fnUntraced(function* (folder: string): Effect.fn.Return<Beneath, FileFailed, Scope.Scope> {
  if (process.platform !== "linux" || !fs.existsSync("/proc/self/fd"))
    return yield* failure(
      "Unsupported",
      "this system does not say where an open file lies (no /proc), so no path can be checked",
      "run agentd on Linux, with /proc mounted"
    )
  const given = path.resolve(folder)
  const base = yield* Effect.mapError(hold(given, O_DIRECTORY), explain(given))
  const root = base.location

  const relative = (file: string): Effect.Effect<string, WorkspaceError> => {
    if (file.includes("\0"))
      return Effect.fail(explain(file)(Object.assign(new Error(), { code: "ERR_INVALID_ARG_VALUE" })))
    const absolute = path.resolve(root, file)
    const home = [root, given].find((one) => within(one, absolute))
    return home === undefined
      ? Effect.fail(outside(file, "lies outside the workspace"))
      : Effect.succeed(path.relative(home, absolute))
  }

  const checked = (name: string) => (held: Held) =>
    within(root, held.location) ? Effect.succeed(held) : Effect.fail(outside(name, "leads out of the workspace"))

  /**
   * Opens a file inside the root. The kernel follows the names; afterwards the location is read from the descriptor.
   */
  const find = (name: string, flags: number) => hold(at(base.fd, `./${name}`), flags)

  const leads: Beneath["leads"] = (file) =>
    Effect.flatMap(relative(file), (name) => follow({ root, given }, name.split("/")))

  /** Builds the error for a path that cannot be opened: a violation if the path leads out of the root. */
  const failing = (file: string) => (error: NodeJS.ErrnoException) =>
    Effect.flatMap(leads(file), (place) =>
      Effect.fail<WorkspaceError>(
        place === undefined ? outside(file, "leads out of the workspace") : explain(file)(error)
      )
    )

  const makeFolder: Beneath["makeFolder"] = Effect.fnUntraced(function* (name, refuse) {
    const there = yield* find(name, O_DIRECTORY).pipe(
      Effect.catch((error) =>
        Effect.catchIf(
          failing(name)(error),
          (said) => said._tag === "FileFailed" && said.reason === "NotFound" && name !== "",
          () => Effect.succeed(undefined)
        )
      )
    )
    if (there !== undefined) return yield* checked(name)(there)
    const parent = yield* makeFolder(path.dirname(name) === "." ? "" : path.dirname(name), refuse)
    const last = path.basename(name)
    yield* refuse(path.join(parent.location, last))
    yield* call((done) => fs.mkdir(at(parent.fd, last), 0o777, done)).pipe(
      // another process has created it meanwhile; if it is a link, the next call fails
      Effect.catchIf(
        (error) => error.code === "EEXIST",
        () => Effect.void
      ),
      Effect.mapError(explain(name))
    )
    const made = yield* Effect.mapError(hold(at(parent.fd, last), O_DIRECTORY | O_NOFOLLOW), (error) =>
      error.code === "ENOTDIR" || error.code === "ELOOP"
        ? outside(name, "passes through a link that leads nowhere")
        : explain(name)(error)
    )
    return yield* checked(name)(made)
  })

  return {
    root,
    relative,
    hold: Effect.fnUntraced(function* (file) {
      const name = yield* relative(file)
      return yield* Effect.flatMap(Effect.catch(find(name, 0), failing(file)), checked(file))
    }),
    leads,
    makeFolder
  }
})
