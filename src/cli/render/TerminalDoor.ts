/**
 * TerminalDoor: the one function that every text passes on its way to the terminal. Pure.
 *
 * Guarantees: of what it lets through, nothing speaks to the terminal but our own colours, and
 * these only where the output is coloured; nothing turns the reading direction, and nothing that
 * controls is left unseen: it shows as a mark `\u{…}`. JSON stays the same JSON.
 */

/** Controls, halves of characters, separators of lines, formats; joiners belong to words and emoji. */
const FOREIGN = "(?![\\n\\t])\\p{Cc}|[\\p{Cs}\\p{Zl}\\p{Zp}]|(?![\\u200c\\u200d])\\p{Cf}"
const OURS = "\\u001b\\[(?:[0-2]|3[1-6]|90)m"
const plainly = new RegExp(FOREIGN, "gu")
const coloured = new RegExp(`${OURS}|${FOREIGN}`, "gu")
const own = new RegExp(`^${OURS}$`, "u")

const markOf = (character: string): string => `\\u{${character.codePointAt(0)!.toString(16)}}`

/** The text as it may be printed; `colour`: ours are let through. */
export const through = (text: string, colour: boolean): string =>
  text.replaceAll(colour ? coloured : plainly, (found) => (own.test(found) ? found : markOf(found)))

const IN_JSON = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

const escaped = (character: string): string =>
  character.replaceAll(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** A value as JSON on one line, in which each character that does not show is escaped. */
export const json = (value: unknown): string => (JSON.stringify(value) ?? "null").replaceAll(IN_JSON, escaped)
