/**
 * SessionTable: coding sessions as a table: what waits for a person stands out.
 * Pure; `ps`, `watch` and `plates` show it.
 */
import * as NodePath from "node:path"
import type { PlateInfo } from "../../domain/Messages.ts"
import { LOOKS } from "../../domain/Words.ts"
import { inWorld } from "../parse/Hint.ts"
import { age, type Cell, cut, lookColour, plain, table, type TableOptions } from "../render/Output.ts"

export const waits = ({ status }: PlateInfo): boolean => status === "AwaitingInput" || status === "AwaitingApproval"

/** The id's beginning is enough to name it. */
const SHORT = 12

/** `shop/builder`, else the folder's name. */
const projectOf = ({ agent, cwd }: PlateInfo): string => agent ?? (cwd === null ? "-" : NodePath.basename(cwd))

/** A run of our own tells all itself, and one that has ended tells no more: only hooks can be missed. */
const restsOnHooks = ({ restsOn, watchable }: PlateInfo): boolean => !watchable && restsOn?.signal === "hook"

const verbOf = ({ questions }: PlateInfo): string => (questions === undefined ? "approve" : "answer")

/** So much of what is asked leave for is shown: `approve` shows more. */
const ARGUMENTS = 60

const detailOf = (plate: PlateInfo, { world = null }: TableOptions): string =>
  [
    plain(plate.detail),
    plate.arguments === undefined ? "" : cut(plain(plate.arguments.slice(0, 1000)), ARGUMENTS),
    plate.title === null ? "" : `“${plain(plate.title)}”`,
    plate.approval === null ? "" : inWorld(`(agentd ${verbOf(plate)} ${plate.plateId.slice(0, SHORT)})`, world),
    restsOnHooks(plate) ? "(no transcript: a missed hook cannot be made good)" : ""
  ]
    .filter((part) => part !== "")
    .join(" ")

const restsOn = ({ restsOn }: PlateInfo, now: number): string =>
  restsOn === null ? "-" : `${restsOn.signal} ${age(now - restsOn.at)}`

const leading = (plate: PlateInfo, now: number): ReadonlyArray<Cell> => [
  { text: plate.plateId.slice(0, SHORT), colour: "bold" },
  { text: plate.word, colour: lookColour[LOOKS[plate.word].colour] },
  { text: age(now - plate.since) },
  { text: restsOn(plate, now), colour: "dim" },
  { text: plain(projectOf(plate)) },
  { text: plain(plate.branch ?? "-") }
]

const LEADING = ["PLATE", "STATE", "SINCE", "BY", "PROJECT", "BRANCH"]

const count = (value: number | null): Cell => ({ text: value === null ? "-" : String(value), right: true })

export const full = (plates: ReadonlyArray<PlateInfo>, now: number, options: TableOptions): ReadonlyArray<string> =>
  table(
    [...LEADING, "PID", "TOOLS", "TOKENS", "TODOS", "LAST TOOL", "SESSION", "DETAIL"],
    plates.map((plate) => [
      ...leading(plate, now),
      count(plate.pid),
      count(plate.toolCalls),
      count(plate.tokens),
      count(plate.todos),
      { text: plain(plate.lastTool ?? "-") },
      { text: plain(plate.sessionId ?? "-") },
      { text: detailOf(plate, options) }
    ]),
    { ...options, spare: ["SESSION", "TODOS", "LAST TOOL", "TOKENS", "TOOLS", "PID", "BRANCH", "BY", "SINCE"] }
  )
