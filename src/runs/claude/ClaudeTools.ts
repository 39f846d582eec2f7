/**
 * ClaudeTools: facts about Claude Code's own tools, and about its messages for tool calls. Pure.
 */
import type { Question } from "../Question.ts"
import type { ToolStatus } from "../Backend.ts"
import { type ClaudeRecord, inner, list, text } from "./ClaudeRecord.ts"

/** Tools that have no side effects and send nothing to other machines. */
const READ_ONLY: ReadonlySet<string> = new Set([
  "Read",
  "Glob",
  "Grep",
  "LS",
  "NotebookRead",
  "BashOutput",
  "TaskOutput",
  "TaskGet",
  "TaskList",
  "TodoRead",
  "TodoWrite",
  "ToolSearch",
  "ListMcpResourcesTool",
  "ReadMcpResourceTool"
])

export const isReadOnly = (tool: string): boolean => READ_ONLY.has(tool)

/** Maximum length of a call's output that is passed on, characters. */
const MAX_OUTPUT = 256 * 1024

/** The content of a result, which is a string or a list of blocks. */
export const outputOf = (block: ClaudeRecord): string => {
  const content = block["content"]
  const whole =
    typeof content === "string"
      ? content
      : list(block, "content")
          .map((one) => (one["type"] === "text" ? text(one, "text") : `[${text(one, "type")}]`))
          .join("\n")
  return whole.length <= MAX_OUTPUT ? whole : `${whole.slice(0, MAX_OUTPUT)} …`
}

/**
 * Status of a call's result. `refused`: true if agentd's answer denied the call. `meta`: more details than the block
 * contains, if available.
 */
export const statusOf = (
  block: ClaudeRecord,
  meta: ClaudeRecord | undefined,
  { interrupted, refused }: { readonly refused: boolean; readonly interrupted: boolean }
): ToolStatus => {
  if (block["is_error"] !== true) return "success"
  if (refused) return "denied"
  const kind = text(meta ?? {}, "non_execution_kind")
  if (kind === "user-rejected" || interrupted) return "cancelled"
  const decision = text(inner(meta ?? {}, "permission_decision"), "decision")
  if (kind === "permission-rule" || decision === "reject") return "denied"
  return /^(Exit code \d+\s+)?Command timed out/.test(outputOf(block)) ? "timeout" : "error"
}

/** Name of the tool that asks the user to choose. */
const ASKS = "AskUserQuestion"
/** Maximum length in characters of a question and of an option, and maximum number of questions and of options. */
const MAX_QUESTION = 1_000
const MAX_OPTION = 300
const MAX_QUESTIONS = 8

/** The questions of a call; empty for any tool other than `ASKS`. */
export const questionsOf = (tool: string, input: ClaudeRecord): ReadonlyArray<Question> =>
  tool === ASKS
    ? list(input, "questions")
        .slice(0, MAX_QUESTIONS)
        .map((asked) => ({
          question: text(asked, "question").slice(0, MAX_QUESTION),
          options: list(asked, "options")
            .slice(0, MAX_QUESTIONS)
            .map((option) => ({
              label: text(option, "label").slice(0, MAX_OPTION),
              description: text(option, "description").slice(0, MAX_OPTION)
            })),
          several: asked["multiSelect"] === true
        }))
    : []

export const answered = (input: ClaudeRecord, answers: ReadonlyArray<string> = []): ClaudeRecord => {
  const questions = list(input, "questions")
  if (answers.length === 0) return input
  return answers.length < questions.length
    ? { ...input, response: answers.join("\n") }
    : { ...input, answers: Object.fromEntries(questions.map((one, at) => [text(one, "question"), answers[at]])) }
}

/** Name of the tool that asks for approval of a plan. */
export const PLANS = "ExitPlanMode"

export const isPlanFile = (path: unknown): boolean => typeof path === "string" && /\/plans\/[^/]{1,200}\.md$/.test(path)

export interface Plan {
  readonly path: string
  readonly text: string
}

/** The newest plan after a tool call. In plan mode, the CLI writes the plan to a separate file. */
export const planAfter = (plan: Plan | undefined, tool: string, given: unknown): Plan | undefined => {
  if (tool !== "Write" && tool !== "Edit") return plan
  const input = inner({ given }, "given")
  const path = text(input, "file_path")
  if (!isPlanFile(path)) return plan
  if (tool === "Write") return { path, text: text(input, "content") }
  const old = text(input, "old_string")
  return plan?.path === path && old !== ""
    ? { path, text: plan.text.replace(old, () => text(input, "new_string")) }
    : plan
}

/** The CLI's reason for requesting approval; empty if it gives none. */
export const reasonOf = (request: ClaudeRecord): string => {
  const input = inner(request, "input")
  switch (text(request, "tool_name")) {
    case ASKS: {
      const asked = list(input, "questions").map((one) => text(one, "question"))
      return `it asks: ${asked.join(" ")}`
    }
    case PLANS:
      return "its plan waits for approval"
    default: {
      const [reason, path] = [text(request, "decision_reason"), text(request, "blocked_path")]
      return reason !== "" ? reason : path === "" ? "" : `it would touch ${path}`
    }
  }
}
