/**
 * VisibleText: shows text by another author in such a form that the user can see every character. Pure.
 *
 * Guarantees: nothing is left out or hidden. Each character is shown as itself or as a mark `\u{…}`. Backslashes before
 * a mark, or before text that looks like one, are doubled. The original can be restored: `read(visible(text)) ===
 * text`. Time and memory are linear in the length of the text.
 */

/**
 * Characters that are replaced by a mark: control and format characters, lone surrogates, private and unassigned
 * characters, separators, and blanks other than the space. Also characters that fonts do not draw. These include
 * joiners and variation selectors, because no legitimate command needs them.
 */
const HIDDEN =
  /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\u{1d159}\u{13441}\u{13442}\ufffc\ufffd]|(?! )\p{Zs}/u
const COMBINING = /\p{M}/u
/** Maximum number of combining marks on one letter. More of them would cover the lines above and below. */
const MAX_COMBINING = 2
/** Maximum number of consecutive spaces. More spaces could push the text after them off the screen. */
const MAX_SPACES = 8

const markOf = (character: string): string => `\\u{${character.codePointAt(0)!.toString(16)}}`

/** Replaces each hidden character in the text with a mark. Line breaks stay unchanged. */
export const visible = (text: string): string => {
  let shown = ""
  let combining = 0
  /** True: the previous character is visible, so a combining mark can be drawn on it. */
  let base = false
  let spaces = 0
  const endSpaces = () => {
    if (spaces > MAX_SPACES) shown += `\\u{20}{${spaces - MAX_SPACES}}`
    spaces = 0
  }
  for (let at = 0; at < text.length;) {
    const code = text.codePointAt(at)!
    const character = String.fromCodePoint(code)
    at += character.length
    if (character === " ") {
      if (++spaces <= MAX_SPACES) shown += character
      base = false
      continue
    }
    if (spaces > 0) endSpaces()
    if (code > 32 && code < 127 && code !== 92) {
      // fast path for printable ASCII characters, because most commands consist mainly of these
      combining = 0
      base = true
      shown += character
    } else if (character === "\n") {
      base = false
      shown += character
    } else if (HIDDEN.test(character)) {
      base = false
      shown += markOf(character)
    } else if (COMBINING.test(character)) {
      combining = base ? combining + 1 : MAX_COMBINING + 1
      shown += combining > MAX_COMBINING ? markOf(character) : character
    } else {
      combining = 0
      base = true
      shown += character
      if (character !== "\\") continue
      let end = at
      while (text[end] === "\\") end++
      const run = text.slice(at, end)
      const next = end < text.length ? String.fromCodePoint(text.codePointAt(end)!) : ""
      // double the backslashes only if the text could be read as a mark, so that ordinary commands stay unchanged
      const isTaken = text.startsWith("u{", end) || (next !== "\n" && next !== " " && HIDDEN.test(next))
      shown += isTaken ? run + run + character : run
      at = end
    }
  }
  endSpaces()
  return shown
}

export const read = (shown: string): string =>
  shown.replace(
    /(?<!\\)(\\+)u\{(?:([0-9a-f]+)\}(?:\{(\d+)\})?)?/g,
    (all: string, run: string, code?: string, count?: string) => {
      const before = "\\".repeat(Math.floor(run.length / 2))
      if (run.length % 2 === 0 || code === undefined) return before + all.slice(run.length)
      if (code === "20" && count !== undefined) return before + " ".repeat(Number(count))
      return before + String.fromCodePoint(parseInt(code, 16)) + (count === undefined ? "" : `{${count}}`)
    }
  )

const SCRIPTS = ["Latin", "Cyrillic", "Greek", "Armenian", "Cherokee", "Coptic", "Lisu", "Georgian"].map(
  (name) => [name, new RegExp(`\\p{Script=${name}}`, "u")] as const
)
const MAX_NAMED = 20

/**
 * Returns the words that could be mistaken for other words, because they mix alphabets, or consist of styled Latin
 * letters or of letters that look like Latin letters. The result is a hint, not a proof.
 */
export const lookalikes = (text: string): ReadonlyArray<string> => {
  const found = new Set<string>()
  for (const [word] of text.matchAll(/[\p{L}\p{N}]{1,256}/gu)) {
    if (/^[ -~]*$/.test(word)) continue
    const scripts = SCRIPTS.filter(([, script]) => script.test(word)).map(([name]) => name)
    const isDressed = /^[ -~]+$/.test(word.normalize("NFKC"))
    const isTwin = scripts[0] !== "Latin" && /^[асеорхуіјѕԁһӏνοαрАВЕКМНОРСТХΑΒΕΖΗΙΚΜΝΟΡΤΥΧ]+$/u.test(word)
    if (scripts.length > 1 || isDressed || isTwin) found.add(word)
    if (found.size === MAX_NAMED) break
  }
  return [...found]
}
