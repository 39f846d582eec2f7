/**
 * Nesting: how deep a JSON text goes, told before it is parsed.
 *
 * Guarantees: pure; one look at each character, none of its own stack. What is deeper than the limit
 * is refused at the door, so that whoever walks a value level by level has a stack for it.
 */

/** Levels. No hook and no tool's input that a program made comes near it. */
export const MAX_NESTING = 200

/** Brackets in texts are not counted. */
export const isTooDeep = (text: string): boolean => {
  let depth = 0
  let inText = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (inText) {
      if (code === 0x5c) at++
      else if (code === 0x22) inText = false
    } else if (code === 0x22) inText = true
    else if (code === 0x5b || code === 0x7b) {
      depth += 1
      if (depth > MAX_NESTING) return true
    } else if (code === 0x5d || code === 0x7d) depth -= 1
  }
  return false
}
