/**
 * BoardList: builds the rows of the board from the reports of the daemon's features. Pure.
 *
 * Guarantees: two features that report the same subject get one row (an agent's run is a session, too). A matter that
 * needs the user is a separate row, unless another row already shows it. Text from outside agentd is unchanged. The row
 * of an agent is rebuilt only when the facts behind it have changed.
 */
import * as Rows from "../domain/BoardRow.ts"
import { telling } from "../domain/CallSummary.ts"
import type { BoardRow } from "../domain/BoardMessages.ts"
import type { ChannelInfo } from "../domain/ChannelMessages.ts"
import type { GoalInfo } from "../domain/GoalMessages.ts"
import type { AgentInfo, CallInfo, ConversationInfo, PlateInfo } from "../domain/Messages.ts"
import { nameOf, type Standing, troubles } from "../domain/ProviderStatus.ts"
import type { Given } from "./WaitingList.ts"
import * as WaitingList from "./WaitingList.ts"
import type { WaitingRow } from "./WaitingMessages.ts"

export interface Spent {
  readonly tokens: number
  readonly usd: number
}

export interface BoardGiven extends Given {
  /** True to include agents, goals and others that ended long ago. */
  readonly all: boolean
  /** Spending of each agent since midnight, by the id of its row. */
  readonly today: ReadonlyMap<string, Spent>
}

const BARE: Omit<BoardRow, "id" | "kind" | "name" | "word" | "says"> = {
  conversation: "",
  project: "",
  called: "",
  reason: null,
  until: null,
  since: 0,
  restsOn: 0,
  state: "",
  asks: [],
  commands: [],
  role: "",
  model: "",
  runs: 0,
  context: null,
  today: null,
  errors: null,
  inbox: 0,
  progress: null,
  branch: null,
  cwd: null,
  pid: null
}

/** Number of runs of an agent. Between runs, `sessionSeq` is already the number of the next run. */
const runsOf = ({ runId, sessionSeq }: AgentInfo): number => (runId === null ? Math.max(0, sessionSeq - 1) : sessionSeq)

const ofAgent = (agent: AgentInfo, asks: ReadonlyArray<string>, today: Spent | undefined, name: string): BoardRow => ({
  ...BARE,
  id: Rows.ofAgent(agent),
  kind: "agent",
  conversation: agent.conversation,
  project: agent.project,
  name: agent.agent,
  called: name,
  word: agent.word,
  reason: agent.reason,
  until: agent.nextAt,
  says: agent.detail,
  since: agent.since,
  restsOn: agent.restsOn,
  state: agent.state,
  asks,
  role: agent.role,
  ...(agent.mode === "loop" ? { mode: agent.mode } : {}),
  ...(agent.parent === undefined ? {} : { parent: agent.parent }),
  ...(agent.labels === undefined ? {} : { labels: agent.labels }),
  model: agent.model,
  runs: runsOf(agent),
  context: agent.context ?? null,
  today: today ?? null,
  errors: {
    inRow: agent.consecutiveErrors,
    maxInRow: agent.maxConsecutiveErrors,
    total: agent.totalErrors,
    maxTotal: agent.maxTotalErrors
  },
  inbox: agent.inbox,
  branch: agent.branch,
  cwd: agent.cwd,
  pid: agent.pid
})

interface Maker {
  readonly asks: ReadonlyArray<string>
  readonly today: Spent | undefined
  /** The project's name, in the form that commands accept. */
  readonly home: string
  readonly row: BoardRow
}

const NONE: ReadonlyArray<string> = []
const sameTexts = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): boolean =>
  a === b || (a.length === b.length && a.every((text, n) => text === b[n]))

/** Caches the row of each agent, with the facts from which it was built. */
export class Made {
  private readonly known = new WeakMap<AgentInfo, Maker>()

  /** Returns an agent's row, from the cache if possible. `asks` and `spent` are keyed by row id. */
  row(
    agent: AgentInfo,
    home: string,
    asks: ReadonlyMap<string, ReadonlyArray<string>>,
    spent: BoardGiven["today"]
  ): BoardRow {
    const known = this.known.get(agent)
    const id = known?.row.id ?? Rows.ofAgent(agent)
    const own = asks.get(id) ?? NONE
    const today = spent.get(id)
    if (known !== undefined && known.home === home && known.today === today && sameTexts(known.asks, own))
      return known.row
    const row = ofAgent(agent, own, today, `${home}/${agent.agent}`)
    this.known.set(agent, { asks: own, today, home, row })
    return row
  }
}

const folderOf = (cwd: string | null): string => cwd?.split("/").findLast((part) => part !== "") ?? ""

/** True if a missed hook would not be noticed, because no transcript is watched and the status comes from a hook. */
const restsOnHooks = ({ restsOn, watchable }: PlateInfo): boolean => !watchable && restsOn?.signal === "hook"

const ofSession = (plate: PlateInfo): BoardRow => ({
  ...BARE,
  id: Rows.ofSession(plate),
  kind: "session",
  project: folderOf(plate.cwd),
  name: plate.title ?? plate.plateId,
  called: plate.plateId,
  word: plate.word,
  says: restsOnHooks(plate) ? `${plate.detail}; no transcript: a missed hook cannot be recovered` : plate.detail,
  since: plate.since,
  state: plate.status,
  asks: plate.approval === null ? [] : [plate.plateId],
  branch: plate.branch,
  cwd: plate.cwd,
  pid: plate.pid
})

const ofGoal = (goal: GoalInfo, name: string): BoardRow => ({
  ...BARE,
  id: Rows.ofGoal(goal),
  kind: "goal",
  conversation: goal.conversation,
  project: goal.project,
  name: goal.goalId,
  called: name,
  word: goal.word,
  says: goal.detail,
  since: goal.since,
  restsOn: goal.restsOn,
  state: goal.state,
  role: goal.goal,
  progress: { done: goal.tasks.completed + goal.tasks.failed + goal.tasks.cancelled, all: goal.total }
})

/** Since when the channel has its status word, ms since the epoch, derived from its seats. 0 if unknown. */
const sinceOf = ({ closed, floor, seats, since, word }: ChannelInfo): number => {
  if (since !== undefined || closed || seats.length === 0) return since ?? 0
  const one = seats.find(({ agent }) => agent === floor)
  const waiting = seats.filter((seat) => seat.word === "waiting" || seat.word === "working")
  if (one !== undefined) return one.since
  return word === "waiting"
    ? Math.min(...waiting.map((seat) => seat.since))
    : Math.max(...seats.map((seat) => seat.since))
}

const ofChannel = (channel: ChannelInfo, name: string): BoardRow => ({
  ...BARE,
  id: Rows.ofChannel(channel),
  kind: "channel",
  conversation: channel.conversation,
  project: channel.project,
  name: `#${channel.name}`,
  called: name,
  word: channel.word,
  says: channel.detail,
  since: sinceOf(channel),
  restsOn: channel.restsOn,
  role: channel.topic
})

/** The row of a project's newest conversation, if that is paused, suspended, closing or over. */
const ofProject = ({ conversation, detail, project, restsOn, since, state, word }: ConversationInfo): BoardRow => ({
  ...BARE,
  id: Rows.ofProject({ conversation }),
  kind: "project",
  conversation,
  project,
  name: conversation,
  called: conversation,
  word,
  says: OVER.has(state) ? `is ${state}: agentd project new, in the project's folder` : `is ${detail}`,
  since,
  restsOn,
  state
})

/** The row of a matter that does not belong to another row. */
const ofMatter = ({ commands, details, id, since, text, until, who }: WaitingRow): BoardRow => ({
  ...BARE,
  id: `matter/${id}`,
  kind: "matter",
  name: who,
  word: "needs you",
  says: text,
  since,
  until,
  role: details[0] ?? "",
  commands
})

/** The row of an outage about which the user was notified. The agents that use the provider wait. */
const ofOutage = (standing: Standing): BoardRow => ({
  ...BARE,
  id: `provider/${standing.provider}/${standing.account}`,
  kind: "matter",
  name: nameOf(standing),
  word: "waiting",
  reason: standing.state === "LimitedUntil" ? "limit" : "network",
  says: `${troubles[standing.state]}: ${standing.message}; its agents continue by themselves when it answers`,
  since: standing.since,
  until: standing.until,
  commands: [{ does: "see its history", command: "agentd log --kind provider.moved" }]
})

/** Ids of the calls that wait for an answer, by the row id of their agent, oldest first. */
const asksOf = (calls: ReadonlyArray<CallInfo>, plates: ReadonlyArray<PlateInfo>, agents: ReadonlyArray<AgentInfo>) => {
  const asks = new Map<string, ReadonlyArray<string>>()
  const add = (row: string, id: string) => asks.set(row, [...(asks.get(row) ?? []), id])
  for (const call of calls) if (call.state === "awaiting_approval") add(Rows.ofAgent(call), call.callId)
  const asking = plates.filter(({ agent, approval }) => agent !== null && approval !== null)
  if (asking.length === 0) return asks
  const named = new Map(agents.map((agent) => [`${agent.project}/${agent.agent}`, Rows.ofAgent(agent)]))
  for (const { agent, plateId } of asking) {
    const row = named.get(agent!)
    if (row !== undefined) add(row, plateId)
  }
  return asks
}

/** Whether the session is a run of one of our agents. If it is, the agent's row shows it. */
const isOwn = ({ agent }: PlateInfo, agents: ReadonlySet<string>): boolean => agent !== null && agents.has(agent)

/** The row that says how many matters the list leaves out. */
const left = (more: number): BoardRow => ({
  ...BARE,
  id: "matter/more",
  kind: "matter",
  name: "agentd",
  word: "needs you",
  says: `and ${more} more matters`,
  commands: [{ does: "see the first of them", command: "agentd waiting" }]
})

const ASKS: ReadonlySet<WaitingRow["kind"]> = new Set(["approval", "question"])

/**
 * Status words of rows that need the user. If such a row has no commands yet, the row itself shows the matter.
 * Otherwise the matter gets a separate row, unless the row already shows it.
 */
const SPEAKS: ReadonlySet<BoardRow["word"]> = new Set(["needs you", "failed", "paused"])

/** Whether the row already shows the matter: it is one of several calls, or messages that are counted in `inbox`. */
const tells = ({ asks, commands, inbox }: BoardRow, { kind }: WaitingRow): boolean =>
  commands.length > 0 && (kind === "held" ? inbox > 0 : asks.length > 1 && ASKS.has(kind))

/** Whether the row already shows that messages wait, because its agent waits for a usage limit to reset. */
const isHeldBack = ({ reason }: BoardRow, { kind }: WaitingRow): boolean => kind === "held" && reason === "limit"

/** Sorts matters: those about an agent's final stop come before those about the messages that are queued for it. */
const inOrder = (matters: ReadonlyArray<WaitingRow>): ReadonlyArray<WaitingRow> =>
  matters.toSorted((a, b) => Number(b.kind === "agent") - Number(a.kind === "agent"))

/** Maximum length of the description of a call, in characters. */
const MOST_TOLD = 400

/** Merges a matter into a row: the row gets the matter's text, with its question, and its commands. */
const taken = (row: BoardRow, { commands, details, kind, text }: WaitingRow): BoardRow => {
  const more = row.asks.length < 2 ? "" : `, and ${row.asks.length - 1} more`
  const asked = ASKS.has(kind) && details[0] !== undefined ? `: ${telling(details[0], MOST_TOLD) || details[0]}` : ""
  return { ...row, says: `${text}${more}${asked}`, commands }
}

const ENDED: ReadonlySet<string> = new Set(["goal_met", "stopped"])
const OVER: ReadonlySet<string> = new Set(["closed", "archived"])
const ALIVE: ReadonlySet<string> = new Set(["created", "active"])
/** Time for which an ended agent, goal or channel is shown, in ms. */
const RECENT = 86_400_000

/** Conversations that are paused, suspended or closing. If a project has no live one, also its newest, for a day. */
const notable = ({ all, conversations }: BoardGiven, now: number): ReadonlyArray<ConversationInfo> => {
  const alive = new Set(conversations.filter(({ state }) => !OVER.has(state)).map(({ config }) => config))
  const newest = new Map<string, ConversationInfo>()
  for (const one of conversations) {
    const known = newest.get(one.config)
    if (known === undefined || known.since < one.since) newest.set(one.config, one)
  }
  return conversations.filter((one) =>
    OVER.has(one.state)
      ? all || (!alive.has(one.config) && newest.get(one.config) === one && now - one.since < RECENT)
      : !ALIVE.has(one.state)
  )
}

/** Builds the rows, by id and unsorted. `now`: ms since the epoch; `made`: the cache of earlier rows. */
export const byId = (given: BoardGiven, now: number, made: Made): ReadonlyMap<string, BoardRow> => {
  const named = WaitingList.namesOf(given)
  const asks = asksOf(given.calls, given.plates, given.agents)
  const agents = new Set(
    given.plates.length === 0 ? [] : given.agents.map(({ agent, project }) => `${project}/${agent}`)
  )
  const things = [
    ...given.agents.map((agent) => made.row(agent, named(agent), asks, given.today)),
    ...given.plates.filter((plate) => !isOwn(plate, agents)).map(ofSession),
    ...given.goals
      .filter(({ since, state }) => given.all || !ENDED.has(state) || now - since < RECENT)
      .map((goal) => ofGoal(goal, `${named(goal)}/${goal.goalId}`)),
    ...given.channels
      .filter(({ closed }) => given.all || !closed)
      .map((channel) => ofChannel(channel, `${named(channel)}/${channel.name}`)),
    ...notable(given, now).map(ofProject),
    ...given.outages.filter(({ state }) => state !== "LoginNeeded").map(ofOutage)
  ]
  const rows = new Map(things.map((row) => [row.id, row]))
  const { more, rows: matters } = WaitingList.listOf(given)
  if (more > 0) rows.set("matter/more", left(more))
  for (const matter of inOrder(matters)) {
    const row = matter.of === undefined ? undefined : rows.get(matter.of)
    if (row === undefined || (!SPEAKS.has(row.word) && !isHeldBack(row, matter)))
      rows.set(`matter/${matter.id}`, ofMatter(matter))
    else if (row.commands.length === 0) rows.set(row.id, taken(row, matter))
    else if (!tells(row, matter)) rows.set(`matter/${matter.id}`, ofMatter(matter))
  }
  return rows
}

export const rowsOf = (given: BoardGiven, now: number): ReadonlyArray<BoardRow> =>
  [...byId(given, now, new Made()).values()].toSorted(Rows.order)

const isAlike = (a: unknown, b: unknown): boolean =>
  a === b || (typeof a === "object" && a !== null && JSON.stringify(a) === JSON.stringify(b))

export const same = (a: BoardRow, b: BoardRow): boolean => {
  const keys = Object.keys(a) as ReadonlyArray<keyof BoardRow>
  return keys.length === Object.keys(b).length && keys.every((key) => isAlike(a[key], b[key]))
}
