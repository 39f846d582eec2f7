/**
 * backend-run: starts real processes with a mark of the test; none of them is left when the test ends, however it ends.
 * For the tests of the backends.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Duration, Effect, Layer, Schedule, Stream } from "effect"
import { randomUUID } from "node:crypto"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import type { Run, RunEvent } from "../../src/runs/Backend.ts"
import * as CommandBackend from "../../src/runs/command/CommandBackend.ts"
import * as ProcessTable from "../../src/runs/process/ProcessTable.ts"
import { ProcessTree } from "../../src/runs/process/ProcessTree.ts"
import { Sandbox } from "../../src/runs/sandbox/Sandbox.ts"
import { Reaper } from "../../src/runs/process/Reaper.ts"
import { PATIENCE } from "./Patience.ts"

export const layer = Layer.mergeAll(ProcessTree.layer, Reaper.layerNone, NodeFileSystem.layer, Sandbox.layerNone)

/** A new folder and store id for the test; at the end every process with the store's mark is killed. */
export const world = Effect.acquireRelease(
  Effect.sync(() => ({
    store: `test-${randomUUID()}`,
    folder: fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "agentd-backends-")))
  })),
  ({ store, folder }) =>
    Effect.gen(function* () {
      const tree = yield* ProcessTree
      for (const { runId } of yield* tree.orphans(store, new Set())) yield* tree.terminate({ store, runId }, 0)
      for (const pid of pidsIn(folder)) if (ProcessTable.isAlive(pid)) process.kill(pid.pid, "SIGKILL")
      fs.rmSync(folder, { recursive: true, force: true })
    }).pipe(Effect.orDie)
)

/** Polls until the condition is true. The timeout is long, because no test asserts a time. */
export const until = (condition: () => boolean) =>
  Effect.sync(condition).pipe(
    Effect.repeat({ until: (held: boolean) => held, schedule: Schedule.spaced("10 millis") }),
    Effect.timeout(PATIENCE),
    Effect.orDie
  )

/** Pids of the processes that a script has started: it appends them to the file `pids`, so no search is needed. */
export const pidsIn = (folder: string): ReadonlyArray<ProcessTable.ProcessId> => {
  const file = path.join(folder, "pids")
  if (!fs.existsSync(file)) return []
  return fs
    .readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => /^\d+$/.test(line))
    .map((line) => ProcessTable.identify(Number(line)))
    .filter(({ start }) => start > 0)
}

/** The pids that the script has written, once there are at least `count`. */
export const pids = (folder: string, count: number) =>
  Effect.map(
    until(() => pidsIn(folder).length >= count),
    () => pidsIn(folder)
  )

export const exists = (folder: string, name: string) => Effect.sync(() => fs.existsSync(path.join(folder, name)))

export const command = (
  options: Partial<CommandBackend.CommandConfig> &
    ({ readonly shell: string } | { readonly argv: ReadonlyArray<string> })
): CommandBackend.CommandConfig => ({
  type: "command",
  env: {},
  promptBy: "stdin",
  readyAfter: Duration.millis(50),
  killGrace: Duration.seconds(5),
  sandbox: "off",
  network: false,
  share: [],
  ...options
})

/** Starts a run of the command in the world's folder. */
export const start = Effect.fnUntraced(function* (
  { store, folder }: { readonly store: string; readonly folder: string },
  config: CommandBackend.CommandConfig,
  spec: { readonly prompt?: string; readonly cwd?: string; readonly runId?: string } = {}
) {
  // like the daemon's entry, the tests pass their environment on
  const backend = yield* CommandBackend.make(config, { store, environment: process.env })
  return yield* backend.start({
    runId: spec.runId ?? "run-1",
    turnId: "turn-1",
    resume: undefined,
    mcp: {},
    agent: "builder",
    prompt: spec.prompt ?? "",
    cwd: spec.cwd ?? folder,
    env: {}
  })
})

export const events = (run: Run) =>
  Effect.map(Stream.runCollect(run.events), (all): ReadonlyArray<RunEvent> => [...all])

export const lines = (all: ReadonlyArray<RunEvent>, stream: "stdout" | "stderr" = "stdout") =>
  all.flatMap((event) => (event._tag === "Delta" && event.stream === stream ? [event.text] : []))

/** Tags of the events without `Offers`, which can come at any time. */
export const tags = (all: ReadonlyArray<RunEvent>) => all.map(({ _tag }) => _tag).filter((tag) => tag !== "Offers")
