/**
 * Prompt: the text that an agent receives at the start of a run. Pure: equal inputs give equal text, because the
 * random mark of the frames (MessageFrame) is an input too.
 *
 * Order: the agent's role and instructions, its permanent task, the outcome of the last run, then the messages, oldest
 * first. Messages that would make the prompt longer than `MAX_PROMPT_BYTES` wait for the next run; urgent messages are
 * included first. Messages that an earlier run already carried are always included, because they are not stored
 * elsewhere.
 */
import { words } from "../../runs/FileDescription.ts"
import type { AgentConfig } from "../../config/AgentConfig.ts"
import type { AttachedFile } from "../../runs/AttachedFile.ts"
import * as MessageFrame from "../../domain/MessageFrame.ts"
import * as TurnMachine from "../machines/TurnMachine.ts"
import { sizeOf } from "../run/LogExcerpt.ts"
import type * as Inbox from "../machines/Inbox.ts"
import { known, type Message } from "../machines/Inbox.ts"
import { isTurnLimit } from "../../domain/SpendingLimits.ts"

/**
 * Maximum size of a prompt in the log, in bytes, not counting the agent's instructions. Well below the size limit of a
 * rune.
 */
export const MAX_PROMPT_BYTES = 512 * 1024
/**
 * Maximum size of a prompt in the log, in bytes, including the agent's instructions. The log would reject a larger
 * rune.
 */
export const MAX_KEPT_BYTES = 960 * 1024

/**
 * Maximum size of a prompt that is passed as a program argument, bytes. Below the system's limit, with room for file
 * names.
 */
const MAX_ARGUMENT_BYTES = 120 * 1024

/** Maximum prompt size that all backends of the agent accept, bytes. */
export const mostOf = ({ backend, fallback }: Pick<AgentConfig, "backend" | "fallback">): number =>
  [backend, ...fallback].some((one) => one.type === "command" && one.promptBy === "argument")
    ? MAX_ARGUMENT_BYTES
    : MAX_PROMPT_BYTES

/** Size of the text in the log, bytes. */
export const sizeOfText = sizeOf

export interface Parts {
  readonly agent: string
  readonly role: string | undefined
  readonly instructions: string | undefined
  /** The permanent task of an agent in mode `loop`. */
  readonly task: string | undefined
  /** Why the last run ended early; undefined if it ended successfully or if there was none. */
  readonly lastRun: string | undefined
  /** Messages that the last run carried and did not finish, oldest first. `waiting`: the messages after them. */
  readonly unfinished: ReadonlyArray<Message>
  readonly waiting: ReadonlyArray<Message>
  /** Unique id of this prompt. The random mark of the prompt's frames is derived from it. */
  readonly drawn: string
  /** Maximum size of the prompt, bytes. Messages that do not fit wait for a later run. */
  readonly most?: number
  /** True if a user's slash command is passed to the agent unchanged. */
  readonly commands?: boolean
}

export interface Prompt {
  readonly text: string
  /** Ids of the messages in the prompt, unfinished messages first. */
  readonly messageIds: ReadonlyArray<string>
}

/** `first`: number of the message's first file, counted over all files of the input. */
const framed = ({ files = [], from, text, urgent }: Message, first: number): MessageFrame.Framed => {
  const named = files.map((file, at) => `file ${first + at}, ${words(file)}`).join("; ")
  return {
    about: `from ${MessageFrame.sender(from)}${urgent ? " (urgent)" : ""}${named === "" ? "" : ` with ${named}`}`,
    text
  }
}

/** A message as the agent sees it, without the random mark. */
const said = (message: Message): string => MessageFrame.measured(framed(message, 1_000))

/** Frames the messages, and numbers their files consecutively, in the order in which the agent receives them. */
const numbered = (messages: ReadonlyArray<Message>): ReadonlyArray<MessageFrame.Framed> => {
  let next = 1
  return messages.map((message) => {
    const first = next
    next += message.files?.length ?? 0
    return framed(message, first)
  })
}

/** The files of all messages in an input, in the order of their numbers. */
export const filesOf = (inbox: Inbox.Data, messageIds: ReadonlyArray<string>): ReadonlyArray<AttachedFile> => {
  const files = new Map(known(inbox).map((message) => [message.messageId, message.files ?? []]))
  return messageIds.flatMap((messageId) => files.get(messageId) ?? [])
}

/** The complete text of an input: agentd's own part, then each message in its frame. */
const textOf = (head: ReadonlyArray<string>, messages: ReadonlyArray<Message>, drawn: string): string =>
  [...head, ...MessageFrame.framed(drawn, numbered(messages))].join("\n\n") + "\n"

/**
 * Selects the messages of a turn from the waiting messages, oldest first. A message with `alone` gets its own turn.
 * Other messages share a turn if they fit into the prompt, of which `size` bytes are already used.
 */
const chosen = (
  waiting: ReadonlyArray<Message>,
  size: number,
  isFirst: boolean,
  most = MAX_PROMPT_BYTES
): ReadonlyArray<Message> => {
  const oldest = waiting[0]
  if (isFirst && oldest?.alone === true) return [oldest]
  const taken = new Set<Message>()
  let room = most - size - MessageFrame.MAX_PREFACE
  for (const message of waiting
    .filter(({ alone }) => alone !== true)
    .toSorted((a, b) => Number(b.urgent) - Number(a.urgent))) {
    room -= sizeOf(said(message)) + 4
    // one message always fits, because its size is limited when it is received
    if (room < 0 && !(isFirst && taken.size === 0)) break
    taken.add(message)
  }
  return waiting.filter((message) => taken.has(message))
}

/** Pattern for the start of a slash command of a coding agent, such as /compact. */
const COMMAND = /^\/[a-z][\w:.-]{0,99}(?=\s|$)/i

const isCommand = ({ files = [], from, text }: Message): boolean =>
  files.length === 0 && MessageFrame.isPerson(from) && COMMAND.test(text)

/**
 * The messages before the first slash command. If the first message is a command, only that: a command gets its own
 * turn.
 */
const beforeCommand = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const at = messages.findIndex(isCommand)
  return at < 0 ? messages : messages.slice(0, Math.max(1, at))
}

/** Describes why a run ended early, in one line, because the reason can contain text from outside. */
const endedEarly = (reason: string): string =>
  `ended early: ${MessageFrame.line(reason).replace(/\.$/, "")}. Take up its work again.`

/** Whether a run's prompt is only a slash command. Such a prompt does not introduce the agent. */
export const isBare = (prompt: string): boolean => COMMAND.test(prompt)

export const introduction = ({
  agent,
  instructions,
  role
}: Pick<Parts, "agent" | "instructions" | "role">): ReadonlyArray<string> =>
  [role === undefined ? "" : `You are ${agent}: ${role.trim()}`, instructions?.trim() ?? ""].filter(
    (part) => part !== ""
  )

/** Messages that the first turn of a run can carry together: all messages before the first slash command. */
const plain = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const at = messages.findIndex(isCommand)
  return at < 0 ? messages : messages.slice(0, at)
}

export const assemble = ({ commands = false, ...given }: Parts): Prompt => {
  const [first] = given.waiting
  const { task, unfinished } = given
  if (commands && first !== undefined && isCommand(first) && unfinished.length === 0 && (task ?? "").trim() === "")
    return { text: first.text, messageIds: [first.messageId] }
  const parts = commands ? { ...given, waiting: plain(given.waiting) } : given
  const lastRun = parts.lastRun === undefined ? [] : [`Your last run ${endedEarly(parts.lastRun)}`]
  const head = [...introduction(parts), task?.trim() ?? "", ...lastRun].filter((part) => part !== "")
  const size = sizeOf([...head, ...unfinished.map(said)].join("\n\n"))
  const more = unfinished.some(({ alone }) => alone === true)
    ? []
    : chosen(parts.waiting, size, unfinished.length === 0, parts.most)
  const messages = [...unfinished, ...more]
  return {
    text: textOf(head, messages, parts.drawn),
    messageIds: messages.map(({ messageId }) => messageId)
  }
}

type Turned = Pick<TurnMachine.Data, "ended" | "messageIds" | "unfinished">

/** Messages that wait for the next turn. The inbox may still list messages of the last turn: these are left out. */
export const queued = ({ waiting }: Inbox.Data, { messageIds }: Turned): ReadonlyArray<Message> =>
  waiting.filter(({ messageId }) => !messageIds.includes(messageId))

export const unfinishedOf = (inbox: Inbox.Data, { unfinished }: Turned): ReadonlyArray<Message> =>
  known(inbox).filter(({ messageId }) => unfinished.includes(messageId))

/** Waiting steering messages. `left`: ids of steering messages in an older log. */
const steering = (waiting: ReadonlyArray<Message>, left: ReadonlyArray<string>): ReadonlyArray<Message> =>
  waiting.filter(({ messageId, steer }) => steer === true || left.includes(messageId))

/**
 * The input of a later turn of a run. `introduced`: introduces the agent, if no earlier turn did. `commands`: a user's
 * slash command is passed unchanged, because an agent recognizes a command only at the start of its input.
 */
export const followUp = (
  inbox: Inbox.Data,
  turn: Turned & Pick<TurnMachine.Data, "steer">,
  drawn: string,
  commands = false,
  introduced: ReadonlyArray<string> = []
): { readonly input: string; readonly messageIds: ReadonlyArray<string>; readonly source: TurnMachine.Source } => {
  const waiting = queued(inbox, turn)
  const source = TurnMachine.nextOf([
    { source: "resume", messages: unfinishedOf(inbox, turn) },
    { source: "steer", messages: steering(waiting, turn.steer?.messageIds ?? []) },
    { source: "queue", messages: waiting }
  ])
  if (source === undefined) return { input: "", messageIds: [], source: "queue" }
  const isAgain = source.source === "resume"
  const fitting = commands ? beforeCommand(source.messages) : source.messages
  // if a user replies after a turn reached its limit, the turn's messages are sent again with the reply
  const word = isTurnLimit(turn.ended?.reason) ? waiting.filter(({ from }) => MessageFrame.isPerson(from)) : []
  const messages = isAgain ? [...source.messages, ...word] : chosen(fitting, sizeOf(introduced.join("\n\n")), true)
  const [first] = messages
  const again = isAgain ? [`Your last turn ${endedEarly(turn.ended?.reason ?? "it was interrupted")}`] : []
  const head = [...introduced, ...again]
  const isBare = commands && !isAgain && messages.length === 1 && isCommand(first!)
  return {
    input: isBare ? first!.text : textOf(head, messages, drawn),
    messageIds: messages.map(({ messageId }) => messageId),
    source: source.source
  }
}
