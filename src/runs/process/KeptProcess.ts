/**
 * KeptProcess: a program that the keeper holds, as a ChildProcess: it outlives the daemon, and the next one takes it up.
 *
 * Guarantees: those of ChildProcess, but that a slow reader is felt only at a bound; one that is taken up is read
 * from its beginning or its last point, and says what it had been given since.
 */
import { Effect } from "effect"
import type { HeldProgram, Input, Point } from "../keeper/HeldProgram.ts"
import { Keeper } from "../keeper/Keeper.ts"
import type { BackendError } from "../Backend.ts"
import { type ChildProcess, type Program, spawnError } from "./ChildProcess.ts"
import type { ProcessId } from "./ProcessTable.ts"

/** A program as an earlier daemon left it. */
export interface Before {
  /** Since the point. */
  readonly inputs: ReadonlyArray<Input>
  /** Bytes of its output that were there when it was taken up, and the number of its last input. */
  readonly out: number
  readonly err: number
  readonly seq: number
  readonly point: Point | undefined
}

export interface Kept extends ChildProcess {
  /** Undefined: this daemon has started it. */
  readonly before: Before | undefined
  /** The keeper, which begins others, too. */
  readonly starter: number | undefined
  /** As a search asks for them. */
  readonly births: number | undefined
  readonly anchor: ProcessId | undefined
  readonly isDue: (out: number, err: number) => boolean
  readonly keep: (point: Point) => Effect.Effect<void>
}

/** The beginning of the names of its programs. */
export const prefixOf = (runId: string): string => `${runId.replaceAll(/[^\w.-]/g, "_")}+`
/** Of a run: `count` is 1 for its first program. */
export const nameOf = (runId: string, count: number): string => `${prefixOf(runId)}${count}`

const kept = (held: HeldProgram, before: Before | undefined): Kept => ({
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

/** Starts it; undefined where no keeper is there. */
export const start = Effect.fnUntraced(function* (
  name: string,
  program: Program
): Effect.fn.Return<Kept | undefined, BackendError> {
  const keeper = yield* Keeper
  if (!(yield* keeper.isThere)) return undefined
  // an agent's run of before may be among what nobody wants
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

/** The program of that name, where an earlier daemon has left one. */
export const take = Effect.fnUntraced(function* (name: string): Effect.fn.Return<Kept | undefined> {
  const held = yield* (yield* Keeper).take(name)
  return held === undefined ? undefined : kept(held, { inputs: held.inputs, point: held.point, ...held.before })
})

/** Whether an earlier daemon has left the run, with a point and inputs that will do. */
export const isHeldWith = (
  runId: string,
  will: (inputs: ReadonlyArray<Input>, point: Point | undefined) => boolean
): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    const name = nameOf(runId, 1)
    const held = (yield* (yield* Keeper).left).find((one) => one.name === name)
    return held !== undefined && !held.isCut && will(held.inputs, held.point)
  })

/** The same, with its first input or without one. */
export const isHeld = (runId: string, { given }: { readonly given: boolean }): Effect.Effect<boolean> =>
  isHeldWith(runId, (inputs, point) => !given || point !== undefined || inputs.length > 0)

/** Whether an earlier daemon has left this program of the run, and nobody has taken it up. */
export const isLeft = (runId: string, count: number): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    const name = nameOf(runId, count)
    return (yield* (yield* Keeper).left).some((one) => one.name === name)
  })

/** Nothing of this program is asked for again. */
export const forgetOne = (runId: string, count: number): Effect.Effect<void> =>
  Effect.flatMap(Keeper, (keeper) => keeper.forget((name) => name === nameOf(runId, count)))

/** Nothing of the run is asked for again. */
export const forget = (runId: string): Effect.Effect<void> =>
  Effect.flatMap(Keeper, (keeper) => keeper.forget((name) => name.startsWith(prefixOf(runId))))
