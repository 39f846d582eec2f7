/**
 * CallSubject: a tool call of any backend in the terms of rules: a line for a shell, files, an address, or a tool. Pure.
 *
 * Guarantees: a call is a shell line only for tools that are known to run one. What a call says besides, such as
 * another folder or more permissions, and that is not known here, makes it a call that no rule allows. A call of which
 * only a title is known, or that writes into a shell that stays open, has no rule that allows it either.
 */
import { resolve } from "node:path"
import type { CallSubject } from "../../approvals/Decision.ts"
import { leftIn, quoted } from "../../approvals/Parts.ts"
import type { Folders } from "../../approvals/Reading.ts"
import { FETCHERS, READERS, SEARCHERS, SHELLS, WRITERS } from "../../approvals/ToolNames.ts"

export interface ReportedCall {
  readonly tool: string
  readonly arguments: unknown
  /** True if the backend knows that the call has no side effects. */
  readonly readOnly: boolean
  /** Where earlier calls may have left the shell, relative to the start. Absent if the shell keeps no folder. */
  readonly stood?: { readonly folders: Folders }
}

type Fields = { readonly [name: string]: unknown }

const names = (text: string): ReadonlySet<string> => new Set(text.split(" "))

/** Fields of a shell's call that change nothing of what runs. */
const SIDE = names(
  "command cmd args commands description title timeout timeout_ms run_in_background is_background cwd workdir dir_path directory"
)

const PATHS = ["file_path", "filePath", "filepath", "notebook_path", "absolute_path", "path"]

/** Tools that go elsewhere, and input to a shell that stays open. */
const MOVERS = names("EnterWorktree ExitWorktree write_bash write_stdin send_input")

/** Names that are a kind of call in ACP, not a tool's name, and tools whose effect depends on earlier calls. */
const UNNAMED = names(
  "edit delete move search execute think fetch switch_mode other read write_stdin send_input KillShell request_permissions"
)

const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {}

const texts = (values: ReadonlyArray<unknown>): ReadonlyArray<string> =>
  values.filter((value): value is string => typeof value === "string" && value !== "")

const list = ({ paths }: Fields): ReadonlyArray<unknown> => (Array.isArray(paths) ? paths : [])

const folderOf = (fields: Fields, root: string): Folders | "unsaid" => {
  const { cwd, dir_path: dirPath, directory, workdir } = fields
  const [folder] = texts([cwd, workdir, dirPath, directory])
  if (folder === undefined) return "unsaid"
  if (folder === "." || folder === root) return [""]
  if (folder.startsWith(`${root}/`)) return [folder.slice(root.length + 1)]
  return folder.startsWith("/") || folder.split("/").includes("..") ? undefined : [folder]
}

/** The line that a call runs; undefined if the call does not say it. */
const lineOf = ({ args, cmd, command }: Fields): string | undefined => {
  const given = command ?? cmd
  const words = Array.isArray(given) ? given : Array.isArray(args) && args.length > 0 ? [given, ...args] : undefined
  if (words === undefined) return typeof given === "string" && given !== "" ? given : undefined
  return words.every((word) => typeof word === "string") ? words.map(quoted).join(" ") : undefined
}

const doubtOf = (fields: Fields): string | undefined => {
  const { command, commands } = fields
  if (Array.isArray(commands) && !(commands.length === 1 && commands[0] === command))
    return "the call lists several commands"
  const other = Object.entries(fields).find(
    ([name, value]) => !SIDE.has(name) && value !== null && value !== undefined && value !== false
  )
  return other === undefined ? undefined : `the call sets ${other[0]}, which no rule allows`
}

/** The files that a call of Codex changes; undefined if it asks for more than that. */
const changed = ({ changes, grantRoot }: Fields): ReadonlyArray<string> | undefined => {
  if (grantRoot !== undefined || !Array.isArray(changes)) return undefined
  const paths = changes.flatMap((change) => {
    const { kind, path } = fieldsOf(change)
    const { move_path: moved } = fieldsOf(kind)
    return texts([path, moved])
  })
  return paths.length < changes.length ? undefined : paths
}

/**
 * Where the shell of a program that keeps its folder may stand after a call, whether or not the call failed. `folders`:
 * where it may have stood before.
 */
export const movedBy = ({ arguments: given, tool }: ReportedCall, root: string, folders: Folders): Folders => {
  if (MOVERS.has(tool)) return undefined
  if (!SHELLS.has(tool) || folders === undefined) return folders
  const fields = fieldsOf(given)
  const text = lineOf(fields) ?? texts([fields["title"]])[0]
  const said = folderOf(fields, root)
  const from = said === "unsaid" ? folders : said && [...new Set([...folders, ...said])]
  const left = text === undefined ? folders : leftIn(text, from, root)
  return left?.length === folders.length ? folders : left
}

/**
 * The call in the terms of rules. `root`: absolute path of the agent's work tree; `start`: of the folder in which its
 * program was started.
 */
export const subjectOf = (
  { arguments: given, readOnly, stood, tool }: ReportedCall,
  root: string,
  start = root
): CallSubject => {
  const fields = fieldsOf(given)
  if (SHELLS.has(tool)) {
    const [text, [title]] = [lineOf(fields), texts([fields["title"]])]
    const isHere = stood === undefined || stood.folders?.join("/") === ""
    const kept = !isHere && start === root ? stood.folders : undefined
    const said = folderOf(isHere ? { cwd: start, ...fields } : fields, root)
    const folders = said === "unsaid" ? kept : said
    if (text !== undefined) return { _tag: "Shell", tool, text, folders, doubt: doubtOf(fields), free: readOnly }
    const doubt = "the agent tells only a title of the call, which may not be all that runs"
    if (title !== undefined) return { _tag: "Shell", tool, text: title, folders, doubt, free: readOnly }
  }
  const named =
    tool === "apply_patch" ? changed(fields) : texts([...PATHS.map((name) => fields[name]), ...list(fields)])
  const isReader = SEARCHERS.has(tool) || READERS.has(tool)
  // without a path, it reads what it finds
  const paths = (named === undefined || named.length === 0) && isReader && readOnly ? ["."] : named
  if (paths !== undefined && paths.length > 0) {
    const { folders = [""] } = stood ?? {}
    const each = paths.flatMap((path) => folders.map((folder) => resolve(start, folder, path)))
    // from a folder that is not known, it may be any file
    const isAny = stood !== undefined && stood.folders === undefined && paths.some((path) => !path.startsWith("/"))
    const below = [...new Set([...each, ...(isAny ? [root] : [])])]
    if (WRITERS.has(tool)) return { _tag: "Files", tool, access: "writes", paths: below, free: readOnly }
    if (isReader) return { _tag: "Files", tool, access: "reads", paths: below, free: readOnly }
  }
  const [url] = texts([fields["url"]])
  if (FETCHERS.has(tool) && url !== undefined) return { _tag: "Fetch", tool, url }
  return { _tag: "Tool", tool, input: given, readOnly, named: tool !== "" && !UNNAMED.has(tool) }
}
