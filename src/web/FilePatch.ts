/**
 * FilePatch: parses a git patch into files and lines, and formats comments on lines as one message. Pure.
 *
 * Guarantees: each line has its line number in the new file; a removed line has its number in the old file.
 */

export interface Line {
  readonly sign: "+" | "-" | " " | "@"
  readonly text: string
  /** Line number in the new file, or in the old file for a removed line; 0 if the line has none. */
  readonly number: number
}
export interface FilePatch {
  readonly path: string
  readonly lines: ReadonlyArray<Line>
}

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$/

/** The file's path in the new version; if the file was deleted, its path in the old version. */
const pathIn = (head: ReadonlyArray<string>): string => {
  const named = (mark: string) =>
    head
      .find((line) => line.startsWith(mark))
      ?.slice(4)
      .replace(/^[ab]\//, "")
      .replace(/\t$/, "")
  const [comes, goes] = [named("+++ "), named("--- ")]
  if (comes !== undefined && comes !== "/dev/null") return comes
  const first = head[0] ?? ""
  return goes ?? first.slice(first.lastIndexOf(" b/") + " b/".length)
}

const linesOf = (body: ReadonlyArray<string>): ReadonlyArray<Line> => {
  let [before, after] = [0, 0]
  return body.flatMap((text): ReadonlyArray<Line> => {
    const hunk = HUNK.exec(text)
    if (hunk !== null) {
      before = Number(hunk[1])
      after = Number(hunk[2])
      return [{ sign: "@", text: hunk[3]!.trim(), number: 0 }]
    }
    if (text.startsWith("+")) return [{ sign: "+", text: text.slice(1), number: after++ }]
    if (text.startsWith("-")) return [{ sign: "-", text: text.slice(1), number: before++ }]
    if (!text.startsWith(" ")) return []
    before++
    return [{ sign: " ", text: text.slice(1), number: after++ }]
  })
}

export const filesOf = (patch: string): ReadonlyArray<FilePatch> =>
  patch
    .split(/^(?=diff --git )/m)
    .filter((part) => part.startsWith("diff --git "))
    .map((part) => {
      const lines = part.split("\n")
      const first = lines.findIndex((line) => line.startsWith("@@"))
      const head = first < 0 ? lines : lines.slice(0, first)
      return { path: pathIn(head), lines: first < 0 ? [] : linesOf(lines.slice(first)) }
    })

export interface Comment {
  readonly path: string
  readonly line: Line
  readonly text: string
}

export const messageOf = (comments: ReadonlyArray<Comment>): string =>
  [
    comments.length === 1 ? "A comment on your changes:" : `${comments.length} comments on your changes:`,
    ...comments.map(({ line, path, text }) => {
      const gone = line.sign === "-" ? " (as it was)" : ""
      return `${path}:${line.number}${gone}\n    ${line.sign}${line.text}\n${text}`
    })
  ].join("\n\n")
