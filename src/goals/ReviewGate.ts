/**
 * ReviewGate: the automatic checks before the critic's review. Every task must have ended, its work must be committed
 * and free of conflicts, and the plan's commands must succeed on it.
 *
 * Guarantees: the commands run on the work itself. If all of it was done in one folder, they run there, otherwise in
 * agentd's own checkout with all work merged. Each command has a timeout, and none of its processes survives, even if
 * the daemon ends. The end of its output is kept. Problems become findings; the gate never throws.
 */
import { Duration, Effect, FileSystem } from "effect"
import * as path from "node:path"
import * as GitStore from "../runs/git/GitStore.ts"
import * as GitCheckout from "../runs/git/GitCheckout.ts"
import type { ProcessTree } from "../runs/process/ProcessTree.ts"
import type { Reaper } from "../runs/process/Reaper.ts"
import type { Environment, ExitStatus } from "../runs/process/ChildProcess.ts"
import type { Finding } from "../domain/GoalMessages.ts"
import { CheckCommand, type Manner } from "./CheckCommand.ts"
import * as GitMerge from "./GitMerge.ts"
import type { Node, Plan } from "./Plan.ts"

const MAX_FAILED = 100

export interface Spec {
  readonly plan: Plan
  /** Ids of failed tasks that already have a follow-up task. */
  readonly followed: ReadonlySet<string>
  readonly goal: string
  readonly checks: ReadonlyArray<string>
  /** Timeout of each command, ms. */
  readonly timeout: number
  readonly root: string
  /** Target branch of the merge; null for the branch that is checked out in the root. */
  readonly target: string | null
  /** Path of agentd's own folder for the merged work. It need not exist. */
  readonly scratch: string
  /** The folder of the daemon's own git repositories. */
  readonly stores: string
  readonly store: string
  readonly environment: Environment
  /** How the commands are sandboxed and limited, and which environment they get. */
  readonly manner: Manner
}

/** The newest commit of each branch, in the order in which the work was completed. */
export const worksOf = (plan: Plan): ReadonlyArray<GitMerge.Work & { readonly cwd: string | null }> => {
  const done = plan.nodes
    .filter(({ result, state }) => state === "completed" && result?.branch != null && result.head != null)
    .toSorted((a, b) => a.result!.eventId - b.result!.eventId)
  const works = new Map<string, { readonly cwd: string | null; readonly head: string; readonly nodes: Array<Node> }>()
  for (const node of done) {
    const { branch, cwd, head } = node.result!
    const nodes = works.get(branch!)?.nodes ?? []
    nodes.push(node)
    works.delete(branch!)
    works.set(branch!, { head: head!, cwd, nodes })
  }
  return [...works].map(([branch, { cwd, head, nodes }]) => {
    const agents = new Set(nodes.map(({ agent }) => agent))
    // commits of failed attempts are also on the branch
    const given = plan.nodes.filter(({ agent, attempts }) => attempts > 0 && agents.has(agent))
    const spans = given.map(({ began, result }) => ({
      from: began,
      to: result?.branch === branch ? (result.head ?? head) : head
    }))
    return { branch, head, cwd, tasks: nodes.map(({ task }) => task.id), spans }
  })
}

/** The last attempts of all tasks whose agents have worked on a branch, in the order of assignment. */
export const triesOn = (
  branch: string,
  goals: ReadonlyMap<string, { readonly plan: Plan }>
): ReadonlyArray<GitMerge.Try> => {
  const all = [...goals].flatMap(([goalId, { plan }]) =>
    plan.nodes.filter(({ attempts }) => attempts > 0).map((node) => ({ goalId, node }))
  )
  const agents = new Set(all.filter(({ node }) => node.result?.branch === branch).map(({ node }) => node.agent))
  return all
    .filter(({ node }) => agents.has(node.agent))
    .toSorted((a, b) => a.node.given - b.node.given)
    .flatMap(({ goalId, node: { base, began, result } }) => {
      const to = result?.branch === branch ? result.head : null
      return [...new Set([began, base])].flatMap((from) => (from === null ? [] : [{ goalId, from, to }]))
    })
}

/** Whether the path exists. Also false if the path's folder cannot be read. */
export const exists = (path: string) =>
  Effect.flatMap(FileSystem.FileSystem, (files) => Effect.orElseSucceed(files.exists(path), () => false))

const error = (message: string, more: Partial<Finding> = {}): Finding => ({ severity: "error", message, ...more })

const failed = ({ followed, plan }: Spec): ReadonlyArray<Finding> => {
  if (plan.counts.failed === 0) return []
  const nodes = plan.nodes.filter(({ state, task }) => state === "failed" && !followed.has(task.id))
  return nodes
    .slice(0, MAX_FAILED)
    .map((node) => error(`it failed: ${node.error ?? "no reason"}`, { task: node.task.id, fix: node.task.title }))
}

const withoutCommit = ({ plan }: Spec): ReadonlyArray<Finding> =>
  plan.nodes
    .filter(({ result, state }) => state === "completed" && result?.noCommit === true)
    .slice(0, MAX_FAILED)
    .map(({ task }) => ({ severity: "info", task: task.id, message: "no commit" }))

const outcome = (command: string, status: ExitStatus | undefined, timeout: number): string | undefined => {
  if (status === undefined) return `\`${command}\` took longer than ${Duration.format(Duration.millis(timeout))}`
  if (status.code === 0) return undefined
  return `\`${command}\` ended with ${status.signal ?? `exit code ${status.code}`}`
}

const run = Effect.fnUntraced(
  function* (spec: Spec, command: string, { cwd, shared = [] }: Place) {
    const { environment, manner, store, timeout } = spec
    const check = yield* CheckCommand
    const ended = yield* check({ command, cwd, environment, manner, shared, store, timeout })
    const wrong = outcome(command, ended?.status, timeout)
    const how = ended?.held === false ? ", without a sandbox: none works on this machine" : ""
    if (wrong === undefined) return { severity: "info", message: `\`${command}\` succeeded${how}` } as Finding
    const printed = ended?.printed ?? ""
    return error(printed === "" ? wrong + how : `${wrong}${how}:\n${printed}`, { fix: `Make \`${command}\` succeed.` })
  },
  (running, _, command) =>
    Effect.catchTag(running, "BackendError", ({ message, remedy }) =>
      Effect.succeed(error(`\`${command}\` could not be run: ${message}`, { fix: remedy, forPerson: true }))
    )
)

export const clear = Effect.fnUntraced(function* (stores: string, root: string, scratch: string) {
  if (!(yield* exists(scratch))) return
  const store = yield* Effect.orElseSucceed(GitStore.open(stores, root), () => undefined)
  yield* Effect.ignore(GitCheckout.clear(store, scratch))
})

/** Describes commits that belong to no task of the goal. */
export const strangers = (commits: ReadonlyArray<string>): string =>
  `${commits.length === 1 ? "a commit" : `${commits.length} commits`} of no task of this goal: ${commits.slice(0, 5).join("; ")}${commits.length > 5 ? "; …" : ""}`

interface Place {
  readonly cwd: string
  /** Additional folders that the commands can read: the git objects that the checkout borrows. */
  readonly shared?: ReadonlyArray<string>
  readonly findings: ReadonlyArray<Finding>
}

/** Finds the folder in which the commands run, and problems that are known before they run. */
const placeOf = Effect.fnUntraced(function* (spec: Spec) {
  const works = worksOf(spec.plan)
  const findings: Array<Finding> = []
  const [only] = works
  if (only === undefined) return { cwd: spec.root, findings } as Place
  const store = yield* GitMerge.storeOf(spec.stores, spec.root)
  for (const { branch, cwd, tasks } of works) {
    const changes = cwd === null || !(yield* exists(cwd)) ? [] : yield* GitMerge.uncommitted(store, cwd)
    if (changes.length === 0) continue
    findings.push(
      error(`${branch} has changes that are not committed: ${changes.slice(0, 5).join(", ")}`, {
        task: tasks.at(-1)!,
        fix: "Commit the changes that belong to the work, and revert the others."
      })
    )
  }
  const base = yield* GitStore.commitOf(store, spec.target ?? "HEAD")
  if (base === undefined) {
    return {
      cwd: only.cwd ?? spec.root,
      findings: [...findings, error(`there is no branch ${spec.target}`, { forPerson: true })]
    } as Place
  }
  for (const work of works) {
    const others = yield* GitMerge.foreign(store, base, work)
    if (others.length === 0) continue
    findings.push({
      severity: "warning",
      message: `${work.branch} contains ${strangers(others)}, merged only if a person requests it`
    })
  }
  const { commit, results } = yield* GitMerge.combine(store, base, works, spec.goal)
  for (const { branch, conflicts, outcome, tasks } of results) {
    if (outcome !== "conflict") continue
    findings.push(
      error(`${branch} conflicts with the rest of the work in ${conflicts.join(", ")}`, {
        task: tasks.at(-1)!,
        fix: `Merge ${results
          .filter((other) => other.branch !== branch)
          .map((other) => other.branch)
          .concat(spec.target ?? [])
          .join(", ")} into your branch and solve the conflicts.`
      })
    )
  }
  // This folder contains all work already, with everything that its agent installed there.
  if (commit === only.head && works.length === 1 && only.cwd !== null && (yield* exists(only.cwd))) {
    return { cwd: only.cwd, findings } as Place
  }
  if (spec.checks.length === 0) return { cwd: spec.root, findings } as Place
  const problem = yield* GitCheckout.checkOut(store, spec.scratch, commit).pipe(
    Effect.as(undefined),
    Effect.catchTag("GitFailed", ({ message }) =>
      Effect.succeed(error(`the merged work could not be checked out: ${message}`))
    )
  )
  const inTree = path.join(spec.scratch, store.person.prefix)
  const cwd = (yield* exists(inTree)) ? inTree : spec.scratch
  const shared = [path.join(store.person.commonDir, "objects")]
  return { cwd, shared, findings: problem === undefined ? findings : [...findings, problem] } as Place
})

/** Runs the automatic checks and returns their findings. If none is an `error`, the critic reviews the work next. */
export const check = (
  spec: Spec
): Effect.Effect<ReadonlyArray<Finding>, never, FileSystem.FileSystem | ProcessTree | Reaper> =>
  Effect.gen(function* () {
    const place = yield* placeOf(spec)
    const { cwd, findings } = place
    const before = [...failed(spec), ...withoutCommit(spec), ...findings]
    if (spec.checks.length === 0) return before
    if (!(yield* exists(cwd))) return [...before, error(`the folder ${cwd} does not exist: nothing could be checked`)]
    const results: Array<Finding> = []
    for (const command of spec.checks) results.push(yield* run(spec, command, place))
    return [...before, ...results]
  }).pipe(
    Effect.catchTags({
      GitUnavailable: ({ message, remedy }) =>
        Effect.succeed([...failed(spec), error(message, { fix: remedy, forPerson: true })]),
      GitFailed: ({ message, remedy }) =>
        Effect.succeed([...failed(spec), error(message, { fix: remedy, forPerson: true })]),
      MergeRefused: ({ message, remedy }) =>
        Effect.succeed([...failed(spec), error(message, { fix: remedy, forPerson: true })])
    })
  )
