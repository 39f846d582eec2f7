/** FloorInput: the inputs of a channel: commands of users, posts and signals, reports on agents, and deadlines. */
import type { ChannelConfig, Order } from "../config/ChannelConfig.ts"
import type { Utterance } from "../domain/ChannelMessages.ts"
import type { Departure, TurnOutcome } from "../domain/AgentPort.ts"

/** An agent's turn is over, in a channel or elsewhere. */
export interface Ended {
  readonly _tag: "Ended"
  readonly agent: string
  readonly turnId: string
  readonly messageIds: ReadonlyArray<string>
  readonly outcome: TurnOutcome
  readonly reason: string | null
  readonly output: string
  readonly again: boolean
}

export type FloorInput =
  | {
      readonly _tag: "Create"
      readonly settings: ChannelConfig
      readonly origin: "config" | "person"
      readonly by: string
    }
  | { readonly _tag: "Configure"; readonly settings: ChannelConfig; readonly by: string }
  | { readonly _tag: "Assign"; readonly agent: string; readonly by: string }
  | { readonly _tag: "Remove"; readonly agent: string; readonly by: string }
  | { readonly _tag: "Post"; readonly messageId: string; readonly from: string; readonly text: string }
  | { readonly _tag: "Arrange"; readonly order: Order; readonly agents: ReadonlyArray<string>; readonly by: string }
  | { readonly _tag: "Grant"; readonly agent: string; readonly by: string }
  | { readonly _tag: "Skip"; readonly by: string }
  | { readonly _tag: "Requeue"; readonly agent: string; readonly by: string }
  | { readonly _tag: "Pause"; readonly paused: boolean; readonly by: string }
  | { readonly _tag: "Close"; readonly by: string }
  /** An agent posts in the channel, or signals the end of its turn, through its tools. */
  | { readonly _tag: "Say"; readonly agent: string; readonly messageId: string; readonly utterance: Utterance }
  | { readonly _tag: "Came"; readonly agent: string }
  | { readonly _tag: "Left"; readonly agent: string; readonly how: Departure; readonly isBetween?: boolean | undefined }
  | { readonly _tag: "Carried"; readonly agent: string; readonly messageIds: ReadonlyArray<string> }
  | Ended
  /** The agent could not be sent the prompt of its turn. */
  | { readonly _tag: "Unreachable"; readonly agent: string; readonly prompt: string; readonly reason: string }
  /**
   * An agent has ended its turn, and all posts that a user made during the turn were withdrawn before another turn
   * began with them.
   */
  | {
      readonly _tag: "Recalled"
      readonly agent: string
      readonly prompt: string
      readonly messageIds: ReadonlyArray<string>
    }
  | { readonly _tag: "Due"; readonly key: string }
  /**
   * Sent after a restart if an agent has the floor: it is working, or has not received its prompt. The turn's time
   * limit restarts.
   */
  | { readonly _tag: "Resumed" }
  /** Makes the channel check whether it can give the floor: an agent is idle, or the agents' state is now known. */
  | { readonly _tag: "Look" }

const FACTS = ["Came", "Left", "Carried", "Ended", "Unreachable", "Recalled", "Due", "Resumed", "Look"] as const

/** Inputs that report facts, and cannot be rejected. */
export type Fact = Extract<FloorInput, { _tag: (typeof FACTS)[number] }>

export const isFact = (input: FloorInput): input is Fact => (FACTS as ReadonlyArray<string>).includes(input._tag)
