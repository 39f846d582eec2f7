/**
 * FileTools: the tools read, write, edit and list, within a Workspace.
 *
 * Guarantees: the output of a call is limited, and says how the agent can get the rest. A binary file is
 * refused. An edit changes only the text that it names: a file that is not UTF-8 is refused, and a
 * file that has changed since it was read is not overwritten.
 */
import { Effect, Schema } from "effect"
import { attempt } from "../config/Attempt.ts"
import { described, optional, Text, whole, Word } from "../config/Fields.ts"
import { shown } from "../runs/sandbox/PathContainment.ts"
import { define, failure, MAX_HEAD, success, type Tool } from "./Tool.ts"
import type { Entry, Workspace } from "../runs/sandbox/Workspace.ts"

const PATH = described(Word, "Relative to the workspace, or absolute and in it.")
const MAX_LINES = 2_000
const MAX_ENTRIES = 1_000
const MAX_EDIT = 8_388_608

/** Whether listings and searches skip this folder, because its contents are rarely of interest. */
export const skipped = (name: string): boolean => name === ".git" || name === "node_modules"

const numbered = (text: string, first: number): string =>
  text
    .split("\n")
    .map((line, index) => `${first + index}\t${line}`)
    .join("\n")

export const read = (workspace: Workspace): Tool =>
  define({
    name: "read",
    description: `Reads a text file. Each line comes with its number and a tab before it, which are not part of the file. At most ${MAX_LINES} lines a call.`,
    input: Schema.Struct({
      path: PATH,
      line: optional(whole(1, 1_000_000_000), "The first line. Default: 1."),
      limit: optional(whole(1, MAX_LINES), `How many lines. Default: ${MAX_LINES}.`)
    }),
    readOnly: true,
    parallel: true,
    run: ({ path, line, limit }) =>
      Effect.map(
        workspace.read(path, { maxBytes: MAX_HEAD, line, limit: limit ?? MAX_LINES }),
        ({ text, line, lines, cut, size }) => {
          if (text === "") return success("[the file is empty]")
          const body = numbered(text.endsWith("\n") ? text.slice(0, -1) : text, line)
          if (cut === undefined) return success(body)
          // Continue with the cut line, read again from its beginning, unless it is the only line.
          const next = cut === "limit" || lines === 1 ? line + lines : line + lines - 1
          const what = cut === "limit" ? "the file goes on" : "cut off here"
          return success(`${body}\n[${what}; it has ${size} bytes: read on with line ${next}]`)
        }
      )
  })

export const write = (workspace: Workspace): Tool =>
  define({
    name: "write",
    description: "Writes a whole text file: makes it, with the folders above it, or replaces what it holds.",
    input: Schema.Struct({ path: PATH, text: described(Schema.String, "All that the file shall hold.") }),
    readOnly: false,
    parallel: false,
    run: ({ path, text }) =>
      Effect.map(workspace.write(path, text), ({ created }) =>
        success(`${created ? "made" : "replaced"} ${shown(path)}: ${Buffer.byteLength(text)} bytes`)
      )
  })

const decode = (bytes: Buffer): string | undefined =>
  attempt(() => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes))

const occurrences = (text: string, part: string): ReadonlyArray<number> => {
  const found: Array<number> = []
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length)) found.push(at)
  return found
}

const lineOf = (text: string, at: number) => text.slice(0, at).split("\n").length

/** Replaces text in a file's content, or returns why that is not possible. Pure. */
export const applied = (
  text: string,
  { old, new: fresh, all }: { readonly old: string; readonly new: string; readonly all?: boolean }
): { readonly text: string; readonly count: number } | { readonly refusal: string } => {
  if (old === fresh) return { refusal: "old and new are the same: there is nothing to change" }
  const places = occurrences(text, old)
  if (places.length === 0) {
    const carriage = text.includes("\r\n") && !old.includes("\r") && text.replaceAll("\r\n", "\n").includes(old)
    return {
      refusal: carriage
        ? "old is not there as it stands: the file's lines end in CR LF, so write \\r\\n in old and new"
        : "old is not in the file: read it, and copy the text exactly, with its spaces and line ends and without line numbers"
    }
  }
  if (places.length > 1 && all !== true) {
    const lines = places.slice(0, 10).map((at) => lineOf(text, at))
    const where = `${lines.join(", ")}${places.length > lines.length ? " …" : ""}`
    return {
      refusal: `old is in the file ${places.length} times (lines ${where}): give more of the text around the one you mean, or set all`
    }
  }
  return { text: text.split(old).join(fresh), count: places.length }
}

export const edit = (workspace: Workspace): Tool =>
  define({
    name: "edit",
    description:
      "Replaces one piece of text in a file by another. The old text must be in the file exactly once, unless all is true.",
    input: Schema.Struct({
      path: PATH,
      old: described(Schema.NonEmptyString, "The text to replace, exactly as it is in the file."),
      new: described(Schema.String, "What takes its place."),
      all: optional(Schema.Boolean, "Replace it wherever it is. Default: false.")
    }),
    readOnly: false,
    parallel: false,
    run: Effect.fnUntraced(function* ({ path, ...change }) {
      const { bytes, version } = yield* workspace.whole(path, MAX_EDIT)
      const text = decode(bytes)
      if (text === undefined || text.includes("\0"))
        return failure(`${shown(path)} is no UTF-8 text: change it with a program, by the shell tool`)
      const result = applied(text, change)
      if ("refusal" in result) return failure(`${shown(path)}: ${result.refusal}`)
      yield* workspace.write(path, result.text, { version })
      return success(`changed ${shown(path)} in ${result.count} ${result.count === 1 ? "place" : "places"}`)
    })
  })

const MARKS: { readonly [kind in Entry["kind"]]: string } = { file: "", folder: "/", link: "@", other: "=" }

export const list = (workspace: Workspace): Tool =>
  define({
    name: "list",
    description: `Lists a folder: / after a name marks a folder, @ a link, = a pipe, socket or device. At most ${MAX_ENTRIES} entries; the insides of .git and node_modules are left out.`,
    input: Schema.Struct({
      path: optional(Text, "Relative to the workspace, or absolute and in it. Default: the workspace."),
      depth: optional(whole(1, 20), "How many folders deep. Default: 1.")
    }),
    readOnly: true,
    parallel: true,
    run: ({ path, depth }) =>
      Effect.map(workspace.list(path ?? "", { maxEntries: MAX_ENTRIES, depth, skip: skipped }), ({ entries, more }) =>
        success(
          entries.length === 0
            ? "[the folder is empty]"
            : entries.map((entry) => shown(entry.path) + MARKS[entry.kind]).join("\n") +
                (more ? "\n[there is more: list a folder further down, or a lesser depth]" : "")
        )
      )
  })
