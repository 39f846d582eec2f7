/**
 * SearchTool: searches the workspace's text files with a regular expression.
 *
 * Guarantees: a search ends within its time limit, whatever the pattern is (see Grep), and then returns the lines that
 * were found by then. Each file is opened through Workspace, so that no link leads outside. Binary files, huge files,
 * .git and node_modules are skipped. The daemon is not blocked during the search.
 */
import { Duration, Effect, Option, Schema, type Scope } from "effect"
import { described, optional, Text, Word } from "../config/Fields.ts"
import { shown, type WorkspaceError } from "../runs/sandbox/PathContainment.ts"
import { skipped } from "./FileTools.ts"
import * as Grep from "./Grep.ts"
import { define, failure, success, type Tool, type ToolOutcome } from "./Tool.ts"
import type { Workspace } from "../runs/sandbox/Workspace.ts"

const MAX_FILES = 20_000
const MAX_FILE_BYTES = 2_097_152
const MAX_RESULTS = 300
const TIME_LIMIT = Duration.seconds(30)
const AT_ONCE = 4

const Input = Schema.Struct({
  pattern: described(
    Word.check(Schema.isMaxLength(1_000)),
    "A JavaScript regular expression, matched against each line."
  ),
  path: optional(Text, "A folder or file to search in. Default: the workspace."),
  glob: optional(Word.check(Schema.isMaxLength(200)), "Which files, by their path from the workspace: **/*.ts"),
  ignoreCase: optional(Schema.Boolean, "Default: false.")
})

/** Lists the files to search: all files in a folder and its subfolders, or one file. */
const filesOf = (workspace: Workspace, path: string) =>
  workspace.list(path, { maxEntries: MAX_FILES, depth: 64, skip: skipped }).pipe(
    Effect.map(({ entries, more }) => ({
      more,
      paths: entries.flatMap((entry) => (entry.kind === "file" ? [entry.path] : []))
    })),
    Effect.catchIf(
      (error) => error._tag === "FileFailed" && error.reason === "NotAFolder",
      () => Effect.succeed({ more: false, paths: [path] })
    )
  )

interface Found {
  readonly path: string
  readonly hits: ReadonlyArray<Grep.Hit>
}

const search = Effect.fnUntraced(function* (
  workspace: Workspace,
  input: typeof Input.Type
): Effect.fn.Return<ToolOutcome, WorkspaceError | Grep.GrepFailed, Scope.Scope> {
  const grep = yield* Grep.make(input.pattern, input.ignoreCase === true)
  const { more, paths } = yield* filesOf(workspace, input.path ?? "")
  const found: Array<Found> = []
  let count = 0
  const one = Effect.fnUntraced(function* (path: string) {
    if (count >= MAX_RESULTS) return
    // skip a file that is gone, cannot be read or is too large
    const file = yield* Effect.option(workspace.whole(path, MAX_FILE_BYTES))
    if (Option.isNone(file) || file.value.bytes.subarray(0, 8_000).includes(0)) return
    const hits = yield* grep.hits(file.value.bytes.toString("utf8"))
    if (hits.length === 0) return
    count += hits.length
    found.push({ path, hits })
  })
  const all = Effect.gen(function* () {
    const chosen = input.glob === undefined ? paths : yield* grep.select(paths, input.glob)
    yield* Effect.forEach(chosen, one, { concurrency: AT_ONCE, discard: true })
  })
  const done = yield* Effect.timeoutOption(all, TIME_LIMIT)
  const lines = found
    .toSorted((one, other) => (one.path < other.path ? -1 : 1))
    .flatMap(({ path, hits }) => hits.map(({ line, text }) => `${shown(path)}:${line}:${text}`))
  const notes = [
    ...(Option.isNone(done)
      ? ["[out of time: not all files were searched; give a path, a glob or a simpler pattern]"]
      : []),
    ...(count >= MAX_RESULTS ? ["[there may be more: give a path, a glob or a narrower pattern]"] : []),
    ...(more ? [`[only the first ${MAX_FILES} entries were searched: give a path]`] : [])
  ]
  const output = [...(lines.length === 0 ? ["[no line matches]"] : lines.slice(0, MAX_RESULTS)), ...notes].join("\n")
  return Option.isNone(done) && lines.length === 0 ? { status: "timeout", output } : success(output)
})

export const make = (workspace: Workspace): Tool =>
  define({
    name: "search",
    description:
      "Finds the lines that match a regular expression in the workspace's text files: path:line:text. Files over 2 MB, binary ones, .git and node_modules are left out.",
    input: Input,
    readOnly: true,
    parallel: true,
    run: (input) =>
      Effect.catchTag(search(workspace, input), "GrepFailed", ({ message }) =>
        Effect.succeed(failure(`the search has failed: ${message}; correct the pattern`))
      )
  })
