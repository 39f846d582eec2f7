/**
 * DeclaredVerbs: all verbs that are declared, by topic. A verb is part of the program as soon as its
 * topic's file exports it; a new topic is a line here.
 */
import * as AccessVerbs from "./AccessVerbs.ts"
import * as Accounts from "./Accounts.ts"
import * as AgentLife from "./AgentLife.ts"
import * as Alerts from "./Alerts.ts"
import * as AlertTest from "./AlertTest.ts"
import * as Answer from "./Answer.ts"
import * as Channel from "./Channel.ts"
import * as Complete from "./Complete.ts"
import * as ConfigDiff from "./ConfigDiff.ts"
import * as Conversation from "./Conversation.ts"
import * as ConversationEnd from "./ConversationEnd.ts"
import * as ConversationPause from "./ConversationPause.ts"
import * as At from "./At.ts"
import * as Cost from "./Cost.ts"
import type { DeclaredVerb } from "./DeclaredVerb.ts"
import * as Diff from "./Diff.ts"
import * as Forget from "./Forget.ts"
import * as Goal from "./Goal.ts"
import * as GoalLife from "./GoalLife.ts"
import * as GoalList from "./GoalList.ts"
import * as Interrupt from "./Interrupt.ts"
import * as LogView from "./LogView.ts"
import * as Notify from "./Notify.ts"
import * as Plates from "./Plates.ts"
import * as Project from "./Project.ts"
import * as Ps from "./Ps.ts"
import * as Retry from "./Retry.ts"
import * as Runs from "./Runs.ts"
import * as Schedule from "./Schedule.ts"
import * as Send from "./Send.ts"
import * as Set from "./Set.ts"
import * as Spawn from "./Spawn.ts"
import * as Status from "./Status.ts"
import * as Tree from "./Tree.ts"
import * as Waits from "./Waits.ts"
import * as Why from "./Why.ts"

interface Exports {
  readonly [name: string]: unknown
}

const isVerb = (value: unknown): value is DeclaredVerb =>
  typeof value === "object" && value !== null && "path" in value && "rpc" in value && "view" in value

const verbsOf = (...topics: ReadonlyArray<Exports>): ReadonlyArray<DeclaredVerb> =>
  topics.flatMap((topic) => Object.values(topic).filter(isVerb))

/** As the help groups them. */
export const daemon = verbsOf(AgentLife, Status, Tree)
export const agents = verbsOf(Ps, Why, Runs, Diff, Send, Retry, Interrupt, Set, Spawn, LogView, Cost, Accounts)
export const channels = verbsOf(Channel)
export const conversations = verbsOf(Conversation)
export const conversationLives = verbsOf(ConversationPause, ConversationEnd)
export const projects = verbsOf(Project)
const goal = verbsOf(Goal)
export const goals = verbsOf(GoalList, GoalLife)
export const at = verbsOf(At)
export const schedules = verbsOf(Schedule)
export const sessions = verbsOf(Plates, Waits, Answer, Forget)
export const alerts = verbsOf(AlertTest)
export const told = verbsOf(Alerts)
export const notifies = verbsOf(Notify)
export const configs = verbsOf(ConfigDiff)
export const access = verbsOf(AccessVerbs)
export const shells = verbsOf(Complete)

const all = [
  daemon,
  agents,
  channels,
  conversations,
  conversationLives,
  projects,
  goal,
  goals,
  at,
  schedules,
  sessions,
  alerts,
  told,
  notifies,
  configs,
  access,
  shells
].flat()

export const declared: ReadonlyMap<string, DeclaredVerb> = new Map(all.map((verb) => [verb.path.join(" "), verb]))
