/**
 * GivenFile: a file that comes with a message: what is known of it, what kind of content it is, and
 * the bounds. Pure.
 *
 * Guarantees: the kind is read from the content alone, never from the name; content that no agent
 * takes has no kind.
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

/** A file as the log has it: its content lies elsewhere, under its hash. */
export const GivenFile = Schema.Struct({
  /** As its sender calls it: no path, and not to be trusted. */
  filename: Schema.String,
  type: Schema.Literals(MEDIA_TYPES),
  /** Bytes. */
  size: Schema.Int,
  /** Of the content, in hexadecimal. */
  sha256: Schema.String
})
export type GivenFile = typeof GivenFile.Type

export interface RunFile extends GivenFile {
  /** Absolute: where its content lies. Only the daemon reads it there. */
  readonly path: string
}

const MIB = 1024 * 1024
/** Bytes of one file. */
export const MAX_FILE = 5 * MIB
/** Of one message: bytes, and files. */
export const MAX_MESSAGE = 16 * MIB
export const MAX_FILES = 20
/** Characters of a name. */
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

/** Undefined: it is nothing that agents take. */
export const mediaTypeOf = (content: Uint8Array): MediaType | undefined => {
  const head = Buffer.from(content.subarray(0, 16)).toString("latin1")
  const found = SIGNATURES.find(([, signature]) => signature.test(head))
  if (found !== undefined) return found[0]
  return content.length > 0 && isText(content) ? "text/plain" : undefined
}

/** The kinds that agents take, in words. */
export const KINDS = "PNG, JPEG, GIF, WebP, PDF, or text in UTF-8"
