/**
 * DaemonControl: what the control server asks of the daemon as a whole.
 *
 * Guarantees: `shutdown` returns at once and ends the daemon in order, runs
 * included, unless they are kept; none of the others changes anything but the messages that
 * `alertTest` and `notifyTest` send.
 */
import { Context, type Effect } from "effect"
import type { AlertRow, NotifyRow } from "../../domain/AlertMessages.ts"
import type { CommandRefused } from "../../domain/Messages.ts"
import type { Standing } from "../../domain/Weather.ts"
import type { StorageError } from "../../core/event-log/EventLog.ts"
import type { AccountRow } from "../../board/AccountMessages.ts"
import type { Check, DaemonStatus } from "../../board/DaemonMessages.ts"
import type { AgentReach } from "../../board/ReachMessages.ts"
import type { TreeRow } from "../../board/TreeMessages.ts"

export class DaemonControl extends Context.Service<
  DaemonControl,
  {
    readonly status: Effect.Effect<DaemonStatus>
    /** Asks for an orderly end; no OperatorStop: what runs now runs again after the next start, or, kept, works on till then. */
    readonly shutdown: (reason: string, by: string, keep: boolean) => Effect.Effect<void>
    /** Sends a test mail down the real path and answers when the server took it, saying to whom. */
    readonly alertTest: Effect.Effect<{ readonly message: string }, CommandRefused | StorageError>
    /** The channels by which people are told, in the order of the config. */
    readonly notifyList: Effect.Effect<ReadonlyArray<NotifyRow>, CommandRefused | StorageError>
    /** Sends a message by a channel and answers what its receiver said. */
    readonly notifyTest: (name: string) => Effect.Effect<{ readonly message: string }, CommandRefused | StorageError>
    /** The alerts, newest first. */
    readonly alerts: (options: {
      readonly count: number
      readonly failed: boolean
    }) => Effect.Effect<ReadonlyArray<AlertRow>, StorageError>
    /** Checks that only the daemon can make: lock, mail, config problems, agents in trouble. */
    readonly checks: Effect.Effect<ReadonlyArray<Check>>
    readonly reach: Effect.Effect<ReadonlyArray<AgentReach>>
    /** The parts of the daemon as they run now; none before all are started. */
    readonly tree: Effect.Effect<ReadonlyArray<TreeRow>>
    /** Outages of providers of which a person was told. */
    readonly outages: Effect.Effect<ReadonlyArray<Standing>>
    /** Every account with a provider of models that told something, or that an agent of the configs in force asks. */
    readonly accounts: Effect.Effect<ReadonlyArray<AccountRow>>
    /** `http://127.0.0.1:PORT`, where it answers; where no port was asked for yet, it listens from now on. */
    readonly address: Effect.Effect<string, CommandRefused>
    /** A free port, on which the daemon listens for one page: until its link is over, or its right ends. */
    readonly pagePort: Effect.Effect<number, CommandRefused>
    /** Every kind of rune that this daemon writes. */
    readonly kinds: ReadonlyArray<string>
  }
>()("agentd/control/DaemonControl") {}
