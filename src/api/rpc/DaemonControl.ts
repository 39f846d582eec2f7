/**
 * DaemonControl: what the control server needs from the daemon as a whole.
 *
 * Guarantees: `shutdown` returns at once. It ends the daemon in an orderly way, including its runs unless they are
 * kept. No other method changes anything; `alertTest` and `notifyTest` only send messages.
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
     * Requests an orderly end of the daemon; this is not an OperatorStop. Current runs start again after the next
     * start, or, if kept, continue without the daemon.
     */
    readonly shutdown: (reason: string, by: string, keep: boolean) => Effect.Effect<void>
    /**
     * Sends a test mail the same way as real alerts. Returns when the mail server has accepted it, with the address.
     */
    readonly alertTest: Effect.Effect<{ readonly message: string }, CommandRefused | StorageError>
    /** The notification channels, in the order of the config. */
    readonly notifyList: Effect.Effect<ReadonlyArray<NotifyRow>, CommandRefused | StorageError>
    /** Returns the receiver's answer. */
    readonly notifyTest: (name: string) => Effect.Effect<{ readonly message: string }, CommandRefused | StorageError>
    /** Newest first. */
    readonly alerts: (options: {
      readonly count: number
      readonly failed: boolean
    }) => Effect.Effect<ReadonlyArray<AlertRow>, StorageError>
    /** Checks that only the daemon can make: lock, mail, config problems, agents in trouble. */
    readonly checks: Effect.Effect<ReadonlyArray<Check>>
    readonly reach: Effect.Effect<ReadonlyArray<AgentReach>>
    /** The parts of the daemon as they run now; empty until all are started. */
    readonly tree: Effect.Effect<ReadonlyArray<TreeRow>>
    /** Outages of providers that the user was notified of. */
    readonly outages: Effect.Effect<ReadonlyArray<Standing>>
    /** Every account with a provider that reported something, or that an agent of the configs in force uses. */
    readonly accounts: Effect.Effect<ReadonlyArray<AccountRow>>
    /** `http://127.0.0.1:PORT` of the HTTP server. If no port was requested yet, the server listens from now on. */
    readonly address: Effect.Effect<string, CommandRefused>
    /** A free port on which the daemon listens for one page, until the page's link expires or its right ends. */
    readonly pagePort: Effect.Effect<number, CommandRefused>
    /** Every kind of rune that this daemon writes. */
    readonly kinds: ReadonlyArray<string>
  }
>()("agentd/control/DaemonControl") {}
