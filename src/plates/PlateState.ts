/**
 * PlateState: the data of a plate, and the functions that change its sets.
 *
 * The state of a session consists of several sets: a turn, the open prompts, the background work, the processes.
 * Guarantees: every set is bounded; everything is pure, and independent of the events.
 */

/** A tool call that has begun and not ended. */
export interface Call {
  /** The subagent that made the call; null for the main agent. */
  readonly agentId: string | null
  readonly tool: string
  readonly callId: string
  /** A digest of the tool call's input; null if unknown. */
  readonly input: string | null
}

/**
 * An open dialog that waits for the user, keyed by agent and call: several calls of one tool can wait at once. If the
 * call is unknown, the tool identifies the prompt.
 */
export interface Prompt {
  /** The subagent that asks; null for the main agent. */
  readonly agentId: string | null
  /** Name of the tool; `*` if only a notification or the session's note reported the dialog. */
  readonly tool: string
  /** Id of the tool call; null if unknown. */
  readonly callId: string | null
  readonly kind: "question" | "plan" | "permission"
  /** When the report arrived, ms since the epoch. */
  readonly at: number
  /** True if the dialog was reported through `/events`, whose sender may write another kind of transcript. */
  readonly posted?: true
  /** True if only the session's note reported the dialog. A note does not name the tool. */
  readonly noted?: true
}

/** A process. It is identified for certain only if its start is known. */
export interface Process {
  readonly pid: number
  /** Start of the process, in clock ticks between boot and its fork; null if unknown. */
  readonly start: number | null
}

export type Signal = "hook" | "session" | "transcript" | "process"

export interface Data {
  readonly plateId: string | null
  /** The run in which a program has started the session, and the agent of that run. */
  readonly runId: string | null
  readonly agent: string | null
  readonly cwd: string | null
  /** The coding CLI, if it is not Claude Code and its hooks report the session. */
  readonly cli?: string
  /** The session's processes, newest last. */
  readonly processes: ReadonlyArray<Process>
  /** Pids of former processes of this session that have ended, newest last. */
  readonly formerPids: ReadonlyArray<number>
  readonly branch: string | null
  /** The current session id. A clear or a fork changes it. */
  readonly sessionId: string | null
  /** Former ids of this session, newest last. */
  readonly formerIds: ReadonlyArray<string>
  readonly transcriptPath: string | null
  readonly closed: boolean
  readonly forgotten: boolean
  readonly turn: boolean
  /** Time of the newest sign of the main agent's work, ms since the epoch. An older interrupt does not end the turn. */
  readonly turnAt: number
  readonly compacting: boolean
  readonly prompts: ReadonlyArray<Prompt>
  readonly calls: ReadonlyArray<Call>
  /** Ids of background work that was announced and has not ended. */
  readonly background: ReadonlyArray<string>
  /** Why the last turn failed; null if it did not. */
  readonly failure: string | null
  /** When the failure was reported, ms since the epoch. */
  readonly failedAt: number
  /** Tool calls that have ended, newest last. A report of a call's start that arrives late does not reopen the call. */
  readonly endedCalls: ReadonlyArray<string>
  /** The source of the status, and when it arrived, ms since the epoch. Null before the first signal. */
  readonly signal: { readonly from: Signal; readonly at: number } | null
  /** The timestamp of the newest event from `/events`, ms since the epoch. Null if no event had a timestamp. */
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

/** Maximum number of entries in each set. If there are more, the oldest are dropped. */
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

/** Whether a call closes a prompt: its own prompt, or, if either has no call id, a prompt of the same tool. */
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

/** Begins the ids that agentd has made for calls whose CLI gives them none. Equal calls have equal ids. */
export const MADE = "~"

/** Adds a prompt, unless it is already open. A dialog with a known tool replaces the one from the session's note. */
export const opened = (data: Data, prompt: Prompt): Data =>
  data.prompts.some(
    ({ agentId, callId, tool }) => agentId === prompt.agentId && callId === prompt.callId && tool === prompt.tool
  )
    ? data
    : { ...data, prompts: [...data.prompts.filter(({ noted }) => noted === undefined), prompt].slice(-MAX.prompts) }

export const closedWhere = (data: Data, gone: (prompt: Prompt) => boolean): Data =>
  data.prompts.some(gone) ? { ...data, prompts: data.prompts.filter((prompt) => !gone(prompt)) } : data

/** Removes the open calls and prompts of the agents for which `done` is true. */
export const agentsDone = (data: Data, done: (agentId: string | null) => boolean): Data => ({
  ...closedWhere(data, ({ agentId }) => done(agentId)),
  calls: data.calls.filter(({ agentId }) => !done(agentId))
})

/** The sets when nothing is running and no dialog is open. */
export const quiet: Partial<Data> = {
  turn: false,
  compacting: false,
  prompts: [],
  calls: [],
  background: [],
  failure: null
}

/** Marks the main agent's turn as running. A subagent can act in the background, without a turn. */
export const acting = (data: Data, agentId: string | null, at: number): Data =>
  agentId === null ? { ...data, turn: true, turnAt: at, failure: null } : data

/** Closes the call's prompt. A prompt known only from a notification is closed by any call of its agent. */
export const callEnded = (data: Data, agentId: string | null, tool: string, callId: string | undefined): Data => {
  const after = closedWhere(data, (prompt) => answers(prompt, agentId, tool, callId))
  return callId === undefined
    ? after
    : {
        ...after,
        calls: after.calls.filter((call) => call.callId !== callId),
        endedCalls: callId.startsWith(MADE) ? after.endedCalls : withLast(after.endedCalls, callId, MAX.endedCalls)
      }
}

/** Ends the main agent's turn; `background` is the work that continues without it. */
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

/** Time for which a dialog is open before Claude Code sends a notification for it, ms. */
const NOTIFIED_AFTER = 3_000

export const notified = (data: Data, type: string, at: number): Data => {
  if (type === "idle_prompt") return turnEnded(data, data.background, data.failure)
  const prompt = { agentId: null, tool: "*", callId: null, at }
  // an agent that asks now has continued since an older interrupt
  const asking = { ...data, turnAt: Math.max(data.turnAt, at) }
  if (type === "agent_needs_input") return opened(asking, { ...prompt, kind: "question" })
  // The notification follows its PermissionRequest within seconds, and no work is done in between. It is new only if
  // that request was missed.
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

/** Adds an open call. If the call's end was reported earlier than its start, the call is ignored. */
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

/** The newest open call that matches the request and has no prompt yet. */
const askingCall = (data: Data, agentId: string | null, tool: string, input: string | undefined): Call | undefined =>
  data.calls.findLast(
    (call) =>
      call.agentId === agentId &&
      call.tool === tool &&
      (input === undefined || call.input === null || call.input === input) &&
      !data.prompts.some((prompt) => prompt.callId === call.callId)
  )

/** Adds the prompt of a permission request. It belongs to the matching open call; if there is none, to the tool. */
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
