/**
 * FileWords: a file that comes with a message, in words. Pure, and free of imports at run time: the
 * quick entry loads it.
 *
 * Guarantees: a name ends no line, whatever it holds.
 */
import type { GivenFile } from "./GivenFile.ts"

const MIB = 1024 * 1024

export const sizeInWords = (bytes: number): string => {
  if (bytes < 1024) return bytes === 1 ? "1 byte" : `${bytes} bytes`
  return bytes < MIB ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / MIB).toFixed(1)} MiB`
}

/** A name within a line: it ends none. */
export const quoted = (filename: string): string =>
  JSON.stringify(filename).replaceAll(
    /[\u007f-\u009f\u2028\u2029]/g,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`
  )

/** A file in words: `"shot.png" (image/png, 12 KiB)`. */
export const words = ({ filename, size, type }: Pick<GivenFile, "filename" | "size" | "type">): string =>
  `${quoted(filename)} (${type}, ${sizeInWords(size)})`
