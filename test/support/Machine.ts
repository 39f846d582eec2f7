/**
 * Machine: a temporary machine with a real systemd, which a test controls from outside: it runs commands there, cuts
 * its power and boots it again. Every write to it is discarded at the end.
 *
 * Its files are those of this machine under another root (withSystemd.sh), so programs have the same paths. Needs root
 * and systemd-nspawn.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { resolve } from "node:path"
import { Effect, Schema } from "effect"
import { PROGRAM } from "./Program.ts"

export const missing: ReadonlyArray<string> = [
  ...(process.getuid?.() === 0 ? [] : ["root"]),
  ...["systemd-nspawn", "nsenter"].filter((name) => spawnSync(name, ["--version"]).status !== 0)
]

export class MachineFailed extends Schema.TaggedError<MachineFailed>()("MachineFailed", { message: Schema.String }) {}

export interface Said {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** Time between two polls, and their maximum number. */
const PAUSE = "200 millis"
const TRIES = 150

export const ADA = "ada"
const ADAS_ID = 4321

/** The shell command for agentd on the machine. */
export const AGENTD = `"${process.execPath}" "${PROGRAM}"`

export class Machine {
  private readonly script: ChildProcess
  private out = ""

  constructor() {
    this.script = spawn("bash", [resolve(import.meta.dirname, "withSystemd.sh"), "--hold"], {
      stdio: ["pipe", "pipe", "pipe"]
    })
    for (const pipe of [this.script.stdout!, this.script.stderr!])
      pipe.on("data", (chunk) => (this.out += String(chunk)))
  }

  /** Pid of the first process of the current boot; empty if there is none. */
  private leader(): string {
    const nspawn = [...this.out.matchAll(/^held (\d+)$/gm)].at(-1)?.[1]
    if (nspawn === undefined) return ""
    return spawnSync("pgrep", ["-o", "-P", nspawn], { encoding: "utf8" }).stdout.trim()
  }

  private run(argv: ReadonlyArray<string>): Effect.Effect<Said> {
    return Effect.callback((resume) => {
      const leader = this.leader()
      if (leader === "") return resume(Effect.succeed({ code: null, out: "", err: "it is not there" }))
      const spaces = ["--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup", "--root"]
      const child = spawn("nsenter", ["-t", leader, ...spaces, "--", ...argv], {
        cwd: "/",
        env: { PATH: "/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin", LANG: "C.UTF-8", NO_COLOR: "1" },
        stdio: ["ignore", "pipe", "pipe"]
      })
      let [out, err] = ["", ""]
      child.stdout.on("data", (chunk) => (out += String(chunk)))
      child.stderr.on("data", (chunk) => (err += String(chunk)))
      child.on("close", (code) => resume(Effect.succeed({ code, out, err })))
    })
  }

  /** Runs a shell script as root. */
  try(script: string) {
    return this.run(["sh", "-c", script])
  }

  /** Runs a shell script as root; fails if the script does. */
  root(script: string) {
    return Effect.flatMap(this.try(script), (said) => this.sound(script, said))
  }

  /** Runs a shell script as the user ada, who has her own systemd. */
  ada(script: string) {
    return this.run(this.asAda(script))
  }

  private asAda(script: string): ReadonlyArray<string> {
    const variables = [`HOME=/home/${ADA}`, `XDG_RUNTIME_DIR=/run/user/${ADAS_ID}`]
    return ["runuser", "-u", ADA, "--", "env", "-C", `/home/${ADA}`, ...variables, "sh", "-c", script]
  }

  /** Runs `agentd …` as ada; fails if the command does. */
  agentd(args: string) {
    return Effect.flatMap(this.ada(`${AGENTD} ${args}`), (said) => this.sound(`agentd ${args}`, said))
  }

  private sound(what: string, said: Said): Effect.Effect<string, MachineFailed> {
    return said.code === 0
      ? Effect.succeed(said.out)
      : Effect.fail(new MachineFailed({ message: `${what}: ${said.code}\n${said.out}\n${said.err}` }))
  }

  /** Polls until `holds` is true; fails with the journal's end after too many tries. */
  until(what: string, look: Effect.Effect<string, MachineFailed>, holds: (seen: string) => boolean) {
    return Effect.gen({ self: this }, function* () {
      let seen = ""
      for (let tries = 0; tries < TRIES; tries++) {
        seen = yield* Effect.catch(look, ({ message }) => Effect.succeed(message))
        if (holds(seen)) return seen
        yield* Effect.sleep(PAUSE)
      }
      const journal = yield* this.try("journalctl --no-pager -q -o short-monotonic | grep -v pam_unix | tail -n 60")
      return yield* new MachineFailed({ message: `never: ${what}; last seen: ${seen}\n${journal.out}` })
    })
  }

  private readonly running = this.until(
    "the machine is up",
    Effect.map(this.try("systemctl is-system-running"), ({ out }) => out.trim()),
    (state) => state === "running" || state === "degraded"
  )

  readonly boot = Effect.gen({ self: this }, function* () {
    yield* this.running
    yield* this.root(`useradd --create-home --uid ${ADAS_ID} --shell /bin/sh ${ADA} && loginctl enable-linger ${ADA}`)
    yield* this.adaIsThere
  })

  private readonly adaIsThere = this.until(
    "ada's systemd takes orders",
    Effect.map(this.ada("systemctl --user is-system-running"), ({ out }) => out.trim()),
    (state) => state === "running" || state === "degraded"
  )

  /** `cut`: a power cut, so that no program can end in order. Returns when the machine is up again. */
  reboot(how: "in order" | "cut") {
    return Effect.gen({ self: this }, function* () {
      const before = this.leader()
      yield* this.try(how === "cut" ? "systemctl reboot --force --force" : "systemctl reboot")
      yield* this.until(
        "another boot",
        Effect.sync(() => this.leader()),
        (leader) => leader !== "" && leader !== before
      )
      yield* this.running
      yield* this.adaIsThere
    })
  }

  readonly close = Effect.callback<void>((resume) => {
    if (this.script.exitCode !== null) return resume(Effect.void)
    this.script.once("close", () => resume(Effect.void))
    this.script.stdin!.end()
  })
}

export const make = Effect.acquireRelease(
  Effect.sync(() => new Machine()),
  (machine) => machine.close
).pipe(Effect.tap((machine) => machine.boot))
