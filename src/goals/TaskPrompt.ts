/**
 * TaskPrompt: builds the message that gives a task to an agent. Pure.
 *
 * Guarantees: text that planners, other agents and users wrote is quoted, or reduced to one line.
 */
import * as MessageFrame from "../domain/MessageFrame.ts"
import type { GoalState } from "./GoalState.ts"
import { cut } from "./Ellipsis.ts"
import type { Node, Plan } from "./Plan.ts"

const MAX_BEFORE = 50
const MAX_ERROR = 2_000

/** The completed dependencies, and the branches with their work. */
const before = (plan: Plan, { task }: Node): string => {
  const lines = task.dependsOn.slice(0, MAX_BEFORE).map((id) => {
    const node = plan.find(id)
    const result = node?.result
    const where =
      result?.branch == null
        ? ""
        : ` (branch ${MessageFrame.line(result.branch)}${result.head === null ? "" : ` at ${result.head.slice(0, 12)}`})`
    return `- ${id}: ${MessageFrame.line(node?.task.title ?? "")}${where}`
  })
  const more = task.dependsOn.length > MAX_BEFORE ? [`- … and ${task.dependsOn.length - MAX_BEFORE} more`] : []
  return `These tasks are done; merge what you need of them into your branch:\n${[...lines, ...more].join("\n")}`
}

export const text = (goal: GoalState, node: Node): string => {
  const { error, task } = node
  return [
    `Task ${task.id}: ${MessageFrame.line(task.title)}`,
    ...(task.description === "" ? [] : [MessageFrame.quoted(task.description)]),
    `It is part of this goal:\n${MessageFrame.quoted(goal.goal)}`,
    ...(task.dependsOn.length === 0 ? [] : [before(goal.plan, node)]),
    ...(error === null ? [] : [`The last try ended with this error:\n${MessageFrame.quoted(cut(error, MAX_ERROR))}`]),
    ...(task.commit === true
      ? ["This task is done when you have committed its work: without a commit it is retried."]
      : []),
    "Do only this task. If you work in git, commit your changes. End with what you did and how you know that it works."
  ].join("\n\n")
}
