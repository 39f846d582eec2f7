/**
 * LogsView: turns runes into log lines: output of agents, and decisions of agentd. Pure except for its memory of
 * unfinished lines and turns.
 *
 * Guarantees: the lines of an agent have the order of its runes, and each appears once. The length of a line is
 * limited, and no line can control the terminal. A program's output is never shown as a decision, and a decision is
 * never shown as output.
 */
import { type About, agentOf, ConversationView, SHOWN } from "../../board/ConversationView.ts"
import type { Rune } from "../../core/event-log/Rune.ts"
import { ascii } from "../render/Ascii.ts"
import { AttachView, type ItemLine } from "../tui/AttachView.ts"
import { LEVELS } from "./LogsWords.ts"
import { clock, type Colour, paint } from "../render/Output.ts"

export type What = About["what"]

export interface Entry {
  /** Time of the line, in ms since the epoch. */
  readonly at: number
  readonly conversation: string
  readonly agent: string
  /** Id of the run to which the line belongs; null if no run is active, or if its start is unknown. */
  readonly run: string | null
  readonly what: What
  readonly level: number
  readonly text: string
  /** EventId of the rune that completed the line. */
  readonly restsOn: number
}

const [ERR, WARNING] = [3, 4]
/** The number that syslog uses for each level. */
const NUMBERS: { readonly [L in About["level"]]: number } = { error: ERR, warning: WARNING, notice: 5, info: 6 }

export const KINDS: ReadonlyArray<string> = SHOWN

/** Maximum number of agents whose unfinished lines are stored. If there are more, the oldest is discarded. */
const MAX_VIEWS = 1_000

interface Following {
  readonly items: ConversationView
  readonly lines: AttachView
  run: string | null
}

export class LogsView {
  private readonly views = new Map<string, Following>()

  feed(rune: Rune): ReadonlyArray<Entry> {
    const one = this.of(`${rune.stream}/${agentOf(rune)}`)
    return one.items.feed(rune).flatMap((item) => {
      // an unfinished line still belongs to the previous run, even if the new item belongs to another run
      const rest = item.is === "piece" ? [] : entries(rune, agentOf(rune), one.run, one.lines.flush())
      if (item.is === "begin" && item.isRun) one.run = item.turnId
      else if ("runId" in item && item.is !== "run") one.run = item.runId ?? one.run
      const shown = entries(rune, agentOf(rune), one.run, one.lines.show(item))
      if (item.is === "run" && (item.how === "well" || item.how === "badly")) one.run = null
      return [...rest, ...shown]
    })
  }

  /** Completes and returns all unfinished lines. */
  flush(rune: Pick<Rune, "at" | "eventId">): ReadonlyArray<Entry> {
    return [...this.views].flatMap(([key, { lines, run }]) => {
      const [stream = "", ...agent] = key.split("/")
      return entries({ ...rune, stream }, agent.join("/"), run, lines.flush())
    })
  }

  private of(key: string): Following {
    const known = this.views.get(key) ?? { items: new ConversationView(), lines: new AttachView(), run: null }
    this.views.delete(key)
    this.views.set(key, known)
    const [oldest] = this.views.keys()
    if (this.views.size > MAX_VIEWS && oldest !== undefined) this.views.delete(oldest)
    return known
  }
}

const entries = (
  { at, eventId, stream }: Pick<Rune, "at" | "eventId" | "stream">,
  agent: string,
  run: string | null,
  lines: ReadonlyArray<ItemLine>
): ReadonlyArray<Entry> =>
  lines
    .filter(({ isHint }) => isHint !== true)
    .map(({ level, text, what }) => ({
      at,
      conversation: stream,
      agent,
      run,
      what,
      level: NUMBERS[level],
      text,
      restsOn: eventId
    }))

export type Style = "short" | "short-iso" | "json" | "cat"

/** Colours for agents' names. None of them is used for a status. */
const HUES: ReadonlyArray<Colour> = ["cyan", "magenta", "blue"]

const two = (value: number): string => String(value).padStart(2, "0")

/** A time with its UTC offset, such as `2026-11-26T14:03:05+0100`. */
const iso = (at: number, utc: boolean): string => {
  if (utc) return `${new Date(at).toISOString().slice(0, 19)}+0000`
  const date = new Date(at)
  const offset = -date.getTimezoneOffset()
  const zone = `${offset < 0 ? "-" : "+"}${two(Math.floor(Math.abs(offset) / 60))}${two(Math.abs(offset) % 60)}`
  return `${new Date(at + offset * 60_000).toISOString().slice(0, 19)}${zone}`
}

/** A time of day, such as `14:03:05`. The date is added if it is not today. */
const short = (at: number, now: number, utc: boolean): string => {
  if (!utc) return clock(at, now)
  const [day, time] = new Date(at).toISOString().slice(0, 19).split("T")
  return day === new Date(now).toISOString().slice(0, 10) ? time! : `${day} ${time}`
}

export interface Printing {
  readonly style: Exclude<Style, "json">
  readonly utc: boolean
  readonly now: number
  readonly colour: boolean
  readonly ascii: boolean
  /** Formats the agents' names; undefined if all lines are from one agent, so that names are not printed. */
  readonly names: Names | undefined
}

/** Formats the agents' names in front of lines: padded to the longest name so far, and each in its own colour. */
export class Names {
  private readonly hues = new Map<string, Colour>()
  private width: number

  constructor(known: ReadonlyArray<string>) {
    this.width = Math.min(24, Math.max(0, ...known.map((name) => name.length)))
  }

  of(name: string, colour: boolean): string {
    const hue = this.hues.get(name) ?? HUES[this.hues.size % HUES.length]!
    if (this.hues.size < MAX_VIEWS) this.hues.set(name, hue)
    this.width = Math.max(this.width, name.length)
    return paint(colour, hue, name) + " ".repeat(this.width - name.length)
  }
}

const shade = ({ level, what }: Entry): Colour | undefined =>
  level <= ERR ? "red" : level === WARNING ? "yellow" : what === "decision" ? "dim" : undefined

/** A log line as text. Decisions are marked differently from a program's output. */
export const lineOf = (entry: Entry, name: string, printing: Printing): string => {
  const { ascii: isAscii, colour, names, now, style, utc } = printing
  const text = paint(colour, shade(entry), isAscii ? ascii(entry.text) : entry.text)
  if (style === "cat") return text
  const time = style === "short-iso" ? iso(entry.at, utc) : short(entry.at, now, utc)
  const mark = entry.what === "output" ? "│" : "▪"
  const parts = [
    paint(colour, "dim", time),
    ...(names === undefined ? [] : [names.of(name, colour)]),
    isAscii ? ascii(mark) : mark,
    text
  ]
  return parts.join(" ").trimEnd()
}

export const valueOf = (entry: Entry, name: string) => {
  const { at, level, ...rest } = entry
  return { at, time: new Date(at).toISOString(), name, level: LEVELS[level], ...rest }
}
