/** FileTrouble: explains file system errors to a user, with a remedy. Pure. */
import { PlatformError } from "effect"

/** The message for a file whose folder was deleted or moved. */
export const GONE = "its folder no longer exists"

interface Trouble {
  readonly says: string
  /** The remedy; undefined if it depends on the file. */
  readonly remedy?: string
}

const ROOM = "Free space on that disk, or choose another folder."

/** Explanations of file system errors by error code; see errno(3). */
const troubles: { readonly [code: string]: Trouble } = {
  EACCES: { says: "permission denied" },
  EPERM: { says: "not permitted" },
  ENOENT: { says: "there is no such file or folder" },
  EEXIST: { says: "something with that name already exists" },
  EISDIR: { says: "it is a folder" },
  ENOTDIR: { says: "a part of its path is not a folder" },
  ENOTEMPTY: { says: "the folder is not empty" },
  ENOSPC: { says: "no space is left on its disk", remedy: ROOM },
  EDQUOT: { says: "your quota on its disk is used up", remedy: ROOM },
  EROFS: { says: "its disk is read-only", remedy: "Mount the disk for writing, or choose another folder." },
  EIO: { says: "its disk failed", remedy: "Read the kernel's messages about the disk: dmesg" },
  EMFILE: { says: "too many files are open", remedy: "Raise the limit of open files: ulimit -n" },
  ENFILE: { says: "too many files are open on this machine", remedy: "Close some programs, then try again." },
  ELOOP: { says: "its symbolic links form a loop" },
  ENAMETOOLONG: { says: "its name is too long" },
  EBUSY: { says: "another program is using it" },
  ETXTBSY: { says: "it is a program that is running" },
  EXDEV: { says: "the two paths are on different disks" }
}

/** The error code of a Node error, or of the Node error inside an Effect error. */
const codeOf = (error: unknown): string | undefined => {
  const cause = error instanceof PlatformError.PlatformError ? error.reason.cause : error
  return typeof cause === "object" && cause !== null && "code" in cause && typeof cause.code === "string"
    ? cause.code
    : undefined
}

const known = (error: unknown): Trouble | undefined => troubles[codeOf(error) ?? ""]

/** A message for the error, such as `permission denied` or `no space is left on its disk`. */
export const troubleOf = (error: unknown): string =>
  known(error)?.says ?? codeOf(error) ?? (error instanceof Error ? error.message : String(error))

/** The remedy for this kind of error; if there is none, the caller's remedy for this file. */
export const remedyOf = (error: PlatformError.PlatformError, otherwise: string): string =>
  known(error)?.remedy ?? otherwise
