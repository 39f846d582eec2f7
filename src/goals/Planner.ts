/**
 * Planner: builds the prompt for an agent that makes a plan, and reads its answer: a new plan, or the revision of a
 * reviewed plan. Pure, except for the checks of a plan.
 */
import { Effect, Result } from "effect"
import type { Member } from "../domain/AgentPort.ts"
import { MAX_DESCRIPTION, MAX_NEEDS, type Task } from "../domain/GoalMessages.ts"
import { jsonIn } from "./AnswerJson.ts"
import { type GoalState, usedBy } from "./GoalState.ts"
import { cut } from "./Ellipsis.ts"
import * as MessageFrame from "../domain/MessageFrame.ts"
import * as PlanFile from "./PlanFile.ts"

/** Recommended maximum number of tasks, so that the user can read the plan. */
const ADVICE = 50
const MAX_LISTED = 300

const FORM = `Answer with one JSON object, in a fenced block:

\`\`\`json
{ "tasks": [ {
  "id": "parser",                      // letters, digits, . _ -; used once
  "title": "Write the parser",         // one line
  "description": "…",                  // all that its agent must know, and when the task is done; at most ${MAX_DESCRIPTION} characters
  "dependsOn": ["grammar"],            // ids of tasks that must be completed first
  "priority": 0,                       // a whole number; of the ready tasks, the highest is assigned first
  "owner": "ada",                      // only if it must be this agent
  "needs": ["rust"],                   // abilities that its agent must have; at most ${MAX_NEEDS}
  "commit": true                       // if its work must be committed: without a commit the task is retried
} ] }
\`\`\`

Only id and title are required. No cycles. Write plain JSON, without the comments.`

const memberLine = ({ agent, can, role }: Member): string =>
  `- ${agent}${role === null ? "" : `: ${role}`}${can.length === 0 ? "" : ` (can: ${can.join(", ")})`}`

const team = (workers: ReadonlyArray<Member>): string =>
  workers.length === 0 ? "There are no agents yet." : `The agents:\n${workers.map(memberLine).join("\n")}`

const standing = (goal: GoalState): string => {
  const { nodes } = goal.plan
  const lines = nodes.slice(0, MAX_LISTED).map(({ error, state, task }) => {
    const why = error === null ? "" : ` (${MessageFrame.line(cut(error, 200))})`
    return `- ${task.id}: ${state}${why}: ${MessageFrame.line(task.title)}`
  })
  return `${lines.join("\n")}${nodes.length > MAX_LISTED ? `\n… and ${nodes.length - MAX_LISTED} more` : ""}`
}

export const decompose = (goal: GoalState, workers: ReadonlyArray<Member>): string => {
  const used = [...usedBy(goal).keys()]
  const sections = [
    `Make a plan for this goal:\n\n${MessageFrame.quoted(goal.goal)}`,
    `Divide it into tasks that one agent can do alone, in its own checkout. Let independent tasks run in parallel. Use at most ${ADVICE} tasks if possible.`,
    team(workers),
    ...(goal.rejected === null ? [] : [`The previous plan was rejected:\n${MessageFrame.quoted(goal.rejected)}`]),
    ...(used.length === 0
      ? []
      : [`These ids were already used, choose others:\n${used.slice(0, MAX_LISTED).join(", ")}`]),
    FORM
  ]
  return sections.join("\n\n")
}

export const revise = (goal: GoalState, workers: ReadonlyArray<Member>): string =>
  [
    `The plan for this goal was executed, and the review says that the plan must change:\n\n${MessageFrame.quoted(goal.goal)}`,
    `The review:\n${goal.findings.map(({ message, severity, task }) => `- ${severity}${task === undefined ? "" : ` (${task})`}: ${MessageFrame.line(message)}`).join("\n") || MessageFrame.quoted(goal.revise ?? "")}`,
    `The tasks so far; completed tasks stay:\n${standing(goal)}`,
    team(workers),
    "Return only the tasks to add, with new ids. They may depend on completed ones.",
    FORM
  ].join("\n\n")

export const read = (
  output: string,
  door: PlanFile.Door
): Effect.Effect<ReadonlyArray<Task>, { readonly message: string }> => {
  const found = jsonIn(output)
  return Result.isFailure(found) ? Effect.fail({ message: found.failure }) : PlanFile.check(found.success, door)
}
