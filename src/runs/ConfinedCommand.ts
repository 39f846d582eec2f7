/**
 * ConfinedCommand: runs one command to its end, in a folder that an agent has written. Checks of goals and the set-up
 * of work trees use it.
 *
 * Guarantees: If the machine has a sandbox and it is wanted, the command is confined to its folder. Without a sandbox,
 * it runs only if none is required, and the outcome says so. Its time, memory, processes and disk writes are limited.
 * None of its processes survives, even if the daemon ends. Only the end of its output is kept, up to a limit.
 */
import { Duration, Effect, type FileSystem } from "effect"
import type { LimitsConfig } from "../config/LimitsConfig.ts"
import { BackendError, type TreeMount } from "./Backend.ts"
import { type Argv, Confine } from "./git/GitStore.ts"
import * as Repository from "./git/Repository.ts"
import type { Environment, ExitStatus } from "./process/ChildProcess.ts"
import type { ProcessTree } from "./process/ProcessTree.ts"
import type { Reaper } from "./process/Reaper.ts"
import * as RunLimits from "./process/RunLimits.ts"
import * as RunProcess from "./process/RunProcess.ts"

export interface ConfinedCommand {
  /** A command line for `sh`. */
  readonly line: string
  readonly cwd: string
  /** Id of the command, never reused. */
  readonly runId: string
  readonly store: string
  /** All environment variables of the command. */
  readonly env: Environment
  /** Timeout of the command, ms. */
  readonly timeout: number
  readonly sandbox: "off" | "preferred" | "required"
  readonly network: boolean
  readonly limits: LimitsConfig
  /** The owner of the limits, for messages: "of the agent". */
  readonly whose: string
  /** The owner of a required sandbox, and the change of agentd.jsonc that helps if none works. */
  readonly requires: { readonly who: string; readonly remedy: string }
  /** Additional files and folders that a confined command can read. */
  readonly shared: ReadonlyArray<string>
  readonly mounts?: ReadonlyArray<TreeMount>
  /** A home folder that a confined command keeps; by default its home is empty and deleted afterwards. */
  readonly home?: string
  /** Whether to list the processes that the command leaves behind. */
  readonly listsLeft: boolean
}

/** Runs commands for the daemon's agents. `environment`: the daemon's variables. */
export interface Runner {
  readonly environment: Environment
  readonly run: (of: Omit<ConfinedCommand, "store">) => Effect.Effect<Ended | undefined, BackendError>
}

export interface Ended {
  readonly status: ExitStatus
  /** The end of stdout and stderr together. */
  readonly printed: string
  /** Whether the command ran in a sandbox. */
  readonly held: boolean
  /** Command lines of the processes that the command left behind, which are ended; empty if they are not listed. */
  readonly left: ReadonlyArray<string>
}

/** Maximum length of a command's output, in characters. If the output is longer, its end is kept. */
const KEPT = 4_000
const GRACE = Duration.seconds(5)
/** Maximum length of the command line of a process that was left behind, in characters. */
const MAX_COMMAND = 200

/**
 * Processes that a command leaves running are ended with it, before anybody else can look. So the shell itself lists
 * them: those with the run's mark, but for itself and its ancestors. Ids say nothing about age: they begin anew at
 * the kernel's maximum.
 */
const LEFT = "agentd: left running: "
const LISTING = `sh -c "$1"; code=$?
above=" " pid=$$
while [ "\${pid:-0}" -gt 0 ]; do
  above="$above$pid " pid=$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$pid/status" 2>/dev/null)
done
for file in $(grep -las "AGENTD_RUN=$AGENTD_RUN" /proc/[0-9]*/environ); do
  folder=\${file%/environ} pid=\${folder#/proc/}
  case $above in *" \${pid%/*} "*) continue ;; esac
  line=$(tr '\\0' ' ' 2>/dev/null < "$folder/cmdline") && [ -n "$line" ] &&
    printf '\\n%s%s\\n' '${LEFT}' "$line" >&2
done
exit $code`

/** Reads to the end. Returns the last `KEPT` characters. */
const tail = Effect.fnUntraced(function* (
  pipe: RunProcess.RunProcess["stdout"],
  ended: Effect.Effect<unknown, unknown>
) {
  const decoder = new TextDecoder()
  let kept = ""
  yield* RunProcess.drain(pipe, ended, (chunk) =>
    Effect.sync(() => void (kept = (kept + decoder.decode(chunk, { stream: true })).slice(-KEPT)))
  )
  return kept
})

/** Separates the list of processes that were left from the output. */
const parted = (printed: string) => {
  const lines = printed.split("\n")
  return {
    printed: lines
      .filter((line) => !line.startsWith(LEFT))
      .join("\n")
      .trim(),
    left: lines
      .filter((line) => line.startsWith(LEFT))
      .map((line) => line.slice(LEFT.length).trim().slice(0, MAX_COMMAND))
  }
}

const unheld = ({ requires: { remedy, who } }: ConfinedCommand) =>
  new BackendError({
    message: `${who}, and none works on this machine`,
    remedy: `install bubblewrap (see: agentd doctor), or ${remedy}`,
    fatal: false
  })

/** Runs a command. Returns undefined if the command exceeded its timeout and was killed. */
export const run = Effect.fnUntraced(function* (
  of: ConfinedCommand
): Effect.fn.Return<Ended | undefined, BackendError, FileSystem.FileSystem | ProcessTree | Reaper> {
  const { cwd, home, mounts = [], network, runId, shared, store } = of
  // the sandbox covers the whole checkout, as a command may use files outside its folder
  const top = (yield* Repository.find(cwd))?.top ?? cwd
  const confine = of.sandbox === "off" ? undefined : yield* (yield* Confine)(top, { network, shared, mounts, home })
  if (confine === undefined && of.sandbox === "required") return yield* unheld(of)
  const line: Argv = of.listsLeft ? ["sh", "-c", LISTING, "sh", of.line] : ["sh", "-c", of.line]
  const held: Pick<RunProcess.RunProcessSpec, "argv" | "handed"> =
    confine === undefined
      ? { argv: line }
      : yield* Effect.mapError(
          confine(line, cwd),
          ({ message, remedy }) => new BackendError({ message, remedy, fatal: false })
        )
  const ended = yield* Effect.timeoutOption(
    Effect.scoped(
      Effect.gen(function* () {
        const child = yield* RunProcess.make({ store, runId, ...held, cwd, env: of.env, grace: GRACE })
        const reading = Effect.all([tail(child.stdout, child.ended), tail(child.stderr, child.ended)], {
          concurrency: 2
        })
        const done = Effect.zipWith(
          reading,
          child.exited,
          (texts, status): Ended => {
            const { left, printed } = parted(texts.join("\n"))
            return { status, printed: printed.slice(-KEPT), held: confine !== undefined, left }
          },
          { concurrent: true }
        )
        const { passed } = yield* RunLimits.RunLimits
        const over = Effect.map(passed({ runId, cwd: top, limits: of.limits }), (passed): Ended => ({
          status: { code: null, signal: "SIGKILL" },
          printed: RunLimits.sentence(passed, of.whose),
          held: confine !== undefined,
          left: []
        }))
        return yield* Effect.raceFirst(done, over)
      })
    ),
    of.timeout
  )
  return ended._tag === "Some" ? ended.value : undefined
})
