/**
 * AgentMessages: the messages that the actors of one agent receive, from each other and from outside.
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
  /** `how`: the delivery that the sender requests. Answers `Received`. */
  | { readonly _tag: "Receive"; readonly message: Inbox.Message; readonly how: "queue" | "steer" | "urgent" }
  /** Withdraws all of the messages or none; answers whether they are withdrawn. */
  | { readonly _tag: "Withdraw"; readonly messageIds: ReadonlyArray<string> }
  /** The turn that carried these messages ended without an answer. */
  | { readonly _tag: "Drop"; readonly messageIds: ReadonlyArray<string>; readonly end: Dropped.End }
  /** A person asks dropped messages again: the one that `which` names, or all. Answers `Settled`. */
  | { readonly _tag: "AskAgain"; readonly which: string | undefined; readonly as: string; readonly by: string }
  /** The agent asks a person a question. Answers `Settled`. */
  | { readonly _tag: "Ask"; readonly question: string; readonly turnId: string | null }
  /**
   * The agent reached a limit that only a person can lift. `callId`: nobody answered that call in time. `turnId`: the
   * turn to interrupt. Answers `Settled`.
   */
  | { readonly _tag: "Bound"; readonly text: string; readonly callId?: string; readonly turnId?: string }
  /** A person discards dropped messages, or, without `which`, all of them and the open questions. Answers `Settled`. */
  | { readonly _tag: "Dismiss"; readonly which: string | undefined; readonly by: string }

export type Ending = Extract<TurnMachine.Event, { _tag: "response_done" | "interrupt" | "stream_error" }>

export type TurnMessage =
  | TurnMachine.Event
  /** The run reports that its turn is over. An interrupted turn has ended before. `exit`: the run has ended too. */
  | {
      readonly _tag: "Over"
      readonly turnId: string
      readonly ending: Ending
      readonly exit?: { readonly runId: string; readonly outcome: Outcome; readonly worked?: boolean }
    }
  /** The time of the turn is counted: the turn ends now. */
  | { readonly _tag: "End"; readonly event: TurnMachine.Event }
  /** Records that the agent's parent gets the turn's answer. */
  | { readonly _tag: "Answer"; readonly turnId: string; readonly parent: string }
  /** No live run works on the turn. */
  | { readonly _tag: "Orphaned"; readonly turnId: string }
  /** No live run works on the turn, and its calls have their results. */
  | { readonly _tag: "Lost"; readonly turnId: string; readonly message: string }
  /** The run began a turn by itself. Answers `Opened`. */
  | { readonly _tag: "Open"; readonly runId: string; readonly why: string }
  /** Something changed that may give the agent work. */
  | { readonly _tag: "Look" }

/** The fate of a turn that a run began by itself: a turn of the agent, a part of the current turn, or refused. */
export type Opened =
  | { readonly _tag: "Turn"; readonly turnId: string }
  | { readonly _tag: "TakenIn" }
  | { readonly _tag: "Refused"; readonly reason: string }

export type LifeMessage =
  | AgentMachine.Event
  /** Usage in the turn, besides its time. `waited`: whether all open calls waited for a person until now. */
  | {
      readonly _tag: "Used"
      readonly turnId: string
      readonly spent: Budget.Expense
      readonly waited?: boolean
      /** Set when the same call was made so often that a person is notified: a text with its name and count. */
      readonly same?: string | undefined
    }
  /** A person chooses the agent's model and mode, which hold from now on. Answers `{ eventId }`. */
  | { readonly _tag: "Choose"; readonly choice: Choice; readonly by: string }
  /** Counts the time of the turn up to now. */
  | { readonly _tag: "Tick"; readonly turnId: string }
  /** Tells the agent's watchers whether it is available. */
  | { readonly _tag: "Announce" }
  /** Ends an agent that waits for a place, before it begins. */
  | { readonly _tag: "Forgo"; readonly by: string; readonly reason: string; readonly spawn: AgentMachine.Event }

export type WorkerMessage =
  | WorkerMachine.Event
  /** Starts a new incarnation, unless one is running. Returns its first rune. */
  | { readonly _tag: "Start"; readonly by: string }
  /** The next run may begin, or something changed that may give the agent work. */
  | { readonly _tag: "Look" }
  /** The worker has stopped: its agent ends with it, after its turn. */
  | { readonly _tag: "Release" }
  /** The worker is ready for the next run. An agent whose run's process died in a turn is available again. */
  | { readonly _tag: "Ready" }
  /** Repairs the agent's life: an older daemon began it in a separate append, which may not have been written. */
  | { readonly _tag: "Rise" }

export type CallRequested = Extract<ToolMachine.Event, { _tag: "call_requested" }>
type Spent = Budget.Expense

/** `heard`: how far the run's output was read; stored with the first rune that the message causes. */
export type ToolsMessage = ToolsNews & { readonly heard?: Heard }

type ToolsNews =
  /** The calls of one answer, in order. */
  | { readonly _tag: "Called"; readonly turnId: string; readonly calls: ReadonlyArray<CallRequested> }
  | {
      readonly _tag: "Asked"
      readonly callId: string
      readonly asked: Extract<Backend.RunEvent, { _tag: "ApprovalRequested" }>
      /** The hash of the whole call; undefined if the call is too large to show to a person. */
      readonly hash: string | undefined
      /** The call's previous id, if the call was considered running before. */
      readonly was?: string
    }
  /** The run no longer waits for an answer to its question. */
  | { readonly _tag: "TakenBack"; readonly callId: string }
  /** The run began a turn by itself. Answers `Opened`. */
  | { readonly _tag: "Open"; readonly runId: string; readonly why: string }
  /** Usage in the turn, which continues. */
  | { readonly _tag: "Paid"; readonly turnId: string; readonly spent: Spent }
  | { readonly _tag: "Ran"; readonly callId: string }
  | { readonly _tag: "Result"; readonly callId: string; readonly status: ToolMachine.Status; readonly output: unknown }
  /** A person's answer. Answers `{ eventId, tool, answers, late }`. */
  | { readonly _tag: "Answer"; readonly callId: string; readonly said: Answer; readonly by: string }
  /** The run has finished its turn: open calls end, then the turn. */
  | {
      readonly _tag: "Close"
      readonly turnId: string
      readonly how: "cancelled" | "unknown"
      readonly reason: string
      readonly spent: Spent
      readonly ending: Ending
    }
  /** The run has ended, and its turn with it. */
  | {
      readonly _tag: "Exited"
      readonly runId: string
      readonly outcome: Outcome
      /** True if a turn of the run got its answer. */
      readonly worked?: boolean
      readonly spent: Spent
      readonly ending: Ending
    }
  /** The turn was cut short: its calls end. */
  | { readonly _tag: "Cut"; readonly turnId: string; readonly reason: string }
  /** Cancels the questions of a turn that is being interrupted. */
  | { readonly _tag: "Withdraw"; readonly turnId: string }
  /** No live run works on the turn: running calls become unknown, then the turn ends; questions stay open. */
  | { readonly _tag: "Lost"; readonly turnId: string; readonly message: string }
  /** An earlier daemon left calls running. */
  | { readonly _tag: "Orphans" }
  /** The agent ends: no run takes an answer any more. */
  | { readonly _tag: "Abandon"; readonly reason: string }
  /** Steers the turn away at its next safe boundary. */
  | { readonly _tag: "Steer"; readonly turnId: string }
  /** Returns when all earlier messages are decided. */
  | { readonly _tag: "Heard" }
  /** A time limit of a call may have passed. */
  | { readonly _tag: "Time" }
