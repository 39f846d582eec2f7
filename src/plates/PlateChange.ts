/**
 * PlateChange: how each event changes what a plate holds.
 *
 * Claude Code's hooks and a run's events add to the sets and take from them; the
 * five events of `/events` overwrite them. Applying an event twice changes nothing
 * more; an event of the past changes nothing at all.
 */
import type { Event } from "./PlateMachine.ts"
import {
  acting,
  agentsDone,
  answers,
  callEnded,
  callStarted,
  cleared,
  closedWhere,
  type Data,
  exited,
  isLate,
  kindOf,
  MAX,
  notified,
  opened,
  overwritten,
  type Prompt,
  requested,
  type Signal,
  started,
  turnEnded,
  turnStarted,
  withLast,
  withProcess
} from "./PlateData.ts"

type Change<T extends Event["_tag"]> = (data: Data, event: Extract<Event, { _tag: T }>) => Data

/** What each event says of the sets. */
const changes: { readonly [t in Event["_tag"]]: Change<t> } = {
  // The five of `/events` overwrite.
  SessionStart: (data, event) => ({
    ...overwritten(data, event.at),
    closed: false,
    formerIds: data.formerIds.filter((id) => id !== event.sessionId),
    cwd: event.cwd ?? data.cwd,
    transcriptPath: event.transcriptPath ?? data.transcriptPath,
    branch: event.gitBranch ?? data.branch
  }),
  PromptSubmit: (data, event) => overwritten(data, event.at),
  ToolCall: (data, event) => overwritten(data, event.at),
  ToolStart: (data, event) => {
    const kind = kindOf(event.tool)
    const prompt = { agentId: null, tool: event.tool, callId: null, kind, at: event.at, posted: true } as const
    return { ...overwritten(data, event.at), prompts: kind === "permission" ? [] : [prompt] }
  },
  Stop: (data, event) => ({ ...data, ...cleared, failure: event.error ?? null, failedAt: event.at }),
  // Claude Code's hooks and a run's events add and take.
  HookSessionStart: started,
  HookSessionEnd: (data, event) => ({
    ...(event.sessionId === data.sessionId || data.sessionId === null ? { ...data, ...cleared } : data),
    formerIds: withLast(data.formerIds, event.sessionId, MAX.formerIds)
  }),
  HookUserPromptSubmit: (data, event) => turnStarted(data, event.at, event.endedTask),
  RunTurnStarted: (data, event) => turnStarted(data, event.at),
  HookPreToolUse: callStarted,
  RunToolCalled: callStarted,
  HookPermissionRequest: requested,
  RunApprovalRequested: (data, event) => {
    const { at, callId, tool } = event
    const active = callStarted(data, event)
    const ended = data.endedCalls.includes(callId)
    return ended ? active : opened(active, { agentId: event.agentId ?? null, tool, callId, kind: kindOf(tool), at })
  },
  HookPostToolUse: (data, event) => {
    const agentId = event.agentId ?? null
    const after = acting(callEnded(data, agentId, event.tool, event.callId), agentId, event.at)
    return event.launched === undefined
      ? after
      : { ...after, background: withLast(after.background, event.launched, MAX.background) }
  },
  HookPostToolUseFailure: (data, event) => {
    const agentId = event.agentId ?? null
    const after = callEnded(data, agentId, event.tool, event.callId)
    return event.isInterrupt ? after : acting(after, agentId, event.at)
  },
  RunToolEnded: (data, event) => {
    const agentId = event.agentId ?? null
    return acting(callEnded(data, agentId, event.tool, event.callId), agentId, event.at)
  },
  HookPermissionDenied: (data, event) => callEnded(data, event.agentId ?? null, event.tool, event.callId),
  // Every call of the batch has ended, the refused ones, too: nothing of this agent's is open.
  HookPostToolBatch: (data, event) => {
    const agentId = event.agentId ?? null
    const after = agentsDone(data, (agent) => agent === agentId)
    return acting(after, agentId, event.at)
  },
  HookNotification: (data, event) => notified(data, event.notificationType, event.at),
  HookStop: (data, event) => turnEnded(data, event.backgroundTasks, null),
  HookStopFailure: (data, event) => ({ ...turnEnded(data, data.background, event.error), failedAt: event.at }),
  RunTurnEnded: (data, event) => ({ ...turnEnded(data, data.background, event.error ?? null), failedAt: event.at }),
  HookSubagentStop: (data, event) => ({
    ...agentsDone(data, (agentId) => agentId === event.agentId),
    background: data.background.filter((id) => id !== event.agentId)
  }),
  HookElicitation: (data, event) =>
    opened(data, {
      agentId: null,
      tool: `elicitation:${event.server}`,
      callId: null,
      kind: "question",
      at: event.at
    }),
  HookElicitationResult: (data, event) => closedWhere(data, (prompt) => prompt.tool === `elicitation:${event.server}`),
  HookPreCompact: (data) => ({ ...data, compacting: true }),
  HookPostCompact: (data) => ({ ...data, compacting: false }),
  // What was asked was answered here: either way the agent goes on.
  PromptAnswered: (data, event) => {
    const agentId = event.agentId ?? null
    const after = closedWhere(data, (prompt) => answers(prompt, agentId, event.tool, event.callId))
    return acting(after, agentId, event.at)
  },
  DialogEndObserved: (data, event) => {
    const agentId = event.agentId ?? null
    const over = (prompt: Prompt) => prompt.at <= event.asOf && answers(prompt, agentId, event.tool, event.callId)
    return data.prompts.some(over) ? acting(closedWhere(data, over), agentId, event.asOf) : data
  },
  // The transcript: an interrupt ends prompts, too; silence says nothing of a question that is open.
  HealthCheckRecovery: (data) => ({ ...data, ...cleared }),
  TurnEndObserved: (data, event) =>
    event.why === "interrupt"
      ? turnEnded(data, data.background, null)
      : { ...data, turn: false, compacting: false, background: [] },
  StatusNoted: (data, { asOf, status }) => {
    if (status === "idle") return { ...turnEnded(data, data.background, null), prompts: [] }
    if (status === "busy") return acting({ ...data, prompts: [] }, null, asOf)
    return opened(data, { agentId: null, tool: "*", callId: null, kind: status, at: asOf, noted: true })
  },
  Registered: (data, event) => ({
    ...withProcess(data, event),
    plateId: event.plateId,
    cwd: event.cwd,
    runId: event.runId ?? data.runId,
    agent: event.agent ?? data.agent
  }),
  ProcessExited: (data, event) => exited(data, event.pid),
  Forgotten: (data) => ({ ...exited(data, undefined), forgotten: true })
}

/** The session's id may change under way; what comes under a former one is fenced. Its paths are news where we missed its start. */
const underId = (data: Data, event: Event): Data => {
  if (!("sessionId" in event) || event.sessionId === undefined || event._tag === "HookSessionEnd") return data
  return {
    ...data,
    sessionId: event.sessionId,
    transcriptPath: ("transcriptPath" in event ? event.transcriptPath : undefined) ?? data.transcriptPath,
    cwd: data.cwd ?? ("cwd" in event ? event.cwd : undefined) ?? null
  }
}

const signalOf = (event: Event): Signal => {
  if (event._tag.startsWith("Run")) return "stream"
  if (event._tag === "TurnEndObserved" || event._tag === "HealthCheckRecovery") return "transcript"
  if (event._tag === "DialogEndObserved") return event.from
  if (event._tag === "StatusNoted" || (event._tag === "HookSessionStart" && event.noted === true)) return "session"
  if (event._tag === "Registered" || event._tag === "ProcessExited" || event._tag === "Forgotten") return "process"
  return "hook"
}

/** The one update of a plate: the sets, and what the status now rests on. */
export const applied = (data: Data, event: Event): Data => ({
  ...changes[event._tag](underId(data, event), event as never),
  // What is told late does not make the status look older than it is.
  signal: isLate(data, event) ? data.signal : { from: signalOf(event), at: event.at },
  timestamp: "timestamp" in event && event.timestamp !== undefined ? event.timestamp : data.timestamp
})

const isOurs = (data: Data, pid: number): boolean =>
  data.processes.length > 0 ? data.processes.some((process) => process.pid === pid) : !data.formerPids.includes(pid)

const formerHook = (data: Data, event: Event): boolean =>
  event._tag.startsWith("Hook") && "sessionId" in event && data.formerIds.includes(event.sessionId ?? "")

/** Noted before what we have heard since of that which it would end or begin. */
const notedBefore = (data: Data, { asOf, status }: Extract<Event, { _tag: "StatusNoted" }>): boolean => {
  const asked = Math.max(0, ...data.prompts.map(({ at }) => at))
  const heard = data.signal?.at ?? 0
  if (status === "busy") return asOf < (data.prompts.length > 0 ? asked : heard)
  if (status === "idle") return asOf < (data.turn || data.prompts.length > 0 ? Math.max(data.turnAt, asked) : heard)
  return asOf < data.turnAt
}

/** True for an event of the past: older than the last one, of another process, under an id that the session has lost. */
export const past = (data: Data, event: Event): boolean => {
  if (data.forgotten) return true
  if ("timestamp" in event && event.timestamp !== undefined) return event.timestamp < (data.timestamp ?? -Infinity)
  if (event._tag === "ProcessExited") return event.pid !== undefined && !isOurs(data, event.pid)
  // An interrupt ends the turn that was on when its line was written, whatever subagents have told since.
  if (event._tag === "TurnEndObserved" && event.why === "interrupt") return data.turnAt > event.asOf
  if (event._tag === "StatusNoted") return notedBefore(data, event)
  if (event._tag === "HealthCheckRecovery" || event._tag === "TurnEndObserved")
    return data.signal !== null && data.signal.at > event.asOf
  if (event._tag === "HookSessionStart") return data.closed && isLate(data, event)
  return formerHook(data, event)
}
