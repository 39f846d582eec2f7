/**
 * ToolNames: the tools of the CLIs whose calls are commands, files or addresses. Pure.
 *
 * Rules for such calls name the command, the file or the address, not the tool.
 */

const names = (text: string): ReadonlySet<string> => new Set(text.split(" "))

/** Tools that run a shell line: of Claude Code, Codex, the model agent, Gemini and Qwen, and ACP's kind of call. */
export const SHELLS = names("Bash shell exec_command run_shell_command execute bash terminal/create")

/** Tools that write files, those that read one, and those that read what they find. */
export const WRITERS = names(
  "Edit Write MultiEdit NotebookEdit write edit write_file replace fs/write_text_file apply_patch"
)
export const READERS = names("Read NotebookRead read read_file read_many_files fs/read_text_file")
export const SEARCHERS = names("Grep Glob LS search list glob grep grep_search search_file_content list_directory")

/** Tools that fetch an address. */
export const FETCHERS = names("WebFetch web_fetch fetch")
