/**
 * PlateState: what a plate holds, and what can be done to its sets.
 *
 * A session is not one slot but several sets: a turn, the open prompts, the work
 * in the background, the process. Guarantees: every set is bounded; all is pure, and
 * knows no event.
 */

/** A tool call that has begun and not ended. */
export interface Call {
  /** The subagent that calls; null for the main one. */
  readonly agentId: string | null
  readonly tool: string
  readonly callId: string
  /** A digest of what it is called with; null where unknown. */
  readonly input: string | null
}

/**
 * A dialog that waits for a person, keyed by agent and call: calls of one tool can
 * wait side by side. Where the call is not known the tool stands for it.
 */
export interface Prompt {
  /** The subagent that asks; null for the main one. */
  readonly agentId: string | null
  /** `*` where only a notification, or the session's own note, told of it. */
  readonly tool: string
  /** Null where its call is not known. */
  readonly callId: string | null
  readonly kind: "question" | "plan" | "permission"
  /** When we heard of it, ms since the epoch. */
  readonly at: number
  /** By an event of `/events`, whose sender may write another kind of transcript. */
  readonly posted?: true
  /** The session noted that it waits, and not for what. */
  readonly noted?: true
}

/** A process, beyond doubt where its start is known. */
export interface Process {
  readonly pid: number
  /** Clock ticks between boot and its fork; null where nobody looked. */
  readonly start: number | null
}

/** The sources on which a status may rest. */
export type Signal = "hook" | "session" | "transcript" | "process"

export interface Data {
  readonly plateId: string | null
  /** The run in which a program has started it, and the agent of that run. */
  readonly runId: string | null
  readonly agent: string | null
  readonly cwd: string | null
  /** Processes that are this session's, newest last. */
  readonly processes: ReadonlyArray<Process>
  /** Pids of this session's processes that are gone, newest last. */
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
  /** The newest sign of the main agent's work: an interrupt before it has ended nothing. */
  readonly turnAt: number
  readonly compacting: boolean
  readonly prompts: ReadonlyArray<Prompt>
  readonly calls: ReadonlyArray<Call>
  /** Announced and not ended. */
  readonly background: ReadonlyArray<string>
  /** Why the last turn failed; null when it did not. */
  readonly failure: string | null
  /** When we heard of that, ms since the epoch. */
  readonly failedAt: number
  /** Tool calls that have ended, newest last: a late start of one opens nothing. */
  readonly endedCalls: ReadonlyArray<string>
  /** The source on which the status rests, and when it came, ms since the epoch. */
  readonly signal: { readonly from: Signal; readonly at: number } | null
  /** The timestamp of the newest event of `/events`. */
  readonly timestamp: number | null
}

export const initial: Data = {
  plateId: null,
  runId: null,
  agent: null,
  cwd: null,
  processes: [],
  formerPids: [],
  branch: null,
  sessionId: null,
  formerIds: [],
  transcriptPath: null,
  closed: false,
  forgotten: false,
  turn: false,
  turnAt: 0,
  compacting: false,
  prompts: [],
  calls: [],
  background: [],
  failure: null,
  failedAt: 0,
  endedCalls: [],
  signal: null,
  timestamp: null
}

/** Most entries of each set; the oldest give way. */
export const MAX = {
  processes: 4,
  formerPids: 8,
  formerIds: 8,
  prompts: 64,
  calls: 64,
  background: 256,
  endedCalls: 256
} as const

export const withLast = <A>(list: ReadonlyArray<A>, item: A, max: number): ReadonlyArray<A> =>
  list.includes(item) ? list : [...list, item].slice(-max)

export const kindOf = (tool: string): Prompt["kind"] =>
  tool === "AskUserQuestion" ? "question" : tool === "ExitPlanMode" ? "plan" : "permission"

/** A call answers for a prompt that is its own, and for one of its tool whose call is not known. */
export const answers = (
  prompt: Prompt,
  agentId: string | null,
  tool: string,
  callId: string | null | undefined
): boolean =>
  prompt.agentId === agentId &&
  (prompt.callId === null || callId === null || callId === undefined
    ? prompt.tool === tool || prompt.tool === "*"
    : prompt.callId === callId)

/** A dialog that is told by name is the one that the session has noted without. */
export const opened = (data: Data, prompt: Prompt): Data =>
  data.prompts.some(
    ({ agentId, callId, tool }) => agentId === prompt.agentId && callId === prompt.callId && tool === prompt.tool
  )
    ? data
    : { ...data, prompts: [...data.prompts.filter(({ noted }) => noted === undefined), prompt].slice(-MAX.prompts) }

export const closedWhere = (data: Data, gone: (prompt: Prompt) => boolean): Data =>
  data.prompts.some(gone) ? { ...data, prompts: data.prompts.filter((prompt) => !gone(prompt)) } : data

/** Forgets the open calls and prompts of agents. */
export const agentsDone = (data: Data, done: (agentId: string | null) => boolean): Data => ({
  ...closedWhere(data, ({ agentId }) => done(agentId)),
  calls: data.calls.filter(({ agentId }) => !done(agentId))
})

/** Nothing goes on, and nothing is asked. */
export const quiet: Partial<Data> = {
  turn: false,
  compacting: false,
  prompts: [],
  calls: [],
  background: [],
  failure: null
}

/** A main agent that acts has a turn; a subagent may act in the background. */
export const acting = (data: Data, agentId: string | null, at: number): Data =>
  agentId === null ? { ...data, turn: true, turnAt: at, failure: null } : data

/** A call's end closes what it asked; a prompt known only by a notification is closed by any end of its agent's. */
export const callEnded = (data: Data, agentId: string | null, tool: string, callId: string | undefined): Data => {
  const after = closedWhere(data, (prompt) => answers(prompt, agentId, tool, callId))
  return callId === undefined
    ? after
    : {
        ...after,
        calls: after.calls.filter((call) => call.callId !== callId),
        endedCalls: withLast(after.endedCalls, callId, MAX.endedCalls)
      }
}

/** The end of the main agent's turn; `background` is what goes on without it. */
export const turnEnded = (data: Data, background: ReadonlyArray<string>, failure: string | null): Data => ({
  ...agentsDone(data, (agentId) => agentId === null || !background.includes(agentId)),
  turn: false,
  compacting: false,
  background: background.slice(-MAX.background),
  failure
})

interface Pid {
  readonly pid?: number | undefined
  readonly pidStart?: number | undefined
}

export const withProcess = (data: Data, { pid, pidStart }: Pid): Data =>
  pid === undefined
    ? data
    : {
        ...data,
        processes: [
          ...data.processes.filter((process) => process.pid !== pid),
          { pid, start: pidStart ?? data.processes.find((process) => process.pid === pid)?.start ?? null }
        ].slice(-MAX.processes),
        formerPids: data.formerPids.filter((former) => former !== pid)
      }

/** A dialog is open for so long, ms, before a notification tells of it. */
const NOTIFIED_AFTER = 3_000

export const notified = (data: Data, type: string, at: number): Data => {
  if (type === "idle_prompt") return turnEnded(data, data.background, data.failure)
  const prompt = { agentId: null, tool: "*", callId: null, at }
  // who asks now has gone on since an interrupt that is older
  const asking = { ...data, turnAt: Math.max(data.turnAt, at) }
  if (type === "agent_needs_input") return opened(asking, { ...prompt, kind: "question" })
  // It follows its PermissionRequest by seconds in which the agent is still: news only where that was missed.
  const known = data.prompts.length > 0 || at - data.turnAt < NOTIFIED_AFTER
  return known ? data : opened(asking, { ...prompt, kind: "permission" })
}

interface CallEvent {
  readonly at: number
  readonly agentId?: string | undefined
  readonly tool: string
  readonly callId: string
  readonly input?: string | undefined
}

/** A call that is told late, after its end, opens nothing. */
export const callStarted = (data: Data, event: CallEvent): Data => {
  const agentId = event.agentId ?? null
  const { at, callId, tool } = event
  const active = acting(data, agentId, at)
  if (data.endedCalls.includes(callId)) return active
  const call = { agentId, tool, callId, input: event.input ?? null }
  const calls = active.calls.some((open) => open.callId === callId)
    ? active.calls
    : [...active.calls, call].slice(-MAX.calls)
  const kind = kindOf(tool)
  const open = { ...active, calls }
  return kind === "permission" ? open : opened(open, { agentId, tool, callId, kind, at })
}

/** The newest call that the request can be about and that does not ask yet. */
const askingCall = (data: Data, agentId: string | null, tool: string, input: string | undefined): Call | undefined =>
  data.calls.findLast(
    (call) =>
      call.agentId === agentId &&
      call.tool === tool &&
      (input === undefined || call.input === null || call.input === input) &&
      !data.prompts.some((prompt) => prompt.callId === call.callId)
  )

/** A request names no call: it is that of the open call which it fits. One that fits none is known by its tool. */
export const requested = (data: Data, event: Omit<CallEvent, "callId">): Data => {
  const agentId = event.agentId ?? null
  const { at, input, tool } = event
  const active = acting(data, agentId, at)
  const prompt = { agentId, tool, kind: kindOf(tool), at }
  const call = askingCall(active, agentId, tool, input)
  if (call !== undefined) return opened(active, { ...prompt, callId: call.callId })
  const known = active.prompts.some((open) => open.agentId === agentId && open.tool === tool)
  return known ? active : opened(active, { ...prompt, callId: null })
}

export const turnStarted = (data: Data, at: number, endedTask?: string): Data => ({
  ...closedWhere(data, (prompt) => prompt.agentId === null),
  turn: true,
  turnAt: at,
  compacting: false,
  failure: null,
  background: data.background.filter((id) => id !== endedTask)
})

export const overwritten = (data: Data, at: number): Data => ({
  ...data,
  ...quiet,
  turn: true,
  turnAt: at
})

export const exited = (data: Data, pid: number | undefined): Data => ({
  ...data,
  ...quiet,
  closed: true,
  processes: [],
  formerPids: [...data.processes.map((process) => process.pid), ...(pid === undefined ? [] : [pid])].reduce(
    (all, former) => withLast(all, former, MAX.formerPids),
    data.formerPids
  )
})
