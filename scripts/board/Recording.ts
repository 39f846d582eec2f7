/**
 * Recording: what the terminal showed and what the board showed, of one CLI, and the figures that follow from both.
 *
 * A board that is up to a second ahead of the terminal is right. States of the terminal that last less than a quarter of
 * a second are left out: the screen is being drawn.
 */
import type { State } from "./Scenarios.ts"

/** States in their order, each with the ms since the scenario's begin at which it was first seen. */
export type Timeline<A extends string> = ReadonlyArray<readonly [at: number, state: A]>

/** A session. `row`: the row's status and the signal on which it rests; "none": no row. */
export interface Track {
  readonly screen: Timeline<State | "unknown">
  readonly row: Timeline<string>
  readonly end: number
}

/** A hook as the daemon received it. */
export type Heard = readonly [at: number, body: { readonly [field: string]: unknown }]

export interface Played {
  readonly name: string
  readonly bare: boolean
  readonly tracks: ReadonlyArray<Track>
  readonly hooks: ReadonlyArray<Heard>
}

export interface Recording {
  readonly agent: string
  readonly name: string
  readonly version: string
  readonly played: ReadonlyArray<Played>
}

export interface Figures {
  readonly state: State
  readonly seconds: number
  /** Share of the seconds in which the row was right. */
  readonly right: number
  readonly changes: number
  readonly missed: number
  /** Delay, in ms, of 99 % of the changes that were shown; undefined if none was. */
  readonly p99: number | undefined
}

const AHEAD = 1_000
const DRAWING = 250
const STEP = 20

const RIGHT: { readonly [state in State]: ReadonlyArray<string> } = {
  ready: ["Idle", "Starting"],
  working: ["Running"],
  approval: ["AwaitingApproval"],
  question: ["AwaitingInput"],
  idle: ["Idle"],
  error: ["Error"],
  closed: ["Closed", "none"]
}
export const STATES = Object.keys(RIGHT) as ReadonlyArray<State>

interface Span {
  readonly state: State | "unknown"
  readonly from: number
  readonly to: number
}

const spansOf = ({ end, screen }: Track): ReadonlyArray<Span> => {
  const all = screen.map(([from, state], index) => ({ state, from, to: screen[index + 1]?.[0] ?? end }))
  const spans: Array<Span> = []
  for (const span of all) {
    const last = spans.at(-1)
    if (last !== undefined && (span.to - span.from < DRAWING || span.state === last.state)) {
      spans[spans.length - 1] = { ...last, to: span.to }
    } else spans.push(span)
  }
  return spans
}

/** The row's status, and when it was first seen. */
const rowAt = ({ row }: Track, at: number): readonly [since: number, status: string] => {
  const [since, told] = row.findLast(([from]) => from <= at) ?? [0, "none"]
  return [since, told.split(" ")[0]!]
}

/** Figures of each state that was seen in these tracks. */
export const figuresOf = (tracks: ReadonlyArray<Track>): ReadonlyArray<Figures> =>
  STATES.flatMap((state) => {
    let [all, right, missed] = [0, 0, 0]
    const delays: Array<number> = []
    for (const track of tracks) {
      const spans = spansOf(track)
      for (const [index, { from, state: seen, to }] of spans.entries()) {
        if (seen !== state) continue
        const next = spans[index + 1]?.state
        for (let at = from; at < to; at += STEP) {
          const [since, row] = rowAt(track, at)
          const isAhead = since > to - AHEAD && next !== undefined && next !== "unknown" && RIGHT[next].includes(row)
          all += 1
          if (isAhead || RIGHT[state].includes(row)) right += 1
        }
        let shown: number | undefined
        const last = index === spans.length - 1 ? to : to + AHEAD
        for (let at = from - AHEAD; at < last && shown === undefined; at += STEP) {
          if (RIGHT[state].includes(rowAt(track, at)[1])) shown = at
        }
        if (shown === undefined) missed += 1
        else delays.push(Math.max(0, shown - from))
      }
    }
    delays.sort((a, b) => a - b)
    const changes = delays.length + missed
    const p99 = delays[Math.ceil(delays.length * 0.99) - 1]
    return all === 0 ? [] : [{ state, seconds: (all * STEP) / 1_000, right: right / all, changes, missed, p99 }]
  })
