/**
 * ShellWord: writes a text as one word for a POSIX shell. Imports nothing from Effect, because the quick entry loads
 * this module. Pure.
 */

/** In single quotes, in which every character stands for itself. */
export const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

/** In quotes only if the text contains a character that a shell could interpret. */
export const shellWord = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : quoted(text))
