/**
 * CallSummary: describes a tool call in a few words, such as `runs npm test`, for board rows and messages. Pure.
 *
 * Guarantees: the description is one line of limited length. A truncated input is read up to the point of truncation.
 * The view in which the user approves a call does not use this description: it shows the whole call.
 */
import { attempt } from "../config/Attempt.ts"

/** Names of the input fields that describe a call best, the most informative first. */
const TELLING = [
  "command",
  "cmd",
  "file_path",
  "filePath",
  "path",
  "notebook_path",
  "pattern",
  "query",
  "url",
  "question",
  "description",
  "title",
  "prompt",
  "text",
  "to",
  "name"
]
const MOST = 80

const unquoted = (text: string): string => attempt(() => JSON.parse(`"${text}"`) as string) ?? text

/** Returns the text as one line of at most `most` characters. A longer text is truncated and ends with "…". */
export const oneLine = (text: string, most = MOST): string => {
  const line = text
    .slice(0, 4 * most)
    .replaceAll(/\s+/g, " ")
    .trim()
  return line.length <= most && text.length <= 4 * most ? line : `${line.slice(0, most).toWellFormed()}…`
}

/** Matches a JSON string, which may be truncated, or a JSON punctuation character. */
const TOKEN = /"((?:[^"\\]|\\.)*)"?|[{}[\]:,]/gu
/** Field in which ACP (Agent Client Protocol) sends the whole input. */
const WRAPPED = "rawInput"

/**
 * Returns the top-level string fields of the input. If a field occurs twice, the last value counts, as in the program
 * that runs the call. Nested fields are ignored.
 */
const textsIn = (input: string): ReadonlyMap<string, string> => {
  const found = new Map<string, string>()
  const path: Array<string> = []
  let [last, key]: [string, string | undefined] = ["", undefined]
  for (const [token, text] of input.matchAll(TOKEN)) {
    if (token === "{" || token === "[") path.push(key ?? "")
    if (token === "}" || token === "]") path.pop()
    if (text === undefined) key = token === ":" ? last : undefined
    else if (key === undefined) last = text
    else if (path.length === 1 || (path.length === 2 && path[1] === WRAPPED)) found.set(key, unquoted(text))
  }
  return found
}

/** Returns the value of the most informative input field; empty if there is none. `input`: JSON, possibly truncated. */
export const telling = (input: string, most = MOST): string => {
  const texts = textsIn(input)
  const field = TELLING.find((name) => (texts.get(name) ?? "") !== "")
  return field === undefined ? "" : oneLine(texts.get(field)!, most)
}

/** Returns tool and input, such as `shell: npm test`. Without an informative field, the input is truncated JSON. */
export const named = (tool: string, input: string, most = MOST): string => {
  const part = telling(input, most) || (/^(\{\}|null|)$/.test(input) ? "" : oneLine(input, most))
  return part === "" ? tool : `${tool}: ${part}`
}

const DOES: ReadonlyArray<readonly [tool: RegExp, does: string]> = [
  [/^(bash|shell|execute|exec|run|run_command|command|terminal(\/create)?)$/i, "runs"],
  [/^(read|read_file|view|cat|fs\/read_text_file|notebookread)$/i, "reads"],
  [/^(edit|multiedit|apply_patch|str_replace\w*|notebookedit)$/i, "edits"],
  [/^(write|write_file|create_file|fs\/write_text_file)$/i, "writes"],
  [/^(grep|glob|search|find|ls|list|list_files)$/i, "searches"],
  [/^(web_?fetch|fetch)$/i, "fetches"],
  [/^web_?search$/i, "searches the web for"]
]

/** Describes a call as an activity for a board row: `runs npm test`, `reads src/cart.ts`. */
export const doing = (tool: string, input: string): string => {
  const part = telling(input)
  const does = DOES.find(([name]) => name.test(tool))?.[1]
  if (does === undefined) return `uses ${oneLine(named(tool, input), 2 * MOST)}`
  return part === "" ? `uses ${tool}` : `${does} ${part}`
}
