/**
 * CallWords: a tool call in a few words, for rows and sentences: what it does, to what. Pure.
 *
 * Guarantees: bounded, one line; an input that was cut in its midst is read as far as it goes. Who decides about a call
 * is shown all of it elsewhere.
 */

/** Fields that tell most of a call, what tells more first. */
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
].map((field) => new RegExp(`"${field}":\\s*"((?:[^"\\\\]|\\\\.)*)`, "u"))
const MOST = 80

const unquoted = (text: string): string => {
  try {
    return JSON.parse(`"${text}"`) as string
  } catch {
    return text
  }
}

/** A text as one line of at most so many characters. */
export const oneLine = (text: string, most = MOST): string => {
  const line = text
    .slice(0, 4 * most)
    .replaceAll(/\s+/g, " ")
    .trim()
  return line.length <= most && text.length <= 4 * most ? line : `${line.slice(0, most).toWellFormed()}…`
}

/** `input`: JSON, perhaps cut. The part of it that tells most; empty: there is none. */
export const telling = (input: string, most = MOST): string => {
  for (const pattern of TELLING) {
    const [, text] = pattern.exec(input) ?? []
    if (text !== undefined && text !== "") return oneLine(unquoted(text), most)
  }
  return ""
}

/** `shell: npm test`; an input without such a part is shown as it is, cut. */
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

/** The work that an agent does by the call, in the words of a row: `runs npm test`, `reads src/cart.ts`. */
export const doing = (tool: string, input: string): string => {
  const part = telling(input)
  const does = DOES.find(([name]) => name.test(tool))?.[1]
  if (does === undefined) return `uses ${oneLine(named(tool, input), 2 * MOST)}`
  return part === "" ? `uses ${tool}` : `${does} ${part}`
}
