/**
 * JsonDepth: measures how deep JSON text is nested, before it is parsed.
 *
 * Guarantees: pure; reads each character once and does not recurse. Text that is nested deeper than the limit is
 * rejected on receipt, so that recursive code cannot overflow the stack.
 */

/** Maximum nesting depth, in levels. Hooks and tool inputs that programs produce are far below it. */
export const MAX_NESTING = 200

/** Returns the nesting depth. Brackets inside JSON strings are not counted. */
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
