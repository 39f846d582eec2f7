/** `agentd runs`: the runs of an agent, or of all: when each began, how long it went on, its turns, how it ended. */
import type { Rune } from "../event-log/Rune.ts"
import { count, declare, map, maybeWord, off, readAll, type World } from "./DeclaredVerb.ts"
import { age, type Cell, clock, plain, stateColour, table } from "./Output.ts"

export interface RunRow {
  readonly run: string
  /** The stream of its conversation. */
  readonly conversation: string
  readonly agent: string
  /** ms since the epoch */
  readonly began: number
  /** Null while it goes on. */
  readonly ended: number | null
  readonly turns: number
  /** "success", "error", "timeout", "uncounted", "quota", "fatal"; "cut short" where it was ended for another reason; null while it goes on. */
  readonly how: string | null
  /** Further words of its end. */
  readonly detail: string
  /** The rune that it rests on. */
  readonly restsOn: number
}

type Event = { readonly _tag: string; readonly [field: string]: unknown }

const KINDS = ["worker.moved", "turn.started", "turn.completed"]
/** A run has about so many runes of these kinds beside its turns. */
const RUNES = 10
const MOST = 1_000

const isObject = (value: unknown): value is Event => typeof value === "object" && value !== null
const textOf = (value: unknown): string => (typeof value === "string" ? value : "")

const eventOf = ({ payload }: Rune): Event | undefined => {
  const { event } = payload
  return isObject(event) && typeof event._tag === "string" ? event : undefined
}

const agentOf = ({ actor }: Rune): string => actor.slice(actor.indexOf("/") + 1)

/** How a run ended, with the words for it. */
const endOf = (outcome: unknown): Pick<RunRow, "how" | "detail"> => {
  if (!isObject(outcome)) return { how: "success", detail: "" }
  const words = ["detail", "message", "reason"].map((field) => textOf(outcome[field])).find((text) => text !== "")
  return { how: outcome._tag.toLowerCase(), detail: words ?? "" }
}

/** The run's end, where the rune tells of one. */
const endIn = (event: Event): (Pick<RunRow, "how" | "detail"> & { readonly run: string | undefined }) | undefined => {
  switch (event._tag) {
    case "SessionExited":
      return { run: textOf(event["runId"]), ...endOf(event["outcome"]) }
    case "response_done": {
      const { exit } = event
      return isObject(exit) ? { run: textOf(exit["runId"]), ...endOf(undefined) } : undefined
    }
    case "GraceExceeded":
      return { run: textOf(event["runId"]), how: "cut short", detail: "it did not end in its time" }
    case "OperatorStop":
      return { run: undefined, how: "cut short", detail: `stopped by ${textOf(event["by"])}` }
    default:
      return undefined
  }
}

/** The runs that these runes tell of, the oldest first. Pure. */
export const runsIn = (runes: ReadonlyArray<Rune>): ReadonlyArray<RunRow> => {
  const rows = new Map<string, RunRow>()
  const newest = new Map<string, string>()
  for (const rune of runes) {
    const event = eventOf(rune)
    const agent = agentOf(rune)
    const of = `${rune.stream}/${agent}`
    if (event?._tag === "PromptReady") {
      const run = textOf(event["runId"])
      newest.set(of, run)
      const fresh = { run, conversation: rune.stream, agent, began: rune.at, ended: null, turns: 0, how: null }
      rows.set(run, { ...fresh, detail: "", restsOn: rune.eventId })
      continue
    }
    const current = rows.get(newest.get(of) ?? "")
    if (rune.kind === "turn.started" && current !== undefined && current.ended === null)
      rows.set(current.run, { ...current, turns: current.turns + 1, restsOn: rune.eventId })
    const end = event === undefined ? undefined : endIn(event)
    const ended = end === undefined ? undefined : end.run === undefined ? current : rows.get(end.run)
    // the first end counts: what comes of a run that its agent has let go says nothing new
    if (end === undefined || ended === undefined || ended.ended !== null) continue
    const { detail, how } = end
    const { turns } = rows.get(ended.run)!
    rows.set(ended.run, { ...ended, turns, ended: rune.at, how, detail, restsOn: rune.eventId })
  }
  return [...rows.values()]
}

const HEAD = ["RUN", "AGENT", "BEGAN", "LASTED", "TURNS", "ENDED", "DETAIL"]

const COLOURS: { readonly [how: string]: "green" | "red" | "yellow" } = {
  success: "green",
  error: "red",
  fatal: "red",
  timeout: "yellow"
}

export const runs = declare({
  path: ["runs"],
  description: "Show the runs of an agent, or of all: when they began, how long they went on, how they ended",
  examples: [
    { command: "agentd runs builder", description: "Its newest runs, the newest last" },
    { command: "agentd runs builder --failed", description: "Only those that ended otherwise than well" }
  ],
  args: {
    of: maybeWord("Its name in this project, or project/agent; left out: all agents", "agent"),
    failed: off("Only those that ended otherwise than well"),
    lines: count("The newest N", 20, { least: 1, most: MOST, alias: "n" })
  },
  rpc: ({ failed, lines, of }, caller) => {
    const tail = Math.min(10_000, lines * RUNES)
    const agent = of === undefined ? {} : { agent: of }
    return map(readAll("Log", { caller, follow: false, kinds: KINDS, tail, ...agent }), (runes) => {
      const all = runsIn(runes)
      const chosen = failed ? all.filter(({ how }) => how !== null && how !== "success") : all
      return chosen.slice(-lines)
    })
  },
  view: (rows, { colour, columns, now }: World) =>
    rows.length === 0
      ? ["No run is there."]
      : table(
          HEAD,
          rows.map((row): ReadonlyArray<Cell> => {
            const how = row.how ?? "goes on"
            const painted = row.how === null ? stateColour("Running") : COLOURS[how]
            const lasted = age(Math.max(0, (row.ended ?? now) - row.began))
            return [
              { text: row.run.slice(-8) },
              { text: plain(row.agent) },
              { text: clock(row.began, now) },
              { text: lasted, right: true },
              { text: String(row.turns), right: true },
              { text: how, ...(painted === undefined ? {} : { colour: painted }) },
              { text: plain(row.detail.split("\n")[0]!) }
            ]
          }),
          { colour, columns }
        ),
  quick: true
})
