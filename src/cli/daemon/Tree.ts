/**
 * `agentd status --tree [NAME]`: shows the supervision tree. With NAME, shows only that part and its newest messages.
 */
import type { TreeRow } from "../../board/TreeMessages.ts"
import { declare, maybeWord, read, type World } from "../parse/DeclaredVerb.ts"
import { age, clock, count, paint, plain, stateColour } from "../render/Output.ts"

const facts = (row: TreeRow, { colour, now }: World): string => {
  const { crash, hidden, kind, mailbox, restarts, state, status } = row
  const word = kind === "supervisor" && status === "running" ? state : (state ?? status)
  return [
    ...(word === null ? [] : [paint(colour, kind === "actor" ? stateColour(word) : "dim", word)]),
    ...(kind === "supervisor" && status !== "running" && status !== null ? [paint(colour, "yellow", status)] : []),
    ...((mailbox ?? 0) === 0 ? [] : [paint(colour, "yellow", `${count(mailbox!, "message")} waiting`)]),
    ...((restarts ?? 0) === 0 ? [] : [count(restarts!, "restart")]),
    ...(crash === null ? [] : [paint(colour, "red", `crashed ${age(now - crash.at)} ago: ${plain(crash.message)}`)]),
    ...(hidden === 0 ? [] : [paint(colour, "dim", `and ${hidden} more`)])
  ].join(", ")
}

/**
 * The branch lines in front of each row. They depend on whether a later row has the same depth as this row or as one of
 * its parents.
 */
const branches = (rows: ReadonlyArray<TreeRow>): ReadonlyArray<string> => {
  const open: Array<boolean> = []
  const drawn: Array<string> = []
  for (const { depth } of rows.toReversed()) {
    const stem = Array.from({ length: Math.max(0, depth - 1) }, (_, level) =>
      open[level + 1] === true ? "│  " : "   "
    )
    drawn.push(depth === 0 ? "" : `${stem.join("")}${open[depth] === true ? "├─ " : "└─ "}`)
    open[depth] = true
    open.length = depth + 1
  }
  return drawn.toReversed()
}

export const view = (rows: ReadonlyArray<TreeRow>, world: World, withMessages: boolean): ReadonlyArray<string> => {
  const { colour, now } = world
  const stems = branches(rows)
  return rows.flatMap((row, at) => {
    const said = facts(row, world)
    const stem = stems[at]!
    const name = row.kind === "supervisor" ? paint(colour, "bold", plain(row.name)) : plain(row.name)
    const under = " ".repeat(stem.length + 2)
    return [
      `${paint(colour, "dim", stem)}${name}${said === "" ? "" : `  ${said}`}`,
      ...(withMessages
        ? row.newest.map(({ at, message }) => `${under}${paint(colour, "dim", clock(at, now))} ${plain(message)}`)
        : [])
    ]
  })
}

export const tree = declare({
  path: ["status", "--tree"],
  description: "Show the daemon's supervision tree: actors with their state, mailbox, restarts and crashes",
  examples: [
    { command: "agentd status --tree", description: "Show all supervisors and actors in the daemon" },
    {
      command: "agentd status --tree builder",
      description: "Show one part of the tree with the newest messages of its actors"
    }
  ],
  args: {
    name: maybeWord("Name of a part of the tree, or the end of an actor's address; default: the whole tree", "NAME")
  },
  rpc: ({ name }) => read("Tree", { name: name ?? null }),
  view: (rows, world) =>
    view(
      rows,
      world,
      rows.some(({ newest }) => newest.length > 0)
    )
})
