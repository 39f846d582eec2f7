/**
 * SessionTable: formats coding sessions as a table, in which sessions that wait for the user stand out. Pure. Used by
 * `agentd ps --plates`.
 */
import * as NodePath from "node:path"
import type { PlateInfo } from "../../domain/Messages.ts"
import { LOOKS } from "../../domain/StatusWords.ts"
import { inWorld } from "../parse/HintCommand.ts"
import { age, type Cell, cut, lookColour, plain, table, type TableOptions } from "../render/Output.ts"

export const waits = ({ status }: PlateInfo): boolean => status === "AwaitingInput" || status === "AwaitingApproval"

/** Number of characters of a plate's id that are shown. Commands accept the beginning of an id. */
const SHORT = 12

/** Name of the session's agent, such as `shop/builder`; if there is none, the name of the session's folder. */
const projectOf = ({ agent, cwd }: PlateInfo): string => agent ?? (cwd === null ? "-" : NodePath.basename(cwd))

/**
 * True if only hooks report the session, so that the information of a missed hook is lost. False for runs of agentd,
 * and for sessions that have ended.
 */
const restsOnHooks = ({ restsOn, watchable }: PlateInfo): boolean => !watchable && restsOn?.signal === "hook"

const verbOf = ({ questions }: PlateInfo): string => (questions === undefined ? "approve" : "answer")

/** Maximum length of the arguments of a permission request, in characters. `approve` shows them in full. */
const ARGUMENTS = 60

const detailOf = (plate: PlateInfo, { world = null }: TableOptions): string =>
  [
    plain(plate.detail),
    plate.arguments === undefined ? "" : cut(plain(plate.arguments.slice(0, 1000)), ARGUMENTS),
    plate.title === null ? "" : `“${plain(plate.title)}”`,
    plate.approval === null ? "" : inWorld(`(agentd ${verbOf(plate)} ${plate.plateId.slice(0, SHORT)})`, world),
    restsOnHooks(plate) ? "(no transcript: a missed hook cannot be recovered)" : ""
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
