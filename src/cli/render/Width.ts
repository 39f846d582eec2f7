/**
 * Width: computes the number of terminal cells that a text occupies. The result is the same as that of `displayWidth`
 * in `effect/cli/CliOutput`; a test compares the two.
 *
 * In almost all text each character occupies one cell, so the width is the length. `Intl.Segmenter` is then not used,
 * because its first use costs 5 ms and 6 MB.
 */
// oxlint-disable-next-line no-control-regex
const STYLE = /\u001b\[[0-9;]*m/gu
/**
 * Matches text of characters that are one cell wide: ASCII, Latin letters and signs, dashes, quotes, arrows, boxes; no
 * controls, no emoji.
 */
const PLAIN = /^[ -~\u00a0-\u00ac\u00ae-\u02ff\u2010-\u2027\u2190-\u21ff\u2500-\u257f]*$/u
const EMPTY = /[\p{Mark}\p{Control}\p{Default_Ignorable_Code_Point}]/gu
const EMOJI = /\p{Emoji_Presentation}/u
/** First and last code point of each range that is two cells wide. */
const WIDE = [
  0x1100, 0x115f, 0x2329, 0x232a, 0x2e80, 0x303e, 0x3040, 0xa4cf, 0xac00, 0xd7a3, 0xf900, 0xfaff, 0xfe10, 0xfe19,
  0xfe30, 0xfe6f, 0xff00, 0xff60, 0xffe0, 0xffe6, 0x1b000, 0x1b2ff, 0x1f200, 0x1f251, 0x20000, 0x3fffd
]

const isWide = (point: number): boolean => {
  for (let at = 0; at < WIDE.length; at += 2) if (point >= WIDE[at]! && point <= WIDE[at + 1]!) return true
  return false
}

/** The segmenter, created when it is first needed. It has no state, so it can be used again. */
const segmenter = (() => {
  let made: Intl.Segmenter | undefined
  return () => (made ??= new Intl.Segmenter(undefined, { granularity: "grapheme" }))
})()

export const displayWidth = (text: string): number => {
  const bare = text.includes("\u001b") ? text.replace(STYLE, "") : text
  if (PLAIN.test(bare)) return bare.length
  let width = 0
  for (const { segment } of segmenter().segment(bare)) {
    const visible = segment.replace(EMPTY, "")
    if (visible === "") continue
    width += EMOJI.test(segment) || segment.includes("\ufe0f") || isWide(visible.codePointAt(0)!) ? 2 : 1
  }
  return width
}
