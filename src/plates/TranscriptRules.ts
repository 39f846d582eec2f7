/**
 * TranscriptRules: derives events from a session's transcript and note when its hooks were missed.
 *
 * Guarantees: pure. The transcript's content has priority. A dialog is over when its call has a result, or when the
 * agent or the user has sent a new message. Records that background work writes in the meantime end no dialog and no
 * turn. The mtime is used only if the content says nothing: it must be newer than the last event by more than two whole
 * seconds. Every event names the time of its evidence, so that the machine can reject it if a hook is newer.
 */
import * as PlateMachine from "./PlateMachine.ts"
import type * as PlateState from "./PlateState.ts"
import type { Prompt } from "./PlateState.ts"
import { past } from "./PlateMachine.ts"
import type { Snapshot } from "../core/event-actor/StateMachine.ts"
import type { Noted } from "./SessionStatusFile.ts"
import type { Found } from "./Transcript.ts"
import type { TranscriptView } from "./TranscriptView.ts"

/** Maximum time after an interrupt, in ms, at which an earlier hook of the main agent can still arrive. */
const SLACK = 50
/** Maximum delay of a hook, ms: no coding agent waits longer for a hook. */
const LATENESS = 3_000
/** Maximum time after a note, in ms, at which a hook can arrive that reports the same in more detail. */
export const NOTE_SETTLES = 300
const STALENESS = PlateMachine.STALENESS_SECONDS * 1_000

export interface Case {
  readonly snapshot: Snapshot<PlateMachine.State, PlateState.Data>
  /** State of the session's transcript file. Undefined if the session has no known transcript. */
  readonly found: Found | undefined
  readonly view: TranscriptView | undefined
  /** Transcripts of subagents that have an open prompt, by agent id. */
  readonly sides: ReadonlyMap<string, TranscriptView>
  /** The session's note; undefined if there is none. */
  readonly note: Noted | undefined
  /** When the newest hook arrived, of any kind, ms since the epoch. */
  readonly heard: number
  /** The current time, ms since the epoch. */
  readonly now: number
  /** When a time of the session was first found in the future, because the clock was set back; otherwise `now`. */
  readonly setBackAt: number
  /** True if the periodic health check reads the transcript; false if it is read because a file was written. */
  readonly round: boolean
}

/**
 * Makes `stamp` comparable with `other`. If only `stamp` is in the future, the clock was set back in between: returns
 * the time at which that was noticed.
 */
const beside = ({ now, setBackAt }: Case, other: number, stamp: number): number =>
  stamp > now && other <= now ? setBackAt : stamp

/**
 * Whether a transcript line ends the current turn. If the turn began in the future (the clock was set back since) and
 * the line's time is not in the future, only the line that ended the last turn ends it.
 */
const endsTurn = ({ now, snapshot: { data }, view }: Case, at: number): boolean =>
  at + SLACK >= data.turnAt || (data.turnAt > now && at <= now && view?.endedAt === at)

/**
 * Time at which the dialog is known to be over; 0 if nothing shows that. If the dialog's hook arrives late, the
 * transcript can already contain the dialog's end.
 */
const overAt = (of: Case, prompt: Prompt, view: TranscriptView | undefined): number => {
  const { now } = of
  if (view === undefined) return 0
  if (view.movedAt > beside(of, view.movedAt, prompt.at) + STALENESS) return view.movedAt
  if (prompt.callId !== null) return view.hasResult(prompt.callId) ? prompt.at : 0
  const result = view.resultOf(prompt.tool)
  if (result > prompt.at) return result
  if (now <= prompt.at + STALENESS || prompt.posted === true) return 0
  return Math.max(result, view.endedAt ?? 0) > prompt.at - LATENESS ? prompt.at : 0
}

/** Ends the main agent's turn only, because an interrupt does not stop background work. */
const interrupted = (of: Case): ReadonlyArray<PlateMachine.Event> => {
  const { now, snapshot, view } = of
  const { compacting, prompts, turn } = snapshot.data
  const active = turn || compacting || prompts.some(({ agentId }) => agentId === null)
  if (!active || view === undefined || view.interruptAt === 0) return []
  if (!endsTurn(of, view.interruptAt)) return []
  return [{ _tag: "TurnEndObserved", at: now, asOf: view.interruptAt + SLACK, why: "interrupt" }]
}

/** Events for a failed turn. If the session ends with it, the hook is lost: Claude Code does not wait for it. */
const failing = (of: Case): ReadonlyArray<PlateMachine.Event> => {
  const { now, snapshot, view } = of
  const { cli, failedAt, turn, turnAt } = snapshot.data
  if (view === undefined || view.failedAt === 0 || view.movedAt > view.failedAt) return []
  // the hooks of another CLI can report the end of a failed turn like that of any other
  if (!turn && (cli === undefined || turnAt === 0 || view.failedAt <= failedAt)) return []
  if (!endsTurn(of, view.failedAt)) return []
  return [{ _tag: "TurnEndObserved", at: now, asOf: view.failedAt + SLACK, why: "failure", error: view.failure }]
}

const dialogs = (of: Case): ReadonlyArray<PlateMachine.Event> => {
  const { now, sides, snapshot, view } = of
  const { prompts } = snapshot.data
  const over = prompts.flatMap((prompt) => {
    const at = overAt(of, prompt, prompt.agentId === null ? view : sides.get(prompt.agentId))
    return at === 0 ? [] : [{ prompt, at: Math.max(at, prompt.at) }]
  })
  const ended = view?.endedAt ?? 0
  // All dialogs are over, and so is the turn that opened them.
  if (over.length > 0 && over.length === prompts.length && prompts.every(({ at }) => ended > at - LATENESS)) {
    return [recovery(of)]
  }
  return over.map(({ at, prompt: { agentId, callId, tool } }) => ({
    _tag: "DialogEndObserved",
    at: now,
    asOf: at,
    ...(agentId === null ? {} : { agentId }),
    tool,
    ...(callId === null ? {} : { callId }),
    from: "transcript"
  }))
}

const recovery = ({ now, snapshot }: Case): PlateMachine.Event => ({
  _tag: "HealthCheckRecovery",
  at: now,
  asOf: snapshot.data.signal?.at ?? 0
})

const agrees: { readonly [status in Noted["status"]]: ReadonlyArray<PlateMachine.State> } = {
  idle: ["Starting", "Idle", "Error"],
  busy: ["Running"],
  permission: ["AwaitingApproval", "AwaitingInput"],
  question: ["AwaitingApproval", "AwaitingInput"]
}

/** Events for a note that contradicts the known state. A session of an agent's run has no note. */
const noted = ({ note, now, snapshot: { data, state } }: Case): ReadonlyArray<PlateMachine.Event> => {
  if (note === undefined || data.runId !== null || agrees[note.status].includes(state)) return []
  // Busy with background work only: the turn is over, and the user can type.
  if (note.status === "busy" && state === "Idle" && data.background.length > 0) return []
  const event = { _tag: "StatusNoted", at: now, asOf: note.at, status: note.status } as const
  return now - note.at < NOTE_SETTLES || past(data, event) ? [] : [event]
}

/** True if the session's note confirms the state: then silence or an mtime need not be interpreted. */
const confirmed = ({ note, snapshot: { state } }: Case): boolean =>
  note !== undefined && agrees[note.status].includes(state)

/** Events for a transcript to which unknown content was added, so that the status is outdated. */
const byMtime = (of: Case): ReadonlyArray<PlateMachine.Event> => {
  const { found, round, snapshot, view } = of
  if (!round || found?._tag !== "Read") return []
  const last = beside(of, found.mtime, snapshot.data.signal?.at ?? 0)
  if (found.grown && !PlateMachine.transcriptAhead((view?.opaqueUntil ?? 0) / 1_000, last / 1_000)) return []
  return PlateMachine.transcriptAhead(found.mtime / 1_000, last / 1_000) ? [recovery(of)] : []
}

/** Events for a failure that is over, because the user has retried or the agent has continued by itself. */
const failed = (of: Case): ReadonlyArray<PlateMachine.Event> => {
  const { promptAt = 0, movedAt = 0 } = of.view ?? {}
  const { failedAt } = of.snapshot.data
  const over = promptAt > beside(of, promptAt, failedAt) || movedAt > beside(of, movedAt, failedAt) + STALENESS
  return over ? [recovery(of)] : byMtime(of)
}

/** Ends a turn after a long silence: no hook has arrived, and nothing was added to the transcript. */
const silent = (of: Case): ReadonlyArray<PlateMachine.Event> => {
  const { found, heard, now, round, snapshot, view } = of
  if (!round) return []
  const { data } = snapshot
  const asOf = data.signal?.at ?? 0
  const written = found?._tag === "Read" ? found.mtime : 0
  const silence = now - Math.max(...[asOf, heard, written].map((stamp) => beside(of, now, stamp)))
  const event = (why: "quiet" | "silent"): ReadonlyArray<PlateMachine.Event> => [
    { _tag: "TurnEndObserved", at: now, asOf, why }
  ]
  if (silence > PlateMachine.SILENT) return event("silent")
  const ends = written > 0 && view?.endedAt !== undefined && !data.compacting
  return silence > PlateMachine.QUIET && ends ? event("quiet") : []
}

/** The events of the first rule that returns any. Later rules are not tried. */
const first = (
  of: Case,
  ...rules: ReadonlyArray<(of: Case) => ReadonlyArray<PlateMachine.Event>>
): ReadonlyArray<PlateMachine.Event> => {
  for (const rule of rules) {
    const events = rule(of)
    if (events.length > 0) return events
  }
  return []
}

const unconfirmed = (rule: (of: Case) => ReadonlyArray<PlateMachine.Event>) => (of: Case) =>
  confirmed(of) ? [] : rule(of)

export const judge = (of: Case): ReadonlyArray<PlateMachine.Event> => {
  switch (of.snapshot.state) {
    case "Closed":
      return []
    case "Starting":
      return noted(of)
    case "Idle":
      return first(of, failing, noted)
    case "Error":
      return first(of, failed, noted)
    case "Running":
      return first(of, interrupted, failing, noted, unconfirmed(silent))
    case "AwaitingInput":
    case "AwaitingApproval":
      return first(of, interrupted, dialogs, noted, unconfirmed(byMtime))
  }
}
