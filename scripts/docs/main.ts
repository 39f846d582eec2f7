/**
 * docs: writes the generated parts of the documents. With `--check` it writes nothing, and fails if a file is out of
 * date. With `--picture` it also draws the board's picture, which needs a daemon.
 */
import { Effect } from "effect"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import * as Architecture from "./Architecture.ts"
import * as Board from "./Board.ts"
import * as Commands from "./Commands.ts"
import * as Config from "./Config.ts"
import * as Errors from "./Errors.ts"
import * as Machines from "./Machines.ts"
import * as OwnAgent from "./OwnAgent.ts"
import * as Runes from "./Runes.ts"

const root = join(import.meta.dirname, "../..")

/** The file's current text; empty if there is no file. */
export const current = (path: string): string => {
  try {
    return readFileSync(join(root, path), "utf8")
  } catch {
    return ""
  }
}

/** The current text of every generated document, by its path in the project. */
export const documents: Effect.Effect<ReadonlyMap<string, string>> = Effect.gen(function* () {
  return new Map([
    ["docs/architecture.md", Architecture.render(current("docs/architecture.md"))],
    ["docs/board.md", Board.render(current("docs/board.md"))],
    ["docs/machines.md", Machines.render()],
    ["docs/own-agent.md", OwnAgent.render(current("docs/own-agent.md"))],
    ["docs/reference/commands.md", yield* Commands.render],
    ["docs/reference/config.md", Config.render()],
    ["docs/reference/errors.md", Errors.render()],
    ["docs/reference/runes.md", Runes.render()]
  ])
})

if (import.meta.main) {
  if (process.argv.includes("--picture")) await import("./picture.ts")
  const all = await Effect.runPromise(documents)
  const old = [...all].filter(([path, text]) => current(path) !== text)
  if (process.argv.includes("--check")) {
    for (const [path] of old) console.error(`${path} is out of date: run \`npm run docs\` and commit what it writes.`)
    process.exitCode = old.length === 0 ? 0 : 1
  } else {
    for (const [path, text] of old) {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), text)
      console.log(`wrote ${path}`)
    }
  }
}
