/**
 * AgentMessages: what the actors of one agent are told, by each other and from outside.
 */
import type * as Backend from "../../runs/Backend.ts"
import type { Outcome } from "../../runs/Outcome.ts"
import type * as AgentMachine from "./AgentMachine.ts"
import type { Choice } from "../actors/Choice.ts"
import type * as Budget from "./Budget.ts"
import type { Answer } from "./CallRow.ts"
import type * as Dropped from "./Dropped.ts"
import type * as Inbox from "./Inbox.ts"
import type { Heard } from "../run/Told.ts"
import type * as ToolMachine from "./ToolMachine.ts"
import type * as TurnMachine from "./TurnMachine.ts"
import type * as WorkerMachine from "./WorkerMachine.ts"

export type InboxMessage =
  /** `how` as the sender wants it heard. Answers `Received`. */
  | { readonly _tag: "Receive"; readonly message: Inbox.Message; readonly how: "queue" | "steer" | "urgent" }
  /** All of them, or none; answers whether they are taken back. */
  | { readonly _tag: "Withdraw"; readonly messageIds: ReadonlyArray<string> }
  /** The turn that carried them came to no answer. */
  | { readonly _tag: "Drop"; readonly messageIds: ReadonlyArray<string>; readonly end: Dropped.End }
  /** A person has dropped work asked again: the named messages, or all. Answers `Settled`. */
  | { readonly _tag: "AskAgain"; readonly which: string | undefined; readonly as: string; readonly by: string }
  /** The agent asks a person. Answers with the rune. */
  | { readonly _tag: "Ask"; readonly question: string; readonly turnId: string | null }
  /**
   * The agent has reached a bound that only a person moves; `callId`: nobody answered that call in time; `turnId`: this
   * turn, which is interrupted. Answers `Settled`.
   */
  | { readonly _tag: "Bound"; readonly text: string; readonly callId?: string; readonly turnId?: string }
  /** A person lets dropped work go, and questions with it. Answers `Settled`. */
  | { readonly _tag: "Dismiss"; readonly which: string | undefined; readonly by: string }

export type Ending = Extract<TurnMachine.Event, { _tag: "response_done" | "interrupt" | "stream_error" }>

export type TurnMessage =
  | TurnMachine.Event
  /** The run is done with the turn, as it says; it has ended before where it was interrupted. `exit`: the run is over, too. */
  | {
      readonly _tag: "Over"
      readonly turnId: string
      readonly ending: Ending
      readonly exit?: { readonly runId: string; readonly outcome: Outcome; readonly worked?: boolean }
    }
  /** The time of the turn is counted: it ends. */
  | { readonly _tag: "End"; readonly event: TurnMachine.Event }
  /** The agent's parent hears the turn's answer. */
  | { readonly _tag: "Answer"; readonly turnId: string; readonly parent: string }
  /** No live run works on it. */
  | { readonly _tag: "Orphaned"; readonly turnId: string }
  /** So it is, and its calls have their results. */
  | { readonly _tag: "Lost"; readonly turnId: string; readonly message: string }
  /** The run has begun a turn of its own. Answers `Opened`. */
  | { readonly _tag: "Open"; readonly runId: string; readonly why: string }
  /** Something has changed that may give it work. */
  | { readonly _tag: "Look" }

/** The fate of a turn that a run has begun by itself: a turn of the agent, part of the one under way, or refused. */
export type Opened =
  | { readonly _tag: "Turn"; readonly turnId: string }
  | { readonly _tag: "TakenIn" }
  | { readonly _tag: "Refused"; readonly reason: string }

export type LifeMessage =
  | AgentMachine.Event
  /** Spent in the turn, besides its time. `waited`: up to now every open call of it has, or has not, waited for a person. */
  | {
      readonly _tag: "Used"
      readonly turnId: string
      readonly spent: Budget.Expense
      readonly waited?: boolean
      /** The same call, so often that a person is told. */
      readonly same?: string | undefined
    }
  /** A person chooses the agent's model and mode: all that holds from now on. Answers `{ eventId }`. */
  | { readonly _tag: "Choose"; readonly choice: Choice; readonly by: string }
  /** The time of the turn is looked at. */
  | { readonly _tag: "Tick"; readonly turnId: string }
  /** Watchers of the agent hear whether it is there. */
  | { readonly _tag: "Announce" }
  /** The agent waits for a place and is ended before it has begun. */
  | { readonly _tag: "Forgo"; readonly by: string; readonly reason: string; readonly spawn: AgentMachine.Event }

export type WorkerMessage =
  | WorkerMachine.Event
  /** A new incarnation, where none runs. Answers with its first rune. */
  | { readonly _tag: "Start"; readonly by: string }
  /** The next run may begin, or something has changed that may give it work. */
  | { readonly _tag: "Look" }
  /** The worker has stopped: its agent ends with it, once its turn has. */
  | { readonly _tag: "Release" }
  /** The worker is ready for the next run: where the last one's process died in a turn, the agent is back. */
  | { readonly _tag: "Ready" }
  /** The agent's life, which an older daemon began in an append of its own, may not have come to be. */
  | { readonly _tag: "Rise" }

export type CallRequested = Extract<ToolMachine.Event, { _tag: "call_requested" }>
type Spent = Budget.Expense

/** `heard`: up to where its run was heard then; kept with the first rune that it leads to. */
export type ToolsMessage = ToolsNews & { readonly heard?: Heard }

type ToolsNews =
  /** The calls of one answer, in order. */
  | { readonly _tag: "Called"; readonly turnId: string; readonly calls: ReadonlyArray<CallRequested> }
  | {
      readonly _tag: "Asked"
      readonly callId: string
      readonly asked: Extract<Backend.RunEvent, { _tag: "ApprovalRequested" }>
      /** Of the whole call; undefined where it is more than a person can be shown. */
      readonly hash: string | undefined
      /** The call's name before, when it was taken to run. */
      readonly was?: string
    }
  /** The run waits for no answer to its question any more. */
  | { readonly _tag: "TakenBack"; readonly callId: string }
  /** The run has begun a turn of its own. Answers `Opened`. */
  | { readonly _tag: "Open"; readonly runId: string; readonly why: string }
  /** Spent in the turn, which goes on. */
  | { readonly _tag: "Paid"; readonly turnId: string; readonly spent: Spent }
  | { readonly _tag: "Ran"; readonly callId: string }
  | { readonly _tag: "Result"; readonly callId: string; readonly status: ToolMachine.Status; readonly output: unknown }
  /** A person's answer. Answers `{ eventId, tool, answers, late }`. */
  | { readonly _tag: "Answer"; readonly callId: string; readonly said: Answer; readonly by: string }
  /** The run is done with its turn: what is open ends, then the turn. */
  | {
      readonly _tag: "Close"
      readonly turnId: string
      readonly how: "cancelled" | "unknown"
      readonly reason: string
      readonly spent: Spent
      readonly ending: Ending
    }
  /** The run is over, and its turn with it. */
  | {
      readonly _tag: "Exited"
      readonly runId: string
      readonly outcome: Outcome
      /** A turn of it has come to its answer. */
      readonly worked?: boolean
      readonly spent: Spent
      readonly ending: Ending
    }
  /** The turn was cut short: its calls end. */
  | { readonly _tag: "Cut"; readonly turnId: string; readonly reason: string }
  /** Questions of a turn that is being interrupted ask no more. */
  | { readonly _tag: "Withdraw"; readonly turnId: string }
  /** No live run works on the turn: what ran is unknown, then the turn ends; questions go on. */
  | { readonly _tag: "Lost"; readonly turnId: string; readonly message: string }
  /** An earlier daemon left calls running. */
  | { readonly _tag: "Orphans" }
  /** The agent ends: no run takes an answer any more. */
  | { readonly _tag: "Abandon"; readonly reason: string }
  /** The turn is steered away at its next safe boundary. */
  | { readonly _tag: "Steer"; readonly turnId: string }
  /** Answered once all that was told before is decided. */
  | { readonly _tag: "Heard" }
  /** A limit on a call's time may have run out. */
  | { readonly _tag: "Time" }
