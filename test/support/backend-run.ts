/**
 * backend-run: real processes under a mark of the test's own, and the promise that none of
 * them is left when the test ends, however it ends; shared by the backends' tests.
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

/** A folder and a store of the test's own; at the end every process with the store's mark is killed. */
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

/** Polls until the condition holds; the deadline is generous, and none of what a test asserts. */
export const until = (condition: () => boolean) =>
  Effect.sync(condition).pipe(
    Effect.repeat({ until: (held: boolean) => held, schedule: Schedule.spaced("10 millis") }),
    Effect.timeout(PATIENCE),
    Effect.orDie
  )

/** Scripts append the pids that they start to the file `pids`: what the tests know without a search. */
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

/** The pids that the script has noted, once there are so many. */
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

/** A run of the command in the world's folder. */
export const start = Effect.fnUntraced(function* (
  { store, folder }: { readonly store: string; readonly folder: string },
  config: CommandBackend.CommandConfig,
  spec: { readonly prompt?: string; readonly cwd?: string; readonly runId?: string } = {}
) {
  // the tests stand for the daemon's entry, which hands its environment over
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

/** Without what an agent says that it offers, which comes beside all else. */
export const tags = (all: ReadonlyArray<RunEvent>) => all.map(({ _tag }) => _tag).filter((tag) => tag !== "Offers")
