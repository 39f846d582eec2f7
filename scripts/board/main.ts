/**
 * board: measures how true the board is: plays scenarios on a real coding CLI in tmux, against a model on 127.0.0.1, and
 * compares the session's row with what its terminal shows, each 120 ms. Run by hand, outside CI: it installs the CLI from
 * npm. Needs tmux.
 *
 * `main.ts --agent ID [--only TEXT] [--at FOLDER] [--show]`: `only`: the scenarios whose names contain the text, without
 * a recording. `at`: a folder in which the CLI is or will be installed. `show`: prints screens that were not expected.
 * The result is test/fixtures/board/ID.jsonl, from which `npm run docs` makes the table in docs/board.md.
 */
import { execFileSync, spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { connect, createServer } from "node:net"
import { request } from "node:http"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { promisify, parseArgs } from "node:util"
import { execFile } from "node:child_process"
import * as Models from "../conformance/Models.ts"
import { AGENTS, read, type Agent } from "./Agents.ts"
import { figuresOf, type Heard, type Played, type Recording, type Track } from "./Recording.ts"
import { model, scenarios, type Answer, type Scenario, type State, type Step } from "./Scenarios.ts"

const PERIOD = 120
/** Time without a change after which an answer is written, ms. */
const WRITING = 700
const root = join(import.meta.dirname, "../..")
const run = promisify(execFile)

interface Row {
  readonly plateId: string
  readonly status: string
  readonly pid: number | null
  readonly cwd: string | null
  readonly since: number
  readonly restsOn: { readonly signal: string } | null
  readonly detail: string
}

const parentOf = (pid: number): number => {
  try {
    return Number(readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)!.split(" ")[1])
  } catch {
    return 0
  }
}
const isBelow = (pid: number, top: number): boolean => {
  for (let at = pid; at > 1; at = parentOf(at)) if (at === top) return true
  return false
}

/** A CLI in a terminal of its own, with what was seen of it. */
class Terminal {
  readonly screen: Array<[number, State | "unknown"]> = []
  readonly row: Array<[number, string]> = []
  prompt: string | undefined = undefined
  text = ""
  changed = 0
  state: State | "unknown" = "unknown"
  pid = 0
  /** When it was no longer looked at; undefined before. */
  end: number | undefined = undefined
  private plateId: string | undefined = undefined
  readonly name: string
  readonly stand: Stand

  constructor(name: string, stand: Stand) {
    this.name = name
    this.stand = stand
  }

  tmux(...args: ReadonlyArray<string>): string {
    return execFileSync("tmux", ["-L", this.stand.socket, ...args], { encoding: "utf8", env: this.stand.env })
  }

  start(argv: ReadonlyArray<string>, project: string): void {
    const line = argv.map((word) => `'${word}'`).join(" ")
    const size = ["-x", "130", "-y", "45"]
    this.tmux(
      "-f",
      "/dev/null",
      "new-session",
      "-d",
      "-s",
      this.name,
      ...size,
      "-c",
      project,
      `exec ${line}`,
      ";",
      "set",
      "-g",
      "remain-on-exit",
      "on"
    )
    this.pid = Number(this.tmux("display", "-p", "-t", this.name, "#{pane_pid}"))
  }

  async look(at: () => number): Promise<void> {
    const args = [
      "-L",
      this.stand.socket,
      "capture-pane",
      "-p",
      "-t",
      this.name,
      ";",
      "display",
      "-p",
      "-t",
      this.name,
      "#{pane_dead}"
    ]
    const { stdout } = await run("tmux", args, { env: this.stand.env })
    const isDead = stdout.trimEnd().endsWith("\n1")
    const shown = isDead ? "closed" : (read(this.stand.agent, stdout, this.prompt) ?? "unknown")
    if (stdout !== this.text) this.changed = at()
    this.text = stdout
    // an answer of which only the text is shown goes on for as long as the text grows
    const isWritten = this.stand.agent.streams === true && this.state === "working" && shown === "idle"
    if (!isWritten || at() - this.changed > WRITING) this.state = shown
    if (this.screen.at(-1)?.[1] !== this.state) this.screen.push([isWritten ? this.changed : at(), this.state])
    if (options.frames === undefined) return
    appendFileSync(
      options.frames,
      `\n=== ${this.name} ${at()} ${this.state} ===\n${stdout.replaceAll(/\n\s*\n/g, "\n")}`
    )
  }

  /** Finds the session's row: by its process, or by its folder, if only one session is in it. */
  see(rows: ReadonlyArray<Row>, at: number, isAlone: boolean): void {
    if (this.end !== undefined) return
    const own = rows.filter(({ pid, plateId }) =>
      pid === null ? isAlone || plateId === this.plateId : isBelow(pid, this.pid)
    )
    const row = own.filter(({ status }) => status !== "Closed").toSorted((a, b) => b.since - a.since)[0] ?? own[0]
    if (row !== undefined) this.plateId = row.plateId
    const told = row === undefined ? "none" : `${row.status} ${row.restsOn?.signal ?? ""}`.trim()
    if (this.row.at(-1)?.[1] !== told) this.row.push([at, told])
  }
}

/** A home folder with the CLI, its model, and a daemon whose hooks are recorded. */
class Stand {
  readonly folder = mkdtempSync(join(tmpdir(), "agentd-board-"))
  readonly home = join(this.folder, "home")
  readonly state = join(this.folder, "s")
  readonly socket = `board-${process.pid}`
  readonly agent: Agent
  readonly env: NodeJS.ProcessEnv
  private readonly url: string
  private daemon: ChildProcess | undefined
  private tee: ReturnType<typeof createServer> | undefined
  heard: Array<Heard> = []
  now = () => 0

  constructor(agent: Agent, url: string, bin: string) {
    this.agent = agent
    this.url = url
    mkdirSync(this.home)
    const path = `${bin}:${dirname(process.execPath)}:${process.env["PATH"]}`
    this.env = {
      PATH: path,
      HOME: this.home,
      LANG: "C.UTF-8",
      TERM: "xterm-256color",
      SHELL: "/bin/sh",
      NO_PROXY: "127.0.0.1",
      ...agent.env(url)
    }
  }

  project(name: string): string {
    const project = join(this.folder, name)
    mkdirSync(project)
    execFileSync("git", ["init", "-q"], { cwd: project })
    for (const [path, content] of Object.entries(this.agent.files(this.url, project))) {
      const file = join(this.home, path)
      mkdirSync(dirname(file), { recursive: true })
      const old =
        existsSync(file) && typeof content !== "string" ? (JSON.parse(readFileSync(file, "utf8")) as object) : {}
      writeFileSync(file, typeof content === "string" ? content : JSON.stringify({ ...old, ...content }))
    }
    return project
  }

  cli(...args: ReadonlyArray<string>): string {
    return execFileSync(join(root, "scripts/agentd"), ["--state", this.state, ...args], {
      env: this.env,
      cwd: this.home,
      encoding: "utf8"
    })
  }

  /** Starts the daemon. Hooks pass through a socket that records them. */
  async up(): Promise<void> {
    this.daemon = spawn(join(root, "scripts/agentd"), ["--state", this.state, "up"], {
      env: this.env,
      cwd: this.home,
      stdio: "ignore"
    })
    const path = join(this.state, "http.sock")
    while (!existsSync(path)) await wait(100)
    renameSync(path, `${path}.own`)
    this.tee = createServer((client) => {
      const own = connect(`${path}.own`)
      let text = ""
      client.on("data", (part) => (text += part.toString()))
      client.on("error", () => own.destroy()).on("close", () => this.keep(text))
      own.on("error", () => client.destroy())
      client.pipe(own).pipe(client)
    }).listen(path)
    await once(this.tee, "listening")
  }

  async down(): Promise<void> {
    this.tee?.close()
    const { daemon } = this
    daemon?.kill("SIGTERM")
    if (daemon !== undefined && daemon.exitCode === null) await once(daemon, "exit")
    rmSync(join(this.state, "http.sock"), { force: true })
  }

  private keep(text: string): void {
    try {
      this.heard.push([this.now(), JSON.parse(text.slice(text.indexOf("\r\n\r\n") + 4))])
    } catch {
      console.log(`  not a hook: ${text.slice(0, 200)}`)
    }
  }

  rows(): Promise<ReadonlyArray<Row>> {
    return new Promise((told) => {
      const asked = request(
        { socketPath: join(this.state, "http.sock.own"), path: "/plates?closed=true" },
        (answer) => {
          let text = ""
          answer
            .setEncoding("utf8")
            .on("data", (part) => (text += part))
            .on("end", () => told(JSON.parse(text).plates ?? JSON.parse(text)))
        }
      )
      asked.on("error", () => told([])).end()
    })
  }
}

let prompts = 0
const show = (terminal: Terminal, expected: string) => {
  if (options.show)
    console.log(
      `  ${terminal.name}: not ${expected}, but ${terminal.state}\n${terminal.text.replaceAll(/\n\s*\n/g, "\n")}`
    )
}

const play = async (stand: Stand, { bare, name, steps }: Scenario, number: number): Promise<Played> => {
  const { agent } = stand
  const project = stand.project(`p${number}`)
  const begin = Date.now()
  const now = () => Date.now() - begin
  stand.heard = []
  stand.now = now
  const terminals: Array<Terminal> = []
  const open = (argv: ReadonlyArray<string>) => {
    const terminal = new Terminal(`t${number}-${terminals.length}`, stand)
    terminal.start(argv, project)
    terminals.push(terminal)
    return terminal
  }
  const over = new AbortController()
  const sampled = (async () => {
    while (!over.signal.aborted) {
      const next = wait(PERIOD)
      const rows = stand.rows().then((all) => {
        const own = all.filter(({ cwd }) => cwd === project)
        for (const terminal of terminals)
          terminal.see(own, now(), terminals.filter(({ end }) => end === undefined).length === 1)
      })
      await Promise.all([
        next,
        rows,
        ...terminals.map((terminal) => (terminal.end === undefined ? terminal.look(now) : undefined))
      ])
    }
  })()
  const say = async (terminal: Terminal, answer: Answer) => {
    const prompt = `board answers ${answer} ${++prompts}`
    terminal.tmux("send-keys", "-t", terminal.name, "-l", prompt)
    for (let look = 0; look < 50 && !terminal.text.includes(prompt); look++) await wait(100)
    await wait(500)
    terminal.prompt = prompt
    // a CLI that is busy takes an early Enter for a part of a pasted text
    for (let tries = 0; tries < 4 && ["ready", "idle", "unknown"].includes(terminal.state); tries++) {
      terminal.tmux("send-keys", "-t", terminal.name, "Enter")
      for (let look = 0; look < 30 && ["ready", "idle", "unknown"].includes(terminal.state); look++) await wait(100)
    }
  }
  const see = async (terminal: Terminal, state: State, within = 20): Promise<boolean> => {
    for (const until = Date.now() + within * 1_000; Date.now() < until; await wait(60)) {
      if (terminal.state === state) return true
      const opening = agent.opening?.find(([shows]) => terminal.prompt === undefined && shows.test(terminal.text))
      if (opening !== undefined) {
        terminal.tmux("send-keys", "-t", terminal.name, ...opening[1])
        await wait(1_000)
      }
    }
    show(terminal, state)
    return false
  }
  let terminal = open(agent.argv)
  const step = async (one: Step): Promise<void> => {
    const press = (keys: ReadonlyArray<string>) => void terminal.tmux("send-keys", "-t", terminal.name, ...keys)
    if ("say" in one) return say(terminal, one.say)
    if ("see" in one) return void (await see(terminal, one.see, one.within))
    if ("wait" in one) return wait(one.wait * 1_000)
    if ("press" in one) return press(agent.keys[one.press])
    if ("kill" in one) return void process.kill(terminal.pid, one.kill)
    if ("daemon" in one) return one.daemon === "up" ? stand.up() : stand.down()
    if ("beside" in one) {
      const second = open(agent.argv)
      await see(second, "ready", 40)
      return say(second, one.beside)
    }
    if ("resume" in one) {
      await step({ type: "quit" })
      await see(terminal, "closed")
      const { prompt } = terminal
      terminal.end = now()
      terminal = open([...agent.argv.slice(0, 1), ...agent.resume, ...agent.argv.slice(1)])
      terminal.prompt = prompt
      return
    }
    terminal.tmux("send-keys", "-t", terminal.name, "-l", agent.types[one.type])
    await wait(600)
    return press(["Enter"])
  }
  for (const one of steps) await step(one)
  for (const each of terminals) if (each.state !== "closed") process.kill(each.pid, "SIGTERM")
  over.abort()
  await sampled
  for (const each of terminals) each.tmux("kill-session", "-t", each.name)
  const tracks = terminals.map(({ end = now(), row, screen }): Track => ({ screen, row, end }))
  return { name, bare: bare === true, tracks, hooks: stand.heard }
}

const options = parseArgs({
  options: {
    agent: { type: "string" },
    only: { type: "string" },
    at: { type: "string" },
    frames: { type: "string" },
    show: { type: "boolean" }
  }
}).values
const agent = AGENTS.find(({ id }) => id === options.agent)
if (agent === undefined) throw new Error(`Give --agent one of: ${AGENTS.map(({ id }) => id).join(", ")}`)
const { lacks = [] } = agent
const wanted = scenarios.filter(
  ({ name, steps }) =>
    name.includes(options.only ?? "") && !steps.some((step) => "say" in step && lacks.includes(step.say))
)

/** Fields of a hook that a replay needs. */
const KEPT = (
  "hook_event_name session_id tool_name tool_use_id tool_input notification_type source reason error is_interrupt " +
  "agent_id background_tasks"
).split(" ")
const kept = ({ hooks, ...played }: Played): Played => ({
  ...played,
  hooks: hooks.map(([ms, body]) => [ms, Object.fromEntries(Object.entries(body).filter(([key]) => KEPT.includes(key)))])
})

const percent = (share: number) => `${(share * 100).toFixed(1)} %`
const told = (tracks: ReadonlyArray<Track>) =>
  figuresOf(tracks).map(
    ({ changes, missed, p99, right, seconds, state }) =>
      `${state} ${seconds.toFixed(1)} s ${percent(right)}, missed ${missed} of ${changes}, p99 ${p99 ?? "-"} ms`
  )

const modelServer = await Models.start(model())
const at = options.at ?? mkdtempSync(join(tmpdir(), "agentd-board-cli-"))
const bin = join(at, "node_modules/.bin")
if (!existsSync(bin))
  execFileSync("npm", ["i", "--silent", "--no-audit", "--no-fund", "--prefix", at, `${agent.package}@${agent.version}`])
const stand = new Stand(agent, modelServer.url, bin)
const played: Array<Played> = []
try {
  stand.cli("--version")
  stand.project("first")
  await stand.up()
  let installed = false
  for (const [number, scenario] of wanted
    .toSorted((a, b) => Number(b.bare ?? false) - Number(a.bare ?? false))
    .entries()) {
    if (!installed && scenario.bare !== true) {
      stand.cli("hooks", "install", "--agent", agent.id, "--yes")
      installed = true
    }
    console.log(scenario.name)
    const one = await play(stand, scenario, number)
    for (const line of told(one.tracks)) console.log(`  ${line}`)
    if (options.show)
      for (const { row, screen } of one.tracks)
        console.log(
          `  screen ${JSON.stringify(screen)}\n  row    ${JSON.stringify(row)}\n  hooks  ${one.hooks.map(([ms, body]) => `${ms} ${String(body["hook_event_name"])}`).join(", ")}`
        )
    played.push(one)
  }
} finally {
  await stand.down()
  modelServer.stop()
  try {
    execFileSync("tmux", ["-L", stand.socket, "kill-server"], { stdio: "ignore" })
  } catch {}
  rmSync(stand.folder, { recursive: true, force: true, maxRetries: 5 })
  if (options.at === undefined) rmSync(at, { recursive: true, force: true })
}
for (const bare of [false, true]) {
  const tracks = played.filter((one) => one.bare === bare).flatMap((one) => one.tracks)
  console.log(
    `${agent.name} ${agent.version}, ${bare ? "without" : "with"} hooks, ${played.filter((one) => one.bare === bare).length} scenarios`
  )
  for (const line of told(tracks)) console.log(`  ${line}`)
}
if (options.only === undefined) {
  const of: Omit<Recording, "played"> = { agent: agent.id, name: agent.name, version: agent.version }
  const lines = [of, ...played.map(kept)].map(
    (one) => `${JSON.stringify(one).replaceAll(stand.folder, "/home/user")}\n`
  )
  writeFileSync(join(root, `test/fixtures/board/${agent.id}.jsonl`), lines.join(""))
}
