/**
 * FileDescription: describes a file that comes with a message in a short text. Pure, and without imports at run time,
 * because the CLI's fast entry point loads it.
 *
 * Guarantees: A file name never breaks the line, whatever characters it contains.
 */
import type { AttachedFile } from "./AttachedFile.ts"

const MIB = 1024 * 1024

export const sizeInWords = (bytes: number): string => {
  if (bytes < 1024) return bytes === 1 ? "1 byte" : `${bytes} bytes`
  return bytes < MIB ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / MIB).toFixed(1)} MiB`
}

/** Quotes a file name so that it stays on one line. */
export const quoted = (filename: string): string =>
  JSON.stringify(filename).replaceAll(
    /[\u007f-\u009f\u2028\u2029]/g,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`
  )

/** Describes a file, for example `"shot.png" (image/png, 12 KiB)`. */
export const words = ({ filename, size, type }: Pick<AttachedFile, "filename" | "size" | "type">): string =>
  `${quoted(filename)} (${type}, ${sizeInWords(size)})`
