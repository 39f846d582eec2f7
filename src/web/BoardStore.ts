/**
 * BoardStore: the page's copy of the board's rows and head, and the state of the connection to the daemon.
 *
 * Guarantees: an update of a row renders only that row again, not a list. A list is sorted again only when a row is
 * added, removed, or its position could change. While the daemon does not answer, the last known rows stay.
 */
import { batch, computed, signal, type Signal } from "@preact/signals"
import type { Board, BoardHead, BoardNews, BoardRow } from "../domain/BoardMessages.ts"
import type { Crowd, InitialBoard } from "../domain/InitialBoard.ts"
import { after } from "../domain/BoardRow.ts"
import { type Group, LOOKS } from "../domain/StatusWords.ts"
import * as Api from "./Api.ts"
import * as SharedStream from "./SharedStream.ts"
import * as Worker from "./Worker.ts"

/** The rows of the board, by id. */
export const rows = new Map<string, Signal<BoardRow>>()
/** The rows of the saved hosts, by id. They are no rows of this daemon: no page and no action is for them. */
export const others = signal<ReadonlyMap<string, BoardRow>>(new Map())
export const othersAsking = computed(() => [...others.value.values()].filter(({ word }) => word === "needs you").length)
/** Counter that increases when lists of rows must be sorted again. */
export const ordered = signal(0)
/** Counter that increases with every update that contains rows. */
export const changed = signal(0)
export const head = signal<BoardHead | undefined>(undefined)
/** True when there are rows to show. */
export const loaded = signal(false)
/** Counts of rows that exist but have not arrived yet. */
export const beyond = signal<ReadonlyArray<Crowd>>([])
/** True when all rows have arrived. After that, a missing row does not exist. */
export const isWhole = computed(() => loaded.value && beyond.value.length === 0)

export interface Link {
  /** `locked`: the page was refused, or its right was revoked. `gone`: the daemon does not answer. */
  readonly state: "opening" | "live" | "gone" | "locked"
  /** Time at which the current state began, in ms since the epoch. */
  readonly since: number
  readonly problem?: Api.Problem
}
export const link = signal<Link>({ state: "opening", since: Date.now() })
/** The page's access right; undefined until it is known, and no actions are offered until then. */
export const right = signal<"view" | "act" | undefined>(undefined)
export const mayAct = computed(() => right.value === "act")

/** Stores a row. Returns true if the order of the rows might have changed. */
const take = (row: BoardRow): boolean => {
  const held = rows.get(row.id)
  if (held === undefined) {
    rows.set(row.id, signal(row))
    return true
  }
  const { name, project, since, word } = held.peek()
  held.value = row
  if (word !== row.word || name !== row.name || project !== row.project) return true
  return since !== row.since && (word === "needs you" || word === "failed")
}

/** Stores the rows of the initial board, or of the stream's first update. */
export const load = (board: Board, besides: ReadonlyArray<Crowd> = []) =>
  batch(() => {
    beyond.value = besides
    const ids = new Set(board.rows.map(({ id }) => id))
    let moved = !loaded.peek()
    for (const id of rows.keys()) if (!ids.has(id)) moved = rows.delete(id) || moved
    for (const row of board.rows) moved = take(row) || moved
    head.value = board.head
    loaded.value = true
    changed.value++
    if (moved) ordered.value++
  })

const apply = (news: BoardNews) =>
  batch(() => {
    let moved = false
    for (const id of news.gone) moved = rows.delete(id) || moved
    for (const row of news.rows) moved = take(row) || moved
    head.value = news.head
    if (news.rows.length > 0 || moved) changed.value++
    if (moved) ordered.value++
  })

/** Shows the first rows of the board until the whole board has arrived. */
export const readGlimpse = (glimpse: InitialBoard | null): void => {
  if (glimpse !== null && !loaded.peek()) load(glimpse, glimpse.beyond)
}

const learnRight = () =>
  void Api.me().then(
    (me) => {
      right.value = me.right
      return Worker.keep(me)
    },
    () => undefined
  )

/** Subscribes to updates of the board while the page is open. */
export const connect = (): void => {
  if (!Api.isPaired()) {
    link.value = { state: "locked", since: Date.now() }
    return
  }
  let isFirst = true
  const listener: Api.Listener<BoardNews> = {
    heard: (news) => {
      if (isFirst) {
        load(news)
        others.value = new Map()
      } else apply(news)
      if (news.others !== undefined) others.value = after(others.peek(), news.others)
      isFirst = false
    },
    up: () => {
      isFirst = true
      link.value = { state: "live", since: Date.now() }
      learnRight()
    },
    down: (problem) => {
      const state = problem.status === 401 || problem.status === 403 ? "locked" : "gone"
      const { problem: before, since, state: was } = link.peek()
      if (was !== state) link.value = { state, since: Date.now(), problem }
      else if (before?.error !== problem.error) link.value = { state, since, problem }
    }
  }
  const whole = (): BoardNews => ({
    head: head.peek()!,
    rows: [...rows.values()].map((row) => row.peek()),
    gone: [],
    others: { rows: [...others.peek().values()], gone: [] }
  })
  void Api.glimpse().then(readGlimpse, () => undefined)
  SharedStream.listen<BoardNews>({ path: "/board", listener, whole })
}

/**
 * The number of rows per project and status word: each row that has arrived counts as one, and the counts of the other
 * rows are added.
 */
const crowds = function* (): Generator<Crowd> {
  void ordered.value
  for (const row of rows.values()) {
    const { project, word } = row.peek()
    yield { project, word, count: 1 }
  }
  yield* beyond.value
}

const countsOf = (all: Iterable<Crowd>): { readonly [group in Group]: number } => {
  const result = { "Needs you": 0, Failed: 0, Working: 0, Idle: 0 }
  for (const { count, word } of all) result[LOOKS[word].group] += count
  return result
}
/** Number of rows in each group. */
export const counts = computed(() => countsOf(crowds()))
export const countsBeyond = computed(() => countsOf(beyond.value))

export interface ProjectCount {
  readonly name: string
  readonly you: number
  readonly failed: number
}
export const projects = computed<ReadonlyArray<ProjectCount>>(() => {
  const found = new Map<string, { name: string; you: number; failed: number }>()
  for (const { count, project, word } of crowds()) {
    if (project === "") continue
    const entry = found.get(project) ?? { name: project, you: 0, failed: 0 }
    if (word === "needs you") entry.you += count
    if (word === "failed") entry.failed += count
    found.set(project, entry)
  }
  return [...found.values()].toSorted((a, b) => Number(a.name > b.name) - Number(a.name < b.name))
})

/** The row with this kind and this name, in the form that commands accept. */
export const rowNamed = (kind: BoardRow["kind"], name: string): Signal<BoardRow> | undefined => {
  void ordered.value
  for (const row of rows.values()) {
    const { called, kind: its, name: own, project } = row.peek()
    if (its === kind && (called === name || `${project}/${own}` === name)) return row
  }
  return undefined
}
