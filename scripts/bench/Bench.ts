/**
 * Bench: the form of a measurement, and how its figures are made and printed.
 *
 * A bench file exports `bench: Bench`. Subjects are measured in turn within each
 * round, in changing order, so that whatever else the machine does meets all of
 * them; a figure is the median over the rounds.
 */
import { spawnSync } from "node:child_process"

export interface Row {
  /** What was measured: "tell". */
  readonly what: string
  /** Who: "agentd actor", "Erlang gen_server". */
  readonly subject: string
  readonly unit: string
  readonly median: number
  /** Of the rounds. */
  readonly lowest: number
  readonly highest: number
  /** How many times better ours is than this subject; 1 for ours. */
  readonly ratio: number
}

export interface Bench {
  readonly name: string
  readonly run: () => Promise<ReadonlyArray<Row>>
}

/** One round of one subject: figures by what they measure. A subject leaves out what it cannot do. */
export interface Subject {
  readonly subject: string
  readonly round: () => Promise<{ readonly [what: string]: number }>
}

/** What is measured: its unit, and which way is better. */
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
    const ours = median(samples.get(`${what}\n${subjects[0]!.subject}`) ?? [])
    return subjects.flatMap(({ subject }) => {
      const figures = samples.get(`${what}\n${subject}`)
      if (figures === undefined) return []
      const middle = median(figures)
      return {
        what,
        subject,
        unit,
        median: middle,
        lowest: Math.min(...figures),
        highest: Math.max(...figures),
        ratio: better === "more" ? ours / middle : middle / ours
      }
    })
  })
}

const figure = (value: number): string =>
  value >= 1000 ? Math.round(value).toLocaleString("en") : value >= 10 ? value.toFixed(1) : value.toPrecision(3)

export const table = (rows: ReadonlyArray<Row>): string => {
  const cells = [
    ["what", "subject", "median", "unit", "lowest", "highest", "ours is better by"],
    ...rows.map((row) => [
      row.what,
      row.subject,
      figure(row.median),
      row.unit,
      figure(row.lowest),
      figure(row.highest),
      row.ratio === 1 || !Number.isFinite(row.ratio) ? "" : `${row.ratio.toFixed(2)}×`
    ])
  ]
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

export const isOnPath = (command: string): boolean => spawnSync("which", [command]).status === 0
