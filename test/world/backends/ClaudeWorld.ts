/**
 * ClaudeWorld: the fake CLI, started as a program of its own with a script, and a reader who
 * acts on the run's events; shared by the tests of ClaudeBackend.
 */
import { Duration, Effect, Stream } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import type { Run, RunEvent, RunSpec } from "../../../src/runs/Backend.ts"
import * as ClaudeBackend from "../../../src/runs/claude/ClaudeBackend.ts"
import type * as Config from "../../../src/config/BackendConfig.ts"
import * as Support from "../../support/backend-run.ts"

const FAKE = path.resolve(import.meta.dirname, "../../fixtures/claude/fake.mjs")

export interface Process {
  readonly before?: ReadonlyArray<object>
  readonly turns: ReadonlyArray<ReadonlyArray<object>>
  readonly end?: "hang" | number
}

export const config = (more: Partial<Config.ClaudeBackend> = {}): Config.ClaudeBackend => ({
  type: "claude",
  binary: "./claude",
  permissionMode: "default",
  args: [],
  env: {},
  killGrace: Duration.seconds(5),
  sandbox: "off",
  network: false,
  share: [],
  provider: {},
  resume: true,
  silence: Duration.minutes(5),
  startTimeout: Duration.minutes(1),
  ...more
})

export interface Play {
  readonly processes: ReadonlyArray<Process>
  readonly config?: Partial<Config.ClaudeBackend>
  readonly spec?: Partial<RunSpec>
  readonly environment?: { readonly [name: string]: string }
  /** The reaction to an event, before the next one is read. */
  readonly on?: (event: RunEvent, run: Run) => Effect.Effect<unknown, unknown> | undefined
}

export interface Played {
  readonly folder: string
  readonly events: ReadonlyArray<RunEvent>
  readonly starts: ReadonlyArray<{
    readonly args: ReadonlyArray<string>
    readonly env: { readonly [name: string]: string }
  }>
  /** Of the CLI's standard input. */
  readonly inputs: ReadonlyArray<{ readonly [key: string]: unknown }>
}

const noted = (folder: string, name: string) => {
  const file = path.join(folder, name)
  if (!fs.existsSync(file)) return []
  // a killed program leaves a file without its line, or a line without its end
  return fs
    .readFileSync(file, "utf8")
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line))
}

/** Starts the run in the world's folder. */
export const begin = Effect.fnUntraced(function* (
  { folder, store }: { readonly folder: string; readonly store: string },
  play: Play
) {
  fs.writeFileSync(path.join(folder, "script.json"), JSON.stringify({ processes: play.processes }))
  fs.writeFileSync(path.join(folder, "claude"), `#!/bin/sh\nexec "${process.execPath}" "${FAKE}" "$@"\n`, {
    mode: 0o755
  })
  const environment = { ...process.env, ...play.environment }
  const backend = yield* ClaudeBackend.make(config(play.config), { store, environment })
  return yield* backend.start({
    runId: "run-1",
    agent: "builder",
    turnId: "t1",
    prompt: "do it",
    cwd: folder,
    env: {},
    resume: undefined,
    mcp: {},
    ...play.spec
  })
})

/** A run to its end, in a world of its own. */
export const play = Effect.fnUntraced(function* (what: Play) {
  const world = yield* Support.world
  const events: Array<RunEvent> = []
  yield* Effect.scoped(
    Effect.gen(function* () {
      const run = yield* begin(world, what)
      yield* Stream.runForEach(run.events, (event) => {
        events.push(event)
        return what.on?.(event, run) ?? Effect.void
      })
    })
  )
  const { folder } = world
  const played: Played = {
    folder,
    events,
    starts: noted(folder, "starts.jsonl"),
    inputs: noted(folder, "inputs.jsonl")
  }
  return played
})

/** Ends the run when a turn has ended. */
export const endsAfter =
  (turnId: string) =>
  (event: RunEvent, run: Run): Effect.Effect<void> | undefined =>
    (event._tag === "TurnCompleted" || event._tag === "TurnInterrupted") && event.turnId === turnId
      ? run.end
      : undefined

/** Of one kind. */
export const only = <T extends RunEvent["_tag"]>(events: ReadonlyArray<RunEvent>, tag: T) =>
  events.filter((event): event is Extract<RunEvent, { readonly _tag: T }> => event._tag === tag)
