/**
 * Reaper: ends all runs if the daemon dies, even by SIGKILL and without a restart.
 *
 * The reaper is one POSIX shell per daemon, in its own session. It waits in a read of a pipe that the daemon holds
 * open, so while idle it needs only memory. It starts with the first run: a daemon whose runs are all held by the
 * keeper has no reaper, and starts without the fork. The daemon writes `+ run` before it starts a run's program, and `-
 * run` when all processes of the run have ended. If the pipe ends, the daemon has died. Then the reaper ends every
 * process of the runs it knows (SIGTERM, grace period, SIGKILL until all have ended) and exits. It exits at once if it
 * knows no runs.
 *
 * Guarantees: `add` returns when the line is in the pipe, so a later crash cannot lose the run. Only runs of this
 * daemon are ended, never one that the next daemon has started. A reaper that dies is replaced and gets all runs again.
 *
 * Finds processes as ProcessTree does: by mark, parent, group, session. Without /proc it finds none. The reaper ignores
 * SIGTERM: a service manager that stops the whole control group must not end the reaper before the daemon.
 */
import { Context, Duration, Effect, Latch, Layer, type Scope } from "effect"
import { spawn } from "node:child_process"
import type { Writable } from "node:stream"
import * as Backoff from "../../core/supervision/Backoff.ts"

/**
 * Arguments: the store's id, and the grace period in tenths of a second. After `shift 2`, the positional parameters are
 * the known runs, as entries `AGENTD_RUN=…` of the environment. The pattern for `grep` must not be empty, because an
 * empty pattern would match everything. `found` prints the pids of all processes of the runs, by the rules of
 * `membersOf`. The shell itself and its ancestors are never printed.
 */
const SCRIPT = String.raw`
trap '' HUP INT TERM
store=$1 grace=$2
shift 2
while IFS= read -r line; do
  entry=AGENTD_RUN=${"$"}{line#? }
  for known do
    shift
    [ "$known" = "$entry" ] || set -- "$@" "$known"
  done
  case $line in "+ "?*) set -- "$@" "$entry" ;; esac
done
[ $# -gt 0 ] || exit 0
runs=$(printf '%s\n' "$@")

found() {
  marked=$(printf '%s\n' /proc/[0-9]*/environ |
    xargs grep -lzsxF -e "$runs" /dev/null |
    xargs grep -lzsxF -e "AGENTD_STORE=$store" /dev/null | tr -dc '0-9\n' | tr '\n' ' ')
  cat /proc/[0-9]*/stat 2>/dev/null | awk -v marked="$marked" -v self=$$ '
    {
      pid = $1; line = $0
      sub(/^.*\) /, "", line); split(line, field, " ")
      if (pid !~ /^[0-9]+$/ || field[1] ~ /[ZXx]/ || field[2] !~ /^[0-9]+$/) next
      parent[pid] = field[2]; group[pid] = field[3]; session[pid] = field[4]
    }
    function ours(leader) { return leader > 1 && !(leader in kin) && ((leader in member) || !(leader in parent)) }
    END {
      for (pid = self; pid > 1 && (pid in parent); pid = parent[pid]) {
        spared[pid]; kin[group[pid]]; kin[session[pid]]
      }
      spared[1]
      split(marked, seeds, " ")
      for (i in seeds) if ((seeds[i] in parent) && !(seeds[i] in spared)) member[seeds[i]]
      do {
        grown = 0
        for (pid in parent) {
          if ((pid in member) || (pid in spared)) continue
          if ((parent[pid] in member) || (group[pid] in groups) || (session[pid] in sessions)) { member[pid]; grown = 1 }
        }
        for (pid in member) {
          if (!(group[pid] in groups) && ours(group[pid])) { groups[group[pid]]; grown = 1 }
          if (!(session[pid] in sessions) && ours(session[pid])) { sessions[session[pid]]; grown = 1 }
        }
      } while (grown)
      for (pid in member) print pid
    }'
}

for pid in $(found); do kill -TERM "$pid" 2>/dev/null; kill -CONT "$pid" 2>/dev/null; done
while [ "$grace" -gt 0 ] && [ -n "$(found)" ]; do sleep 0.2; grace=$((grace - 2)); done
rounds=300
while [ $rounds -gt 0 ]; do
  pids=$(found)
  [ -n "$pids" ] || exit 0
  for pid in $pids; do kill -KILL "$pid" 2>/dev/null; done
  sleep 0.2
  rounds=$((rounds - 1))
done
`

export interface ReaperConfig {
  /** Id of the store whose runs are ended: `AGENTD_STORE` in their environment. */
  readonly store: string
  /** Grace period from SIGTERM to SIGKILL. */
  readonly grace: Duration.Input
}

export class Reaper extends Context.Service<
  Reaper,
  {
    /** Registers a run. Call this before the run's program is started. */
    readonly add: (runId: string) => Effect.Effect<void>
    /** Removes a run. Call this when all processes of the run have ended. */
    readonly remove: (runId: string) => Effect.Effect<void>
    /** Pid of the shell; undefined before the first run. */
    readonly pid: Effect.Effect<number | undefined>
  }
>()("agentd/backends/Reaper") {
  static readonly layer = (config: ReaperConfig) => Layer.effect(Reaper, make(config))

  /** A reaper that does nothing: for systems without /proc, and for tests in which the daemon does not die. */
  static readonly layerNone = Layer.succeed(Reaper, {
    add: () => Effect.void,
    remove: () => Effect.void,
    pid: Effect.as(Effect.void, undefined)
  })
}

/** Delay before a dead reaper is replaced, in ms. */
const TAKES_OVER: Backoff.Policy = { base: 100, factor: 2, cap: 60_000, jitter: 0 }

/** Starts one shell. The shell is not awaited when the daemon stops: it must outlive the daemon. */
const startShell = ({ store, grace }: ReaperConfig) => {
  const tenths = Math.ceil(Duration.toMillis(grace) / 100)
  const shell = spawn("/bin/sh", ["-c", SCRIPT, "agentd-reaper", store, String(tenths)], {
    detached: true,
    cwd: "/",
    // the environment contains no mark of an outer agentd: the reaper must not belong to one of that agentd's runs
    env: { PATH: "/usr/local/bin:/usr/bin:/bin" },
    stdio: ["pipe", "ignore", "ignore"]
  })
  const ended = new Promise<void>((resolve) => shell.once("exit", () => resolve()).once("error", () => resolve()))
  // ignored: a write to a dead reaper fails, and the reaper's end is handled separately
  shell.stdin.on("error", () => {})
  return { pid: shell.pid, stdin: shell.stdin, ended, unref: () => shell.unref() }
}

/** Writes lines to the reaper. Returns when they are in the pipe, or when the reaper has ended. */
const write = (pipe: Writable, lines: string) =>
  Effect.callback<void>((resume) => {
    if (pipe.destroyed || lines === "") return resume(Effect.void)
    pipe.write(lines, () => resume(Effect.void))
  })

const make = Effect.fnUntraced(function* (
  config: ReaperConfig
): Effect.fn.Return<Reaper["Service"], never, Scope.Scope> {
  const runs = new Set<string>()
  let current: ReturnType<typeof startShell> | undefined
  const wanted = Latch.makeUnsafe(false)
  /** Open when the first reaper knows all runs. */
  const told = Latch.makeUnsafe(false)

  /** Starts one reaper, sends it all runs, and waits until it ends. */
  const one = Effect.acquireUseRelease(
    Effect.sync(() => (current = startShell(config))),
    (shell) =>
      write(shell.stdin, [...runs].map((runId) => `+ ${runId}\n`).join("")).pipe(
        Effect.andThen(told.open),
        Effect.andThen(Effect.promise(() => shell.ended))
      ),
    (shell) =>
      Effect.sync(() => {
        current = undefined
        shell.stdin.end()
        shell.unref()
      })
  )
  const always = one.pipe(
    Effect.andThen(Effect.logWarning("the reaper has ended; the next one takes over")),
    Effect.repeat(Backoff.waits(TAKES_OVER))
  )
  yield* Effect.forkScoped(Effect.andThen(wanted.await, always), { startImmediately: true })

  const tell = (line: string) =>
    Effect.suspend(() => (current === undefined ? Effect.void : write(current.stdin, line)))
  return {
    add: (runId) =>
      Effect.sync(() => {
        runs.add(runId)
        wanted.openUnsafe()
      }).pipe(Effect.andThen(told.await), Effect.andThen(tell(`+ ${runId}\n`))),
    remove: (runId) =>
      Effect.andThen(
        Effect.sync(() => runs.delete(runId)),
        tell(`- ${runId}\n`)
      ),
    pid: Effect.sync(() => current?.pid)
  }
})
