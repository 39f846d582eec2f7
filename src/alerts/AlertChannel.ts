/**
 * AlertChannel: a way in which a person is told: its contract, and the ways that there are.
 *
 * Guarantees wanted of each: `send` returns once the receiver has it, fails typed, and ends in bounded time; what it is
 * given may come again after a crash, under the same id; no secret is in an error.
 *
 * Whoever builds agentd adds one: `Layer.succeed(AlertChannels, [...others, mine])`; a config names it by
 * `{ "type": "other", "name": "mine", "settings": … }`.
 */
import { Context, type Effect } from "effect"
import type { ChannelConfig, NoticeKind } from "../config/NotifyConfig.ts"
import type { Word } from "../domain/Words.ts"
import type { Urgency } from "./Notice.ts"
import type { Refused } from "./Retry.ts"
import type { SendError } from "./SendError.ts"

/** A notice as a receiver gets it. */
export interface Told {
  /** The same whenever it comes, by whichever message. */
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
  /** Of that rune, ms since the epoch. */
  readonly at: number
  /** So many equal ones. */
  readonly count: number
}

/** A message: one notice, or several as one. */
export interface Message {
  /** The same at each attempt. */
  readonly id: string
  readonly host: string
  readonly title: string
  readonly body: string
  readonly command: string
  readonly urgency: Urgency
  readonly notices: ReadonlyArray<Told>
  /** So many more that are not named. */
  readonly more: number
  /** The id of the first message about the same thing, where there was one. */
  readonly earlier?: string
}

export interface Receipt {
  /** The receiver's answer, in words. */
  readonly response: string
  /** By which the receiver knows the message, where it can be withdrawn. */
  readonly handle?: string
  /** Receivers that did not take it, of several, each with its code: 4xx for now. */
  readonly refused?: ReadonlyArray<Refused>
}

export interface Withdrawal {
  /** Of the withdrawal itself: the same at each attempt. */
  readonly id: string
  /** The id of the message, and by what its receiver knows it. */
  readonly of: string
  readonly handle: string
  readonly title: string
}

export interface AlertChannel {
  /** A channel's `type`, or of `other` its `name`. */
  readonly name: string
  readonly send: (config: ChannelConfig, message: Message) => Effect.Effect<Receipt, SendError>
  /** Takes a message back that somebody answered elsewhere; undefined: it cannot. `why`: in words. */
  readonly withdraw?: (config: ChannelConfig, message: Withdrawal, why: string) => Effect.Effect<Receipt, SendError>
  /** Waits until a person puts a message off that the channel has shown: its notices are told again in a while. Not there: it offers none. */
  readonly later?: Effect.Effect<Message>
  /** Whether it could be used, as far as can be told without a message; in words. */
  readonly check: (config: ChannelConfig) => Effect.Effect<string, SendError>
}

export const AlertChannels = Context.Reference<ReadonlyArray<AlertChannel>>("agentd/alerts/AlertChannels", {
  defaultValue: () => []
})

export const nameOf = (config: ChannelConfig): string => (config.type === "other" ? config.name : config.type)
