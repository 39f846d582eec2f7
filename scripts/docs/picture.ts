/**
 * picture: draws docs/board.svg, a picture of the board in a terminal, with a real daemon and scripted agents.
 *
 * `script` of util-linux provides the terminal. No process and no file is left behind.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Home from "../../test/world/docs/Home.ts"
import * as Program from "../../test/support/Program.ts"
import { TerminalGrid } from "../../test/support/TerminalGrid.ts"

const target = join(import.meta.dirname, "../../docs/board.svg")

const COLUMNS = 112
const ROWS = 24
/** Size of a character, in pixels. */
const WIDTH = 8.4
const HEIGHT = 18

const claude = { type: "claude" }
const command = (shell: string) => ({ type: "command", shell, readyAfter: "100ms" })

/** Agents that each reach a different status. */
const CONFIG = {
  agents: {
    builder: { role: "builds and fixes", backend: claude },
    tester: { role: "writes tests", backend: claude },
    reviewer: { role: "reviews", backend: claude },
    deployer: {
      role: "deploys",
      backend: command('cat > /dev/null; echo "cannot reach the registry" >&2; exit 3'),
      maxConsecutiveErrors: 1
    },
    importer: { role: "imports prices", backend: command('cat > /dev/null; echo "503 from the supplier" >&2; exit 1') }
  }
}

const say = (...steps: ReadonlyArray<object>) => `do: ${JSON.stringify(steps)}`

const sent = (agent: string, text: string) => `agentd send ${agent} '${text}'`

/** The colours of xterm. */
const ANSI = ["#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4"]
const LEVELS = [0, 95, 135, 175, 215, 255]

const colourOf = (index: number): string => {
  if (index < 16) return ANSI[index % 8]!
  const parts =
    index < 232
      ? [Math.trunc((index - 16) / 36), Math.trunc((index - 16) / 6) % 6, (index - 16) % 6].map((one) => LEVELS[one]!)
      : Array.from({ length: 3 }, () => 8 + (index - 232) * 10)
  return `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`
}

interface Look {
  readonly fill: string
  readonly back: string | undefined
  readonly bold: boolean
}

/** The colours and weight that a cell's escape codes select. */
const lookOf = (styles: string): Look => {
  const of = (layer: string) => new RegExp(String.raw`\b${layer};5;(\d+)`).exec(styles)?.[1]
  const [fore, back] = [of("38"), of("48")]
  const plain = styles.replaceAll(/[34]8;5;\d+/g, "").split(";")
  const text = fore === undefined ? (plain.includes("2") ? "#8b949e" : "#e6edf3") : colourOf(Number(fore))
  const ground = back === undefined ? undefined : colourOf(Number(back))
  return plain.includes("7")
    ? { fill: "#0d1117", back: text, bold: plain.includes("1") }
    : { fill: text, back: ground, bold: plain.includes("1") }
}

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

interface Run {
  readonly at: number
  readonly look: Look
  text: string
}

/** A row as runs of characters with the same look. */
const runsOf = (grid: TerminalGrid, row: number): ReadonlyArray<Run> => {
  const runs: Array<Run> = []
  for (let column = 0; column < COLUMNS; column++) {
    const at = row * COLUMNS + column
    const look = lookOf(grid.styles[at] ?? "")
    const last = runs.at(-1)
    if (last !== undefined && JSON.stringify(last.look) === JSON.stringify(look)) last.text += grid.text[at]!
    else runs.push({ at: column, look, text: grid.text[at]! })
  }
  return runs.filter(({ look, text }) => text.trim() !== "" || look.back !== undefined)
}

/** Replaces the temporary home's path with a usual one. */
const renamed = (grid: TerminalGrid, folder: string): TerminalGrid => {
  const rows = grid.lines.map((line) => line.replaceAll(folder, "/home/ada").padEnd(COLUMNS))
  grid.text = rows.flatMap((row) => [...row].slice(0, COLUMNS))
  return grid
}

const drawn = (grid: TerminalGrid): string => {
  const place = (value: number) => value.toFixed(1).replace(/\.0$/, "")
  const rows = Array.from({ length: ROWS }, (_, row) =>
    runsOf(grid, row).map(({ at, look, text }) => {
      const [x, y] = [12 + at * WIDTH, 12 + row * HEIGHT]
      const width = place(text.length * WIDTH)
      const ground =
        look.back === undefined
          ? ""
          : `<rect x="${place(x)}" y="${y}" width="${width}" height="${HEIGHT}" fill="${look.back}"/>`
      const words = text.trimEnd()
      const bold = look.bold ? ' font-weight="bold"' : ""
      return words === ""
        ? ground
        : `${ground}<text x="${place(x)}" y="${y + 13}" fill="${look.fill}"${bold} textLength="${place([...words].length * WIDTH)}">${escaped(words).replaceAll(" ", "\u00a0")}</text>`
    })
  )
  const [width, height] = [Math.ceil(24 + COLUMNS * WIDTH), 24 + ROWS * HEIGHT]
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14">
<title>The board of agentd in a terminal</title>
<rect width="${width}" height="${height}" rx="8" fill="#0d1117"/>
${rows
  .flat()
  .filter((one) => one !== "")
  .join("\n")}
</svg>
`
}

/** The board as soon as each of `shows` matches a line, and no line is still loading (`…`). */
const boardOf = (home: Home.Home, shows: ReadonlyArray<RegExp>) =>
  Effect.callback<TerminalGrid>((resume) => {
    const line = `stty cols ${COLUMNS} rows ${ROWS}; agentd`
    const env = { ...home.environment, TERM: "xterm-256color" }
    const child = spawn("script", ["-qec", line, "/dev/null"], {
      cwd: home.cwd,
      env,
      stdio: ["pipe", "pipe", "ignore"]
    })
    const grid = new TerminalGrid(COLUMNS, ROWS)
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      grid.take(text)
      const isWhole = !grid.lines.some((row) => row.trim() === "…")
      if (!isWhole || !shows.every((one) => grid.lines.some((row) => one.test(row)))) return
      child.stdout.removeAllListeners("data")
      child.stdin.end("q")
      resume(Effect.succeed(grid))
    })
    child.stdin.on("error", () => {})
    return Effect.sync(() => child.kill("SIGKILL"))
  })

const program = Effect.gen(function* () {
  Program.setup()
  const home = yield* Home.make
  home.write("shop/agentd.jsonc", JSON.stringify(CONFIG, null, 2))
  yield* home.run("cd shop && git init -q && git commit -q --allow-empty -m first && agentd start")
  const texts = [
    sent("builder", say({ run: "true" }, { sleep: 600_000 })),
    sent("tester", say({ ask: "rm -rf build && npm run build" })),
    sent("deployer", "Deploy it."),
    sent("importer", "Import the prices.")
  ]
  for (const text of texts) yield* home.run(text)
  yield* home.run("agentd wait tester --for needs-you")
  yield* home.run("agentd wait deployer --for failed")
  const grid = yield* boardOf(home, [
    /Needs you 1/,
    /✕ shop\/deployer/,
    /● shop\/builder/,
    /↻ shop\/importer/,
    /○ shop\/reviewer/
  ])
  writeFileSync(target, drawn(renamed(grid, home.folder)))
  console.log(grid.lines.join("\n"))
})

await Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(NodeServices.layer)))
