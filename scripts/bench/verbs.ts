/**
 * Bench of the verbs that read or send, as they are installed: the launcher, the quick entry and
 * a real daemon with 10 agents and one with 200, each command in turn with a bare `node -e 0`.
 *
 * Laid out as npm installs a package: a link to the launcher, dist/, and no src. CPU is user and
 * system time of the command and all that it started.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { type Bench, folder, interleave, type Subject } from "./Bench.ts"

const root = join(import.meta.dirname, "..", "..")
const ROUNDS = 30
/** Runs of a command in one sample: the kernel counts CPU time in steps of 10 ms. */
const RUNS = 3
const BARE = "node -e 0"
const WHOLE = "ps by the whole program"

/** The program as npm installs it; the command's path. */
const installed = (at: string): string => {
  const home = join(at, "lib", "agentd")
  execFileSync(process.execPath, [join(root, "scripts", "bundle.ts"), join(home, "dist")], { cwd: root })
  for (const name of ["agentd", "find-node.sh"]) cpSync(join(root, "scripts", name), join(home, "scripts", name))
  mkdirSync(join(home, "node_modules", ".bin"), { recursive: true })
  symlinkSync(process.execPath, join(home, "node_modules", ".bin", "node"))
  mkdirSync(join(at, "bin"))
  const command = join(at, "bin", "agentd")
  symlinkSync("../lib/agentd/scripts/agentd", command)
  execFileSync(command, ["--version"]) // proves its Node, and notes it
  return command
}

interface Crew {
  readonly daemon: ChildProcess
  readonly state: string
  readonly project: string
}

/** A daemon with so many agents that wait. */
const crewOf = async (at: string, command: string, agents: number): Promise<Crew> => {
  const [state, project] = [join(at, `s${agents}`), join(at, `shop${agents}`)]
  mkdirSync(project)
  const backend = { type: "command", shell: "cat" }
  const crew = Object.fromEntries(Array.from({ length: agents }, (_, n) => [`agent${n}`, { backend }]))
  writeFileSync(join(project, "agentd.jsonc"), JSON.stringify({ agents: crew }))
  const env = { ...process.env, XDG_CONFIG_HOME: join(at, "config"), CLAUDE_CONFIG_DIR: join(at, "claude") }
  const daemon = spawn(command, ["--state", state, "up"], { cwd: project, env, stdio: "ignore" })
  for (;;) {
    const { stdout } = spawnSync(command, ["--state", state, "--json", "ps"], { encoding: "utf8" })
    const found = stdout.startsWith("{")
      ? (JSON.parse(stdout) as { readonly rows: ReadonlyArray<{ readonly kind: string }> })
      : undefined
    if (found?.rows.filter(({ kind }) => kind === "agent").length === agents) return { daemon, state, project }
    if (daemon.exitCode !== null) throw new Error(`the daemon of ${agents} agents does not start`)
    await wait(100)
  }
}

/** ms of CPU that the children of this process have taken. */
const childrenTime = (): number => {
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ")[1]!.split(" ")
  return (Number(fields[13]) + Number(fields[14])) * 10
}

const subject = (name: string, words: ReadonlyArray<string>, cwd: string): Subject => ({
  subject: name,
  round: () => {
    const [before, at] = [childrenTime(), performance.now()]
    for (let run = 0; run < RUNS; run++) {
      const { status } = spawnSync(words[0]!, words.slice(1), { cwd, stdio: "ignore" })
      if (status !== 0) throw new Error(`${words.join(" ")} ended with ${status}`)
    }
    return Promise.resolve({ wall: (performance.now() - at) / RUNS, CPU: (childrenTime() - before) / RUNS })
  }
})

const run = async () => {
  const at = folder()
  const command = installed(at)
  const crews = [await crewOf(at, command, 10), await crewOf(at, command, 200)] as const
  const [few, many] = crews
  const verb = (name: string, ...words: ReadonlyArray<string>) =>
    subject(name, [command, "--state", few.state, ...words], few.project)
  try {
    return await interleave(
      [
        { what: "wall", unit: "ms", better: "less" },
        { what: "CPU", unit: "ms", better: "less" }
      ],
      [
        subject(BARE, [process.execPath, "-e", "0"], at),
        verb("ps", "ps"),
        verb("send", "send", "agent1", "hello"),
        verb("status", "status"),
        verb("why", "why", "agent2"),
        verb("log", "log"),
        subject("ps of 200", [command, "--state", many.state, "ps"], many.project),
        // the quick entry does not read this spelling
        subject(WHOLE, [command, `--state=${few.state}`, "ps"], few.project)
      ],
      ROUNDS
    )
  } finally {
    for (const { daemon } of crews) {
      daemon.kill("SIGTERM")
      if (daemon.exitCode === null && daemon.signalCode === null) await once(daemon, "exit")
    }
  }
}

const aims = (["wall", "CPU"] as const).flatMap((what) => [
  ...["ps", "send", "status", "why"].map((of) => ({ what, of, to: { subject: BARE }, atMost: 1.7 })),
  { what, of: "ps of 200", to: { subject: BARE }, atMost: 1.9 }
])

export const bench: Bench = { name: "verbs", run, aims }
