/**
 * `agentd focus PLATE`: switches to the tmux pane in which a session runs.
 *
 * The pane is found in the process tree: tmux has started the session's process, or one of its parent processes, in
 * that pane. The tmux server is found in the environment of the session, so it need not be the default server.
 */
import { Effect } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import * as ProcessTable from "../../runs/process/ProcessTable.ts"
import { call } from "../../api/rpc/ControlClient.ts"
import type { PlateInfo } from "../../domain/Messages.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Entry, Invocation, print } from "../parse/Invocation.ts"

const failed = (message: string, remedy: string) => new VerbFailed({ message, remedy, exitCode: ExitCode.failed })

export interface Pane {
  readonly pid: number
  /** The pane's id in tmux, such as `%3`. */
  readonly id: string
  readonly session: string
}

const FORMAT = "#{pane_pid} #{pane_id} #{session_name}"

export const parsePanes = (text: string): ReadonlyArray<Pane> =>
  text.split("\n").flatMap((line) => {
    const parts = /^(\d+) (%\d+) (.+)$/.exec(line)
    return parts === null ? [] : [{ pid: Number(parts[1]), id: parts[2]!, session: parts[3]! }]
  })

/** The tmux pane in which the process, or its nearest parent process, was started; undefined if there is none. */
export const paneOf = (
  pid: number,
  table: ReadonlyArray<{ readonly pid: number; readonly parent: number }>,
  panes: ReadonlyArray<Pane>
): Pane | undefined => {
  const parents = new Map(table.map((each) => [each.pid, each.parent]))
  const seen = new Set<number>()
  for (let at: number | undefined = pid; at !== undefined && !seen.has(at); at = parents.get(at)) {
    seen.add(at)
    const found = panes.find((pane) => pane.pid === at)
    if (found !== undefined) return found
  }
  return undefined
}

/**
 * The socket of the tmux server, from the first part of the variable `TMUX`; undefined if the process does not run in
 * tmux.
 */
const socketOf = (environment: ReadonlyArray<string>): string | undefined =>
  environment
    .find((entry) => entry.startsWith("TMUX="))
    ?.slice("TMUX=".length)
    .split(",")[0]

const noTmux = Effect.mapError((error: { readonly message: string }) =>
  failed(`tmux cannot be run: ${error.message}`, "Install tmux, or go to the session's terminal yourself.")
)

const processOf = ({ pid, plateId }: PlateInfo) =>
  pid === null
    ? Effect.fail(
        failed(
          `The process of the session ${plateId} is unknown.`,
          "Start sessions with agentd run -- claude, or install the hooks: agentd hooks install"
        )
      )
    : Effect.succeed(pid)

export const run = Effect.fnUntraced(function* (input: { readonly plate: string }) {
  const { interactive, paths } = yield* Invocation
  const { env, foreground } = yield* Entry
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const plate = yield* call(paths.socket, (client) => client.Plate({ name: input.plate }))
  const pid = yield* processOf(plate)
  const socket = socketOf(yield* ProcessTable.environment(pid))
  if (socket === undefined || socket === "") {
    return yield* failed(
      `${plate.plateId} (pid ${pid}) does not run in tmux.`,
      "agentd focus works only for sessions that were started inside tmux."
    )
  }
  const tmux = (...args: ReadonlyArray<string>) =>
    noTmux(spawner.string(ChildProcess.make("tmux", ["-S", socket, ...args])))
  const pane = paneOf(pid, yield* ProcessTable.snapshot, parsePanes(yield* tmux("list-panes", "-a", "-F", FORMAT)))
  if (pane === undefined) {
    return yield* failed(
      `The session ${plate.plateId} (pid ${pid}) is no longer in a pane of tmux.`,
      "It may have moved to another terminal. See where it runs: agentd ps --plates"
    )
  }
  yield* tmux("select-window", "-t", pane.id)
  yield* tmux("select-pane", "-t", pane.id)
  const here = (env["TMUX"] ?? "").split(",")[0]
  if (here === socket) {
    yield* tmux("switch-client", "-t", pane.id)
    return yield* print({ plate: plate.plateId, ...pane }, () => [])
  }
  if (!interactive || here !== "") {
    return yield* failed(
      `${plate.plateId} runs in the session ${pane.session} of ${here === "" ? "tmux, but this terminal is not in tmux" : "another tmux server"}.`,
      `Attach to that session: tmux -S ${socket} attach -t '${pane.session}'`
    )
  }
  const attached = yield* foreground({ command: ["tmux", "-S", socket, "attach", "-t", pane.session], env })
  yield* Effect.uninterruptible(attached.ended)
})
