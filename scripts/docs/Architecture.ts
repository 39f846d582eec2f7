/**
 * Architecture: the parts of docs/architecture.md that are made of the code: the layers, the way of a fact to the log
 * and back, and the supervision tree as the page shows it.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { layers } from "../../test/support/Layers.ts"
import { aboutOf } from "./Opening.ts"
import { cell, table } from "./Markdown.ts"

const src = join(import.meta.dirname, "../../src")

const fenced = (text: string): string => `\`\`\`mermaid\n${text}\n\`\`\``

/** Layers that there are: some have a place before they have a folder. */
const present = layers
  .map(({ because, folders }) => ({ because, folders: folders.filter((folder) => existsSync(join(src, folder))) }))
  .filter(({ folders }) => folders.length > 0)

const layersDrawn = (): string => {
  const boxes = present.map(({ folders }, index) => `  L${index}["${folders.join(" · ")}"]`)
  const arrows = present.slice(1).map((_, index) => `  L${index} --> L${index + 1}`)
  const rows = present.map(({ because, folders }) => [folders.map((folder) => `\`${folder}\``).join(" "), because])
  return `${fenced(["flowchart TB", ...boxes, ...arrows].join("\n"))}\n\n${table(
    ["folders", "because"],
    rows.map((row) => row.map(cell))
  )}`
}

/** The way down of `agentd send`: each file hands it to the next. */
const DOWN = [
  "cli/agents/Send.ts",
  "api/rpc/ControlClient.ts",
  "api/rpc/ControlServer.ts",
  "api/rpc/ControlHandlers.ts",
  "projects/service/AgentCommands.ts",
  "agents/actors/AgentScope.ts",
  "core/event-actor/CommitScope.ts",
  "agents/actors/InboxActor.ts",
  "agents/actors/TurnActor.ts",
  "core/event-log/Log.ts",
  "core/event-log/SqliteLog.ts",
  "core/event-log/GroupCommit.ts"
]
/** The way up of what an agent's process says. */
const UP = [
  "runs/claude/ClaudeRun.ts",
  "agents/run/LiveRun.ts",
  "agents/run/RunEvents.ts",
  "agents/actors/ToolCalls.ts",
  "agents/actors/TurnActor.ts",
  "core/event-actor/CommitScope.ts",
  "core/event-log/Log.ts"
]

const nameOf = (file: string): string => file.replace(/^.*\/|\.ts$/g, "")

const way = (files: ReadonlyArray<string>): string => {
  const boxes = files.map((file, index) => `  ${index}["${nameOf(file)}"]`)
  const arrows = files.slice(1).map((_, index) => `  ${index} --> ${index + 1}`)
  const rows = files.map((file) => [`[\`${file}\`](../src/${file})`, cell(aboutOf(file).replace(/(?<=\.) .*$/, ""))])
  return `${fenced(["flowchart LR", ...boxes, ...arrows].join("\n"))}\n\n${table(["file", "is"], rows)}`
}

/** A line of `agentd status --tree`: how deep it stands, and its words. */
const branches = (tree: string) =>
  tree
    .split("\n")
    .filter((line) => line.trim() !== "" && !line.startsWith("$"))
    .map((line) => {
      const [, stem = "", words = ""] = /^([│├└─ ]*)(.*)$/.exec(line) ?? []
      return { depth: stem.length / 3, words }
    })

/** The tree that the page shows as `agentd status --tree` prints it, drawn. */
const treeDrawn = (page: string): string => {
  const tree = /^\$ agentd status --tree\n([^]*?)^```/m.exec(page)?.[1] ?? ""
  const above: Array<number> = []
  const lines = branches(tree).flatMap(({ depth, words }, index) => {
    above[depth] = index
    const parent = above[depth - 1]
    const box = `${index}["${words.replaceAll(/ {2,}/g, "<br/>").replaceAll('"', "'")}"]`
    return [`  ${box}`, ...(depth === 0 || parent === undefined ? [] : [`  ${parent} --> ${index}`])]
  })
  return fenced(["flowchart LR", ...lines].join("\n"))
}

const parts: { readonly [name: string]: (page: string) => string } = {
  layers: layersDrawn,
  down: () => way(DOWN),
  up: () => way(UP),
  tree: treeDrawn
}

/** The page with its parts as the code has them. */
export const render = (page: string): string =>
  Object.entries(parts).reduce((text, [name, part]) => {
    const place = new RegExp(`(<!-- ${name} -->\n)[^]*?(<!-- /${name} -->)`)
    if (!place.test(text)) throw new Error(`docs/architecture.md has no place for ${name}`)
    return text.replace(place, (_, begin: string, end: string) => `${begin}\n${part(page)}\n\n${end}`)
  }, page)
