/**
 * page: builds the page, dist/web, from src/web. The page contains everything that it needs and loads nothing from
 * elsewhere.
 */
import { cp, mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { type Plugin, rolldown } from "rolldown"
import * as AgentMachine from "../src/agents/machines/AgentMachine.ts"
import * as ConversationMachine from "../src/agents/machines/ConversationMachine.ts"
import * as ToolMachine from "../src/agents/machines/ToolMachine.ts"
import * as TurnMachine from "../src/agents/machines/TurnMachine.ts"
import * as WorkerMachine from "../src/agents/machines/WorkerMachine.ts"
import * as SeatMachine from "../src/channels/SeatMachine.ts"
import { type AnyMachine, edges } from "../src/core/event-actor/StateMachine.ts"
import * as GoalMachine from "../src/goals/GoalMachine.ts"
import * as PlateMachine from "../src/plates/PlateMachine.ts"
import { tagOf } from "../src/api/http/PageFiles.ts"
import * as ProviderMachine from "../src/providers/ProviderMachine.ts"

const root = join(import.meta.dirname, "..")

/** States and transitions of the daemon's state machines, for the page's drawings. */
const machines = () => {
  const all: { readonly [name: string]: AnyMachine } = {
    worker: WorkerMachine.Worker,
    turn: TurnMachine.Turn,
    tool: ToolMachine.Tool,
    agent: AgentMachine.Agent,
    conversation: ConversationMachine.Conversation,
    plate: PlateMachine.Plate,
    autonomy: GoalMachine.Autonomy,
    provider: ProviderMachine.Provider,
    seat: SeatMachine.Seat
  }
  return Object.fromEntries(
    Object.entries(all).map(([name, machine]) => {
      const ways = new Map(edges(machine).map(({ from, to }) => [`${from} ${to}`, [from, to]]))
      return [name, { states: Object.keys(machine.table), edges: [...ways.values()] }]
    })
  )
}

/** Removes comments and needless white space. */
const small = (css: string): string =>
  css
    .replaceAll(/\/\*[^]*?\*\//g, "")
    .replaceAll(/\s+/g, " ")
    .replaceAll(/ ?([{};,>]) ?/g, "$1")

/** The style sheets, in the order of their names. */
const styles = async (): Promise<string> => {
  const folder = join(root, "src/web/styles")
  const names = (await readdir(folder)).filter((name) => name.endsWith(".css")).toSorted()
  return (await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")))).join("\n")
}

/** Adds a tag of its content to each file's URL, so that a browser can cache the file without checking it. */
const tagged = (page: string, files: { readonly [name: string]: string }): string =>
  Object.entries(files).reduce(
    (text, [name, content]) => text.replace(`"/page/${name}"`, `"/page/${name}?tag=${tagOf(content)}"`),
    page
  )

const put = async (file: string, content: string) => {
  await writeFile(`${file}.new`, content)
  await rename(`${file}.new`, file)
}

/** Builds the page. `plugin`: a plugin of the bundler that reads along. */
export const build = async (out: string, plugin: Plugin): Promise<void> => {
  const page = await rolldown({
    cwd: root,
    input: "src/web/App.tsx",
    platform: "browser",
    plugins: [plugin],
    // tsconfig.json has the JSX import source
    transform: { jsx: { runtime: "automatic" }, target: "es2022" }
  })
  const { output } = await page.generate({ format: "esm", minify: true })
  await page.close()
  const [entry, ...others] = output
  if (others.length > 0) throw new Error("page: it is not one file")
  const files = { "app.js": entry.code, "app.css": small(await styles()) }
  await mkdir(out, { recursive: true })
  await cp(join(root, "src/web/static"), out, { recursive: true })
  for (const [name, content] of Object.entries(files)) await put(join(out, name), content)
  await put(join(out, "machines.json"), JSON.stringify(machines()))
  await put(join(out, "index.html"), tagged(await readFile(join(out, "index.html"), "utf8"), files))
}
