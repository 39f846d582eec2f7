/**
 * Kept: preserves the commits of unsuccessful attempts under the git ref `agentd/kept/AGENT/GOAL`. The agent's next
 * task starts from the commit before them.
 *
 * Guarantees: no work is lost. Uncommitted changes are committed, and the ref is created, before the branch is moved. A
 * branch is moved only in the agent's own repository, and never to a commit before work that the user has requested
 * since. An interrupted step is completed with the agent's next task.
 */
import { Effect } from "effect"
import type { Member } from "../domain/AgentPort.ts"
import { readWork } from "../domain/WorkKinds.ts"
import * as AgentRepository from "../runs/git/AgentRepository.ts"
import * as GitStore from "../runs/git/GitStore.ts"
import * as TreeDiff from "../runs/git/TreeDiff.ts"
import { readGoal, type Surroundings } from "./GoalActor.ts"
import { actorOf, eventOf, type GoalState } from "./GoalState.ts"
import type { Plan } from "./Plan.ts"

export type Around = Pick<Surroundings, "agents" | "conversation" | "log" | "project" | "stores">

/** Maximum number of recent runes that are searched for an agent's newest attempts. */
const MOST = 500
/** Matches the message id of a task's attempt. */
const TRY = /^plan\/[^/]+\/[^/]+\/\d+$/

/** The goal of an agent's newest unsuccessful attempts, and the commit before them. Undefined if there are none. */
const leftBy = Effect.fnUntraced(function* (
  { conversation, log }: Around,
  agent: string,
  known: ReadonlyMap<string, GoalState>
) {
  const goals = new Map(known)
  const tries: Array<{ readonly goalId: string; readonly from: string | null }> = []
  const kinds = ["plan.task_assigned", "turn.started"]
  const runes = yield* log.tail({ stream: conversation, actors: [actorOf(""), `turn/${agent}`], kinds }, MOST)
  for (const rune of runes.toReversed()) {
    const turn = readWork(rune)
    if (turn?.kind === "turn.started" && !turn.payload.event.messageIds.every((id) => TRY.test(id))) break
    const event = eventOf(rune)
    if (event?._tag !== "task_assigned" || event.agentId !== agent) continue
    const goalId = rune.actor.slice(actorOf("").length)
    const goal = goals.get(goalId) ?? (yield* readGoal(log, conversation, goalId))
    goals.set(goalId, goal)
    const node = goal.plan.find(event.taskId)
    const { state } = goal.stand
    if (node?.agent === agent && (state === "goal_met" ? node.state === "completed" : state !== "stopped")) break
    tries.push({ goalId, from: event.base ?? null })
  }
  const [last] = tries
  return last === undefined ? undefined : { goalId: last.goalId, from: tries.at(-1)!.from }
})

export const nameOf = (agent: string, goalId: string): string => `agentd/kept/${agent}/${goalId}`

/** Creates a ref for the commit if it contains new work that is not merged. Returns false if it does not. */
const keepAs = Effect.fnUntraced(function* (store: GitStore.GitStore, name: string, from: string, tip: string) {
  const head = yield* GitStore.commitOf(store, "HEAD")
  const isMerged = head !== undefined && (yield* GitStore.isAncestor(store, tip, head))
  if (tip === from || isMerged || !(yield* GitStore.isAncestor(store, from, tip))) return false
  const person = { gitDir: store.person.commonDir }
  const before = yield* GitStore.commitAt(person, `refs/${name}`)
  // if a goal of an earlier conversation used this ref, its commit gets a second ref
  const isOther = before !== undefined && !(yield* GitStore.isAncestor(store, before, tip))
  const named = isOther
    ? [
        [`${name}-${before.slice(0, 7)}`, before],
        [name, tip]
      ]
    : [[name, tip]]
  for (const [to, commit] of named)
    yield* GitStore.must({ ...person, command: "update-ref", names: [`refs/${to}`, commit!] }, "person")
  return true
})

const storeOf = Effect.fnUntraced(function* ({ project, stores }: Around) {
  const root = (yield* project)?.root
  return root === undefined ? undefined : yield* GitStore.open(stores, root)
})

/** Creates a ref for a stopped goal's completed work, if the agent has since worked for other goals. */
const keepBeneath = Effect.fnUntraced(function* (around: Around, agent: string, goalId: string) {
  const { plan, stand } = yield* readGoal(around.log, around.conversation, goalId)
  if (stand.state !== "stopped") return
  const done = plan.nodes
    .filter((node) => node.agent === agent && node.state === "completed" && node.result?.branch != null)
    .toSorted((a, b) => a.given - b.given)
  const [from, head] = [done[0]?.began ?? null, done.at(-1)?.result?.head ?? null]
  const store = from === null || head === null ? undefined : yield* storeOf(around)
  if (store !== undefined) yield* keepAs(store, nameOf(agent, goalId), from!, head!)
})

/**
 * Creates a ref for the commits of an agent's newest unsuccessful attempts, for one goal or for any. With `takesBack`,
 * the agent's branch is moved back to the commit before them.
 */
const keepOf = Effect.fnUntraced(
  function* (
    around: Around,
    { agent, branch, cwd }: Member,
    of: { readonly known?: ReadonlyMap<string, GoalState>; readonly goalId?: string; readonly takesBack?: boolean }
  ) {
    const found = branch === null || cwd === null ? undefined : yield* leftBy(around, agent, of.known ?? new Map())
    if (of.goalId !== undefined && found?.goalId !== of.goalId) return yield* keepBeneath(around, agent, of.goalId)
    if (found === undefined || cwd === null) return
    const store = yield* storeOf(around)
    const head = store === undefined ? undefined : yield* AgentRepository.handOver(store, around.stores, cwd)
    if (store === undefined || head === undefined) return
    // if the start is unknown, the folder was made after the assignment: commits that are also in the project are
    // not the agent's
    const to = found.from ?? (yield* TreeDiff.baseOf(store, around.stores, cwd, head))
    const keep = (tip: string) => keepAs(store, nameOf(agent, found.goalId), to, tip)
    if (of.takesBack === true) yield* AgentRepository.takeBack(store, around.stores, cwd, { to, keep })
    else yield* keep(head)
  },
  (keeping, _, { agent }) =>
    Effect.catch(keeping, ({ message }) => Effect.logWarning(`the commits of ${agent} stay on its branch: ${message}`))
)

/** Describes which commits will be kept when a goal is cancelled. */
export const willBe = (goalId: string, plan: Plan, members: ReadonlyArray<Member>): string => {
  const worked = plan.nodes.filter(({ attempts, result }) => attempts > 0 && result?.noCommit !== true)
  const names = members
    .filter(({ agent, branch }) => branch !== null && worked.some((node) => node.agent === agent))
    .map(({ agent }) => `any commits of ${agent} for it are kept as ${nameOf(agent, goalId)}`)
  return ["is stopped", ...names].join("; ").concat(".")
}

/** Moves an agent's branch back to the commit before its unsuccessful attempts. Called before the agent gets a task. */
export const takeBack = (around: Around, member: Member, known: ReadonlyMap<string, GoalState>) =>
  keepOf(around, member, { known, takesBack: true })

/** Creates refs for the unsuccessful commits that agents made for an ended goal. */
export const keep = (around: Around, goalId: string) =>
  Effect.flatMap(around.agents.members(around.conversation), (members) =>
    Effect.forEach(members, (member) => keepOf(around, member, { goalId }), { discard: true })
  )

/** Names, separated by commas, of the git refs that keep a goal's commits. Empty if there are none or git fails. */
export const namesOf = Effect.fnUntraced(
  function* (around: Around, goalId: string) {
    const store = yield* storeOf(around)
    if (store === undefined) return ""
    const options = ["--format=%(refname:lstrip=1)"]
    const call = { gitDir: store.person.commonDir, command: "for-each-ref", options } as const
    return (yield* GitStore.must({ ...call, names: [`refs/${nameOf("*", goalId)}`] })).trim().replaceAll("\n", ", ")
  },
  Effect.orElseSucceed(() => "")
)
