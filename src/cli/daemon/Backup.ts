/**
 * `agentd backup FILE`: writes the store, and the files that its log refers to, into one file. This process makes the
 * backup itself, whether the daemon runs or not.
 */
import { Console, Effect } from "effect"
import { resolve } from "node:path"
import * as BackupFile from "../../backup/BackupFile.ts"
import { VERSION } from "../../api/rpc/Version.ts"
import { hint, Invocation, print } from "../parse/Invocation.ts"
import { count } from "../render/Output.ts"

interface Input {
  readonly file: string
  readonly force: boolean
}

/** Number of progress lines that are printed during a whole backup. */
const STEPS = 10
/** Size in bytes below which no progress is printed, because a small backup takes little time. */
const MUCH = 50_000_000

export const sizeOf = (bytes: number): string =>
  bytes < 1_000_000 ? `${Math.ceil(bytes / 1_000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`

/** Prints the progress of a large backup. `talks`: false if nothing should be printed, such as without a terminal. */
const progressOf = (talks: boolean, say: (line: string) => void) => {
  let told = 0
  return (done: number, all: number): void => {
    const step = Math.floor((done / all) * STEPS)
    if (!talks || all < MUCH || step <= told) return
    told = step
    say(`… ${(100 / STEPS) * step} % of ${sizeOf(all)}`)
  }
}

export const run = Effect.fnUntraced(function* ({ file: given, force }: Input) {
  const { columns, json, paths } = yield* Invocation
  const say = (yield* Console.Console).error
  const talks = columns !== null && !json
  const file = resolve(given)
  if (talks) say("Copying the log …")
  const made = yield* BackupFile.make({
    state: paths.state,
    file,
    force,
    version: VERSION,
    progress: progressOf(talks, say)
  })
  const told = yield* hint(`To restore the backup after confirmation: agentd restore '${file}'`)
  yield* print(made, () => [
    `${file}: ${count(made.head, "rune")}, ${count(made.items, "file")}, ${sizeOf(made.bytes)}. It contains everything that people and agents wrote, so keep it private.`,
    told
  ])
})
