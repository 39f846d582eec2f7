/**
 * FilePatch: a patch of git's as files and lines, and comments on them as one message. Pure.
 *
 * Guarantees: a line has the number under which a person finds it: of the file as it is, or as it was where it goes.
 */

export interface Line {
  readonly sign: "+" | "-" | " " | "@"
  readonly text: string
  /** Of the file as it is; of the file as it was, for a line that goes; 0: none. */
  readonly number: number
}
export interface FilePatch {
  readonly path: string
  readonly lines: ReadonlyArray<Line>
}

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$/

/** The path of a file's head: of the file as it is, or as it was where it is gone. */
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

/** Files of a patch as git writes it. Pure. */
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

/** The message that has all comments. Pure. */
export const messageOf = (comments: ReadonlyArray<Comment>): string =>
  [
    comments.length === 1 ? "A comment on your changes:" : `${comments.length} comments on your changes:`,
    ...comments.map(({ line, path, text }) => {
      const gone = line.sign === "-" ? " (as it was)" : ""
      return `${path}:${line.number}${gone}\n    ${line.sign}${line.text}\n${text}`
    })
  ].join("\n\n")
