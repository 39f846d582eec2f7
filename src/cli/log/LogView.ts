/** `agentd log`: formats the rune log, one rune per line. */
import { words } from "../../runs/FileDescription.ts"
import type { Caller } from "../../domain/Messages.ts"
import type { Rune } from "../../core/event-log/Rune.ts"
import type { LogSelection } from "../../board/DaemonMessages.ts"
import {
  declare,
  type Input,
  maybeCount,
  maybeWord,
  moment,
  off,
  option,
  options,
  readAll
} from "../parse/DeclaredVerb.ts"
import { atOf } from "../parse/TimeExpression.ts"
import { MARK } from "../../domain/TruncatedAnswer.ts"
import { clock, cut, paint, plain, stateColour } from "../render/Output.ts"

/** Number of runes that are printed by default. */
const NEWEST = 50
/** Maximum length of a payload in characters if the terminal's width is unknown. */
const PAYLOAD = 160

/** Fields that are left out because they are too long, or because an earlier column shows them. */
const LEFT_OUT = new Set(["_tag", "at", "prompt", "initial"])

/** A field's value as text, such as `Error: exit code 3` for a tagged value; JSON for other values. */
const told = (value: unknown): string => {
  if (typeof value === "string") return value
  if (typeof value !== "object" || value === null || !("_tag" in value)) return JSON.stringify(value)
  const { _tag, ...rest } = value
  const facts = Object.values(rest).map((fact) => (typeof fact === "string" ? fact : JSON.stringify(fact)))
  return [String(_tag), ...facts].join(": ")
}

/** Puts a list of a message's files in front of the message's text. */
const filesFirst = (fields: object): object => {
  if (!("message" in fields) || typeof fields.message !== "object" || fields.message === null) return fields
  const { files, ...message } = fields.message as { readonly files?: ReadonlyArray<Parameters<typeof words>[0]> }
  return Array.isArray(files) ? { files: files.map(words).join(", "), ...fields, message } : fields
}

/** The fields of the rune's machine event on one line. If the rune has no such event, the fields of its payload. */
const short = ({ kind, payload }: Rune): string => {
  const { event } = payload
  const fields = typeof event === "object" && event !== null ? event : payload
  if ("text" in fields && typeof fields.text === "string") return plain(fields.text)
  const parts = Object.entries(filesFirst(fields))
    .filter(([name, value]) => !LEFT_OUT.has(name) && !(Array.isArray(value) && value.length === 0))
    .map(
      ([name, value]) => `${name}=${told(value)}${kind === "turn.error" && name === "partialOutput" ? ` ${MARK}` : ""}`
    )
  return plain(parts.join(" "))
}

export const lineOf = (
  rune: Rune,
  now: number,
  options: { readonly colour: boolean; readonly columns: number | null }
) => {
  const { colour, columns } = options
  const move = rune.to === null ? "" : rune.from === rune.to || rune.from === null ? rune.to : `${rune.from}→${rune.to}`
  const parts = [
    [clock(rune.at, now), "dim"],
    [plain(`${rune.stream}/${rune.actor}`), undefined],
    [rune.kind, "bold"],
    [move, rune.to === null ? undefined : stateColour(rune.to)],
    [rune.trigger ?? "", undefined]
  ] as const
  const shown = parts.filter(([text]) => text !== "")
  const used = shown.reduce((width, [text]) => width + text.length + 2, 0)
  const payload = cut(short(rune), columns === null ? PAYLOAD : Math.max(20, columns - used))
  return [...shown.map(([text, as]) => paint(colour, as, text)), paint(colour, "dim", payload)].join("  ").trimEnd()
}

/** Maximum number of runes that the daemon returns per request. */
const LINES = 10_000

const args = {
  follow: off("Continue to print new runes", "f"),
  stream: option("STREAM", "Print only this stream: a conversation's id, a plate's id, or daemon"),
  of: maybeWord("Print only runes of this agent: its runs, turns, tool calls and inbox", "agent"),
  agent: option("AGENT", "Same as the argument agent"),
  since: moment("TIME", "Print only runes since this time:"),
  kinds: options("kind", "KIND", "Print only runes of this kind, such as worker.moved; repeatable"),
  internal: off("Also print internal runes"),
  text: off("Print agents' output and agentd's decisions instead. Help: agentd log --text --help"),
  messages: off("Print messages of people and their outcomes instead. Help: agentd log --messages --help"),
  runs: off("List the runs of agents instead. Help: agentd log --runs --help"),
  channel: option(
    "CHANNEL",
    "Print the state changes of this channel's seats instead. Help: agentd log --channel --help"
  ),
  lines: maybeCount("Print only the newest N runes (default: 50; with --since: all)", {
    least: 0,
    most: LINES,
    alias: "n"
  })
}
export type LogInput = Input<typeof args>

export const selectionOf = (input: LogInput, caller: Caller, now: number): LogSelection => {
  const { follow, internal, kinds, stream } = input
  const agent = input.agent ?? input.of
  const since = input.since === undefined ? undefined : atOf(input.since, now)
  const tail = input.lines ?? (since === undefined ? NEWEST : undefined)
  return {
    follow,
    caller,
    ...(internal ? { internal } : {}),
    ...(stream === undefined ? {} : { stream }),
    ...(agent === undefined ? {} : { agent }),
    ...(kinds.length === 0 ? {} : { kinds }),
    ...(since === undefined ? {} : { since }),
    ...(tail === undefined ? {} : { tail })
  }
}

/**
 * The verb `log`. The code in `Log` runs instead if runes are followed, or if kinds or streams must be checked for
 * typos.
 */
export const log = declare({
  path: ["log"],
  description: "Print the log of all decisions and events, one rune per line",
  examples: [
    { command: "agentd log -f builder", description: "Follow the runes of the agent builder" },
    {
      command: "agentd log --since 10m --kind worker.moved --json",
      description: "Print runes as JSON for scripts, one per line"
    }
  ],
  args,
  rpc: (input, caller, { now }) => readAll("Log", selectionOf(input, caller, now)),
  view: (runes, { now, ...options }) => runes.map((rune) => lineOf(rune, now, options)),
  json: "lines",
  quick: ({ follow, kinds, stream }) => !follow && kinds.length === 0 && stream === undefined
})
