/**
 * Machine: draws a state machine of the daemon with the current state highlighted. It uses the transition table of the
 * daemon itself.
 */
import { signal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import * as Api from "./Api.ts"

interface Table {
  readonly states: ReadonlyArray<string>
  readonly edges: ReadonlyArray<readonly [from: string, to: string]>
}
type Tables = { readonly [machine: string]: Table }
const tables = signal<Tables | undefined>(undefined)
let isAsked = false

const load = async () => {
  if (isAsked) return
  isAsked = true
  tables.value = await Api.file<Tables>("machines.json").catch(() => undefined)
  isAsked = tables.value !== undefined
}

/** Grid positions of the states, for machines with a special layout. */
const PLACES: { readonly [machine: string]: { readonly [state: string]: readonly [x: number, y: number] } } = {
  worker: {
    Initializing: [0, 0],
    BuildingPrompt: [1, 0],
    Spawning: [2, 0],
    SessionComplete: [1, 1],
    Running: [2, 1],
    Stopped: [0, 2],
    CoolingDown: [1, 2],
    Interrupting: [2, 2]
  }
}
/** Maximum length of a state's name, in characters, at full width. Longer names are drawn narrower. */
const FITS = 14
/**
 * Maximum average number of transitions per state. If a machine has more, only the transitions from the current state
 * are drawn.
 */
const MOST_WAYS = 3
const [WIDE, HIGH] = [104, 52]

type Point = readonly [x: number, y: number]
const pathOf = ([x1, y1]: Point, [x2, y2]: Point): string => {
  const across = Math.sign(x2 - x1)
  const down = Math.sign(y2 - y1)
  if (y1 === y2 && Math.abs(x2 - x1) > WIDE)
    return `M${x1 + across * 30} ${y1 - 12}C${x1 + across * 60} ${y1 - 26} ${x2 - across * 60} ${y2 - 26} ${x2 - across * 30} ${y2 - 13}`
  if (y1 === y2) return `M${x1 + across * 46} ${y1}L${x2 - across * 47} ${y2}`
  if (x1 === x2 && Math.abs(y2 - y1) > HIGH)
    return `M${x1 - 38} ${y1 + down * 12}C${x1 - 62} ${y1 + down * 40} ${x1 - 62} ${y2 - down * 40} ${x2 - 38} ${y2 - down * 13}`
  if (x1 === x2) return `M${x1} ${y1 + down * 12}L${x2} ${y2 - down * 13}`
  return `M${x1 + across * 34} ${y1 + down * 12}L${x2 - across * 34} ${y2 - down * 13}`
}

/**
 * Whether a transition is drawn. Transitions to final states are drawn only if they start at the current state, because
 * there are too many of them.
 */
const isDrawn = ({ edges, states }: Table, lit: string) => {
  const isCrowded = edges.length > MOST_WAYS * states.length
  return ([from, to]: readonly [string, string]) =>
    from !== to && (from === lit || (!isCrowded && to !== "Stopped" && to !== "Closed"))
}

export const Machine = ({ lit, name }: { readonly name: string; readonly lit: string }) => {
  useEffect(() => void load(), [])
  const table = tables.value?.[name]
  if (table === undefined) return null
  const placed = table.states.map((state, n): readonly [string, Point] => {
    const [x, y] = PLACES[name]?.[state] ?? [n % 3, Math.floor(n / 3)]
    return [state, [x * WIDE + 50, y * HIGH + 26]]
  })
  const place = new Map(placed)
  const height = Math.max(...placed.map(([, [, y]]) => y)) + 18
  return (
    <svg class="machine" viewBox={`0 0 310 ${height}`} role="img" aria-label={`The ${name} machine is in ${lit}`}>
      <defs>
        <marker id="tip" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" markerHeight="6" orient="auto">
          <path d="M0 0 6 3 0 6Z" />
        </marker>
      </defs>
      {table.edges.filter(isDrawn(table, lit)).map(([from, to]) => (
        <path
          key={`${from} ${to}`}
          class={from === lit ? "edge next" : "edge"}
          marker-end="url(#tip)"
          d={pathOf(place.get(from)!, place.get(to)!)}
        />
      ))}
      {placed.map(([state, [x, y]]) => (
        <g key={state} class={state === lit ? "state lit" : "state"}>
          <rect x={x - 46} y={y - 12} width="92" height="24" rx="6" />
          <text
            x={x}
            y={y + 3.5}
            text-anchor="middle"
            {...(state.length > FITS ? { textLength: "84", lengthAdjust: "spacingAndGlyphs" } : {})}
          >
            {state}
          </text>
        </g>
      ))}
    </svg>
  )
}
