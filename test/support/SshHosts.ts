/**
 * SshHosts: machines that are reached through a real `sshd` on loopback, each with a daemon, a shell and a PATH of its
 * own, and the commands of a person on this machine, who has the key.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process"
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { createServer, type AddressInfo, connect } from "node:net"
import { tmpdir, userInfo } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import type { Answer } from "./Sandbox.ts"
import { QUICK } from "./Program.ts"

const SSHD = "/usr/sbin/sshd"
const SSH = "/usr/bin/ssh"

/** Why the tests cannot run here; undefined if they can. */
export const missing = [SSHD, SSH].find((path) => !existsSync(path))

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })

const listens = (port: number, address: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, address)
    socket.on("connect", () => resolve((socket.destroy(), true)))
    socket.on("error", () => resolve(false))
  })

const executable = (path: string, text: string): void => {
  writeFileSync(path, `#!/bin/sh\n${text}\n`)
  chmodSync(path, 0o755)
}

interface MachineOptions {
  readonly isKnown?: boolean
  readonly within?: { readonly space: string; readonly address: string }
}

export class SshHosts {
  readonly folder = mkdtempSync(join(tmpdir(), "agentd-test-ssh-"))
  readonly environment: Record<string, string> = {}
  private readonly servers: Array<ChildProcess> = []
  private readonly ports: Array<number> = []
  private readonly known = join(this.folder, "known_hosts")

  constructor() {
    for (const name of ["home", "bin"]) mkdirSync(join(this.folder, name))
    this.makeKey("key")
    writeFileSync(this.known, "")
    const config = [
      "ControlMaster auto",
      `ControlPath ${this.folder}/%C`,
      "ControlPersist 20",
      "IdentitiesOnly yes",
      `IdentityFile ${join(this.folder, "key")}`,
      `UserKnownHostsFile ${this.known}`
    ]
    writeFileSync(join(this.folder, "ssh_config"), config.join("\n"))
    executable(join(this.folder, "bin", "ssh"), `exec ${SSH} -F ${join(this.folder, "ssh_config")} "$@"`)
    Object.assign(this.environment, {
      HOME: join(this.folder, "home"),
      XDG_CONFIG_HOME: join(this.folder, "home", ".config"),
      XDG_STATE_HOME: join(this.folder, "home", ".state"),
      PATH: `${join(this.folder, "bin")}:${process.env["PATH"]}`,
      NO_COLOR: "1"
    })
  }

  private makeKey(name: string): string {
    const file = join(this.folder, name)
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", file])
    return file
  }

  /**
   * Starts a machine. `shell`: what its login shell does, instead of running the command with `agentd` on the PATH.
   * `within`: the network namespace in which it listens, and its address there.
   */
  readonly machine = Effect.fnUntraced(
    { self: this },
    function* (this: SshHosts, shell?: string, { isKnown = true, within }: MachineOptions = {}) {
      const port = yield* Effect.promise(freePort)
      const folder = join(this.folder, String(port))
      for (const name of ["", "bin", "home"]) mkdirSync(join(folder, name))
      executable(join(folder, "bin", "agentd"), `exec ${process.execPath} ${QUICK} "$@"`)
      const run = shell ?? 'exec sh -c "$SSH_ORIGINAL_COMMAND"'
      executable(
        join(folder, "force"),
        `export HOME=${join(folder, "home")} PATH=${join(folder, "bin")}:/usr/bin:/bin SHELL=/bin/sh NO_COLOR=1\ncd "$HOME"\n${run}`
      )
      const key = this.makeKey(`${port}/host`)
      const config = [
        `Port ${port}`,
        `ListenAddress ${within?.address ?? "127.0.0.1"}`,
        `HostKey ${key}`,
        `AuthorizedKeysFile ${join(this.folder, "key.pub")}`,
        `PidFile none`,
        "StrictModes no",
        "UsePAM no",
        "PasswordAuthentication no",
        "MaxStartups 100",
        `ForceCommand ${join(folder, "force")}`
      ]
      writeFileSync(join(folder, "sshd_config"), config.join("\n"))
      if (userInfo().uid === 0) mkdirSync("/run/sshd", { recursive: true })
      const server = [SSHD, "-D", "-f", join(folder, "sshd_config")]
      const [program = "", ...args] = within === undefined ? server : ["ip", "netns", "exec", within.space, ...server]
      this.servers.push(spawn(program, args, { stdio: "ignore" }))
      const address = within?.address ?? "127.0.0.1"
      while (!(yield* Effect.promise(() => listens(port, address)))) yield* Effect.sleep(50)
      this.ports.push(port)
      if (isKnown) this.know(port, port, address)
      return { port, folder, url: `ssh://${address}:${port}`, pid: this.servers.at(-1)!.pid! }
    }
  )

  /** Accepts the key of a machine: its own, or that of another one in its place. */
  know(port: number, of = port, address = "127.0.0.1"): void {
    const [type, key] = readFileSync(join(this.folder, String(of), "host.pub"), "utf8").split(" ")
    appendFileSync(this.known, `[${address}]:${port} ${type} ${key}\n`)
  }

  /** Saves hosts for this person, without a try to reach them. */
  save(hosts: { readonly [name: string]: string }, config = join(this.folder, "home", ".config")): void {
    const folder = join(config, "agentd")
    mkdirSync(folder, { recursive: true })
    const saved = Object.entries(hosts).map(([name, url]) => [name, { url }])
    writeFileSync(join(folder, "hosts.json"), JSON.stringify(Object.fromEntries(saved)))
  }

  /** Starts a command of agentd on the person's machine. */
  start(...args: ReadonlyArray<string>): ChildProcess {
    return spawn(process.execPath, [QUICK, ...args], {
      cwd: join(this.folder, "home"),
      env: this.environment,
      stdio: ["pipe", "pipe", "pipe"]
    })
  }

  /** Runs a command of agentd on the person's machine. */
  cli(...args: ReadonlyArray<string>): Effect.Effect<Answer> {
    return Effect.callback((resume) => {
      const child = this.start(...args)
      child.stdin!.end()
      let [stdout, stderr] = ["", ""]
      child.stdout!.on("data", (chunk) => (stdout += chunk))
      child.stderr!.on("data", (chunk) => (stderr += chunk))
      child.on("exit", (code) => setTimeout(() => resume(Effect.succeed({ code, stdout, stderr })), 20))
    })
  }

  readonly close = Effect.sync(() => {
    // ends the kept connections, and with them the sessions of the servers
    for (const port of this.ports)
      spawnSync(join(this.folder, "bin", "ssh"), ["-O", "exit", "-p", String(port), "127.0.0.1"], {
        stdio: "ignore",
        timeout: 5_000
      })
    for (const server of this.servers) server.kill("SIGKILL")
    rmSync(this.folder, { recursive: true, force: true })
  })
}

/** Machines that end with the scope. */
export const make = Effect.acquireRelease(
  Effect.sync(() => new SshHosts()),
  (hosts) => hosts.close
)
