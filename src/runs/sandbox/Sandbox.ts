/**
 * Sandbox: confines a command to its workspace, if this machine has a mechanism for it.
 *
 * Uses bubblewrap if it works, otherwise user namespaces with `unshare`, otherwise nothing. In the last case `note`
 * says why, and the caller decides whether to reject the command or to ask the user. A mechanism is used only after a
 * successful trial on this machine. Each daemon makes the trial once, when the sandbox is first needed.
 *
 * A confined command has its own namespaces (user, mount, pid, IPC, host name, cgroup, and network unless allowed). It
 * sees only the files that `Confinement` lists. It has a system call filter (`Seccomp`); the mechanism's note says if
 * there is none. It gains no privileges, creates no namespaces, and cannot type into a terminal. When its first process
 * ends, all processes that it started end, too.
 */
import { Context, Effect, Layer, type Scope } from "effect"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import type { Argv } from "../Host.ts"
import { type Mount, mountsOf, type MountRefused, refusalOf, type Rules } from "./Confinement.ts"
import { NAMESPACE_SCRIPT } from "./NamespaceScript.ts"
import * as Seccomp from "./Seccomp.ts"
import { type Environment, hand } from "../process/ChildProcess.ts"

export interface Confined {
  readonly argv: Argv
  /**
   * Contents of the file descriptors 3, 4 and so on, which the sandbox reads while it is set up. A file would not be
   * safe, because it could be replaced.
   */
  readonly handed: ReadonlyArray<Uint8Array>
}

export type Mechanism =
  | {
      readonly kind: "bubblewrap" | "namespaces"
      /** Describes the sandbox program and its limitations for the user. */
      readonly note: string
      /** Confines a command. `cwd`: a real path that the command sees. Reads the file system. */
      readonly wrap: (rules: Rules, cwd: string, argv: Argv) => Effect.Effect<Confined, MountRefused>
    }
  | { readonly kind: "none"; readonly note: string }

type Build = (rules: Rules, mounts: ReadonlyArray<Mount>, cwd: string, argv: Argv) => Confined

/** Checks the mounts before the command line is built. */
const wrapBy =
  (build: Build): Exclude<Mechanism, { kind: "none" }>["wrap"] =>
  (rules, cwd, argv) =>
    Effect.suspend(() => {
      const mounts = mountsOf(rules)
      const refused = refusalOf(rules, mounts)
      return refused === undefined ? Effect.succeed(build(rules, mounts, cwd, argv)) : Effect.fail(refused)
    })

export class Sandbox extends Context.Service<Sandbox, { readonly mechanism: Effect.Effect<Mechanism> }>()(
  "agentd/backends/Sandbox"
) {
  /** Provides the sandbox. `environment`: the daemon's environment. Programs are searched in its PATH. */
  static readonly layer = (environment: Environment) =>
    Layer.effect(
      Sandbox,
      Effect.map(Effect.cached(probe(environment, ["bubblewrap", "namespaces"])), (mechanism) => ({ mechanism }))
    )

  static readonly layerNone = Layer.succeed(Sandbox, {
    mechanism: Effect.succeed<Mechanism>({ kind: "none", note: "no sandbox was searched for" })
  })
}

/** Maximum size of each private folder, bytes. Its contents are in memory. */
const SIZE = String(1024 * 1024 * 1024)

const words = (text: string): ReadonlyArray<string> => text.split(" ")

/** Number of the first file descriptor after standard input, output and error. */
const FIRST_HANDED = 3

const ALONE = words("--unshare-user --unshare-ipc --unshare-pid --unshare-uts --unshare-cgroup-try --hostname agent")
const BOUND = words("--new-session --cap-drop ALL")
/**
 * Creates /dev and /proc. All of /proc is then made read-only: for a daemon that runs as root, bubblewrap would leave
 * the system's settings in it writable.
 */
const KERNEL = [...words("--dev /dev --perms 1777 --size"), SIZE, ...words("--tmpfs /dev/shm --proc /proc")]
const SEALED = words("--remount-ro /proc --remount-ro /")

const bubblewrap = (program: string, extra: ReadonlyArray<string>): Build => {
  const filter = Seccomp.program(process.arch)
  return (rules, mounts, cwd, argv) => {
    const handed: Array<Uint8Array> = []
    const hand = (bytes: Uint8Array) => String(FIRST_HANDED + handed.push(bytes) - 1)
    const argumentsOf = (mount: Mount): ReadonlyArray<string> => {
      switch (mount.kind) {
        case "empty":
          return ["--perms", "0755", "--size", SIZE, "--tmpfs", mount.target]
        case "blank":
          return ["--ro-bind", "/dev/null", mount.target]
        case "text":
          return ["--ro-bind-data", hand(Buffer.from(mount.source)), mount.target]
        case "link":
          return ["--symlink", mount.source, mount.target]
        case "readOnly":
          return ["--ro-bind", mount.source, mount.target]
        case "writable":
          return ["--bind", mount.source, mount.target]
      }
    }
    const wrapped: Argv = [
      program,
      ...ALONE,
      ...(rules.network ? [] : ["--unshare-net"]),
      ...(rules.outlives === true ? [] : ["--die-with-parent"]),
      ...BOUND,
      ...extra,
      ...(filter === undefined ? [] : ["--seccomp", hand(filter)]),
      ...KERNEL,
      ...mounts.flatMap(argumentsOf),
      ...SEALED,
      "--chdir",
      cwd,
      "--",
      ...argv
    ]
    return { argv: wrapped, handed }
  }
}

const NEW = words("--user --map-root-user --mount --pid --fork --kill-child=SIGKILL --ipc --uts --cgroup")

/**
 * The mechanism with user namespaces. `perl`: path of perl, which installs the system call filter; undefined if there
 * is no filter.
 */
const namespaces = (program: string, perl: string | undefined): Build => {
  const filter = perl === undefined ? undefined : Seccomp.program(process.arch)
  const filtered =
    perl === undefined || filter === undefined
      ? ["", "", ""]
      : [perl, String(Seccomp.PRCTL[process.arch]), Buffer.from(filter).toString("hex")]
  return (rules, mounts, cwd, argv) => ({
    argv: [
      program,
      ...NEW,
      ...(rules.network ? [] : ["--net"]),
      "/bin/sh",
      "-c",
      NAMESPACE_SCRIPT,
      "agentd-sandbox",
      SIZE,
      cwd,
      `${process.getuid?.() ?? 0}`,
      `${process.getgid?.() ?? 0}`,
      ...filtered,
      ...mounts.flatMap((mount) => [mount.kind, "source" in mount ? mount.source : "", mount.target]),
      "--",
      ...argv
    ],
    handed: []
  })
}

const PLACES = ["/usr/bin", "/bin", "/usr/local/bin", "/run/wrappers/bin", "/run/current-system/sw/bin"]

/** Searches for a program, first in the system's own folders. */
export const locate = (name: string, environment: Environment): string | undefined =>
  [...PLACES, ...(environment["PATH"] ?? "").split(":").filter((entry) => path.isAbsolute(entry))]
    .map((folder) => path.join(folder, name))
    .find((file) => {
      try {
        fs.accessSync(file, fs.constants.X_OK)
        return true
      } catch {
        return false
      }
    })

const TRIAL_LIMIT = 10_000

/**
 * Command of the trial. It succeeds if it can write to the workspace, cannot see the other folder, and has no network.
 */
const TRIAL = `echo held > held && ! test -e "$1" && ! grep -qvE 'lo:|[|]' /proc/net/dev && cat held`

const MAX_SAID = 10_000

/**
 * Runs the command of the trial. Returns undefined if the command was confined, otherwise the last line of its error
 * output.
 */
const attempt = ({ argv, handed }: Confined, cwd: string, environment: Environment) =>
  Effect.callback<string | undefined>((resume) => {
    const child = spawn(argv[0], argv.slice(1), {
      cwd,
      env: { PATH: environment["PATH"] },
      timeout: TRIAL_LIMIT,
      killSignal: "SIGKILL",
      stdio: ["ignore", "pipe", "pipe", ...handed.map(() => "pipe" as const)]
    })
    handed.forEach((bytes, index) => hand(child.stdio[FIRST_HANDED + index], bytes))
    const said = { stdout: "", stderr: "" }
    for (const name of ["stdout", "stderr"] as const)
      child[name]?.on("data", (data) => (said[name] = (said[name] + String(data)).slice(-MAX_SAID)))
    const tell = (why: string) => {
      const last = said.stderr.trim().split("\n").at(-1) || why
      resume(Effect.succeed(said.stdout === "held\n" ? undefined : last.slice(0, 300)))
    }
    child.on("error", ({ message }) => tell(message))
    child.on("close", () => tell("it does not confine the command"))
    return Effect.sync(() => void child.kill("SIGKILL"))
  })

/** Two folders for a trial: the workspace, and one that must not be visible. */
const grounds = Effect.acquireRelease(
  Effect.sync(() => {
    const base = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "agentd-sandbox-")))
    const [workspace, outside] = [path.join(base, "workspace"), path.join(base, "outside")]
    for (const folder of [workspace, outside]) fs.mkdirSync(folder)
    return { base, workspace, outside }
  }),
  ({ base }) => Effect.sync(() => fs.rmSync(base, { recursive: true, force: true }))
)

type Kind = "bubblewrap" | "namespaces"

const candidatesOf = (
  environment: Environment,
  kinds: ReadonlyArray<Kind>
): ReadonlyArray<Exclude<Mechanism, { kind: "none" }>> => {
  const bwrap = kinds.includes("bubblewrap") ? locate("bwrap", environment) : undefined
  const unshare = kinds.includes("namespaces") ? locate("unshare", environment) : undefined
  const perl = locate("perl", environment)
  const strict = ["--disable-userns"]
  const unfiltered =
    Seccomp.program(process.arch) === undefined ? `; no filter of system calls for ${process.arch}` : ""
  return [
    ...(bwrap === undefined
      ? []
      : [
          {
            kind: "bubblewrap" as const,
            note: `bubblewrap (${bwrap}${unfiltered})`,
            wrap: wrapBy(bubblewrap(bwrap, strict))
          },
          {
            kind: "bubblewrap" as const,
            note: `bubblewrap (${bwrap}, an older one${unfiltered})`,
            wrap: wrapBy(bubblewrap(bwrap, []))
          }
        ]),
    ...(unshare === undefined
      ? []
      : [
          {
            kind: "namespaces" as const,
            note: `user namespaces (${unshare}${perl === undefined ? "; without perl no filter of system calls" : unfiltered})`,
            wrap: wrapBy(namespaces(unshare, perl))
          }
        ])
  ]
}

/** Tries a mechanism. Returns undefined if it confines a command, otherwise why it does not. */
const trial = Effect.fnUntraced(function* (
  wrap: Exclude<Mechanism, { kind: "none" }>["wrap"],
  environment: Environment
): Effect.fn.Return<string | undefined, never, Scope.Scope> {
  const { base, workspace, outside } = yield* grounds
  // hide the base folder itself, wherever temporary files are
  const rules: Rules = { workspace, network: false, hidden: [base], environment }
  const confined = yield* Effect.result(wrap(rules, workspace, ["/bin/sh", "-c", TRIAL, "trial", outside]))
  return confined._tag === "Failure"
    ? confined.failure.message
    : yield* attempt(confined.success, workspace, environment)
})

/** Finds the first mechanism that works on this machine. */
export const probe = Effect.fnUntraced(function* (
  environment: Environment,
  kinds: ReadonlyArray<Kind>
): Effect.fn.Return<Mechanism> {
  const failures: Array<string> = []
  for (const candidate of process.platform === "linux" ? candidatesOf(environment, kinds) : []) {
    const failure = yield* Effect.scoped(trial(candidate.wrap, environment))
    if (failure === undefined) return candidate
    failures.push(`${candidate.note}: ${failure}`)
  }
  const note = failures.length > 0 ? failures.join("; ") : "neither bubblewrap (bwrap) nor unshare is installed"
  return { kind: "none", note }
})
