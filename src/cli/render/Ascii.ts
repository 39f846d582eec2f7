/**
 * Ascii: replaces agentd's own symbols by ASCII characters, for a terminal that shows only ASCII. Pure.
 *
 * Guarantees: a symbol and its replacement are both one cell wide, so that columns do not move. Other text of agents
 * and users is unchanged.
 */
import { LOOKS } from "../../domain/StatusWords.ts"

const MARKS: ReadonlyMap<string, string> = new Map<string, string>([
  ...Object.values(LOOKS).map(({ ascii, glyph }) => [glyph, ascii] as const),
  ...Object.entries({
    "…": "~",
    "·": ".",
    "—": "-",
    "–": "-",
    "−": "-",
    "→": ">",
    "↑": "^",
    "↓": "v",
    "↵": "<",
    "⏎": "<",
    "“": '"',
    "”": '"',
    "✗": "x",
    "⊘": "x",
    "■": "#",
    "▪": "#",
    "▶": ">",
    "►": ">",
    "▸": ">",
    "▹": ">",
    "▾": "v",
    "▏": "|",
    "⚙": "*",
    "★": "*",
    "✉": "@"
  }),
  // characters for drawing boxes and trees
  ...Array.from("─━", (line) => [line, "-"] as const),
  ...Array.from("│┃", (line) => [line, "|"] as const),
  ...Array.from("┌┐└┘├┤┬┴┼╭╮╯╰", (corner) => [corner, "+"] as const)
])

const MARK = new RegExp(`[${[...MARKS.keys()].join("")}]`, "gu")

export const ascii = (text: string): string => text.replaceAll(MARK, (mark) => MARKS.get(mark) ?? mark)

/**
 * True if a terminal shows only ASCII: if `TERM` is "dumb", or if the locale's character set is not UTF-8. False if no
 * locale variable is set.
 */
export const isAsciiOnly = (env: (name: string) => string | undefined): boolean => {
  if (env("TERM") === "dumb") return true
  const locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(env).find((value) => value !== undefined && value !== "")
  return locale !== undefined && !/utf-?8/i.test(locale)
}
