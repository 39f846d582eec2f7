/**
 * TerminalDoor: the one function that every text passes on its way to the terminal. Pure.
 *
 * Guarantees: no text can control the terminal, except for our own colours, and those only if the
 * output is coloured; no text can change the reading direction; a control character is not
 * dropped, but shown as `\u{…}`. Escaped JSON is still the same JSON value.
 */

/** Control characters, lone surrogates, line separators and format characters; joiners (words, emoji) are allowed. */
const FOREIGN = "(?![\\n\\t])\\p{Cc}|[\\p{Cs}\\p{Zl}\\p{Zp}]|(?![\\u200c\\u200d])\\p{Cf}"
const OURS = "\\u001b\\[(?:[0-2]|3[1-6]|90)m"
const plainly = new RegExp(FOREIGN, "gu")
const coloured = new RegExp(`${OURS}|${FOREIGN}`, "gu")
const own = new RegExp(`^${OURS}$`, "u")

const markOf = (character: string): string => `\\u{${character.codePointAt(0)!.toString(16)}}`

/** The text that can be printed safely. `colour`: our colours pass. */
export const through = (text: string, colour: boolean): string =>
  text.replaceAll(colour ? coloured : plainly, (found) => (own.test(found) ? found : markOf(found)))

const IN_JSON = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

const escaped = (character: string): string =>
  character.replaceAll(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** A value as JSON on one line; each invisible character is escaped. */
export const json = (value: unknown): string => (JSON.stringify(value) ?? "null").replaceAll(IN_JSON, escaped)
