/**
 * Store: the board as the page knows it: its rows, its head, and whether the daemon answers.
 *
 * Guarantees: an update draws its own row and no list; a list is ordered anew only when a row comes, goes or changes
 * its word; nothing that was shown is cleared because the daemon is away.
 */
import { batch, computed, signal, type Signal } from "@preact/signals"
import type { Board, BoardHead, BoardNews, BoardRow } from "../domain/BoardMessages.ts"
import type { Crowd, Glimpse } from "../domain/Glimpse.ts"
import { type Group, LOOKS } from "../domain/Words.ts"
import * as Api from "./Api.ts"
import * as Shared from "./Shared.ts"
import * as Worker from "./Worker.ts"

/** Rows by id, each a signal of its own. */
export const rows = new Map<string, Signal<BoardRow>>()
/** Rises when lists of rows are to be ordered anew. */
export const ordered = signal(0)
/** Rises with every news that has rows in it. */
export const changed = signal(0)
export const head = signal<BoardHead | undefined>(undefined)
/** Rows can be shown. */
export const loaded = signal(false)
/** Rows that are there and have not come yet. */
export const beyond = signal<ReadonlyArray<Crowd>>([])
/** True: a row that is not here is not there. */
export const isWhole = computed(() => loaded.value && beyond.value.length === 0)

export interface Link {
  /** `locked`: the page was not let in, or its right was taken back. */
  readonly state: "opening" | "live" | "gone" | "locked"
  /** When that state began. */
  readonly since: number
  readonly problem?: Api.Problem
}
export const link = signal<Link>({ state: "opening", since: Date.now() })
/** The page's right; nothing is offered before it is known. */
export const right = signal<"view" | "act" | undefined>(undefined)
export const mayAct = computed(() => right.value === "act")

/** True: it changes the order. */
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

/** Takes the rows of a glimpse, or of the first news. */
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

/** Takes the head of the board, where the whole is not there yet. */
export const readGlimpse = (glimpse: Glimpse | null): void => {
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

/** Listens to the board for as long as the page is there. */
export const connect = (): void => {
  if (!Api.isPaired()) {
    link.value = { state: "locked", since: Date.now() }
    return
  }
  let isFirst = true
  const listener: Api.Listener<BoardNews> = {
    heard: (news) => {
      if (isFirst) load(news)
      else apply(news)
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
    gone: []
  })
  void Api.glimpse().then(readGlimpse, () => undefined)
  Shared.listen<BoardNews>({ path: "/board", listener, whole })
}

/** Each row, and those that have not come yet. */
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
/** Rows in each group. */
export const counts = computed(() => countsOf(crowds()))
/** Rows in each group that have not come yet. */
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

/** The row of an agent, a session … by its kind and the name that commands take. */
export const rowNamed = (kind: BoardRow["kind"], name: string): Signal<BoardRow> | undefined => {
  void ordered.value
  for (const row of rows.values()) {
    const { called, kind: its, name: own, project } = row.peek()
    if (its === kind && (called === name || `${project}/${own}` === name)) return row
  }
  return undefined
}
