/**
 * ShellTool: runs a command line with `sh -c` in the workspace, confined by the sandbox.
 *
 * Guarantees: the outcome is returned when every process that the command started has ended, including processes in
 * separate sessions and in the background. An interruption ends all of them. All output is read; the beginning and the
 * end are kept. Progress events are limited in size and rate. Without a sandbox, each call asks for an approval first.
 * If the config requires a sandbox, no command runs without one.
 */
import { Context, Duration, Effect, Fiber, Option, Schema } from "effect"
import type { ModelBackend } from "../config/BackendConfig.ts"
import { described, optional, whole, Word, Text } from "../config/Fields.ts"
import type { RunSpec } from "../runs/Backend.ts"
import type { Argv, Host } from "../runs/Host.ts"
import * as ShellRules from "../runs/ShellRules.ts"
import * as HeadTail from "../runs/HeadTail.ts"
import { ProcessTree } from "../runs/process/ProcessTree.ts"
import { Reaper } from "../runs/process/Reaper.ts"
import type { Pipe } from "../runs/process/ChildProcess.ts"
import type { ExitStatus } from "../runs/process/ChildProcess.ts"
import * as RunProcess from "../runs/process/RunProcess.ts"
import type { MountRefused } from "../runs/sandbox/Confinement.ts"
import type { Mechanism } from "../runs/sandbox/Sandbox.ts"
import { define, failure, MAX_HEAD, MAX_TAIL, type Tool, type ToolContext, type ToolOutcome } from "./Tool.ts"
import * as ToolProgress from "./ToolProgress.ts"
import type { Workspace } from "../runs/sandbox/Workspace.ts"

export interface ShellOptions {
  readonly config: ModelBackend
  readonly spec: RunSpec
  readonly host: Host
  readonly workspace: Workspace
  readonly hidden: ReadonlyArray<string>
  readonly mechanism: Mechanism
}

const Input = Schema.Struct({
  command: described(Word.check(Schema.isMaxLength(100_000)), "What `sh -c` runs."),
  description: optional(Text, "What it is for, in a few words: a person may be asked about it."),
  cwd: optional(Word, "A folder in the workspace to run it in. Default: the workspace."),
  timeout: optional(whole(1, 86_400), "Seconds after which it is ended. Default: the limit for all tools.")
})

/** Grace period from SIGTERM to SIGKILL. */
const GRACE = Duration.seconds(2)

const descriptionOf = ({ config, mechanism }: ShellOptions) =>
  [
    "Runs a line with `sh -c` in the workspace and returns its output (standard output and error together) and exit code.",
    "It reads no input. What it leaves running in the background is ended with it.",
    ...(mechanism.kind === "none"
      ? []
      : [
          "Only the workspace can be written; home folders and /tmp are empty, private and forgotten afterwards.",
          config.network ? "The network can be reached." : "There is no network."
        ])
  ].join(" ")

const pump = Effect.fnUntraced(function* (
  pipe: Pipe,
  ended: Effect.Effect<unknown, unknown>,
  take: (text: string) => Effect.Effect<void>
) {
  const decoder = new TextDecoder("utf-8")
  yield* RunProcess.drain(pipe, ended, (chunk) => take(decoder.decode(chunk, { stream: true })))
  yield* take(decoder.decode())
})

/** Hints about the sandbox, by the error messages that programs print when the sandbox stops them. */
const HINTS: ReadonlyArray<readonly [RegExp, string]> = [
  [/Read-only file system/i, "the sandbox lets it write in the workspace only: use a path in there"],
  [
    /Network is unreachable|Could not resolve host|Temporary failure in name resolution|EAI_AGAIN|ENETUNREACH/i,
    "the sandbox has no network: do without, or say in your answer what you need from it"
  ]
]

const outcomeOf = (status: ExitStatus, output: string, confined: boolean, network: boolean): ToolOutcome => {
  const ending = status.signal === null ? `exit code ${status.code}` : `killed by ${status.signal}`
  const text = output === "" || output.endsWith("\n") ? output : `${output}\n`
  if (status.code === 0) return { status: "success", output: `${text}[${ending}]` }
  const hint = confined ? HINTS.slice(0, network ? 1 : 2).find(([said]) => said.test(output))?.[1] : undefined
  return hint === undefined
    ? { status: "error", output: `${text}[${ending}]` }
    : { status: "sandbox_violation", output: `${text}[${ending}; ${hint}]` }
}

const execute = Effect.fnUntraced(function* (
  options: ShellOptions,
  runId: string,
  input: typeof Input.Type,
  context: ToolContext
) {
  const { config, host, mechanism, workspace, hidden } = options
  const cwd = yield* workspace.folder(input.cwd ?? "")
  const argv: Argv = ["/bin/sh", "-c", input.command]
  const rules = ShellRules.rulesOf(options, workspace.root, hidden)
  const confined: Effect.Effect<Pick<RunProcess.RunProcessSpec, "argv" | "handed">, MountRefused> = mechanism.kind ===
  "none"
    ? Effect.succeed({ argv })
    : mechanism.wrap(rules, cwd, argv)
  const command = yield* Effect.result(confined)
  if (command._tag === "Failure") return failure(`${command.failure.message}: ${command.failure.remedy}`)
  const started = yield* RunProcess.make({
    store: host.store,
    runId,
    ...command.success,
    cwd,
    env: ShellRules.environmentOf(options),
    grace: GRACE
  }).pipe(Effect.result)
  if (started._tag === "Failure") return failure(`${started.failure.message}: ${started.failure.remedy}`)
  const program = started.success
  const kept = HeadTail.make(MAX_HEAD / 2, MAX_TAIL)
  const progress = yield* ToolProgress.make(context)
  const pumps = yield* Effect.forEach(["stdout", "stderr"] as const, (stream) =>
    Effect.forkScoped(
      pump(program[stream], program.ended, (text) =>
        Effect.andThen(
          Effect.sync(() => kept.push(text)),
          progress.push(stream, text)
        )
      )
    )
  )
  const limit = input.timeout === undefined ? context.limit : Duration.seconds(input.timeout)
  const status = yield* Effect.timeoutOption(program.exited, limit)
  if (Option.isNone(status)) yield* program.interrupt
  const survived = yield* program.ended.pipe(
    Effect.as(""),
    Effect.catch(({ message, remedy }) => Effect.succeed(`\n[${message}: ${remedy}]`))
  )
  yield* Fiber.awaitAll(pumps)
  yield* progress.flush
  const output = kept.text() + survived
  return Option.match(status, {
    onNone: (): ToolOutcome => ({
      status: "timeout",
      output: `${output}\n[ended after ${Duration.toSeconds(limit)} seconds]`
    }),
    onSome: (status) => outcomeOf(status, output, mechanism.kind !== "none", config.network)
  })
})

export const make = Effect.fnUntraced(function* (
  options: ShellOptions
): Effect.fn.Return<Tool, never, ProcessTree | Reaper> {
  // only these two: with the whole context, a call's processes would belong to the toolbox's scope
  const context = Context.make(ProcessTree, yield* ProcessTree).pipe(Context.add(Reaper, yield* Reaper))
  const { config, mechanism, spec } = options
  let calls = 0
  const refused =
    `no command runs here: the config asks for a sandbox, and none works on this machine (${mechanism.note}); ` +
    "go on with the other tools, and say in your answer what you could not do"
  return define({
    name: "shell",
    description: descriptionOf(options),
    input: Input,
    readOnly: false,
    parallel: false,
    timesItself: true,
    asksAlways:
      mechanism.kind === "none" && config.sandbox === "ask"
        ? `nothing holds it in the workspace: no sandbox works on this machine (${mechanism.note})`
        : undefined,
    run: (input, call) =>
      mechanism.kind === "none" && config.sandbox === "required"
        ? Effect.succeed<ToolOutcome>({ status: "sandbox_violation", output: refused })
        : // a separate mark, so that the end of this call does not end another call or a server of the same run
          Effect.provideContext(execute(options, `${spec.runId}+shell-${++calls}`, input, call), context)
  })
})
