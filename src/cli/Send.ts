/** `agentd send AGENT TEXT`: puts a message into an agent's inbox. */
import { Effect, Stdio, Stream } from "effect"
import { call } from "../rpc/ControlClient.ts"
import { Limits } from "../rpc/Limits.ts"
import { ExitCode } from "./ExitCode.ts"
import { VerbFailed } from "./Failure.ts"
import { Invocation, print } from "./Invocation.ts"
import { plain } from "./Output.ts"

const tooLong = new VerbFailed({
  message: `The text on standard input is longer than ${Limits.textBytes} bytes.`,
  remedy: "Put it in a file that the agent can read, and send its path.",
  exitCode: ExitCode.failed
})

const both = new VerbFailed({
  message: "--urgent and --steer exclude each other.",
  remedy: "--steer ends the turn, --urgent the run: give the one that is meant.",
  exitCode: ExitCode.usage
})

/** No more of it than may be sent. */
const readInput = Effect.gen(function* () {
  const stdio = yield* Stdio.Stdio
  const parts = yield* stdio.stdin.pipe(
    Stream.runFoldEffect(
      (): { readonly size: number; readonly parts: ReadonlyArray<Uint8Array> } => ({ size: 0, parts: [] }),
      ({ parts, size }, part) =>
        size + part.byteLength > Limits.textBytes
          ? Effect.fail(tooLong)
          : Effect.succeed({ size: size + part.byteLength, parts: [...parts, part] })
    )
  )
  return Buffer.concat(parts.parts).toString("utf8")
})

export const textOf = Effect.fnUntraced(function* (given: string | undefined) {
  if (given !== undefined && given !== "-") return given
  const stdio = yield* Stdio.Stdio
  if (given === undefined && (yield* stdio.stdinIsTerminal)) {
    return yield* new VerbFailed({
      message: "There is nothing to send.",
      remedy: 'Give the text: agentd send AGENT "…", or pipe it in, or write - and type it.',
      exitCode: ExitCode.usage
    })
  }
  return yield* readInput
})

export const run = Effect.fnUntraced(function* (input: {
  readonly agent: string
  readonly text: string | undefined
  readonly urgent: boolean
  readonly steer: boolean
}) {
  const { caller, paths } = yield* Invocation
  if (input.urgent && input.steer) return yield* both
  const how = input.urgent ? "urgent" : input.steer ? "steer" : "queue"
  const text = yield* textOf(input.text)
  const done = yield* call(paths.socket, (client) => client.Send({ name: input.agent, text, how, caller }))
  yield* print(done, () => [plain(done.message)])
})
