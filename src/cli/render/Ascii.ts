/**
 * Ascii: our own marks in the characters of ASCII, for a terminal that shows no others. Pure.
 *
 * Guarantees: a mark is one cell before and after, so that nothing moves; what agents and people wrote is left as it is,
 * where it has none of our marks.
 */
import { LOOKS } from "../../domain/Words.ts"

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
  // lines of boxes and trees
  ...Array.from("─━", (line) => [line, "-"] as const),
  ...Array.from("│┃", (line) => [line, "|"] as const),
  ...Array.from("┌┐└┘├┤┬┴┼╭╮╯╰", (corner) => [corner, "+"] as const)
])

const MARK = new RegExp(`[${[...MARKS.keys()].join("")}]`, "gu")

export const ascii = (text: string): string => text.replaceAll(MARK, (mark) => MARKS.get(mark) ?? mark)

/**
 * Whether a terminal shows ASCII alone: `dumb` ones, and those whose locale names another character set than UTF-8. A
 * locale that is not set says nothing.
 */
export const isAsciiOnly = (env: (name: string) => string | undefined): boolean => {
  if (env("TERM") === "dumb") return true
  const locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(env).find((value) => value !== undefined && value !== "")
  return locale !== undefined && !/utf-?8/i.test(locale)
}
