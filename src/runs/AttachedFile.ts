/**
 * AttachedFile: a file that comes with a message: its metadata, its media type, and the size limits. Pure.
 *
 * Guarantees: The media type is determined from the content alone, never from the name. Content that no agent accepts
 * has no media type.
 */
import { Schema } from "effect"

export const MEDIA_TYPES = [
  "image/png",
  "image/jpeg",
  "image/gif",
  "image/webp",
  "application/pdf",
  "text/plain"
] as const
export type MediaType = (typeof MEDIA_TYPES)[number]

/** A file as the log stores it. The content is stored separately, under its hash. */
export const AttachedFile = Schema.Struct({
  /** File name from the sender. Must not be used as a path or trusted. */
  filename: Schema.String,
  type: Schema.Literals(MEDIA_TYPES),
  /** Size of the content, bytes. */
  size: Schema.Int,
  /** SHA-256 of the content, in hexadecimal. */
  sha256: Schema.String
})
export type AttachedFile = typeof AttachedFile.Type

export interface RunFile extends AttachedFile {
  /** Absolute path of the content. Only the daemon reads it there. */
  readonly path: string
}

const MIB = 1024 * 1024
/** Maximum size of one file, bytes. */
export const MAX_FILE = 5 * MIB
/** Maximum total size of the files of one message in bytes, and maximum number of these files. */
export const MAX_MESSAGE = 16 * MIB
export const MAX_FILES = 20
/** Maximum length of a file name, characters. */
export const MAX_NAME = 255

const SIGNATURES: ReadonlyArray<readonly [MediaType, RegExp]> = [
  ["image/png", /^\u0089PNG\r\n/],
  ["image/jpeg", /^\xff\xd8\xff/],
  ["image/gif", /^GIF8[79]a/],
  ["image/webp", /^RIFF[^]{4}WEBP/],
  ["application/pdf", /^%PDF-/]
]

const isText = (content: Uint8Array): boolean => {
  if (content.includes(0)) return false
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(content)
    return true
  } catch {
    return false
  }
}

/** Media type of a file's content; undefined if agents do not accept such content. */
export const mediaTypeOf = (content: Uint8Array): MediaType | undefined => {
  const head = Buffer.from(content.subarray(0, 16)).toString("latin1")
  const found = SIGNATURES.find(([, signature]) => signature.test(head))
  if (found !== undefined) return found[0]
  return content.length > 0 && isText(content) ? "text/plain" : undefined
}

export const KINDS = "PNG, JPEG, GIF, WebP, PDF, or text in UTF-8"
