/**
 * Home: a person's bare home in a folder of its own, with agentd and scripted programs on its PATH, in which command
 * lines are run one after the other as they are typed. Everything that was started in it ends with it, by pid.
 */
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import * as ProcessTable from "../../../src/runs/process/ProcessTable.ts"
import { QUICK } from "../../support/Program.ts"
import * as Scratch from "../../support/Scratch.ts"

export interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

export class Home {
  readonly folder = Scratch.make("agentd-docs-")
  cwd = this.folder

  constructor() {
    this.program("agentd", `exec '${process.execPath}' '${QUICK}' "$@"`)
    this.program("claude", `exec '${process.execPath}' '${join(import.meta.dirname, "claude.mjs")}' "$@"`)
    // as after /login
    this.write(".claude/.credentials.json", "{}")
    this.write(
      ".gitconfig",
      "[user]\nname = Ada\nemail = ada@example.org\n[core]\nexcludesFile = ~/.gitignore\n[init]\ndefaultBranch = main\n[advice]\ndetachedHead = false\n"
    )
    // notes of the scripted Claude Code
    this.write(".gitignore", "pids\nstarts.jsonl\ninputs.jsonl\n")
  }

  /** A program on its PATH, as a script of sh. */
  program(name: string, script: string): void {
    this.write(`bin/${name}`, `#!/bin/sh\n${script}\n`)
    chmodSync(join(this.folder, "bin", name), 0o755)
  }

  write(path: string, text: string | Uint8Array): void {
    mkdirSync(dirname(join(this.folder, path)), { recursive: true })
    writeFileSync(join(this.folder, path), text)
  }

  /** All that its programs know of the world. */
  get environment(): Record<string, string> {
    return {
      HOME: this.folder,
      PATH: `${join(this.folder, "bin")}:${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`,
      // compiled code is no part of a home that tells
      XDG_CACHE_HOME: join(import.meta.dirname, "../../../node_modules/.cache/docs"),
      LANG: "C.UTF-8",
      EDITOR: "true",
      USER: "ada"
    }
  }

  private start(text: string) {
    const noted = join(this.folder, ".cwd")
    return spawn("bash", ["-c", `${text}\ncode=$?; pwd > '${noted}'; exit $code`], {
      cwd: this.cwd,
      env: this.environment,
      stdio: ["ignore", "pipe", "pipe"]
    })
  }

  /** Runs a command to its end; where it changes the folder, the next one is run there. */
  run(text: string): Effect.Effect<Ended> {
    return Effect.callback((resume) => {
      const child = this.start(text)
      let [out, err] = ["", ""]
      child.stdout.setEncoding("utf8").on("data", (more: string) => (out += more))
      child.stderr.setEncoding("utf8").on("data", (more: string) => (err += more))
      child.on("exit", (code) => {
        const noted = join(this.folder, ".cwd")
        if (existsSync(noted)) this.cwd = readFileSync(noted, "utf8").trim()
        // what it has left in the background holds its pipes
        setImmediate(() => resume(Effect.succeed({ code, out, err })))
      })
      return Effect.sync(() => child.kill("SIGKILL"))
    })
  }

  /** Runs a command that goes on until it is interrupted: as soon as it has said something. */
  interrupted(text: string): Effect.Effect<Ended> {
    return Effect.callback((resume) => {
      const child = this.start(`exec ${text}`)
      let [out, err] = ["", ""]
      child.stdout.setEncoding("utf8").on("data", (more: string) => {
        out += more
        child.kill("SIGINT")
      })
      child.stderr.setEncoding("utf8").on("data", (more: string) => (err += more))
      child.on("close", (code) => resume(Effect.succeed({ code, out, err })))
      return Effect.sync(() => child.kill("SIGKILL"))
    })
  }

  private readonly ours = Effect.gen({ self: this }, function* () {
    const found: Array<number> = []
    for (const { pid } of yield* ProcessTable.snapshot) {
      if (pid === process.pid) continue
      if ((yield* ProcessTable.environment(pid)).includes(`HOME=${this.folder}`)) found.push(pid)
    }
    return found
  })

  readonly close = Effect.gen({ self: this }, function* () {
    yield* this.run("agentd stop --daemon --yes")
    for (const pid of yield* this.ours) {
      // one may have ended since it was seen
      yield* Effect.ignore(Effect.try(() => process.kill(pid, "SIGKILL")))
    }
    rmSync(this.folder, { recursive: true, force: true })
  })
}

/** A home for the length of the scope. */
export const make = Effect.acquireRelease(
  Effect.sync(() => new Home()),
  (home) => home.close
)
