/** ConversationId: decides by its name alone whether a stream of the log is a conversation. Pure. */
import { DAEMON_STREAM } from "../core/event-log/Rune.ts"

/** `myproj-1a2b3c4d`, a project's first conversation, or `myproj-1a2b3c4d.2`, one after it. */
const CONVERSATION = /-[0-9a-f]{8}(\.[0-9]+)?$/

export const isValid = (stream: string): boolean => CONVERSATION.test(stream)

/** Forms of session names: agentd's own, and the usual ones of coding CLIs. */
const SESSION = /^([0-9a-z]{12}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$/

/** Prefix of the stream that records a provider's availability. */
export const PROVIDER = "provider:"

/** Whether the stream can be a conversation's: a name that somebody else chose can have any form. */
export const mayBe = (stream: string): boolean =>
  isValid(stream) || (stream !== DAEMON_STREAM && !stream.startsWith(PROVIDER) && !SESSION.test(stream))
