/**
 * GoalView: formats goals and their plans. Pure.
 *
 * A plan is drawn as a tree: each task is below the last task on which it depends, and its line names the other
 * dependencies. The depth of indentation is limited.
 */
import type { Finding, GoalInfo, GoalPage, TaskInfo } from "../../domain/GoalMessages.ts"
import { LOOKS, predicate } from "../../domain/StatusWords.ts"
import { age, type Colour, count, cut, lookColour, paint, plain, table, type TableOptions } from "../render/Output.ts"

const marks: { readonly [state in TaskInfo["state"]]: readonly [string, Colour | undefined] } = {
  pending: ["·", "dim"],
  assigned: ["▹", "cyan"],
  running: ["▸", "cyan"],
  completed: ["✓", "green"],
  failed: ["✗", "red"],
  blocked: ["⊘", "yellow"],
  cancelled: ["–", "dim"]
}

const DEEPEST = 12

/** Progress of a goal, such as `3 of 5 done, 1 failed, about 4m left`. */
export const progress = ({ estimate, tasks, total }: GoalInfo): string => {
  const more = (["failed", "blocked", "cancelled"] as const).flatMap((state) =>
    tasks[state] === 0 ? [] : [`${tasks[state]} ${state}`]
  )
  const left = estimate === null ? [] : [`about ${age(estimate)} left`]
  return [`${tasks.completed} of ${total} done`, ...more, ...left].join(", ")
}

const titleOf = (goal: GoalInfo): string => plain(goal.goal.slice(0, 500))

export const list = (goals: ReadonlyArray<GoalInfo>, now: number, options: TableOptions): ReadonlyArray<string> =>
  goals.length === 0
    ? ['There are no goals. Submit one: agentd goal "…"']
    : table(
        ["GOAL", "STATE", "SINCE", "TASKS", "DETAIL", "WHAT"],
        goals.map((goal) => [
          { text: `${goal.project}/${goal.goalId}`, colour: "bold" as const },
          { text: goal.word, colour: lookColour[LOOKS[goal.word].colour] },
          { text: age(now - goal.since) },
          { text: `${goal.tasks.completed}/${goal.total}`, right: true },
          { text: cut(plain(goal.detail), 60) },
          { text: titleOf(goal) }
        ]),
        options
      )

interface Drawn {
  readonly task: TaskInfo
  readonly indent: string
  readonly depth: number
}

const drawn = (tasks: ReadonlyArray<TaskInfo>): ReadonlyArray<Drawn> => {
  const place = new Map(tasks.map(({ id }, index) => [id, index]))
  const children = new Map<string | null, Array<TaskInfo>>()
  for (const task of tasks) {
    const parent = task.dependsOn.findLast((id) => place.has(id)) ?? null
    const list = children.get(parent)
    if (list === undefined) children.set(parent, [task])
    else list.push(task)
  }
  const lines: Array<Drawn> = []
  const open: Array<{
    readonly task: TaskInfo
    readonly depth: number
    readonly above: string
    readonly last: boolean
  }> = (children.get(null) ?? []).toReversed().map((task) => ({ task, depth: 0, above: "", last: true }))
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { above, depth, last, task } = next
    lines.push({ task, depth, indent: depth === 0 ? "" : `${above}${last ? "└ " : "├ "}` })
    const below = depth === 0 || depth > DEEPEST ? above : `${above}${last ? "  " : "│ "}`
    const list = children.get(task.id) ?? []
    for (const [index, child] of list.toReversed().entries()) {
      open.push({ task: child, depth: depth + 1, above: below, last: index === 0 })
    }
  }
  return lines
}

const taskLine = (task: TaskInfo, indent: string, now: number, colour: boolean): string => {
  const [mark, painted] = marks[task.state]
  const others = task.dependsOn.slice(0, -1)
  const notes = [
    ...(task.owner === null ? [] : [plain(task.owner)]),
    ...(task.state === "pending" && task.owner === null && task.needs.length > 0
      ? [`needs ${task.needs.join(", ")}`]
      : []),
    ...(task.state === "running" || task.state === "assigned" ? [`for ${age(now - task.since)}`] : []),
    ...(task.noCommit === true ? ["no commit"] : []),
    ...(task.errors === 0 ? [] : [`${task.errors} ${task.errors === 1 ? "error" : "errors"}`]),
    ...(others.length === 0 ? [] : [`also after ${cut(others.join(", "), 60)}`])
  ]
  const note = notes.length === 0 ? "" : paint(colour, "dim", `  (${notes.join("; ")})`)
  const wrong =
    task.error === null || task.state === "completed" ? "" : paint(colour, "red", `  ${cut(plain(task.error), 120)}`)
  return `${indent}${paint(colour, painted, mark)} ${paint(colour, "bold", task.id)} ${cut(plain(task.title), 80)}${note}${wrong}`
}

const findingColours: { readonly [severity in Finding["severity"]]: Colour | undefined } = {
  error: "red",
  warning: "yellow",
  info: "dim"
}

export const head = (goal: GoalInfo, now: number, colour: boolean): ReadonlyArray<string> => [
  `${paint(colour, "bold", `${goal.project}/${goal.goalId}`)} ${paint(colour, lookColour[LOOKS[goal.word].colour], predicate({ word: goal.word }, now))} for ${age(now - goal.since)}: ${progress(goal)}`,
  titleOf(goal),
  ...(goal.detail === "" ? [] : [paint(colour, "dim", plain(goal.detail))])
]

export type Page = Pick<GoalPage, "findings" | "goal" | "named" | "tasks">

const found = (findings: Page["findings"], colour: boolean): ReadonlyArray<string> =>
  findings.length === 0
    ? []
    : [
        "",
        "The newest review found:",
        ...findings.map(
          ({ message, severity, task }) =>
            `${paint(colour, findingColours[severity], severity)}${task === undefined ? "" : ` ${plain(task)}`}: ${plain(message.slice(0, 2_000))}`
        )
      ]

const NAMED = new Set<TaskInfo["state"]>(["assigned", "running", "failed"])

/**
 * Lines for a plan that is too long to draw: the number of tasks per state, and all assigned, running and failed tasks.
 */
export const brief = ({ findings, goal, named, tasks }: Page, now: number, colour: boolean): ReadonlyArray<string> => {
  const whole = goal.total <= tasks.length
  const states = Object.entries(goal.tasks).flatMap(([state, count]) => (count === 0 ? [] : [`${count} ${state}`]))
  return [
    ...head(goal, now, colour),
    "",
    `${count(goal.total, "task")}: ${states.join(", ")}`,
    ...(whole ? tasks.filter(({ state }) => NAMED.has(state)) : named).map((task) => taskLine(task, "", now, colour)),
    ...(whole ? [] : [`To print all tasks: agentd goal show ${plain(goal.goalId)} --json`]),
    ...found(findings, colour)
  ]
}

/** The plan as a tree, or in short form if the page does not contain all tasks. */
export const show = (page: Page, now: number, colour: boolean): ReadonlyArray<string> => {
  const { findings, goal, tasks } = page
  if (goal.total > tasks.length && tasks.length > 0) return brief(page, now, colour)
  return [
    ...head(goal, now, colour),
    ...(tasks.length === 0 ? [] : [""]),
    ...drawn(tasks).map(({ indent, task }) => taskLine(task, indent, now, colour)),
    ...found(findings, colour)
  ]
}
