/**
 * Sandbox: what holds a command in its workspace, where this machine has something that does.
 *
 * bubblewrap where it works, else user namespaces by `unshare`, else nothing, and then it
 * says so and why: what runs without one is for the caller to refuse or to ask about. What
 * is believed is a trial on this machine, made once a daemon on the first question.
 *
 * A confined command has namespaces of its own (user, mount, pid, IPC, host name, network
 * unless allowed), sees what `Confinement` lists, gains no privileges, cannot type into a
 * terminal, and ends, with every process it started, when its first process does.
 */
import { Context, Effect, Layer, type Scope } from "effect"
import { execFile } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import type { Argv } from "../command/CommandBackend.ts"
import { type Mount, mountsOf, type Rules } from "./Confinement.ts"
import { NAMESPACE_SCRIPT } from "./NamespaceScript.ts"
import type { Environment } from "../process/ChildProcess.ts"

/** The mechanism on which it rests. */
export type Mechanism =
  | {
      readonly kind: "bubblewrap" | "namespaces"
      /** For a person: the program, and what it lacks. */
      readonly note: string
      /** The command as it is started; `cwd` is a real path that it sees. Reads the file system. */
      readonly wrap: (rules: Rules, cwd: string, argv: Argv) => Argv
    }
  | { readonly kind: "none"; readonly note: string }

export class Sandbox extends Context.Service<Sandbox, { readonly mechanism: Effect.Effect<Mechanism> }>()(
  "agentd/backends/Sandbox"
) {
  /** `environment`: the daemon's, whose PATH is searched. */
  static readonly layer = (environment: Environment) =>
    Layer.effect(
      Sandbox,
      Effect.map(Effect.cached(probe(environment, ["bubblewrap", "namespaces"])), (mechanism) => ({ mechanism }))
    )

  /** As on a machine that has nothing. */
  static readonly layerNone = Layer.succeed(Sandbox, {
    mechanism: Effect.succeed<Mechanism>({ kind: "none", note: "no sandbox was looked for" })
  })
}

/** Of each private folder: what it holds is memory. */
const SIZE = String(1024 * 1024 * 1024)

const bubblewrapMount = (mount: Mount): ReadonlyArray<string> => {
  switch (mount.kind) {
    case "empty":
      return ["--perms", "0755", "--size", SIZE, "--tmpfs", mount.target]
    case "blank":
      return ["--ro-bind", "/dev/null", mount.target]
    case "readOnly":
      return ["--ro-bind", mount.source, mount.target]
    case "writable":
      return ["--bind", mount.source, mount.target]
  }
}

const words = (text: string): ReadonlyArray<string> => text.split(" ")

const ALONE = words("--unshare-user --unshare-ipc --unshare-pid --unshare-uts --unshare-cgroup-try")
const BOUND = words("--die-with-parent --new-session --cap-drop ALL")
/** All of /proc read-only: bubblewrap leaves the system's settings in it to a daemon that is root. */
const TREE = words("--ro-bind / / --dev /dev --proc /proc --remount-ro /proc")

const bubblewrap =
  (program: string, extra: ReadonlyArray<string>) =>
  (rules: Rules, cwd: string, argv: Argv): Argv => [
    program,
    ...ALONE,
    ...(rules.network ? [] : ["--unshare-net"]),
    ...BOUND,
    ...extra,
    ...TREE,
    ...mountsOf(rules).flatMap(bubblewrapMount),
    "--chdir",
    cwd,
    "--",
    ...argv
  ]

const NEW = words("--user --map-root-user --mount --pid --fork --kill-child=SIGKILL --ipc --uts")

const namespaces =
  (program: string) =>
  (rules: Rules, cwd: string, argv: Argv): Argv => [
    program,
    ...NEW,
    ...(rules.network ? [] : ["--net"]),
    "/bin/sh",
    "-c",
    NAMESPACE_SCRIPT,
    "agentd-sandbox",
    SIZE,
    cwd,
    ...mountsOf(rules).flatMap((mount) => [mount.kind, "source" in mount ? mount.source : "", mount.target]),
    "--",
    ...argv
  ]

const PLACES = ["/usr/bin", "/bin", "/usr/local/bin", "/run/wrappers/bin", "/run/current-system/sw/bin"]

const locate = (name: string, environment: Environment): string | undefined =>
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

/** The trial's command: it writes here, sees nothing there, and has no network. */
const TRIAL = `echo held > held && ! test -e "$1" && ! grep -qvE 'lo:|[|]' /proc/net/dev && cat held`

/** Undefined when it held; else what it said. */
const attempt = (argv: Argv, cwd: string, environment: Environment) =>
  Effect.callback<string | undefined>((resume) => {
    const child = execFile(
      argv[0],
      argv.slice(1),
      { cwd, env: { PATH: environment["PATH"] }, timeout: TRIAL_LIMIT, killSignal: "SIGKILL" },
      (error, stdout, stderr) =>
        resume(
          Effect.succeed(
            error === null && stdout === "held\n"
              ? undefined
              : (stderr.trim().split("\n").at(-1) || error?.message || "it does not confine").slice(0, 300)
          )
        )
    )
    return Effect.sync(() => void child.kill("SIGKILL"))
  })

/** Two folders for a trial: one is the workspace, the other must not be seen. */
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
  const strict = ["--disable-userns"]
  return [
    ...(bwrap === undefined
      ? []
      : [
          { kind: "bubblewrap" as const, note: `bubblewrap (${bwrap})`, wrap: bubblewrap(bwrap, strict) },
          { kind: "bubblewrap" as const, note: `bubblewrap (${bwrap}, an older one)`, wrap: bubblewrap(bwrap, []) }
        ]),
    ...(unshare === undefined
      ? []
      : [{ kind: "namespaces" as const, note: `user namespaces (${unshare})`, wrap: namespaces(unshare) }])
  ]
}

/** Undefined when a command under it is held; else what went wrong. */
const trial = Effect.fnUntraced(function* (
  wrap: Exclude<Mechanism, { kind: "none" }>["wrap"],
  environment: Environment
): Effect.fn.Return<string | undefined, never, Scope.Scope> {
  const { base, workspace, outside } = yield* grounds
  // the folder itself is hidden, wherever folders for temporary files are
  const rules: Rules = { workspace, network: false, hidden: [base], environment }
  return yield* attempt(wrap(rules, workspace, ["/bin/sh", "-c", TRIAL, "trial", outside]), workspace, environment)
})

/** The first that holds on this machine. */
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
