/**
 * `agentd backup FILE`: writes the store, and the files that its log refers to, into one file. This process does the
 * work itself, whether the daemon runs or is stopped.
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

/** Number of progress lines. */
const STEPS = 10
/** Size in bytes below which no progress is shown: the wait is too short. */
const MUCH = 50_000_000

export const sizeOf = (bytes: number): string =>
  bytes < 1_000_000 ? `${Math.ceil(bytes / 1_000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`

/** Reports progress of a large backup on a terminal. */
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
  const told = yield* hint(`To restore it (asks first): agentd restore '${file}'`)
  yield* print(made, () => [
    `${file}: ${count(made.head, "rune")}, ${count(made.items, "file")}, ${sizeOf(made.bytes)}. It holds what people and agents wrote: keep it private.`,
    told
  ])
})
