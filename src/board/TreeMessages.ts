/**
 * TreeMessages: the supervision tree in the form in which it is sent over the control socket. It is built from reports
 * of supervisors.
 */
import { Schema } from "effect"
import type { Inspection, Observed, Part } from "../core/supervision/Observation.ts"

const Timed = { at: Schema.Finite } as const

/** A part of the daemon. Its parent is the nearest earlier row with a smaller depth. */
export const TreeRow = Schema.Struct({
  /** Depth in the tree; 0 for the root. */
  depth: Schema.Int,
  kind: Schema.Literals(["supervisor", "worker", "actor"]),
  /** Id of a supervisor's child, or address of an actor. */
  name: Schema.String,
  /** "running", "restarting", "stopping", "down" or "abandoned". Null for an actor, which runs as long as its scope. */
  status: Schema.NullOr(Schema.String),
  /** Name of an actor's state, or of a supervisor's strategy. */
  state: Schema.NullOr(Schema.String),
  /** Number of messages in an actor's mailbox; null if the part is not an actor. */
  mailbox: Schema.NullOr(Schema.Int),
  /** Number of restarts since the part's supervisor started; null for an actor. */
  restarts: Schema.NullOr(Schema.Int),
  /** The newest crash; null if there is none. `at`: ms since the epoch */
  crash: Schema.NullOr(Schema.Struct({ ...Timed, message: Schema.String })),
  /** Number of children that are left out because there are too many. */
  hidden: Schema.Int,
  /** Names of an actor's newest messages, oldest first. `at`: ms since the epoch */
  newest: Schema.Array(Schema.Struct({ ...Timed, message: Schema.String }))
})
export type TreeRow = typeof TreeRow.Type

const NOTHING = {
  status: null,
  state: null,
  mailbox: null,
  restarts: null,
  crash: null,
  hidden: 0,
  newest: []
} as const

const actor = ({ address, mailbox, newest, state }: Part, depth: number): TreeRow => ({
  ...NOTHING,
  depth,
  kind: "actor",
  name: address,
  state,
  mailbox,
  newest
})

const below = (inside: Inspection | undefined, depth: number): ReadonlyArray<TreeRow> => {
  if (inside === undefined) return []
  return inside._tag === "Parts"
    ? inside.parts.map((part) => actor(part, depth))
    : inside.children.flatMap((child) => rows(child, depth))
}

const rows = ({ crash, id, inside, restarts, status, type }: Observed, depth: number): ReadonlyArray<TreeRow> => [
  {
    ...NOTHING,
    depth,
    kind: type,
    name: id,
    status,
    restarts,
    crash: crash ?? null,
    ...(inside?._tag === "Supervisor" ? { state: inside.strategy, hidden: inside.count - inside.children.length } : {})
  },
  ...below(inside, depth + 1)
]

/** The whole tree as rows, each part before its children. */
export const treeOf = (name: string, root: Inspection): ReadonlyArray<TreeRow> =>
  rows(
    {
      id: name,
      type: "supervisor",
      status: "running",
      restart: "permanent",
      restarts: 0,
      crash: undefined,
      inside: root
    },
    0
  )

/** The parts with this name, each with its descendants. For an actor, the end of its address is enough. */
export const partsOf = (tree: ReadonlyArray<TreeRow>, name: string): ReadonlyArray<TreeRow> => {
  const found: Array<TreeRow> = []
  for (let at = 0; at < tree.length;) {
    const row = tree[at]!
    const next = tree.findIndex((other, index) => index > at && other.depth <= row.depth)
    const end = next < 0 ? tree.length : next
    const isMeant = row.name === name || row.name.endsWith(`/${name}`)
    if (isMeant) found.push(...tree.slice(at, end).map((part) => ({ ...part, depth: part.depth - row.depth })))
    at = isMeant ? end : at + 1
  }
  return found
}
