/**
 * DeclaredVerbs: all declared verbs by topic. All verbs that a topic's file exports become part of the program. A new
 * topic must be added here.
 */
import * as AccessVerbs from "../daemon/AccessVerbs.ts"
import * as Accounts from "../daemon/Accounts.ts"
import * as AgentLife from "../agents/AgentLife.ts"
import * as Alerts from "../daemon/Alerts.ts"
import * as AlertTest from "../daemon/AlertTest.ts"
import * as Answer from "../agents/Answer.ts"
import * as Channel from "../channels/Channel.ts"
import * as Complete from "./Complete.ts"
import * as ConfigDiff from "../projects/ConfigDiff.ts"
import * as Conversation from "../projects/Conversation.ts"
import * as ConversationEnd from "../projects/ConversationEnd.ts"
import * as At from "../agents/At.ts"
import * as Cost from "../daemon/Cost.ts"
import type { DeclaredVerb } from "./DeclaredVerb.ts"
import * as Diff from "../agents/Diff.ts"
import * as Forget from "../sessions/Forget.ts"
import * as Goal from "../goals/Goal.ts"
import * as GoalLife from "../goals/GoalLife.ts"
import * as GoalList from "../goals/GoalList.ts"
import * as Interrupt from "../agents/Interrupt.ts"
import * as LogView from "../log/LogView.ts"
import * as Notify from "../daemon/Notify.ts"
import * as Plates from "../sessions/Plates.ts"
import * as Project from "../projects/Project.ts"
import * as Ps from "../sessions/Ps.ts"
import * as Retry from "../agents/Retry.ts"
import * as Runs from "../log/Runs.ts"
import * as Schedule from "../agents/Schedule.ts"
import * as Send from "../agents/Send.ts"
import * as Set from "../agents/Set.ts"
import * as Spawn from "../agents/Spawn.ts"
import * as Status from "../daemon/Status.ts"
import * as Tree from "../daemon/Tree.ts"
import * as WaitingRows from "../daemon/WaitingRows.ts"
import * as Why from "../agents/Why.ts"

interface Exports {
  readonly [name: string]: unknown
}

const isVerb = (value: unknown): value is DeclaredVerb =>
  typeof value === "object" && value !== null && "path" in value && "rpc" in value && "view" in value

const verbsOf = (...topics: ReadonlyArray<Exports>): ReadonlyArray<DeclaredVerb> =>
  topics.flatMap((topic) => Object.values(topic).filter(isVerb))

/** The verbs of each topic, in the order of the help. */
export const daemon = verbsOf(AgentLife, Status, Tree)
export const agents = verbsOf(Ps, Plates, Why, Runs, Diff, Send, Retry, Interrupt, Set, Spawn, LogView, Cost, Accounts)
export const channels = verbsOf(Channel)
export const projects = verbsOf(Project, Conversation, ConversationEnd)
const goal = verbsOf(Goal)
export const goals = verbsOf(GoalList, GoalLife)
export const at = verbsOf(At)
export const schedules = verbsOf(Schedule)
export const sessions = verbsOf(WaitingRows, Answer, Forget)
export const alerts = verbsOf(Alerts, Notify, AlertTest)
export const configs = verbsOf(ConfigDiff)
export const access = verbsOf(AccessVerbs)
export const shells = verbsOf(Complete)

const all = [
  daemon,
  agents,
  channels,
  projects,
  goal,
  goals,
  at,
  schedules,
  sessions,
  alerts,
  configs,
  access,
  shells
].flat()

export const declared: ReadonlyMap<string, DeclaredVerb> = new Map(all.map((verb) => [verb.path.join(" "), verb]))
