/**
 * ByteCount: formats a number of bytes for users. Pure, and without imports, because the quick entry of the CLI loads
 * it.
 */

/** The number of bytes as text, such as "4.2 MB". */
export const shown = (count: number): string => {
  const units = ["B", "kB", "MB", "GB", "TB"]
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, count)) / 3))
  const value = count / 1000 ** power
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[power]}`
}
