/**
 * TranscriptRules: what the transcript, and the session's own note, say of a plate that its hooks have not said.
 *
 * Guarantees: pure. Content decides where it says something: a dialog is over when
 * its own call has its result, when the agent has gone on to a new message, or when
 * a person has; background work that writes meanwhile ends nothing. Only where the
 * content says nothing the mtime decides: newer than the last event by more than
 * two whole seconds. Every verdict names the time of what it rests on, so that the
 * machine can refuse it where a hook knows better by then.
 */
import * as PlateMachine from "./PlateMachine.ts"
import type * as PlateState from "./PlateState.ts"
import type { Prompt } from "./PlateState.ts"
import { past } from "./PlateMachine.ts"
import type { Snapshot } from "../core/event-actor/StateMachine.ts"
import type { Noted } from "./SessionNote.ts"
import type { Found } from "./Transcript.ts"
import type { TranscriptView } from "./TranscriptView.ts"

/** A hook of the main agent's that was fired before an interrupt may reach us so much after it. */
const SLACK = 50
/** So much a hook may be late: no agent waits longer for one. */
const LATENESS = 3_000
/** So much later than the note a hook that says the same, and more, may reach us. */
export const NOTE_SETTLES = 300
const STALENESS = PlateMachine.STALENESS_SECONDS * 1_000

export interface Case {
  readonly snapshot: Snapshot<PlateMachine.State, PlateState.Data>
  /** The session's own transcript; undefined where none is known. */
  readonly found: Found | undefined
  readonly view: TranscriptView | undefined
  /** Transcripts of subagents that ask. */
  readonly sides: ReadonlyMap<string, TranscriptView>
  /** The session's own note; undefined where there is none. */
  readonly note: Noted | undefined
  /** The newest hook, whatever it said. */
  readonly heard: number
  /** ms since the epoch */
  readonly now: number
  /** When it was first seen that signs of the session are in the future, since the clock was set back; else now. */
  readonly setBackAt: number
  /** A round of the health check, and not a look because the file was written. */
  readonly round: boolean
}

/** A stamp, to compare another with: one in the future is of before the clock was set back, and the other is not. */
const beside = ({ now, setBackAt }: Case, other: number, stamp: number): number =>
  stamp > now && other <= now ? setBackAt : stamp

/** Whether a line ends the turn that is on. Where our stamp is in the future, and the line's not, the last line does. */
const endsTurn = ({ now, snapshot: { data }, view }: Case, at: number): boolean =>
  at + SLACK >= data.turnAt || (data.turnAt > now && at <= now && view?.endedAt === at)

/**
 * When we know that the dialog is over; 0 where nothing says so. A hook may reach
 * us when what it tells of is over already: then the transcript, which is written
 * by now, holds its end from just before.
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

/** Of the main agent's turn only: what goes on in the background is not interrupted with it. */
const interrupted = (of: Case): ReadonlyArray<PlateMachine.Event> => {
  const { now, snapshot, view } = of
  const { compacting, prompts, turn } = snapshot.data
  const active = turn || compacting || prompts.some(({ agentId }) => agentId === null)
  if (!active || view === undefined || view.interruptAt === 0) return []
  if (!endsTurn(of, view.interruptAt)) return []
  return [{ _tag: "TurnEndObserved", at: now, asOf: view.interruptAt + SLACK, why: "interrupt" }]
}

/** The hook that tells of it is lost where the session ends with its turn: nothing waits for a command then. */
const failing = (of: Case): ReadonlyArray<PlateMachine.Event> => {
  const { now, snapshot, view } = of
  if (!snapshot.data.turn || view === undefined || view.failedAt === 0 || view.movedAt > view.failedAt) return []
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
  // All of them are over, and so is the turn that they were asked in.
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

/** The session says of itself what nobody has told us. A run of ours tells us all. */
const noted = ({ note, now, snapshot: { data, state } }: Case): ReadonlyArray<PlateMachine.Event> => {
  if (note === undefined || data.runId !== null || agrees[note.status].includes(state)) return []
  // Busy with what goes on in the background: the turn is over, and a person can type.
  if (note.status === "busy" && state === "Idle" && data.background.length > 0) return []
  const event = { _tag: "StatusNoted", at: now, asOf: note.at, status: note.status } as const
  return now - note.at < NOTE_SETTLES || past(data, event) ? [] : [event]
}

/** True where the session's own note confirms the state: no guess from silence or a file's time is needed. */
const confirmed = ({ note, snapshot: { state } }: Case): boolean =>
  note !== undefined && agrees[note.status].includes(state)

/** The file was written, and nobody knows what: the status is of the past. */
const byMtime = (of: Case): ReadonlyArray<PlateMachine.Event> => {
  const { found, round, snapshot, view } = of
  if (!round || found?._tag !== "Read") return []
  const last = beside(of, found.mtime, snapshot.data.signal?.at ?? 0)
  if (found.grown && !PlateMachine.transcriptAhead((view?.opaqueUntil ?? 0) / 1_000, last / 1_000)) return []
  return PlateMachine.transcriptAhead(found.mtime / 1_000, last / 1_000) ? [recovery(of)] : []
}

/** A failure is over when somebody tries again, or when the agent goes on by itself. */
const failed = (of: Case): ReadonlyArray<PlateMachine.Event> => {
  const { promptAt = 0, movedAt = 0 } = of.view ?? {}
  const { failedAt } = of.snapshot.data
  const over = promptAt > beside(of, promptAt, failedAt) || movedAt > beside(of, movedAt, failedAt) + STALENESS
  return over ? [recovery(of)] : byMtime(of)
}

/** Nothing has been heard or written for so long that the turn cannot be on. */
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

/** The first that says something; each is asked only where those before it are silent. */
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
    case "Idle":
      return noted(of)
    case "Error":
      return first(of, failed, noted)
    case "Running":
      return first(of, interrupted, failing, noted, unconfirmed(silent))
    case "AwaitingInput":
    case "AwaitingApproval":
      return first(of, interrupted, dialogs, noted, unconfirmed(byMtime))
  }
}
