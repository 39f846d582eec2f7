/**
 * ConversationId: which streams of the log are conversations, by their names alone. Pure.
 */
import { DAEMON_STREAM } from "../core/event-log/Rune.ts"

/** `myproj-1a2b3c4d`, a project's first conversation, or `myproj-1a2b3c4d.2`, one after it. */
const CONVERSATION = /-[0-9a-f]{8}(\.[0-9]+)?$/

export const isValid = (stream: string): boolean => CONVERSATION.test(stream)

/** The forms of a session's name: agentd's own, and the usual ones of coding CLIs. */
const SESSION = /^([0-9a-z]{12}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$/

/** How the stream of a provider's weather begins. */
export const PROVIDER = "provider:"

/** Whether the stream may be a conversation's: a name that others have given may be anything. */
export const mayBe = (stream: string): boolean =>
  isValid(stream) || (stream !== DAEMON_STREAM && !stream.startsWith(PROVIDER) && !SESSION.test(stream))
