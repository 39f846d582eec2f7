/**
 * AgentView: the row of an agent in a list for the user, from the committed state of its machines. Pure. The row
 * depends only on the inbox and on the runes up to `restsOn`.
 */
import { type AgentConfig, backendAt } from "../../config/AgentConfig.ts"
import { accountOf } from "./AccountOf.ts"
import { doing, oneLine } from "../../domain/CallSummary.ts"
import { nearWords, type Reach, type Standing as Allowance } from "../../domain/SpendingLimits.ts"
import * as UsageWindow from "../../domain/UsageWindow.ts"
import { nameOf, type Standing, troubles } from "../../domain/ProviderStatus.ts"
import * as StatusWords from "../../domain/StatusWords.ts"
import { words } from "../actors/AgentAllowance.ts"
import type { AgentInfo, CallInfo, ConversationInfo } from "../../domain/Messages.ts"
import type { Snapshot } from "../../core/event-actor/StateMachine.ts"
import type * as TurnMachine from "../machines/TurnMachine.ts"
import * as WorkerMachine from "../machines/WorkerMachine.ts"
import * as Inbox from "../machines/Inbox.ts"
import type { LiveRun } from "./LiveRun.ts"
import type { Gap } from "./UsageTiming.ts"
import { isDue, spacingOf, untilDue } from "../actors/NextTurn.ts"

export interface Row {
  readonly conversation: string
  readonly project: string
  readonly agent: string
  readonly config: AgentConfig
  readonly worker: Snapshot<WorkerMachine.State, WorkerMachine.Data> | undefined
  readonly turn: Snapshot<TurnMachine.State, TurnMachine.Data>
  /** The agent's tool calls that have no result yet. */
  readonly calls: ReadonlyArray<CallInfo>
  readonly inbox: Inbox.Data
  /** When the inbox last changed, ms since the epoch. */
  readonly inboxAt?: number
  /** True for a sub-agent that waits for a free slot. */
  readonly queued?: boolean
  readonly parent?: string | null
  readonly heard?: LiveRun["heard"]
  readonly line?: LiveRun["line"]
  readonly retries?: LiveRun["retries"]
  readonly preparing?: LiveRun["preparing"]
  /** When the agent's newest question to the user ended, ms since the epoch. */
  readonly answeredAt?: number | undefined
  /** Model of the run's newest request, and how much of its context window is used. */
  readonly asked?: LiveRun["meter"]["newest"]
  /** Whether the run survives the end of the daemon, so that the next daemon can adopt it. */
  readonly outlives?: boolean | undefined
  /** The rules that a person gave for the agent's run, in words. */
  readonly runRules?: ReadonlyArray<string>
  /** Names of services that the run needs but cannot use now, for example a server that is down. */
  readonly lacks?: ReadonlyArray<string>
  /** The run's current mode, as the agent itself names it. */
  readonly mode?: LiveRun["offers"]["mode"]
  readonly background?: LiveRun["background"]
  readonly trouble?: Standing | undefined
  /** Usage windows of the agent's account that are almost exhausted. */
  readonly windows?: ReadonlyArray<UsageWindow.Noted>
  /** Describes a call that the current turn has repeated often; undefined if there is none. */
  readonly same?: string | undefined
  readonly allowance?: Allowance | undefined
  /** Why the agent's limits cannot be enforced for every request; undefined if they can. */
  readonly gap?: Gap | undefined
  /** Why the agent's state could not be rebuilt from its runes; undefined if it could. */
  readonly broken: string | undefined
  readonly home?: (Pick<ConversationInfo, "state" | "conversation"> & { readonly since?: number }) | undefined
  /** The current time, ms since the epoch. */
  readonly now: number
}

export const QUEUED = "waits for a free slot: it starts when another sub-agent has ended"

/** Maximum number of characters shown of a line of the answer. */
const LINE = 160

const fewest = (text: string): string => text.split("\n")[0]!.slice(0, 200)

/**
 * When the cooldown or the minimum interval between runs ends, ms since the epoch; undefined if neither applies. If the
 * clock was set back, the result is at most one such wait from now.
 */
export const restsUntil = ({ config, now, worker }: Pick<Row, "config" | "now" | "worker">): number | undefined => {
  if (worker?.state === "CoolingDown")
    return Math.min(worker.at, now) + WorkerMachine.Worker.timers["cooldown"]!.after(worker.data, worker.at)
  if (worker?.state !== "BuildingPrompt") return undefined
  const spacing = spacingOf(config)
  const due = WorkerMachine.dueAt(worker.data, spacing, now)
  return isDue(worker.data, spacing, now) ? Math.min(due, now) : now + untilDue(worker.data, spacing, now)
}

/** When the worker continues by itself; null if it waits for an event. */
const nextAt = (row: Row): number | null => {
  const { config, now, trouble, worker } = row
  const reached = reachedBy(row)
  if (reached !== undefined) return reached.until !== null && reached.until > now ? reached.until : null
  if (isKept(row)) return trouble!.until > now ? trouble!.until : null
  const due = restsUntil({ config, now, worker })
  if (due === undefined) return null
  // after the cooldown, the agent still waits for its provider
  if (worker?.state === "CoolingDown") return Math.max(due, trouble?.until ?? 0)
  return due > now && hasWork(row) ? due : null
}

/** Time without events after which a model is shown as silent, ms. Its program might be retrying without a report. */
const SILENT = 30_000

/** The newest text from the agent's model, if its program reports text. */
const streaming = ({ config, heard, line, now }: Row): string => {
  if (heard?.notice !== undefined) return fewest(heard.notice)
  const silence = heard === undefined ? 0 : now - heard.at
  if (silence >= SILENT) return `no output for ${Math.floor(silence / 1000)} s`
  if (line !== undefined) return oneLine(line, LINE)
  return config.backend.type === "command" ? "runs its command" : "thinks"
}

const doings = ([first, ...more]: Row["calls"]): string => {
  if (first === undefined) return "between tool calls"
  return `${doing(first.tool, first.arguments)}${more.length === 0 ? "" : ` and ${more.length} more`}`
}

/** How late a scheduled wake-up can be and still be shown, ms. */
const OVERDUE = 60_000

/** Describes the agent's background work; undefined if there is none. */
const beside = ({ background = [], now }: Row): string | undefined => {
  const works = background.filter(({ at = now }) => at >= now - OVERDUE)
  const [first] = works
  if (first === undefined) return undefined
  const due = first.at === undefined ? "" : ` due ${new Date(first.at).toISOString()}`
  const more = works.length > 1 ? ` and ${works.length - 1} more` : ""
  return `works in the background: ${first.kind} ${JSON.stringify(fewest(first.text))}${due}${more}`
}

/** Names the fallback backend in use; empty if the run uses the agent's own backend. */
const standIn = ({ config, worker }: Row): string => {
  const { fallback = 0 } = worker!.data
  if (fallback === 0) return ""
  const account = accountOf(backendAt(config, fallback))
  return ` (on fallback ${fallback}${account === undefined ? "" : `, ${nameOf(account)}`})`
}

/** Describes what the run does now: its current call, or its newest text. */
const running = (row: Row): string => {
  const { calls, retries, turn } = row
  const asks = calls.filter(({ state }) => state === "awaiting_approval")
  const [call] = asks
  if (call !== undefined) {
    const more = asks.length > 1 ? ` and ${asks.length - 1} more` : ""
    const what =
      call.questions === undefined
        ? `asks for ${call.tool}${more}: agentd approve`
        : `asks you to choose${more}: agentd answer`
    return `${what} ${call.callId}`
  }
  if (retries !== undefined && turn.state !== "idle")
    return `retries by itself since ${StatusWords.moment(retries.since, row.now)}: ${fewest(retries.text)}${standIn(row)}`
  switch (turn.state) {
    case "tool_executing":
      return `${doings(calls)}${standIn(row)}`
    case "streaming":
      return `${streaming(row)}${standIn(row)}`
    case "interrupted":
      return "ends its turn"
    default:
      return unanswered(row) ?? `${beside(row) ?? "waits for a message"}${standIn(row)}`
  }
}

/** Describes the agent's unanswered messages; undefined if there are none. */
const unanswered = (row: Row): string | undefined => {
  const held = Inbox.heldBy(row.inbox)
  if (held !== undefined) return `${held.text}: agentd retry ${row.project}/${row.agent}`
  const { dropped, more } = Inbox.droppedOf(row.inbox)
  const last = dropped.at(-1)
  if (last === undefined) return undefined
  const count = dropped.length + more
  if (last.errorType === "circle") return `waits after ${last.reason}: agentd retry ${row.project}/${row.agent}`
  const what = count === 1 ? "a message" : `${count} messages`
  return `${what} got no answer (${last.errorType}): agentd retry ${row.project}/${row.agent}`
}

/** For an idle agent of a paused or suspended project: says why the agent waits, and names its unanswered messages. */
const held = (row: Row): string => {
  const text = `its project is ${row.home!.state}: agentd project resume ${row.home!.conversation}`
  const open = unanswered(row)
  return open === undefined ? text : `${open}; ${text}`
}

const hasWork = ({ config, inbox, turn }: Row): boolean =>
  config.mode === "loop" || inbox.waiting.length > 0 || turn.data.unfinished.length > 0

const weather = (trouble: Standing): string =>
  `${nameOf(trouble)} ${troubles[trouble.state]}: ${fewest(trouble.message)}`

/** True if the agent could start a turn now and has work for one. */
const isReady = (row: Row): boolean => {
  const { turn, worker } = row
  if (!hasWork(row)) return false
  return worker?.state === "BuildingPrompt" || (worker?.state === "Running" && turn.state === "idle")
}

/** True if a problem of the agent's provider is the only thing that prevents work. */
const isKept = (row: Row): boolean => row.trouble !== undefined && isReady(row)

/** The reached limit that prevents the agent's next turn; undefined if there is none. */
const reachedBy = (row: Row): Reach | undefined => (isReady(row) ? row.allowance?.reached : undefined)

/** Describes limits that are almost reached. Shown in every state of the agent. */
const nearing = ({ allowance, gap, same, windows = [], worker }: Row): string => {
  if (worker === undefined || worker.state === "Stopped") return ""
  const all = allowance?.near ?? []
  const near = all.find(({ mark }) => mark === undefined)
  const words = [
    ...all.flatMap(({ mark }) => mark ?? []),
    ...(same === undefined ? [] : [same]),
    ...(near === undefined ? [] : [nearWords(near)]),
    ...windows.map((window) => UsageWindow.nearWords(window)),
    ...(gap === undefined ? [] : [gap.word])
  ]
  return words.length === 0 ? "" : ` (${words.join("; ")})`
}

/** Names the services that the run needs but cannot use. The run's notices explain why. */
const without = ({ lacks = [] }: Row): string => (lacks.length === 0 ? "" : `; without ${lacks.join(", ")}`)

/** Names the run's own mode, and warns if calls run without approval in that mode. */
const inMode = ({ mode }: Row): string =>
  mode === undefined ? "" : ` (mode ${fewest(mode.id)}${mode.isUnasked ? ": calls run without approval" : ""})`

/** True if the agent's project is paused or suspended, so that no turn can start. */
const isHeld = ({ home }: Row): boolean => home?.state === "paused" || home?.state === "suspended"

/** Why the agent waits, if the wait ends by itself; null if the agent does not wait or the user must act. */
const waitsFor = (row: Row): StatusWords.Reason | null => {
  const { trouble, worker } = row
  if (row.queued === true) return "place"
  const reached = reachedBy(row)
  if (reached !== undefined) return reached.until === null ? null : "limit"
  if (isKept(row) || (worker?.state === "CoolingDown" && trouble !== undefined))
    return trouble!.state === "LimitedUntil" ? "limit" : trouble!.state === "LoginNeeded" ? "login" : "network"
  return worker?.state === "BuildingPrompt" && nextAt(row) !== null ? "run" : null
}

/**
 * When the agent became ready for its current work, ms since the epoch: its last work had ended and the new work had
 * arrived.
 */
const readyAt = ({ inbox, turn, worker }: Row): number =>
  Math.max(worker?.at ?? 0, turn.at, ...inbox.waiting.slice(0, 1).map(({ at }) => at))

/** When each open request of the agent to the user was made, ms since the epoch. */
const asking = (row: Row): ReadonlyArray<number> => {
  const { calls, inbox, queued, turn, worker } = row
  const { dropped, more } = Inbox.droppedOf(inbox)
  const isNew = worker === undefined && queued !== true && inbox.waiting.length > 0
  return [
    ...calls.filter(({ state }) => state === "awaiting_approval").map(({ since }) => since),
    ...(turn.state === "idle" && dropped.length + more > 0 ? [dropped[0]?.at ?? turn.at] : []),
    ...[...(inbox.questions ?? []), ...(inbox.bounds ?? [])].map(({ at }) => at),
    ...(isNew || reachedBy(row)?.until === null ? [readyAt(row)] : [])
  ]
}

/** Since when the agent has its current status, ms since the epoch; 0 before the first transition. */
const since = (row: Row, word: StatusWords.Word): number => {
  const { answeredAt = 0, home, inboxAt = 0, retries, trouble, turn, worker } = row
  const at = worker?.at ?? 0
  switch (word) {
    case "needs you":
      return worker?.state === "Stopped" ? readyAt(row) : Math.min(...asking(row))
    case "paused":
      return Math.max(home?.since ?? 0, at, turn.at)
    case "retrying":
      return worker?.state === "CoolingDown" ? at : (retries?.since ?? at)
    case "waiting":
      if (worker?.state === "CoolingDown") return at
      return Math.max(isKept(row) ? trouble!.since : 0, waitsFor(row) === "run" ? Math.max(at, turn.at) : readyAt(row))
    case "working":
      if (worker === undefined || worker.state === "BuildingPrompt") return readyAt(row)
      if (worker.state !== "Running") return at
      return turn.state === "idle" && isReady(row) ? readyAt(row) : Math.max(turn.data.startedAt ?? at, answeredAt)
    case "idle":
      return Math.max(at, turn.at, inboxAt)
    default:
      return at
  }
}

const word = (row: Row): StatusWords.Word => {
  const { background = [], broken, inbox, retries, turn, worker } = row
  if (broken !== undefined) return "failed"
  const stoppedBy = worker?.data.stoppedBy ?? null
  const isOver = stoppedBy?.startsWith("agent:") === true
  return StatusWords.wordOf(StatusWords.worker, worker?.state ?? "BuildingPrompt", {
    asks: asking(row).length > 0,
    retries: retries !== undefined && turn.state !== "idle",
    holds: inbox.waiting.length > 0,
    held: isHeld(row),
    waits: waitsFor(row),
    // an agent that is ready and has work will start a turn at once
    works: isBusy(row) || background.length > 0 || (isReady(row) && !isHeld(row) && waitsFor(row) === null),
    wasStopped: stoppedBy !== null && !isOver,
    isOver
  })
}

const detail = (row: Row): string => {
  const { broken, worker } = row
  if (broken !== undefined) return `its log is inconsistent: ${broken}`
  if (row.queued === true) return QUEUED
  if (worker === undefined) return "was never started"
  const { data } = worker
  const reached = reachedBy(row)
  if (reached !== undefined) return words(reached)
  if (isKept(row)) return weather(row.trouble!)
  const { preparing } = row
  if (preparing !== undefined && worker.state !== "Stopped")
    return `${preparing.text}, ${Math.max(0, Math.round((row.now - preparing.since) / 1000))} s`
  switch (worker.state) {
    case "Initializing":
      return "prepares its working folder"
    case "BuildingPrompt":
      if (isHeld(row)) return held(row)
      return nextAt(row) === null ? (unanswered(row) ?? "waits for a message") : "waits for its next run"
    case "Spawning":
      return `starts run ${Math.max(1, data.sessionSeq)}`
    case "Running":
      return `${running(row)}${inMode(row)}${without(row)}`
    case "Interrupting":
      return "ends its run for what is urgent"
    case "SessionComplete":
      return "has finished a run successfully"
    case "CoolingDown":
      return `after: ${fewest(data.cutShort ?? data.lastError ?? "a run that is not counted")}`
    case "Stopped":
      return data.fatal === null ? `stopped by ${data.stoppedBy ?? "a person"}` : fewest(data.fatal.message)
  }
}

const droppedIn = (inbox: Inbox.Data): { readonly dropped?: number } => {
  const { dropped, more } = Inbox.droppedOf(inbox)
  return dropped.length + more === 0 ? {} : { dropped: dropped.length + more }
}

/** True if the agent stopped permanently and no operator stopped it. */
const hasFailed = ({ broken, worker }: Row): boolean =>
  broken !== undefined || (worker?.state === "Stopped" && worker.data.stoppedBy === null)

const isBusy = ({ turn, worker }: Row): boolean =>
  worker?.state === "Spawning" ||
  worker?.state === "Interrupting" ||
  (worker?.state === "Running" && turn.state !== "idle")

/** The model that the run reports, or else the model in the config. */
const modelOf = ({ asked, config, worker }: Row): string => {
  const backend = backendAt(config, worker?.data.fallback ?? 0)
  const configured = "model" in backend ? (backend.model ?? "") : ""
  return asked === undefined || asked.model === "" ? configured : asked.model
}

export const row = (of: Row): AgentInfo => {
  const data = of.worker?.data
  const isOver = of.broken !== undefined || of.worker?.state === "Stopped"
  const is = word(of)
  return {
    conversation: of.conversation,
    project: of.project,
    agent: of.agent,
    backend: of.config.backend.type,
    mode: of.config.mode,
    ...(of.parent == null ? {} : { parent: of.parent }),
    role: of.config.role ?? "",
    ...(of.config.labels.length === 0 ? {} : { labels: of.config.labels }),
    model: modelOf(of),
    ...(of.asked?.context === undefined ? {} : { context: of.asked.context }),
    word: is,
    reason: waitsFor(of),
    state: of.broken === undefined ? (of.worker?.state ?? "Stopped") : "Stopped",
    since: since(of, is),
    restsOn: of.worker?.entered ?? 0,
    detail: detail(of) + nearing(of),
    nextAt: nextAt(of),
    runId: isOver ? null : (data?.runId ?? null),
    pid: isOver ? null : (data?.pid ?? null),
    sessionSeq: data?.sessionSeq ?? 0,
    consecutiveErrors: data?.consecutiveErrors ?? 0,
    totalErrors: data?.totalErrors ?? 0,
    maxConsecutiveErrors: data?.limits.maxConsecutiveErrors ?? of.config.maxConsecutiveErrors,
    maxTotalErrors: data?.limits.maxTotalErrors ?? of.config.maxTotalErrors,
    inbox: of.inbox.waiting.length,
    ...(isBusy(of) ? { busy: true } : {}),
    ...(of.outlives === undefined ? {} : { outlives: of.outlives }),
    ...(of.runRules === undefined || of.runRules.length === 0 ? {} : { runRules: of.runRules }),
    ...(reachedBy(of) === undefined ? {} : { spent: true }),
    ...(of.gap === undefined ? {} : { unmetered: of.gap.text }),
    ...droppedIn(of.inbox),
    ...(hasFailed(of) ? { failed: true } : {}),
    cwd: data?.cwd ?? null,
    branch: data?.branch ?? null
  }
}
