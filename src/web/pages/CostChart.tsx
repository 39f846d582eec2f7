/**
 * CostChart: draws a bar for each time slot, split into parts. The chart is drawn as SVG without a chart library,
 * because there are at most a few hundred sums, and a library would add 22 kB.
 *
 * Guarantees: the text in the chart has the size of the surrounding text, however wide the chart is.
 */
import { useLayoutEffect, useRef, useState } from "preact/hooks"
import { big, usd } from "../Ui.tsx"
import { type Slot, spoken, stepOf } from "../CostSums.ts"

const H = 180
const LEFT = 56
/** Minimum width of a slot's name, in px. */
const NAME = 56

const useWidth = () => {
  const box = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(760)
  useLayoutEffect(() => {
    const read = () => setWidth(Math.max(240, box.current!.clientWidth))
    read()
    const sizes = new ResizeObserver(read)
    sizes.observe(box.current!)
    return () => sizes.disconnect()
  }, [])
  return { box, width }
}

const total = ({ parts }: Slot): number => parts.reduce((a, b) => a + b, 0)

export const money = (n: number): string => (n === 0 ? "0" : usd(n))

interface Props {
  readonly slots: ReadonlyArray<Slot>
  readonly at: number
  readonly point: (n: number) => void
  readonly isMoney: boolean
  /** The unit and the slots, for screen readers, such as "USD by day". */
  readonly label: string
}

const Bars = ({
  slot,
  width,
  x,
  y
}: {
  readonly slot: Slot
  readonly width: number
  readonly x: number
  readonly y: (value: number) => number
}) => {
  let below = 0
  return (
    <>
      {slot.parts.map((part, shade) => {
        below += part
        const height = y(below - part) - y(below)
        return (
          <rect
            key={shade}
            class={`m${shade}`}
            x={x + width * 0.2}
            width={width * 0.6}
            y={y(below)}
            height={Math.max(0, height - (part > 0 ? 0.8 : 0))}
          />
        )
      })}
    </>
  )
}

export const CostChart = ({ at, isMoney, label, point, slots }: Props) => {
  const { box, width: all } = useWidth()
  const W = all - LEFT
  const sums = slots.map(total)
  const most = Math.max(...sums)
  const step = stepOf(most)
  const lines = Math.max(1, Math.ceil(most / step))
  const y = (value: number) => H - (value * H) / (lines * step)
  const width = W / slots.length
  const every = Math.max(1, Math.ceil(NAME / width))
  const newest = sums.at(-1) ?? 0
  return (
    <div ref={box}>
      <svg
        class="chart"
        width={all}
        height={H + 36}
        viewBox={`${-LEFT} -10 ${all} ${H + 36}`}
        role="img"
        aria-label={`${label}; the newest ${isMoney ? newest.toFixed(2) : big(newest)}`}
      >
        {Array.from({ length: lines + 1 }, (_, n) => (
          <g key={n}>
            <line x1="0" x2={W} y1={y(n * step)} y2={y(n * step)} class="grid" />
            <text x="-8" y={y(n * step) + 4} text-anchor="end">
              {isMoney ? Number((n * step).toPrecision(3)) : big(n * step)}
            </text>
          </g>
        ))}
        {slots.map((slot, n) => (
          <g key={slot.name} class={n === at ? "day on" : "day"} onMouseEnter={() => point(n)} onClick={() => point(n)}>
            <rect class="hit" x={n * width} width={width} y="-8" height={H + 32} />
            <Bars slot={slot} width={width} x={n * width} y={y} />
            {(slots.length - 1 - n) % every === 0 && (
              <text
                x={n === slots.length - 1 ? W : n * width + width / 2}
                y={H + 18}
                text-anchor={n === slots.length - 1 ? "end" : "middle"}
              >
                {spoken(slot.name)}
              </text>
            )}
          </g>
        ))}
      </svg>
    </div>
  )
}

export const Spark = ({ of }: { readonly of: ReadonlyArray<number> }) => {
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
