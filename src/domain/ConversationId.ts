/** ConversationId: decides by a stream's name whether the stream is a conversation. Pure. */
import { DAEMON_STREAM } from "../core/event-log/Rune.ts"

/** Ids of conversations: `myproj-1a2b3c4d` is a project's first conversation, and `myproj-1a2b3c4d.2` is its second. */
const CONVERSATION = /-[0-9a-f]{8}(\.[0-9]+)?$/

export const isValid = (stream: string): boolean => CONVERSATION.test(stream)

/** Ids of sessions: agentd's ids (12 characters), and the UUIDs that most coding CLIs use. */
const SESSION = /^([0-9a-z]{12}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$/

/** Prefix in the names of those streams that record the availability of providers. */
export const PROVIDER = "provider:"

/**
 * Returns true if the stream can be a conversation. Another program can give its conversations any name, so only known
 * names of other streams are excluded.
 */
export const mayBe = (stream: string): boolean =>
  isValid(stream) || (stream !== DAEMON_STREAM && !stream.startsWith(PROVIDER) && !SESSION.test(stream))
