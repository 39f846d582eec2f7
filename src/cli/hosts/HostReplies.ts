/**
 * HostReplies: merges the replies of several hosts into one reply, as `--all-hosts` shows them. Pure.
 *
 * Guarantees: each name and each command of another host contains that host, so that it can be typed as shown. A host
 * that did not answer has a row of its own.
 */
import type { Board, BoardHead, BoardRow } from "../../domain/BoardMessages.ts"
import type { CostRow } from "../../board/CostMessages.ts"
import type { Rune } from "../../core/event-log/Rune.ts"
import type { WaitingReply, WaitingRow } from "../../board/WaitingMessages.ts"
import { inWorld } from "../parse/HintCommand.ts"
import type { Refused } from "./HostLine.ts"

/** The replies of one host to the calls of a verb, or the reason why there are none. `host`: null for this machine. */
export type Heard =
  | { readonly host: string | null; readonly replies: ReadonlyArray<unknown> }
  | { readonly host: string | null; readonly silent: Refused; readonly seen: number }

const THIS = "this machine"

type Silent = Extract<Heard, { readonly silent: Refused }>
const isSilent = (heard: Heard): heard is Silent => "silent" in heard

export const named = (host: string, name: string): string => (name === "" ? "" : `${host}:${name}`)

type Commands = BoardRow["commands"]
const commandsOf = (commands: Commands, host: string): Commands =>
  commands.map(({ command, does }) => ({ does, command: inWorld(command, host) }))

export const rowOf = (row: BoardRow, host: string): BoardRow => ({
  ...row,
  id: named(host, row.id),
  conversation: named(host, row.conversation),
  project: named(host, row.project),
  name: row.project === "" || row.kind === "project" ? named(host, row.name) : row.name,
  called: named(host, row.called),
  says: inWorld(row.says, host),
  asks: row.asks.map((id) => named(host, id)),
  commands: commandsOf(row.commands, host)
})

/** Id of the row of a host that did not answer. */
const silentId = (host: string | null): string => (host === null ? "host" : named(host, "host"))

export const silentRow = ({ host, seen, silent: { message, remedy } }: Silent): BoardRow => ({
  id: silentId(host),
  kind: "matter",
  conversation: "",
  project: "",
  name: host ?? THIS,
  called: "",
  word: "failed",
  reason: null,
  until: null,
  says: `${message.startsWith("refused: ") ? "" : "does not answer: "}${message} ${inWorld(remedy, host)}`,
  since: seen,
  restsOn: 0,
  state: "",
  asks: [],
  commands: [],
  role: "",
  model: "",
  runs: 0,
  context: null,
  today: null,
  errors: null,
  inbox: 0,
  progress: null,
  branch: null,
  cwd: null,
  pid: null
})

export const headOf = (heads: ReadonlyArray<BoardHead>): BoardHead => ({
  rune: heads[0]?.rune ?? 0,
  startedAt: heads[0]?.startedAt ?? 0,
  today: {
    tokens: heads.reduce((sum, { today }) => sum + today.tokens, 0),
    usd: heads.reduce((sum, { today }) => sum + today.usd, 0)
  }
})

const boards = (
  all: ReadonlyArray<{ readonly host: string | null; readonly reply: Board }>,
  mute: ReadonlyArray<Silent>
) => {
  const board: Board = {
    head: headOf(all.map(({ reply }) => reply.head)),
    rows: [
      ...all.flatMap(({ host, reply }) => (host === null ? reply.rows : reply.rows.map((row) => rowOf(row, host)))),
      ...mute.map(silentRow)
    ],
    ...(all.some(({ reply }) => reply.reading === true) ? { reading: true } : {})
  }
  return board
}

const waitingRow = (row: WaitingRow, host: string): WaitingRow => ({
  ...row,
  id: named(host, row.id),
  who: `${host}: ${row.who}`,
  commands: commandsOf(row.commands, host)
})

const waitings = (
  all: ReadonlyArray<{ readonly host: string | null; readonly reply: WaitingReply }>,
  mute: ReadonlyArray<Silent>
): WaitingReply => ({
  // batches of calls are approved with one command, which works on one host
  rows: [
    ...all.flatMap(({ host, reply }) => (host === null ? reply.rows : reply.rows.map((row) => waitingRow(row, host)))),
    ...mute.map(({ host, seen, silent }): WaitingRow => ({
      id: silentId(host),
      kind: "program",
      who: host ?? THIS,
      text: `does not answer: ${silent.message}`,
      details: [inWorld(silent.remedy, host)],
      since: seen,
      until: null,
      commands: []
    }))
  ].toSorted((a, b) => a.since - b.since),
  more: all.reduce((sum, { reply }) => sum + reply.more, 0),
  ...(all.some(({ reply }) => reply.reading === true) ? { reading: true } : {})
})

const costs = (
  all: ReadonlyArray<{ readonly host: string | null; readonly reply: ReadonlyArray<CostRow> }>
): ReadonlyArray<CostRow> =>
  all.flatMap(({ host, reply }) =>
    host === null
      ? reply
      : reply.map((row) => (row.project === undefined ? row : { ...row, project: named(host, row.project) }))
  )

const runes = (
  all: ReadonlyArray<{ readonly host: string | null; readonly reply: ReadonlyArray<Rune> }>
): ReadonlyArray<Rune> =>
  all
    .flatMap(({ host, reply }) =>
      host === null ? reply : reply.map((rune) => ({ ...rune, stream: named(host, rune.stream) }))
    )
    .toSorted((a, b) => a.at - b.at)

type Merge = (
  all: ReadonlyArray<{ readonly host: string | null; readonly reply: never }>,
  mute: ReadonlyArray<Silent>
) => unknown

/** How the replies of a procedure are merged. Verbs that call another procedure act on one host only. */
const MERGES: { readonly [tag: string]: Merge } = { Board: boards, Waiting: waitings, Costs: costs, Log: runes }

export const canMerge = (tags: ReadonlyArray<string>): boolean => tags.every((tag) => MERGES[tag] !== undefined)

/** Merges the replies to each call. */
export const merged = (tags: ReadonlyArray<string>, heard: ReadonlyArray<Heard>): ReadonlyArray<unknown> => {
  const answered = heard.flatMap((one) => (isSilent(one) ? [] : [one]))
  return tags.map((tag, at) =>
    MERGES[tag]!(
      answered.map(({ host, replies }) => ({ host, reply: replies[at] as never })),
      heard.filter(isSilent)
    )
  )
}

type Rows = { readonly rows?: ReadonlyArray<{ readonly id?: string }> }

/** The hosts that did not answer and have no row in the value of a verb, or in the value's board. */
export const untold = (value: unknown, heard: ReadonlyArray<Heard>): ReadonlyArray<Silent> => {
  const { board, rows = board?.rows ?? [] } = (value ?? {}) as Rows & { readonly board?: Rows }
  const told = new Set(rows.map(({ id }) => id))
  return heard.filter(isSilent).filter(({ host }) => !told.has(silentId(host)))
}
