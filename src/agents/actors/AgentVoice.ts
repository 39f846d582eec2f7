/** AgentVoice: an agent as it speaks for itself through `agentd mcp`, and the messages that it reads there. */
import type { GivenFile } from "../../runs/GivenFile.ts"
import type { Voice } from "../../config/AgentConfig.ts"

/** An agent that speaks for itself. */
export interface VoiceOf {
  readonly conversation: string
  readonly agent: string
  readonly turnId: string | null
  readonly may: ReadonlyArray<Voice>
}

export interface InboxMessage {
  readonly messageId: string
  readonly from: string
  readonly text: string
  readonly at: number
  /** True where the agent's turn carries the message already. */
  readonly carried: boolean
  readonly files?: ReadonlyArray<GivenFile> | undefined
}
