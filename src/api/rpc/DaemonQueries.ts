/**
 * DaemonQueries: answers questions that concern several features of the daemon: its status, the reasons for an agent's
 * state, the runes of the log, and the item that an answer decides.
 *
 * Guarantees: this module has no state.
 */
import { Clock, Effect, Option, Stream } from "effect"
import { Agents } from "../../projects/service/Agents.ts"
import type { Agreed } from "../../projects/ConfigTrust.ts"
import { explain } from "../../projects/service/Explain.ts"
import type { Lasting } from "../../approvals/AnswerScope.ts"
import { Channels } from "../../channels/Channels.ts"
import { type AgentInfo, type Caller, CommandRefused, type ProjectInfo, refuse } from "../../domain/Messages.ts"
import { Goals } from "../../goals/Goals.ts"
import * as GoalWhy from "../../goals/GoalWhy.ts"
import * as CallBatch from "../../board/CallBatch.ts"
import { callIdOf } from "../../board/WaitingGroups.ts"
import * as WaitingList from "../../board/WaitingList.ts"
import { Plates } from "../../plates/Plates.ts"
import { SpendingLimits } from "../../domain/SpendingLimits.ts"
import { EventLog, type RuneRefused, type StorageError } from "../../core/event-log/EventLog.ts"
import { repeatsOf } from "../../core/event-log/RepeatedText.ts"
import { type CostKey, grouped, limitsOf } from "../../board/CostMessages.ts"
import * as AnswerTarget from "../../board/AnswerTarget.ts"
import type * as BoardSections from "../../board/BoardSections.ts"
import { DaemonControl } from "./DaemonControl.ts"
import { actorsOf, select } from "../../board/LogReader.ts"
import { WORDS } from "../../domain/StatusWords.ts"
import type { LogSelection, StateCount, VerifyEvent, WordCount } from "../../board/DaemonMessages.ts"
import { partsOf } from "../../board/TreeMessages.ts"
import * as Timeline from "../../board/Timeline.ts"
import * as Version from "./Version.ts"

export type Needs = Agents | Channels | DaemonControl | EventLog | Goals | Plates

/** Number of agents per status word, those that a user must look at first. */
export const countWords = (agents: ReadonlyArray<AgentInfo>): ReadonlyArray<WordCount> =>
  WORDS.flatMap((word) => {
    const so = agents.filter((agent) => agent.word === word)
    return so.length === 0 ? [] : [{ word, agents: so.length, restsOn: Math.max(...so.map(({ restsOn }) => restsOn)) }]
  })

export const countStates = (agents: ReadonlyArray<AgentInfo>): ReadonlyArray<StateCount> => {
  const counts = new Map<string, StateCount>()
  for (const { state, restsOn } of agents) {
    const before = counts.get(state)
    counts.set(state, {
      state,
      agents: (before?.agents ?? 0) + 1,
      restsOn: Math.max(before?.restsOn ?? 0, restsOn)
    })
  }
  return [...counts.values()].toSorted((a, b) => a.state.localeCompare(b.state))
}

/** Verifies the log, and reports progress each second. */
const verify: Stream.Stream<VerifyEvent, StorageError, EventLog> = Stream.unwrap(
  Effect.gen(function* () {
    const log = yield* EventLog
    const started = yield* Clock.currentTimeMillis
    const runes = yield* log.head
    const beat = Stream.tick("1 second").pipe(
      Stream.drop(1),
      Stream.mapEffect(() => Clock.currentTimeMillis),
      Stream.map((now): VerifyEvent => ({ _tag: "Progress", elapsed: now - started }))
    )
    const verdict = Stream.fromEffect(log.verify).pipe(
      Stream.map((found): VerifyEvent => ({ _tag: "Verdict", ...found }))
    )
    return Stream.concat(
      Stream.succeed<VerifyEvent>({ _tag: "Started", runes }),
      Stream.merge(verdict, beat, { haltStrategy: "left" })
    )
  })
)

const reading = Effect.fnUntraced(function* (input: LogSelection) {
  const agents = yield* Agents
  const agent = input.agent === undefined ? undefined : yield* agents.agent(input.agent, input.caller)
  const stream = agent?.conversation ?? input.stream
  const selection = {
    ...(input.after === undefined ? {} : { after: input.after }),
    ...(input.since === undefined ? {} : { since: input.since }),
    ...(input.kinds === undefined ? {} : { kinds: input.kinds }),
    ...(stream === undefined ? {} : { stream }),
    ...(agent === undefined ? {} : { actors: actorsOf(agent.agent) })
  }
  return select(yield* EventLog, selection, input, (yield* DaemonControl).kinds)
})

const why = Effect.fnUntraced(function* (name: string, caller: Caller) {
  const agent = yield* (yield* Agents).agent(name, caller)
  return { agent, ...(yield* explain(agent)) }
})

/** Explains the state of an agent or a goal. A name such as `g3` is a goal, unless an agent has this name. */
const explainAny = Effect.fnUntraced(function* (name: string, caller: Caller) {
  if (!GoalWhy.isName(name)) return yield* why(name, caller)
  const isAgent = yield* Effect.option((yield* Agents).agent(name, caller))
  if (isAgent._tag === "Some") return yield* why(name, caller)
  const page = yield* (yield* Goals).page(name, 0, caller)
  return { goal: page.goal, ...GoalWhy.whyOf(page, yield* GoalWhy.stepsOf(yield* EventLog, page.goal)) }
})

const report = Effect.gen(function* () {
  const agents = yield* Agents
  const daemon = yield* DaemonControl
  const status = yield* daemon.status
  const now = yield* Clock.currentTimeMillis
  const accounts = yield* daemon.accounts
  const all = yield* agents.all
  return {
    daemon: status,
    uptime: Math.max(0, now - status.startedAt),
    projects: yield* agents.projects,
    states: countStates(all),
    words: countWords(all),
    accounts: accounts.filter(({ state, windows }) => state !== "Available" || windows.length > 0)
  }
})

/**
 * The rows of a feature's list; empty if the feature does not answer within a second, because it is still reading its
 * log.
 */
const soon = <A>(rows: Effect.Effect<ReadonlyArray<A>>) =>
  Effect.map(Effect.timeoutOption(rows, "1 second"), (found) => (found._tag === "Some" ? found.value : []))

/** Data for the board and for the list of waiting items that does not concern agents. */
const others = Effect.fnUntraced(function* (closed: boolean) {
  const agents = yield* Agents
  const daemon = yield* DaemonControl
  const status = yield* daemon.status
  return {
    startedAt: status.startedAt,
    http: status.http,
    channels: yield* soon((yield* Channels).list),
    conversations: yield* agents.conversations,
    goals: yield* soon((yield* Goals).list({ all: true }, everybody)),
    outbox: status.outbox,
    log: status.log,
    outages: yield* daemon.outages,
    plates: yield* (yield* Plates).list({ closed }),
    replaced: status.replaced === true,
    ownConfig: status.ownConfig,
    keeper: status.keeper,
    doubt: status.zone?.doubt ?? null,
    behind: status.reading?.behind,
    archives: status.reading?.archives,
    aside: status.reading?.aside ?? [],
    projects: yield* agents.projects
  }
})

/** All data for the board and for the list of waiting items. */
export const gathered = Effect.fnUntraced(function* (closed: boolean) {
  const agents = yield* Agents
  const rest = yield* others(closed)
  const given: WaitingList.Given & { readonly startedAt: number } = {
    ...rest,
    agents: yield* agents.all,
    backlog: yield* agents.backlog,
    calls: yield* agents.calls
  }
  return given
})

const everybody: Caller = { by: "agentd", config: null }

/** Reads only those parts of the data in `gathered` that have changed. */
export const someOf = Effect.fnUntraced(function* (
  parts: BoardSections.Parts
): Effect.fn.Return<BoardSections.News, never, Needs> {
  const { lists } = parts
  const read = yield* (yield* Agents).some(parts.agents.values())
  if (lists.has("others")) return { agents: read, ...(yield* others(false)) }
  return {
    agents: read,
    ...(lists.has("channels") ? { channels: yield* soon((yield* Channels).list) } : {}),
    ...(lists.has("goals") ? { goals: yield* soon((yield* Goals).list({ all: true }, everybody)) } : {}),
    ...(lists.has("plates") ? { plates: yield* (yield* Plates).list({ closed: false }) } : {})
  }
})

export const listing = Effect.map(gathered(false), WaitingList.listOf)

/** The list, with the calls that wait for approval by kind. */
const waiting = Effect.gen(function* () {
  const agents = yield* Agents
  const reply = yield* listing
  const ids = reply.rows.flatMap((row) => (row.kind === "approval" ? (callIdOf(row) ?? []) : []))
  // a call that was answered in the meantime is in no batch
  const asked = yield* Effect.forEach(ids, (id) => Effect.option(agents.askedCall(id)))
  return ids.length === 0 ? reply : { ...reply, batches: CallBatch.batchesOf(asked.flatMap(Option.toArray)) }
})

/** Waits until the channels in a valid project file exist, so that the next command finds them. */
const awaitChannels = Effect.fnUntraced(function* ({ conversation, problems }: ProjectInfo) {
  if (problems.length === 0) yield* Effect.timeoutOption((yield* Channels).configured(conversation), "5 seconds")
})

const greeting = (peer: Version.Peer) => {
  const refused = Version.mismatch(peer)
  return refused === undefined
    ? Effect.succeed({ ...Version.ourselves, oldest: Version.OLDEST_PROTOCOL })
    : Effect.fail(new CommandRefused({ code: "unsupported", ...refused }))
}

const partsNamed = Effect.fnUntraced(function* (name: string | null) {
  const tree = yield* (yield* DaemonControl).tree
  if (name === null) return tree.map((row) => ({ ...row, newest: [] }))
  const found = partsOf(tree, name)
  return found.length > 0
    ? found
    : yield* refuse("not_found", `The daemon has no part "${name}".`, "List the parts: agentd status --tree")
})

/**
 * Requests the daemon's end. `keep`: another daemon will follow. An agent may not request that if its own run would
 * end, because then nobody might start the next daemon, or the agent's turn would start again and restart the daemon
 * again and again.
 */
const shutdown = Effect.fnUntraced(function* (reason: string, by: string, keep: boolean) {
  const daemon = yield* DaemonControl
  const own = (yield* (yield* Agents).all).find(
    ({ agent, busy, outlives }) => by === `agent:${agent}` && busy && !outlives
  )
  if (keep && own !== undefined) {
    return yield* refuse(
      "not_allowed",
      `${by} may not restart the daemon: its own run would end with it.`,
      "A person must do it, in a terminal that no agent started: agentd restart"
    )
  }
  const { pid } = yield* daemon.status
  yield* daemon.shutdown(reason, by, keep)
  return { pid }
})

const refusing = <A, R>(effect: Effect.Effect<A, StorageError | RuneRefused, R>) =>
  Effect.catchTag(effect, "RuneRefused", ({ message }) =>
    Effect.fail(
      refuse("conflict", `Nothing was erased: ${message}.`, "See the runes and what they hold: agentd log --json")
    )
  )

const erasable = Effect.fnUntraced(function* (eventId: number) {
  const log = yield* EventLog
  const found = yield* log.erasable(eventId)
  const { more, runes } = yield* repeatsOf(log, eventId)
  return { ...found, also: runes, more }
})

const projectNames = Effect.gen(function* () {
  const conversations = yield* (yield* Agents).conversations
  return new Map(conversations.map(({ conversation, project }) => [conversation, project]))
})

const costs = Effect.fnUntraced(function* (by: ReadonlyArray<CostKey>, since: string) {
  const spent = yield* (yield* SpendingLimits).costs(since, { hours: by.includes("hour") })
  return grouped(spent, by, yield* projectNames)
})

const limits = Effect.gen(function* () {
  return limitsOf((yield* SpendingLimits).limits(), yield* projectNames)
})

/** Hashes of the files to which a payload refers, at any depth of nesting. */
const filesIn = (value: unknown): ReadonlyArray<string> =>
  typeof value !== "object" || value === null
    ? []
    : Object.entries(value).flatMap(([name, inner]) =>
        typeof inner === "string" ? (name === "sha256" ? [inner] : []) : filesIn(inner)
      )

/** Ids of the calls to which a payload refers, at any depth of nesting. */
const callsIn = (value: unknown): ReadonlyArray<string> =>
  typeof value !== "object" || value === null
    ? []
    : Object.entries(value).flatMap(([name, inner]) =>
        typeof inner === "string" ? (name === "call_id" || name === "callId" ? [inner] : []) : callsIn(inner)
      )

/**
 * Erases a rune's payload. The input of a waiting call and the files of a message are stored in files outside the log.
 * These are deleted first, so that no copy remains if the erasure is interrupted. The call can then still be denied.
 */
const erase = Effect.fnUntraced(function* (eventId: number, also: boolean, by: string) {
  const agents = yield* Agents
  const log = yield* EventLog
  const one = Effect.fnUntraced(function* (id: number) {
    const { fields } = yield* log.erasable(id)
    const rune = yield* log.get(id)
    if (fields.some((field) => field.split(".").includes("arguments")))
      yield* agents.forgetInputs(callsIn(rune?.payload))
    // if a message is erased, its files are deleted, too
    if (fields.some((field) => field.endsWith("sha256"))) yield* agents.forgetFiles(filesIn(rune?.payload))
    return yield* log.erase(id, by)
  })
  const { runes } = also ? yield* repeatsOf(log, eventId) : { runes: [] }
  const found = yield* one(eventId)
  const gone = yield* Effect.forEach(runes, (rune) =>
    one(rune.eventId).pipe(
      Effect.as([rune]),
      // a rune cannot be erased if its text is part of a state
      Effect.catchTag("RuneRefused", () => Effect.succeed([]))
    )
  )
  return { ...found, also: gone.flat(), more: also && (yield* repeatsOf(log, eventId)).more }
})

export const make = Effect.gen(function* () {
  const context = yield* Effect.context<Needs>()
  const here = <A, E>(effect: Effect.Effect<A, E, Needs>) => Effect.provideContext(effect, context)
  return {
    greeting,
    status: here(report),
    register: (config: string, caller: Caller, agreed: Agreed) =>
      here(Effect.flatMap(Agents, (agents) => Effect.tap(agents.register(config, caller, agreed), awaitChannels))),
    asked: (name: string, caller: Caller) => here(AnswerTarget.asked(name, caller)),
    answer: (name: string, answer: AnswerTarget.Given, caller: Caller) =>
      here(AnswerTarget.answer(name, answer, caller)),
    answerPreview: (name: string, lasting: Lasting, caller: Caller) =>
      here(AnswerTarget.preview(name, lasting, caller)),
    log: (input: LogSelection) => Stream.provideContext(Stream.unwrap(reading(input)), context),
    why: (name: string, caller: Caller) => here(why(name, caller)),
    explain: (name: string, caller: Caller) => here(explainAny(name, caller)),
    timeline: Timeline.make(yield* EventLog, yield* Agents, (yield* DaemonControl).kinds),
    waiting: here(waiting),
    verify: Stream.provideContext(verify, context),
    erasable: (eventId: number) => here(refusing(erasable(eventId))),
    erase: (eventId: number, also: boolean, { by }: Caller) => here(refusing(erase(eventId, also, by))),
    shutdown: (reason: string, by: string, keep: boolean) => here(shutdown(reason, by, keep)),
    tree: (name: string | null) => here(partsNamed(name)),
    costs: (by: ReadonlyArray<CostKey>, since: string) => here(costs(by, since)),
    limits: here(limits)
  }
})
export type DaemonQueries = Effect.Success<typeof make>
