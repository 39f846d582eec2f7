/**
 * Kept: what agents have committed for goals that came to nothing. It is kept as `agentd/kept/AGENT/GOAL`, and the
 * agent's next task begins where it stood before.
 *
 * Guarantees: nothing is lost: what was not committed is committed, and the name is there, before the branch moves; it
 * moves only in a repository of the agent's own, and not back over what a person had the agent do since. What was cut
 * off in between is done with the next task.
 */
import { Effect } from "effect"
import type { Member } from "../domain/AgentPort.ts"
import { readWork } from "../domain/WorkKinds.ts"
import * as OwnRepository from "../runs/git/OwnRepository.ts"
import * as Store from "../runs/git/Store.ts"
import * as TreeDiff from "../runs/git/TreeDiff.ts"
import { readGoal, type Surroundings } from "./GoalActor.ts"
import { actorOf, eventOf, type GoalState } from "./GoalState.ts"
import type { Plan } from "./Plan.ts"

export type Around = Pick<Surroundings, "agents" | "conversation" | "log" | "project" | "stores">

/** Runes in which the newest tries of an agent are looked for. */
const MOST = 500
/** The message of a task's try. */
const TRY = /^plan\/[^/]+\/[^/]+\/\d+$/

/** The newest tries of an agent, as far as they came to nothing: the goal of the last one, and the commit before the first. */
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

/** Gives that commit its name, if it holds anything that was made since and is not merged; whether it does. */
const keepAs = Effect.fnUntraced(function* (store: Store.Store, name: string, from: string, tip: string) {
  const head = yield* Store.commitOf(store, "HEAD")
  const isMerged = head !== undefined && (yield* Store.isAncestor(store, tip, head))
  if (tip === from || isMerged || !(yield* Store.isAncestor(store, from, tip))) return false
  const person = { gitDir: store.person.commonDir }
  const before = yield* Store.commitAt(person, `refs/${name}`)
  // one of a goal of that name in an earlier conversation stays, too
  const isOther = before !== undefined && !(yield* Store.isAncestor(store, before, tip))
  const named = isOther
    ? [
        [`${name}-${before.slice(0, 7)}`, before],
        [name, tip]
      ]
    : [[name, tip]]
  for (const [to, commit] of named)
    yield* Store.must({ ...person, command: "update-ref", names: [`refs/${to}`, commit!] }, "person")
  return true
})

const storeOf = Effect.fnUntraced(function* ({ project, stores }: Around) {
  const root = (yield* project)?.root
  return root === undefined ? undefined : yield* Store.open(stores, root)
})

/** Keeps what an agent has done for a goal and then worked on from, for others. */
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

/** Keeps what the newest tries of an agent have left, of that goal or of any; with `takesBack`, the agent's branch goes back. */
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
    const head = store === undefined ? undefined : yield* OwnRepository.handOver(store, around.stores, cwd)
    if (store === undefined || head === undefined) return
    // of a folder that was made after the task was given: what the project has is no work
    const to = found.from ?? (yield* TreeDiff.baseOf(store, around.stores, cwd, head))
    const keep = (tip: string) => keepAs(store, nameOf(agent, found.goalId), to, tip)
    if (of.takesBack === true) yield* OwnRepository.takeBack(store, around.stores, cwd, { to, keep })
    else yield* keep(head)
  },
  (keeping, _, { agent }) =>
    Effect.catch(keeping, ({ message }) => Effect.logWarning(`what ${agent} has left stays on its branch: ${message}`))
)

/** Tells what is kept of a goal that is cancelled. */
export const willBe = (goalId: string, plan: Plan, members: ReadonlyArray<Member>): string => {
  const worked = plan.nodes.filter(({ attempts, result }) => attempts > 0 && result?.noCommit !== true)
  const names = members
    .filter(({ agent, branch }) => branch !== null && worked.some((node) => node.agent === agent))
    .map(({ agent }) => `any commits of ${agent} for it are kept as ${nameOf(agent, goalId)}`)
  return ["is stopped", ...names].join("; ").concat(".")
}

/** Takes the branch of an agent that is to be given a task back to where it stood before what came to nothing. */
export const takeBack = (around: Around, member: Member, known: ReadonlyMap<string, GoalState>) =>
  keepOf(around, member, { known, takesBack: true })

/** Gives what agents have committed for an ended goal, as far as it came to nothing, its names. */
export const keep = (around: Around, goalId: string) =>
  Effect.flatMap(around.agents.members(around.conversation), (members) =>
    Effect.forEach(members, (member) => keepOf(around, member, { goalId }), { discard: true })
  )

/** The names under which commits of a goal are kept, with commas. */
export const namesOf = Effect.fnUntraced(
  function* (around: Around, goalId: string) {
    const store = yield* storeOf(around)
    if (store === undefined) return ""
    const options = ["--format=%(refname:lstrip=1)"]
    const call = { gitDir: store.person.commonDir, command: "for-each-ref", options } as const
    return (yield* Store.must({ ...call, names: [`refs/${nameOf("*", goalId)}`] })).trim().replaceAll("\n", ", ")
  },
  Effect.orElseSucceed(() => "")
)
