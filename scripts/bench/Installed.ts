/**
 * Installed: agentd laid out as npm installs a package (a link to the launcher, dist/, and no src), and daemons of
 * it with as many agents that wait as a bench wants.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"

const root = join(import.meta.dirname, "..", "..")

/** The program as npm installs it; the command's path. */
export const installed = (at: string): string => {
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

export interface Crew {
  readonly daemon: ChildProcess
  readonly state: string
  readonly project: string
}

/** A daemon with so many agents that wait. */
export const crewOf = async (at: string, command: string, agents: number): Promise<Crew> => {
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

export const dismissed = async ({ daemon }: Crew): Promise<void> => {
  daemon.kill("SIGTERM")
  if (daemon.exitCode === null && daemon.signalCode === null) await once(daemon, "exit")
}
