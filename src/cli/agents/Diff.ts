/**
 * `agentd diff AGENT`: shows the changes that an agent has made in its folder since it began to work, as a git patch.
 */
import type { DiffInfo } from "../../domain/DiffMessages.ts"
import { declare, map, off, read, word, type World } from "../parse/DeclaredVerb.ts"
import { count, paint, plain, plainLines } from "../render/Output.ts"

export interface DiffLine {
  readonly text: string
  readonly look?: "strong" | "bad" | "good" | "faint"
}

const lookOf = (line: string, isHead: boolean): DiffLine["look"] => {
  if (line.startsWith("diff --git ")) return "strong"
  if (isHead || line.startsWith("@@")) return "faint"
  return line.startsWith("+") ? "good" : line.startsWith("-") ? "bad" : undefined
}

export const linesOf = (patch: string): ReadonlyArray<DiffLine> => {
  let isHead = true
  const lines = patch === "" ? [] : patch.replace(/\n$/, "").split("\n")
  return lines.map((line) => {
    if (line.startsWith("diff --git ")) isHead = true
    else if (line.startsWith("@@")) isHead = false
    const look = lookOf(line, isHead)
    const text = plainLines(line.replace(/\r$/, "")).join("·")
    return look === undefined ? { text } : { text, look }
  })
}

const counted = (added: number | null, removed: number | null): string =>
  added === null || removed === null ? "not text" : `+${added} −${removed}`

/** A line for each changed file, and notes on what the patch leaves out. */
export const summary = ({ files, isCut, more }: DiffInfo): ReadonlyArray<DiffLine> => {
  const wide = Math.max(0, ...files.map(({ added, removed }) => counted(added, removed).length))
  return [
    ...files.map(({ added, path, removed }) => ({ text: `${counted(added, removed).padEnd(wide)}  ${plain(path)}` })),
    ...(more > 0 ? [{ text: `and ${count(more, "new file")} more that are not shown`, look: "faint" as const }] : []),
    ...(isCut
      ? [
          {
            text: "The patch is too long to show in full. To see all of it, run git diff in the agent's folder.",
            look: "faint" as const
          }
        ]
      : [])
  ]
}

const COLOURS = { strong: "bold", bad: "red", good: "green", faint: "dim" } as const

const painted = ({ look, text }: DiffLine, { colour }: World): string =>
  look === undefined ? text : paint(colour, COLOURS[look], text)

const NOTHING = "has changed nothing."

export const diff = declare({
  path: ["diff"],
  description: "Show the changes that an agent made in its folder, committed or not",
  examples: [
    { command: "agentd diff builder", description: "Show the changed files and the patch" },
    { command: "agentd diff builder --stat", description: "Show only the changed files" }
  ],
  args: {
    name: word("The agent: its name in this project, or project/agent", { name: "AGENT" }),
    stat: off("Show only the changed files")
  },
  rpc: ({ name, stat }, caller) =>
    map(read("Diff", { name, caller }), (found) => (stat ? { ...found, patch: "", isCut: false } : found)),
  view: (found, world) => {
    const { agent, files, project } = found
    if (files.length === 0) return [`${plain(project)}/${plain(agent)} ${NOTHING}`]
    const lines = summary(found).map((line) => painted(line, world))
    return found.patch === "" ? lines : [...lines, ""]
  },
  verbatim: ({ patch }, world) => linesOf(patch).map((line) => painted(line, world))
})
