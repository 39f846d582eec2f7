/**
 * Glob: the patterns of rules for paths, addresses and names. Pure.
 *
 * Guarantees: linear time, because no regular expression is used.
 */

/**
 * Matches text against a pattern of literal pieces. `accepts`: whether a star may stand for this text. Each piece is
 * matched at its first place, so `accepts` must hold for every part of a text that it holds for.
 */
const matchesPieces = (pieces: ReadonlyArray<string>, text: string): boolean => {
  const [head = "", ...parts] = pieces
  if (parts.length === 0) return head === text
  const last = parts.pop()!
  if (!text.startsWith(head) || text.length < head.length + last.length || !text.endsWith(last)) return false
  let at = head.length
  for (const part of parts) {
    const found = text.indexOf(part, at)
    if (found === -1) return false
    at = found + part.length
  }
  return at <= text.length - last.length
}

/** In names, addresses and arguments, `*` stands for any text. */
export const matchesText = (pattern: string, text: string): boolean => matchesPieces(pattern.split("*"), text)

/** In paths, `*` stands for any text without a slash, and a step `**` for any number of steps. */
export const matchesPath = (pattern: string, path: string): boolean => {
  const [wanted, steps] = [pattern.split("/"), path.split("/")]
  // columns of a table: whether the first n steps match the pattern up to here
  let reach = new Set([0])
  for (const [index, want] of wanted.entries()) {
    const next = new Set<number>()
    const least = Math.min(...reach)
    const isLast = index === wanted.length - 1
    // `src/**` is what lies in src, not src itself
    if (want === "**") for (let at = least + (isLast ? 1 : 0); at <= steps.length; at++) next.add(at)
    else for (const at of reach) if (at < steps.length && matchesText(want, steps[at]!)) next.add(at + 1)
    if (next.size === 0) return false
    reach = next
  }
  return reach.has(steps.length)
}

/** The part of a path pattern before its first star, up to a slash. */
export const fixedFolder = (pattern: string): string => {
  const star = pattern.indexOf("*")
  return star === -1 ? pattern : pattern.slice(0, Math.max(0, pattern.lastIndexOf("/", star)))
}
