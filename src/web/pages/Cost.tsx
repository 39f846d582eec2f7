/**
 * Cost: shows today's spending and its limit, spending by model per day or hour, spending by agent, and how much of the
 * input came from a cache.
 */
import { useState } from "preact/hooks"
import type { CostRow, LimitRow } from "../../board/CostMessages.ts"
import * as Calendar from "../../domain/Calendar.ts"
import { useList } from "../List.ts"
import { useNews } from "../RefreshTimer.ts"
import { useAnswer } from "../VerbQuery.ts"
import { go, hrefTo } from "../Router.ts"
import { projects } from "../BoardStore.ts"
import { now } from "../Time.ts"
import { big, Command, Empty, Failed, Loading, usd } from "../Ui.tsx"
import { CostChart, money, Spark } from "./CostChart.tsx"
import { limitOf, Limits, todayOf, useLimits } from "./CostLimits.tsx"
import { DAYS, type Line, linesOf, partsOf, slotsOf, type Span, spoken, sum, type Unit } from "../CostSums.ts"

/**
 * Fraction of the input that must come from a cache; below it, the figure is highlighted, because uncached input is
 * expensive.
 */
const LOW = 0.6

const Figure = ({ label, note, value }: { readonly label: string; readonly value: string; readonly note: string }) => (
  <p>
    <span class="label">{label}</span>
    <b class="num">{value}</b> {note}
  </p>
)

/** The unit with the limit, such as "USD of 60". */
const ofLimit = (unit: string, limit: LimitRow | undefined): string =>
  limit === undefined ? unit : `${unit} of ${limitOf(limit.resource, limit.limit)}`

interface FiguresProps {
  readonly rows: ReadonlyArray<CostRow>
  readonly today: string
  readonly limits: ReadonlyArray<LimitRow>
}
const Figures = ({ limits, rows, today }: FiguresProps) => {
  const own = rows.filter(({ day }) => day === today)
  const input = sum(own, (row) => row.input)
  const output = sum(own, (row) => row.output)
  const cached = sum(own, (row) => row.cacheRead)
  const unpriced = sum(rows, (row) => row.unpriced)
  const estimated = sum(rows, (row) => row.estimated ?? 0)
  const unlikely = sum(rows, (row) => row.unlikely?.tokens ?? 0)
  const inMoney = todayOf(limits, "usd", projects.value.length)
  const inTokens = todayOf(limits, "tokens", projects.value.length)
  return (
    <div class="figures">
      <Figure label="Today" value={money(sum(own, (row) => row.usd))} note={ofLimit("USD", inMoney)} />
      <Figure label={`${DAYS} days`} value={money(sum(rows, (row) => row.usd))} note="USD" />
      {inTokens === undefined ? (
        <Figure label="Input today" value={big(input)} note="tokens" />
      ) : (
        <Figure label="Tokens today" value={big(input + output)} note={ofLimit("tokens", inTokens)} />
      )}
      <Figure label="From the cache" value={input === 0 ? "none" : `${Math.round((100 * cached) / input)} %`} note="" />
      <Figure label="Output today" value={big(output)} note="tokens" />
      {unpriced > 0 && <Figure label="Without a price" value={big(unpriced)} note="tokens" />}
      {estimated > 0 && <Figure label="Estimated" value={big(estimated)} note="tokens that no answer reported" />}
      {unlikely > 0 && (
        <Figure label="Implausible" value={big(unlikely)} note="tokens, only counted in their own budgets" />
      )}
    </div>
  )
}

interface SegProps<A extends string> {
  readonly label: string
  readonly value: A
  readonly of: ReadonlyArray<readonly [value: A, text: string]>
  readonly set: (value: A) => void
}
const Seg = <A extends string>({ label, of, set, value }: SegProps<A>) => (
  <div class="seg" role="radiogroup" aria-label={label}>
    {of.map(([one, text]) => (
      <button key={one} type="button" role="radio" aria-checked={one === value} onClick={() => set(one)}>
        {text}
      </button>
    ))}
  </div>
)

interface ChartBoxProps {
  readonly rows: ReadonlyArray<CostRow>
  readonly slots: ReadonlyArray<string>
  readonly span: Span
  readonly setSpan: (span: Span) => void
  readonly isPriced: boolean
}
const ChartBox = ({ isPriced, rows, setSpan, slots: names, span }: ChartBoxProps) => {
  const [chosen, setUnit] = useState<Unit | undefined>(undefined)
  const unit = chosen ?? (isPriced ? "USD" : "tokens")
  const { names: parts, slots } = partsOf(rows, names, unit)
  const [at, point] = useState(-1)
  const shown = slots[at < 0 ? slots.length - 1 : Math.min(at, slots.length - 1)]!
  const what = unit === "USD" ? "USD" : "Tokens"
  const by = unit === "kinds" ? "kind" : "model"
  const of = unit === "USD" ? money : big
  return (
    <section class="chart-box" aria-label="Chart">
      <header>
        <h2 class="label">
          {what} by {span === "days" ? "day" : "hour"} and {by}
        </h2>
        <span class="grow" />
        <Seg
          label="Unit"
          value={unit}
          of={[
            ["USD", "USD"],
            ["tokens", "Tokens"],
            ["kinds", "Cache"]
          ]}
          set={setUnit}
        />
        <Seg
          label="By"
          value={span}
          of={[
            ["days", "Days"],
            ["hours", "Hours"]
          ]}
          set={(to) => {
            point(-1)
            setSpan(to)
          }}
        />
      </header>
      <p class="legend">
        <b class="num">{spoken(shown.name)}</b>
        {parts.map((name, n) => (
          <span key={name}>
            <i class={`sw m${n}`} />
            {name} <span class="num">{of(shown.parts[n]!)}</span>
          </span>
        ))}
        {parts.length > 1 && <span class="num strong">{of(shown.parts.reduce((all, part) => all + part, 0))}</span>}
      </p>
      <CostChart
        slots={slots}
        at={slots.indexOf(shown)}
        point={point}
        isMoney={unit === "USD"}
        label={`${what} by ${span === "days" ? "day" : "hour"}`}
      />
    </section>
  )
}

const Table = ({
  at,
  lines,
  span
}: {
  readonly lines: ReadonlyArray<Line>
  readonly at: number
  readonly span: Span
}) => (
  <table class="cost-table">
    <thead>
      <tr>
        <th>Agent</th>
        <th class="wide-only">Model</th>
        <th class="spark-h">{span === "days" ? `${DAYS} days` : "24 h"}</th>
        <th class="num">Tokens</th>
        <th class="num">Cache</th>
        <th class="num">USD</th>
      </tr>
    </thead>
    <tbody>
      {lines.map(({ agent, models, share, slots, tokens, usd: spent }, n) => (
        <tr key={agent} class={n === at ? "on" : ""} aria-current={n === at ? "true" : undefined}>
          <td>
            <a href={hrefTo("agent", agent)}>
              <span class="faint">{agent.split("/").slice(0, -1).join("/")}/</span>
              {agent.split("/").at(-1)}
            </a>
          </td>
          <td class="faint wide-only">{models}</td>
          <td class="spark-h">
            <Spark of={slots} />
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

/** Loads the sums by agent, model and time slot. Sums by hour are loaded only when they are shown. */
const useSums = (span: Span, news: number) => {
  const days = slotsOf("days", now.value)
  const hours = slotsOf("hours", now.value)
  const byDay = useAnswer<ReadonlyArray<CostRow>>("Costs", { by: ["agent", "model", "day"], since: days[0]! }, news)
  const byHour = useAnswer<ReadonlyArray<CostRow>>(
    "Costs",
    { by: ["agent", "model", "hour"], since: span === "hours" ? hours[0]!.slice(0, 10) : days.at(-1)! },
    news
  )
  const inSight = new Set(hours)
  return {
    problem: byDay.problem,
    byDay: byDay.value,
    rows: span === "days" ? byDay.value : byHour.value?.filter(({ hour = "" }) => inSight.has(hour)),
    slots: span === "days" ? days : hours
  }
}

export const Cost = () => {
  const news = useNews(2_000)
  const [span, setSpan] = useState<Span>("days")
  const { byDay, problem, rows = [], slots } = useSums(span, news)
  const limits = useLimits(news)
  const lines = linesOf(rows, slots)
  const row = useList(lines.length, (n) => go(hrefTo("agent", lines[n]!.agent)))
  return (
    <div class="page">
      <header class="top">
        <h1>Cost</h1>
        <span class="grow" />
        <span class="wide-only">
          <Command>agentd cost --by agent,day --csv</Command>
        </span>
      </header>
      {byDay === undefined ? (
        problem === undefined ? (
          <Loading />
        ) : (
          <Failed problem={problem} />
        )
      ) : byDay.length === 0 && limits.length === 0 ? (
        <Empty title="Nothing was spent in the last two weeks">
          <p>Tokens and their cost appear here as soon as an agent reports them.</p>
        </Empty>
      ) : (
        <div class="scroll cost-page" tabIndex={0} role="region" aria-label="Cost">
          <Figures rows={byDay} today={Calendar.dayOf(now.value)} limits={limits} />
          <Limits limits={limits} news={news} />
          <ChartBox
            rows={rows}
            slots={slots}
            span={span}
            setSpan={setSpan}
            isPriced={byDay.some(({ usd }) => usd > 0)}
          />
          <Table lines={lines} at={row} span={span} />
        </div>
      )}
    </div>
  )
}
