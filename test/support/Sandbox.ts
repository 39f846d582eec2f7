/**
 * Sandbox: the real system in a test: a project in its own folder, a real daemon process with a real socket and store,
 * and the real CLI. When its scope closes, every process that it started is ended by pid, and every file that it wrote
 * is deleted.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import type { AgentInfo, ProjectInfo } from "../../src/domain/Messages.ts"
import type { Rune } from "../../src/core/event-log/Rune.ts"
import { storeId } from "../../src/runs/process/PeerProcess.ts"
import * as ProcessTable from "../../src/runs/process/ProcessTable.ts"
import { call } from "../../src/api/rpc/ControlClient.ts"
import { PATIENCE } from "./Patience.ts"
import { PROGRAM, QUICK } from "./Program.ts"

export interface Answer {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** A condition did not become true in time; the message has the last value. */
export class NeverHappened extends Schema.TaggedError<NeverHappened>()("NeverHappened", { message: Schema.String }) {}

export class Sandbox {
  readonly folder = mkdtempSync(join(tmpdir(), "agentd-test-"))
  readonly state = join(this.folder, "s")
  readonly project: string
  daemon: ChildProcess | undefined = undefined
  /** Variables for the daemon and commands, in addition to the tests' own environment. */
  readonly environment: Record<string, string> = {}
  /** Programs that start the daemon, each of them the next: `["unshare", "-n"]`. */
  under: ReadonlyArray<string> = []
  /** The program for the daemon and the commands; a test that installs agentd sets another one. */
  program = PROGRAM
  private readonly keeps: boolean
  /** Output of the daemons, for the analysis of a failure. */
  output = ""

  /** `keeps`: runs outlive the daemon; otherwise they end with it. */
  constructor(name = "shop", keeps = false) {
    this.project = join(this.folder, name)
    this.keeps = keeps
    mkdirSync(this.project)
    this.setUser({ orphanGrace: keeps ? "1 minute" : "0 seconds" })
  }

  /** Writes the user's own config. */
  setUser(config: object): void {
    mkdirSync(join(this.folder, "config", "agentd"), { recursive: true })
    writeFileSync(join(this.folder, "config", "agentd", "config.jsonc"), JSON.stringify(config))
  }

  /** Writes the project's agentd.jsonc. */
  configure(config: object): void {
    writeFileSync(join(this.project, "agentd.jsonc"), JSON.stringify(config, null, 2))
  }

  /** Path of a file in the project's folder. */
  file(name: string): string {
    return join(this.project, name)
  }

  private spawn(entry: string, args: ReadonlyArray<string>, cwd: string, under: ReadonlyArray<string> = []) {
    const [program = "", ...rest] = [...under, process.execPath, entry, "--state", this.state, ...args]
    return spawn(program, rest, {
      cwd,
      env: {
        ...process.env,
        SANDBOX: this.folder,
        NO_COLOR: "1",
        XDG_CONFIG_HOME: join(this.folder, "config"),
        CLAUDE_CONFIG_DIR: join(this.folder, "claude"),
        AGENTD_DEBUG: "",
        ...this.environment
      },
      stdio: ["pipe", "pipe", "pipe"]
    })
  }

  /** Runs an agentd command in the project's folder. */
  cli(...args: ReadonlyArray<string>): Effect.Effect<Answer> {
    return this.cliIn(this.project, ...args)
  }

  cliIn(cwd: string, ...args: ReadonlyArray<string>): Effect.Effect<Answer> {
    return this.answered(args, cwd, [])
  }

  /** Runs an agentd command in the project's folder, started by the programs of `under`. */
  cliUnder(...args: ReadonlyArray<string>): Effect.Effect<Answer> {
    return this.answered(args, this.project, this.under)
  }

  private answered(args: ReadonlyArray<string>, cwd: string, under: ReadonlyArray<string>): Effect.Effect<Answer> {
    return Effect.callback((resume) => {
      // like the launcher, runs the quick entry first, which starts in a fifth of the time
      const child = this.spawn(this.program === PROGRAM ? QUICK : this.program, args, cwd, under)
      child.stdin.end()
      let [stdout, stderr] = ["", ""]
      child.stdout.on("data", (chunk) => (stdout += chunk))
      child.stderr.on("data", (chunk) => (stderr += chunk))
      child.on("close", (code) => resume(Effect.succeed({ code, stdout, stderr })))
    })
  }

  /**
   * Runs `agentd up` in the project's folder; returns once the daemon answers `agentd status`, or `answers` is true.
   */
  readonly up = Effect.fnUntraced({ self: this }, function* (this: Sandbox, answers?: Effect.Effect<boolean>) {
    const daemon = this.spawn(this.program, ["up"], this.project, this.under)
    for (const pipe of [daemon.stdout, daemon.stderr]) pipe.on("data", (chunk) => (this.output += chunk))
    this.daemon = daemon
    const isOver = () => daemon.exitCode !== null || daemon.signalCode !== null
    const answering = answers ?? Effect.map(this.cli("status"), ({ code }) => code === 0)
    // each `agentd status` is a process, so it is run only once the daemon listens
    if (answers === undefined) yield* this.until("the daemon listens", this.listens, (listens) => listens || isOver())
    yield* this.until("the daemon answers", answering, (answered) => answered || isOver())
    if (isOver()) return yield* new NeverHappened({ message: `the daemon has ended:\n${this.output.slice(-4000)}` })
  })

  /** Kills the daemon with SIGKILL; returns when its process is gone. */
  readonly kill9 = Effect.suspend(() => this.end("SIGKILL"))
  readonly terminate = Effect.suspend(() => this.end("SIGTERM"))

  /** Returns when the daemon's process has ended. */
  readonly gone: Effect.Effect<void> = Effect.callback((resume) => {
    const { daemon } = this
    this.daemon = undefined
    if (daemon === undefined || daemon.exitCode !== null || daemon.signalCode !== null) return resume(Effect.void)
    daemon.once("close", () => resume(Effect.void))
  })

  private end(signal: NodeJS.Signals): Effect.Effect<number | null> {
    return Effect.callback((resume) => {
      const { daemon } = this
      this.daemon = undefined
      if (daemon === undefined || daemon.exitCode !== null || daemon.signalCode !== null) {
        return resume(Effect.succeed(daemon?.exitCode ?? null))
      }
      daemon.once("close", (code) => resume(Effect.succeed(code)))
      daemon.kill(signal)
    })
  }

  private readonly socket = join(this.state, "control.sock")

  private readonly listens = Effect.suspend(() =>
    call(this.socket, (client) => client.Agents()).pipe(
      Effect.as(true),
      Effect.orElseSucceed(() => false)
    )
  )

  /** The daemon's agents, read over its socket without a process, for tests that poll; empty if no daemon answers. */
  readonly rows: Effect.Effect<ReadonlyArray<AgentInfo>> = Effect.suspend(() =>
    Effect.orElseSucceed(
      call(this.socket, (client) => client.Agents()),
      () => []
    )
  )

  readonly agents = this.rows

  /** All runes, including internal ones, or those of the given kinds; at most 10,000. */
  runes(...kinds: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<Rune>> {
    const wanted = kinds.flatMap((kind) => ["--kind", kind])
    return Effect.map(this.cli("--json", "log", "--internal", "-n", "10000", ...wanted), ({ stdout }) =>
      stdout
        .split("\n")
        .filter((line) => line !== "")
        .map((line): Rune => JSON.parse(line))
    )
  }

  /** Waits until `holds` is true for the agent's row. */
  untilAgent(agent: string, what: string, holds: (row: AgentInfo) => boolean): Effect.Effect<AgentInfo, NeverHappened> {
    return Effect.map(
      this.until(`${agent} ${what}`, this.rows, (rows) => rows.some((row) => row.agent === agent && holds(row))),
      (rows) => rows.find((row) => row.agent === agent)!
    )
  }

  /** Polls until the condition is true; fails after PATIENCE. */
  until<A>(what: string, read: Effect.Effect<A>, holds: (value: A) => boolean): Effect.Effect<A, NeverHappened> {
    return Effect.gen({ self: this }, function* () {
      const deadline = Date.now() + PATIENCE
      for (;;) {
        const value = yield* read
        if (holds(value)) return value
        if (Date.now() > deadline) {
          const seen = JSON.stringify(value, null, 2).slice(0, 4000)
          return yield* new NeverHappened({
            message: `never: ${what}; last seen: ${seen}\n${this.output.slice(-4000)}`
          })
        }
        yield* Effect.sleep(50)
      }
    })
  }

  /** Waits until a changed config waits for approval, and trusts it. */
  readonly agree = Effect.gen({ self: this }, function* () {
    const read = Effect.map(this.cli("--json", "status"), ({ stdout }): string | undefined =>
      (JSON.parse(stdout).projects as ReadonlyArray<ProjectInfo>).flatMap(({ waits }) => waits?.hash ?? []).at(0)
    )
    const hash = yield* this.until("a changed config waits", read, (hash) => hash !== undefined)
    const { code, stderr } = yield* this.cli("trust", hash!)
    if (code !== 0) return yield* new NeverHappened({ message: stderr })
  })

  /** Every live process of this sandbox's runs. */
  readonly processes = Effect.gen({ self: this }, function* () {
    const found: Array<number> = []
    for (const { pid } of yield* ProcessTable.snapshot) {
      if (pid === process.pid || pid === this.daemon?.pid) continue
      const environment = yield* ProcessTable.environment(pid)
      if (
        environment.some((entry) => entry.startsWith("AGENTD_RUN=")) &&
        environment.includes(`AGENTD_STORE=${storeId(this.state)}`)
      ) {
        found.push(pid)
      }
    }
    return found
  })

  readonly close = Effect.gen({ self: this }, function* () {
    yield* this.end("SIGKILL")
    // the reaper ends processes that the daemon left; wait for it, then kill any others
    if (!this.keeps) yield* Effect.ignore(this.until("no process is left", this.processes, (pids) => pids.length === 0))
    for (const pid of yield* this.processes) {
      try {
        process.kill(pid, "SIGKILL")
      } catch (error) {
        // a process that has just ended needs no signal
        if (ProcessTable.isAlive(ProcessTable.identify(pid))) throw error
      }
    }
    rmSync(this.folder, { recursive: true, force: true })
  })
}

/** A sandbox that is closed with the scope. */
export const make = (name?: string, { keeps = false } = {}) =>
  Effect.acquireRelease(
    Effect.sync(() => new Sandbox(name, keeps)),
    (sandbox) => Effect.orDie(sandbox.close)
  )
