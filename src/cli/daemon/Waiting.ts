/**
 * Waiting: formats the list of items that need the user as lines. `waiting` shows the whole list. Without a call,
 * `approve`, `deny` and `answer` show only the items that can be answered. The daemon decides which items and commands
 * the list contains (WaitingList). Pure.
 *
 * Guarantees: the list is only an overview. Texts from outside are shortened, and characters with a misleading look are
 * marked. A call can be approved only where it is shown in full.
 */
import type { Question } from "../../runs/Question.ts"
import { telling } from "../../domain/CallSummary.ts"
import { visible } from "../../domain/VisibleText.ts"
import { batchTitle, groupsOf } from "../../board/WaitingGroups.ts"
import type { CallBatch, WaitingReply, WaitingRow } from "../../board/WaitingMessages.ts"
import type { World } from "../parse/DeclaredVerb.ts"
import { inWorld } from "../parse/HintCommand.ts"
import { age, type Colour, INCOMPLETE, paint, plain } from "../render/Output.ts"

export const NOTHING: WaitingReply = { rows: [], more: 0 }

const ASKS: ReadonlySet<WaitingRow["kind"]> = new Set(["approval", "question", "session"])

/** The list with only those items that can be answered. */
export const asking = ({ rows, ...rest }: WaitingReply): WaitingReply => ({
  ...rest,
  rows: rows.filter(({ kind }) => ASKS.has(kind)),
  more: 0
})

export const choices = (questions: ReadonlyArray<Question>): ReadonlyArray<string> =>
  questions.flatMap(({ options, question, several }) => [
    `${plain(question)}${several ? " (one or more)" : ""}`,
    ...options.map(
      ({ description, label }, at) =>
        `  ${at + 1}  ${plain(label)}${description === "" ? "" : `: ${plain(description)}`}`
    )
  ])

const colours: { readonly [kind in WaitingRow["kind"]]: Colour } = {
  damage: "red",
  approval: "yellow",
  question: "yellow",
  session: "yellow",
  config: "yellow",
  held: "cyan",
  dropped: "red",
  bound: "yellow",
  agent: "red",
  conversation: "yellow",
  project: "red",
  goal: "yellow",
  channel: "yellow",
  mail: "red",
  provider: "red",
  disk: "red",
  program: "cyan"
}

const time = ({ since, until }: WaitingRow, now: number): string => {
  const parts = [
    ...(since === 0 ? [] : [`for ${age(Math.max(0, now - since))}`]),
    ...(until === null ? [] : [until > now ? `${age(until - now)} left` : "timed out"])
  ]
  return parts.length === 0 ? "" : ` (${parts.join(", ")})`
}

const head = (row: WaitingRow, now: number, colour: boolean): string =>
  `${paint(colour, "bold", plain(row.who))}: ${paint(colour, colours[row.kind], plain(row.text))}${time(row, now)}`

const marked = (text: string): string => visible(text).replaceAll("\n", "\\u{a}")

/** Maximum length of a call's description in a batch, in characters. */
const MOST_TOLD = 200

const more = (count: number): ReadonlyArray<string> => (count === 0 ? [] : [`… and ${count} more`])

/** A batch: a row for each call, with the command that shows it in full. */
const batchLines = (
  batch: CallBatch,
  rows: readonly [WaitingRow, ...ReadonlyArray<WaitingRow>],
  now: number,
  colour: boolean
): ReadonlyArray<string> => [
  `${paint(colour, "yellow", marked(batchTitle(rows, batch)))}${time(rows[0], now)}`,
  ...rows.flatMap(({ commands, details, who }) => [
    `    ${plain(who)}: ${marked(telling(details[0] ?? "", MOST_TOLD))}`,
    ...commands.slice(0, 1).map(({ command }) => paint(colour, "dim", `      → ${plain(command)}`))
  ]),
  paint(colour, "dim", "    → agentd approve --all   see all of them in full, and approve them together")
]

export const render = (waiting: WaitingReply, now: number, colour: boolean): ReadonlyArray<string> => {
  const { reading, rows } = waiting
  if (rows.length === 0) return [reading === true ? INCOMPLETE : "Nothing waits for you."]
  return [
    ...(reading === true ? [INCOMPLETE] : []),
    ...groupsOf(waiting).flatMap(({ batch, rows: [row, ...others] }) => {
      if (batch !== undefined) return batchLines(batch, [row, ...others], now, colour)
      const wide = Math.max(0, ...row.commands.map(({ command }) => command.length))
      return [
        head(row, now, colour),
        ...row.details.map((line) => `    ${marked(line)}`),
        ...row.commands.map(({ command, does }) =>
          paint(colour, "dim", `    → ${plain(command)}${" ".repeat(wide - command.length)}   ${does}`)
        )
      ]
    }),
    ...more(waiting.more)
  ]
}

export const view = (waiting: WaitingReply, { colour, now, world }: World): ReadonlyArray<string> =>
  render(waiting, now, colour).map((line) => inWorld(line, world))
