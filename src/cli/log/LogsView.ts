/**
 * LogsView: what agents said, and what was decided about them, as the lines of a log. Pure but for what it remembers
 * of lines and turns under way.
 *
 * Guarantees: the lines of one agent come in its runes' order, each once; each is of bounded length and cannot speak
 * to the terminal; what a program said is never taken for a decision, nor the other way round.
 */
import { agentKinds } from "../../agents/machines/AgentKinds.ts"
import { reader } from "../../core/event-log/EventKinds.ts"
import type { Rune } from "../../core/event-log/Rune.ts"
import { ascii } from "../render/Ascii.ts"
import { AttachView, KINDS as SHOWN, type Line, turnIn } from "../tui/AttachView.ts"
import { LEVELS } from "./LogsWords.ts"
import { clock, type Colour, paint } from "../render/Output.ts"

/** `output`: said by the agent's program; `decision`: by agentd, or a person. */
export type What = "output" | "decision"

export interface Entry {
  /** ms since the epoch */
  readonly at: number
  readonly conversation: string
  readonly agent: string
  /** The run that it belongs to; null between runs, and where its begin is not known. */
  readonly run: string | null
  readonly what: What
  readonly level: number
  readonly text: string
  /** The rune that the line ends with. */
  readonly restsOn: number
}

const [ERR, WARNING, NOTICE, INFO] = [3, 4, 5, 6]

export const KINDS: ReadonlyArray<string> = SHOWN

/** Kinds that are the agent's own words, deeds and questions. */
const OUTPUT: ReadonlySet<string> = new Set([
  "run.output",
  "run.thought",
  "turn.assistant_delta",
  "tool.call",
  "tool.progress",
  "tool.result",
  "agent.reported",
  "agent.asked"
])
/** Kinds of which a line may go on with the next. */
const PIECES: ReadonlySet<string> = new Set(["turn.assistant_delta", "run.thought"])
/** Kinds with an agent's answer, whose lines have no colour, and a decision about it, whose lines have one. */
const BOTH: ReadonlySet<string> = new Set(["turn.completed", "turn.error"])

const read = reader(agentKinds)

/** The agent whose machine signed it; a tool call is a machine of its own. */
export const agentOf = ({ actor }: Pick<Rune, "actor">): string => {
  const from = actor.indexOf("/") + 1
  return actor.startsWith("tool/") ? actor.slice(from, actor.lastIndexOf("/")) : actor.slice(from)
}

/** The stream of the program's that a rune tells of. */
const sourceOf = (any: Rune): string | undefined => {
  const rune = read(any)
  if (rune?.kind === "run.output") return rune.payload.source
  return rune?.kind === "tool.progress" && "stream" in rune.payload.event ? rune.payload.event.stream : undefined
}

const levelIn = ({ colour }: Line, what: What, source: string | undefined): number => {
  if (colour === "red") return ERR
  if (colour === "yellow" || source === "stderr") return WARNING
  return what === "decision" ? NOTICE : INFO
}

/** Agents whose lines are under way at one time; the oldest is let go. */
const MAX_VIEWS = 1_000

interface Following {
  readonly view: AttachView
  run: string | null
}

export class LogsView {
  private readonly views = new Map<string, Following>()

  feed(rune: Rune): ReadonlyArray<Entry> {
    const agent = agentOf(rune)
    const one = this.of(`${rune.stream}/${agent}`)
    const begin = turnIn(rune)
    const source = sourceOf(rune)
    const entry = (line: Line, what: What): Entry => ({
      at: rune.at,
      conversation: rune.stream,
      agent,
      run: one.run,
      what,
      level: levelIn(line, what, source),
      text: line.text,
      restsOn: rune.eventId
    })
    // the words before it are the program's, whatever it is
    const rest = PIECES.has(rune.kind) ? [] : one.view.flush().map((line) => entry(line, "output"))
    const known = runOf(rune)
    if (known !== undefined) one.run = known
    const lines = one.view.feed(rune)
    const entries = shownOf(rune, lines, begin !== undefined).map((line) => entry(line, whatOf(rune, line, source)))
    if (endsRun(rune)) one.run = null
    return [...rest, ...entries]
  }

  /** Lines that have not ended. */
  flush(rune: Pick<Rune, "at" | "eventId">): ReadonlyArray<Entry> {
    return [...this.views].flatMap(([key, { run, view }]) => {
      const [conversation = "", ...agent] = key.split("/")
      return view.flush().map(({ text }): Entry => ({
        at: rune.at,
        conversation,
        agent: agent.join("/"),
        run,
        what: "output",
        level: INFO,
        text,
        restsOn: rune.eventId
      }))
    })
  }

  private of(key: string): Following {
    const known = this.views.get(key) ?? { view: new AttachView(), run: null }
    this.views.delete(key)
    this.views.set(key, known)
    const [oldest] = this.views.keys()
    if (this.views.size > MAX_VIEWS && oldest !== undefined) this.views.delete(oldest)
    return known
  }
}

const runOf = (any: Rune): string | undefined => {
  const begin = turnIn(any)
  if (begin?.isRun === true) return begin.turnId
  const rune = read(any)
  return rune?.kind === "run.output" || rune?.kind === "run.notice" ? rune.payload.runId : undefined
}

const endsRun = (any: Rune): boolean => {
  const rune = read(any)
  if (rune?.kind === "worker.moved") return rune.payload.event._tag === "SessionExited"
  return rune?.kind === "turn.completed" && "exit" in rune.payload.event && rune.payload.event.exit !== undefined
}

/** Of a turn's begin its input is left out, and of a question how it is answered where it stands. */
const shownOf = (rune: Rune, lines: ReadonlyArray<Line>, begins: boolean): ReadonlyArray<Line> => {
  if (begins) return lines.slice(1, 2)
  return rune.kind === "tool.approval_requested" ? lines.filter(({ text }) => !/^ {2}(\/|type )/.test(text)) : lines
}

const whatOf = ({ kind }: Rune, { colour }: Line, source: string | undefined): What => {
  if (source === "agentd") return "decision"
  return OUTPUT.has(kind) || (BOTH.has(kind) && colour === undefined) ? "output" : "decision"
}

export type Style = "short" | "short-iso" | "json" | "cat"

/** Colours of names, none of which says how a thing is. */
const HUES: ReadonlyArray<Colour> = ["cyan", "magenta", "blue"]

const two = (value: number): string => String(value).padStart(2, "0")

/** `2026-11-26T14:03:05+0100`. */
const iso = (at: number, utc: boolean): string => {
  if (utc) return `${new Date(at).toISOString().slice(0, 19)}+0000`
  const date = new Date(at)
  const offset = -date.getTimezoneOffset()
  const zone = `${offset < 0 ? "-" : "+"}${two(Math.floor(Math.abs(offset) / 60))}${two(Math.abs(offset) % 60)}`
  return `${new Date(at + offset * 60_000).toISOString().slice(0, 19)}${zone}`
}

/** `14:03:05`; with the date where it is another day's. */
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
  /** Undefined: all lines are of one agent. */
  readonly names: Names | undefined
}

/** Names as they stand before the lines: as wide as the widest so far, each in its colour. */
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

/** A decision is marked, lest it be taken for what the program said. */
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
