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
  /** File name from the sender. Not a path, and not trustworthy. */
  filename: Schema.String,
  type: Schema.Literals(MEDIA_TYPES),
  /** In bytes. */
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
/** Maximum bytes of one file. */
export const MAX_FILE = 5 * MIB
/** Maximum bytes, and maximum number of files, of one message. */
export const MAX_MESSAGE = 16 * MIB
export const MAX_FILES = 20
/** Maximum characters of a file name. */
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

/** Undefined: agents do not accept this content. */
export const mediaTypeOf = (content: Uint8Array): MediaType | undefined => {
  const head = Buffer.from(content.subarray(0, 16)).toString("latin1")
  const found = SIGNATURES.find(([, signature]) => signature.test(head))
  if (found !== undefined) return found[0]
  return content.length > 0 && isText(content) ? "text/plain" : undefined
}

export const KINDS = "PNG, JPEG, GIF, WebP, PDF, or text in UTF-8"
