/**
 * BoardPanes: loads the contents of the panes for the selected row from the daemon when they are shown.
 *
 * Guarantees: if the contents of a pane cannot be loaded, the pane shows the reason.
 */
import { Effect, Stream } from "effect"
import * as Calendar from "../../domain/Calendar.ts"
import type { BoardRow } from "../../domain/BoardMessages.ts"
import type { Caller } from "../../domain/Messages.ts"
import { KEPT } from "../../board/ConversationView.ts"
import type { Client } from "../../api/rpc/ControlClient.ts"
import * as Diff from "../agents/Diff.ts"
import { AttachView } from "./AttachView.ts"
import { age, clock, count, plain } from "../render/Output.ts"
import type { Pane, PaneLine } from "./BoardPane.ts"

type Lines = ReadonlyArray<PaneLine>

/** Maximum number of newest runes that a pane loads. */
const NEWEST = 200

const none = (text: string): Lines => [{ text }]

const why = Effect.fnUntraced(function* (client: Client, row: BoardRow, caller: Caller, now: number) {
  if (row.kind !== "agent") return row.role === "" ? [] : none(plain(row.role))
  const { advice, lines } = yield* client.Why({ name: row.called, caller })
  return [
    ...lines.map(({ at, text }, n) => ({
      text: `${clock(at, now)} ${plain(text)}`,
      ...(n === lines.length - 1 ? { look: "strong" as const } : {})
    })),
    ...(advice === null ? [] : [{ text: plain(advice) }])
  ]
})

const COLOURS = { red: "bad", green: "good", yellow: "you", bold: "strong" } as const

const story = Effect.fnUntraced(function* (
  client: Client,
  row: BoardRow,
  kinds: ReadonlyArray<string>,
  caller: Caller
) {
  if (row.kind !== "agent") return none("The conversation of a session is in its own terminal.")
  const view = new AttachView()
  const runes = yield* Stream.runCollect(client.Log({ agent: row.called, kinds, tail: NEWEST, follow: false, caller }))
  const lines = [...runes.flatMap((rune) => view.feed(rune)), ...view.flush()]
  if (lines.length === 0) return none("There is no output yet.")
  return lines.map(({ colour, text }) => {
    const look = colour !== undefined && colour in COLOURS ? COLOURS[colour as keyof typeof COLOURS] : undefined
    return { text, ...(look === undefined ? {} : { look }) }
  })
})

/** Kinds of runes about a program's start, output and end. */
const OUTPUT: ReadonlyArray<string> = ["run.started", "run.output", "run.notice", "worker.moved"]

const diff = Effect.fnUntraced(function* (client: Client, row: BoardRow, caller: Caller) {
  if (row.kind !== "agent") return none("Only agents have a diff.")
  const found = yield* client.Diff({ name: row.called, caller })
  if (found.files.length === 0) return none(`There are no changes in ${plain(found.folder)}.`)
  return [...Diff.summary(found), { text: "" }, ...Diff.linesOf(found.patch)].map(({ look, text }) => ({
    text,
    isCode: true,
    ...(look === undefined || look === "faint" ? {} : { look })
  }))
})

const tree = Effect.fnUntraced(function* (client: Client, { kind, name }: BoardRow, now: number) {
  const rows = yield* client.Tree({ name: kind === "agent" ? name : null })
  return rows.map(({ crash, depth, mailbox, name, restarts, state, status }) => ({
    text: [
      `${"  ".repeat(depth)}${plain(name)}`,
      state ?? status ?? "",
      (mailbox ?? 0) === 0 ? "" : `${count(mailbox!, "message")} waiting`,
      (restarts ?? 0) === 0 ? "" : count(restarts!, "restart"),
      crash === null ? "" : `crashed ${age(now - crash.at)} ago: ${plain(crash.message)}`
    ]
      .filter((part) => part !== "")
      .join(" · "),
    ...(crash === null ? {} : { look: "bad" as const })
  }))
})

/** Age in ms of the first day in the cost pane. It is six days, so that the pane shows seven days including today. */
const WEEK = 6 * 86_400_000

const cost = Effect.fnUntraced(function* (client: Client, { kind, name, project }: BoardRow, now: number) {
  const since = Calendar.dayOf(now - WEEK)
  const all = yield* client.Costs({ by: ["agent", "day", "model"], since })
  const own = kind === "agent" ? all.filter(({ agent }) => agent === `${project}/${name}`) : all
  if (own.length === 0) return none("No known spending in the last seven days.")
  return own
    .toSorted((a, b) => Number((a.day ?? "") < (b.day ?? "")) - Number((a.day ?? "") > (b.day ?? "")))
    .map(({ agent = "", day = "", input, model = "", output, unpriced, usd }) => ({
      text: `${day}  $${usd.toFixed(4)}${unpriced > 0 ? " and more" : ""}  ${input + output} tokens  ${plain(model)}${kind === "agent" ? "" : `  ${plain(agent)}`}`
    }))
})

const timeline = Effect.fnUntraced(function* (client: Client, row: BoardRow, caller: Caller, now: number) {
  const of = row.kind === "agent" ? { agent: row.called } : row.conversation === "" ? {} : { stream: row.conversation }
  const runes = yield* Stream.runCollect(client.Log({ ...of, tail: NEWEST, follow: false, caller }))
  return runes.map(({ actor, at, eventId, kind, to }) => ({
    text: `${clock(at, now)} ${eventId} ${plain(actor)} ${kind}${to === null ? "" : ` → ${to}`}`
  }))
})

/** The lines of a pane. If loading fails, the error is returned as a line. */
export const lines = (client: Client, row: BoardRow, pane: Pane, caller: Caller, now: number): Effect.Effect<Lines> => {
  const asked = {
    why: () => why(client, row, caller, now),
    conversation: () => story(client, row, KEPT, caller),
    diff: () => diff(client, row, caller),
    output: () => story(client, row, OUTPUT, caller),
    tree: () => tree(client, row, now),
    cost: () => cost(client, row, now),
    timeline: () => timeline(client, row, caller, now)
  }
  return Effect.catch(asked[pane](), (error) => Effect.succeed<Lines>([{ text: plain(error.message), look: "bad" }]))
}
