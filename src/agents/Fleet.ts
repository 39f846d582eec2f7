/**
 * Fleet: every project and agent that the daemon keeps, and the commands on them.
 *
 * Guarantees: what a command's reply reports is durable; names are looked up in
 * the caller's project first, else as `project/agent`; one agent's trouble never
 * touches another.
 */
import { Context, type Effect } from "effect"
import type { MailConfig } from "../domain/Config.ts"
import type { AgentInfo, Caller, CommandRefused, Done, ProjectInfo } from "../domain/Messages.ts"
import type { StorageError } from "../runes/RuneLog.ts"

type Command<A> = Effect.Effect<A, CommandRefused | StorageError>

export class Fleet extends Context.Service<
  Fleet,
  {
    /** Reads the file and keeps its agents running from now on; again for a known project reloads it. */
    readonly register: (config: string, caller: Caller) => Command<ProjectInfo>
    readonly projects: Effect.Effect<ReadonlyArray<ProjectInfo>>
    readonly agents: Effect.Effect<ReadonlyArray<AgentInfo>>
    readonly agent: (name: string, caller: Caller) => Effect.Effect<AgentInfo, CommandRefused>
    /** Wakes a stopped agent with fresh counters; one that runs already is left alone and said so. */
    readonly start: (name: string, caller: Caller) => Command<Done>
    /** OperatorStop: answers when the run's processes are gone. */
    readonly stop: (name: string, caller: Caller) => Command<Done>
    readonly restart: (name: string, caller: Caller) => Command<Done>
    readonly send: (
      name: string,
      message: { readonly text: string; readonly urgent: boolean },
      caller: Caller
    ) => Command<Done>
    /** Ends the turn, or the run where there are no turns. */
    readonly interrupt: (name: string, caller: Caller) => Command<Done>
    /** The mail section of a conversation's project; undefined where it has none. */
    readonly mailOf: (conversation: string) => Effect.Effect<MailConfig | undefined>
    /** Waits until the log is folded at start-up; fails if it cannot be: then there are no agents. */
    readonly recovered: Effect.Effect<void, StorageError>
    /** False until then. */
    readonly ready: Effect.Effect<boolean>
  }
>()("agentd/agents/Fleet") {}
