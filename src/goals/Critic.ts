/**
 * Critic: builds the prompt for an agent that reviews a result, reads its answer, and decides what follows. The goal is
 * met, tasks are added, or the plan is revised. Pure.
 */
import { Effect, Result, Schema, Struct } from "effect"
import { type Evidence, Finding, lacksCommit, MAX_TITLE, type Task } from "../domain/GoalMessages.ts"
import { jsonIn } from "./AnswerJson.ts"
import { type GoalState, knownTo, mendable } from "./GoalState.ts"
import * as MessageFrame from "../domain/MessageFrame.ts"
import { cut } from "./Ellipsis.ts"

const MAX_MESSAGE = 4_000
const MAX_TASK = 100
/** Maximum size of findings, or of the tasks made from them, as JSON, in bytes. */
const MAX_BYTES = 300_000
/** Maximum length of all evidence in a prompt, in characters. */
const MAX_EVIDENCE = 120_000
const MAX_ONE = 4_000

const FORM = `Answer with one JSON object, in a fenced block:

\`\`\`json
{ "findings": [ {
  "severity": "error",        // error: the goal is not met. warning, info: worth knowing
  "task": "parser",           // the id of the task, if the finding is about one
  "message": "…",             // what is wrong
  "fix": "…",                 // how to fix it
  "needsReplan": false        // true: the plan itself is wrong
} ] }
\`\`\`

If there is no error, the goal is met: give an empty list then. Write plain JSON, without the comments.`

export interface Shown {
  readonly id: string
  readonly evidence: Evidence | undefined
}

const evidenceText = (evidence: Evidence): string => {
  const { branch, commits, output, reported } = evidence
  return cut(
    [
      ...(branch === null ? [] : [`branch ${MessageFrame.line(branch)}`]),
      ...(lacksCommit(evidence) ? ["no commit"] : []),
      ...(commits.length === 0 ? [] : [`commits:\n${MessageFrame.quoted(commits.join("\n"))}`]),
      ...(reported.length === 0 ? [] : [`reported:\n${MessageFrame.quoted(reported.join("\n"))}`]),
      ...(output === "" ? [] : [`answer:\n${MessageFrame.quoted(output)}`])
    ].join("\n"),
    MAX_ONE
  )
}

/** The results of the tasks as text, up to `MAX_EVIDENCE` characters. The text says how many tasks did not fit. */
const results = (goal: GoalState, shown: ReadonlyMap<string, Evidence>): string => {
  let text = ""
  let left = 0
  for (const { error, state, task } of goal.plan.nodes) {
    const evidence = shown.get(task.id)
    const part = `\n## ${task.id}: ${MessageFrame.line(task.title)} (${state})\n${error === null ? "" : `${MessageFrame.quoted(cut(error, MAX_ONE))}\n`}${evidence === undefined ? "" : evidenceText(evidence)}\n`
    if (text.length + part.length > MAX_EVIDENCE) left++
    else text += part
  }
  return left === 0 ? text : `${text}\n… and ${left} more tasks`
}

export const review = (goal: GoalState, shown: ReadonlyMap<string, Evidence>, gate: ReadonlyArray<Finding>): string =>
  [
    `Review whether this goal is met:\n\n${MessageFrame.quoted(goal.goal)}`,
    "What the agents say is a claim: look at the work itself before you believe it. Change nothing.",
    `What was checked already:\n${gate.map(({ message, severity }) => `- ${severity}: ${MessageFrame.line(message)}`).join("\n") || "- nothing"}`,
    `The tasks, with what their agents show for them:\n${results(goal, shown)}`,
    FORM
  ].join("\n\n")

/** Schema of a critic's finding. The critic cannot mark a finding as one that only the user can fix. */
const Said = Schema.Struct(Struct.omit(Finding.fields, ["forPerson"]))
const decode = Schema.decodeUnknownResult(Schema.Struct({ findings: Schema.Array(Said) }))

export const read = (output: string): Effect.Effect<ReadonlyArray<Finding>, { readonly message: string }> => {
  const found = jsonIn(output)
  if (Result.isFailure(found)) return Effect.fail({ message: found.failure })
  const decoded = decode(found.success, { errors: "all" })
  return Result.isFailure(decoded)
    ? Effect.fail({ message: cut(String(decoded.failure), MAX_MESSAGE) })
    : Effect.succeed(decoded.success.findings)
}

/** The first entries that fit into one rune, in which each entry appears twice. At least one entry is returned. */
const fitting = <A>(all: ReadonlyArray<A>): ReadonlyArray<A> => {
  let bytes = 0
  const end = all.findIndex((one, index) => (bytes += Buffer.byteLength(JSON.stringify(one))) > MAX_BYTES && index > 0)
  return end === -1 ? all : all.slice(0, end)
}

/** Shortens the findings to fit into one rune. If they do not all fit, errors are kept first. */
export const bounded = (findings: ReadonlyArray<Finding>): ReadonlyArray<Finding> => {
  const short = findings.map((finding) => ({
    ...finding,
    message: cut(finding.message, MAX_MESSAGE),
    ...(finding.task === undefined ? {} : { task: cut(finding.task, MAX_TASK) }),
    ...(finding.fix === undefined ? {} : { fix: cut(finding.fix, MAX_MESSAGE) })
  }))
  const kept = fitting(short)
  if (kept.length === short.length) return kept
  const worst = fitting(short.toSorted((a, b) => Number(b.severity === "error") - Number(a.severity === "error")))
  return [...worst, { severity: "info", message: `and ${short.length - worst.length} more findings` }]
}

export type Verdict =
  | { readonly _tag: "Passed"; readonly summary: string }
  | { readonly _tag: "Issues"; readonly tasks: ReadonlyArray<Task> }
  | { readonly _tag: "Replan"; readonly reason: string }

const titleOf = ({ fix, message }: Finding): string =>
  cut((fix ?? message).replaceAll(/\s+/g, " ").trim() || "Fix it", MAX_TITLE)

/**
 * The follow-up of a completed task goes to the agent that did it, if that agent is still a worker. The follow-up of a
 * failed task can go to any agent.
 */
const followUp = (goal: GoalState, id: string, finding: Finding, workers: ReadonlyArray<string>): Task => {
  const node = finding.task === undefined ? undefined : goal.plan.find(finding.task)
  const had = node?.state === "completed" && node.agent !== null && workers.includes(node.agent) ? node.agent : null
  const about =
    node === undefined
      ? ""
      : `${`It is about the task ${node.task.id}: ${node.task.title}\n\n${cut(node.task.description, MAX_ONE)}`.trim()}\n\n`
  return {
    id,
    title: titleOf(finding),
    description: `The review found: ${finding.message}\n\n${about}${finding.fix ?? ""}`.trim(),
    dependsOn: [],
    priority: node?.task.priority ?? 0,
    owner: had ?? node?.task.owner ?? null,
    needs: node?.task.needs ?? [],
    timeout: node?.task.timeout ?? null,
    ...(node?.task.commit === true ? { commit: true } : {})
  }
}

export const verdict = (
  goal: GoalState,
  findings: ReadonlyArray<Finding>,
  round: number,
  workers: ReadonlyArray<string>
): Verdict => {
  const errors = findings.filter(({ severity }) => severity === "error")
  if (errors.length === 0) {
    const checked = findings.filter(({ message, severity }) => severity === "info" && message.startsWith("`")).length
    const warnings = findings.filter(({ severity }) => severity === "warning").length
    return {
      _tag: "Passed",
      summary: `${goal.plan.counts.completed === 1 ? "1 task is" : `${goal.plan.counts.completed} tasks are`} done; ${checked} checks succeeded${warnings === 0 ? "" : `; ${warnings} warnings`}`
    }
  }
  const replan = errors.find(({ needsReplan }) => needsReplan === true)
  if (replan !== undefined && goal.options?.planner != null) return { _tag: "Replan", reason: replan.message }
  const known = knownTo(goal)
  const tasks = mendable(findings).map((finding, index) => {
    let id = `fix-${round}-${index + 1}`
    while (known.has(id)) id = `${id}x`
    return followUp(goal, id, finding, workers)
  })
  // findings that do not fit are found again by the next review
  return { _tag: "Issues", tasks: fitting(tasks) }
}
