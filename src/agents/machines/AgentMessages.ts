/**
 * AgentMessages: the messages that the actors of one agent receive from each other and from other code.
 */
import type * as Backend from "../../runs/Backend.ts"
import type { Outcome } from "../../runs/Outcome.ts"
import type * as AgentMachine from "./AgentMachine.ts"
import type { ModelChoice } from "../actors/ModelChoice.ts"
import type * as Budget from "./Budget.ts"
import type { Answer } from "./CallRow.ts"
import type * as UnansweredMessages from "./UnansweredMessages.ts"
import type * as Inbox from "./Inbox.ts"
import type { Heard } from "../run/ProcessedEvents.ts"
import type * as ToolMachine from "./ToolMachine.ts"
import type * as TurnMachine from "./TurnMachine.ts"
import type * as WorkerMachine from "./WorkerMachine.ts"

export type InboxMessage =
  /** `how`: the delivery that the sender requests. The reply is `Received`. */
  | { readonly _tag: "Receive"; readonly message: Inbox.Message; readonly how: "queue" | "steer" | "urgent" }
  /** Withdraws all of the messages or none. The reply is true if they are withdrawn. */
  | { readonly _tag: "Withdraw"; readonly messageIds: ReadonlyArray<string> }
  /** The turn that carried these messages ended without an answer. */
  | { readonly _tag: "Drop"; readonly messageIds: ReadonlyArray<string>; readonly end: UnansweredMessages.End }
  /** The user queues the dropped message `which` again, or all dropped messages. The reply is `Settled`. */
  | { readonly _tag: "AskAgain"; readonly which: string | undefined; readonly as: string; readonly by: string }
  /** The agent asks the user a question. The reply is `Settled`. */
  | { readonly _tag: "Ask"; readonly question: string; readonly turnId: string | null }
  /**
   * The agent reached a limit that only the user can lift. `callId`: a call that was not answered in time. `turnId`:
   * the turn to interrupt. The reply is `Settled`.
   */
  | { readonly _tag: "Bound"; readonly text: string; readonly callId?: string; readonly turnId?: string }
  /**
   * The user discards the dropped message `which`, or all dropped messages and open questions. The reply is `Settled`.
   */
  | { readonly _tag: "Dismiss"; readonly which: string | undefined; readonly by: string }

export type Ending = Extract<TurnMachine.Event, { _tag: "response_done" | "interrupt" | "stream_error" }>

export type TurnMessage =
  | TurnMachine.Event
  /** The run reports the end of a turn; an interrupted turn has already ended. `exit`: set if the run has ended too. */
  | {
      readonly _tag: "Over"
      readonly turnId: string
      readonly ending: Ending
      readonly exit?: { readonly runId: string; readonly outcome: Outcome; readonly worked?: boolean }
    }
  /** Ends the turn now. Sent when the turn's time has been counted. */
  | { readonly _tag: "End"; readonly event: TurnMachine.Event }
  /** Records that the parent of the agent receives the turn's answer. */
  | { readonly _tag: "Answer"; readonly turnId: string; readonly parent: string }
  /** The turn has no live run. */
  | { readonly _tag: "Orphaned"; readonly turnId: string }
  /** The turn has no live run, and all its calls have results. */
  | { readonly _tag: "Lost"; readonly turnId: string; readonly message: string }
  /** The run started a turn by itself. The reply is `Opened`. */
  | { readonly _tag: "Open"; readonly runId: string; readonly why: string }
  /** Makes the turn's actor look for work. Sent after a change that may have given the agent work. */
  | { readonly _tag: "Look" }

/**
 * Result of `Open`, for a turn that a run started by itself: it becomes a new turn or a part of the current turn, or is
 * refused.
 */
export type Opened =
  | { readonly _tag: "Turn"; readonly turnId: string }
  | { readonly _tag: "TakenIn" }
  | { readonly _tag: "Refused"; readonly reason: string }

export type LifeMessage =
  | AgentMachine.Event
  /** Usage of the turn, without its duration. `waited`: true if all open calls waited for the user until now. */
  | {
      readonly _tag: "Used"
      readonly turnId: string
      readonly spent: Budget.Expense
      readonly waited?: boolean
      /**
       * The tool's name and the count, if the turn has repeated one call so often that the user is notified.
       */
      readonly same?: string | undefined
    }
  /** The user chooses the agent's model and mode. The reply is `{ eventId }`. */
  | { readonly _tag: "Choose"; readonly choice: ModelChoice; readonly by: string }
  /** Counts the turn's time up to now. */
  | { readonly _tag: "Tick"; readonly turnId: string }
  /** Reports to the agent's watchers whether the agent is available. */
  | { readonly _tag: "Announce" }
  /** Ends an agent that has not started because it still waits for a free slot. */
  | { readonly _tag: "Forgo"; readonly by: string; readonly reason: string; readonly spawn: AgentMachine.Event }

export type WorkerMessage =
  | WorkerMachine.Event
  /** Starts a new incarnation, unless one is running. The reply contains the event id of its first rune. */
  | { readonly _tag: "Start"; readonly by: string }
  /** Sent when the next run may start, or when a change may have given the agent work. */
  | { readonly _tag: "Look" }
  /** The worker has stopped: end the agent after its current turn. */
  | { readonly _tag: "Release" }
  /** The worker is ready for the next run. If the agent was offline because its process died, it is available again. */
  | { readonly _tag: "Ready" }
  /** Repairs the agent's life: older versions of agentd started it in a separate append, which may be missing. */
  | { readonly _tag: "Rise" }

export type CallRequested = Extract<ToolMachine.Event, { _tag: "call_requested" }>
type Spent = Budget.Expense

/** `heard`: how far the run's output has been read. Stored with the first rune that the message causes. */
export type ToolsMessage = ToolsNews & { readonly heard?: Heard }

type ToolsNews =
  /** The tool calls of one model answer, in order. */
  | { readonly _tag: "Called"; readonly turnId: string; readonly calls: ReadonlyArray<CallRequested> }
  | {
      readonly _tag: "Asked"
      readonly callId: string
      readonly asked: Extract<Backend.RunEvent, { _tag: "ApprovalRequested" }>
      /** Hash of the complete call; undefined if the call is too large to be shown to the user. */
      readonly hash: string | undefined
      /** The previous id of the call, if the call was recorded as running before. */
      readonly was?: string
    }
  /** The run no longer asks the question of this call. */
  | { readonly _tag: "TakenBack"; readonly callId: string }
  /** The run started a turn by itself. The reply is `Opened`. */
  | { readonly _tag: "Open"; readonly runId: string; readonly why: string }
  /** Usage of a turn that continues. */
  | { readonly _tag: "Paid"; readonly turnId: string; readonly spent: Spent }
  | { readonly _tag: "Ran"; readonly callId: string }
  | { readonly _tag: "Result"; readonly callId: string; readonly status: ToolMachine.Status; readonly output: unknown }
  /** Rules were added: runs the waiting calls that the rules now allow. */
  | { readonly _tag: "Weigh" }
  /** The user's answer to a call. The reply is `{ eventId, tool, answers, late }`. */
  | { readonly _tag: "Answer"; readonly callId: string; readonly said: Answer; readonly by: string }
  /** The run has finished its turn: the open calls end first, then the turn. */
  | {
      readonly _tag: "Close"
      readonly turnId: string
      readonly how: "cancelled" | "unknown"
      readonly reason: string
      readonly spent: Spent
      readonly ending: Ending
    }
  /** The run has ended, and its turn ends too. */
  | {
      readonly _tag: "Exited"
      readonly runId: string
      readonly outcome: Outcome
      /** True if any turn of the run got an answer. */
      readonly worked?: boolean
      readonly spent: Spent
      readonly ending: Ending
    }
  /** The turn exceeded its grace period: cancel its calls. */
  | { readonly _tag: "Cut"; readonly turnId: string; readonly reason: string }
  /** Cancels the open questions of a turn that is being interrupted. */
  | { readonly _tag: "Withdraw"; readonly turnId: string }
  /** The turn has no live run. Its running calls become unknown, then the turn ends. Its questions stay open. */
  | { readonly _tag: "Lost"; readonly turnId: string; readonly message: string }
  /** Ends or keeps calls that were running when an earlier daemon ended. */
  | { readonly _tag: "Orphans" }
  /** The agent has ended, so no run can receive an answer: cancel all open calls. */
  | { readonly _tag: "Abandon"; readonly reason: string }
  /** Interrupts the turn at its next safe boundary, so that a steering message can be processed. */
  | { readonly _tag: "Steer"; readonly turnId: string }
  /** Replies when all earlier messages have been processed. */
  | { readonly _tag: "Heard" }
  /** Checks the timeouts of open calls. */
  | { readonly _tag: "Time" }
