/**
 * AgentVoice: an agent that calls agentd's own tools through `agentd mcp`, and the messages that it reads there.
 */
import type { AttachedFile } from "../../runs/AttachedFile.ts"
import type { Voice } from "../../config/AgentConfig.ts"

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
  /** True if the agent's current turn already carries the message. */
  readonly carried: boolean
  readonly files?: ReadonlyArray<AttachedFile> | undefined
}
