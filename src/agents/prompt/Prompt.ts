/**
 * Prompt: the text that an agent gets at the start of a run. Pure: the same parts give the same text; the random mark
 * of its frames (Frame) is one of the parts.
 *
 * Order: who the agent is, its standing task, the outcome of the last run, then the messages, oldest first. Messages
 * that would make the prompt longer than `MAX_PROMPT_BYTES` wait for the next run; urgent ones are the last to wait.
 * Messages that a run has already carried are always included, because nothing else stores them.
 */
import { words } from "../../runs/FileWords.ts"
import type { AgentConfig } from "../../config/AgentConfig.ts"
import type { GivenFile } from "../../runs/GivenFile.ts"
import * as Frame from "../../domain/Frame.ts"
import * as TurnMachine from "../machines/TurnMachine.ts"
import { sizeOf } from "../run/Excerpt.ts"
import type * as Inbox from "../machines/Inbox.ts"
import { known, type Message } from "../machines/Inbox.ts"
import { isTurnLimit } from "../../domain/Allowance.ts"

/** Maximum size in the log, bytes: well below the size limit of a rune. */
export const MAX_PROMPT_BYTES = 512 * 1024
/** Maximum size of any prompt, whatever its agent's instructions, bytes: a larger rune would be refused. */
export const MAX_KEPT_BYTES = 960 * 1024

/** Maximum size as a program's argument, bytes: below the system's limit, with room for the names of files. */
const MAX_ARGUMENT_BYTES = 120 * 1024

/** The maximum size that every backend of the agent accepts, bytes. */
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
  /** The standing task of an agent in `loop` mode. */
  readonly task: string | undefined
  /** The outcome of the last run; undefined if it ended well. */
  readonly lastRun: string | undefined
  /** Messages that the last run carried and did not finish, oldest first. `waiting`: later ones. */
  readonly unfinished: ReadonlyArray<Message>
  readonly waiting: ReadonlyArray<Message>
  /** A unique id for this prompt, from which the mark of its frames derives. */
  readonly drawn: string
  /** Messages beyond this size wait, bytes. */
  readonly most?: number
  /** Whether a person's slash command is passed to the agent unchanged. */
  readonly commands?: boolean
}

export interface Prompt {
  readonly text: string
  /** Ids of the messages in the text, unfinished ones first. */
  readonly messageIds: ReadonlyArray<string>
}

/** `first`: the number of the message's first file among the files of the whole input. */
const framed = ({ files = [], from, text, urgent }: Message, first: number): Frame.Framed => {
  const named = files.map((file, at) => `file ${first + at}, ${words(file)}`).join("; ")
  return {
    about: `from ${Frame.sender(from)}${urgent ? " (urgent)" : ""}${named === "" ? "" : ` with ${named}`}`,
    text
  }
}

/** A message as the agent sees it, except for the mark. */
const said = (message: Message): string => Frame.measured(framed(message, 1_000))

/** Frames the messages, and numbers their files consecutively, in the order in which they are handed over. */
const numbered = (messages: ReadonlyArray<Message>): ReadonlyArray<Frame.Framed> => {
  let next = 1
  return messages.map((message) => {
    const first = next
    next += message.files?.length ?? 0
    return framed(message, first)
  })
}

/** The files of an input that carries these messages, in the order of their numbers. */
export const filesOf = (inbox: Inbox.Data, messageIds: ReadonlyArray<string>): ReadonlyArray<GivenFile> => {
  const files = new Map(known(inbox).map((message) => [message.messageId, message.files ?? []]))
  return messageIds.flatMap((messageId) => files.get(messageId) ?? [])
}

/** The whole text of an input: agentd's own part, then the messages, each in its frame. */
const textOf = (head: ReadonlyArray<string>, messages: ReadonlyArray<Message>, drawn: string): string =>
  [...head, ...Frame.framed(drawn, numbered(messages))].join("\n\n") + "\n"

/**
 * Chooses a turn's messages among the waiting ones, oldest first. A message with `alone` gets a turn of its own. The
 * others go together if there is room after `size` bytes.
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
  let room = most - size - Frame.MAX_PREFACE
  for (const message of waiting
    .filter(({ alone }) => alone !== true)
    .toSorted((a, b) => Number(b.urgent) - Number(a.urgent))) {
    room -= sizeOf(said(message)) + 4
    // one message always fits: its size is limited when it is received
    if (room < 0 && !(isFirst && taken.size === 0)) break
    taken.add(message)
  }
  return waiting.filter((message) => taken.has(message))
}

/** The beginning of a coding agent's slash command, such as /compact. */
const COMMAND = /^\/[a-z][\w:.-]{0,99}(?=\s|$)/i

const isCommand = ({ files = [], from, text }: Message): boolean =>
  files.length === 0 && Frame.isPerson(from) && COMMAND.test(text)

/** Messages up to the first slash command, which gets a turn of its own. */
const beforeCommand = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const at = messages.findIndex(isCommand)
  return at < 0 ? messages : messages.slice(0, Math.max(1, at))
}

/** The reason may be text from outside, so it is reduced to one line. */
const endedEarly = (reason: string): string =>
  `ended early: ${Frame.line(reason).replace(/\.$/, "")}. Take up its work again.`

/** Whether a run's prompt is a slash command, which does not say who the agent is. */
export const isBare = (prompt: string): boolean => COMMAND.test(prompt)

export const introduction = ({
  agent,
  instructions,
  role
}: Pick<Parts, "agent" | "instructions" | "role">): ReadonlyArray<string> =>
  [role === undefined ? "" : `You are ${agent}: ${role.trim()}`, instructions?.trim() ?? ""].filter(
    (part) => part !== ""
  )

/** Messages that the first turn of a run may carry together: those before the first slash command. */
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

/** Messages that wait for the next turn. Excludes those of the last turn, even if the inbox still lists them. */
export const queued = ({ waiting }: Inbox.Data, { messageIds }: Turned): ReadonlyArray<Message> =>
  waiting.filter(({ messageId }) => !messageIds.includes(messageId))

/** Messages that the last turn carried and did not finish. */
export const unfinishedOf = (inbox: Inbox.Data, { unfinished }: Turned): ReadonlyArray<Message> =>
  known(inbox).filter(({ messageId }) => unfinished.includes(messageId))

/** The waiting messages that steer. `left`: ids of messages that a steer in an older log left. */
const steering = (waiting: ReadonlyArray<Message>, left: ReadonlyArray<string>): ReadonlyArray<Message> =>
  waiting.filter(({ messageId, steer }) => steer === true || left.includes(messageId))

/**
 * The input of a further turn of a run. `introduced`: tells the agent who it is, if no earlier turn did. `commands`: a
 * person's slash command is passed unchanged, because an agent looks for a command only at the very beginning.
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
  // a person's answer to a turn that reached its limit goes together with that turn's messages
  const word = isTurnLimit(turn.ended?.reason) ? waiting.filter(({ from }) => Frame.isPerson(from)) : []
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
