/**
 * Bench: the form of a measurement, and how its figures are made and printed.
 *
 * A bench file exports `bench: Bench`. Subjects are measured in turn within each
 * round, in changing order, so that whatever else the machine does meets all of
 * them. A figure is the median over the rounds; a ratio is taken within each round, and
 * is the median of these, with the least and the most.
 */
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

export interface Row {
  /** The measured quantity: "tell". */
  readonly what: string
  /** The subject: "agentd actor", "Erlang gen_server". */
  readonly subject: string
  readonly unit: string
  readonly median: number
  /** Samples, one a round. */
  readonly samples: ReadonlyArray<number>
  /** How many times better ours is than this subject, round by round; 1 for ours. */
  readonly ratios: ReadonlyArray<number>
}

/** A figure of ours that is wanted: as a ratio to a peer's figure, or, without a peer, as it is. */
export interface Aim {
  readonly what: string
  /** The subject that the aim is for; left out: the first one. */
  readonly of?: string
  /** The peer, and which of its figures, where that is another one than `what`. */
  readonly to?: { readonly subject: string; readonly what?: string }
  readonly atLeast?: number
  readonly atMost?: number
}

export interface Bench {
  readonly name: string
  /** Takes so long that it runs only where it is named. */
  readonly isLong?: boolean
  readonly run: () => Promise<ReadonlyArray<Row>>
  readonly aims?: ReadonlyArray<Aim>
}

/** Figures by what they measure. */
export interface Figures {
  readonly [what: string]: number
}

/** A round of one subject. A subject leaves out what it cannot do. */
export interface Subject {
  readonly subject: string
  readonly round: () => Promise<Figures>
}

/** A measure: its unit, and which way is better. */
export interface Measure {
  readonly what: string
  readonly unit: string
  readonly better: "more" | "less"
}

export const median = (samples: ReadonlyArray<number>): number => quantile(samples, 0.5)

export const quantile = (samples: ReadonlyArray<number>, q: number): number => {
  const sorted = samples.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN
}

/** The first subject is ours. The first round warms up and is thrown away. */
export const interleave = async (
  measures: ReadonlyArray<Measure>,
  subjects: ReadonlyArray<Subject>,
  rounds: number
): Promise<ReadonlyArray<Row>> => {
  const samples = new Map<string, Array<number>>()
  for (let round = -1; round < rounds; round++) {
    for (let n = 0; n < subjects.length; n++) {
      const { subject, round: measure } = subjects[(n + round + 1) % subjects.length]!
      const figures = await measure()
      if (round < 0) continue
      for (const [what, figure] of Object.entries(figures)) {
        const key = `${what}\n${subject}`
        samples.set(key, [...(samples.get(key) ?? []), figure])
      }
    }
  }
  return measures.flatMap(({ better, unit, what }) => {
    const ours = samples.get(`${what}\n${subjects[0]!.subject}`) ?? []
    return subjects.flatMap(({ subject }) => {
      const figures = samples.get(`${what}\n${subject}`)
      if (figures === undefined) return []
      const ratios = ratiosOf(ours, figures)
      return {
        what,
        subject,
        unit,
        median: median(figures),
        samples: figures,
        ratios: better === "more" ? ratios : ratios.map((ratio) => 1 / ratio)
      }
    })
  })
}

/** Round by round. */
const ratiosOf = (ours: ReadonlyArray<number>, theirs: ReadonlyArray<number>): ReadonlyArray<number> =>
  ours.slice(0, theirs.length).map((figure, round) => figure / theirs[round]!)

const figure = (value: number): string =>
  value >= 1000 ? Math.round(value).toLocaleString("en") : value >= 10 ? value.toFixed(1) : value.toPrecision(3)

const spread = (samples: ReadonlyArray<number>, show: (value: number) => string): string =>
  `${show(median(samples))} [${show(Math.min(...samples))}–${show(Math.max(...samples))}]`

const times = (ratio: number): string => `${ratio.toFixed(2)}×`

export const table = (rows: ReadonlyArray<Row>): string =>
  lines([
    ["what", "subject", "median", "unit", "least", "most", "ours is better by"],
    ...rows.map(({ median, ratios, samples, subject, unit, what }) => [
      what,
      subject,
      figure(median),
      unit,
      figure(Math.min(...samples)),
      figure(Math.max(...samples)),
      ratios.every((ratio) => ratio === 1) ? "" : spread(ratios, times)
    ])
  ])

/** Says which aims are reached; an aim whose peer was not measured says so. */
export const verdicts = (aims: ReadonlyArray<Aim>, rows: ReadonlyArray<Row>): string =>
  lines([
    ["aim", "of", "to", "wanted", "is", ""],
    ...aims.map(({ atLeast, atMost, of, to, what }) => {
      const find = (subject: string | undefined, what: string) =>
        rows.find((row) => row.what === what && (subject === undefined || row.subject === subject))
      const ours = find(of, what)
      const theirs = to && find(to.subject, to.what ?? what)
      const peer = to === undefined ? "" : `${to.subject}${to.what === undefined ? "" : `, ${to.what}`}`
      const show = to === undefined ? figure : times
      const wanted = atLeast === undefined ? `≤ ${show(atMost!)}` : `≥ ${show(atLeast)}`
      const named = [what, of ?? ours?.subject ?? "", peer, wanted]
      if (ours === undefined || (to !== undefined && theirs === undefined)) return [...named, "not measured", ""]
      const is = theirs === undefined ? ours.samples : ratiosOf(ours.samples, theirs.samples)
      const isReached = atLeast === undefined ? median(is) <= atMost! : median(is) >= atLeast
      return [...named, spread(is, show), isReached ? "reached" : "NOT reached"]
    })
  ])

const lines = (cells: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = cells[0]!.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)))
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join("  ")
        .trimEnd()
    )
    .join("\n")
}

/** Bytes in use after everything that can be collected has been. */
export const heap = (): number => {
  const { gc } = globalThis
  if (gc === undefined) throw new Error("run it with node --expose-gc")
  for (let n = 0; n < 4; n++) gc()
  return process.memoryUsage().heapUsed
}

export const perSecond = (count: number, since: number): number => (count * 1_000) / (performance.now() - since)

/** A folder of its own, removed with the process. `BENCH_FOLDER` names the disk that is to be measured. */
export const folder = (): string => {
  const made = mkdtempSync(join(process.env["BENCH_FOLDER"] ?? tmpdir(), "agentd-bench-"))
  process.once("exit", () => rmSync(made, { recursive: true, force: true }))
  return made
}

export const isOnPath = (command: string): boolean => spawnSync("which", [command]).status === 0
