/**
 * HostConnection: a connection to the daemon of another machine, through the user's own `ssh` and `agentd dial-stdio`
 * there. It can be used like the connection of a unix socket.
 *
 * Guarantees: nothing asks for a password or for consent to a host key: a new or changed key is refused. Text that a
 * shell's profile prints there is skipped. Each way in which the connection fails has a message and a remedy that name
 * the host. A connection that is cut without a word is noticed within 15 s.
 */
import type { ChildProcess } from "node:child_process"
import { existsSync } from "node:fs"
import type { Socket } from "node:net"
import { userInfo } from "node:os"
import { join } from "node:path"
import { Duplex } from "node:stream"
import { attempt } from "../config/Attempt.ts"
import { type Host, parse } from "../config/Host.ts"
import { shellWord } from "../config/ShellWord.ts"

/** First word of the line with which `dial-stdio` begins. Everything before it comes from a shell's profile. */
export const MARK = "agentd-dial-stdio "

/** Maximum size in bytes of the text before that line. */
const MAX_NOISE = 64 * 1024
const MAX_STDERR = 16 * 1024

/** Exit codes of a shell that finds no program, and of `ssh` itself. */
const NOT_FOUND = 127
const SSH_FAILED = 255

/** The error code of a connection that `ssh` could not make. The error has the reason, the message and the remedy. */
export const HOST_FAILED = "EHOST"

export interface HostTrouble {
  /** "host": the machine was not reached; "login": it refused the login; "not-running", "forbidden", "older", "protocol": as for a local daemon. */
  readonly reason: string
  readonly message: string
  readonly remedy: string
}

export class HostError extends Error {
  readonly code = HOST_FAILED
  readonly trouble: HostTrouble
  constructor(trouble: HostTrouble) {
    super(trouble.message)
    this.trouble = trouble
  }
}

/** Options of each `ssh`. Forwards of the user's own configuration are not wanted here, and could be in use. */
const OPTIONS = [
  "BatchMode=yes",
  "StrictHostKeyChecking=yes",
  "ConnectTimeout=10",
  "ServerAliveInterval=5",
  "ServerAliveCountMax=3",
  "ClearAllForwardings=yes",
  "ForwardAgent=no",
  "ForwardX11=no",
  "RemoteCommand=none"
]
/** Options that keep one connection per host open for a minute, so that the next command need not log in again. */
const KEPT = ["ControlMaster=auto", "ControlPath=~/.ssh/agentd-%C", "ControlPersist=60"]

/** The options of this user. Without the folder of the kept connections, `ssh` would end instead of keeping none. */
const optionsOf = (): ReadonlyArray<string> => {
  const home = attempt(() => userInfo().homedir)
  const keeps = home !== undefined && existsSync(join(home, ".ssh"))
  return [...OPTIONS, ...(keeps ? KEPT : [])].flatMap((option) => ["-o", option])
}

/**
 * Command that runs `agentd` there. A login shell is only started if the program is not on the PATH of commands without
 * one. The user's shell can be any that knows single quotes.
 */
const there = (words: ReadonlyArray<string>, called: string | undefined): string => {
  const env = called === undefined ? [] : ["env", `${CALLED}=${called}`]
  const command = [...env, ...words].map(shellWord).join(" ")
  const inLogin = shellWord(`exec ${command}`)
  return `exec sh -c ${shellWord(`command -v agentd >/dev/null 2>&1 && exec ${command}; exec "\${SHELL:-sh}" -lc ${inLogin}`)}`
}

/** Variable with the name under which the caller knows this machine. Only hints name it. */
export const CALLED = "AGENTD_HOST"

/**
 * The command line with which `agentd` runs on a host. `terminal`: with a terminal there, too. `called`: the host's name
 * here, for the hints that the program there prints.
 */
export const commandOf = (
  { port, state, target }: Host,
  args: ReadonlyArray<string>,
  terminal: boolean,
  called?: string
): ReadonlyArray<string> => [
  "ssh",
  terminal ? "-t" : "-T",
  ...optionsOf(),
  ...(port === undefined ? [] : ["-p", String(port)]),
  "--",
  target,
  there(["agentd", ...(state === undefined ? [] : ["--state", state]), ...args], called)
]

/** The last lines that `ssh` or the shell there has printed, without control characters. */
const said = (stderr: string): string =>
  stderr
    .split("\n")
    .map((line) => line.replaceAll(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, "").trim())
    .filter((line) => line !== "" && !/^(@+|@ {3}.*@)$/.test(line))
    .slice(-3)
    .join(" ")

/** The reason why `ssh` ended before `dial-stdio` there had begun. Pure. */
export const troubleOf = (url: string, code: number | null, stderr: string): HostTrouble => {
  const host = parse(url) as Host
  const line = `ssh ${host.port === undefined ? "" : `-p ${host.port} `}${host.target}`
  const failed = (message: string, remedy: string, reason = "host"): HostTrouble => ({ reason, message, remedy })
  if (/REMOTE HOST IDENTIFICATION HAS CHANGED/.test(stderr)) {
    const [, print = "unknown"] = /(SHA256:[A-Za-z0-9+/=]+)/.exec(stderr) ?? []
    return failed(
      `${url} was refused: its host key has changed. The new key has the fingerprint ${print}.`,
      `If the machine was set up again, remove the old key as ssh says: ${line}. If not, somebody may stand between.`
    )
  }
  if (/Host key verification failed|host key is known for/.test(stderr))
    return failed(
      `${url} was refused: its host key is not known on this machine.`,
      `Compare the fingerprint that ssh shows, and accept it once: ${line}`
    )
  if (/Permission denied|Too many authentication failures|sign_and_send_pubkey/.test(stderr))
    return failed(
      `${url} refused the login: ${said(stderr)}`,
      `Load the key (ssh-add), and try this, which must not ask for a password: ${line} true`,
      "login"
    )
  if (code === NOT_FOUND)
    return failed(
      `${url}: agentd is not installed there, or not on the PATH of commands over ssh.`,
      `Install it there, or link it into a folder such as /usr/local/bin. Check: ${line} command -v agentd`
    )
  if (code === 2 && /dial-stdio/.test(stderr))
    return failed(
      `${url}: the agentd there is too old to be reached from another machine.`,
      `Install this version there: ${line} npm install --global agentd`,
      "older"
    )
  if (code === SSH_FAILED || code === null)
    return failed(`${url} cannot be reached: ${said(stderr) || "ssh ended without a word"}`, `Try: ${line} true`)
  return failed(
    `${url}: agentd there ended with ${code}${said(stderr) === "" ? "" : `: ${said(stderr)}`}`,
    `Try: ${line} agentd status`
  )
}

/** The first line of `dial-stdio`. `error`: the reason why it cannot reach its daemon. */
interface Greeting {
  readonly error?: HostTrouble
}

const isTrouble = (error: unknown): error is HostTrouble =>
  typeof error === "object" &&
  error !== null &&
  (["reason", "message", "remedy"] as const).every((field) => typeof Reflect.get(error, field) === "string")

/** A duplex stream to the daemon's socket. `connect` is emitted when the daemon there is connected. */
export class HostConnection extends Duplex {
  private readonly url: string
  private readonly child: ChildProcess & { readonly stdin: Socket; readonly stdout: Socket; readonly stderr: Socket }
  private noise: Buffer | undefined = Buffer.alloc(0)
  private stderr = ""

  constructor(url: string, env?: { readonly [name: string]: string }) {
    super()
    this.url = url
    const [program = "", ...args] = commandOf(parse(url) as Host, ["dial-stdio"], false)
    // a session of its own: Ctrl-C in the terminal ends this program, which then ends ssh
    // loaded when needed, so that a command of this machine does not wait for it
    this.child = process.getBuiltinModule("node:child_process").spawn(program, args, {
      stdio: ["pipe", "pipe", "pipe"],
      detached: true,
      ...(env === undefined ? {} : { env })
    }) as unknown as HostConnection["child"]
    const { stderr, stdin, stdout } = this.child
    this.child.on("error", (error: NodeJS.ErrnoException) =>
      this.fail({
        reason: "host",
        message: `ssh cannot be started: ${error.code === "ENOENT" ? "it is not installed" : error.message}`,
        remedy: "Install OpenSSH's client, and see that ssh is on the PATH."
      })
    )
    // the connection that is kept open holds the streams, so `close` can come a minute after the exit
    this.child.on("exit", (code) => {
      if (this.noise === undefined) this.push(null)
      else this.fail(troubleOf(url, code, this.stderr))
    })
    stderr.on("data", (chunk: Buffer) => {
      this.stderr = (this.stderr + chunk.toString()).slice(-MAX_STDERR)
    })
    for (const stream of [stdin, stdout, stderr]) stream.on("error", () => {})
    stdout.on("data", (chunk: Buffer) => this.hear(chunk))
    stdout.on("end", () => {
      if (this.noise === undefined) this.push(null)
    })
  }

  private fail(trouble: HostTrouble): void {
    this.destroy(new HostError(trouble))
  }

  private hear(chunk: Buffer): void {
    if (this.noise === undefined) {
      if (!this.push(chunk)) this.child.stdout.pause()
      return
    }
    const all = Buffer.concat([this.noise, chunk])
    this.noise = all
    const at = all.lastIndexOf(MARK)
    const end = at < 0 ? -1 : all.indexOf("\n", at)
    if (end < 0) {
      if (all.length > MAX_NOISE)
        this.fail({
          reason: "host",
          message: `${this.url}: the shell there prints more than ${MAX_NOISE / 1024} kB before agentd begins.`,
          remedy: "Let its profile print only for a terminal."
        })
      return
    }
    const greeting = attempt(() => JSON.parse(all.subarray(at + MARK.length, end).toString()) as Greeting)
    const error = greeting?.error
    if (isTrouble(error)) return this.fail({ ...error, message: `${this.url}: ${error.message}` })
    this.noise = undefined
    this.emit("connect")
    if (end + 1 < all.length) this.hear(all.subarray(end + 1))
  }

  /** Emits `timeout` each time that nothing has arrived for `millis`. */
  setTimeout(millis: number): void {
    const { stdout } = this.child
    stdout.setTimeout(millis)
    stdout.removeAllListeners("timeout").on("timeout", () => {
      stdout.setTimeout(millis)
      this.emit("timeout")
    })
  }

  override _read(): void {
    this.child.stdout.resume()
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    this.child.stdin.write(chunk, () => done())
  }

  override _final(done: (error?: Error | null) => void): void {
    this.child.stdin.end(() => done())
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const { child } = this
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
    child.kill()
    child.unref()
    done(error)
  }
}
