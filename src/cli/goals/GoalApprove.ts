/**
 * `agentd goal approve GOAL` without a hash: shows the whole plan, then asks for confirmation on a terminal.
 *
 * Guarantees: the approval names the shown plan by its hash. The whole plan is shown: the goal, its options, and each
 * task with the full text for its agent. Characters with a misleading look are marked. If the user cannot be asked,
 * nothing is approved, and the exit code says so.
 */
import { Effect } from "effect"
import { Prompt } from "effect/cli"
import { call } from "../../api/rpc/ControlClient.ts"
import * as CallHash from "../../domain/CallHash.ts"
import type { AskedPlan, Task } from "../../domain/GoalMessages.ts"
import { alphabets, barred, line } from "../agents/ApprovalView.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Invocation, print, printLines } from "../parse/Invocation.ts"
import { count, plain } from "../render/Output.ts"

const undecided = (message: string, remedy: string) => new VerbFailed({ message, remedy, exitCode: ExitCode.undecided })

const whole = Effect.fnUntraced(function* (name: string) {
  const { caller, paths } = yield* Invocation
  return yield* call(paths.socket, (client) =>
    Effect.gen(function* () {
      const first = yield* client.GoalAsked({ name, from: 0, caller })
      const tasks: Array<Task> = [...first.tasks]
      for (let { next } = first; next !== null;) {
        const more = yield* client.GoalAsked({ name, from: next, caller })
        if (more.hash !== first.hash)
          return yield* undecided(
            "The plan changed while it was read.",
            `Try again: agentd goal approve ${plain(name)}`
          )
        tasks.push(...more.tasks)
        next = more.next
      }
      return { ...first, tasks }
    })
  )
})

const namesOf = (label: string, names: ReadonlyArray<string>): ReadonlyArray<string> =>
  names.length === 0 ? [] : [`${label} ${names.map(line).join(", ")}`]

const taskLines = (
  { commit, dependsOn, description, id, needs, owner, priority, timeout, title }: Task,
  columns: number | null
) => {
  const notes = [
    ...namesOf("after", dependsOn),
    ...(owner === null ? [] : [`by ${line(owner)}`]),
    ...namesOf("needs", needs),
    ...(priority === 0 ? [] : [`priority ${priority}`]),
    ...(timeout === null ? [] : [`${timeout / 1000} s`]),
    ...(commit === true ? ["must commit"] : [])
  ]
  return [
    `├ ${line(id)}${notes.length === 0 ? "" : ` (${notes.join("; ")})`}`,
    ...barred(title, columns),
    ...(description === "" ? [] : barred(description, columns))
  ]
}

/** The whole plan as lines, with special characters marked. */
export const lines = (asked: AskedPlan, columns: number | null): ReadonlyArray<string> => {
  const { goal, goalId, hash, options, project, tasks } = asked
  const { checks, ...others } = options
  const texts = [goal, ...checks, ...tasks.flatMap(({ description, id, title }) => [id, title, description])]
  return [
    `┌ ${line(project)}/${line(goalId)} asks for approval of a plan of ${count(tasks.length, "task")}`,
    ...barred(goal, columns),
    ...(checks.length === 0 ? [] : ["├ checks", ...checks.flatMap((check) => barred(check, columns))]),
    "├ options",
    ...barred(
      Object.entries(others)
        .map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
        .join("\n"),
      columns
    ),
    ...tasks.flatMap((task) => taskLines(task, columns)),
    ...alphabets(texts.join("\n")),
    `└ ${CallHash.short(hash)}`
  ]
}

export const run = Effect.fnUntraced(function* (name: string) {
  const { caller, columns, interactive, json, paths } = yield* Invocation
  const asked = yield* whole(name)
  yield* print(asked, () => lines(asked, columns))
  const id = `${asked.project}/${asked.goalId}`
  if (json || !interactive)
    return yield* undecided(
      "Nothing was approved: this is not a terminal.",
      `To approve the plan that was shown: agentd goal approve ${line(id)} ${CallHash.short(asked.hash)}`
    )
  if (!(yield* Prompt.run(Prompt.Confirm({ message: "Approve this plan?", initial: false }))))
    return yield* undecided(
      "Nothing was approved.",
      `The plan still waits. To reject it: agentd goal reject ${line(id)}`
    )
  const done = yield* call(paths.socket, (client) => client.GoalApprove({ name: id, hash: asked.hash, caller }))
  return yield* printLines([plain(done.message)])
})
