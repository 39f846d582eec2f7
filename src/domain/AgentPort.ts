/**
 * AgentPort: the interface that channels and plans use to send messages to agents and to receive their reports. The
 * agents feature implements it. Channels and plans use no other part of the agents feature.
 *
 * Guarantees: when `post` returns, the message is durable. A second `post` with the same message id changes nothing. An
 * agent works on each message once. `fate` returns the state of a message, even after a crash. Reports arrive in the
 * order of their runes.
 */
import { Context, type Effect, type Stream } from "effect"
import type { CommandRefused, Report } from "./Messages.ts"
import type { Cause } from "../core/event-log/Rune.ts"

export interface Address {
  readonly conversation: string
  readonly agent: string
}

export interface AgentMessage {
  /**
   * Message id, chosen by the sender. If a message is repeated after a crash, its id is the same, and it is ignored.
   */
  readonly messageId: string
  /** Name of the sender: a login, `agent:<name>`, `channel:<name>`, `plan:<id>` or `schedule:<name>`. */
  readonly from: string
  readonly text: string
  /**
   * True: the message needs a turn of its own, without other messages. If that turn fails, agentd does not retry the
   * message: the sender decides.
   */
  readonly alone: boolean
}

/**
 * The reason why an agent is offline. `stopped`: a user stopped the agent, or its conversation accepts no work.
 * `disconnected`: the agent's process died and restarts automatically. `crashed`: the agent has stopped
 * permanently because of its errors.
 */
export type Departure = "stopped" | "disconnected" | "crashed"

export type TurnOutcome = "completed" | "interrupted" | "error"

export type Fate =
  | { readonly _tag: "Unknown" }
  | { readonly _tag: "Waiting" }
  /** A turn is processing the message. If `begun` is false, agentd is still starting the run for that turn. */
  | { readonly _tag: "Carried"; readonly turnId: string; readonly begun: boolean }
  /**
   * The turn that processed the message has ended. If the turn was lost, or ended because of a quota, the message is
   * `Waiting` again, with the same id.
   */
  | {
      readonly _tag: "Ended"
      readonly turnId: string
      readonly outcome: TurnOutcome
      readonly output: string
      /** True: the agent's process exited during the turn, and the agent was disconnected. */
      readonly died?: boolean
    }
  /** The message was withdrawn before a turn processed it, or was discarded when a user interrupted the agent. */
  | { readonly _tag: "Dropped" }

export interface Member extends Address {
  /** True: the agent is started, and its conversation accepts work. False: the agent is OFFLINE. */
  readonly online: boolean
  /**
   * Set if the agent's process died, in a turn or between two turns, and the agent is not ready for its next run yet.
   */
  readonly disconnected?: "turn" | "between" | undefined
  /** True: the agent has an active turn, or a run is being started for a turn. */
  readonly busy: boolean
  /** True: the budget of the agent, or of its conversation, is exceeded. */
  readonly spent: boolean
  /** Earliest start of the agent's next run, in ms since the epoch; undefined: not known. */
  readonly restsUntil?: number | undefined
  /**
   * Set if the agent cannot continue without the user. `text` says what the agent needs and names the command. `since`
   * is in ms since the epoch.
   */
  readonly needs?: { readonly text: string; readonly since: number } | undefined
  /** The agent's abilities (`can` in its config). */
  readonly can: ReadonlyArray<string>
  readonly role: string | null
  readonly parent: string | null
  /** The agent's working folder; null until the folder is created. */
  readonly cwd: string | null
  readonly branch: string | null
}

/** A report about an agent. The report is sent after the reported fact was committed to the log. */
export type AgentReport = Address & {
  readonly eventId: number
  /** The reported rune: the cause of runes that result from this report. Null in an `Active` report: it has no rune. */
  readonly cause: Cause | null
  /** When the reported fact happened, in ms since the epoch. */
  readonly at: number
} & (
    | { readonly _tag: "TurnStarted"; readonly turnId: string; readonly messageIds: ReadonlyArray<string> }
    /** The agent is alive: it sent output or an event of a tool call. At most one report per second and agent. */
    | { readonly _tag: "Active"; readonly turnId: string }
    | {
        readonly _tag: "TurnEnded"
        readonly turnId: string
        readonly messageIds: ReadonlyArray<string>
        readonly outcome: TurnOutcome
        /** The reason for the turn's interruption, or its error message; null: the turn completed. */
        readonly reason: string | null
        readonly output: string
        /** True: the messages of the turn will be delivered again, in a later turn. */
        readonly again: boolean
      }
    /** The agent is started, idle and reachable. After a restart of the daemon, this report is repeated. */
    | { readonly _tag: "Online" }
    /** `isBetween`: true if the agent's process died between two turns. Seats without work then stay as they are. */
    | { readonly _tag: "Offline"; readonly reason: string; readonly how: Departure; readonly isBetween?: boolean }
    /** The agent used a tool of `agentd mcp` to report about its work in that turn. */
    | ({ readonly _tag: "Reported"; readonly turnId: string | null } & Report)
    | { readonly _tag: "Idle" }
  )

export class AgentPort extends Context.Service<
  AgentPort,
  {
    /** Sends a message to an agent. When `post` returns, the message is durable. */
    readonly post: (to: Address, message: AgentMessage) => Effect.Effect<{ readonly eventId: number }, CommandRefused>
    /** Withdraws queued messages: all or none. False: a turn is processing, or has processed, at least one of them. */
    readonly withdraw: (to: Address, messageIds: ReadonlyArray<string>) => Effect.Effect<boolean, CommandRefused>
    readonly fate: (to: Address, messageId: string) => Effect.Effect<Fate, CommandRefused>
    /**
     * Ends the turn that is processing the message, and discards the message. The other messages of that turn are
     * queued again. Does nothing if the turn has already ended.
     */
    readonly interrupt: (to: Address, messageId: string, reason: string) => Effect.Effect<void, CommandRefused>
    /**
     * Adds the message to the active turn if the backend supports that (`steer`). Otherwise the message is queued ahead
     * of the waiting messages.
     */
    readonly steer: (to: Address, message: AgentMessage) => Effect.Effect<void, CommandRefused>
    readonly members: (conversation: string) => Effect.Effect<ReadonlyArray<Member>>
    /** Returns true if all open tool calls of the agent's current turn wait for the user. If omitted: false. */
    readonly waits?: (to: Address) => boolean
    /** Reports about all conversations, from the subscription on. A slow reader misses only `Active` reports. */
    readonly reports: Stream.Stream<AgentReport>
    /** Waits until the daemon has read the log and restored all agents in it. */
    readonly recovered: Effect.Effect<void>
  }
>()("agentd/domain/AgentPort") {}

/** The session of an agent's coding CLI in the agent's current run or, if no run is alive, in its last run. */
export interface AgentSession {
  /** The agent, as `project/agent`. */
  readonly agent: string
  /** Id of the current run; null: no run is alive. */
  readonly runId: string | null
  /** True: the current run has reported `sessionId` and `pid`. False: both are still those of the previous run. */
  readonly isUp: boolean
  /** True: the program reports its turns. False: agentd does not track the sessions that the program starts. */
  readonly turns: boolean
  readonly sessionId: string | null
  readonly pid: number | null
}
