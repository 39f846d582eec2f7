/**
 * KeptProcess: a program that the keeper holds, as a ChildProcess. The program survives the daemon, and the next daemon
 * resumes it.
 *
 * Guarantees: Those of ChildProcess, with one exception: a slow reader slows the program down only when the unread
 * output reaches a limit. The output of a resumed program is read again from its beginning or from its last checkpoint,
 * and the inputs since that point are known.
 */
import { Effect } from "effect"
import type { KeeperProgram, Input, Point } from "../keeper/KeeperProgram.ts"
import { Keeper } from "../keeper/Keeper.ts"
import type { BackendError } from "../Backend.ts"
import { type ChildProcess, type Program, spawnError } from "./ChildProcess.ts"
import type { ProcessId } from "./ProcessTable.ts"

/** The state of a program that an earlier daemon left. */
export interface Before {
  /** Inputs that were sent since the last checkpoint. */
  readonly inputs: ReadonlyArray<Input>
  /** How many bytes of stdout and stderr existed when the program was resumed, and the number of its last input. */
  readonly out: number
  readonly err: number
  readonly seq: number
  readonly point: Point | undefined
}

export interface Kept extends ChildProcess {
  /** State that an earlier daemon left; undefined if this daemon started the program. */
  readonly before: Before | undefined
  /** Pid of the keeper, which starts other programs, too. */
  readonly starter: number | undefined
  /** Values for the search for the run's processes; see `Quarry` in ProcessTree. */
  readonly births: number | undefined
  readonly anchor: ProcessId | undefined
  readonly isDue: (out: number, err: number) => boolean
  readonly keep: (point: Point) => Effect.Effect<void>
}

/** Prefix of the names of the run's programs. */
export const prefixOf = (runId: string): string => `${runId.replaceAll(/[^\w.-]/g, "_")}+`
/** Name of a run's program. `count` is 1 for the run's first program. */
export const nameOf = (runId: string, count: number): string => `${prefixOf(runId)}${count}`

const kept = (held: KeeperProgram, before: Before | undefined): Kept => ({
  before,
  starter: held.keeper,
  births: held.births,
  anchor: held.anchor,
  id: { pid: held.pid, start: held.start },
  isDue: (out, err) => held.isDue(out, err),
  keep: (point) => held.keep(point),
  stdout: { read: held.read("out"), from: held.point?.out ?? 0 },
  stderr: { read: held.read("err"), from: held.point?.err ?? 0 },
  exited: held.exited,
  write: (text, note = "") => held.write(text, note),
  closeInput: held.write(null, ""),
  discard: Effect.void,
  close: Effect.sync(() => held.close())
})

const refusal = (code: string): Error => Object.assign(new Error(`the keeper says: ${code}`), { code })

/** Starts a program; undefined if there is no keeper. */
export const start = Effect.fnUntraced(function* (
  name: string,
  program: Program
): Effect.fn.Return<Kept | undefined, BackendError> {
  const keeper = yield* Keeper
  if (!(yield* keeper.isThere)) return undefined
  // wait, because an earlier run of this agent may be one of those that are about to be ended
  if ((yield* keeper.left).length > 0) yield* keeper.settled.await
  const { argv, cwd, env, handed = [], input, keepInput = false, limits } = program
  const wanted = { name, argv, cwd, env, isDeaf: input === undefined && !keepInput, handed, limits }
  const held = yield* Effect.catch(keeper.spawn(wanted), ({ code }) =>
    code === "keeper" || code === "retired"
      ? Effect.as(Effect.logWarning(`no keeper holds ${name}: it ends with the daemon`), undefined)
      : Effect.fail(spawnError(program, refusal(code)))
  )
  if (held === undefined) return undefined
  if (input !== undefined)
    yield* Effect.forkDetach(Effect.andThen(held.write(input, ""), keepInput ? Effect.void : held.write(null, "")))
  return kept(held, undefined)
})

/** Takes over a program that an earlier daemon left; undefined if there is none. */
export const take = Effect.fnUntraced(function* (name: string): Effect.fn.Return<Kept | undefined> {
  const held = yield* (yield* Keeper).take(name)
  return held === undefined ? undefined : kept(held, { inputs: held.inputs, point: held.point, ...held.before })
})

/** Whether an earlier daemon left this run, and `will` can continue with its inputs and checkpoint. */
export const isHeldWith = (
  runId: string,
  will: (inputs: ReadonlyArray<Input>, point: Point | undefined) => boolean
): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    const name = nameOf(runId, 1)
    const held = (yield* (yield* Keeper).left).find((one) => one.name === name)
    return held !== undefined && !held.isCut && will(held.inputs, held.point)
  })

/** Whether an earlier daemon left this run. `given`: if true, the run must also have received its first input. */
export const isHeld = (runId: string, { given }: { readonly given: boolean }): Effect.Effect<boolean> =>
  isHeldWith(runId, (inputs, point) => !given || point !== undefined || inputs.length > 0)

/** Whether an earlier daemon left this program of the run, and no daemon has resumed it since. */
export const isLeft = (runId: string, count: number): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    const name = nameOf(runId, count)
    return (yield* (yield* Keeper).left).some((one) => one.name === name)
  })

export const forgetOne = (runId: string, count: number): Effect.Effect<void> =>
  Effect.flatMap(Keeper, (keeper) => keeper.forget((name) => name === nameOf(runId, count)))

export const forget = (runId: string): Effect.Effect<void> =>
  Effect.flatMap(Keeper, (keeper) => keeper.forget((name) => name.startsWith(prefixOf(runId))))
