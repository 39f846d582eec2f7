/**
 * `agentd complete KIND`: prints names for shell completion, one per line, each with a tab and a description. It is
 * called by the scripts that `agentd completions` prints, and is not listed in the help.
 *
 * Guarantees: names with characters that are special in a shell are not printed.
 */
import type { BoardRow } from "../../domain/BoardMessages.ts"
import type { ProjectInfo } from "../../domain/Messages.ts"
import { all, declare, map, pick, read } from "./DeclaredVerb.ts"
import { plain } from "../render/Output.ts"

export const KINDS = ["agent", "call", "channel", "goal", "label", "name", "project", "session"] as const
export type NameKind = (typeof KINDS)[number]

interface Offered {
  readonly name: string
  readonly is: string
}

/** Maximum length of a description, in characters. */
const MAX_IS = 80

const WORD = /^[\w@%+.,/:-]+$/

/**
 * The names of a board row that completion offers: its full name and, in its project's folder, before that the short
 * name.
 */
const namesOf = ({ called, kind, name, project }: BoardRow, here: string | undefined): ReadonlyArray<string> => {
  const short = kind === "channel" ? name.replace(/^#/, "") : name
  const isHere = project === here && kind !== "session" && kind !== "project"
  return [...(isHere ? [short] : []), ...(called === "" ? [] : [called])]
}

const offeredBy = (kind: NameKind, row: BoardRow, here: string | undefined): ReadonlyArray<Offered> => {
  const { asks, labels = [], project, role, says, word } = row
  if (kind === "call") return asks.map((name) => ({ name, is: says }))
  if (kind === "label") return labels.map((name) => ({ name, is: "label" }))
  if (kind === "project") return row.kind === "session" || project === "" ? [] : [{ name: project, is: "project" }]
  if (row.kind === "matter" || (kind !== "name" && kind !== row.kind)) return []
  const is = row.kind === "agent" && role === "" ? `${word}: ${says}` : role === "" ? says : `${word}: ${role}`
  return namesOf(row, here).map((name) => ({ name, is }))
}

/** The names to offer, without duplicates. `here`: name of this folder's project. */
export const offers = (
  kind: NameKind,
  rows: ReadonlyArray<BoardRow>,
  here: string | undefined
): ReadonlyArray<Offered> => {
  const found = rows.flatMap((row) => offeredBy(kind, row, here)).filter(({ name }) => WORD.test(name))
  return [...new Map(found.map((one) => [one.name, one])).values()]
}

const projectAt = (projects: ReadonlyArray<ProjectInfo>, config: string | null): string | undefined =>
  projects.find((project) => project.config === config)?.name

export const complete = declare({
  path: ["complete"],
  description: "List names for shell completion",
  examples: [{ command: "agentd complete agent", description: "List agents, one per line: name, tab, description" }],
  args: { kind: pick(KINDS, "Kind of names to list") },
  rpc: ({ kind }, { config }) =>
    map(all({ board: read("Board", { all: false }), projects: read("Projects", null) }), ({ board, projects }) =>
      offers(kind, board.rows, projectAt(projects, config))
    ),
  view: (names) => names.map(({ is, name }) => `${name}\t${plain(is).slice(0, MAX_IS)}`),
  fleeting: 500
})
