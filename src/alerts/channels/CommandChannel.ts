/**
 * CommandChannel: runs a program that the user has configured, with the notice as JSON on its stdin, in the format of a
 * webhook's body. Exit code 0 means that the notice is accepted, 75 that agentd must retry soon. Any other code means
 * that only the user can fix the problem.
 *
 * Guarantees: the program has a small environment and no shell. When it ends, or its time is over, every process that
 * it started in its process group is ended. An error contains the last lines of its stderr.
 */
import { Config as Environment, Duration, Effect, Option, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import type { AlertChannel } from "../AlertChannel.ts"
import { SendError, setup } from "../SendError.ts"
import { line } from "../Notice.ts"
import type { ChannelConfig, ChannelOf } from "../../config/NotifyConfig.ts"
import { Redact } from "../../core/event-log/Redact.ts"
import { bodyOf } from "./Webhook.ts"

/** The exit code EX_TEMPFAIL in sysexits.h: try again later. */
const TEMPFAIL = 75
const MAX_STDERR = 4_096
const MAX_SAID = 200

/** Environment variables that the program gets in addition to those that the config names. */
const GIVEN = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR"]

const variables = (names: ReadonlyArray<string>) =>
  Effect.map(
    Effect.forEach(names, (name) =>
      Effect.map(
        Effect.orElseSucceed(Environment.option(Environment.String(name)), () => Option.none<string>()),
        (value) => (Option.isSome(value) ? [[name, value.value] as const] : [])
      )
    ),
    (all) => Object.fromEntries(all.flat())
  )

const commandOf = Effect.fnUntraced(function* (config: ChannelConfig, body: string, id: string) {
  const { argv, passEnv } = config as ChannelOf<"command">
  const [program = "", ...args] = argv
  return ChildProcess.make(program, args, {
    cwd: "/",
    env: { PATH: "/usr/local/bin:/usr/bin:/bin", ...(yield* variables([...GIVEN, ...passEnv])), AGENTD_NOTICE: id },
    extendEnv: false,
    stdin: Stream.make(new TextEncoder().encode(body)),
    stdout: "ignore",
    forceKillAfter: "2 seconds"
  })
})

export const make: Effect.Effect<AlertChannel, never, ChildProcessSpawner.ChildProcessSpawner | Redact> = Effect.gen(
  function* () {
    const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
    const redact = yield* Redact

    const ended = (config: ChannelConfig, body: string, id: string) =>
      Effect.gen(function* () {
        const child = yield* spawner.spawn(yield* commandOf(config, body, id))
        let said = ""
        // do not wait for the end of stderr: a process that the program left running can keep it open
        yield* Effect.forkScoped(
          Effect.ignore(
            Stream.runForEach(Stream.decodeText(child.stderr), (text) =>
              Effect.sync(() => void (said = (said + text).slice(-MAX_STDERR)))
            )
          )
        )
        const code = Number(yield* child.exitCode)
        return { code, said: redact.text(line(said)).slice(-MAX_SAID).toWellFormed() }
      }).pipe(Effect.scoped)

    return {
      name: "command",
      send: Effect.fnUntraced(function* (config, message) {
        const { argv, timeLimit } = config as ChannelOf<"command">
        const program = argv[0]!
        const { code, said } = yield* ended(config, bodyOf(message), message.id).pipe(
          Effect.mapError(({ message }) =>
            setup(
              `${program} could not be run: ${line(message)}`,
              "Check argv of the channel: the program must exist and be executable."
            )
          ),
          Effect.timeoutOrElse({
            duration: timeLimit,
            orElse: () =>
              Effect.fail(
                setup(
                  `${program} did not end within ${Duration.format(timeLimit)}, and was killed`,
                  "Make it end sooner, or increase timeLimit."
                )
              )
          })
        )
        if (code === 0) return { response: `${program} accepted it` }
        const why = `${program} ended with exit code ${code}${said === "" ? "" : `: ${said}`}`
        return yield* code === TEMPFAIL
          ? new SendError({
              message: why,
              remedy: "The program asks to try again later; agentd does.",
              class: "transient"
            })
          : setup(why, "See what the program says; try it by hand: agentd alert test NAME")
      }),
      check: (config) => Effect.succeed(`runs ${(config as ChannelOf<"command">).argv[0]}`)
    } satisfies AlertChannel
  }
)
