/**
 * OrphanRuns: runs that an earlier daemon left to the keeper.
 *
 * Guarantees: Runs that the log still needs continue. A run that is not resumed is ended with every process that it
 * started, and the keeper's data about it is deleted. The run's grace period ends on time, even if several daemons
 * start and stop meanwhile.
 */
import { Effect } from "effect"
import { Keeper } from "./keeper/Keeper.ts"
import type { Host } from "./Host.ts"
import * as KeptProcess from "./process/KeptProcess.ts"
import { ProcessTree } from "./process/ProcessTree.ts"
import * as RunFolder from "./RunFolder.ts"
import { RunSockets } from "./RunSockets.ts"

/**
 * Grace period from SIGTERM to SIGKILL, and its minimum, both in ms. The minimum exists because the earlier daemon may
 * not have sent SIGTERM.
 */
const [GRACE, LEAST] = [5_000, 500]

const runOf = (name: string): string => name.slice(0, name.lastIndexOf("+"))

const left = Effect.map(
  Effect.flatMap(Keeper, (keeper) => keeper.left),
  (all) => all.map((held) => ({ held, runId: runOf(held.name) }))
)

/** Ids of the runs that an earlier daemon left to the keeper. */
export const held: Effect.Effect<ReadonlySet<string>> = Effect.map(
  left,
  (all) => new Set(all.map(({ runId }) => runId))
)

/** Removes the sockets and folders of all runs that are not in `kept`. Call this before any run begins. */
export const clear = Effect.fnUntraced(function* ({ runs }: Host, kept: ReadonlySet<string>) {
  yield* (yield* RunSockets).clear([...kept])
  if (runs !== undefined) yield* RunFolder.clear(runs, kept)
})

/** Ends the runs in `over`. Returns when all their processes have ended. */
const ended = Effect.fnUntraced(function* (store: string, over: Effect.Success<typeof left>) {
  const keeper = yield* Keeper
  const tree = yield* ProcessTree
  yield* Effect.forEach(
    over,
    ({ held, held: { name, pid, start }, runId }) =>
      held.graceLeft(GRACE).pipe(
        Effect.flatMap((left) => tree.terminate({ store, runId, root: { pid, start } }, Math.max(left, LEAST))),
        Effect.catch(({ message, remedy }) => Effect.logError(message, remedy)),
        Effect.andThen(keeper.forget((one) => one === name))
      ),
    { concurrency: "unbounded", discard: true }
  )
})

export const end = Effect.fnUntraced(function* (store: string, wanted: ReadonlySet<string>) {
  const over = (yield* left).filter(({ runId }) => !wanted.has(runId))
  if (over.length === 0) return
  yield* Effect.logWarning(`ending ${over.length} runs of an earlier daemon that are no longer needed`)
  yield* ended(store, over)
})

/** Ends a run. Does nothing if the run does not exist. Returns when all processes of the run have ended. */
export const drop = Effect.fnUntraced(function* (store: string, runId: string) {
  const prefix = KeptProcess.prefixOf(runId)
  yield* ended(
    store,
    (yield* left).filter(({ held }) => held.name.startsWith(prefix))
  )
})
