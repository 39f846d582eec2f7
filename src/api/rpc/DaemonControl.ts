/**
 * DaemonControl: the functions of the daemon as a whole that the control server needs.
 *
 * Guarantees: `shutdown` returns at once. The daemon then ends gracefully, together with its runs unless they are kept.
 * No other method changes the daemon's state, but `alertTest` and `notifyTest` send messages, and `address` and
 * `pagePort` open ports.
 */
import { Context, type Effect } from "effect"
import type { AlertRow, NotifyRow } from "../../domain/AlertMessages.ts"
import type { CommandRefused } from "../../domain/Messages.ts"
import type { Standing } from "../../domain/ProviderStatus.ts"
import type { StorageError } from "../../core/event-log/EventLog.ts"
import type { AccountRow } from "../../board/AccountMessages.ts"
import type { Check, DaemonStatus } from "../../board/DaemonMessages.ts"
import type { AgentReach } from "../../board/ReachMessages.ts"
import type { TreeRow } from "../../board/TreeMessages.ts"

export class DaemonControl extends Context.Service<
  DaemonControl,
  {
    readonly status: Effect.Effect<DaemonStatus>
    /**
     * Requests a graceful end of the daemon, which is not an OperatorStop. Current runs start again with the next
     * daemon; if `keep` is set, they continue without a daemon.
     */
    readonly shutdown: (reason: string, by: string, keep: boolean) => Effect.Effect<void>
    /**
     * Sends a test mail in the same way as real alerts. When the mail server has accepted it, returns a message with
     * the address.
     */
    readonly alertTest: Effect.Effect<{ readonly message: string }, CommandRefused | StorageError>
    /** The notification channels, in the order of the config. */
    readonly notifyList: Effect.Effect<ReadonlyArray<NotifyRow>, CommandRefused | StorageError>
    /** Sends a test message through a notification channel. Returns the receiver's answer. */
    readonly notifyTest: (name: string) => Effect.Effect<{ readonly message: string }, CommandRefused | StorageError>
    /** Recent alerts, newest first. `failed`: only those that could not be delivered. */
    readonly alerts: (options: {
      readonly count: number
      readonly failed: boolean
    }) => Effect.Effect<ReadonlyArray<AlertRow>, StorageError>
    /** Checks that only the running daemon can make: lock, mail, config problems, agents in trouble. */
    readonly checks: Effect.Effect<ReadonlyArray<Check>>
    readonly reach: Effect.Effect<ReadonlyArray<AgentReach>>
    /** The parts of the daemon with their current state; empty until all have been started. */
    readonly tree: Effect.Effect<ReadonlyArray<TreeRow>>
    /** Outages of providers about which the user has been notified. */
    readonly outages: Effect.Effect<ReadonlyArray<Standing>>
    /** All accounts at providers from which a report has arrived, or which an agent in the current configs uses. */
    readonly accounts: Effect.Effect<ReadonlyArray<AccountRow>>
    /**
     * Address of the HTTP server, `http://127.0.0.1:PORT`. If no port has been requested before, the server now starts
     * to listen.
     */
    readonly address: Effect.Effect<string, CommandRefused>
    /** Opens a port for one page. The daemon listens on it until the page's link expires or its access is revoked. */
    readonly pagePort: Effect.Effect<number, CommandRefused>
    /** Every kind of rune that this daemon writes. */
    readonly kinds: ReadonlyArray<string>
  }
>()("agentd/control/DaemonControl") {}
