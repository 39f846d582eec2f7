/**
 * AlertChannel: the interface of a channel that notifies the user, and the service that contains all channels.
 *
 * Guarantees that each channel must give: `send` returns once the receiver has accepted the message, fails with a typed
 * error, and ends in bounded time; no error contains a secret. After a crash, the same message can be sent again, under
 * the same id.
 *
 * A build of agentd can add a channel: `Layer.succeed(AlertChannels, [...others, mine])`. A config uses the channel
 * with `"type": "other"`, its `name`, and its `settings`.
 */
import { Context, type Effect } from "effect"
import type { ChannelConfig, NoticeKind } from "../config/NotifyConfig.ts"
import type { Word } from "../domain/StatusWords.ts"
import type { Urgency } from "./Notice.ts"
import type { Refused } from "./Retry.ts"
import type { SendError } from "./SendError.ts"

/** A notice in the form in which a channel sends it. */
export interface Told {
  /** Id of the notice. It stays the same when the notice is sent again after a failure. */
  readonly id: string
  readonly kind: NoticeKind
  readonly word: Word
  readonly title: string
  readonly body: string
  readonly command: string
  readonly urgency: Urgency
  readonly about: string
  readonly project: string | null
  readonly rune: number
  /** Time of the rune that caused the notice, in ms since the epoch. */
  readonly at: number
  /** Number of equal notices that were folded into this one, including the notice itself. */
  readonly count: number
}

/** A message: one notice, or several combined. */
export interface Message {
  /** Id of the message, which is the same at each attempt. */
  readonly id: string
  readonly host: string
  readonly title: string
  readonly body: string
  readonly command: string
  readonly urgency: Urgency
  readonly notices: ReadonlyArray<Told>
  /** Number of further notices, which are not in `notices`. */
  readonly more: number
  /** Id of the first message about the same subject, if there was one. */
  readonly earlier?: string
}

export interface Receipt {
  readonly response: string
  /** The receiver's id for the message, if the message can be withdrawn. */
  readonly handle?: string
  /** Recipients that were refused, each with the server's code. A 4xx code means that the refusal is temporary. */
  readonly refused?: ReadonlyArray<Refused>
}

export interface Withdrawal {
  /** Id of the withdrawal itself, which is the same at each attempt. */
  readonly id: string
  /** Id of the message to withdraw, and the receiver's id for that message (`handle`). */
  readonly of: string
  readonly handle: string
  readonly title: string
}

export interface AlertChannel {
  /** The `type` in a channel's config; for the type `other`, the `name`. */
  readonly name: string
  readonly send: (config: ChannelConfig, message: Message) => Effect.Effect<Receipt, SendError>
  /** Withdraws a message that was answered elsewhere; `why` says so. Undefined if the channel cannot withdraw any. */
  readonly withdraw?: (config: ChannelConfig, message: Withdrawal, why: string) => Effect.Effect<Receipt, SendError>
  /**
   * Waits until the user postpones a message that the channel has shown, and returns the message; its notices are sent
   * again later. Undefined if users cannot postpone messages of this channel.
   */
  readonly later?: Effect.Effect<Message>
  /** Checks whether the channel can be used, without sending a message. Returns a message for display. */
  readonly check: (config: ChannelConfig) => Effect.Effect<string, SendError>
}

export const AlertChannels = Context.Reference<ReadonlyArray<AlertChannel>>("agentd/alerts/AlertChannels", {
  defaultValue: () => []
})

export const nameOf = (config: ChannelConfig): string => (config.type === "other" ? config.name : config.type)
