/**
 * StandardInput: reads a text from an argument or from standard input, or standard input line by line.
 *
 * Guarantees: of a text or a line, no more bytes are kept than a message may contain. A text that is not plain text is
 * rejected.
 */
import { Console, Effect, Stdio, Stream } from "effect"
import { Limits } from "../../board/Limits.ts"
import * as BoundedRead from "../../config/BoundedRead.ts"
import { MessageLines } from "../../config/LineSplitter.ts"
import { ExitCode } from "./ExitCode.ts"
import { VerbFailed } from "./Failure.ts"
import { decoded } from "../render/PlainText.ts"

const tooLong = new VerbFailed({
  message: `The text on standard input is longer than ${Limits.textBytes} bytes.`,
  remedy: "Put it in a file that the agent can read, and send its path.",
  exitCode: ExitCode.failed
})

/** The lines of an input. A line of more than `most` characters is discarded: `undefined` stands for it. */
export const linesOf = <E, R>(
  input: Stream.Stream<Uint8Array, E, R>,
  most: number
): Stream.Stream<string | undefined, E, R> =>
  Stream.suspend(() => {
    const lines = new MessageLines(most)
    return input.pipe(
      Stream.flatMap((part) => Stream.fromIterable(lines.push(part))),
      Stream.concat(Stream.suspend(() => Stream.fromIterable(lines.end())))
    )
  })

/** The lines that a person or a program types. A line that is longer than a text may be is reported and left out. */
export const typedLines = Stream.unwrap(
  Effect.map(Stdio.Stdio, ({ stdin }) =>
    linesOf(stdin, Limits.textBytes).pipe(
      Stream.tap((line) =>
        line === undefined
          ? Console.error(`agentd: A line of more than ${Limits.textBytes} characters was not sent.`)
          : Effect.void
      ),
      Stream.filter((line) => line !== undefined)
    )
  )
)

/** Reads standard input. Fails if it is longer than the maximum length of a text. */
const readInput = Effect.gen(function* () {
  const { stdin } = yield* Stdio.Stdio
  const { bytes, isCut } = yield* BoundedRead.read(stdin, Limits.textBytes)
  if (isCut) return yield* tooLong
  const text = decoded(bytes)
  return typeof text === "string" ? text : yield* new VerbFailed({ ...text, exitCode: ExitCode.usage })
})

/** Reads a text from the argument, or from standard input. `line`: the command line to which the text is added. */
export const textOf = Effect.fnUntraced(function* (given: string | undefined, line: string) {
  if (given !== undefined && given !== "-") return given
  const stdio = yield* Stdio.Stdio
  const isTyped = given === undefined && (yield* stdio.stdinIsTerminal)
  const text = isTyped ? "" : yield* readInput
  if (text.trim() !== "") return text
  return yield* new VerbFailed({
    message: "There is nothing to send.",
    remedy: `Pass the text: agentd ${line} "TEXT". Or pipe it to the command, or pass - and type the text.`,
    exitCode: ExitCode.usage
  })
})
