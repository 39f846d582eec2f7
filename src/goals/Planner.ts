/**
 * Planner: builds the prompt for an agent that makes a plan, and reads its answer: a new plan, or the revision of a
 * reviewed plan. Pure, except for the checks of a plan.
 */
import { Effect, Result } from "effect"
import type { Member } from "../domain/AgentPort.ts"
import { MAX_DESCRIPTION, MAX_NEEDS, type Task } from "../domain/GoalMessages.ts"
import { jsonIn } from "./Answer.ts"
import { type GoalState, usedBy } from "./GoalState.ts"
import { cut } from "./Excerpt.ts"
import * as Frame from "../domain/Frame.ts"
import * as PlanFile from "./PlanFile.ts"

/** Recommended maximum number of tasks, so that the user can read the plan. */
const ADVICE = 50
/** Maximum number of tasks that a prompt lists. */
const MAX_LISTED = 300

const FORM = `Answer with one JSON object, in a fenced block:

\`\`\`json
{ "tasks": [ {
  "id": "parser",                      // letters, digits, . _ -; used once
  "title": "Write the parser",         // one line
  "description": "…",                  // all that its agent must know, and when it is done; at most ${MAX_DESCRIPTION} characters
  "dependsOn": ["grammar"],            // ids of tasks that must be completed before
  "priority": 0,                       // a whole number; the highest of those that are ready goes first
  "owner": "ada",                      // only where it must be this agent
  "needs": ["rust"],                   // what its agent must be able to do; at most ${MAX_NEEDS}
  "commit": true                       // where its work is to be committed: without a commit it is tried again
} ] }
\`\`\`

Only id and title must be there. No cycles. Write plain JSON, without the comments.`

const memberLine = ({ agent, can, role }: Member): string =>
  `- ${agent}${role === null ? "" : `: ${role}`}${can.length === 0 ? "" : ` (can: ${can.join(", ")})`}`

const team = (workers: ReadonlyArray<Member>): string =>
  workers.length === 0 ? "There are no agents yet." : `The agents:\n${workers.map(memberLine).join("\n")}`

const standing = (goal: GoalState): string => {
  const { nodes } = goal.plan
  const lines = nodes.slice(0, MAX_LISTED).map(({ error, state, task }) => {
    const why = error === null ? "" : ` (${Frame.line(cut(error, 200))})`
    return `- ${task.id}: ${state}${why}: ${Frame.line(task.title)}`
  })
  return `${lines.join("\n")}${nodes.length > MAX_LISTED ? `\n… and ${nodes.length - MAX_LISTED} more` : ""}`
}

export const decompose = (goal: GoalState, workers: ReadonlyArray<Member>): string => {
  const used = [...usedBy(goal).keys()]
  const sections = [
    `Make a plan for this goal:\n\n${Frame.quoted(goal.goal)}`,
    `Break it into tasks that one agent each can do by itself, in a checkout of its own. Let tasks that do not need each other run side by side. At most ${ADVICE} tasks is a good size.`,
    team(workers),
    ...(goal.rejected === null ? [] : [`The plan before was sent back:\n${Frame.quoted(goal.rejected)}`]),
    ...(used.length === 0 ? [] : [`These ids are used up, choose others:\n${used.slice(0, MAX_LISTED).join(", ")}`]),
    FORM
  ]
  return sections.join("\n\n")
}

export const revise = (goal: GoalState, workers: ReadonlyArray<Member>): string =>
  [
    `The plan for this goal was carried out, and the review says that the plan must change:\n\n${Frame.quoted(goal.goal)}`,
    `The review:\n${goal.findings.map(({ message, severity, task }) => `- ${severity}${task === undefined ? "" : ` (${task})`}: ${Frame.line(message)}`).join("\n") || Frame.quoted(goal.revise ?? "")}`,
    `The tasks so far; what is completed stays:\n${standing(goal)}`,
    team(workers),
    "Give only the tasks that are to be added, with new ids. They may depend on completed ones.",
    FORM
  ].join("\n\n")

export const read = (
  output: string,
  door: PlanFile.Door
): Effect.Effect<ReadonlyArray<Task>, { readonly message: string }> => {
  const found = jsonIn(output)
  return Result.isFailure(found) ? Effect.fail({ message: found.failure }) : PlanFile.check(found.success, door)
}
