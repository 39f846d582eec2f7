/**
 * AgentPort: what channels and plans can ask of agents, and what agents report to them. Agents implement this contract;
 * its users know nothing else about agents.
 *
 * Guarantees: `post` is durable, and posting again under the same id changes nothing. A message is worked on once.
 * After any crash, `fate` says what happened to it. Reports arrive in the order of their runes.
 */
import { Context, type Effect, type Stream } from "effect"
import type { CommandRefused, Report } from "./Messages.ts"
import type { Cause } from "../core/event-log/Rune.ts"

export interface Address {
  readonly conversation: string
  readonly agent: string
}

export interface AgentMessage {
  /** Chosen by the sender, the same for the same matter: safe to post again after a crash. */
  readonly messageId: string
  /** The sender as the agent sees it: a login, `agent:<name>`, `channel:<name>`, `plan:<id>`, `schedule:<name>`. */
  readonly from: string
  readonly text: string
  /** Asks for a turn of its own. If that turn fails, the message is not offered again: the sender decides. */
  readonly alone: boolean
}

/**
 * How an agent goes offline. `stopped`: a person stopped it, or its conversation takes no work. `disconnected`: its
 * process died in a turn, and restarts by itself. `crashed`: its failures ended it for good.
 */
export type Departure = "stopped" | "disconnected" | "crashed"

export type TurnOutcome = "completed" | "interrupted" | "error"

export type Fate =
  | { readonly _tag: "Unknown" }
  | { readonly _tag: "Waiting" }
  /** A turn works on it, or a run is being started for it: `begun` is false until the turn has begun. */
  | { readonly _tag: "Carried"; readonly turnId: string; readonly begun: boolean }
  /**
   * The turn is over. A turn that was lost, or that a quota ended, puts the message back to `Waiting` under the same
   * id.
   */
  | {
      readonly _tag: "Ended"
      readonly turnId: string
      readonly outcome: TurnOutcome
      readonly output: string
      /** The agent's process died in the turn: the agent was disconnected. */
      readonly died?: boolean
    }
  /** Withdrawn before any turn carried it, or dropped by a person's interrupt. */
  | { readonly _tag: "Dropped" }

export interface Member extends Address {
  /** The agent is started, and its conversation takes work. False: the agent is OFFLINE. */
  readonly online: boolean
  /** The agent's process died in a turn, and its worker is not ready for the next run yet. */
  readonly disconnected?: boolean
  /** A turn is active, or a run is being started for one. */
  readonly busy: boolean
  /** The budget of the agent, or of its conversation, is exceeded. */
  readonly spent: boolean
  /** No run begins before this time, ms since the epoch; undefined: no such limit is known. */
  readonly restsUntil?: number | undefined
  /**
   * Set if the agent needs a person to continue: what it needs, with the command, and since when (ms since the epoch).
   */
  readonly needs?: { readonly text: string; readonly since: number } | undefined
  /** The agent's abilities, from its config. */
  readonly can: ReadonlyArray<string>
  readonly role: string | null
  readonly parent: string | null
  /** The agent's working folder; null until it is created. */
  readonly cwd: string | null
  readonly branch: string | null
}

/** A committed fact about an agent. */
export type AgentReport = Address & {
  readonly eventId: number
  /** The same rune, as the cause of later runes; null for a sign of life. */
  readonly cause: Cause | null
  /** ms since the epoch */
  readonly at: number
} & (
    | { readonly _tag: "TurnStarted"; readonly turnId: string; readonly messageIds: ReadonlyArray<string> }
    /** A sign of life: a delta, a tool call, its progress or its result. At most one per second and agent. */
    | { readonly _tag: "Active"; readonly turnId: string }
    | {
        readonly _tag: "TurnEnded"
        readonly turnId: string
        readonly messageIds: ReadonlyArray<string>
        readonly outcome: TurnOutcome
        /** Why the turn was interrupted, or its error; null if it completed. */
        readonly reason: string | null
        readonly output: string
        /** The turn's messages are offered again. */
        readonly again: boolean
      }
    /** The agent is started, idle and reachable; reported again after a restart of the daemon. */
    | { readonly _tag: "Online" }
    | { readonly _tag: "Offline"; readonly reason: string; readonly how: Departure }
    /** The agent's report on its work, through `agentd mcp`; `turnId` is the turn in which it was made. */
    | ({ readonly _tag: "Reported"; readonly turnId: string | null } & Report)
    | { readonly _tag: "Idle" }
  )

export class AgentPort extends Context.Service<
  AgentPort,
  {
    /** The message is durable when this returns. */
    readonly post: (to: Address, message: AgentMessage) => Effect.Effect<{ readonly eventId: number }, CommandRefused>
    /** Withdraws messages that no turn carries now, all or none. False if a turn carries one, or has ended with it. */
    readonly withdraw: (to: Address, messageIds: ReadonlyArray<string>) => Effect.Effect<boolean, CommandRefused>
    readonly fate: (to: Address, messageId: string) => Effect.Effect<Fate, CommandRefused>
    /**
     * Ends the turn that carries the message and drops the message; the turn's other messages wait again. Does nothing
     * if that turn is over.
     */
    readonly interrupt: (to: Address, messageId: string, reason: string) => Effect.Effect<void, CommandRefused>
    /** Puts text into the active turn if the backend can (`steer`); otherwise the text waits as the next message. */
    readonly steer: (to: Address, message: AgentMessage) => Effect.Effect<void, CommandRefused>
    readonly members: (conversation: string) => Effect.Effect<ReadonlyArray<Member>>
    /** Whether every open call of the agent's turn waits for a person; undefined: no. */
    readonly waits?: (to: Address) => boolean
    /**
     * Reports of all conversations, from the subscription on. A slow reader gets fewer `Active` reports, and misses
     * nothing else.
     */
    readonly reports: Stream.Stream<AgentReport>
    /** Waits until the log is folded and every agent in it is alive again. */
    readonly recovered: Effect.Effect<void>
  }
>()("agentd/domain/AgentPort") {}

/** An agent's session with its coding CLI: of the live run, or of the last one. */
export interface AgentSession {
  /** `project/agent` */
  readonly agent: string
  /** Null if no run is alive. */
  readonly runId: string | null
  /** Whether the run has reported its session and its process. Until then both belong to the previous run. */
  readonly isUp: boolean
  /** False for a program that reports nothing about itself: agentd does not track the sessions that it starts. */
  readonly turns: boolean
  readonly sessionId: string | null
  readonly pid: number | null
}
