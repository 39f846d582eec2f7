/**
 * Cost: what was spent today, by day and model, by agent; the part of the input that a cache gave. Own SVG bars: the
 * daemon sends sums by day, never more than some hundred, and a chart library would be 22 kB.
 */
import { useState } from "preact/hooks"
import type { CostRow } from "../../rpc/CostMessages.ts"
import * as Calendar from "../../domain/Calendar.ts"
import { useList } from "../List.ts"
import { useNews } from "../News.ts"
import { useAnswer } from "../Reading.ts"
import { go, hrefTo } from "../Router.ts"
import { now } from "../Time.ts"
import { big, Command, Empty, Failed, Loading, usd } from "../Ui.tsx"

const DAYS = 14
const DAY = 86_400_000
/** Models with a colour of their own; the others are one. */
const SHADES = 4
/** Below this part of the input that a cache gave, it costs. */
const LOW = 0.6
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

const spoken = (day: string): string => `${Number(day.slice(8))} ${MONTHS[Number(day.slice(5, 7)) - 1]}`

const sum = (rows: ReadonlyArray<CostRow>, of: (row: CostRow) => number): number =>
  rows.reduce((all, row) => all + of(row), 0)

interface Day {
  readonly day: string
  /** By shade: USD, or tokens where nothing has a price. */
  readonly parts: ReadonlyArray<number>
}

/** Models by what they cost, those beyond the shades together; and their sums by day. Pure. */
export const daysOf = (rows: ReadonlyArray<CostRow>, days: ReadonlyArray<string>, of: (row: CostRow) => number) => {
  const byModel = new Map<string, number>()
  for (const row of rows) byModel.set(row.model ?? "", (byModel.get(row.model ?? "") ?? 0) + of(row))
  const ranked = [...byModel].toSorted(([, a], [, b]) => b - a).map(([model]) => model)
  const models = ranked.length <= SHADES ? ranked : [...ranked.slice(0, SHADES - 1), "others"]
  const shade = (model: string) => Math.min(models.length - 1, ranked.indexOf(model))
  const table = days.map((day): Day => {
    const parts = models.map(() => 0)
    for (const row of rows) if (row.day === day) parts[shade(row.model ?? "")]! += of(row)
    return { day, parts }
  })
  return { models: models.map((model) => (model === "" ? "not named" : model)), days: table }
}

/** A round step, so that some four lines reach the top. Pure. */
export const stepOf = (most: number): number => {
  const raw = Math.max(most, 1e-6) / 4
  const ten = 10 ** Math.floor(Math.log10(raw))
  return ten * (raw / ten <= 1 ? 1 : raw / ten <= 2 ? 2 : raw / ten <= 5 ? 5 : 10)
}

const W = 760
const H = 180

const Chart = ({
  at,
  days,
  point,
  unit
}: {
  readonly days: ReadonlyArray<Day>
  readonly at: number
  readonly point: (n: number) => void
  readonly unit: string
}) => {
  const sums = days.map(({ parts }) => parts.reduce((a, b) => a + b, 0))
  const step = stepOf(Math.max(...sums))
  const lines = Math.max(1, Math.ceil(Math.max(...sums) / step))
  const y = (value: number) => H - (value * H) / (lines * step)
  const slot = W / days.length
  const today = sums.at(-1) ?? 0
  return (
    <svg
      class="chart"
      viewBox={`-80 -16 ${W + 80} ${H + 42}`}
      role="img"
      aria-label={`${unit} by day; today ${unit === "USD" ? today.toFixed(2) : big(today)}`}
    >
      {Array.from({ length: lines + 1 }, (_, n) => (
        <g key={n}>
          <line x1="0" x2={W} y1={y(n * step)} y2={y(n * step)} class="grid" />
          <text x="-8" y={y(n * step) + 4} text-anchor="end">
            {unit === "USD" ? Number((n * step).toPrecision(3)) : big(n * step)}
          </text>
        </g>
      ))}
      {days.map(({ day, parts }, n) => {
        let below = 0
        return (
          <g key={day} class={n === at ? "day on" : "day"} onMouseEnter={() => point(n)}>
            <rect class="hit" x={n * slot} width={slot} y="-8" height={H + 32} />
            {parts.map((part, shade) => {
              below += part
              return (
                <rect
                  key={shade}
                  class={`m${shade}`}
                  x={n * slot + slot * 0.2}
                  width={slot * 0.6}
                  y={y(below)}
                  height={Math.max(0, y(below - part) - y(below) - (part > 0 ? 0.8 : 0))}
                />
              )
            })}
            {(n % 2 === 1 || days.length < 8) && (
              <text
                x={n === days.length - 1 ? W : n * slot + slot / 2}
                y={H + 18}
                text-anchor={n === days.length - 1 ? "end" : "middle"}
              >
                {spoken(day)}
              </text>
            )}
          </g>
        )
      })}
    </svg>
  )
}

const Spark = ({ of }: { readonly of: ReadonlyArray<number> }) => {
  const most = Math.max(0.0001, ...of)
  return (
    <svg class="spark" viewBox={`0 0 ${of.length} 16`} preserveAspectRatio="none" aria-hidden="true">
      {of.map((value, n) => {
        const height = Math.max(0.6, (value / most) * 16)
        return <rect key={n} x={n + 0.1} width=".8" y={16 - height} height={height} />
      })}
    </svg>
  )
}

const Figure = ({ label, note, value }: { readonly label: string; readonly value: string; readonly note: string }) => (
  <p>
    <span class="label">{label}</span>
    <b class="num">{value}</b> {note}
  </p>
)

const money = (n: number): string => (n === 0 ? "0" : usd(n))

const Figures = ({ rows, today }: { readonly rows: ReadonlyArray<CostRow>; readonly today: string }) => {
  const own = rows.filter(({ day }) => day === today)
  const input = sum(own, (row) => row.input)
  const cached = sum(own, (row) => row.cacheRead)
  const unpriced = sum(rows, (row) => row.unpriced)
  return (
    <div class="figures">
      <Figure label="Today" value={money(sum(own, (row) => row.usd))} note="USD" />
      <Figure label={`${DAYS} days`} value={money(sum(rows, (row) => row.usd))} note="USD" />
      <Figure label="Input today" value={big(input)} note="tokens" />
      <Figure label="From the cache" value={input === 0 ? "none" : `${Math.round((100 * cached) / input)} %`} note="" />
      <Figure label="Output today" value={big(sum(own, (row) => row.output))} note="tokens" />
      {unpriced > 0 && <Figure label="Without a price" value={big(unpriced)} note="tokens" />}
    </div>
  )
}

interface Line {
  readonly agent: string
  readonly models: string
  readonly days: ReadonlyArray<number>
  readonly tokens: number
  readonly share: number | null
  readonly usd: number
}

/** An agent a line, the dearest first. Pure. */
export const linesOf = (rows: ReadonlyArray<CostRow>, days: ReadonlyArray<string>): ReadonlyArray<Line> => {
  const byAgent = new Map<string, Array<CostRow>>()
  for (const row of rows) byAgent.set(row.agent ?? "", [...(byAgent.get(row.agent ?? "") ?? []), row])
  return [...byAgent]
    .map(([agent, own]): Line => {
      const input = sum(own, (row) => row.input)
      return {
        agent,
        models: [...new Set(own.flatMap(({ model = "" }) => (model === "" ? [] : [model])))].join(", "),
        days: days.map((day) =>
          sum(
            own.filter((row) => row.day === day),
            (row) => row.usd + row.unpriced / 1e9
          )
        ),
        tokens: input + sum(own, (row) => row.output),
        share: input === 0 ? null : sum(own, (row) => row.cacheRead) / input,
        usd: sum(own, (row) => row.usd)
      }
    })
    .toSorted((a, b) => b.usd - a.usd || b.tokens - a.tokens)
}

const Table = ({ at, lines }: { readonly lines: ReadonlyArray<Line>; readonly at: number }) => (
  <table class="cost-table">
    <thead>
      <tr>
        <th>Agent</th>
        <th class="wide-only">Model</th>
        <th class="spark-h">{DAYS} days</th>
        <th class="num">Tokens</th>
        <th class="num">Cache</th>
        <th class="num">USD</th>
      </tr>
    </thead>
    <tbody>
      {lines.map(({ agent, days, models, share, tokens, usd: spent }, n) => (
        <tr key={agent} class={n === at ? "on" : ""} aria-current={n === at ? "true" : undefined}>
          <td>
            <a href={hrefTo("agent", agent)}>
              <span class="faint">{agent.split("/").slice(0, -1).join("/")}/</span>
              {agent.split("/").at(-1)}
            </a>
          </td>
          <td class="faint wide-only">{models}</td>
          <td class="spark-h">
            <Spark of={days} />
          </td>
          <td class="num">{big(tokens)}</td>
          <td class={share !== null && share < LOW ? "num strong" : "num"}>
            {share === null ? "" : `${Math.round(100 * share)} %`}
          </td>
          <td class="num strong">{usd(spent)}</td>
        </tr>
      ))}
    </tbody>
  </table>
)

export const Cost = () => {
  const today = Calendar.dayOf(now.value)
  const days = Array.from({ length: DAYS }, (_, n) => Calendar.dayOf(now.value - (DAYS - 1 - n) * DAY))
  const { problem, value } = useAnswer<ReadonlyArray<CostRow>>(
    "Costs",
    { by: ["agent", "model", "day"], since: days[0]! },
    useNews(2_000)
  )
  const [at, point] = useState(DAYS - 1)
  const lines = linesOf(value ?? [], days)
  const row = useList(lines.length, (n) => go(hrefTo("agent", lines[n]!.agent)))
  const isPriced = (value ?? []).some(({ usd }) => usd > 0)
  const unit = isPriced ? "USD" : "tokens"
  const { days: table, models } = daysOf(
    value ?? [],
    days,
    isPriced ? ({ usd }) => usd : ({ input, output }) => input + output
  )
  const shown = table[at]!
  return (
    <div class="page">
      <header class="top">
        <h1>Cost</h1>
        <span class="grow" />
        <span class="wide-only">
          <Command>agentd cost --by agent,day --csv</Command>
        </span>
      </header>
      {value === undefined ? (
        problem === undefined ? (
          <Loading />
        ) : (
          <Failed problem={problem} />
        )
      ) : value.length === 0 ? (
        <Empty title="Nothing was spent in two weeks">
          <p>Tokens and their cost show up here as soon as an agent tells of them.</p>
        </Empty>
      ) : (
        <div class="scroll cost-page" tabIndex={0} role="region" aria-label="Cost">
          <Figures rows={value} today={today} />
          <section class="chart-box">
            <header>
              <h2 class="label grow">{unit} by day and model</h2>
              <span class="legend">
                <b class="num">{spoken(shown.day)}</b>
                {models.map((model, n) => (
                  <span key={model}>
                    <i class={`sw m${n}`} />
                    {model} <span class="num">{isPriced ? money(shown.parts[n]!) : big(shown.parts[n]!)}</span>
                  </span>
                ))}
              </span>
            </header>
            <Chart days={table} at={at} point={point} unit={unit} />
          </section>
          <Table lines={lines} at={row} />
        </div>
      )}
    </div>
  )
}
