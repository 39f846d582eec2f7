/**
 * Prompt: what an agent is told at the start of a run. Pure: the same parts give
 * the same text; what is drawn for its frames (Frame) is among them.
 *
 * Order: who it is, its standing task, what became of the last run, then the
 * messages, oldest first. Messages that would make it longer than `MAX_PROMPT_BYTES`
 * wait for the next run, urgent ones last of all; what a run has carried already is
 * carried again whatever else the prompt holds, since nobody else keeps it.
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

/** In the log, where it is written whole: well under the size that a rune may have. */
export const MAX_PROMPT_BYTES = 512 * 1024
/** No prompt is longer, whatever its agent's instructions are: its rune would be refused. */
export const MAX_KEPT_BYTES = 960 * 1024

/** Where it is an argument of a program: under the system's limit on one, with room for the names of files. */
const MAX_ARGUMENT_BYTES = 120 * 1024

/** The most bytes of a prompt that any of the agent's backends takes. */
export const mostOf = ({ backend, fallback }: Pick<AgentConfig, "backend" | "fallback">): number =>
  [backend, ...fallback].some((one) => one.type === "command" && one.promptBy === "argument")
    ? MAX_ARGUMENT_BYTES
    : MAX_PROMPT_BYTES

/** Bytes that it takes in the log. */
export const sizeOfText = sizeOf

export interface Parts {
  readonly agent: string
  readonly role: string | undefined
  readonly instructions: string | undefined
  /** The standing task of an agent that loops. */
  readonly task: string | undefined
  /** The outcome of the last run, where it did not end well. */
  readonly lastRun: string | undefined
  /** Messages that the last run carried and did not finish, then later ones; oldest first. */
  readonly unfinished: ReadonlyArray<Message>
  readonly waiting: ReadonlyArray<Message>
  /** Drawn for this prompt: an id of its own. */
  readonly drawn: string
  /** Messages beyond so many bytes wait. */
  readonly most?: number
  /** Whether a person's command of the agent's own goes to it as it is. */
  readonly commands?: boolean
}

export interface Prompt {
  readonly text: string
  /** Messages that the text carries: unfinished ones first. */
  readonly messageIds: ReadonlyArray<string>
}

/** `first`: the number of its first file among those of the whole input. */
const framed = ({ files = [], from, text, urgent }: Message, first: number): Frame.Framed => {
  const named = files.map((file, at) => `file ${first + at}, ${words(file)}`).join("; ")
  return {
    about: `from ${Frame.sender(from)}${urgent ? " (urgent)" : ""}${named === "" ? "" : ` with ${named}`}`,
    text
  }
}

/** A message as its agent is told it, but for the mark. */
const said = (message: Message): string => Frame.measured(framed(message, 1_000))

/** The messages, with their files numbered through: so they are handed over, too. */
const numbered = (messages: ReadonlyArray<Message>): ReadonlyArray<Frame.Framed> => {
  let next = 1
  return messages.map((message) => {
    const first = next
    next += message.files?.length ?? 0
    return framed(message, first)
  })
}

/** The files of an input that carries these messages, in the order in which it numbers them. */
export const filesOf = (inbox: Inbox.Data, messageIds: ReadonlyArray<string>): ReadonlyArray<GivenFile> => {
  const files = new Map(known(inbox).map((message) => [message.messageId, message.files ?? []]))
  return messageIds.flatMap((messageId) => files.get(messageId) ?? [])
}

/** All of an input: what agentd says, then the messages, each in its frame. */
const textOf = (head: ReadonlyArray<string>, messages: ReadonlyArray<Message>, drawn: string): string =>
  [...head, ...Frame.framed(drawn, numbered(messages))].join("\n\n") + "\n"

/**
 * Chooses a turn's messages among the waiting ones, oldest first: a message that is to be alone is
 * alone, the others go together as far as there is room for them beside `size` bytes.
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
    // one message always fits: its size is bounded where it is received
    if (room < 0 && !(isFirst && taken.size === 0)) break
    taken.add(message)
  }
  return waiting.filter((message) => taken.has(message))
}

/** Begins a command of a coding agent's own, such as /compact. */
const COMMAND = /^\/[a-z][\w:.-]{0,99}(?=\s|$)/i

const isCommand = ({ files = [], from, text }: Message): boolean =>
  files.length === 0 && Frame.isPerson(from) && COMMAND.test(text)

/** Messages up to the first command, which is a turn of its own. */
const beforeCommand = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const at = messages.findIndex(isCommand)
  return at < 0 ? messages : messages.slice(0, Math.max(1, at))
}

/** The reason may be another's words. */
const endedEarly = (reason: string): string =>
  `ended early: ${Frame.line(reason).replace(/\.$/, "")}. Take up its work again.`

/** Whether a run's prompt is a command of its agent's own: it does not say who the agent is. */
export const isBare = (prompt: string): boolean => COMMAND.test(prompt)

export const introduction = ({
  agent,
  instructions,
  role
}: Pick<Parts, "agent" | "instructions" | "role">): ReadonlyArray<string> =>
  [role === undefined ? "" : `You are ${agent}: ${role.trim()}`, instructions?.trim() ?? ""].filter(
    (part) => part !== ""
  )

/** Messages that the first turn of a run may carry beside others: a command waits for a turn of its own. */
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

/** Messages that wait for the next turn. Those of the last turn wait no more, even if the inbox has not heard of it. */
export const queued = ({ waiting }: Inbox.Data, { messageIds }: Turned): ReadonlyArray<Message> =>
  waiting.filter(({ messageId }) => !messageIds.includes(messageId))

/** Messages that the last turn has carried and not done. */
export const unfinishedOf = (inbox: Inbox.Data, { unfinished }: Turned): ReadonlyArray<Message> =>
  known(inbox).filter(({ messageId }) => unfinished.includes(messageId))

/** Puts steering messages first among the waiting ones; `left`: messages left by a steer of an older log. */
const steering = (waiting: ReadonlyArray<Message>, left: ReadonlyArray<string>): ReadonlyArray<Message> =>
  waiting.filter(({ messageId, steer }) => steer === true || left.includes(messageId))

/**
 * The input of a further turn of a run: its agent knows who it is, or is told so now (`introduced`). `commands`: a
 * person's command of the agent's own goes to it as it is, since an agent looks for one at the very beginning.
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
  // a person's answer to a turn that reached its limit goes with what that was asked
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
