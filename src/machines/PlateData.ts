/**
 * PlateData: what a plate holds, and how each event changes it.
 *
 * A session is not one slot but several sets: a turn, the open prompts, the work
 * in the background, the process. Claude Code's hooks and a run's events add to
 * them and take from them; the five events of `/events`
 * overwrite them. Applying an event twice changes nothing more. Every set is bounded.
 */
import type { Event } from "./Plate.ts"

/** A dialog that waits for a person, keyed by agent and tool. */
export interface Prompt {
  /** The subagent that asks; null for the main one. */
  readonly agentId: string | null
  /** `*` where only a notification told of it. */
  readonly tool: string
  readonly kind: "question" | "plan" | "permission"
}

/** What a status rests on. */
export type Signal = "stream" | "hook" | "transcript" | "process"

export interface Data {
  readonly plateId: string | null
  readonly cwd: string | null
  /** Process ids that are this session's, newest last. */
  readonly pids: ReadonlyArray<number>
  /** Those of processes of this session that are gone, newest last. */
  readonly formerPids: ReadonlyArray<number>
  readonly branch: string | null
  /** An attribute: a clear or a fork changes it. */
  readonly sessionId: string | null
  /** Ids that this session no longer has, newest last. */
  readonly formerIds: ReadonlyArray<string>
  readonly transcriptPath: string | null
  readonly closed: boolean
  readonly forgotten: boolean
  readonly turn: boolean
  readonly compacting: boolean
  readonly prompts: ReadonlyArray<Prompt>
  /** Announced and not ended. */
  readonly background: ReadonlyArray<string>
  /** Why the last turn failed; null when it did not. */
  readonly failure: string | null
  /** Tool calls that have ended, newest last: a late start of one opens nothing. */
  readonly endedCalls: ReadonlyArray<string>
  /** What the status rests on, and when that came, ms since the epoch. */
  readonly signal: { readonly from: Signal; readonly at: number } | null
  /** The timestamp of the newest event of `/events`. */
  readonly timestamp: number | null
}

export const initial: Data = {
  plateId: null,
  cwd: null,
  pids: [],
  formerPids: [],
  branch: null,
  sessionId: null,
  formerIds: [],
  transcriptPath: null,
  closed: false,
  forgotten: false,
  turn: false,
  compacting: false,
  prompts: [],
  background: [],
  failure: null,
  endedCalls: [],
  signal: null,
  timestamp: null
}

/** Most entries of each set; the oldest give way. */
const MAX = { pids: 4, formerPids: 8, formerIds: 8, prompts: 64, background: 256, endedCalls: 256 } as const

const withLast = <A>(list: ReadonlyArray<A>, item: A, max: number): ReadonlyArray<A> =>
  list.includes(item) ? list : [...list, item].slice(-max)

const kindOf = (tool: string): Prompt["kind"] =>
  tool === "AskUserQuestion" ? "question" : tool === "ExitPlanMode" ? "plan" : "permission"

const same = (a: Prompt, b: Prompt): boolean => a.agentId === b.agentId && a.tool === b.tool

const opened = (data: Data, prompt: Prompt): Data =>
  data.prompts.some((open) => same(open, prompt))
    ? data
    : { ...data, prompts: [...data.prompts, prompt].slice(-MAX.prompts) }

const closedWhere = (data: Data, gone: (prompt: Prompt) => boolean): Data =>
  data.prompts.some(gone) ? { ...data, prompts: data.prompts.filter((prompt) => !gone(prompt)) } : data

const cleared = {
  turn: false,
  compacting: false,
  prompts: [],
  background: [],
  failure: null
} as const satisfies Partial<Data>

/** A main agent that acts has a turn; a subagent may act in the background. */
const acting = (data: Data, agentId: string | null): Data =>
  agentId === null ? { ...data, turn: true, failure: null } : data

/** A call's end closes what it asked; a prompt known only by a notification is closed by any end of its agent's. */
const callEnded = (data: Data, agentId: string | null, tool: string, callId: string | undefined): Data => {
  const prompts = closedWhere(data, (prompt) => prompt.agentId === agentId && [tool, "*"].includes(prompt.tool))
  return callId === undefined
    ? prompts
    : { ...prompts, endedCalls: withLast(prompts.endedCalls, callId, MAX.endedCalls) }
}

/** The end of the main agent's turn; `background` is what goes on without it. */
const turnEnded = (data: Data, background: ReadonlyArray<string>, failure: string | null): Data => ({
  ...closedWhere(data, (prompt) => prompt.agentId === null || !background.includes(prompt.agentId)),
  turn: false,
  compacting: false,
  background: background.slice(-MAX.background),
  failure
})

const started = (data: Data, event: Extract<Event, { readonly _tag: "HookSessionStart" }>): Data => {
  const pids = event.pid === undefined ? [] : [event.pid]
  return {
    ...data,
    // A compaction goes on within its turn; every other start shows an idle screen.
    ...(event.source === "compact" ? { compacting: false } : cleared),
    pids: pids.reduce((all, pid) => withLast(all, pid, MAX.pids), data.pids),
    formerPids: data.formerPids.filter((pid) => pid !== event.pid),
    closed: false,
    cwd: event.cwd ?? data.cwd,
    transcriptPath: event.transcriptPath ?? data.transcriptPath,
    sessionId: event.sessionId,
    formerIds: data.formerIds.filter((id) => id !== event.sessionId)
  }
}

const notified = (data: Data, type: string): Data => {
  if (type === "idle_prompt") return turnEnded(data, data.background, data.failure)
  if (type === "agent_needs_input") return opened(data, { agentId: null, tool: "*", kind: "question" })
  // It follows its PermissionRequest by seconds: news only where that was missed.
  return data.prompts.length > 0 ? data : opened(data, { agentId: null, tool: "*", kind: "permission" })
}

type Change<T extends Event["_tag"]> = (data: Data, event: Extract<Event, { readonly _tag: T }>) => Data

interface Call {
  readonly agentId?: string | undefined
  readonly tool: string
  readonly callId: string
}

const promptOpened = (data: Data, event: Omit<Call, "callId">, callId?: string): Data => {
  const agentId = event.agentId ?? null
  const active = acting(data, agentId)
  return callId !== undefined && data.endedCalls.includes(callId)
    ? active
    : opened(active, { agentId, tool: event.tool, kind: kindOf(event.tool) })
}

const callStarted = (data: Data, event: Call): Data =>
  kindOf(event.tool) === "permission" ? acting(data, event.agentId ?? null) : promptOpened(data, event, event.callId)

const turnStarted = (data: Data, endedTask?: string): Data => ({
  ...closedWhere(data, (prompt) => prompt.agentId === null),
  turn: true,
  compacting: false,
  failure: null,
  background: data.background.filter((id) => id !== endedTask)
})

const overwritten = (data: Data): Data => ({ ...data, ...cleared, turn: true })

const exited = (data: Data, pid: number | undefined): Data => ({
  ...data,
  ...cleared,
  closed: true,
  pids: [],
  formerPids: (pid === undefined ? data.pids : [...data.pids, pid]).reduce(
    (all, former) => withLast(all, former, MAX.formerPids),
    data.formerPids
  )
})

/** What each event says of the sets. */
const changes: { readonly [t in Event["_tag"]]: Change<t> } = {
  // The five of `/events` overwrite.
  SessionStart: (data, event) => ({
    ...overwritten(data),
    closed: false,
    formerIds: data.formerIds.filter((id) => id !== event.sessionId),
    cwd: event.cwd ?? data.cwd,
    transcriptPath: event.transcriptPath ?? data.transcriptPath,
    branch: event.gitBranch ?? data.branch
  }),
  PromptSubmit: overwritten,
  ToolCall: overwritten,
  ToolStart: (data, event) => {
    const kind = kindOf(event.tool)
    return { ...overwritten(data), prompts: kind === "permission" ? [] : [{ agentId: null, tool: event.tool, kind }] }
  },
  Stop: (data, event) => ({ ...data, ...cleared, failure: event.error ?? null }),
  // Claude Code's hooks and a run's events add and take.
  HookSessionStart: started,
  HookSessionEnd: (data, event) => ({
    ...(event.sessionId === data.sessionId || data.sessionId === null ? { ...data, ...cleared } : data),
    formerIds: withLast(data.formerIds, event.sessionId, MAX.formerIds)
  }),
  HookUserPromptSubmit: (data, event) => turnStarted(data, event.endedTask),
  RunTurnStarted: (data) => turnStarted(data),
  HookPreToolUse: callStarted,
  RunToolCalled: callStarted,
  HookPermissionRequest: (data, event) => promptOpened(data, event),
  RunApprovalRequested: (data, event) => promptOpened(data, event, event.callId),
  HookPostToolUse: (data, event) => {
    const agentId = event.agentId ?? null
    const after = acting(callEnded(data, agentId, event.tool, event.callId), agentId)
    return event.launched === undefined
      ? after
      : { ...after, background: withLast(after.background, event.launched, MAX.background) }
  },
  HookPostToolUseFailure: (data, event) => {
    const agentId = event.agentId ?? null
    const after = callEnded(data, agentId, event.tool, event.callId)
    return event.isInterrupt ? after : acting(after, agentId)
  },
  RunToolEnded: (data, event) => {
    const agentId = event.agentId ?? null
    return acting(callEnded(data, agentId, event.tool, event.callId), agentId)
  },
  HookPermissionDenied: (data, event) => callEnded(data, event.agentId ?? null, event.tool, event.callId),
  // Every call of the batch has ended, the refused ones, too: nothing of this agent's is open.
  HookPostToolBatch: (data, event) => {
    const agentId = event.agentId ?? null
    return acting(
      closedWhere(data, (prompt) => prompt.agentId === agentId),
      agentId
    )
  },
  HookNotification: (data, event) => notified(data, event.notificationType),
  HookStop: (data, event) => turnEnded(data, event.backgroundTasks, null),
  HookStopFailure: (data, event) => turnEnded(data, data.background, event.error),
  RunTurnEnded: (data, event) => turnEnded(data, data.background, event.error ?? null),
  HookSubagentStop: (data, event) => ({
    ...closedWhere(data, (prompt) => prompt.agentId === event.agentId),
    background: data.background.filter((id) => id !== event.agentId)
  }),
  HookElicitation: (data, event) =>
    opened(data, { agentId: null, tool: `elicitation:${event.server}`, kind: "question" }),
  HookElicitationResult: (data, event) => closedWhere(data, (prompt) => prompt.tool === `elicitation:${event.server}`),
  HookPreCompact: (data) => ({ ...data, compacting: true }),
  HookPostCompact: (data) => ({ ...data, compacting: false }),
  // The transcript: an interrupt ends prompts, too; silence says nothing of a question that is open.
  HealthCheckRecovery: (data) => ({ ...data, ...cleared }),
  TurnEndObserved: (data, event) =>
    event.why === "interrupt"
      ? turnEnded(data, data.background, null)
      : { ...data, turn: false, compacting: false, background: [] },
  Registered: (data, event) => ({
    ...data,
    plateId: event.plateId,
    cwd: event.cwd,
    pids: event.pid === undefined ? data.pids : withLast(data.pids, event.pid, MAX.pids)
  }),
  ProcessExited: (data, event) => exited(data, event.pid),
  Forgotten: (data) => ({ ...exited(data, undefined), forgotten: true })
}

/** The session's id may change under way; what comes under a former one is fenced. */
const underId = (data: Data, event: Event): Data =>
  "sessionId" in event && event.sessionId !== undefined && event._tag !== "HookSessionEnd"
    ? { ...data, sessionId: event.sessionId }
    : data

const signalOf = (event: Event): Signal => {
  if (event._tag.startsWith("Run")) return "stream"
  if (event._tag === "TurnEndObserved" || event._tag === "HealthCheckRecovery") return "transcript"
  if (event._tag === "Registered" || event._tag === "ProcessExited" || event._tag === "Forgotten") return "process"
  return "hook"
}

/** The one update of a plate: the sets, and what the status now rests on. */
export const applied = (data: Data, event: Event): Data => ({
  ...changes[event._tag](underId(data, event), event as never),
  signal: { from: signalOf(event), at: event.at },
  timestamp: "timestamp" in event && event.timestamp !== undefined ? event.timestamp : data.timestamp
})

const isOurs = (data: Data, pid: number): boolean =>
  data.pids.length > 0 ? data.pids.includes(pid) : !data.formerPids.includes(pid)

const formerHook = (data: Data, event: Event): boolean =>
  event._tag.startsWith("Hook") && "sessionId" in event && data.formerIds.includes(event.sessionId ?? "")

/** True for an event of the past: older than the last one, of another process, under an id that the session has lost. */
export const past = (data: Data, event: Event): boolean => {
  if (data.forgotten) return true
  if ("timestamp" in event && event.timestamp !== undefined) return event.timestamp < (data.timestamp ?? -Infinity)
  if (event._tag === "ProcessExited") return event.pid !== undefined && !isOurs(data, event.pid)
  if (event._tag === "HealthCheckRecovery" || event._tag === "TurnEndObserved")
    return data.signal !== null && data.signal.at > event.asOf
  return event._tag !== "HookSessionStart" && formerHook(data, event)
}
