/**
 * ShellWatch: detects that a command which waited for permission is running.
 *
 * No hook reports that the user allowed a command in the terminal: the next hook comes when the command ends. But the
 * command's shell is a child of the session's process.
 *
 * Guarantees: a shell counts only if there is no doubt. The tool for commands must have started it, it was forked
 * after the dialog opened, and no other call of that tool is open. If this cannot be determined, nothing is reported.
 */
import { Effect, type FileSystem } from "effect"
import { Lookup, type Process } from "../runs/process/ProcessTable.ts"
import type * as PlateMachine from "./PlateMachine.ts"
import type { Prompt } from "./PlateState.ts"
import type { PlateActor } from "./PlateActor.ts"
import { sourceOf } from "./SessionSources.ts"

/** Of Claude Code. `mark`: part of the command line of every shell that the tool starts, and of no hook's shell. */
const CLAUDE = { tool: "Bash", mark: "/shell-snapshots/" }
/** Clock ticks per second, as Linux reports them to programs. */
const TICKS = 100
const LIMIT = "1 second"

interface Waiting {
  readonly plate: PlateActor
  /** The open prompt that a new shell would show to be answered. */
  readonly prompt: Prompt
  readonly mark: string
}

/** Empty if no prompt is open, or if a new shell could belong to another call. */
const waitingOf = (plate: PlateActor): ReadonlyArray<Waiting> => {
  const { process, stand } = plate
  const { calls, cli, prompts } = stand.data
  const shell = cli === undefined ? CLAUDE : sourceOf(cli)?.shell
  if (stand.state !== "AwaitingApproval" || process === undefined || shell === undefined) return []
  const commands = calls.filter(({ tool }) => tool === shell.tool)
  // a dialog whose tool was not reported can only be that of the only open call
  const prompt = prompts.find(
    ({ callId, tool }) => callId === commands[0]?.callId || (callId === null && tool === "*" && calls.length === 1)
  )
  return commands.length === 1 && prompt !== undefined ? [{ plate, prompt, mark: shell.mark }] : []
}

/** Time of the fork, ms since the epoch. */
const forkedAt = (process: Process, uptime: number, now: number): number =>
  now - (uptime - process.start / TICKS) * 1_000

const isShell = (fs: FileSystem.FileSystem, pid: number, mark: string): Effect.Effect<boolean> =>
  fs.readFileString(`/proc/${pid}/cmdline`).pipe(
    Effect.map((line) => line.includes(mark)),
    Effect.orElseSucceed(() => false)
  )

/** Tells a plate that its prompt was answered, if a new shell shows that. If no plate waits, nothing is read. */
export const look = Effect.fnUntraced(
  function* (fs: FileSystem.FileSystem, plates: ReadonlyArray<PlateActor>, now: number) {
    const waiting = plates.flatMap(waitingOf)
    if (waiting.length === 0) return
    const uptime = Number.parseFloat(yield* fs.readFileString("/proc/uptime"))
    const table = yield* (yield* Lookup).snapshot
    for (const { mark, plate, prompt } of waiting) {
      const children = table.filter(
        (process) => process.parent === plate.process?.pid && forkedAt(process, uptime, now) > prompt.at
      )
      for (const child of children) {
        if (!(yield* isShell(fs, child.pid, mark))) continue
        const { agentId, callId, tool } = prompt
        const event: PlateMachine.Event = {
          _tag: "DialogEndObserved",
          at: now,
          asOf: Math.round(forkedAt(child, uptime, now)),
          ...(agentId === null ? {} : { agentId }),
          tool,
          ...(callId === null ? {} : { callId }),
          from: "process"
        }
        plate.tell(event)
        break
      }
    }
  },
  (effect) => Effect.ignore(Effect.timeoutOption(effect, LIMIT))
)
