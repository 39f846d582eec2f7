/**
 * Shells: whether a command that waited for permission runs by now.
 *
 * Nothing tells when a person allows a command in the terminal: the next hook comes
 * when it has ended. But its shell is a child of the session's process. Guarantees:
 * only what is beyond doubt counts: the shell is of the kind that the Bash tool
 * starts, it was forked after the dialog opened, and no other call of that tool is
 * open that it could belong to. Where that cannot be seen nothing is said.
 */
import { Effect, type FileSystem } from "effect"
import { Lookup, type Process } from "../runs/process/ProcessTable.ts"
import type * as PlateMachine from "./PlateMachine.ts"
import type { Prompt } from "./PlateState.ts"
import type { PlateActor } from "./PlateActor.ts"

const TOOL = "Bash"
/** In the command line of every shell that the Bash tool starts, and of no hook's. */
const MARK = "/shell-snapshots/"
/** Clock ticks in a second, as Linux tells them to programs. */
const TICKS = 100
const LIMIT = "1 second"

/** The one prompt that a new shell answers for. */
const promptOf = ({ stand, process }: PlateActor): Prompt | undefined => {
  const { calls, prompts } = stand.data
  if (stand.state !== "AwaitingApproval" || process === undefined) return undefined
  const commands = calls.filter(({ tool }) => tool === TOOL)
  return commands.length === 1 ? prompts.find(({ callId }) => callId === commands[0]!.callId) : undefined
}

/** When it was forked, ms since the epoch. */
const forkedAt = (process: Process, uptime: number, now: number): number =>
  now - (uptime - process.start / TICKS) * 1_000

const isShell = (fs: FileSystem.FileSystem, pid: number): Effect.Effect<boolean> =>
  fs.readFileString(`/proc/${pid}/cmdline`).pipe(
    Effect.map((line) => line.includes(MARK)),
    Effect.orElseSucceed(() => false)
  )

/** Events for the plates that wait; nothing is read where none does. */
export const look = Effect.fnUntraced(
  function* (fs: FileSystem.FileSystem, plates: ReadonlyArray<PlateActor>, now: number) {
    const waiting = plates.flatMap((plate) => {
      const prompt = promptOf(plate)
      return prompt === undefined ? [] : [{ plate, prompt }]
    })
    if (waiting.length === 0) return
    const uptime = Number.parseFloat(yield* fs.readFileString("/proc/uptime"))
    const table = yield* (yield* Lookup).snapshot
    for (const { plate, prompt } of waiting) {
      const children = table.filter(
        (process) => process.parent === plate.process?.pid && forkedAt(process, uptime, now) > prompt.at
      )
      for (const child of children) {
        if (!(yield* isShell(fs, child.pid))) continue
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
