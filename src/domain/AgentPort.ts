/**
 * AgentPort: what channels and plans may ask of agents, and what they are told of them.
 * Agents keep this contract; its users know nothing else of them.
 *
 * Guarantees: a message that was posted is durable and is worked on once: again
 * under the same id it changes nothing; whatever crashes, `fate` says what became of
 * it; reports come in the order of their runes.
 */
import { Context, type Effect, type Stream } from "effect"
import type { CommandRefused, Report } from "./Messages.ts"
import type { Cause } from "../core/event-log/Rune.ts"

export interface Address {
  readonly conversation: string
  readonly agent: string
}

export interface AgentMessage {
  /** Of the sender's making, the same for the same matter: safe to post again after a crash. */
  readonly messageId: string
  /** The sender, as the agent is told: a login, `agent:<name>`, `channel:<name>`, `plan:<id>`, `schedule:<name>`. */
  readonly from: string
  readonly text: string
  /** Asks for a turn of its own. After an error of that turn the message is not offered again: the sender decides. */
  readonly alone: boolean
}

/**
 * How an agent goes offline: a person stopped it or its conversation takes no work; its
 * process died in a turn, and comes back by itself; its failures ended it for good.
 */
export type Departure = "stopped" | "disconnected" | "crashed"

export type TurnOutcome = "completed" | "interrupted" | "error"

export type Fate =
  | { readonly _tag: "Unknown" }
  | { readonly _tag: "Waiting" }
  /** A turn works on it, or a run is being started that will: `begun` tells the two apart. */
  | { readonly _tag: "Carried"; readonly turnId: string; readonly begun: boolean }
  /** The turn is over. Where it was lost, or a quota ended it, it waits again instead, under the same id. */
  | {
      readonly _tag: "Ended"
      readonly turnId: string
      readonly outcome: TurnOutcome
      readonly output: string
      /** The agent's process died in the turn: the agent was disconnected. */
      readonly died?: boolean
    }
  /** Taken back before any turn carried it, or dropped by a person's interrupt. */
  | { readonly _tag: "Dropped" }

export interface Member extends Address {
  /** The agent is started, and its conversation takes work. Else it is OFFLINE. */
  readonly online: boolean
  /** The agent's process died in a turn, and its worker is not ready for the next run yet. */
  readonly disconnected?: boolean
  /** A turn is active, or a run is being started for one. */
  readonly busy: boolean
  /** The budget of the agent, or of its conversation, is spent. */
  readonly spent: boolean
  /** No run of its begins before, ms since the epoch; undefined where nothing of the kind is known. */
  readonly restsUntil?: number | undefined
  /** Where it does not go on without a person: what it needs, with the command, and since when. */
  readonly needs?: { readonly text: string; readonly since: number } | undefined
  /** The agent's abilities, from its config. */
  readonly can: ReadonlyArray<string>
  readonly role: string | null
  readonly parent: string | null
  /** Where it works, once that is made. */
  readonly cwd: string | null
  readonly branch: string | null
}

/** A committed fact about an agent. */
export type AgentReport = Address & {
  readonly eventId: number
  /** The same rune, as the cause of what follows; null for a sign of life. */
  readonly cause: Cause | null
  /** ms since the epoch */
  readonly at: number
} & (
    | { readonly _tag: "TurnStarted"; readonly turnId: string; readonly messageIds: ReadonlyArray<string> }
    /** A sign of life: a delta, a tool call, its progress or its result. At most one a second for each agent. */
    | { readonly _tag: "Active"; readonly turnId: string }
    | {
        readonly _tag: "TurnEnded"
        readonly turnId: string
        readonly messageIds: ReadonlyArray<string>
        readonly outcome: TurnOutcome
        /** Why it was interrupted, or the error; null for a completed one. */
        readonly reason: string | null
        readonly output: string
        /** The turn's messages are offered again. */
        readonly again: boolean
      }
    /** The agent is started, idle and reachable; comes again after a restart of the daemon. */
    | { readonly _tag: "Online" }
    | { readonly _tag: "Offline"; readonly reason: string; readonly how: Departure }
    /** The agent's report on its work, through `agentd mcp`; `turnId` is the turn in which it was made. */
    | ({ readonly _tag: "Reported"; readonly turnId: string | null } & Report)
    | { readonly _tag: "Idle" }
  )

export class AgentPort extends Context.Service<
  AgentPort,
  {
    /** Durable when it answers. */
    readonly post: (to: Address, message: AgentMessage) => Effect.Effect<{ readonly eventId: number }, CommandRefused>
    /** Takes messages back that no turn carries now, all or none; false where one does, or has carried it to its end. */
    readonly withdraw: (to: Address, messageIds: ReadonlyArray<string>) => Effect.Effect<boolean, CommandRefused>
    readonly fate: (to: Address, messageId: string) => Effect.Effect<Fate, CommandRefused>
    /** Ends the turn that carries the message and drops it; what else the turn carries waits again. One that is over is left alone. */
    readonly interrupt: (to: Address, messageId: string, reason: string) => Effect.Effect<void, CommandRefused>
    /** Puts text into the active turn where the backend can (`steer`), else it waits as the next message. */
    readonly steer: (to: Address, message: AgentMessage) => Effect.Effect<void, CommandRefused>
    readonly members: (conversation: string) => Effect.Effect<ReadonlyArray<Member>>
    /** Whether every open call of its turn waits for a person; not there: no. */
    readonly waits?: (to: Address) => boolean
    /** From the subscription on, all conversations. A slow reader is told less often of `Active`, and misses nothing else. */
    readonly reports: Stream.Stream<AgentReport>
    /** Waits until the log is folded and every agent of it is alive again. */
    readonly recovered: Effect.Effect<void>
  }
>()("agentd/domain/AgentPort") {}

/** An agent's session with its coding CLI: of the run that is alive, or of the last one. */
export interface AgentSession {
  /** `project/agent` */
  readonly agent: string
  /** Null where no run is alive. */
  readonly runId: string | null
  /** Whether the run has told its session and its process: until then both are of the run before. */
  readonly isUp: boolean
  /** False for a program that tells nothing of itself: sessions that it starts are its own affair. */
  readonly turns: boolean
  readonly sessionId: string | null
  readonly pid: number | null
}
