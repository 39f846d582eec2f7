/**
 * Timeline: numbers the runes that match a filter, and counts them over time. The number of a rune is its `place`.
 *
 * Guarantees: without a filter a place is found without a search, however long the log is. With a filter, only the
 * newest `MOST_PLACES` matches have places, and a later request continues the search of an earlier one. Each request is
 * a bounded amount of work. No secret rune is returned, and an internal one only if requested.
 */
import { Clock, Effect } from "effect"
import type { Agents } from "../projects/service/Agents.ts"
import { causeText, type Rune } from "../core/event-log/Rune.ts"
import type { EventLog, Selection, StorageError } from "../core/event-log/EventLog.ts"
import { actorsOf, open } from "./LogReader.ts"
import {
  BUCKETS,
  type Causes,
  MOST_CAUSES,
  MOST_PLACES,
  MOST_RUNES,
  type TimelinePage,
  type TimelineQuestion,
  type TimelineRow
} from "./TimelineMessages.ts"

const HOUR = 3_600_000
const MOST_SAID = 160
const MOST_PAYLOAD = 16_384

/** Maximum number of filters whose places are cached, and of boundaries of time spans that are cached. */
const MAX_FILTERS = 8
const MAX_BOUNDARIES = 4_096

/** Maximum number of runes between a rune and its cause. A cause further back is not found. */
const FAR = 20_000

/** Names of payload fields with readable text, the most informative first. */
const SAYS = ["text", "message", "error", "reason", "headline", "summary", "title", "goal", "tool", "name", "taskId"]

const texts = (payload: object): string | undefined => {
  for (const name of SAYS) {
    const value = (payload as { readonly [field: string]: unknown })[name]
    if (typeof value === "string" && value !== "") return value
  }
  return undefined
}

/** The beginning of the first readable text in the payload or one of its objects; empty if there is none. Pure. */
export const saysOf = (payload: Rune["payload"]): string => {
  const parts = [payload, ...Object.values(payload).filter((value) => typeof value === "object" && value !== null)]
  for (const part of parts) {
    const text = texts(part as object)
    if (text !== undefined)
      return text
        .slice(0, 4 * MOST_SAID)
        .replaceAll(/\s+/g, " ")
        .trim()
        .slice(0, MOST_SAID)
  }
  return ""
}

const rowOf = (rune: Rune, place: number): TimelineRow => {
  const { actor, at, cause, eventId, from, kind, payload, seq, stream, to, trigger } = rune
  return { place, eventId, at, stream, seq, actor, kind, from, to, trigger, cause, says: saysOf(payload) }
}

/** The requested kinds, with prefixes such as `tool.` replaced by the kinds that begin with them. Pure. */
export const kindsOf = (asked: ReadonlyArray<string>, known: ReadonlyArray<string>): ReadonlyArray<string> =>
  asked.flatMap((kind) => (kind.endsWith(".") ? known.filter((name) => name.startsWith(kind)) : [kind]))

/** Number of the sorted positions that are below the given one. Pure. */
export const below = (positions: ReadonlyArray<number>, position: number): number => {
  let [low, high] = [0, positions.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (positions[middle]! < position) low = middle + 1
    else high = middle
  }
  return low
}

/** The places (numbers) of the runes that match a request. */
interface Places {
  readonly total: number
  readonly more: boolean
  readonly position: (place: number) => number
  /** Number of matches before a position (`eventId`) in the log. */
  readonly before: (position: number) => number
}

interface Known {
  positions: ReadonlyArray<number>
  upTo: number
  more: boolean
}

type Log = EventLog["Service"]

/** Adds an entry to a map. If the map is then too large, removes the oldest entry. */
const remember = <K, V>(map: Map<K, V>, key: K, value: V, most: number): V => {
  map.delete(key)
  map.set(key, value)
  if (map.size > most) map.delete(map.keys().next().value!)
  return value
}

const selectionsOf = Effect.fnUntraced(function* (
  agents: Agents["Service"],
  known: ReadonlyArray<string>,
  question: TimelineQuestion
) {
  const agent = question.agent === undefined ? undefined : yield* agents.agent(question.agent, question.caller)
  const stream = agent?.conversation ?? question.stream
  const kinds = question.kinds === undefined ? undefined : kindsOf(question.kinds, known)
  const selection: Selection = {
    ...(stream === undefined ? {} : { stream }),
    ...(kinds === undefined ? {} : { kinds })
  }
  if (agent === undefined) return Object.keys(selection).length === 0 ? [] : [selection]
  return [{ ...selection, actors: actorsOf(agent.agent) }]
})

/** Finds the places of runes. Results are cached. */
const placing = (log: Log) => {
  const filters = new Map<string, Known>()
  const filtered = Effect.fnUntraced(function* (selections: ReadonlyArray<Selection>, head: number) {
    const key = JSON.stringify(selections)
    const before = filters.get(key) ?? { positions: [], upTo: 0, more: false }
    const found = yield* Effect.forEach(selections, (selection) =>
      log.places({ ...selection, after: before.upTo }, MOST_PLACES)
    )
    const newer = found.flatMap(({ positions }) => positions).toSorted((a, b) => a - b)
    // a rune that was appended after its search is found by the next request
    const all = [...before.positions, ...newer.filter((position) => position <= head)]
    const positions = all.slice(-MOST_PLACES)
    const more = before.more || positions.length < all.length || found.some(({ whole }) => !whole)
    return remember(filters, key, { positions, upTo: head, more }, MAX_FILTERS)
  })
  return Effect.fnUntraced(function* (
    selections: ReadonlyArray<Selection>,
    first: number,
    head: number
  ): Effect.fn.Return<Places, StorageError> {
    if (selections.length === 0) {
      const total = Math.max(0, head - first + 1)
      const before = (position: number) => Math.min(total, Math.max(0, position - first))
      return { total, more: false, position: (place) => first + place, before }
    }
    const { more, positions } = yield* filtered(selections, head)
    const before = (position: number) => below(positions, position)
    return { total: positions.length, more, position: (place) => positions[place]!, before }
  })
}

/** A number with few digits that is at least `n` and at most a quarter larger. Pure. */
export const roundUp = (n: number): number => {
  const ten = 10 ** Math.floor(Math.log10(n))
  const steps = [1, 1.2, 1.5, 1.8, 2.2, 2.6, 3, 3.7, 4.5, 5.5, 6.7, 8, 10]
  return Math.ceil((steps.find((step) => step * ten >= n) ?? 10) * ten)
}

/** The places of runes in a part of the log: from position `first` to before position `end`. Pure. */
export const between = (places: Places, first: number, end: number): Places => {
  const offset = places.before(first)
  const total = Math.max(0, places.before(end) - offset)
  return {
    total,
    // matches without a place are older than the first match that has one
    more: places.more && offset === 0,
    position: (place) => places.position(offset + place),
    before: (position) => Math.min(total, Math.max(0, places.before(position) - offset))
  }
}

const counting = (log: Log) => {
  /** Times of the positions that were looked up. */
  const times = new Map<number, number>()
  const timeOf = Effect.fnUntraced(function* (position: number) {
    const known = times.get(position)
    if (known !== undefined) return known
    const at = (yield* log.get(position))?.at ?? 0
    return remember(times, position, at, MAX_BOUNDARIES)
  })
  /** The first position in the log at `time` or later; `head + 1` if there is none. */
  const positionAt = Effect.fnUntraced(function* (time: number, first: number, head: number) {
    let [low, high] = [first, head + 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((yield* timeOf(middle)) < time) low = middle + 1
      else high = middle
    }
    return low
  })
  const density = Effect.fnUntraced(function* (
    question: TimelineQuestion,
    places: Places,
    first: number,
    head: number
  ) {
    const now = yield* Clock.currentTimeMillis
    const until = question.until ?? now
    const least = Math.max(1, Math.ceil((until - (question.since ?? until - HOUR)) / BUCKETS))
    // if the request names no end, time spans have a round length and begin at round times, so that a later request can
    // reuse their boundaries
    const width = question.until === undefined ? roundUp(least) : least
    const since =
      question.until === undefined ? (Math.floor(until / width) - BUCKETS + 1) * width : until - BUCKETS * width
    const starts: Array<number> = []
    let position = first
    for (let bucket = 0; bucket <= BUCKETS; bucket++) {
      position = yield* positionAt(since + bucket * width, position, head)
      starts.push(places.before(position))
    }
    const counts = starts.slice(1).map((next, bucket) => next - starts[bucket]!)
    return { since, width, counts, places: starts.slice(0, -1) }
  })
  return { density, positionAt }
}

const causesOf = Effect.fnUntraced(function* (log: Log, eventId: number, isShown: (rune: Rune) => boolean) {
  const rune = yield* log.get(eventId)
  if (rune === undefined || !isShown(rune)) return { rune: null, chain: [], more: false } satisfies Causes
  const chain = [rowOf(rune, 0)]
  const seen = new Set([causeText(rune)])
  let at: Rune = rune
  while (at.cause !== null && chain.length < MOST_CAUSES && !seen.has(causeText(at.cause))) {
    const { cause } = at
    const far = cause.stream === at.stream && at.seq - cause.seq > FAR
    const before = far ? undefined : yield* log.find(cause, cause.stream === at.stream ? at : undefined)
    if (before === undefined || !isShown(before)) break
    seen.add(causeText(before))
    chain.unshift(rowOf(before, 0))
    at = before
  }
  const payload = JSON.stringify(rune.payload, null, 2).slice(0, MOST_PAYLOAD)
  return { rune: { ...rowOf(rune, 0), payload }, chain, more: at.cause !== null } satisfies Causes
})

/** Makes the timeline. `kinds`: all kinds of runes that this daemon writes. */
export const make = (log: Log, agents: Agents["Service"], kinds: ReadonlyArray<string>) => {
  const placesOf = placing(log)
  const { density: densityOf, positionAt } = counting(log)
  const within = Effect.fnUntraced(function* (
    { since, until }: TimelineQuestion,
    all: Places,
    first: number,
    head: number
  ) {
    if (since === undefined && until === undefined) return all
    const begin = since === undefined ? first : yield* positionAt(since, first, head)
    const end = until === undefined ? head + 1 : yield* positionAt(until, begin, head)
    return between(all, begin, end)
  })
  const page = Effect.fnUntraced(function* (question: TimelineQuestion) {
    const selections = yield* selectionsOf(agents, kinds, question)
    const head = yield* log.head
    const { deleted } = yield* log.sealed
    const first = deleted + 1
    const places = yield* within(question, yield* placesOf(selections, first, head), first, head)
    const n = Math.min(question.n, MOST_RUNES)
    const from = Math.max(0, Math.min(question.from ?? places.total - n, places.total))
    const wanted = Array.from({ length: Math.max(0, Math.min(n, places.total - from)) }, (_, index) =>
      places.position(from + index)
    )
    const placed = new Map(wanted.map((position, index) => [position, from + index]))
    const runes = yield* log.at(wanted)
    const rows = runes.filter(open(kinds, question.internal)).map((rune) => rowOf(rune, placed.get(rune.eventId)!))
    const density = yield* densityOf(question, places, first, head)
    return { total: places.total, more: places.more, from, rows, head, density } satisfies TimelinePage
  })
  return { page, causes: (eventId: number, internal?: boolean) => causesOf(log, eventId, open(kinds, internal)) }
}
