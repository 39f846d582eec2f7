/** AgentVoice: an agent as a caller of agentd's own tools (`agentd mcp`), and the messages that it reads with them. */
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
