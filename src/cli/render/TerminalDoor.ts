/**
 * TerminalDoor: the function through which every text passes on its way to the terminal. Pure.
 *
 * Guarantees: no text can control the terminal. Only agentd's own colours are let through, if the output is coloured.
 * No text can change the reading direction. Control characters are not removed, but shown as `\u{…}`. JSON has the same
 * value after escaping.
 */

/**
 * Matches control characters, lone surrogates, line separators and format characters. Word and emoji joiners are not
 * matched.
 */
const FOREIGN = "(?![\\n\\t])\\p{Cc}|[\\p{Cs}\\p{Zl}\\p{Zp}]|(?![\\u200c\\u200d])\\p{Cf}"
const OURS = "\\u001b\\[(?:[0-2]|3[1-6]|90)m"
const plainly = new RegExp(FOREIGN, "gu")
const coloured = new RegExp(`${OURS}|${FOREIGN}`, "gu")
const own = new RegExp(`^${OURS}$`, "u")

const markOf = (character: string): string => `\\u{${character.codePointAt(0)!.toString(16)}}`

/** Makes a text safe for the terminal. `colour`: keep agentd's own colours. */
export const through = (text: string, colour: boolean): string =>
  text.replaceAll(colour ? coloured : plainly, (found) => (own.test(found) ? found : markOf(found)))

const IN_JSON = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

const escaped = (character: string): string =>
  character.replaceAll(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** A value as JSON on one line, in which invisible characters are escaped. */
export const json = (value: unknown): string => (JSON.stringify(value) ?? "null").replaceAll(IN_JSON, escaped)
