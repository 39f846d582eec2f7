/**
 * FileContents: the contents of the files that come with a turn, and the folder where a program reads them.
 *
 * Guarantees: A run gets the content that was sent, or a note that it no longer exists. The text of a file is enclosed
 * in markers that are derived from its own hash, so it cannot contain them. Only this user can access the folder for a
 * program. The folder is removed with the run, and no file name leads out of it.
 */
import { Effect, FileSystem } from "effect"
import { createHash } from "node:crypto"
import * as path from "node:path"
import { BackendError, type RunSpec } from "./Backend.ts"
import { words } from "./FileDescription.ts"
import type { MediaType, RunFile } from "./AttachedFile.ts"
import type { Host } from "./Host.ts"
import * as RunFolder from "./RunFolder.ts"

export interface Content {
  /** Describes the file in one line: `File 2, "shot.png" (image/png, 12 KiB)`. */
  readonly label: string
  readonly filename: string
  readonly type: MediaType
  readonly sha256: string
  readonly bytes: Uint8Array
}

export interface Contents {
  readonly found: ReadonlyArray<Content>
  /** Lines about files that no longer exist. */
  readonly gone: ReadonlyArray<string>
}

export type Reader = (files: ReadonlyArray<RunFile> | undefined) => Effect.Effect<Contents>

const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex")

const none: Contents = { found: [], gone: [] }

export const reader: Effect.Effect<Reader, never, FileSystem.FileSystem> = Effect.map(
  FileSystem.FileSystem,
  (disk): Reader =>
    (files = []) =>
      files.length === 0
        ? Effect.succeed(none)
        : Effect.map(
            Effect.forEach(files, (file, at) => {
              const { filename, sha256, type } = file
              const label = `File ${at + 1}, ${words(file)}`
              return disk.readFile(file.path).pipe(
                Effect.map((bytes) => (hashOf(bytes) === sha256 ? { label, filename, type, sha256, bytes } : label)),
                Effect.orElseSucceed(() => label)
              )
            }),
            (all) => ({
              found: all.flatMap((one) => (typeof one === "string" ? [] : [one])),
              gone: all.flatMap((one) => (typeof one === "string" ? [`${one}: agentd does not have it any more.`] : []))
            })
          )
)

export const isText = ({ type }: Content): boolean => type === "text/plain"

export const isImage = ({ type }: Content): boolean => type.startsWith("image/")

export const textOf = ({ bytes }: Content): string => Buffer.from(bytes).toString("utf8")

export const base64Of = ({ bytes }: Content): string => Buffer.from(bytes).toString("base64")

export const fenced = (content: Content): string => {
  const mark = createHash("sha256").update(`file ${content.sha256}`).digest("hex").slice(0, 16)
  return `--- ${mark} ${content.label}\n${textOf(content)}\n--- ${mark} end`
}

export const withLines = (prompt: string, lines: ReadonlyArray<string>): string =>
  lines.length === 0 ? prompt : `${prompt.trimEnd()}\n\n${lines.join("\n\n")}\n`

export interface Folder {
  readonly path: string
  /** Writes the files into the folder. Returns their paths, in the order of `contents`. */
  readonly put: (contents: ReadonlyArray<Content>) => Effect.Effect<ReadonlyArray<string>, BackendError>
}

const unwritable = (error: { readonly message: string }) =>
  new BackendError({
    message: `the folder for the message's files could not be written: ${error.message}`,
    remedy: "free disk space for the folder for temporary files",
    fatal: false
  })

/** Converts a file name to a safe name that cannot lead to another folder. */
const safe = (filename: string): string => filename.replaceAll(/[^\w.-]+/g, "_").slice(-100)

/** File names contain the hash, so that a name always refers to the same content. */
export const folderOf = Effect.fnUntraced(function* (host: Host, spec: RunSpec) {
  const disk = yield* FileSystem.FileSystem
  const made = yield* RunFolder.within(host, spec, "files")
  let count = 0
  const put = Effect.fnUntraced(function* ({ bytes, filename, sha256 }: Content) {
    const name = path.join(made, `${++count}-${sha256.slice(0, 12)}-${safe(filename)}`)
    const isThere = Effect.map(disk.stat(name), ({ size }) => Number(size) === bytes.length)
    // a resumed run already has the files that were written before
    if (!(yield* Effect.orElseSucceed(isThere, () => false))) yield* disk.writeFile(name, bytes, { mode: 0o600 })
    return name
  })
  const result: Folder = {
    path: made,
    put: (contents) => Effect.mapError(Effect.forEach(contents, put), unwritable)
  }
  return result
})
