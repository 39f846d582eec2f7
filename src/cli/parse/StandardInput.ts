/**
 * StandardInput: reads a text from an argument or from standard input.
 *
 * Guarantees: no more bytes are read than a message may contain, and input that is not plain text is rejected.
 */
import { Effect, Stdio, Stream } from "effect"
import { Limits } from "../../board/Limits.ts"
import { ExitCode } from "./ExitCode.ts"
import { VerbFailed } from "./Failure.ts"
import { decoded } from "../render/PlainText.ts"

const tooLong = new VerbFailed({
  message: `The text on standard input is longer than ${Limits.textBytes} bytes.`,
  remedy: "Put it in a file that the agent can read, and send its path.",
  exitCode: ExitCode.failed
})

/** Reads standard input. Fails if it is longer than the maximum length of a text. */
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
  const text = decoded(Buffer.concat(parts.parts))
  return typeof text === "string" ? text : yield* new VerbFailed({ ...text, exitCode: ExitCode.usage })
})

export const textOf = Effect.fnUntraced(function* (given: string | undefined) {
  if (given !== undefined && given !== "-") return given
  const stdio = yield* Stdio.Stdio
  if (given === undefined && (yield* stdio.stdinIsTerminal)) {
    return yield* new VerbFailed({
      message: "There is nothing to send.",
      remedy: 'Pass the text: agentd send AGENT "…". Or pipe it to the command, or pass - and type the text.',
      exitCode: ExitCode.usage
    })
  }
  return yield* readInput
})
