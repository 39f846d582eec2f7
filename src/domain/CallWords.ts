/**
 * CallWords: a tool call in a few words, for rows and sentences: the tool, and what it works on. Pure.
 *
 * Guarantees: the result is one line of bounded length. A truncated input is read as far as it goes. A person who
 * decides about a call sees all of it elsewhere.
 */
import { attempt } from "../config/Attempt.ts"

/** Fields that say most about a call, the most informative first. */
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

/** The text as one line, at most `most` characters. */
export const oneLine = (text: string, most = MOST): string => {
  const line = text
    .slice(0, 4 * most)
    .replaceAll(/\s+/g, " ")
    .trim()
  return line.length <= most && text.length <= 4 * most ? line : `${line.slice(0, most).toWellFormed()}…`
}

/** A JSON string, possibly truncated, or a punctuation character. */
const TOKEN = /"((?:[^"\\]|\\.)*)"?|[{}[\]:,]/gu
/** ACP's field that contains the whole input. */
const WRAPPED = "rawInput"

/**
 * Top-level texts of the input by field. If a field occurs twice, the last one counts, as it does for the program that
 * runs the call. Deeper fields are ignored.
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

/** The most informative part of the input; empty: there is none. `input`: JSON, possibly truncated. */
export const telling = (input: string, most = MOST): string => {
  const texts = textsIn(input)
  const field = TELLING.find((name) => (texts.get(name) ?? "") !== "")
  return field === undefined ? "" : oneLine(texts.get(field)!, most)
}

/** `shell: npm test`; an input without an informative part is shown as it is, truncated. */
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

/** The call as an activity, in the words of a row: `runs npm test`, `reads src/cart.ts`. */
export const doing = (tool: string, input: string): string => {
  const part = telling(input)
  const does = DOES.find(([name]) => name.test(tool))?.[1]
  if (does === undefined) return `uses ${oneLine(named(tool, input), 2 * MOST)}`
  return part === "" ? `uses ${tool}` : `${does} ${part}`
}
