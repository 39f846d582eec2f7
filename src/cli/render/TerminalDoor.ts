/**
 * TerminalDoor: the function through which every text passes on its way to the terminal. Pure.
 *
 * Guarantees: no text can control the terminal, except by agentd's own colours, and by those only if the output is
 * coloured. No text can change the reading direction. A control character is not removed, but shown as `\u{…}`. Escaped
 * JSON is still the same JSON value.
 */

/**
 * Matches control characters, lone surrogates, line separators and format characters. Joiners of words and emoji are
 * allowed.
 */
const FOREIGN = "(?![\\n\\t])\\p{Cc}|[\\p{Cs}\\p{Zl}\\p{Zp}]|(?![\\u200c\\u200d])\\p{Cf}"
const OURS = "\\u001b\\[(?:[0-2]|3[1-6]|90)m"
const plainly = new RegExp(FOREIGN, "gu")
const coloured = new RegExp(`${OURS}|${FOREIGN}`, "gu")
const own = new RegExp(`^${OURS}$`, "u")

const markOf = (character: string): string => `\\u{${character.codePointAt(0)!.toString(16)}}`

/** `colour`: whether agentd's own colours are kept. */
export const through = (text: string, colour: boolean): string =>
  text.replaceAll(colour ? coloured : plainly, (found) => (own.test(found) ? found : markOf(found)))

const IN_JSON = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

const escaped = (character: string): string =>
  character.replaceAll(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** A value as JSON on one line; each invisible character is escaped. */
export const json = (value: unknown): string => (JSON.stringify(value) ?? "null").replaceAll(IN_JSON, escaped)
